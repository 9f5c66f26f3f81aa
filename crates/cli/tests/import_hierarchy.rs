//! A dump becomes a hierarchy: proposed, by itself, or as somebody wishes; the rows stay the same.

mod support;

use std::process::Command;

use braid_env::fs::{DiskFs, FileSystem};
use postgres::{Client, SimpleQueryMessage};
use support::Node;

/// As pg_dump writes it: tables, rows by name of table, keys at the end, no search path.
const DUMP: &str = "SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA shop;
CREATE TABLE public.customers (id integer NOT NULL, name text);
CREATE TABLE shop.\"Lines\" (order_id integer NOT NULL, n integer NOT NULL, what text);
CREATE TABLE public.orders (id integer NOT NULL, customer integer NOT NULL, at date);
CREATE TABLE public.tags (customer integer NOT NULL, tag text NOT NULL);
COPY shop.\"Lines\" (order_id, n, what) FROM stdin;
10\t1\ta
10\t2\tb
10\t3\tc
12\t1\td
\\.
COPY public.customers (id, name) FROM stdin;
1\tAda
2\tBob
3\t\\N
\\.
COPY public.orders (id, customer, at) FROM stdin;
10\t1\t2026-01-01
11\t1\t2026-01-02
12\t2\t\\N
\\.
COPY public.tags (customer, tag) FROM stdin;
1\tgood
3\tbad
\\.
ALTER TABLE ONLY shop.\"Lines\" ADD CONSTRAINT lines_pkey PRIMARY KEY (order_id, n);
ALTER TABLE ONLY public.customers ADD CONSTRAINT customers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tags ADD CONSTRAINT tags_pkey PRIMARY KEY (customer, tag);
CREATE INDEX orders_customer ON public.orders USING btree (customer);
ALTER TABLE ONLY shop.\"Lines\" ADD CONSTRAINT lines_fkey FOREIGN KEY (order_id) REFERENCES public.orders(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_fkey FOREIGN KEY (customer) REFERENCES public.customers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tags ADD CONSTRAINT tags_fkey FOREIGN KEY (customer) REFERENCES public.customers(id);
";

const TABLES: [&str; 4] = ["customers", "orders", "shop.\"Lines\"", "tags"];

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let line = |m: SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|n| row.get(n).unwrap_or("NULL"));
            Some(fields.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    answer.into_iter().filter_map(line).collect()
}

fn content(client: &mut Client) -> Vec<Vec<String>> {
    TABLES.iter().map(|t| rows(client, &format!("SELECT * FROM {t} ORDER BY 1, 2"))).collect()
}

/// The tree's tables with their depth.
fn tree(client: &mut Client) -> Vec<String> {
    let lines = rows(client, "SHOW INTERLEAVE TREE");
    lines
        .iter()
        .filter(|l| l.contains("|table|"))
        .map(|l| l[..l.find('|').unwrap()].into())
        .collect()
}

fn drop_all(client: &mut Client) {
    rows(client, "DROP TABLE shop.\"Lines\", tags, orders, customers");
    rows(client, "DROP SCHEMA shop");
}

