"""asyncpg as an application uses it. usage: asyncpg_use.py URL"""
import asyncio, datetime as dt, decimal, io, sys, traceback, uuid

import asyncpg

URL = sys.argv[1]


async def types(c):
    for name, value in [
        ("int2", -3), ("int4", 7), ("int8", 2**62), ("float4", 1.5), ("float8", 0.1),
        ("numeric", decimal.Decimal("-12345.6789")), ("text", "é'\\"), ("varchar", "v"),
        ("bool", False), ("bytea", b"\0\xff"), ("date", dt.date(2024, 2, 29)),
        ("time", dt.time(1, 2, 3)), ("timestamp", dt.datetime(2024, 2, 29, 1)),
        ("timestamptz", dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc)),
        ("interval", dt.timedelta(days=3, seconds=4)), ("uuid", uuid.UUID(int=5)),
        ("int4[]", [1, None, 3]), ("text[]", ["a b", None]), ("jsonb", '{"a": [1]}'),
        ("numeric[]", [decimal.Decimal("1.50")]), ("date[]", [dt.date(1, 1, 1)]),
    ]:
        for v in (value, None):
            got = await c.fetchval(f"select $1::{name}", v)
            assert got == v, (name, v, got)
    row = await c.fetchrow("select 1 as a, 'x' as b")
    assert dict(row) == {"a": 1, "b": "x"}
    await c.set_type_codec("jsonb", encoder=__import__("json").dumps,
                           decoder=__import__("json").loads, schema="pg_catalog")
    assert await c.fetchval("select $1::jsonb", {"a": 1}) == {"a": 1}


async def statements(c):
    await c.execute("drop table if exists apg; create table apg (id int primary key, v text)")
    await c.executemany("insert into apg values ($1, $2)", [(i, f"v{i}") for i in range(500)])
    st = await c.prepare("select v from apg where id = $1")
    assert [await st.fetchval(i) for i in (1, 2, 3)] == ["v1", "v2", "v3"]
    assert [a.name for a in st.get_attributes()] == ["v"]
    assert [p.name for p in st.get_parameters()] == ["int4"]
    assert await c.execute("update apg set v = 'z' where id < 5") == "UPDATE 5"
    await c.execute("alter table apg add column n int")
    assert len(await c.fetchrow("select * from apg where id = 1")) == 3
    rows = await c.fetchmany("insert into apg values ($1, 'r') returning id", [(900,), (901,)])
    assert [r["id"] for r in rows] == [900, 901]


async def cursors(c):
    async with c.transaction():
        got = [r["id"] async for r in c.cursor("select id from apg order by id", prefetch=50)]
        assert len(got) == 502 and got[0] == 0
        cur = await c.cursor("select id from apg order by id")
        assert len(await cur.fetch(10)) == 10
        await cur.forward(5)
        assert (await cur.fetchrow())["id"] == 15


async def transactions(c):
    for level in ("serializable", "repeatable_read", "read_committed"):
        async with c.transaction(isolation=level):
            assert await c.fetchval("show transaction_isolation") == level.replace("_", " ")
            try:
                async with c.transaction():
                    await c.execute("delete from apg")
                    await c.fetchval("select 1/0")
            except asyncpg.DivisionByZeroError:
                pass
            assert await c.fetchval("select count(*) from apg") == 502
    try:
        async with c.transaction(readonly=True):
            await c.execute("delete from apg")
        raise AssertionError("read only")
    except asyncpg.ReadOnlySQLTransactionError:
        pass


async def copies(c):
    await c.execute("drop table if exists apgc; create table apgc (a int, b text, c numeric)")
    rows = [(i, None if i % 9 == 0 else f"t\t{i}", decimal.Decimal(i) / 4) for i in range(3000)]
    assert await c.copy_records_to_table("apgc", records=rows) == "COPY 3000"
    out = io.BytesIO()
    assert await c.copy_from_query("select * from apgc order by a", output=out) == "COPY 3000"
    assert out.getvalue().count(b"\n") == 3000
    out.seek(0)
    assert await c.copy_to_table("apgc", source=out) == "COPY 3000"
    out = io.BytesIO()
    await c.copy_from_table("apgc", output=out, format="csv", header=True)
    assert out.getvalue().startswith(b"a,b,c\n")
    try:
        await c.copy_to_table("apgc", source=io.BytesIO(b"x\ty\tz\n"))
        raise AssertionError("bad copy")
    except asyncpg.InvalidTextRepresentationError:
        pass
    assert await c.fetchval("select count(*) from apgc") == 6000


async def cancels(c):
    long = "select count(*) from generate_series(1, 10000) a, generate_series(1, 1000000) b"
    try:
        await asyncio.wait_for(c.fetchval(long), 0.5)
        raise AssertionError("not cancelled")
    except asyncio.TimeoutError:
        pass
    assert await c.fetchval("select 1") == 1
    try:
        await c.fetch(long, timeout=0.3)
    except asyncio.TimeoutError:
        pass
    assert await c.fetchval("select 2") == 2


async def pools(_):
    async with asyncpg.create_pool(URL, min_size=2, max_size=8) as pool:
        async def one(i):
            async with pool.acquire() as c:
                return await c.fetchval("select v from apg where id = $1", 100 + i % 10)
        got = await asyncio.gather(*(one(i) for i in range(200)))
        assert got[3] == "v103"
    # The pool resets its connections when they come back.




async def main():
    c = await asyncpg.connect(URL)
    failed = 0
    steps = (types, statements, cursors, transactions, copies, cancels, pools)
    for step in steps:
        try:
            await step(c)
        except Exception as e:
            failed += 1
            print("asyncpg", step.__name__, "FAILED:", type(e).__name__, e)
            traceback.print_exc(limit=-2)
            if c.is_closed():
                c = await asyncpg.connect(URL)
    print(f"asyncpg {asyncpg.__version__}: {len(steps)} steps, {failed} failed")
    return failed > 0


sys.exit(asyncio.run(main()))
