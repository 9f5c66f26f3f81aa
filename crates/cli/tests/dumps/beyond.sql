--
-- PostgreSQL database dump
--

\restrict QKSAWBCa041PzZ0GB0eSLmpcWXMb95wgHkXuCMCEboBelF27vBCbsu1XdhTSCbO

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

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
-- Name: beyond; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA beyond;


ALTER SCHEMA beyond OWNER TO postgres;

--
-- Name: every; Type: SCHEMA; Schema: -; Owner: postgres
--

CREATE SCHEMA every;


ALTER SCHEMA every OWNER TO postgres;

--
-- Name: SCHEMA every; Type: COMMENT; Schema: -; Owner: postgres
--

COMMENT ON SCHEMA every IS 'what there is';


--
-- Name: german; Type: COLLATION; Schema: every; Owner: postgres
--

CREATE COLLATION every.german (provider = icu, locale = 'de-u-co-phonebk');


ALTER COLLATION every.german OWNER TO postgres;

--
-- Name: COLLATION german; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON COLLATION every.german IS 'sorts';


--
-- Name: no_case; Type: COLLATION; Schema: every; Owner: postgres
--

CREATE COLLATION every.no_case (provider = icu, deterministic = false, locale = 'und-u-ks-level2');


ALTER COLLATION every.no_case OWNER TO postgres;

--
-- Name: citext; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;


--
-- Name: EXTENSION citext; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION citext IS 'data type for case-insensitive character strings';


--
-- Name: mail; Type: DOMAIN; Schema: every; Owner: postgres
--

CREATE DOMAIN every.mail AS public.citext
	CONSTRAINT mail_check CHECK ((VALUE OPERATOR(public.~) '@'::public.citext));


ALTER DOMAIN every.mail OWNER TO postgres;

--
-- Name: mood; Type: TYPE; Schema: every; Owner: postgres
--

CREATE TYPE every.mood AS ENUM (
    'sad',
    'ok',
    'it''s; happy'
);


ALTER TYPE every.mood OWNER TO postgres;

--
-- Name: TYPE mood; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON TYPE every.mood IS 'a mood';


--
-- Name: place; Type: TYPE; Schema: every; Owner: postgres
--

CREATE TYPE every.place AS (
	street text,
	"Number" integer,
	c text
);


ALTER TYPE every.place OWNER TO postgres;

--
-- Name: positive; Type: DOMAIN; Schema: every; Owner: postgres
--

CREATE DOMAIN every.positive AS integer NOT NULL DEFAULT 1
	CONSTRAINT above_zero CHECK ((VALUE > 0));


ALTER DOMAIN every.positive OWNER TO postgres;

--
-- Name: DOMAIN positive; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON DOMAIN every.positive IS 'above 0';


--
-- Name: CONSTRAINT above_zero ON DOMAIN positive; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON CONSTRAINT above_zero ON DOMAIN every.positive IS 'dom';


--
-- Name: resident; Type: TYPE; Schema: every; Owner: postgres
--

CREATE TYPE every.resident AS (
	home every.place,
	moods every.mood[],
	age every.positive
);


ALTER TYPE every.resident OWNER TO postgres;

--
-- Name: small; Type: DOMAIN; Schema: every; Owner: postgres
--

CREATE DOMAIN every.small AS every.positive DEFAULT 1
	CONSTRAINT small_check CHECK (((VALUE)::integer < 100));


ALTER DOMAIN every.small OWNER TO postgres;

--
-- Name: span_of_floats; Type: TYPE; Schema: every; Owner: postgres
--

CREATE TYPE every.span_of_floats AS RANGE (
    subtype = double precision,
    multirange_type_name = every.spans_of_floats,
    subtype_diff = float8mi
);


ALTER TYPE every.span_of_floats OWNER TO postgres;

--
-- Name: words; Type: DOMAIN; Schema: every; Owner: postgres
--

CREATE DOMAIN every.words AS text[]
	CONSTRAINT words_check CHECK ((array_length(VALUE, 1) < 5));


ALTER DOMAIN every.words OWNER TO postgres;

--
-- Name: atomic(integer, integer); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.atomic(a integer, b integer DEFAULT 7) RETURNS integer
    LANGUAGE sql IMMUTABLE
    BEGIN ATOMIC
 SELECT (a + b);
END;


ALTER FUNCTION every.atomic(a integer, b integer) OWNER TO postgres;

--
-- Name: ev(); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.ev() RETURNS event_trigger
    LANGUAGE plpgsql
    AS $$ BEGIN END $$;


ALTER FUNCTION every.ev() OWNER TO postgres;

--
-- Name: how_many(); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.how_many(OUT n bigint) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$SELECT count(*) FROM every.notes$$;


ALTER FUNCTION every.how_many(OUT n bigint) OWNER TO postgres;

--
-- Name: FUNCTION how_many(OUT n bigint); Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON FUNCTION every.how_many(OUT n bigint) IS 'its body names a table that comes later';


--
-- Name: twice(integer); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.twice(a integer) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$SELECT a * 2$$;


ALTER FUNCTION every.twice(a integer) OWNER TO postgres;

--
-- Name: FUNCTION twice(a integer); Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON FUNCTION every.twice(a integer) IS 'twice';


--
-- Name: numbers; Type: SEQUENCE; Schema: every; Owner: postgres
--

CREATE SEQUENCE every.numbers
    AS smallint
    START WITH 5
    INCREMENT BY 5
    MINVALUE -10
    MAXVALUE 1000
    CACHE 3
    CYCLE;


ALTER TABLE every.numbers OWNER TO postgres;

--
-- Name: SEQUENCE numbers; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON SEQUENCE every.numbers IS 'numbers';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: people; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.people (
    id bigint NOT NULL,
    name character varying(40) NOT NULL,
    mood every.mood DEFAULT 'ok'::every.mood,
    born date,
    s smallint NOT NULL,
    s2 integer NOT NULL,
    n integer DEFAULT nextval('every.numbers'::regclass),
    x integer DEFAULT every.twice(21),
    at timestamp with time zone DEFAULT '2020-01-01 10:00:00+00'::timestamp with time zone,
    full_name text GENERATED ALWAYS AS (((name)::text || '!'::text)) STORED,
    dflt text DEFAULT 
CASE
    WHEN (1 < 2) THEN 'a'::text
    ELSE lower('B'::text)
END,
    arr integer[] DEFAULT (ARRAY[1, 2] || 3),
    j jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT never CHECK ((NOT ((born IS NULL) AND (mood IS DISTINCT FROM 'ok'::every.mood)))),
    CONSTRAINT people_check CHECK (((born > '1800-01-01'::date) OR (((name)::text ~* '^x'::text) AND ((name)::text !~~ '%y%'::text) AND ((name)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))))),
    CONSTRAINT people_x_check CHECK ((every.twice(x) <> ALL (ARRAY[1, 3]))),
    CONSTRAINT short CHECK ((length((name)::text) < 39))
);
ALTER TABLE ONLY every.people ALTER COLUMN name SET STATISTICS 50;
ALTER TABLE ONLY every.people ALTER COLUMN name SET STORAGE EXTERNAL;


ALTER TABLE every.people OWNER TO postgres;

--
-- Name: CONSTRAINT short ON people; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON CONSTRAINT short ON every.people IS 'short';


--
-- Name: named(text); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.named(wanted text) RETURNS SETOF every.people
    LANGUAGE sql STABLE
    AS $$SELECT * FROM every.people WHERE name = wanted$$;


ALTER FUNCTION every.named(wanted text) OWNER TO postgres;

--
-- Name: pl(); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.pl() RETURNS integer
    LANGUAGE plpgsql
    AS $$ BEGIN RETURN 7; END; $$;


ALTER FUNCTION every.pl() OWNER TO postgres;

--
-- Name: proc(); Type: PROCEDURE; Schema: every; Owner: postgres
--

CREATE PROCEDURE every.proc()
    LANGUAGE sql
    AS $$SELECT 1$$;


ALTER PROCEDURE every.proc() OWNER TO postgres;

--
-- Name: PROCEDURE proc(); Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON PROCEDURE every.proc() IS 'a procedure';


--
-- Name: rows_of(integer); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.rows_of(n integer) RETURNS TABLE(a integer, b text)
    LANGUAGE sql STABLE
    AS $$ SELECT g, 'x;' || g FROM generate_series(1, n) g $$;


ALTER FUNCTION every.rows_of(n integer) OWNER TO postgres;

--
-- Name: touched(); Type: FUNCTION; Schema: every; Owner: postgres
--

CREATE FUNCTION every.touched() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RETURN NEW; -- ;
END $$;


ALTER FUNCTION every.touched() OWNER TO postgres;

--
-- Name: sum_of(integer); Type: AGGREGATE; Schema: every; Owner: postgres
--

