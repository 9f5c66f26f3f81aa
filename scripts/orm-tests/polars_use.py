"""polars by ADBC and connectorx, ADBC's own interface, and COPY as loaders use it. usage: polars_use.py URL"""

import datetime as dt
import decimal
import sys

import adbc_driver_postgresql.dbapi as adbc
import connectorx as cx
import polars as pl
import psycopg
import pyarrow as pa

url = sys.argv[1]


def t(name, f):
    try:
        print(name, str(f())[:1500])
    except Exception as e:
        print(name, "ERR", type(e).__name__, str(e)[:300].replace("\n", " | "))


def run(*statements):
    with psycopg.connect(url, autocommit=True) as c:
        for s in statements:
            c.execute(s)


types = [
    "smallint", "int", "bigint", "real", "double precision", "numeric(12,3)", "bool", "text",
    "varchar(5)", "char(3)", "bytea", "date", "time", "timestamp", "timestamptz", "uuid", "json",
    "jsonb", "int[]", "text[]", "float8[]", "interval", "oid", "name", "inet", "money", "bit(3)",
    "\"char\"", "int4range", "numeric(20,4)[]", "bool[]", "date[]", "timestamptz[]", "uuid[]",
]
values = [
    "7", "-5", "9007199254740993", "0.5", "1e300", "12345.678", "true", "'é'", "'abcde'", "'ab'",
    "'\\x00ff'", "'2024-02-29'", "'23:59:59.999999'", "'1999-12-31 23:59:59.5'",
    "'2024-01-01 00:00+02'", "'0c8e4ff0-0000-4000-8000-000000000001'", "'{\"a\": 1}'",
    "'[1, null]'", "'{1,null,3}'", "'{a,NULL,\"b c\"}'", "'{0.5,1e10}'", "'1 mon 2 days 03:04:05.5'",
    "42", "'nm'", "'10.0.0.0/8'", "'12.34'", "'101'", "'x'", "'[1,5)'", "'{1.5,2}'", "'{t,f}'",
    "'{2024-01-01}'", "'{2024-01-01 00:00+00}'", "'{0c8e4ff0-0000-4000-8000-000000000001}'",
]
columns = [f"c{n}" for n in range(len(types))]
t("make", lambda: run(
    "drop table if exists pl_types",
    f"create table pl_types (id int primary key, {', '.join(f'{c} {ty}' for c, ty in zip(columns, types))})",
    f"insert into pl_types values (1, {', '.join(values)})",
    "insert into pl_types (id) values (2)",
))
for column, ty in zip(columns, types):
    q = f"select id, {column} from pl_types order by id"
    t(f"cx {ty}", lambda: pl.read_database_uri(q, url, engine="connectorx"))
    t(f"adbc {ty}", lambda: pl.read_database_uri(q, url, engine="adbc"))
t("cx parts", lambda: cx.read_sql(
    url, "select g as id, g * 2 as d, g::text s from generate_series(1, 100) g", partition_on="id",
    partition_num=3, return_type="arrow").num_rows)
