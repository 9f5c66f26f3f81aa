--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: shop; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA shop;


SET default_tablespace = '';

--
-- Name: events; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.events (
    id bigint NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'click'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric))
)
PARTITION BY RANGE (at);


--
-- Name: events_id_seq; Type: SEQUENCE; Schema: shop; Owner: -
--

CREATE SEQUENCE shop.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: events_id_seq; Type: SEQUENCE OWNED BY; Schema: shop; Owner: -
--

ALTER SEQUENCE shop.events_id_seq OWNED BY shop.events.id;


SET default_table_access_method = heap;

--
-- Name: a_first; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.a_first (
    id bigint DEFAULT nextval('shop.events_id_seq'::regclass) NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'click'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric))
);


--
-- Name: customers; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.customers (
    id integer NOT NULL,
    name text
);


--
-- Name: events_24; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.events_24 (
    id bigint DEFAULT nextval('shop.events_id_seq'::regclass) NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'old'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric)),
    CONSTRAINT small CHECK ((amount < (1000)::numeric))
);


--
-- Name: TABLE events_24; Type: COMMENT; Schema: shop; Owner: -
--

COMMENT ON TABLE shop.events_24 IS 'old ones';


--
-- Name: events_25; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.events_25 (
    id bigint DEFAULT nextval('shop.events_id_seq'::regclass) NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'click'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric))
)
PARTITION BY LIST (kind);


--
-- Name: events_25_click; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.events_25_click (
    id bigint DEFAULT nextval('shop.events_id_seq'::regclass) NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'click'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric))
);


--
-- Name: events_25_rest; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.events_25_rest (
    id bigint DEFAULT nextval('shop.events_id_seq'::regclass) NOT NULL,
    at date NOT NULL,
    kind text DEFAULT 'click'::text NOT NULL,
    customer integer,
    amount numeric(10,2),
    CONSTRAINT events_amount_check CHECK ((amount >= (0)::numeric))
);


--
-- Name: tags; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.tags (
    id integer,
    tag character varying(20)
)
PARTITION BY HASH (id);


--
-- Name: tags_0; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.tags_0 (
    id integer,
    tag character varying(20)
);


--
-- Name: tags_1; Type: TABLE; Schema: shop; Owner: -
--

CREATE TABLE shop.tags_1 (
    id integer,
    tag character varying(20)
);


--
-- Name: a_first; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events ATTACH PARTITION shop.a_first DEFAULT;


--
-- Name: events_24; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events ATTACH PARTITION shop.events_24 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');


--
-- Name: events_25; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events ATTACH PARTITION shop.events_25 FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');


--
-- Name: events_25_click; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_25 ATTACH PARTITION shop.events_25_click FOR VALUES IN ('click');


--
-- Name: events_25_rest; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_25 ATTACH PARTITION shop.events_25_rest DEFAULT;


--
-- Name: tags_0; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.tags ATTACH PARTITION shop.tags_0 FOR VALUES WITH (modulus 2, remainder 0);


--
-- Name: tags_1; Type: TABLE ATTACH; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.tags ATTACH PARTITION shop.tags_1 FOR VALUES WITH (modulus 2, remainder 1);


--
-- Name: events id; Type: DEFAULT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events ALTER COLUMN id SET DEFAULT nextval('shop.events_id_seq'::regclass);


--
-- Data for Name: a_first; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.a_first (id, at, kind, customer, amount) FROM stdin;
4	1999-01-01	odd	1	3.00
\.


--
-- Data for Name: customers; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.customers (id, name) FROM stdin;
1	Ann
2	Bob
\.


--
-- Data for Name: events_24; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.events_24 (id, at, kind, customer, amount) FROM stdin;
1	2024-03-03	view	1	9.50
\.


--
-- Data for Name: events_25_click; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.events_25_click (id, at, kind, customer, amount) FROM stdin;
2	2025-04-04	click	2	1.00
\.


--
-- Data for Name: events_25_rest; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.events_25_rest (id, at, kind, customer, amount) FROM stdin;
3	2025-05-05	view	\N	2.00
\.


--
-- Data for Name: tags_0; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.tags_0 (id, tag) FROM stdin;
1	tag 1
2	tag 2
12	tag 12
13	tag 13
14	tag 14
16	tag 16
17	tag 17
18	tag 18
\.


--
-- Data for Name: tags_1; Type: TABLE DATA; Schema: shop; Owner: -
--

COPY shop.tags_1 (id, tag) FROM stdin;
3	tag 3
4	tag 4
5	tag 5
6	tag 6
7	tag 7
8	tag 8
9	tag 9
10	tag 10
11	tag 11
15	tag 15
19	tag 19
20	tag 20
\.