CREATE AGGREGATE every.sum_of(integer) (
    SFUNC = int4pl,
    STYPE = integer,
    INITCOND = '0'
);


ALTER AGGREGATE every.sum_of(integer) OWNER TO postgres;

--
-- Name: AGGREGATE sum_of(integer); Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON AGGREGATE every.sum_of(integer) IS 'an aggregate';


--
-- Name: ===; Type: OPERATOR; Schema: every; Owner: postgres
--

CREATE OPERATOR every.=== (
    FUNCTION = int4eq,
    LEFTARG = integer,
    RIGHTARG = integer
);


ALTER OPERATOR every.=== (integer, integer) OWNER TO postgres;

--
-- Name: OPERATOR === (integer, integer); Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON OPERATOR every.=== (integer, integer) IS 'an operator';


--
-- Name: conf; Type: TEXT SEARCH CONFIGURATION; Schema: every; Owner: postgres
--

CREATE TEXT SEARCH CONFIGURATION every.conf (
    PARSER = pg_catalog."default" );

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR asciiword WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR word WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR numword WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR email WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR url WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR host WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR sfloat WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR version WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR hword_numpart WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR hword_part WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR hword_asciipart WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR numhword WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR asciihword WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR hword WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR url_path WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR file WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR "float" WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR "int" WITH simple;

ALTER TEXT SEARCH CONFIGURATION every.conf
    ADD MAPPING FOR uint WITH simple;


ALTER TEXT SEARCH CONFIGURATION every.conf OWNER TO postgres;

--
-- Name: w; Type: FOREIGN DATA WRAPPER; Schema: -; Owner: postgres
--

CREATE FOREIGN DATA WRAPPER w;


ALTER FOREIGN DATA WRAPPER w OWNER TO postgres;

--
-- Name: sv; Type: SERVER; Schema: -; Owner: postgres
--

CREATE SERVER sv FOREIGN DATA WRAPPER w;


ALTER SERVER sv OWNER TO postgres;

--
-- Name: called; Type: VIEW; Schema: beyond; Owner: postgres
--

CREATE VIEW beyond.called AS
 SELECT f.a,
    f.b,
    f.o,
    g.x,
    g.y
   FROM every.rows_of(3) WITH ORDINALITY f(a, b, o),
    ROWS FROM(generate_series(1, 2), unnest(ARRAY[1, 2])) g(x, y);


ALTER TABLE beyond.called OWNER TO postgres;

--
-- Name: papa; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.papa (
    a integer,
    b text DEFAULT 'p'::text
);


ALTER TABLE beyond.papa OWNER TO postgres;

--
-- Name: child; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.child (
    c integer
)
INHERITS (beyond.papa);


ALTER TABLE beyond.child OWNER TO postgres;

--
-- Name: far; Type: FOREIGN TABLE; Schema: beyond; Owner: postgres
--

CREATE FOREIGN TABLE beyond.far (
    a integer
)
SERVER sv;


ALTER FOREIGN TABLE beyond.far OWNER TO postgres;

--
-- Name: searched; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.searched (
    id integer NOT NULL,
    t text,
    v tsvector,
    x xml[],
    g tsvector GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, t)) STORED
);


ALTER TABLE beyond.searched OWNER TO postgres;

--
-- Name: found; Type: VIEW; Schema: beyond; Owner: postgres
--

CREATE VIEW beyond.found AS
 SELECT searched.id
   FROM beyond.searched
  WHERE (searched.v @@ to_tsquery('a'::text));


ALTER TABLE beyond.found OWNER TO postgres;

--
-- Name: of_type; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.of_type OF every.place (
    street NOT NULL
);


ALTER TABLE beyond.of_type OWNER TO postgres;

--
-- Name: stay; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.stay (
    room integer,
    during tsrange,
    who text
);


ALTER TABLE beyond.stay OWNER TO postgres;

--
-- Name: texts; Type: TABLE; Schema: beyond; Owner: postgres
--

CREATE TABLE beyond.texts (
    a tsvector,
    b tsquery
);


ALTER TABLE beyond.texts OWNER TO postgres;

--
-- Name: Odd; name; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every."Odd; name" (
    a integer,
    "select" text,
    "with space" integer,
    "quo""te" text,
    "ünï" integer
);


ALTER TABLE every."Odd; name" OWNER TO postgres;

--
-- Name: notes; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.notes (
    person bigint NOT NULL,
    n integer NOT NULL,
    note text,
    up integer,
    up_n integer
);

ALTER TABLE ONLY every.notes REPLICA IDENTITY FULL;


ALTER TABLE every.notes OWNER TO postgres;

--
-- Name: TABLE notes; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON TABLE every.notes IS 'notes; of ''people''';


--
-- Name: COLUMN notes.note; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON COLUMN every.notes.note IS 'a
b';


--
-- Name: stay; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.stay (
    room integer,
    during tsrange,
    who text,
    price numeric,
    CONSTRAINT stay_price_check CHECK ((price > (0)::numeric)) NO INHERIT
);


ALTER TABLE every.stay OWNER TO postgres;

