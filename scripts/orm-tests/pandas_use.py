"""pandas.to_sql and read_sql by psycopg 3 and psycopg 2. usage: pandas_use.py URL"""

import sys, io, datetime as dt, decimal
import pandas as pd, numpy as np
from sqlalchemy import create_engine, text, types, inspect
from sqlalchemy.dialects import postgresql as pg

E = create_engine(sys.argv[1].replace("postgresql:", "postgresql+psycopg:"))
E2 = create_engine(sys.argv[1].replace("postgresql:", "postgresql+psycopg2:"))


def t(name, f):
    try:
        print(name, str(f())[:1500])
    except Exception as e:
        print(name, "ERR", type(e).__name__, str(e)[:300].replace("\n", " | "))


df = pd.DataFrame(
    {
        "i": [1, 2, 3],
        "f": [0.5, None, 1e300],
        "s": ["a", None, "é"],
        "b": [True, False, True],
        "d": pd.to_datetime(["2020-01-01", None, "2021-02-03 04:05:06.123456"], format="mixed"),
        "z": pd.to_datetime(["2020-01-01", "2020-01-02", "2021-02-03"]).tz_localize("UTC"),
        "td": [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)],
        "n": [decimal.Decimal("1.5"), None, decimal.Decimal("2")],
    }
)
for name, e in (("p3", E), ("p2", E2)):
    t(name + " to", lambda: df.to_sql("pd_t", e, if_exists="replace", index_label="idx"))
    t(
        name + " app",
        lambda: df.to_sql(
            "pd_t", e, if_exists="append", index_label="idx", method="multi", chunksize=2
        ),
    )
    t(
        name + " rep",
        lambda: df.to_sql(
            "pd_t",
            e,
            if_exists="replace",
            index=False,
            dtype={"n": types.Numeric(10, 2), "s": types.String(5), "i": types.BigInteger},
        ),
    )
    t(name + " del", lambda: df.to_sql("pd_t", e, if_exists="delete_rows", index=False))
    t(name + " fail", lambda: df.to_sql("pd_t", e, if_exists="fail"))
    t(name + " schema", lambda: df.to_sql("pd_s", e, schema="public", if_exists="replace"))
    t(
        name + " read",
        lambda: pd.read_sql("select * from pd_t order by i", e).to_string()
        + str(pd.read_sql("select * from pd_t", e).dtypes.to_dict()),
    )
    t(
        name + " table",
        lambda: pd.read_sql_table(
            "pd_t", e, columns=["i", "d", "z"], index_col="i"
        ).dtypes.to_dict(),
    )
    t(
        name + " chunk",
        lambda: [
            len(c)
            for c in pd.read_sql(
                "select g, g * 1.5 as f, 'x' || g s from generate_series(1, 25) g", e, chunksize=10
            )
        ],
    )
    t(
        name + " params",
        lambda: pd.read_sql(
            text("select :a + 1 as x, cast(:b as date) as y"),
            e,
            params={"a": 1, "b": "2020-01-01"},
            parse_dates=["y"],
        ).to_string(),
    )
    t(
        name + " query",
        lambda: pd.read_sql_query(
            "select date_trunc('month', d) m, count(*) c, avg(f) a, sum(n) s, percentile_cont(0.5) within group (order by i) p from pd_t group by 1 order by 1 nulls last",
            e,
        ).to_string(),
    )
    t(name + " cols", lambda: [(c["name"], str(c["type"])) for c in inspect(e).get_columns("pd_t")])
    t(
        name + " big",
        lambda: pd.DataFrame(np.arange(20000).reshape(-1, 4), columns=list("abcd")).to_sql(
            "pd_b", e, if_exists="replace", index=False, method="multi", chunksize=1000
        ),
    )
    t(
        name + " sum",
        lambda: pd.read_sql("select sum(a) a, sum(d) d, count(*) from pd_b", e).to_string(),
    )


def copy(table, conn, keys, it):
    with conn.connection.cursor() as cur:
        b = io.StringIO()
        import csv

        csv.writer(b).writerows(it)
        b.seek(0)
        cur.copy_expert(f"COPY {table.name} ({', '.join(keys)}) FROM STDIN WITH CSV", b)


t("copy", lambda: df.to_sql("pd_c", E2, if_exists="replace", index=False, method=copy))
t("copied", lambda: pd.read_sql("select * from pd_c order by i", E2).to_string())
