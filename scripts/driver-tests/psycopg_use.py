"""psycopg 3 as an application uses it. usage: psycopg_use.py URL"""
import asyncio, datetime as dt, decimal, json, sys, threading, time, uuid

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

URL = sys.argv[1]
VALUES = [
    ("int4", 7), ("int8", 2**62), ("float8", 1.5), ("numeric", decimal.Decimal("1.50")),
    ("text", "é'\\ x"), ("bool", True), ("bytea", b"\x00\xff"), ("date", dt.date(2024, 2, 29)),
    ("timestamp", dt.datetime(2024, 2, 29, 1, 2, 3, 456)), ("time", dt.time(1, 2, 3)),
    ("timestamptz", dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)),
    ("interval", dt.timedelta(days=3, seconds=4)), ("uuid", uuid.UUID(int=5)),
    ("int4[]", [1, None, 3]), ("text[]", ["a b", None, "c"]), ("int4", None),
]


def types(c):
    for binary in (False, True):
        for name, value in VALUES:
            cur = c.cursor(binary=binary)
            got = cur.execute(f"select %s::{name}", [value]).fetchone()[0]
            assert got == value, (name, binary, value, got)
            got = cur.execute(f"select %b::{name}", [value]).fetchone()[0] if value is not None else None
            assert got == value, (name, binary, value, got)
    from psycopg.types.json import Jsonb
    got = c.execute("select %s::jsonb", [Jsonb({"a": [1, 2.5, None]})]).fetchone()[0]
    assert got == {"a": [1, 2.5, None]}, got


def statements(c):
    c.execute("drop table if exists drv")
    c.execute("create table drv (id int primary key, v text, n numeric)")
    cur = c.cursor()
    cur.executemany("insert into drv values (%s, %s, %s)", [(i, f"v{i}", i) for i in range(50)])
    assert cur.rowcount == 50, cur.rowcount
    cur.executemany("insert into drv values (%s, 'x', 1) returning id", [(50,), (51,)], returning=True)
    got = []
    while True:
        got.append(cur.fetchone()[0])
        if not cur.nextset():
            break
    assert got == [50, 51], got
    for _ in range(8):  # prepared from the sixth on
        assert c.execute("select v from drv where id = %s", [3]).fetchone() == ("v3",)
    with c.cursor(row_factory=dict_row) as d:
        assert d.execute("select id, v from drv where id = 1").fetchone() == {"id": 1, "v": "v1"}
    q = sql.SQL("select count(*) from {}").format(sql.Identifier("drv"))
    assert c.execute(q).fetchone()[0] == 52
    cur = c.execute("update drv set n = n + 1 where id < 10")
    assert (cur.rowcount, cur.statusmessage) == (10, "UPDATE 10")
    cur = c.cursor()
    cur.execute("select 1; select 'two'")
    assert cur.fetchone() == (1,) and cur.nextset() and cur.fetchone() == ("two",)
    cur = c.execute("select id, v, n from drv where false")
    assert [d.name for d in cur.description] == ["id", "v", "n"]
    assert [d.type_code for d in cur.description] == [23, 25, 1700]
    assert c.execute("select * from drv where id = any(%s) order by 1", [[1, 2]]).fetchall()[1][0] == 2


def errors(c):
    for text, kind in [
        ("select 1/0", psycopg.errors.DivisionByZero),
        ("insert into drv values (1)", psycopg.errors.UniqueViolation),
        ("select nope", psycopg.errors.UndefinedColumn),
        ("select * from nope", psycopg.errors.UndefinedTable),
        ("selec 1", psycopg.errors.SyntaxError),
    ]:
        try:
            c.execute(text)
            raise AssertionError(text)
        except kind as e:
            assert e.diag.severity == "ERROR" and e.diag.message_primary
    try:
        c.execute("insert into drv values (1)")
    except psycopg.errors.UniqueViolation as e:
        assert e.diag.constraint_name == "drv_pkey" and e.diag.table_name == "drv", vars(e.diag)