--
-- Name: complex; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.complex AS
 WITH RECURSIVE r(n) AS (
         VALUES (1)
        UNION ALL
         SELECT (r_1.n + 1)
           FROM r r_1
          WHERE (r_1.n < 5)
        ), c AS MATERIALIZED (
         SELECT notes.person,
            count(*) FILTER (WHERE (notes.n > 3)) AS k
           FROM every.notes
          GROUP BY notes.person
         HAVING (count(*) > 0)
        )
 SELECT p.name,
    c.k,
    r.n,
    row_number() OVER (PARTITION BY r.n ORDER BY p.id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w,
        CASE
            WHEN ((p.born >= '1900-01-01'::date) AND (p.born <= '1900-02-01'::date)) THEN 1
            ELSE 0
        END AS x,
    (EXISTS ( SELECT 1
           FROM every.stay s
          WHERE (s.room = p.n))) AS ex,
    p.arr[1] AS a1,
    (p.j ->> 'a'::text) AS ja,
    (p.born + '1 day'::interval) AS nx,
    EXTRACT(year FROM p.born) AS y,
    COALESCE(p.n, 0) AS co,
    ((p.name)::text ~~ 'n%'::text) AS li,
    ( SELECT max(stay.price) AS max
           FROM every.stay) AS mp,
    l.z,
    (p.at AT TIME ZONE 'UTC'::text) AS az
   FROM (((every.people p
     LEFT JOIN c ON ((c.person = p.id)))
     JOIN r ON ((r.n = (p.id % (5)::bigint))))
     CROSS JOIN LATERAL ( SELECT (p.id * 2) AS z) l)
  WHERE ((p.id IN ( SELECT notes.person
           FROM every.notes)) OR ((p.name)::text = ANY (ARRAY['a'::text, 'b'::text])))
  ORDER BY p.id, r.n DESC NULLS LAST
 OFFSET 1
 LIMIT 30;


ALTER TABLE every.complex OWNER TO postgres;

--
-- Name: counted; Type: MATERIALIZED VIEW; Schema: every; Owner: postgres
--

CREATE MATERIALIZED VIEW every.counted AS
 SELECT notes.person,
    count(*) AS c
   FROM every.notes
  GROUP BY notes.person
  WITH NO DATA;


ALTER TABLE every.counted OWNER TO postgres;

--
-- Name: MATERIALIZED VIEW counted; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON MATERIALIZED VIEW every.counted IS 'counted';


--
-- Name: counted_by; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.counted_by AS
 SELECT every.how_many() AS n,
    named.id
   FROM every.named('n	3'::text) named(id, name, mood, born, s, s2, n, x, at, full_name, dflt, arr, j);


ALTER TABLE every.counted_by OWNER TO postgres;

--
-- Name: empty; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.empty (
);


ALTER TABLE every.empty OWNER TO postgres;

--
-- Name: every_array; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.every_array (
    id integer NOT NULL,
    b boolean[],
    i2 smallint[],
    i4 integer[],
    i8 bigint[],
    f4 real[],
    f8 double precision[],
    n numeric[],
    t text[],
    v character varying[],
    c5 character(5)[],
    qc "char"[],
    nm name[],
    ci public.citext[],
    d date[],
    ti time without time zone[],
    tz time with time zone[],
    ts timestamp without time zone[],
    tstz timestamp with time zone[],
    iv interval[],
    by bytea[],
    u uuid[],
    j json[],
    jb jsonb[],
    jp jsonpath[],
    o oid[],
    rt regtype[],
    m money[],
    bi bit(5)[],
    bv bit varying[],
    ip inet[],
    net cidr[],
    ma macaddr[],
    ma8 macaddr8[],
    ln pg_lsn[],
    td tid[],
    x8 xid8[],
    pt point[],
    li line[],
    ls lseg[],
    bx box[],
    pa path[],
    po polygon[],
    ci2 circle[],
    r4 int4range[],
    rn numrange[],
    rd daterange[],
    rts tsrange[],
    rtz tstzrange[],
    rf every.span_of_floats[],
    m4 int4multirange[],
    mtz tstzmultirange[],
    mf every.spans_of_floats[],
    e every.mood[],
    dom every.small[],
    dm every.mail[],
    pl every.place[],
    re every.resident[],
    bounds integer[]
);


ALTER TABLE every.every_array OWNER TO postgres;

--
-- Name: every_type; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.every_type (
    id integer NOT NULL,
    b boolean,
    i2 smallint,
    i4 integer,
    i8 bigint,
    f4 real,
    f8 double precision,
    n numeric,
    n2 numeric(30,10),
    n3 numeric(3,-2),
    n4 numeric(3,5),
    t text,
    v character varying,
    v5 character varying(5),
    c character(1),
    c5 character(5),
    qc "char",
    nm name,
    ci public.citext,
    d date,
    ti time without time zone,
    ti2 time(2) without time zone,
    tz time with time zone,
    tz0 time(0) with time zone,
    ts timestamp without time zone,
    ts3 timestamp(3) without time zone,
    tstz timestamp with time zone,
    tstz0 timestamp(0) with time zone,
    iv interval,
    iv2 interval day to second(2),
    ivy interval year to month,
    by bytea,
    u uuid,
    j json,
    jb jsonb,
    jp jsonpath,
    o oid,
    rc regclass,
    rt regtype,
    rp regproc,
    m money,
    bi bit(5),
    bv bit varying,
    bv7 bit varying(7),
    ip inet,
    net cidr,
    ma macaddr,
    ma8 macaddr8,
    ln pg_lsn,
    td tid,
    x8 xid8,
    pt point,
    li line,
    ls lseg,
    bx box,
    pa path,
    po polygon,
    ci2 circle,
    r4 int4range,
    r8 int8range,
    rn numrange,
    rd daterange,
    rts tsrange,
    rtz tstzrange,
    rf every.span_of_floats,
    m4 int4multirange,
    m8 int8multirange,
    mn nummultirange,
    md datemultirange,
    mts tsmultirange,
    mtz tstzmultirange,
    mf every.spans_of_floats,
    e every.mood,
    dom every.small,
    dw every.words,
    dm every.mail,
    pl every.place,
    re every.resident,
    ge text COLLATE every.german,
    nc text COLLATE every.no_case,
    cc text COLLATE pg_catalog."C"
);


ALTER TABLE every.every_type OWNER TO postgres;

--
-- Name: grouped; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.grouped AS
 SELECT people.mood,
    people.born,
    count(DISTINCT people.name) AS c,
    string_agg((people.name)::text, ','::text ORDER BY people.id) AS s,
    percentile_cont((0.5)::double precision) WITHIN GROUP (ORDER BY ((people.id)::double precision)) AS p
   FROM every.people
  GROUP BY GROUPING SETS ((people.mood), (people.born), ()), CUBE(people.mood);


ALTER TABLE every.grouped OWNER TO postgres;

--
-- Name: happy; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.happy WITH (security_barrier='true') AS
 SELECT people.id,
    people.name
   FROM every.people
  WHERE (people.mood = 'ok'::every.mood)
  WITH LOCAL CHECK OPTION;


ALTER TABLE every.happy OWNER TO postgres;

--
-- Name: VIEW happy; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON VIEW every.happy IS 'the happy';


--
-- Name: happier; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.happier AS
 SELECT happy.id AS i,
    happy.name AS "N"
   FROM every.happy
  WHERE (happy.id > 3);


ALTER TABLE every.happier OWNER TO postgres;

--
-- Name: hashed; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.hashed (
    id integer NOT NULL,
    x text
)
PARTITION BY HASH (id);


ALTER TABLE every.hashed OWNER TO postgres;

--
-- Name: hashed_0; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.hashed_0 (
    id integer NOT NULL,
    x text
);


ALTER TABLE every.hashed_0 OWNER TO postgres;

--
-- Name: hashed_1; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.hashed_1 (
    id integer NOT NULL,
    x text
);


ALTER TABLE every.hashed_1 OWNER TO postgres;

--
-- Name: keeps; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.keeps (
    a integer,
    b integer
);


ALTER TABLE every.keeps OWNER TO postgres;

--
-- Name: never_called; Type: SEQUENCE; Schema: every; Owner: postgres
--

CREATE SEQUENCE every.never_called
    START WITH -1
    INCREMENT BY -1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE every.never_called OWNER TO postgres;

--
-- Name: not_filled; Type: MATERIALIZED VIEW; Schema: every; Owner: postgres
--

CREATE MATERIALIZED VIEW every.not_filled AS
 SELECT 1 AS a
  WITH NO DATA;


ALTER TABLE every.not_filled OWNER TO postgres;

--
-- Name: of_places; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.of_places AS
 SELECT every_type.id,
    (every_type.pl).street AS street,
    (every_type.re).home.street AS s2,
    every_type.pl,
    (ROW('x'::text, 1, 'b'::text)::every.place).c AS r,
    ARRAY[every_type.pl] AS a
   FROM every.every_type;


ALTER TABLE every.of_places OWNER TO postgres;

--
-- Name: renamed; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.renamed (
    first integer NOT NULL,
    b integer NOT NULL,
    c text
);


ALTER TABLE every.renamed OWNER TO postgres;

--
-- Name: once_called_a_seq; Type: SEQUENCE; Schema: every; Owner: postgres
--

ALTER TABLE every.renamed ALTER COLUMN first ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME every.once_called_a_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: once_called_b_seq; Type: SEQUENCE; Schema: every; Owner: postgres
--

CREATE SEQUENCE every.once_called_b_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE every.once_called_b_seq OWNER TO postgres;

--
-- Name: once_called_b_seq; Type: SEQUENCE OWNED BY; Schema: every; Owner: postgres
--

ALTER SEQUENCE every.once_called_b_seq OWNED BY every.renamed.b;


--
-- Name: own_name; Type: SEQUENCE; Schema: every; Owner: postgres
--

ALTER TABLE every.people ALTER COLUMN s ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME every.own_name
    START WITH 10
    INCREMENT BY 2
    NO MINVALUE
    NO MAXVALUE
    CACHE 5
    CYCLE
);


--
-- Name: parted; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted (
    id integer,
    at date,
    t text
)
PARTITION BY RANGE (at);


ALTER TABLE every.parted OWNER TO postgres;

--
-- Name: parted_1; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted_1 (
    id integer,
    at date,
    t text
);


ALTER TABLE every.parted_1 OWNER TO postgres;

--
-- Name: parted_2; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted_2 (
    id integer,
    at date,
    t text
)
PARTITION BY LIST (t);


ALTER TABLE every.parted_2 OWNER TO postgres;

--
-- Name: parted_2a; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted_2a (
    id integer,
    at date,
    t text
);


ALTER TABLE every.parted_2a OWNER TO postgres;

--
-- Name: parted_2d; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted_2d (
    id integer,
    at date,
    t text
);


ALTER TABLE every.parted_2d OWNER TO postgres;

--
-- Name: parted_3; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.parted_3 (
    id integer,
    at date,
    t text
);


ALTER TABLE every.parted_3 OWNER TO postgres;

--
-- Name: people_id_seq; Type: SEQUENCE; Schema: every; Owner: postgres
--

CREATE SEQUENCE every.people_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE every.people_id_seq OWNER TO postgres;

--
-- Name: people_id_seq; Type: SEQUENCE OWNED BY; Schema: every; Owner: postgres
--

ALTER SEQUENCE every.people_id_seq OWNED BY every.people.id;


--
-- Name: people_s2_seq; Type: SEQUENCE; Schema: every; Owner: postgres
--

ALTER TABLE every.people ALTER COLUMN s2 ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME every.people_s2_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: stamped; Type: TABLE; Schema: every; Owner: postgres
--

CREATE TABLE every.stamped (
    a integer DEFAULT every.pl(),
    b integer,
    c integer DEFAULT every.atomic(1),
    CONSTRAINT stamped_b_check CHECK ((b > every.pl()))
);


ALTER TABLE every.stamped OWNER TO postgres;

--
-- Name: stamps; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.stamps AS
 SELECT stamped.a,
    every.pl() AS pl
   FROM every.stamped;


ALTER TABLE every.stamps OWNER TO postgres;

--
-- Name: united; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.united AS
(
         SELECT people.id,
            people.name
           FROM every.people
        UNION
         SELECT notes.n AS id,
            notes.note AS name
           FROM every.notes
) EXCEPT ALL (
         SELECT 1 AS id,
            'x'::text AS name
        INTERSECT
         SELECT 2 AS id,
            'y'::text AS name
);


