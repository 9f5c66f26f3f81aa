// pg-promise: helpers, tasks, transactions, several results; each answer on a line.
// usage: node pgpromise.js URL
const pgp = require("pg-promise")({ schema: "public" });
const db = pgp(process.argv[2]);
async function t(name, f) {
  try {
    console.log(
      name,
      JSON.stringify(await f(), (k, v) => (typeof v === "bigint" ? String(v) : v))?.slice(0, 900),
    );
  } catch (e) {
    console.log(
      name,
      "ERR",
      e.name,
      e.code,
      e.message?.slice(0, 300),
      e.constraint ?? "",
      e.detail ?? "",
    );
  }
}
(async () => {
  await t("version", () =>
    db.connect().then((c) => {
      const v = c.client.serverVersion.split(".")[0];
      c.done();
      return v;
    }),
  );
  await t("create", () =>
    db.none(
      "create table pp (id serial primary key, n text unique, d jsonb, a int[], t timestamptz, b bytea)",
    ),
  );
  const cs = new pgp.helpers.ColumnSet(
    ["n", { name: "d", cast: "json" }, { name: "a", cast: "int[]" }],
    { table: "pp" },
  );
  await t("multi", () =>
    db.any(
      pgp.helpers.insert(
        [
          { n: "a", d: { x: "it's" }, a: [1, 2] },
          { n: "b", d: null, a: [] },
        ],
        cs,
      ) + " returning id, n, d, a",
    ),
  );
  await t("update", () =>
    db.any(
      pgp.helpers.update([{ n: "a", d: { y: 1 }, a: [5] }], cs) + " where v.n = t.n returning t.*",
    ),
  );
  await t("named", () =>
    db.one("select ${a} || $<b> as x, ${c:csv} in (1) as y, $<d:json>::jsonb as z", {
      a: "a'",
      b: "\\",
      c: [1],
      d: { q: "'" },
    }),
  );
  await t("prep", () =>
    db.any(
      new pgp.PreparedStatement({
        name: "p1",
        text: "select * from pp where n = $1",
        values: ["a"],
      }),
    ),
  );
  await t("pq", () =>
    db.one(
      new pgp.ParameterizedQuery({
        text: "select $1::int + $2 as s, $3::date as d, $4::bytea b",
        values: [1, 2, "2020-01-01", Buffer.from("x")],
      }),
    ),
  );
  await t("task", () =>
    db.task((k) => k.batch([k.one("select 1 a"), k.any("select g from generate_series(1,3) g")])),
  );
  await t("tx", () =>
    db.tx(
      {
        mode: new pgp.txMode.TransactionMode({
          tiLevel: pgp.txMode.isolationLevel.serializable,
          readOnly: true,
          deferrable: true,
        }),
      },
      (k) =>
        k.one(
          "select current_setting('transaction_isolation') i, current_setting('transaction_read_only') r, current_setting('transaction_deferrable') d",
        ),
    ),
  );
  await t("nested", () =>
    db.tx(async (k) => {
      await k.none("insert into pp(n) values('t')");
      await k
        .tx(async (q) => {
          await q.none("insert into pp(n) values('t')");
        })
        .catch((e) => e.code);
      return k.any("select n from pp order by id");
    }),
  );
  await t("multires", () =>
    db.multi("select 1 a; select 2 b; insert into pp(n) values ('m') returning n"),
  );
  await t("multiResult", () =>
    db
      .multiResult("create temp table q(x int); insert into q values (1),(2); select * from q")
      .then((r) => r.map((x) => [x.command, x.rowCount, x.rows])),
  );
  await t("func", () => db.func("generate_series", [1, 3]));
  await t("proc", () => db.none("select pg_notify('c', 'x')").catch((e) => e.message));
  await t("none", () => db.none("select 1"));
  await t("one", () => db.one("select 1 where false"));
  await t("map", () => db.map("select id, n from pp order by id", [], (r) => r.n));
  await t("err", () => db.any("select * from pp where nope = 1"));
  await t("listen", async () => {
    const c = await db.connect({ direct: true });
    const p = new Promise((r) => c.client.on("notification", (m) => r([m.channel, m.payload])));
    await c.none("LISTEN $1:name", "Chan x");
    await db.none("notify $1:name, $2", ["Chan x", "pay"]);
    const r = await p;
    c.done();
    return r;
  });
  await t("tz", () =>
    db.one("select $1::timestamptz t, $2 n, ${3:raw} x".replace("${3:raw}", "$3:raw"), [
      new Date(0),
      null,
      "1+1",
    ]),
  );
  pgp.end();
})();