def transactions():
    for level in psycopg.IsolationLevel:
        with psycopg.connect(URL) as c:
            c.isolation_level = level
            with c.transaction():
                c.execute("update drv set v = 'a' where id = 1")
                try:
                    with c.transaction():
                        c.execute("update drv set v = 'b' where id = 1")
                        c.execute("select 1/0")
                except psycopg.errors.DivisionByZero:
                    pass
                assert c.execute("select v from drv where id = 1").fetchone() == ("a",)
            shown = c.execute("show transaction_isolation").fetchone()[0]
            assert shown.replace(" ", "_").upper() in (level.name, "READ_COMMITTED"), (shown, level)
            c.rollback()
    with psycopg.connect(URL) as c:
        c.read_only = True
        try:
            c.execute("delete from drv")
            raise AssertionError("read only")
        except psycopg.errors.ReadOnlySqlTransaction:
            c.rollback()
    with psycopg.connect(URL, autocommit=True) as c:
        try:
            with c.transaction(force_rollback=True):
                c.execute("delete from drv")
        finally:
            assert c.execute("select count(*) from drv").fetchone()[0] == 52


def cursors(c):
    with c.transaction(), c.cursor(name="portal") as cur:
        cur.itersize = 7
        cur.execute("select id from drv order by id")
        assert [r[0] for r in cur] == list(range(52))
    with c.transaction(), c.cursor(name="held", scrollable=True) as cur:
        cur.execute("select id from drv order by id")
        assert cur.fetchmany(3)[-1][0] == 2
        cur.scroll(10, mode="absolute")
        assert cur.fetchone()[0] == 10


def streams(c):
    rows = list(c.cursor().stream("select id from drv order by id"))
    assert len(rows) == 52


def copies(c):
    c.execute("drop table if exists drvc")
    c.execute("create table drvc (a int, b text, c timestamptz)")
    now = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    with c.cursor() as cur:
        with cur.copy("copy drvc from stdin") as copy:
            for i in range(1000):
                copy.write_row((i, None if i % 7 == 0 else f"t\t{i}\\", now))
        with cur.copy("copy drvc from stdin (format binary)") as copy:
            copy.set_types(["int4", "text", "timestamptz"])
            for i in range(1000, 2000):
                copy.write_row((i, f"b{i}", now))
        with cur.copy("copy (select * from drvc order by a) to stdout") as copy:
            copy.set_types(["int4", "text", "timestamptz"])
            rows = list(copy.rows())
        assert len(rows) == 2000 and rows[8] == (8, "t\t8\\", now) and rows[7][1] is None, rows[8]
        with cur.copy("copy drvc to stdout (format binary)") as copy:
            copy.set_types(["int4", "text", "timestamptz"])
            assert len(list(copy.rows())) == 2000
        try:
            with cur.copy("copy drvc from stdin") as copy:
                copy.write_row((1, "x", now))
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        try:
            with cur.copy("copy drvc from stdin") as copy:
                copy.write("not a number\tx\t\\N\n")
        except psycopg.errors.InvalidTextRepresentation as e:
            assert "drvc" in (e.diag.context or e.diag.message_detail), vars(e.diag)
        assert cur.execute("select count(*) from drvc").fetchone()[0] == 2000


def pipelines(c):
    with c.pipeline() as p:
        a = c.execute("select 1")
        b = c.execute("select v from drv where id = %s", [2])
        p.sync()
        assert a.fetchone() == (1,) and b.fetchone() == ("v2",)
    try:
        with c.pipeline():
            c.execute("select 1")
            bad = c.execute("select 1/0")
            c.execute("select 2")
    except psycopg.errors.DivisionByZero:
        pass
    assert c.execute("select 3").fetchone() == (3,)
    with c.pipeline(), c.transaction():
        for i in range(200):
            c.execute("insert into drv values (%s, 'p', 0)", [1000 + i])
    assert c.execute("delete from drv where id >= 1000").rowcount == 200


