//! The eight tables, with the indexes on foreign keys that everybody gives them.

use postgres::Client;

use crate::WorkloadResult;
use crate::tpcc::Layout;

/// Creates the tables; they must not exist.
pub fn create(client: &mut Client, layout: Layout) -> WorkloadResult<()> {
    let inside = |parent: &str, column: &str| match layout {
        Layout::Interleaved => {
            format!(" INTERLEAVE IN PARENT {parent} ({column}) ON DELETE CASCADE")
        }
        Layout::Flat => String::new(),
    };
    let tables = [
        ("region", REGION, String::new()),
        ("nation", NATION, String::new()),
        ("part", PART, String::new()),
        ("supplier", SUPPLIER, String::new()),
        ("partsupp", PARTSUPP, inside("part", "ps_partkey")),
        ("customer", CUSTOMER, String::new()),
        ("orders", ORDERS, String::new()),
        ("lineitem", LINEITEM, inside("orders", "l_orderkey")),
    ];
    for (name, body, clause) in tables {
        client.batch_execute(&format!("CREATE TABLE {name} ({body}){clause}"))?;
    }
    Ok(())
}

/// Indexes, and statistics for the planner: made after the load.
pub(super) fn finish(client: &mut Client) -> WorkloadResult<()> {
    for index in INDEXES {
        client.batch_execute(&format!("CREATE INDEX ON {index}"))?;
    }
    client.batch_execute("ANALYZE")
}

const REGION: &str = "r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, \
    r_comment varchar(152)";
const NATION: &str = "n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, \
    n_regionkey int NOT NULL, n_comment varchar(152)";
const PART: &str = "p_partkey bigint PRIMARY KEY, p_name varchar(55) NOT NULL, \
    p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, \
    p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL, \
    p_comment varchar(23) NOT NULL";
const SUPPLIER: &str = "s_suppkey bigint PRIMARY KEY, s_name char(25) NOT NULL, \
    s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, \
    s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL";
const PARTSUPP: &str = "ps_partkey bigint NOT NULL, ps_suppkey bigint NOT NULL, \
    ps_availqty int NOT NULL, ps_supplycost numeric(15,2) NOT NULL, \
    ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)";
const CUSTOMER: &str = "c_custkey bigint PRIMARY KEY, c_name varchar(25) NOT NULL, \
    c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, \
    c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, \
    c_comment varchar(117) NOT NULL";
const ORDERS: &str = "o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, \
    o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, \
    o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, \
    o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL";
const LINEITEM: &str = "l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, \
    l_suppkey bigint NOT NULL, l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL, \
    l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, \
    l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, \
    l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
    l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, \
    l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)";

const INDEXES: &[&str] = &[
    "nation (n_regionkey)",
    "supplier (s_nationkey)",
    "partsupp (ps_suppkey)",
    "customer (c_nationkey)",
    "orders (o_custkey)",
    "lineitem (l_partkey, l_suppkey)",
    "lineitem (l_suppkey)",
];