ALTER TABLE every.united OWNER TO postgres;

--
-- Name: unlogged; Type: TABLE; Schema: every; Owner: postgres
--

CREATE UNLOGGED TABLE every.unlogged (
    a integer
);


ALTER TABLE every.unlogged OWNER TO postgres;

--
-- Name: using_join; Type: VIEW; Schema: every; Owner: postgres
--

CREATE VIEW every.using_join AS
 SELECT people.id,
    people.name,
    people.mood,
    people.born,
    people.s,
    people.s2,
    people.n,
    people.x,
    people.at,
    people.full_name,
    people.dflt,
    people.arr,
    people.j,
    n.m,
    n.note,
    n.up,
    n.up_n,
    stay.room,
    stay.during,
    stay.who,
    stay.price
   FROM ((every.people
     JOIN every.notes n(id, m, note, up, up_n) USING (id))
     LEFT JOIN every.stay TABLESAMPLE system (50) ON TRUE);


ALTER TABLE every.using_join OWNER TO postgres;

--
-- Name: hashed_0; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.hashed ATTACH PARTITION every.hashed_0 FOR VALUES WITH (modulus 2, remainder 0);


--
-- Name: hashed_1; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.hashed ATTACH PARTITION every.hashed_1 FOR VALUES WITH (modulus 2, remainder 1);


--
-- Name: parted_1; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted ATTACH PARTITION every.parted_1 FOR VALUES FROM (MINVALUE) TO ('2020-01-01');


--
-- Name: parted_2; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted ATTACH PARTITION every.parted_2 FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');


--
-- Name: parted_2a; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_2 ATTACH PARTITION every.parted_2a FOR VALUES IN ('a', NULL);


--
-- Name: parted_2d; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_2 ATTACH PARTITION every.parted_2d DEFAULT;


--
-- Name: parted_3; Type: TABLE ATTACH; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted ATTACH PARTITION every.parted_3 FOR VALUES FROM ('2021-01-01') TO (MAXVALUE);


--
-- Name: child b; Type: DEFAULT; Schema: beyond; Owner: postgres
--

ALTER TABLE ONLY beyond.child ALTER COLUMN b SET DEFAULT 'p'::text;


--
-- Name: people id; Type: DEFAULT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.people ALTER COLUMN id SET DEFAULT nextval('every.people_id_seq'::regclass);


--
-- Name: renamed b; Type: DEFAULT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.renamed ALTER COLUMN b SET DEFAULT nextval('every.once_called_b_seq'::regclass);


--
-- Name: 19139; Type: BLOB; Schema: -; Owner: postgres
--

SELECT pg_catalog.lo_create('19139');


ALTER LARGE OBJECT 19139 OWNER TO postgres;

--
-- Data for Name: child; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.child (a, b, c) FROM stdin;
2	y	3
\.


--
-- Data for Name: of_type; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.of_type (street, "Number", c) FROM stdin;
a	1	c
\.


--
-- Data for Name: papa; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.papa (a, b) FROM stdin;
1	x
\.


--
-- Data for Name: searched; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.searched (id, t, v, x) FROM stdin;
1	a b	'a':1A 'b':2	{<a/>,"<b c=\\"d\\"/>"}
2	\N	\N	\N
\.


--
-- Data for Name: stay; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.stay (room, during, who) FROM stdin;
1	["2020-01-01 02:00:00","2020-01-01 03:00:00")	w1
1	["2020-01-01 04:00:00","2020-01-01 05:00:00")	w2
1	["2020-01-01 06:00:00","2020-01-01 07:00:00")	w3
1	["2020-01-01 08:00:00","2020-01-01 09:00:00")	w4
1	["2020-01-01 10:00:00","2020-01-01 11:00:00")	w5
1	["2020-01-01 12:00:00","2020-01-01 13:00:00")	w6
1	["2020-01-01 14:00:00","2020-01-01 15:00:00")	w7
1	["2020-01-01 16:00:00","2020-01-01 17:00:00")	w8
1	["2020-01-01 18:00:00","2020-01-01 19:00:00")	w9
1	["2020-01-01 20:00:00","2020-01-01 21:00:00")	w10
1	["2020-01-01 22:00:00","2020-01-01 23:00:00")	w11
1	["2020-01-02 00:00:00","2020-01-02 01:00:00")	w12
1	["2020-01-02 02:00:00","2020-01-02 03:00:00")	w13
1	["2020-01-02 04:00:00","2020-01-02 05:00:00")	w14
1	["2020-01-02 06:00:00","2020-01-02 07:00:00")	w15
1	["2020-01-02 08:00:00","2020-01-02 09:00:00")	w16
1	["2020-01-02 10:00:00","2020-01-02 11:00:00")	w17
1	["2020-01-02 12:00:00","2020-01-02 13:00:00")	w18
1	["2020-01-02 14:00:00","2020-01-02 15:00:00")	w19
1	["2020-01-02 16:00:00","2020-01-02 17:00:00")	w20
\.


--
-- Data for Name: texts; Type: TABLE DATA; Schema: beyond; Owner: postgres
--

COPY beyond.texts (a, b) FROM stdin;
'a' 'b'	'a' & 'b'
\.


--
-- Data for Name: Odd; name; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every."Odd; name" (a, "select", "with space", "quo""te", "ünï") FROM stdin;
1	x	2	"	3
\N	\N	\N	\N	\N
\.


--
-- Data for Name: empty; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.empty  FROM stdin;


\.


