// TypeORM: entities of all kinds, synchronize with changes, its query runner, each answer on a line.
// usage: node typeorm.js URL
require("reflect-metadata");
const {
  DataSource,
  EntitySchema,
  Table,
  TableColumn,
  TableIndex,
  TableForeignKey,
  TableUnique,
  TableCheck,
  In,
  Like,
  MoreThan,
} = require("typeorm");
const url = process.argv[2];
async function t(name, f) {
  try {
    const r = await f();
    console.log(name, JSON.stringify(r)?.slice(0, 600));
  } catch (e) {
    console.log(
      name,
      "ERR",
      e.code || e.driverError?.code,
      e.message.slice(0, 300),
      (e.query || "").slice(0, 300),
    );
  }
}
const User = (v) =>
  new EntitySchema({
    name: "User",
    tableName: "ty_user",
    columns: {
      id: { type: "int", primary: true, generated: "increment" },
      name: { type: "varchar", length: v ? 80 : 40, unique: true },
      uid: { type: "uuid", generated: "uuid" },
      role: { type: "enum", enum: v ? ["a", "b", "c"] : ["a", "b"], default: "a" },
      meta: { type: "jsonb", nullable: true },
      tags: { type: "text", array: true, nullable: true },
      simple: { type: "simple-array", nullable: true },
      sj: { type: "simple-json", nullable: true },
      created: { type: "timestamptz", createDate: true },
      updated: { type: "timestamp", updateDate: true, precision: 3 },
      deleted: { type: "timestamptz", deleteDate: true, nullable: true },
      ver: { type: "int", version: true },
      price: { type: "numeric", precision: 10, scale: v ? 3 : 2, default: 0 },
      big: { type: "bigint", nullable: true },
      iv: { type: "interval", nullable: true },
      b: { type: "bytea", nullable: true },
      r: { type: "int4range", nullable: true },
      ...(v
        ? {
            extra: { type: "int", default: 5, comment: "more" },
            gen: { type: "int", asExpression: "ver * 2", generatedType: "STORED", nullable: true },
          }
        : {}),
    },
    relations: {
      posts: { type: "one-to-many", target: "Post", inverseSide: "user", cascade: true },
      profile: {
        type: "one-to-one",
        target: "Profile",
        joinColumn: true,
        cascade: true,
        nullable: true,
      },
    },
    indices: [
      { name: "ix_role", columns: ["role", "created"] },
      ...(v ? [{ columns: ["extra"], where: "extra > 3" }] : []),
    ],
    checks: [{ expression: '"price" >= 0' }],
  });
const Post = (v) =>
  new EntitySchema({
    name: "Post",
    tableName: "ty_post",
    columns: {
      id: { type: v ? "bigint" : "int", primary: true, generated: "increment" },
      title: { type: v ? "text" : "varchar" },
      n: { type: "smallint", default: 1 },
    },
    relations: {
      user: { type: "many-to-one", target: "User", inverseSide: "posts", onDelete: "CASCADE" },
      tags: { type: "many-to-many", target: "Tag", joinTable: true, cascade: true },
    },
  });
