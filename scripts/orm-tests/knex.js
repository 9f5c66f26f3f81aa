// "knex": its schema builder, queries and migrations, each answer on a line.
// usage: node knex.js URL
const url = process.argv[2];
const knex = require("knex")({ client: "pg", connection: url });
let n = 0;
async function t(name, f) {
  try {
    const r = await f();
    console.log(name, JSON.stringify(r)?.slice(0, 600));
  } catch (e) {
    console.log(name, "ERR", e.code, e.message.slice(0, 300));
  }
}
(async () => {
  for (const x of ["books", "tags", "authors", "kt"])
    await knex.raw(`drop table if exists ${x} cascade`);
  await t("create", () =>
    knex.schema.createTable("authors", (t) => {
      t.increments("id");
      t.string("name", 50).notNullable().index();
      t.uuid("u").defaultTo(knex.raw("gen_random_uuid()"));
      t.enu("kind", ["a", "b"], { useNative: true, enumName: "kind_t" });
      t.jsonb("j").defaultTo("{}");
      t.timestamps(true, true);
      t.decimal("d", 8, 2);
      t.specificType("arr", "text[]");
      t.binary("b");
      t.float("f");
      t.double("dd");
      t.time("tm");
      t.date("dt");
      t.comment("the authors");
    }),
  );
  await t("create2", () =>
    knex.schema
      .createTable("books", (t) => {
        t.bigIncrements();
        t.integer("author_id").unsigned().references("id").inTable("authors").onDelete("CASCADE");
        t.string("title");
        t.unique(["author_id", "title"]);
        t.check("?? <> ??", ["title", "title2"].slice(0, 0)).catch;
      })
      .catch(() =>
        knex.schema.createTable("books", (t) => {
          t.bigIncrements();
          t.integer("author_id").unsigned().references("id").inTable("authors").onDelete("CASCADE");
          t.string("title");
          t.unique(["author_id", "title"]);
          t.integer("pages").checkPositive();
        }),
      ),
  );
  await t("ins", () =>
    knex("authors")
      .insert([
        {
          name: "x",
          kind: "a",
          j: { a: 1 },
          arr: ["p", "q"],
          b: Buffer.from("abc"),
          d: "1.5",
          dt: "2020-01-02",
          tm: "10:11:12",
        },
        { name: "y", kind: "b" },
      ])
      .returning(["id", "name", "j", "arr", "d", "tm"]),
  );
  await t("ins2", () =>
    knex("books")
      .insert([
        { author_id: 1, title: "t1", pages: 3 },
        { author_id: 1, title: "t2", pages: 4 },
        { author_id: 2, title: "t1", pages: 5 },
      ])
      .returning("id"),
  );
  await t("upsert", () =>
    knex("books")
      .insert({ author_id: 1, title: "t1", pages: 33 })
      .onConflict(["author_id", "title"])
      .merge(["pages"])
      .returning("*"),
  );
  await t("join", () =>
    knex("books as b")
      .join("authors as a", "a.id", "b.author_id")
      .select("a.name", knex.raw("count(*)::int c"))
      .groupBy("a.id")
      .orderBy("a.id"),
  );
  await t("with", () =>
    knex
      .with("w", knex("books").where("pages", ">", 4))
      .select("title")
      .from("w")
      .orderBy("title"),
  );
  await t("json", () => knex("authors").whereJsonPath("j", "$.a", "=", 1).select("id"));
  await t("jsonsup", () => knex("authors").whereJsonSupersetOf("j", { a: 1 }).select("id"));
  await t("jsonext", () => knex("authors").jsonExtract("j", "$.a", "aa").orderBy("id"));
  await t("jsonset", () => knex("authors").jsonSet("j", "$.b", "2", "bb").orderBy("id"));
  await t("colinfo", () => knex("authors").columnInfo());
  await t("hasTable", () => knex.schema.hasTable("books"));
  await t("hasColumn", () => knex.schema.hasColumn("books", "pages"));
  await t("alter", () =>
    knex.schema.alterTable("books", (t) => {
      t.bigInteger("author_id").notNullable().alter();
      t.text("title").notNullable().defaultTo("none").alter();
      t.renameColumn("pages", "page_count");
      t.integer("extra").after("title");
      t.dropUnique(["author_id", "title"]);
      t.index(["title", "page_count"], "idx_tp", {
        indexType: "btree",
        predicate: knex.whereNotNull("title"),
      });
    }),
  );
  await t("alter2", () =>
    knex.schema.alterTable("authors", (t) => {
      t.string("name", 20).alter();
      t.dropColumn("f");
      t.dropTimestamps();
      t.setNullable("name");
      t.dropNullable("name");
      t.dropIndex("name");
    }),
  );
  await t("alterid", () =>
    knex.schema.alterTable("books", (t) => {
      t.string("id").notNullable().alter({ alterNullable: false });
    }),
  );
  await t("droppk", () =>
    knex.schema.alterTable("books", (t) => {
      t.dropPrimary();
    }),
  );
  await t("addpk", () =>
    knex.schema.alterTable("books", (t) => {
      t.primary(["author_id", "title"], { constraintName: "bpk" });
    }),
  );
  await t("dropfk", () =>
    knex.schema.alterTable("books", (t) => {
      t.dropForeign("author_id");
    }),
  );
  await t("addfk", () =>
    knex.schema.alterTable("books", (t) => {
      t.foreign("author_id").references("authors.id").deferrable("deferred").onUpdate("CASCADE");
    }),
  );
  await t("addinc", () =>
    knex.schema.alterTable("books", (t) => {
      t.increments("nr", { primaryKey: false });
      t.timestamp("at", { useTz: false, precision: 3 }).defaultTo(knex.fn.now(3));
    }),
  );
  await t("sel", () =>
    knex("books").select("author_id", "title", "page_count").orderBy(["author_id", "title"]),
  );
  await t("trx", () =>
    knex.transaction(
      async (x) => {
        await x("authors").insert({ name: "z" });
        await x
          .transaction(async (y) => {
            await y("authors").insert({ name: "zz" });
            throw new Error("inner");
          })
          .catch((e) => 0);
        return x("authors").count();
      },
      { isolationLevel: "repeatable read" },
    ),
  );
  await t("batch", () =>
    knex
      .batchInsert(
        "authors",
        Array.from({ length: 100 }, (_, i) => ({ name: "n" + i })),
        30,
      )
      .returning("id")
      .then((r) => r.length),
  );
  await t("forup", () =>
    knex.transaction((x) => x("authors").where("id", 1).forUpdate().skipLocked().select("id")),
  );
  await t("stream", async () => {
    let c = 0;
    for await (const r of knex("authors").stream()) c++;
    return c;
  });
  await t("distinctOn", () =>
    knex("books").distinctOn("author_id").orderBy(["author_id", "title"]).select("title"),
  );
  await t("window", () =>
    knex("books")
      .select("title")
      .rowNumber("rn", (q) => q.partitionBy("author_id").orderBy("title"))
      .orderBy(["author_id", "title"]),
  );
  await t("union", () =>
    knex("books")
      .select("title")
      .union([knex("authors").select("name").limit(2)], true)
      .then((r) => r.length),
  );
  await t("updfrom", () =>
    knex("books")
      .updateFrom("authors")
      .where("authors.id", "=", knex.ref("books.author_id"))
      .update({ extra: 7 }),
  );
  await t("delusing", () =>
    knex("books")
      .using("authors")
      .where("authors.id", knex.ref("books.author_id"))
      .where("authors.name", "y")
      .del(),
  );
  await t("view", () =>
    knex.schema.createViewOrReplace("v_books", (v) => {
      v.columns(["t"]);
      v.as(knex("books").select("title"));
    }),
  );
  await t("mview", () =>
    knex.schema.createMaterializedView("mv_books", (v) => {
      v.columns(["t"]);
      v.as(knex("books").select("title"));
    }),
  );
  await t("rmview", () => knex.schema.refreshMaterializedView("mv_books", false));
  await t("viewdrop", () => knex.schema.dropView("v_books").dropMaterializedView("mv_books"));
  await t("renametable", () => knex.schema.renameTable("books", "kt"));
  await t("trunc", () => knex("kt").truncate());
  await t("schema", () =>
    knex.schema
      .createSchemaIfNotExists("sx")
      .then(() => knex.schema.withSchema("sx").dropTableIfExists("a"))
      .then(() =>
        knex.schema.withSchema("sx").createTable("a", (t) => {
          t.uuid("id").primary();
        }),
      )
      .then(() =>
        knex
          .withSchema("sx")
          .from("a")
          .insert({ id: "11111111-1111-1111-1111-111111111111" })
          .returning("id"),
      )
      .then(async (r) => {
        await knex.schema.dropSchema("sx", true);
        return r;
      }),
  );
  const fs = require("fs");
  fs.rmSync(process.cwd() + "/mig", { recursive: true, force: true });
  fs.mkdirSync(process.cwd() + "/mig");
  await knex.raw("drop table if exists knex_migrations, knex_migrations_lock, m1");
  fs.writeFileSync(
    process.cwd() + "/mig/1_a.js",
    "exports.up=k=>k.schema.createTable('m1',t=>{t.increments();t.string('x')});exports.down=k=>k.schema.dropTable('m1');",
  );
  fs.writeFileSync(
    process.cwd() + "/mig/2_b.js",
    "exports.up=k=>k.schema.alterTable('m1',t=>{t.dropPrimary();t.string('x').notNullable().primary().alter()});exports.down=k=>k.schema.alterTable('m1',t=>{t.dropPrimary()});",
  );
  await t("mig", () => knex.migrate.latest({ directory: process.cwd() + "/mig" }));
  await t("migs", () => knex.migrate.status({ directory: process.cwd() + "/mig" }));
  await t("roll", () => knex.migrate.rollback({ directory: process.cwd() + "/mig" }));
  await t("types", () =>
    knex
      .raw(
        "select column_name, udt_name, is_nullable, column_default from information_schema.columns where table_name='kt' order by ordinal_position",
      )
      .then((r) => r.rows),
  );
  await knex.destroy();
})();