--
-- Name: events_id_seq; Type: SEQUENCE SET; Schema: shop; Owner: -
--

SELECT pg_catalog.setval('shop.events_id_seq', 4, true);


--
-- Name: events events_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (at, kind, id);


--
-- Name: a_first a_first_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.a_first
    ADD CONSTRAINT a_first_pkey PRIMARY KEY (at, kind, id);


--
-- Name: customers customers_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);


--
-- Name: events_24 events_24_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_24
    ADD CONSTRAINT events_24_pkey PRIMARY KEY (at, kind, id);


--
-- Name: events_25 events_25_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_25
    ADD CONSTRAINT events_25_pkey PRIMARY KEY (at, kind, id);


--
-- Name: events_25_click events_25_click_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_25_click
    ADD CONSTRAINT events_25_click_pkey PRIMARY KEY (at, kind, id);


--
-- Name: events_25_rest events_25_rest_pkey; Type: CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE ONLY shop.events_25_rest
    ADD CONSTRAINT events_25_rest_pkey PRIMARY KEY (at, kind, id);


--
-- Name: events_by_kind; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX events_by_kind ON ONLY shop.events USING btree (kind, lower(kind));


--
-- Name: a_first_kind_lower_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX a_first_kind_lower_idx ON shop.a_first USING btree (kind, lower(kind));


--
-- Name: events_24_kind_lower_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX events_24_kind_lower_idx ON shop.events_24 USING btree (kind, lower(kind));


--
-- Name: events_25_kind_lower_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX events_25_kind_lower_idx ON ONLY shop.events_25 USING btree (kind, lower(kind));


--
-- Name: events_25_click_kind_lower_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX events_25_click_kind_lower_idx ON shop.events_25_click USING btree (kind, lower(kind));


--
-- Name: events_25_rest_kind_lower_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX events_25_rest_kind_lower_idx ON shop.events_25_rest USING btree (kind, lower(kind));


--
-- Name: only_24; Type: INDEX; Schema: shop; Owner: -
--

CREATE INDEX only_24 ON shop.events_24 USING btree (customer) WHERE (amount > (5)::numeric);


--
-- Name: tags_id_tag_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE UNIQUE INDEX tags_id_tag_idx ON ONLY shop.tags USING btree (id, tag);


--
-- Name: tags_0_id_tag_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE UNIQUE INDEX tags_0_id_tag_idx ON shop.tags_0 USING btree (id, tag);


--
-- Name: tags_1_id_tag_idx; Type: INDEX; Schema: shop; Owner: -
--

CREATE UNIQUE INDEX tags_1_id_tag_idx ON shop.tags_1 USING btree (id, tag);


--
-- Name: a_first_kind_lower_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_by_kind ATTACH PARTITION shop.a_first_kind_lower_idx;


--
-- Name: a_first_pkey; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_pkey ATTACH PARTITION shop.a_first_pkey;


--
-- Name: events_24_kind_lower_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_by_kind ATTACH PARTITION shop.events_24_kind_lower_idx;


--
-- Name: events_24_pkey; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_pkey ATTACH PARTITION shop.events_24_pkey;


--
-- Name: events_25_click_kind_lower_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_25_kind_lower_idx ATTACH PARTITION shop.events_25_click_kind_lower_idx;


--
-- Name: events_25_click_pkey; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_25_pkey ATTACH PARTITION shop.events_25_click_pkey;


--
-- Name: events_25_kind_lower_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_by_kind ATTACH PARTITION shop.events_25_kind_lower_idx;


--
-- Name: events_25_pkey; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_pkey ATTACH PARTITION shop.events_25_pkey;


--
-- Name: events_25_rest_kind_lower_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_25_kind_lower_idx ATTACH PARTITION shop.events_25_rest_kind_lower_idx;


--
-- Name: events_25_rest_pkey; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.events_25_pkey ATTACH PARTITION shop.events_25_rest_pkey;


--
-- Name: tags_0_id_tag_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.tags_id_tag_idx ATTACH PARTITION shop.tags_0_id_tag_idx;


--
-- Name: tags_1_id_tag_idx; Type: INDEX ATTACH; Schema: shop; Owner: -
--

ALTER INDEX shop.tags_id_tag_idx ATTACH PARTITION shop.tags_1_id_tag_idx;


--
-- Name: events events_customer_fkey; Type: FK CONSTRAINT; Schema: shop; Owner: -
--

ALTER TABLE shop.events
    ADD CONSTRAINT events_customer_fkey FOREIGN KEY (customer) REFERENCES shop.customers(id);


--
-- PostgreSQL database dump complete
--


