// MikroORM: a schema made, compared and updated, the identity map, queries, each answer on a line.
// usage: node mikro.js URL
const { MikroORM, EntitySchema, Utils, wrap, raw, LockMode } = require("@mikro-orm/core");
const { PostgreSqlDriver } = require("@mikro-orm/postgresql");
const url = process.argv[2];
async function t(name, f) {
  try {
    const r = await f();
    console.log(name, JSON.stringify(r)?.slice(0, 700));
  } catch (e) {
    console.log(name, "ERR", e.code, e.message.slice(0, 300));
  }
}
const mk = (v) => {
  const A = new EntitySchema({
    name: "Author",
    tableName: "mk_author",
    properties: {
      id: { type: v ? "bigint" : "number", primary: true },
      name: { type: "string", length: v ? 60 : 40, unique: true },
      kind: { enum: true, items: v ? ["x", "y", "z"] : ["x", "y"], default: "x" },
      nk: { enum: true, items: ["p", "q"], nativeEnumName: "mk_nk", nullable: true },
      j: { type: "json", nullable: true },
      tags: { type: "string[]", nullable: true },
      at: { type: "Date", defaultRaw: "now()", length: 3 },
      n: { type: "decimal", precision: v ? 12 : 10, scale: 2, default: 0 },
      u: { type: "uuid", defaultRaw: "gen_random_uuid()" },
      b: { type: "blob", nullable: true },
      ...(v ? { extra: { type: "integer", default: 7 } } : {}),
      books: { kind: "1:m", entity: "Book", mappedBy: "author" },
    },
    indexes: v ? [{ properties: ["extra", "name"] }] : [{ properties: ["kind"] }],
    checks: [{ expression: "n >= 0", name: "mk_n_check" }],
  });
  const B = new EntitySchema({
    name: "Book",
    tableName: "mk_book",
    properties: {
      id: { type: "uuid", primary: true, defaultRaw: "gen_random_uuid()" },
      title: { type: v ? "text" : "string" },
      k: { type: "integer", default: 1 },
      author: { kind: "m:1", entity: "Author", deleteRule: "cascade" },
      tags: { kind: "m:n", entity: "Tag", owner: true, pivotTable: "mk_bt" },
    },
    uniques: [{ properties: ["author", "title"] }],
  });
  const T = new EntitySchema({
    name: "Tag",
    tableName: "mk_tag",
    properties: {
      a: { type: "integer", primary: true },
      b: { type: "string", length: 10, primary: true },
    },
  });
  return [A, B, T];
};
(async () => {
  let o = await MikroORM.init({
    driver: PostgreSqlDriver,
    clientUrl: url,
    entities: mk(0),
    allowGlobalContext: true,
    discovery: { disableDynamicFileAccess: true },
  });
  let g = o.schema;
  await t("drop", () => g.dropSchema({ dropMigrationsTable: true }).then(() => 1));
  await t("sql", () => g.getCreateSchemaSQL());
  await t("create", () => g.createSchema().then(() => 1));
  await t("diff", () => g.getUpdateSchemaSQL());
  const em = o.em.fork();
  await t("ins", async () => {
    const a = em.create("Author", {
      name: "a",
      j: { x: [1] },
      tags: ["p", "q"],
      n: "1.5",
      nk: "p",
      b: Buffer.from("zz"),
      books: [
        { title: "t1", k: 1, tags: [{ a: 1, b: "x" }] },
        { title: "t2", k: 4 },
      ],
    });
    const b = em.create("Author", { name: "b", n: "0" });
    await em.flush();
    return [a.id, b.id, a.kind, a.n];
  });
  await t("find", async () => {
    const e = o.em.fork();
    const r = await e.find(
      "Author",
      {},
      { populate: ["books.tags"], orderBy: { id: 1, books: { title: 1 } } },
    );
    return r.map((x) => [
      x.name,
      x.tags,
      x.j,
      x.nk,
      x.books.getItems().map((y) => [y.title, y.tags.length]),
    ]);
  });
  await t("joined", async () => {
    const e = o.em.fork();
    return (
      await e.find(
        "Book",
        { author: { name: "a" } },
        { strategy: "joined", populate: ["author"], orderBy: { title: "desc" } },
      )
    ).map((x) => [x.title, x.author.name]);
  });
  await t("json", () =>
    o.em
      .fork()
      .count("Author", { j: { x: { $contains: [1] } } })
      .catch(() => o.em.fork().count("Author", { tags: { $contains: ["p"] } })),
  );
  await t("arr", () => o.em.fork().count("Author", { tags: { $overlap: ["q", "z"] } }));
  await t("qb", () =>
    o.em
      .fork()
      .createQueryBuilder("Book", "b")
      .select(["b.author", raw("count(*)::int as c")])
      .groupBy("b.author")
      .having("count(*) > 0")
      .execute("all"),
  );
  await t("upsert", async () => {
    const e = o.em.fork();
    const x = await e.upsert(
      "Author",
      { name: "a", n: "9" },
      { onConflictFields: ["name"], onConflictMergeFields: ["n"] },
    );
    return [x.id, x.n];
  });
  await t("ups2", async () => {
    const e = o.em.fork();
    const x = await e.upsertMany(
      "Author",
      [
        { name: "a", n: "3" },
        { name: "c", n: "4" },
      ],
      { onConflictFields: ["name"] },
    );
    return x.map((y) => y.name);
  });
  await t("native", () => o.em.fork().nativeUpdate("Book", { title: "t2" }, { k: raw("k + 1") }));
  await t("tx", () =>
    o.em.fork().transactional(
      async (e) => {
        e.create("Author", { name: "d", n: "0" });
        await e.flush();
        await e
          .transactional(async (f) => {
            f.create("Author", { name: "d", n: "0" });
            await f.flush();
          })
          .catch(() => 0);
        return e.count("Author");
      },
      { isolationLevel: "repeatable read" },
    ),
  );
  await t("lock", () =>
    o.em
      .fork()
      .transactional(
        async (e) =>
          (
            await e.findOne(
              "Author",
              { name: "a" },
              { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE },
            )
          ).name,
      ),
  );
  await t("del", () => o.em.fork().nativeDelete("Author", { name: "b" }));
  await o.close();
  o = await MikroORM.init({
    driver: PostgreSqlDriver,
    clientUrl: url,
    entities: mk(1),
    allowGlobalContext: true,
    discovery: { disableDynamicFileAccess: true },
  });
  g = o.schema;
  await t("diff2", () => g.getUpdateSchemaSQL());
  await t("update", () => g.updateSchema().then(() => 1));
  await t("diff3", () => g.getUpdateSchemaSQL());
  await t("read", async () =>
    (await o.em.fork().find("Author", {}, { orderBy: { name: 1 } })).map((x) => [
      String(x.id),
      x.name,
      x.extra,
      x.n,
    ]),
  );
  await o.close();
})();