#[test]
fn a_dump_becomes_a_hierarchy_as_proposed_or_wished() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = directory.path().join("store");
    let folder = store.join("import");
    DiskFs.create_dir_all(&folder).expect("a folder");
    let file = DiskFs.create(&folder.join("shop.sql")).expect("a file");
    file.write_at(DUMP.as_bytes(), 0).expect("written");
    let node = Node::start(&store);
    let client = &mut node.client();
    let found = rows(client, "IMPORT PGDUMP 'shop.sql' WITH dry_run, propose_interleave");
    let proposals: Vec<&String> = found.iter().filter(|l| l.starts_with("proposal|")).collect();
    assert_eq!(proposals.len(), 3, "{found:#?}");
    let of = |what: &str| proposals.iter().find(|l| l.contains(what)).expect(what);
    let lines = of("shop.\"Lines\" in orders: ready");
    assert!(lines.contains("4 rows in 3 families, 1.3 on average, 3 at most"), "{lines}");
    assert!(of("orders in customers: new key").contains("USING COLUMNS (customer, id)"));
    assert!(of("tags in customers: ready").contains("one span"));
    rows(client, "IMPORT PGDUMP 'shop.sql'");
    let flat = content(client);
    assert!(tree(client).is_empty());
    drop_all(client);

    let found = rows(client, "IMPORT PGDUMP 'shop.sql' WITH interleave = 'auto'");
    assert_eq!(found.iter().filter(|l| l.starts_with("interleaved|")).count(), 2, "{found:#?}");
    assert_eq!(content(client), flat);
    assert_eq!(tree(client), ["customers", "  tags", "orders", "  Lines"]);
    // What was there before stays where it is: another dump with `auto` does not move it.
    rows(client, "ALTER TABLE tags DROP INTERLEAVE");
    let other = "CREATE TABLE public.o (a int PRIMARY KEY);\n";
    let file = DiskFs.create(&folder.join("other.sql")).expect("a file");
    file.write_at(other.as_bytes(), 0).expect("written");
    rows(client, "IMPORT PGDUMP 'other.sql' WITH interleave = 'auto'");
    assert_eq!(tree(client), ["orders", "  Lines"]);
    rows(client, "DROP TABLE o");
    drop_all(client);

    let wish = "'orders in customers, Tags in public.customers'";
    rows(client, &format!("IMPORT PGDUMP 'shop.sql' WITH interleave = {wish}"));
    assert_eq!(content(client), flat);
    assert_eq!(tree(client), ["customers", "  orders", "  tags"]);
    assert_eq!(rows(client, "SELECT at FROM orders WHERE id = 11"), ["2026-01-02"]);
    let explained = rows(client, "EXPLAIN DELETE FROM customers WHERE id = 1").join("\n");
    assert!(explained.contains("range delete"), "{explained}");
    rows(client, "DELETE FROM tags; DELETE FROM customers WHERE id = 1");
    assert_eq!(rows(client, "SELECT id FROM orders"), ["12"]);
    assert_eq!(rows(client, "SELECT * FROM shop.\"Lines\""), ["12|1|d"]);
    drop_all(client);

    // What cannot be done ends the import, and nothing of it is there.
    for (wish, says) in [
        (
            "orders in customers, shop.\"Lines\" in orders",
            "refers to (id) .. orders is (customer, id)",
        ),
        ("customers in orders", "no foreign key"),
    ] {
        let sql = format!("IMPORT PGDUMP 'shop.sql' WITH interleave = '{wish}'");
        let e = client.simple_query(&sql).expect_err(&sql);
        let e = e.as_db_error().expect("the node's").clone();
        assert_eq!(e.code().code(), "42P16", "{e:?}");
        let mut message = e.message();
        for part in says.split(" .. ") {
            let at = message.find(part).unwrap_or_else(|| panic!("{part} is not in {message}"));
            message = &message[at..];
        }
        assert_eq!(
            rows(client, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"),
            ["0"]
        );
    }
    by_the_binary(&node, client, &flat);
}

/// The same by `braid import`.
fn by_the_binary(node: &Node, client: &mut Client, flat: &[Vec<String>]) {
    let braid = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
        let output = command.arg("import").args(arguments).args(["--url", &node.url]).output();
        let output = output.expect("the binary runs");
        let both = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.success(), String::from_utf8_lossy(&both).into_owned())
    };
    let (good, told) = braid(&["shop.sql", "--on-node", "--propose-interleave"]);
    assert!(good && told.contains("proposal: tags in customers: ready: ALTER TABLE"), "{told}");
    let (good, told) = braid(&["--propose-interleave"]);
    assert!(good && told.contains("no table refers to another one"), "{told}");
    let (good, told) = braid(&["shop.sql", "--on-node", "--interleave", "auto"]);
    assert!(good && told.contains("loaded (line 13): public.customers: 3 rows"), "{told}");
    assert_eq!(content(client), flat);
    rows(client, "ANALYZE");
    let (good, told) = braid(&["--propose-interleave"]);
    assert!(good && told.contains("orders in customers: no\n"), "{told}");
    assert!(
        told.contains("rows 3, in each 1.0, at most 2") && told.contains("DROP INTERLEAVE"),
        "{told}"
    );
    let (good, told) = braid(&["nowhere.sql", "--on-node"]);
    assert!(!good && told.contains("58P01"), "{told}");
    let (good, told) = braid(&["shop.sql"]);
    assert!(!good && told.contains("--on-node"), "{told}");
}