--
-- Data for Name: every_array; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.every_array (id, b, i2, i4, i8, f4, f8, n, t, v, c5, qc, nm, ci, d, ti, tz, ts, tstz, iv, by, u, j, jb, jp, o, rt, m, bi, bv, ip, net, ma, ma8, ln, td, x8, pt, li, ls, bx, pa, po, ci2, r4, rn, rd, rts, rtz, rf, m4, mtz, mf, e, dom, dm, pl, re, bounds) FROM stdin;
0	{NULL,NULL,NULL}	{NULL}	{{NULL,1},{NULL,3}}	{NULL}	{NULL,-0}	{NULL}	{NULL,1.10,NULL}	{NULL,"",NULL,"NULL","{}","a,b","a\\"b"," "}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL,NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL,"(1,2)"}	{NULL}	{NULL}	{NULL;(2,2),(0,0)}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL,NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL}	{NULL,NULL}	{1}	{NULL}	{NULL,NULL}	{NULL}	[0:1]={1,2}
1	{t,NULL,t}	{-32768}	{{-2147483648,1},{NULL,3}}	{-9223372036854775808}	{NaN,-0}	{-Infinity}	{NaN,1.10,NULL}	{"tab\t nl\n cr\r \\\\ \b\fv é 𝄞","",NULL,"NULL","{}","a,b","a\\"b"," "}	{""}	{"a    "}	{z}	{"a name"}	{MiXed}	{"4713-01-01 BC"}	{24:00:00}	{12:00:00.123456+15:59:59}	{"294276-12-31 23:59:59.999999"}	{infinity}	{"-178000000 years"}	{"\\\\x00ff5c0a"}	{00000000-0000-0000-0000-000000000001}	{"{\\"a\\":  [1, 2], \\"a\\": null}"}	{"{\\"a\\": [\\"é\\", {}], \\"b\\": 10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000}",NULL}	{"$.\\"a\\"[*]?(@ > 1)"}	{4294967295}	{integer}	{"-$92,233,720,368,547,758.08"}	{10101}	{""}	{10.1.2.3/8}	{10.0.0.0/8}	{08:00:2b:01:02:03}	{08:00:2b:01:02:03:04:05}	{16/B374D848}	{"(7,3)"}	{18446744073709551615}	{"(1.5,-0)","(1,2)"}	{"{1,-1,0}"}	{"[(0,0),(1,1e-300)]"}	{(2,2),(1,1);(2,2),(0,0)}	{"[(0,0),(1,1),(2,0)]"}	{"((0,0),(1,1),(2,0))"}	{"<(1,2),3>"}	{"[1,5)"}	{"[1.5,2.5]",NULL}	{"[2020-01-01,infinity]"}	{"[\\"2020-01-01 01:00:00\\",\\"2020-01-02 00:00:00\\")"}	{"[\\"2019-12-31 23:00:00+00\\",)"}	{"(1.5,2]"}	{"{[1,5),[7,9)}"}	{"{[\\"2019-12-31 23:00:00+00\\",)}"}	{"{(1.5,2]}"}	{"it's; happy",NULL}	{99}	{A@b.c}	{"(\\"a \\"\\"street\\"\\", (here)\\\\\\\\\\",7,ß)",NULL}	{"(\\"(,,\\"\\"\\"\\")\\",\\"{sad,NULL,\\"\\"it's; happy\\"\\"}\\",3)"}	[0:1]={1,2}
2	{f,NULL,f}	{32767}	{{2147483647,1},{NULL,3}}	{9223372036854775807}	{1e-45,-0}	{5e-324}	{Infinity,1.10,NULL}	{"\\\\.","",NULL,"NULL","{}","a,b","a\\"b"," "}	{"\\\\N"}	{"     "}	{""}	{""}	{""}	{infinity}	{00:00:00}	{00:00:00-15:59}	{-infinity}	{"4714-11-24 00:00:00+00 BC"}	{"177999999 years 11 mons 5 days -00:00:00.000001"}	{"\\\\x"}	{ffffffff-ffff-ffff-ffff-ffffffffffff}	{"null"}	{"null",NULL}	{"strict $"}	{0}	{-}	{$0.00}	{00000}	{1111111111}	{::1}	{::/0}	{00:00:00:00:00:00}	{ff:ff:ff:ff:ff:ff:ff:ff}	{0/0}	{"(0,0)"}	{0}	{"(NaN,Infinity)","(1,2)"}	{"{0,1,-7}"}	{"[(1,2),(1,2)]"}	{(0,0),(0,0);(2,2),(0,0)}	{"((0,0),(1,1))"}	{"((1,1))"}	{"<(0,0),0>"}	{empty}	{empty,NULL}	{"(,)"}	{empty}	{"(,)"}	{empty}	{"{}"}	{"{}"}	{"{}"}	{sad,NULL}	{1}	{x@y}	{"(,,)",NULL}	{"(,,1)"}	[0:1]={1,2}
\.


--
-- Data for Name: every_type; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.every_type (id, b, i2, i4, i8, f4, f8, n, n2, n3, n4, t, v, v5, c, c5, qc, nm, ci, d, ti, ti2, tz, tz0, ts, ts3, tstz, tstz0, iv, iv2, ivy, by, u, j, jb, jp, o, rc, rt, rp, m, bi, bv, bv7, ip, net, ma, ma8, ln, td, x8, pt, li, ls, bx, pa, po, ci2, r4, r8, rn, rd, rts, rtz, rf, m4, m8, mn, md, mts, mtz, mf, e, dom, dw, dm, pl, re, ge, nc, cc) FROM stdin;
0	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	1	\N	\N	\N	\N	\N	\N	\N
1	t	-32768	-2147483648	-9223372036854775808	NaN	-Infinity	NaN	12345678901234567890.0123456789	12300	0.00123	tab\t nl\n cr\r \\ \b\fv é 𝄞		abc  	x	a    	z	a name	MiXed	4713-01-01 BC	24:00:00	12:34:56.79	12:00:00.123456+15:59:59	24:00:00-08	294276-12-31 23:59:59.999999	2000-01-01 00:00:00	infinity	2020-02-29 10:00:01+00	-178000000 years	1 day 02:03:04.57	3 years 2 mons	\\x00ff5c0a	00000000-0000-0000-0000-000000000001	{"a":  [1, 2], "a": null}	{"a": ["é", {}], "b": 10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000}	$."a"[*]?(@ > 1)	4294967295	pg_class	integer	now	-$92,233,720,368,547,758.08	10101		1	10.1.2.3/8	10.0.0.0/8	08:00:2b:01:02:03	08:00:2b:01:02:03:04:05	16/B374D848	(7,3)	18446744073709551615	(1.5,-0)	{1,-1,0}	[(0,0),(1,1e-300)]	(2,2),(1,1)	[(0,0),(1,1),(2,0)]	((0,0),(1,1),(2,0))	<(1,2),3>	[1,5)	(,9)	[1.5,2.5]	[2020-01-01,infinity]	["2020-01-01 01:00:00","2020-01-02 00:00:00")	["2019-12-31 23:00:00+00",)	(1.5,2]	{[1,5),[7,9)}	{(,9)}	{[1.5,2.5],(7,)}	{[2020-01-01,2021-01-01)}	{}	{["2019-12-31 23:00:00+00",)}	{(1.5,2]}	it's; happy	99	{"a b",NULL,""}	A@b.c	("a ""street"", (here)\\\\",7,ß)	("(,,"""")","{sad,NULL,""it's; happy""}",3)	ä	É	é
2	f	32767	2147483647	9223372036854775807	1e-45	5e-324	Infinity	0.0000000000	-500	-0.00999	\\.	\\N		 	     				infinity	00:00:00	00:00:00	00:00:00-15:59	00:00:00+00	-infinity	4713-01-01 00:00:00 BC	4714-11-24 00:00:00+00 BC	0001-01-01 00:00:00+00	177999999 years 11 mons 5 days -00:00:00.000001	00:00:00	-1 mons	\\x	ffffffff-ffff-ffff-ffff-ffffffffffff	null	null	strict $	0	-	-	-	$0.00	00000	1111111111	1111111	::1	::/0	00:00:00:00:00:00	ff:ff:ff:ff:ff:ff:ff:ff	0/0	(0,0)	0	(NaN,Infinity)	{0,1,-7}	[(1,2),(1,2)]	(0,0),(0,0)	((0,0),(1,1))	((1,1))	<(0,0),0>	empty	(,)	empty	(,)	empty	(,)	empty	{}	{(,)}	{}	{}	{(,)}	{}	{}	sad	1	{}	x@y	(,,)	(,,1)			
\.


--
-- Data for Name: hashed_0; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.hashed_0 (id, x) FROM stdin;
1	x1
2	x2
12	x12
13	x13
14	x14
16	x16
17	x17
18	x18
23	x23
25	x25
26	x26
27	x27
28	x28
30	x30
32	x32
34	x34
39	x39
42	x42
43	x43
44	x44
45	x45
47	x47
48	x48
49	x49
50	x50
51	x51
52	x52
53	x53
54	x54
59	x59
60	x60
62	x62
63	x63
64	x64
66	x66
67	x67
71	x71
74	x74
75	x75
77	x77
79	x79
80	x80
81	x81
83	x83
84	x84
85	x85
87	x87
88	x88
91	x91
93	x93
94	x94
99	x99
\.


--
-- Data for Name: hashed_1; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.hashed_1 (id, x) FROM stdin;
3	x3
4	x4
5	x5
6	x6
7	x7
8	x8
9	x9
10	x10
11	x11
15	x15
19	x19
20	x20
21	x21
22	x22
24	x24
29	x29
31	x31
33	x33
35	x35
36	x36
37	x37
38	x38
40	x40
41	x41
46	x46
55	x55
56	x56
57	x57
58	x58
61	x61
65	x65
68	x68
69	x69
70	x70
72	x72
73	x73
76	x76
78	x78
82	x82
86	x86
89	x89
90	x90
92	x92
95	x95
96	x96
97	x97
98	x98
100	x100
\.


--
-- Data for Name: keeps; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.keeps (a, b) FROM stdin;
2	1
2	\N
\N	77
\.