const Tag = new EntitySchema({
  name: "Tag",
  tableName: "ty_tag",
  columns: { label: { type: "varchar", primary: true } },
});
const Profile = new EntitySchema({
  name: "Profile",
  tableName: "ty_profile",
  columns: { id: { type: "uuid", primary: true, generated: "uuid" }, bio: { type: "text" } },
});
const Cat = new EntitySchema({
  name: "Cat",
  tableName: "ty_cat",
  columns: { id: { type: "int", primary: true, generated: "identity" }, name: { type: "varchar" } },
  trees: [{ type: "materialized-path" }],
  relations: {
    children: {
      type: "one-to-many",
      target: "Cat",
      inverseSide: "parent",
      treeChildren: true,
      cascade: true,
    },
    parent: {
      type: "many-to-one",
      target: "Cat",
      inverseSide: "children",
      treeParent: true,
      nullable: true,
    },
  },
});
(async () => {
  const mk = (v) =>
    new DataSource({
      type: "postgres",
      url,
      entities: [User(v), Post(v), Tag, Profile, Cat],
      synchronize: false,
      logging: process.argv[3] ? "all" : false,
    });
  let d = mk(0);
  await t("init", () => d.initialize().then(() => 1));
  if (!d.isInitialized) {
    process.exit(1);
  }
  await t("drop", () => d.dropDatabase());
  await t("sync", () => d.synchronize().then(() => 1));
  await t("sync2", () =>
    d.driver
      .createSchemaBuilder()
      .log()
      .then((r) => r.upQueries.map((q) => q.query)),
  );
  const U = d.getRepository("User"),
    P = d.getRepository("Post"),
    C = d.getRepository("Cat");
  await t("save", () =>
    U.save({
      name: "x",
      meta: { a: [1] },
      tags: ["p", "q"],
      simple: ["1", "2"],
      sj: { k: 1 },
      big: "9007199254740993",
      price: "1.5",
      iv: "1 day",
      b: Buffer.from("zz"),
      r: "[1,5)",
      posts: [{ title: "t1", tags: [{ label: "l1" }, { label: "l2" }] }, { title: "t2" }],
      profile: { bio: "b" },
    }).then((u) => [u.id, u.ver, u.role, u.posts.length]),
  );
  await t("find", () =>
    U.find({
      relations: { posts: { tags: true }, profile: true },
      where: { name: Like("x%") },
      order: { id: "ASC", posts: { id: "ASC", tags: { label: "ASC" } } },
    }).then((r) =>
      r.map((u) => [
        u.id,
        u.meta,
        u.tags,
        u.simple,
        u.sj,
        u.big,
        u.price,
        u.iv,
        u.r,
        u.posts,
        u.profile.bio,
      ]),
    ),
  );
  await t("fac", () =>
    U.findAndCount({
      relations: { posts: true },
      take: 1,
      skip: 0,
      where: { posts: { n: MoreThan(0) } },
    }).then((r) => r[1]),
  );
  await t("qb", () =>
    U.createQueryBuilder("u")
      .leftJoinAndSelect("u.posts", "p")
      .where("u.meta ->> :k is not null", { k: "a" })
      .orderBy("p.id", "DESC")
      .take(5)
      .getMany()
      .then((r) => r[0].posts.map((p) => p.title)),
  );
  await t("agg", () =>
    P.createQueryBuilder("p")
      .select("p.n", "n")
      .addSelect("COUNT(*)", "c")
      .groupBy("p.n")
      .having("COUNT(*) > 0")
      .getRawMany(),
  );
  await t("sub", () =>
    U.createQueryBuilder("u")
      .where(
        (q) =>
          "u.id IN " +
          q.subQuery().select("p.userId").from("Post", "p").where("p.n = 1").getQuery(),
      )
      .getCount(),
  );
  await t("ups", () =>
    U.upsert(
      [
        { name: "x", price: "7" },
        { name: "y", price: "8" },
      ],
      ["name"],
    ).then((r) => r.identifiers),
  );
  await t("ins", () =>
    U.createQueryBuilder()
      .insert()
      .into("User")
      .values([{ name: "z" }])
      .orIgnore()
      .returning(["id", "role"])
      .execute()
      .then((r) => r.raw),
  );
  await t("upd", () =>
    U.createQueryBuilder()
      .update("User")
      .set({ price: () => "price + 1" })
      .where({ name: In(["x", "y"]) })
      .returning("name")
      .execute()
      .then((r) => [r.affected, r.raw]),
  );
  await t("soft", () => U.softDelete({ name: "z" }).then((r) => r.affected));
  await t("cnt", () => U.count());
  await t("lock", () =>
    d.transaction("SERIALIZABLE", (m) =>
      m
        .findOne("User", { where: { name: "x" }, lock: { mode: "pessimistic_write" } })
        .then((u) => u.name),
    ),
  );
  await t("nested", () =>
    d.transaction(async (m) => {
      await m
        .transaction(async (n) => {
          await n.save("Tag", { label: "in" });
          throw new Error("x");
        })
        .catch(() => 0);
      return m.count("Tag");
    }),
  );
  await t("tree", async () => {
    const a = await C.save({ name: "a" });
    const b = await C.save({ name: "b", parent: a });
    await C.save({ name: "c", parent: b });
    const tr = d.getTreeRepository("Cat");
    return tr.findTrees();
  });
  await d.destroy();
  d = mk(1);
  await d.initialize();
  await t("log2", () =>
    d.driver
      .createSchemaBuilder()
      .log()
      .then((r) => r.upQueries.map((q) => q.query)),
  );
  await t("alter", () => d.synchronize().then(() => 1));
  await t("log3", () =>
    d.driver
      .createSchemaBuilder()
      .log()
      .then((r) => r.upQueries.map((q) => q.query)),
  );
  const q = d.createQueryRunner();
  await t("getTable", async () => {
    const x = await q.getTable("ty_user");
    return [
      x.columns.map((c) => [c.name, c.type, c.length, c.isNullable, c.default, c.isGenerated]),
      x.indices.map((i) => [i.name, i.columnNames, i.isUnique, i.where]),
      x.uniques.map((u) => u.columnNames),
      x.checks.map((c) => c.expression),
      x.foreignKeys.map((f) => [f.columnNames, f.referencedTableName, f.onDelete]),
    ];
  });
  await t("ct", () =>
    q.createTable(
      new Table({
        name: "ty_x",
        columns: [
          { name: "a", type: "int", isPrimary: true },
          { name: "b", type: "varchar", isNullable: true },
        ],
      }),
      true,
    ),
  );
  await t("cc", () =>
    q.changeColumn("ty_x", "a", new TableColumn({ name: "a2", type: "bigint", isPrimary: true })),
  );
  await t("cc2", () =>
    q.changeColumn(
      "ty_x",
      "b",
      new TableColumn({ name: "b", type: "int", isNullable: false, default: "3" }),
    ),
  );
  await t("pk", () =>
    q.updatePrimaryKeys("ty_x", [new TableColumn({ name: "b", type: "int", isPrimary: true })]),
  );
  await t("droppk", () => q.dropPrimaryKey("ty_x"));
  await t("createpk", () => q.createPrimaryKey("ty_x", ["a2", "b"]));
  await t("dropcol", () => q.dropColumn("ty_x", "b"));
  await t("rent", () => q.renameTable("ty_x", "ty_x2"));
  await t("has", () => q.hasColumn("ty_x2", "a2"));
  await t("clear", () => q.clearTable("ty_x2"));
  await t("dt", () => q.dropTable("ty_x2"));
  await q.release();
  await d.destroy();
})();
