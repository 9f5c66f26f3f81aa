//! The statements of "Cloud Spanner: Table Interleaving use cases" (P. Arrojo, 2023), as printed.

use crate::harness::Db;

const SCHEMA: [&str; 8] = [
    "CREATE SEQUENCE sequence_id_child OPTIONS (
sequence_kind = 'bit_reversed_positive'
);",
    "CREATE SEQUENCE sequence_id_parent OPTIONS (
sequence_kind = 'bit_reversed_positive'
);",
    "CREATE TABLE table_parent (
id STRING(MAX), ---> UUID
field1 STRING(MAX),
field2 STRING(MAX),
) PRIMARY KEY(id);",
    "CREATE TABLE table_child (
id STRING(MAX),
id_child FLOAT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE sequence_id_child)),
field1 STRING(MAX),
field2 STRING(MAX),
field3 STRING(MAX),
field4 STRING(MAX),
field5 STRING(MAX),
field6 STRING(MAX),
field7 STRING(MAX),
field8 STRING(MAX),
) PRIMARY KEY(id, id_child);",
    "CREATE TABLE table_parent_i (
id STRING(MAX), ---> UUID
field1 STRING(MAX),
field2 STRING(MAX),
) PRIMARY KEY(id);",
    "CREATE TABLE table_child_i (
id STRING(MAX),
id_child FLOAT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE sequence_id_child)),
field1 STRING(MAX),
field2 STRING(MAX),
field3 STRING(MAX),
field4 STRING(MAX),
field5 STRING(MAX),
field6 STRING(MAX),
field7 STRING(MAX),
field8 STRING(MAX),
) PRIMARY KEY(id, id_child),
INTERLEAVE IN PARENT table_parent_i ON DELETE CASCADE;",
    "create index field2_idx_s on table_parent(field2) storing (field1);",
    "create index field2i_idx_s on table_parent_i(field2) storing (field1);",
];

const BY_ID: &str = "SELECT p.*, 
ARRAY(SELECT AS STRUCT c.* FROM table_child c WHERE c.id = p.id) as c01,
FROM table_parent p WHERE p.id in ('002498b4-16bc-4ae8-9e24-879f04297753');";

const BY_ID_I: &str = "SELECT p.*,
ARRAY(SELECT AS STRUCT c.* FROM table_child_i c WHERE c.id = p.id) as c01,
FROM table_parent_i p WHERE p.id in ('0017a4a1-5e34-4983-bf7a-72f6959a018a');";

const BY_INDEX: &str = "SELECT p.*,
ARRAY(SELECT AS STRUCT c.* FROM table_child c WHERE c.id = p.id) as c01
from table_parent p where p.field2='field2_test';";

const BY_INDEX_I: &str = "SELECT p.*,
ARRAY(SELECT AS STRUCT c.* FROM table_child_i c WHERE c.id = p.id) as c01
from table_parent_i p where p.field2='field2_test';";

#[test]
fn all_twelve_run_as_printed() {
    let s = &mut Db::new();
    for sql in SCHEMA {
        s.run(sql);
    }
    for (suffix, id) in [
        ("", "002498b4-16bc-4ae8-9e24-879f04297753"),
        ("_i", "0017a4a1-5e34-4983-bf7a-72f6959a018a"),
    ] {
        s.run(&format!(
            "insert into table_parent{suffix} values ('{id}', 'a', 'field2_test'), ('x', 'b', 'c')"
        ));
        s.run(&format!(
            "insert into table_child{suffix} (id, id_child, field1) values ('{id}', 1, \
                    'one'), ('{id}', 2, null)"
        ));
        s.run(&format!(
            "insert into table_child{suffix} (id, field1) values ('x', 'given a \
            key')"
        ));
    }
    for (sql, id) in [
        (BY_ID, "002498b4-16bc-4ae8-9e24-879f04297753"),
        (BY_ID_I, "0017a4a1-5e34-4983-bf7a-72f6959a018a"),
        (BY_INDEX, "002498b4-16bc-4ae8-9e24-879f04297753"),
        (BY_INDEX_I, "0017a4a1-5e34-4983-bf7a-72f6959a018a"),
    ] {
        let children = format!(r#"{{"({id},1,one,,,,,,,)","({id},2,,,,,,,,)"}}"#);
        assert_eq!(s.run(sql), [format!("{id}|a|field2_test|{children}")], "{sql}");
    }
    // Keys of a bit-reversed sequence: far from each other, each once.
    let keys = s.run("select id_child from table_child where id = 'x'");
    assert_eq!(keys, ["4.611686018427388e+18"]);
    let keys = s.run("select id_child from table_child_i where id = 'x'");
    assert_eq!(keys, ["2.305843009213694e+18"]);
    s.run("delete from table_parent_i where field2 = 'field2_test'");
    assert_eq!(s.run("select id from table_child_i"), ["x"]);
}