--
-- Data for Name: notes; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.notes (person, n, note, up, up_n) FROM stdin;
2	1	note 1	2	1
3	2	note 2	3	2
4	3	note 3	4	3
5	4	note 4	5	4
6	5	note 5	6	5
7	6	note 6	7	6
8	7	\N	8	7
9	8	note 8	9	8
10	9	note 9	10	9
11	10	note 10	11	10
12	11	note 11	12	11
13	12	note 12	13	12
14	13	note 13	14	13
15	14	note 14	15	14
16	15	note 15	16	15
17	16	note 16	17	16
18	17	note 17	18	17
19	18	note 18	19	18
20	19	note 19	20	19
21	20	note 20	21	20
22	21	note 21	22	21
23	22	note 22	23	22
24	23	note 23	24	23
25	24	note 24	25	24
26	25	note 25	26	25
27	26	note 26	27	26
28	27	note 27	28	27
29	28	note 28	29	28
30	29	note 29	30	29
31	30	note 30	31	30
32	31	note 31	32	31
33	32	note 32	33	32
34	33	note 33	34	33
35	34	note 34	35	34
36	35	note 35	36	35
37	36	note 36	37	36
38	37	note 37	38	37
39	38	note 38	39	38
40	39	note 39	40	39
41	40	note 40	41	40
42	41	note 41	42	41
43	42	note 42	43	42
44	43	note 43	44	43
45	44	note 44	45	44
46	45	note 45	46	45
47	46	note 46	47	46
48	47	note 47	48	47
49	48	note 48	49	48
50	49	note 49	50	49
1	50	note 50	1	50
2	51	note 51	2	51
3	52	note 52	3	52
4	53	note 53	4	53
5	54	note 54	5	54
6	55	note 55	6	55
7	56	note 56	7	56
8	57	note 57	8	57
9	58	note 58	9	58
10	59	note 59	10	59
11	60	note 60	11	60
12	61	note 61	12	61
13	62	note 62	13	62
14	63	note 63	14	63
15	64	note 64	15	64
16	65	note 65	16	65
17	66	note 66	17	66
18	67	note 67	18	67
19	68	note 68	19	68
20	69	note 69	20	69
21	70	note 70	21	70
22	71	note 71	22	71
23	72	note 72	23	72
24	73	note 73	24	73
25	74	note 74	25	74
26	75	note 75	26	75
27	76	note 76	27	76
28	77	note 77	28	77
29	78	note 78	29	78
30	79	note 79	30	79
31	80	note 80	31	80
32	81	note 81	32	81
33	82	note 82	33	82
34	83	note 83	34	83
35	84	note 84	35	84
36	85	note 85	36	85
37	86	note 86	37	86
38	87	note 87	38	87
39	88	note 88	39	88
40	89	note 89	40	89
41	90	note 90	41	90
42	91	note 91	42	91
43	92	note 92	43	92
44	93	note 93	44	93
45	94	note 94	45	94
46	95	note 95	46	95
47	96	note 96	47	96
48	97	note 97	48	97
49	98	note 98	49	98
50	99	note 99	50	99
1	100	note 100	1	100
2	101	note 101	2	101
3	102	note 102	3	102
4	103	note 103	4	103
5	104	note 104	5	104
6	105	note 105	6	105
7	106	note 106	7	106
8	107	note 107	8	107
9	108	note 108	9	108
10	109	note 109	10	109
11	110	note 110	11	110
12	111	note 111	12	111
13	112	note 112	13	112
14	113	note 113	14	113
15	114	note 114	15	114
16	115	note 115	16	115
17	116	note 116	17	116
18	117	note 117	18	117
19	118	note 118	19	118
20	119	note 119	20	119
21	120	note 120	21	120
22	121	note 121	22	121
23	122	note 122	23	122
24	123	note 123	24	123
25	124	note 124	25	124
26	125	note 125	26	125
27	126	note 126	27	126
28	127	note 127	28	127
29	128	note 128	29	128
30	129	note 129	30	129
31	130	note 130	31	130
32	131	note 131	32	131
33	132	note 132	33	132
34	133	note 133	34	133
35	134	note 134	35	134
36	135	note 135	36	135
37	136	note 136	37	136
38	137	note 137	38	137
39	138	note 138	39	138
40	139	note 139	40	139
41	140	note 140	41	140
42	141	note 141	42	141
43	142	note 142	43	142
44	143	note 143	44	143
45	144	note 144	45	144
46	145	note 145	46	145
47	146	note 146	47	146
48	147	note 147	48	147
49	148	note 148	49	148
50	149	note 149	50	149
1	150	note 150	1	150
\.


--
-- Data for Name: parted_1; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.parted_1 (id, at, t) FROM stdin;
5	2019-01-06	\N
12	2019-01-13	a
19	2019-01-20	b
26	2019-01-27	\N
33	2019-02-03	a
40	2019-02-10	b
47	2019-02-17	\N
54	2019-02-24	a
61	2019-03-03	b
68	2019-03-10	\N
75	2019-03-17	a
82	2019-03-24	b
89	2019-03-31	\N
96	2019-04-07	a
103	2019-04-14	b
110	2019-04-21	\N
117	2019-04-28	a
124	2019-05-05	b
131	2019-05-12	\N
138	2019-05-19	a
145	2019-05-26	b
152	2019-06-02	\N
159	2019-06-09	a
166	2019-06-16	b
173	2019-06-23	\N
180	2019-06-30	a
187	2019-07-07	b
194	2019-07-14	\N
201	2019-07-21	a
208	2019-07-28	b
215	2019-08-04	\N
222	2019-08-11	a
229	2019-08-18	b
236	2019-08-25	\N
243	2019-09-01	a
250	2019-09-08	b
257	2019-09-15	\N
264	2019-09-22	a
271	2019-09-29	b
278	2019-10-06	\N
285	2019-10-13	a
292	2019-10-20	b
299	2019-10-27	\N
306	2019-11-03	a
313	2019-11-10	b
320	2019-11-17	\N
327	2019-11-24	a
334	2019-12-01	b
341	2019-12-08	\N
348	2019-12-15	a
355	2019-12-22	b
362	2019-12-29	\N
\.


--
-- Data for Name: parted_2a; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.parted_2a (id, at, t) FROM stdin;
369	2020-01-05	a
383	2020-01-19	\N
390	2020-01-26	a
404	2020-02-09	\N
411	2020-02-16	a
425	2020-03-01	\N
432	2020-03-08	a
446	2020-03-22	\N
453	2020-03-29	a
467	2020-04-12	\N
474	2020-04-19	a
488	2020-05-03	\N
495	2020-05-10	a
509	2020-05-24	\N
516	2020-05-31	a
530	2020-06-14	\N
537	2020-06-21	a
551	2020-07-05	\N
558	2020-07-12	a
572	2020-07-26	\N
579	2020-08-02	a
593	2020-08-16	\N
600	2020-08-23	a
614	2020-09-06	\N
621	2020-09-13	a
635	2020-09-27	\N
642	2020-10-04	a
656	2020-10-18	\N
663	2020-10-25	a
677	2020-11-08	\N
684	2020-11-15	a
698	2020-11-29	\N
705	2020-12-06	a
719	2020-12-20	\N
726	2020-12-27	a
\.


--
-- Data for Name: parted_2d; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.parted_2d (id, at, t) FROM stdin;
376	2020-01-12	b
397	2020-02-02	b
418	2020-02-23	b
439	2020-03-15	b
460	2020-04-05	b
481	2020-04-26	b
502	2020-05-17	b
523	2020-06-07	b
544	2020-06-28	b
565	2020-07-19	b
586	2020-08-09	b
607	2020-08-30	b
628	2020-09-20	b
649	2020-10-11	b
670	2020-11-01	b
691	2020-11-22	b
712	2020-12-13	b
\.


--
-- Data for Name: parted_3; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.parted_3 (id, at, t) FROM stdin;
733	2021-01-03	b
740	2021-01-10	\N
747	2021-01-17	a
754	2021-01-24	b
761	2021-01-31	\N
768	2021-02-07	a
775	2021-02-14	b
782	2021-02-21	\N
789	2021-02-28	a
796	2021-03-07	b
803	2021-03-14	\N
810	2021-03-21	a
817	2021-03-28	b
824	2021-04-04	\N
831	2021-04-11	a
838	2021-04-18	b
845	2021-04-25	\N
852	2021-05-02	a
859	2021-05-09	b
866	2021-05-16	\N
873	2021-05-23	a
880	2021-05-30	b
887	2021-06-06	\N
894	2021-06-13	a
901	2021-06-20	b
908	2021-06-27	\N
915	2021-07-04	a
922	2021-07-11	b
929	2021-07-18	\N
936	2021-07-25	a
943	2021-08-01	b
950	2021-08-08	\N
957	2021-08-15	a
964	2021-08-22	b
971	2021-08-29	\N
978	2021-09-05	a
985	2021-09-12	b
992	2021-09-19	\N
999	2021-09-26	a
\.


