// Kysely: migrations, introspection, queries, each answer on a line.
// usage: node kysely.js URL
const { Kysely, PostgresDialect, sql, Migrator, FileMigrationProvider } = require("kysely");
const { Pool } = require("pg");
const db = new Kysely({
  dialect: new PostgresDialect({ pool: new Pool({ connectionString: process.argv[2] }) }),
});
async function t(name, f) {
  try {
    const r = await f();
    console.log(
      name,
      JSON.stringify(r, (k, v) => (typeof v === "bigint" ? String(v) : v))?.slice(0, 600),
    );
  } catch (e) {
    console.log(name, "ERR", e.code, e.message.slice(0, 300));
  }
}
(async () => {
  await sql`drop table if exists ky_a, ky_m, kysely_migration, kysely_migration_lock cascade`.execute(
    db,
  );
  const fs = require("fs"),
    path = require("path");
  fs.rmSync(process.cwd() + "/kym", { recursive: true, force: true });
  fs.mkdirSync(process.cwd() + "/kym");
  fs.writeFileSync(
    process.cwd() + "/kym/1.js",
    `exports.up=async db=>{await db.schema.createTable('ky_a').addColumn('id','serial',c=>c.primaryKey()).addColumn('n','varchar(20)',c=>c.notNull().unique()).addColumn('v','integer',c=>c.defaultTo(3)).execute(); await db.schema.alterTable('ky_a').alterColumn('v',c=>c.setDataType('bigint')).addColumn('w','jsonb').execute(); await db.schema.createIndex('ky_i').on('ky_a').column('v desc').execute();};exports.down=async db=>{await db.schema.dropTable('ky_a').execute()}`,
  );
  const m = new Migrator({
    db,
    provider: new FileMigrationProvider({
      fs: fs.promises,
      path,
      migrationFolder: process.cwd() + "/kym",
    }),
  });
  await t("up", () =>
    m
      .migrateToLatest()
      .then((r) => [r.error?.message, r.results?.map((x) => [x.migrationName, x.status])]),
  );
  await t("ins", () =>
    db
      .insertInto("ky_a")
      .values([
        { n: "a", w: JSON.stringify({ x: 1 }) },
        { n: "b", v: 9 },
      ])
      .returningAll()
      .execute(),
  );
  await t("intro", () =>
    db.introspection.getTables().then((r) => r.filter((x) => x.name === "ky_a")),
  );
  await t("schemas", () =>
    db.introspection.getSchemas().then((r) => r.map((x) => x.name).filter((x) => x === "public")),
  );
  await t("conf", () =>
    db
      .insertInto("ky_a")
      .values({ n: "a", v: 1 })
      .onConflict((o) => o.column("n").doUpdateSet((e) => ({ v: e.ref("excluded.v") })))
      .returning(["id", "v"])
      .executeTakeFirst(),
  );
  await t("json", () =>
    db
      .selectFrom("ky_a")
      .select((e) => [
        "n",
        e.ref("w", "->").key("x").as("x"),
        sql`jsonb_agg(n) over (order by n)`.as("all"),
      ])
      .orderBy("n")
      .execute(),
  );
  await t("case", () =>
    db
      .selectFrom("ky_a")
      .select((e) => e.case().when("v", ">", 5).then("big").else("small").end().as("k"))
      .orderBy("id")
      .execute(),
  );
  await t("merge", () =>
    db
      .mergeInto("ky_a as t")
      .using(sql`(values ('a',7),('z',8))`.as(sql`s(n,v)`), "t.n", "s.n")
      .whenMatched()
      .thenUpdateSet({ v: (e) => e.ref("s.v") })
      .whenNotMatched()
      .thenInsertValues({ n: sql`s.n`, v: sql`s.v` })
      .execute()
      .then((r) => r.map((x) => x.numChangedRows)),
  );
  await t("lat", () =>
    db
      .selectFrom("ky_a as a")
      .innerJoinLateral(
        (e) =>
          e
            .selectFrom("ky_a as b")
            .whereRef("b.id", "<=", "a.id")
            .select((q) => q.fn.countAll().as("c"))
            .as("l"),
        (j) => j.onTrue(),
      )
      .select(["a.n", "l.c"])
      .orderBy("a.id")
      .execute(),
  );
  await t("tx", () =>
    db
      .transaction()
      .setIsolationLevel("serializable")
      .execute((x) => x.deleteFrom("ky_a").where("n", "=", "z").returning("n").execute()),
  );
  await t("down", () =>
    m.migrateDown().then((r) => [r.error?.message, r.results?.map((x) => x.status)]),
  );
  await db.destroy();
})();