def cancels(c):
    long = "select count(*) from generate_series(1, 10000) a, generate_series(1, 1000000) b"
    threading.Timer(0.3, c.cancel).start()
    begun = time.time()
    try:
        c.execute(long)
        raise AssertionError("not cancelled")
    except psycopg.errors.QueryCanceled:
        assert time.time() - begun < 10
    c.execute("set statement_timeout = '200ms'")
    try:
        c.execute("select count(*) from drvc a, drvc b, drvc c")
        raise AssertionError("not timed out")
    except psycopg.errors.QueryCanceled:
        pass
    c.execute("reset statement_timeout")
    assert c.execute("select 1").fetchone() == (1,)


def session(c):
    c.execute("deallocate all")
    for _ in range(8):
        c.execute("select v from drv where id = %s", [3])
    c.execute("discard all")
    assert c.execute("select v from drv where id = %s", [3]).fetchone() == ("v3",)
    c.execute("set timezone = 'Europe/Berlin'")
    assert c.info.parameter_status("TimeZone") == "Europe/Berlin"
    got = c.execute("select '2024-07-01 00:00+00'::timestamptz").fetchone()[0]
    assert got.utcoffset() == dt.timedelta(hours=2)
    notices = []
    c.add_notice_handler(lambda d: notices.append(d.message_primary))
    c.execute("drop table if exists nothing_here")
    assert notices, "a NOTICE"


def described(c):
    """Of which table and column each result column is said to be."""
    c.execute("drop table if exists described cascade")
    c.execute("create table described (a int primary key, b text)")
    c.execute("create view described_view as select b, count(*) as n from described group by b")
    names = dict(c.execute("select oid, relname from pg_class").fetchall())
    t = "described"
    for query, want in [
        (f"select b, count(*) from {t} group by b", [(t, 2), None]),
        (f"select d.b, e.a from {t} d join {t} e using (a) group by 1, 2", [(t, 2), (t, 1)]),
        (f"select b from {t} group by rollup (b)", [(t, 2)]),
        (f"select x.z, x.a + 1 from (select b as z, a from {t}) x", [(t, 2), None]),
        (f"with w as (select a, b from {t}) select b, a from w", [(t, 2), (t, 1)]),
        ("select * from described_view", [("described_view", 1), ("described_view", 2)]),
        ("select relname, oid from pg_class", [("pg_class", 2), ("pg_class", 1)]),
        ("select table_name from information_schema.tables", [("tables", 3)]),
        (f"select a from {t} union select a from {t}", [None]),
        (f"select max(a) over (), b from {t}", [None, (t, 2)]),
    ]:
        said = c.execute(query).pgresult
        got = [(names.get(said.ftable(at)), said.ftablecol(at)) for at in range(said.nfields)]
        assert [one if one[1] else None for one in got] == want, (query, got)
    c.execute("drop table described cascade")


async def asynchronous():
    async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as c:
        async with c.pipeline():
            got = [await c.execute("select %s::int", [i]) for i in range(20)]
        assert [(await g.fetchone())[0] for g in got] == list(range(20))


with psycopg.connect(URL, autocommit=True) as c:
    failed = 0
    steps = (types, statements, described, errors, cursors, streams, copies, pipelines, cancels,
             session)
    for step in steps:
        try:
            step(c)
        except psycopg.errors.FeatureNotSupported as e:
            print("psycopg", step.__name__, "not supported:", e.diag.message_primary)
        except Exception as e:  # one step may fail without the others
            import traceback
            failed += 1
            print("psycopg", step.__name__, "FAILED:", type(e).__name__, e)
            traceback.print_exc(limit=-2)
    for step in (transactions, lambda: asyncio.run(asynchronous())):
        try:
            step()
        except Exception as e:
            import traceback
            failed += 1
            print("psycopg", "FAILED:", type(e).__name__, e)
            traceback.print_exc(limit=-2)
    print(f"psycopg {psycopg.__version__}: 12 steps, {failed} failed")
    sys.exit(failed > 0)