t("cx binary", lambda: cx.read_sql(url, "select 1 a, 'x' b", protocol="binary", return_type="arrow").to_pydict())
t("cx csv", lambda: cx.read_sql(url, "select 1 a, 'x' b, null::text c", protocol="csv", return_type="arrow").to_pydict())
t("cx cursor", lambda: cx.read_sql(url, "select 1 a, 'x' b", protocol="cursor", return_type="arrow").to_pydict())
t("cx simple", lambda: cx.read_sql(url, "select 1 a, 'x' b", protocol="simple", return_type="arrow").to_pydict())
df = pl.DataFrame({
    "i": [1, 2, None], "b": [True, None, False], "f": [0.5, None, 1e300], "s": ["a", None, "é\n"],
    "d": [dt.date(2024, 1, 1), None, dt.date(1, 1, 1)],
    "ts": [dt.datetime(2024, 1, 1, 1, 2, 3, 4), None, dt.datetime(1969, 12, 31)],
    "y": [b"\x00\xff", None, b""], "n": [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")],
    "l": [[1, 2], None, []], "dur": [dt.timedelta(seconds=1.5), None, dt.timedelta(days=-1)],
    "tm": [dt.time(1, 2, 3), None, dt.time(23, 59)],
})
for mode in ("replace", "append", "fail"):
    t(f"write {mode}", lambda: df.write_database("pl_w", url, engine="adbc", if_table_exists=mode))
t("written", lambda: pl.read_database_uri("select * from pl_w order by i nulls last, s", url, engine="adbc"))
t("alchemy", lambda: df.drop("l", "dur", "y").write_database("pl_a", url.replace("postgresql:", "postgresql+psycopg:"), if_table_exists="replace"))
t("alchemy read", lambda: pl.read_database_uri("select * from pl_a order by i nulls last", url, engine="adbc"))


def with_adbc(f):
    with adbc.connect(url) as c, c.cursor() as cur:
        r = f(c, cur)
        c.commit()
        return r


t("objects", lambda: with_adbc(lambda c, cur: [
    (x["table_name"], x["table_type"], [(y["column_name"], y["ordinal_position"]) for y in x["table_columns"]][:3],
     [(y["constraint_name"], y["constraint_type"], y["constraint_column_names"]) for y in x["table_constraints"]])
    for catalog in c.adbc_get_objects(catalog_filter=url.split("/")[-1]).read_all().to_pylist()
    for schema in catalog["catalog_db_schemas"] if schema["db_schema_name"] == "public"
    for x in sorted(schema["db_schema_tables"], key=lambda x: x["table_name"])]))
t("kinds", lambda: with_adbc(lambda c, cur: sorted(c.adbc_get_table_types())))
t("schema", lambda: with_adbc(lambda c, cur: c.adbc_get_table_schema("pl_types").to_string()))
t("info", lambda: with_adbc(lambda c, cur: c.adbc_get_info()["vendor_name"]))
t("statistics", lambda: with_adbc(lambda c, cur: c.adbc_connection.get_statistics_names() and "ok"))


def params(c, cur):
    cur.execute("select $1::int + 1 a, $2::text b, $3::float8 c", parameters=(1, "x", 0.5))
    one = cur.fetch_arrow_table().to_pydict()
    cur.execute("create table if not exists pl_p (a int, b text)")
    cur.executemany("insert into pl_p values ($1, $2)", [(1, "a"), (2, None)])
    cur.execute("select * from pl_p order by a")
    return one, cur.fetchall()


t("params", lambda: with_adbc(params))
table = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", None]})
for mode in ("create", "append", "replace", "create_append"):
    t(f"ingest {mode}", lambda: with_adbc(lambda c, cur: cur.adbc_ingest("pl_i", table, mode=mode)))
t("ingest temporary", lambda: with_adbc(lambda c, cur: cur.adbc_ingest("pl_t", table, mode="create", temporary=True)))
t("ingest many", lambda: with_adbc(lambda c, cur: cur.adbc_ingest(
    "pl_m", pa.table({"a": list(range(20000)), "s": [f"row {n}" for n in range(20000)]}), mode="replace")))
t("many", lambda: pl.read_database_uri("select count(*), sum(a), max(s) from pl_m", url, engine="adbc"))
t("error", lambda: with_adbc(lambda c, cur: cur.execute("select 1/0")))
t("missing", lambda: with_adbc(lambda c, cur: cur.execute("select * from pl_nowhere")))


def copies():
    out = []
    with psycopg.connect(url) as c, c.cursor() as cur:
        for how in ("", "with csv header", "with (format csv, delimiter '|', quote '''', escape '\\', null 'N', force_quote *)",
                    "with (format text, null '\\N', delimiter e'\\x01')", "with (format binary)"):
            with cur.copy(f"copy (select id, c0, c5, c7, c14, c18 from pl_types order by id) to stdout {how}") as copy:
                out.append(b"".join(bytes(x) for x in copy))
        cur.execute("create temp table tap (id int, doc jsonb, _sdc_extracted_at timestamptz default now()) on commit drop")
        with cur.copy("copy tap (id, doc) from stdin with (format csv, escape '\\')") as copy:
            copy.write('1,"{\\"a\\": [1, 2]}"\n2,\n')
        cur.execute("select id, doc->'a' from tap order by id")
        out.append(cur.fetchall())
    return out


t("copies", copies)