--
-- Data for Name: people; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.people (id, name, mood, born, s, s2, n, x, at, dflt, arr, j) FROM stdin;
1	n\t1	ok	1900-01-02	10	1	15	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
2	n\t2	ok	1900-01-03	12	2	20	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
3	n\t3	ok	1900-01-04	14	3	25	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
4	n\t4	ok	1900-01-05	16	4	30	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
5	n\t5	ok	1900-01-06	18	5	35	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
6	n\t6	ok	1900-01-07	20	6	40	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
7	n\t7	ok	1900-01-08	22	7	45	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
8	n\t8	ok	1900-01-09	24	8	50	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
9	n\t9	ok	1900-01-10	26	9	55	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
10	n\t10	ok	1900-01-11	28	10	60	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
11	n\t11	ok	1900-01-12	30	11	65	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
12	n\t12	ok	1900-01-13	32	12	70	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
13	n\t13	ok	1900-01-14	34	13	75	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
14	n\t14	ok	1900-01-15	36	14	80	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
15	n\t15	ok	1900-01-16	38	15	85	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
16	n\t16	ok	1900-01-17	40	16	90	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
17	n\t17	ok	1900-01-18	42	17	95	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
18	n\t18	ok	1900-01-19	44	18	100	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
19	n\t19	ok	1900-01-20	46	19	105	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
20	n\t20	ok	1900-01-21	48	20	110	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
21	n\t21	ok	1900-01-22	50	21	115	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
22	n\t22	ok	1900-01-23	52	22	120	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
23	n\t23	ok	1900-01-24	54	23	125	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
24	n\t24	ok	1900-01-25	56	24	130	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
25	n\t25	ok	1900-01-26	58	25	135	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
26	n\t26	ok	1900-01-27	60	26	140	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
27	n\t27	ok	1900-01-28	62	27	145	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
28	n\t28	ok	1900-01-29	64	28	150	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
29	n\t29	ok	1900-01-30	66	29	155	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
30	n\t30	ok	1900-01-31	68	30	160	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
31	n\t31	ok	1900-02-01	70	31	165	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
32	n\t32	ok	1900-02-02	72	32	170	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
33	n\t33	ok	1900-02-03	74	33	175	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
34	n\t34	ok	1900-02-04	76	34	180	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
35	n\t35	ok	1900-02-05	78	35	185	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
36	n\t36	ok	1900-02-06	80	36	190	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
37	n\t37	ok	1900-02-07	82	37	195	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
38	n\t38	ok	1900-02-08	84	38	200	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
39	n\t39	ok	1900-02-09	86	39	205	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
40	n\t40	ok	1900-02-10	88	40	210	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
41	n\t41	ok	1900-02-11	90	41	215	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
42	n\t42	ok	1900-02-12	92	42	220	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
43	n\t43	ok	1900-02-13	94	43	225	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
44	n\t44	ok	1900-02-14	96	44	230	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
45	n\t45	ok	1900-02-15	98	45	235	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
46	n\t46	ok	1900-02-16	100	46	240	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
47	n\t47	ok	1900-02-17	102	47	245	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
48	n\t48	ok	1900-02-18	104	48	250	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
49	n\t49	ok	1900-02-19	106	49	255	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
50	n\t50	ok	1900-02-20	108	50	260	42	2020-01-01 10:00:00+00	a	{1,2,3}	{}
\.


--
-- Data for Name: renamed; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.renamed (first, b, c) FROM stdin;
1	1	x
2	2	y
\.


--
-- Data for Name: stamped; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.stamped (a, b, c) FROM stdin;
7	8	8
7	9	8
7	10	8
7	11	8
7	12	8
7	13	8
7	14	8
7	15	8
7	16	8
7	17	8
7	18	8
7	19	8
7	20	8
7	21	8
7	22	8
7	23	8
7	24	8
7	25	8
7	26	8
7	27	8
7	28	8
7	29	8
7	30	8
7	31	8
7	32	8
7	33	8
7	34	8
7	35	8
7	36	8
7	37	8
7	38	8
7	39	8
7	40	8
7	41	8
7	42	8
7	43	8
7	44	8
7	45	8
7	46	8
7	47	8
7	48	8
7	49	8
7	50	8
7	51	8
7	52	8
7	53	8
7	54	8
7	55	8
7	56	8
7	57	8
7	58	8
7	59	8
7	60	8
7	61	8
7	62	8
7	63	8
7	64	8
7	65	8
7	66	8
7	67	8
7	68	8
7	69	8
7	70	8
7	71	8
7	72	8
7	73	8
7	74	8
7	75	8
7	76	8
7	77	8
7	78	8
7	79	8
7	80	8
7	81	8
7	82	8
7	83	8
7	84	8
7	85	8
7	86	8
7	87	8
7	88	8
7	89	8
7	90	8
7	91	8
7	92	8
7	93	8
7	94	8
7	95	8
7	96	8
7	97	8
7	98	8
7	99	8
7	100	8
\.


--
-- Data for Name: stay; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.stay (room, during, who, price) FROM stdin;
1	["2020-01-01 02:00:00","2020-01-01 03:00:00")	w1	1
1	["2020-01-01 04:00:00","2020-01-01 05:00:00")	w2	2
1	["2020-01-01 06:00:00","2020-01-01 07:00:00")	w3	3
1	["2020-01-01 08:00:00","2020-01-01 09:00:00")	w4	4
1	["2020-01-01 10:00:00","2020-01-01 11:00:00")	w5	5
1	["2020-01-01 12:00:00","2020-01-01 13:00:00")	w6	6
1	["2020-01-01 14:00:00","2020-01-01 15:00:00")	w7	7
1	["2020-01-01 16:00:00","2020-01-01 17:00:00")	w8	8
1	["2020-01-01 18:00:00","2020-01-01 19:00:00")	w9	9
1	["2020-01-01 20:00:00","2020-01-01 21:00:00")	w10	10
1	["2020-01-01 22:00:00","2020-01-01 23:00:00")	w11	11
1	["2020-01-02 00:00:00","2020-01-02 01:00:00")	w12	12
1	["2020-01-02 02:00:00","2020-01-02 03:00:00")	w13	13
1	["2020-01-02 04:00:00","2020-01-02 05:00:00")	w14	14
1	["2020-01-02 06:00:00","2020-01-02 07:00:00")	w15	15
1	["2020-01-02 08:00:00","2020-01-02 09:00:00")	w16	16
1	["2020-01-02 10:00:00","2020-01-02 11:00:00")	w17	17
1	["2020-01-02 12:00:00","2020-01-02 13:00:00")	w18	18
1	["2020-01-02 14:00:00","2020-01-02 15:00:00")	w19	19
1	["2020-01-02 16:00:00","2020-01-02 17:00:00")	w20	20
\.


--
-- Data for Name: unlogged; Type: TABLE DATA; Schema: every; Owner: postgres
--

COPY every.unlogged (a) FROM stdin;
1
\.


--
-- Name: never_called; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.never_called', -1, false);


--
-- Name: numbers; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.numbers', 265, true);


--
-- Name: once_called_a_seq; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.once_called_a_seq', 2, true);


--
-- Name: once_called_b_seq; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.once_called_b_seq', 2, true);


--
-- Name: own_name; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.own_name', 100, false);


--
-- Name: people_id_seq; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.people_id_seq', 4000000000, true);


--
-- Name: people_s2_seq; Type: SEQUENCE SET; Schema: every; Owner: postgres
--

SELECT pg_catalog.setval('every.people_s2_seq', 50, true);


--
-- Data for Name: BLOBS; Type: BLOBS; Schema: -; Owner: -
--

BEGIN;

SELECT pg_catalog.lo_open('19139', 131072);
SELECT pg_catalog.lowrite(0, '\x61206c61726765206f626a6563743b20');
SELECT pg_catalog.lo_close(0);

COMMIT;

--
-- Name: of_type of_type_pkey; Type: CONSTRAINT; Schema: beyond; Owner: postgres
--

ALTER TABLE ONLY beyond.of_type
    ADD CONSTRAINT of_type_pkey PRIMARY KEY (street);


--
-- Name: stay once; Type: CONSTRAINT; Schema: beyond; Owner: postgres
--

ALTER TABLE ONLY beyond.stay
    ADD CONSTRAINT once EXCLUDE USING btree (who WITH =) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: searched searched_pkey; Type: CONSTRAINT; Schema: beyond; Owner: postgres
--

ALTER TABLE ONLY beyond.searched
    ADD CONSTRAINT searched_pkey PRIMARY KEY (id);


--
-- Name: stay stay_during_excl; Type: CONSTRAINT; Schema: beyond; Owner: postgres
--

ALTER TABLE ONLY beyond.stay
    ADD CONSTRAINT stay_during_excl EXCLUDE USING gist (during WITH &&) WHERE ((who IS NOT NULL));


--
-- Name: Odd; name Odd; name_a_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every."Odd; name"
    ADD CONSTRAINT "Odd; name_a_key" UNIQUE NULLS NOT DISTINCT (a);


--
-- Name: every_array every_array_pk; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.every_array
    ADD CONSTRAINT every_array_pk PRIMARY KEY (id);


--
-- Name: every_type every_type_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.every_type
    ADD CONSTRAINT every_type_pkey PRIMARY KEY (id);


--
-- Name: hashed hashed_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.hashed
    ADD CONSTRAINT hashed_pkey PRIMARY KEY (id);


--
-- Name: hashed_0 hashed_0_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.hashed_0
    ADD CONSTRAINT hashed_0_pkey PRIMARY KEY (id);


--
-- Name: hashed_1 hashed_1_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.hashed_1
    ADD CONSTRAINT hashed_1_pkey PRIMARY KEY (id);


--
-- Name: notes notes_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.notes
    ADD CONSTRAINT notes_pkey PRIMARY KEY (person, n);


--
-- Name: renamed once_called_c_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.renamed
    ADD CONSTRAINT once_called_c_key UNIQUE (c) WITH (fillfactor='70');


--
-- Name: renamed once_called_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.renamed
    ADD CONSTRAINT once_called_pkey PRIMARY KEY (first) WITH (fillfactor='90');


--
-- Name: parted parted_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted
    ADD CONSTRAINT parted_id_at_t_key UNIQUE (id, at, t);


--
-- Name: parted_1 parted_1_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_1
    ADD CONSTRAINT parted_1_id_at_t_key UNIQUE (id, at, t);


