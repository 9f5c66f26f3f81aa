// postgres.js: types, inserts, transactions, cursors, COPY, LISTEN, cancel; each answer on a line.
// usage: node postgresjs.js URL
const postgres = require("postgres");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");
const url = process.argv[2];
const notices = [];
const sql = postgres(url, { max: 4, onnotice: (n) => notices.push([n.code, n.message]) });
async function t(name, f) {
  try {
    const r = await f();
    console.log(
      name,
      JSON.stringify(r, (k, v) => (typeof v === "bigint" ? String(v) + "n" : v))?.slice(0, 900),
    );
  } catch (e) {
    console.log(
      name,
      "ERR",
      e.code,
      e.message.slice(0, 300),
      e.constraint_name ?? "",
      e.table_name ?? "",
      e.column_name ?? "",
      e.detail ?? "",
      e.hint ?? "",
    );
  }
}
(async () => {
  await t("notice", async () => {
    await sql`drop table if exists pj_nope`;
    return notices;
  });
  await t("schema", () =>
    sql
      .unsafe(
        `
    create type pj_mood as enum ('sad', 'ok', 'happy');
    create type pj_pair as (a int, b text);
    create table pj_owner (id int generated always as identity primary key, name text not null unique, mood pj_mood default 'ok');
    create table pj_all (id bigserial primary key, owner_id int references pj_owner on delete cascade,
      b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric(20,5), t text, vc varchar(5), c char(4),
      by bytea, d date, tm time, ts timestamp, tz timestamptz, iv interval, u uuid, j json, jb jsonb,
      m pj_mood, ia int[], ta text[], ma pj_mood[], na numeric[], ja jsonb[], tza timestamptz[], p pj_pair, ip inet, r int4range, pt point);
  `,
      )
      .then((r) => r.map?.((x) => x.command)),
  );
  await t(
    "owners",
    () =>
      sql`insert into pj_owner ${sql([
        { name: "a", mood: "sad" },
        { name: "b", mood: "happy" },
      ])} returning *`,
  );
  const row = {
    owner_id: 1,
    b: true,
    i2: -3,
    i4: 7,
    i8: "9007199254740993",
    f4: 1.5,
    f8: 0.1,
    n: "123456789012345.12345",
    t: "é'\\\"",
    vc: "vc",
    c: "c",
    by: Buffer.from([0, 255]),
    d: "2020-02-29",
    tm: "01:02:03.004",
    ts: new Date("2019-02-03T04:05:06.789Z"),
    tz: new Date("2019-02-03T04:05:06.789Z"),
    iv: "1 year 2 mons 3 days 04:05:06.7",
    u: "00000000-0000-0000-0000-000000000005",
    j: sql.json({ a: [1, null] }),
    jb: sql.json({ b: "x" }),
    m: "happy",
    ia: [1, 2, 3],
    ta: ["a b", '"', null, "\\"],
    ma: "{sad}",
    na: ["1.50"],
    ja: sql.array([sql.json ? { a: 1 } : 0], 3807),
    p: '(1,"x y")',
    ip: "10.0.0.1/8",
    r: "[1,5)",
    pt: "(1,2)",
  };
  await t("all", () => sql`insert into pj_all ${sql(row)} returning *`);
  for (const k of Object.keys(row))
    await t("one_" + k, () => sql`insert into pj_all ${sql({ [k]: row[k] })} returning ${sql(k)}`);
  await t("columns", () =>
    sql`select * from pj_all where id = 1`.then((r) =>
      r.columns.map((c) => [c.name, c.type > 16000 ? "user" : c.type]),
    ),
  );
  await t("describe", () =>
    sql`select id, m, $1::int + i4 as s from pj_all where t = ${"x"} and n > ${1} and m = any(${["sad"]})`
      .describe()
      .then((r) => [
        r.types.map((x) => (x > 16000 ? "u" : x)),
        r.columns.map((c) => [c.name, c.number, c.table > 0]),
      ])
      .catch((e) => e.message),
  );
  await t("describe2", () =>
    sql`select id, t from pj_all where t = ${"x"} and n > ${1}`
      .describe()
      .then((r) => [r.types, r.columns.map((c) => [c.name, c.number, c.table > 0])]),
  );
  await t(
    "upsert",
    () =>
      sql`insert into pj_owner ${sql({ name: "a", mood: "ok" })} on conflict (name) do update set mood = excluded.mood returning id, name, mood`,
  );
  await t(
    "update",
    () =>
      sql`update pj_owner set ${sql({ mood: "sad" }, "mood")} where id in ${sql([1, 2])} returning id, mood`,
  );
  await t(
    "values",
    () =>
      sql`select * from (values ${sql([
        [1, "x"],
        [2, "y"],
      ])}) v(a, b)`,
  );
  await t(
    "unnest",
    () =>
      sql`insert into pj_owner (name) select * from unnest(${sql.array(["u1", "u2"])}::text[]) returning name`,
  );
  await t("in", () => sql`select name from pj_owner where id = any(${[1, 3]}) order by 1`);
  await t(
    "dyn",
    () =>
      sql`select ${sql(["id", "name"])} from ${sql("pj_owner")} where true ${sql`and id > ${1}`} order by id limit ${2} offset ${1}`,
  );
  await t("raw", () =>
    sql`select 1 a, 'x' b`.raw().then((r) => r.map((x) => x.map((y) => y.toString()))),
  );
  await t("valuesr", () => sql`select id, name from pj_owner order by id`.values());
  await t("simple", () =>
    sql`select 1 as a; select 2 as b, 3 as c`.simple().then((r) => r.map((x) => [...x])),
  );
  await t("unique", () => sql`insert into pj_owner (name) values ('a')`);
  await t("fk", () => sql`insert into pj_all (owner_id) values (99)`);
  await t("notnull", () => sql`insert into pj_owner (name) values (null)`);
  await t("long", () => sql`insert into pj_all (vc) values ('too long')`);
  await t("syntax", () => sql`selec 1`);
  await t("badenum", () => sql`insert into pj_owner (name, mood) values ('q', ${"angry"})`);
  await t("tx", () =>
    sql.begin(async (s) => {
      await s`insert into pj_owner (name) values ('tx')`;
      await s
        .savepoint(async (s2) => {
          await s2`insert into pj_owner (name) values ('sp')`;
          throw new Error("back");
        })
        .catch(() => 0);
      await s
        .savepoint("named", async (s2) => {
          await s2`insert into pj_owner (name) values ('tx')`;
        })
        .catch((e) => e.code);
      return s`select name from pj_owner where name in ('tx', 'sp')`;
    }),
  );
  await t("txpipe", () =>
    sql.begin((s) => [
      s`select 1 as x`,
      s`insert into pj_owner (name) values ('pipe') returning name`,
      s`select count(*)::int from pj_owner`,
    ]),
  );
  await t("txback", () =>
    sql.begin(async (s) => {
      await s`insert into pj_owner (name) values ('gone')`;
      await s`select 1/0`;
    }),
  );
  await t("txlevel", () =>
    sql.begin(
      "isolation level repeatable read read only",
      (s) =>
        s`select current_setting('transaction_isolation') i, current_setting('transaction_read_only') r`,
    ),
  );
  await t("cursor", async () => {
    const got = [];
    await sql`select g from generate_series(1, 25) g`.cursor(10, (rows) => {
      got.push(rows.length);
    });
    return got;
  });
  await t("cursor2", async () => {
    const got = [];
    for await (const r of sql`select g from generate_series(1, 25) g`.cursor(10)) {
      got.push(r.length);
      if (got.length == 2) break;
    }
    return got;
  });
  await t("foreach", async () => {
    let n = 0;
    const r = await sql`select g from generate_series(1, 50) g`.forEach((x) => {
      n += x.g;
    });
    return [n, r.count];
  });
  await t("copyin", async () => {
    const w = await sql`copy pj_owner (name, mood) from stdin`.writable();
    await pipeline(Readable.from(["c1\tsad\n", "c2\t\\N\n"]), w);
    return sql`select name, mood from pj_owner where name like 'c_' order by 1`;
  });
  await t("copyout", async () => {
    const r =
      await sql`copy (select id, name, mood from pj_owner order by id limit 3) to stdout`.readable();
    let s = "";
    for await (const c of r) s += c;
    return s;
  });
  // A COPY that the server ends with an error never settles in postgres.js 3.4.9, on either server.
  await t("listen", async () => {
    const got = [];
    let ok;
    const l = await sql.listen("pj_chan", (x) => {
      got.push(x);
      if (got.length == 2) ok();
    });
    const done = new Promise((r) => {
      ok = r;
    });
    await sql.notify("pj_chan", "one");
    await sql`select pg_notify('pj_chan', 'two')`;
    await done;
    await l.unlisten();
    return got;
  });
  await t("cancel", async () => {
    const q = sql`select pg_sleep(20)`;
    setTimeout(() => q.cancel(), 200);
    return q;
  });
  await t("ddl", async () => {
    const q = () => sql`select * from pj_owner where id = ${1}`;
    await q();
    await sql`alter table pj_owner add column extra int default 5`;
    const s = postgres(url, { max: 1 });
    try {
      await s`select * from pj_owner where id = ${1}`;
      await sql`alter table pj_owner add column more text default 'm'`;
      return await s`select * from pj_owner where id = ${1}`;
    } finally {
      await s.end();
    }
  });
  await t("many", async () => {
    const rs = await Promise.all([...Array(100).keys()].map((i) => sql`select ${i}::int as i`));
    return rs.reduce((a, r) => a + r[0].i, 0);
  });
  await t("bulk", async () => {
    const rows = [...Array(2000).keys()].map((i) => ({ name: "bulk" + i, mood: "ok" }));
    const r = await sql`insert into pj_owner ${sql(rows, "name", "mood")}`;
    return [r.count, r.command];
  });
  await t(
    "join",
    () =>
      sql`select o.name, count(a.id)::int n, array_agg(a.i4 order by a.id) x, json_agg(a.jb order by a.id) j from pj_owner o left join pj_all a on a.owner_id = o.id group by o.id having count(*) < 5 order by o.id limit 3`,
  );
  await t("transform", async () => {
    const s = postgres(url, { max: 1, transform: postgres.camel });
    try {
      return await s`select owner_id, i4 from pj_all where id = 1`;
    } finally {
      await s.end();
    }
  });
  await t("bigint", async () => {
    const s = postgres(url, { max: 1, types: { bigint: postgres.BigInt } });
    try {
      return await s`select ${9007199254740993n} as b, i8 from pj_all where id = 1`;
    } finally {
      await s.end();
    }
  });
  await t("params", async () => {
    const s = postgres(url, {
      max: 1,
      connection: {
        application_name: "pj",
        search_path: "pg_catalog, public",
        statement_timeout: 300,
      },
    });
    try {
      return [
        await s`show application_name`,
        await s`show search_path`,
        await s`select pg_sleep(2)`.catch((e) => e.code),
      ];
    } finally {
      await s.end();
    }
  });
  await t("noprepare", async () => {
    const s = postgres(url, { max: 1, prepare: false });
    try {
      return await s`select ${"a"}::text || ${"b"} as x, ${[1, 2]}::int[] as y`;
    } finally {
      await s.end();
    }
  });
  await t(
    "file",
    () =>
      sql`select ${sql.typed("2020-01-01", 1082)} as d, ${null}::int as n, ${true} as b, ${1.5}::float8 as f`,
  );
  await t("subscribe", async () =>
    sql
      .subscribe("*", () => 0)
      .then((s) => "ok")
      .catch((e) => {
        throw e;
      }),
  );
  await sql.end({ timeout: 2 });
  process.exit(0);
})();