--
-- Name: parted_2 parted_2_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_2
    ADD CONSTRAINT parted_2_id_at_t_key UNIQUE (id, at, t);


--
-- Name: parted_2a parted_2a_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_2a
    ADD CONSTRAINT parted_2a_id_at_t_key UNIQUE (id, at, t);


--
-- Name: parted_2d parted_2d_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_2d
    ADD CONSTRAINT parted_2d_id_at_t_key UNIQUE (id, at, t);


--
-- Name: parted_3 parted_3_id_at_t_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.parted_3
    ADD CONSTRAINT parted_3_id_at_t_key UNIQUE (id, at, t);


--
-- Name: people people_name_key; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.people
    ADD CONSTRAINT people_name_key UNIQUE (name);


--
-- Name: people people_pkey; Type: CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (id);


--
-- Name: searched_v_idx; Type: INDEX; Schema: beyond; Owner: postgres
--

CREATE INDEX searched_v_idx ON beyond.searched USING gin (v);


--
-- Name: a_few; Type: INDEX; Schema: every; Owner: postgres
--

CREATE UNIQUE INDEX a_few ON every.people USING btree (name) INCLUDE (born, mood) WHERE (born > '1900-01-01'::date);


--
-- Name: by_brin; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX by_brin ON every.people USING brin (born);


--
-- Name: by_gin; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX by_gin ON every.every_type USING gin (jb jsonb_path_ops);


--
-- Name: by_gist; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX by_gist ON every.every_type USING gist (r4);


--
-- Name: by_hash; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX by_hash ON every.people USING hash (name);


--
-- Name: counted_person_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE UNIQUE INDEX counted_person_idx ON every.counted USING btree (person);


--
-- Name: notes_note; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX notes_note ON every.notes USING btree (note DESC NULLS LAST, n) WHERE ((n > 100) AND (note IS NOT NULL));


--
-- Name: INDEX notes_note; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON INDEX every.notes_note IS 'an index';


--
-- Name: nulls; Type: INDEX; Schema: every; Owner: postgres
--

CREATE UNIQUE INDEX nulls ON every.notes USING btree (note, person, n) NULLS NOT DISTINCT;


--
-- Name: parted_t; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_t ON ONLY every.parted USING btree (t);


--
-- Name: parted_1_t_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_1_t_idx ON every.parted_1 USING btree (t);


--
-- Name: parted_2_t_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_2_t_idx ON ONLY every.parted_2 USING btree (t);


--
-- Name: parted_2a_t_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_2a_t_idx ON every.parted_2a USING btree (t);


--
-- Name: parted_2d_t_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_2d_t_idx ON every.parted_2d USING btree (t);


--
-- Name: parted_3_t_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX parted_3_t_idx ON every.parted_3 USING btree (t);


--
-- Name: people_lower_expr_idx; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX people_lower_expr_idx ON every.people USING btree (lower((name)::text) COLLATE "C" text_pattern_ops, ((n + 1)) DESC);


--
-- Name: with_fill; Type: INDEX; Schema: every; Owner: postgres
--

CREATE INDEX with_fill ON every.people USING btree (born) WITH (fillfactor='70');

ALTER TABLE every.people CLUSTER ON with_fill;


--
-- Name: hashed_0_pkey; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.hashed_pkey ATTACH PARTITION every.hashed_0_pkey;


--
-- Name: hashed_1_pkey; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.hashed_pkey ATTACH PARTITION every.hashed_1_pkey;


--
-- Name: parted_1_id_at_t_key; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_id_at_t_key ATTACH PARTITION every.parted_1_id_at_t_key;


--
-- Name: parted_1_t_idx; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_t ATTACH PARTITION every.parted_1_t_idx;


--
-- Name: parted_2_id_at_t_key; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_id_at_t_key ATTACH PARTITION every.parted_2_id_at_t_key;


--
-- Name: parted_2_t_idx; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_t ATTACH PARTITION every.parted_2_t_idx;


--
-- Name: parted_2a_id_at_t_key; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_2_id_at_t_key ATTACH PARTITION every.parted_2a_id_at_t_key;


--
-- Name: parted_2a_t_idx; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_2_t_idx ATTACH PARTITION every.parted_2a_t_idx;


--
-- Name: parted_2d_id_at_t_key; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_2_id_at_t_key ATTACH PARTITION every.parted_2d_id_at_t_key;


--
-- Name: parted_2d_t_idx; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_2_t_idx ATTACH PARTITION every.parted_2d_t_idx;


--
-- Name: parted_3_id_at_t_key; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_id_at_t_key ATTACH PARTITION every.parted_3_id_at_t_key;


--
-- Name: parted_3_t_idx; Type: INDEX ATTACH; Schema: every; Owner: postgres
--

ALTER INDEX every.parted_t ATTACH PARTITION every.parted_3_t_idx;


--
-- Name: people_stats; Type: STATISTICS; Schema: every; Owner: postgres
--

CREATE STATISTICS every.people_stats (dependencies) ON name, born FROM every.people;


ALTER STATISTICS every.people_stats OWNER TO postgres;

--
-- Name: STATISTICS people_stats; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON STATISTICS every.people_stats IS 'stats';


--
-- Name: stamped ru; Type: RULE; Schema: every; Owner: postgres
--

CREATE RULE ru AS
    ON DELETE TO every.stamped DO INSTEAD NOTHING;


--
-- Name: RULE ru ON stamped; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON RULE ru ON every.stamped IS 'a rule';


--
-- Name: notes tr; Type: TRIGGER; Schema: every; Owner: postgres
--

CREATE TRIGGER tr BEFORE INSERT ON every.notes FOR EACH ROW EXECUTE FUNCTION every.touched();

ALTER TABLE every.notes DISABLE TRIGGER tr;


--
-- Name: TRIGGER tr ON notes; Type: COMMENT; Schema: every; Owner: postgres
--

COMMENT ON TRIGGER tr ON every.notes IS 'a trigger';


--
-- Name: notes above; Type: FK CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.notes
    ADD CONSTRAINT above FOREIGN KEY (up, up_n) REFERENCES every.notes(person, n) MATCH FULL DEFERRABLE INITIALLY DEFERRED;


--
-- Name: keeps keeps_a_b_fkey; Type: FK CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.keeps
    ADD CONSTRAINT keeps_a_b_fkey FOREIGN KEY (a, b) REFERENCES every.notes(person, n) ON DELETE SET NULL (b);


--
-- Name: notes notes_person_fkey; Type: FK CONSTRAINT; Schema: every; Owner: postgres
--

ALTER TABLE ONLY every.notes
    ADD CONSTRAINT notes_person_fkey FOREIGN KEY (person) REFERENCES every.people(id) ON UPDATE SET NULL ON DELETE CASCADE;


--
-- Name: people; Type: ROW SECURITY; Schema: every; Owner: postgres
--

ALTER TABLE every.people ENABLE ROW LEVEL SECURITY;

--
-- Name: people po; Type: POLICY; Schema: every; Owner: postgres
--

CREATE POLICY po ON every.people USING ((id > 0));


--
-- Name: pub; Type: PUBLICATION; Schema: -; Owner: postgres
--

CREATE PUBLICATION pub WITH (publish = 'insert, update, delete, truncate');


ALTER PUBLICATION pub OWNER TO postgres;

--
-- Name: pub notes; Type: PUBLICATION TABLE; Schema: every; Owner: postgres
--

ALTER PUBLICATION pub ADD TABLE ONLY every.notes;


--
-- Name: TYPE mood; Type: ACL; Schema: every; Owner: postgres
--

GRANT ALL ON TYPE every.mood TO reader;


--
-- Name: TABLE people; Type: ACL; Schema: every; Owner: postgres
--

GRANT SELECT,INSERT ON TABLE every.people TO reader;


--
-- Name: COLUMN notes.note; Type: ACL; Schema: every; Owner: postgres
--

GRANT UPDATE(note) ON TABLE every.notes TO reader WITH GRANT OPTION;


--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: every; Owner: postgres
--

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA every GRANT SELECT ON TABLES  TO reader;


--
-- Name: et; Type: EVENT TRIGGER; Schema: -; Owner: postgres
--

CREATE EVENT TRIGGER et ON ddl_command_end
   EXECUTE FUNCTION every.ev();


ALTER EVENT TRIGGER et OWNER TO postgres;

--
-- Name: counted; Type: MATERIALIZED VIEW DATA; Schema: every; Owner: postgres
--

REFRESH MATERIALIZED VIEW every.counted;


--
-- PostgreSQL database dump complete
--

\unrestrict QKSAWBCa041PzZ0GB0eSLmpcWXMb95wgHkXuCMCEboBelF27vBCbsu1XdhTSCbO

