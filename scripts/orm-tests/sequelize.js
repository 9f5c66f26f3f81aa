// Sequelize: models, sync with changes, queries, its query interface, each answer on a line.
// usage: node sequelize.js URL
const { Sequelize, DataTypes: D, Op } = require("sequelize");
const url = process.argv[2];
const s = new Sequelize(url, {
  logging: process.argv[3] ? console.log : false,
  dialect: "postgres",
});
async function t(name, f) {
  try {
    const r = await f();
    console.log(name, JSON.stringify(r)?.slice(0, 700));
  } catch (e) {
    console.log(
      name,
      "ERR",
      (e.original || e).code,
      e.message.slice(0, 300),
      (e.sql || e.parent?.sql || "").slice(0, 300),
    );
  }
}
(async () => {
  await t("auth", () => s.authenticate());
  await t("drop", () => s.drop({ cascade: true }));
  const U = s.define(
    "User",
    {
      name: { type: D.STRING(40), unique: true },
      role: { type: D.ENUM("admin", "user"), defaultValue: "user" },
      meta: D.JSONB,
      tags: D.ARRAY(D.TEXT),
      span: D.RANGE(D.INTEGER),
      score: D.DECIMAL(8, 2),
      bin: D.BLOB,
      u: { type: D.UUID, defaultValue: D.UUIDV4 },
      dt: D.DATEONLY,
      fl: D.DOUBLE,
      ip: D.INET,
    },
    { paranoid: true, comment: "users" },
  );
  const U2 = () =>
    s.define(
      "User",
      {
        name: { type: D.STRING(80), unique: true, allowNull: false },
        role: { type: D.ENUM("admin", "user", "guest"), defaultValue: "guest" },
        meta: D.JSONB,
        tags: D.ARRAY(D.TEXT),
        score: D.DECIMAL(10, 3),
        bin: D.BLOB,
        u: { type: D.UUID, defaultValue: D.UUIDV4 },
        dt: D.DATE,
        fl: D.REAL,
        ip: D.INET,
        extra: { type: D.INTEGER, defaultValue: 3, allowNull: false },
      },
      {
        paranoid: true,
        indexes: [
          { fields: ["extra", "name"] },
          { fields: ["meta"], using: "gin" },
          { unique: true, fields: ["u"], where: { extra: { [Op.gt]: 2 } } },
        ],
      },
    );
  let P = s.define("Post", { title: D.TEXT, n: D.BIGINT });
  U.hasMany(P, { onDelete: "CASCADE" });
  P.belongsTo(U);
  let T = s.define("Tag", { label: { type: D.STRING, primaryKey: true } });
  P.belongsToMany(T, { through: "PostTag" });
  T.belongsToMany(P, { through: "PostTag" });

  await t("sync", () => s.sync({ force: true }).then(() => 1));
  await t("create", () =>
    U.create(
      {
        name: "a",
        meta: { x: [1, 2] },
        tags: ["p"],
        span: [1, 5],
        score: "1.25",
        bin: Buffer.from("zz"),
        dt: "2020-02-03",
        fl: 1.5,
        ip: "10.0.0.1",
        u: "11111111-1111-1111-1111-111111111111",
        createdAt: "2020-01-01",
        updatedAt: "2020-01-01",
        Posts: [{ title: "t1", n: "9007199254740993", Tags: [{ label: "l1" }, { label: "l2" }] }],
      },
      { include: [{ model: P, include: [T] }] },
    ).then((u) => u.get("span")),
  );
  await t("bulk", () =>
    U.bulkCreate([{ name: "b", role: "admin" }, { name: "c" }], { returning: ["id", "name"] }).then(
      (r) => r.map((x) => x.id),
    ),
  );
  await t("bulkup", () =>
    U.bulkCreate([{ name: "b", role: "user" }], {
      updateOnDuplicate: ["role"],
      conflictAttributes: ["name"],
    }).then((r) => r.map((x) => x.role)),
  );
  await t("find", () =>
    U.findAll({
      include: [{ model: P, include: T }],
      where: { meta: { x: { [Op.contains]: [1] } } },
      attributes: ["id", "name", "meta", "span"],
    }),
  );
  await t("findjson", () =>
    U.findAll({ where: { "meta.x[0]": 1 }, attributes: ["id"] }).catch(() =>
      U.findAll({ where: s.literal(`meta#>>'{x,0}'='1'`), attributes: ["id"] }),
    ),
  );
  await t("overlap", () =>
    U.findAll({ where: { tags: { [Op.overlap]: ["p", "z"] } }, attributes: ["id"] }),
  );
  await t("rng", () => U.findAll({ where: { span: { [Op.contains]: 3 } }, attributes: ["id"] }));
  await t("ilike", () => U.findAll({ where: { name: { [Op.iLike]: "A%" } }, attributes: ["id"] }));
  await t("count", () =>
    U.findAndCountAll({
      include: [{ model: P, required: false }],
      limit: 2,
      offset: 0,
      order: [["id", "DESC"]],
      distinct: true,
      attributes: ["id"],
    }).then((r) => [r.count, r.rows.map((x) => x.id)]),
  );
  await t("foc", () =>
    U.findOrCreate({ where: { name: "d" }, defaults: { role: "admin" } }).then((r) => r[1]),
  );
  await t("upsert", () =>
    U.upsert({ name: "d", role: "user" }, { conflictFields: ["name"] }).then((r) => [
      r[0].role,
      r[1],
    ]),
  );
  await t("inc", () =>
    P.increment({ n: 5 }, { where: { title: "t1" } }).then((r) => r[0][0]?.[0]?.n),
  );
  await t("agg", () =>
    P.findAll({
      attributes: ["UserId", [s.fn("COUNT", s.col("id")), "c"], [s.fn("MAX", s.col("n")), "m"]],
      group: ["UserId"],
    }),
  );
  await t("destroy", () => U.destroy({ where: { name: "c" } }));
  await t("paranoid", () =>
    U.findAll({ attributes: ["name"], order: ["name"] }).then((r) => r.map((x) => x.name)),
  );
  await t("restore", () => U.restore({ where: { name: "c" } }));
  await t("tx", () =>
    s.transaction(
      { isolationLevel: Sequelize.Transaction.ISOLATION_LEVELS.SERIALIZABLE },
      async (tr) => {
        await U.create({ name: "tx" }, { transaction: tr });
        return U.count({ transaction: tr, lock: false });
      },
    ),
  );
  await t("lock", () =>
    s.transaction((tr) =>
      U.findOne({
        where: { name: "a" },
        lock: tr.LOCK.UPDATE,
        skipLocked: true,
        transaction: tr,
        attributes: ["id"],
      }),
    ),
  );
  const N = U2();
  N.hasMany(P, { onDelete: "CASCADE" });
  await t("alter", () => s.sync({ alter: true }).then(() => 1));
  await t("alter2", () => s.sync({ alter: true }).then(() => 1));
  const q = s.getQueryInterface();
  await t("describe", () =>
    q.describeTable("Users").then((r) =>
      Object.keys(r)
        .sort()
        .map((k) => [k, r[k]]),
    ),
  );
  await t("showidx", () =>
    q
      .showIndex("Users")
      .then((r) => r.map((x) => [x.name, x.unique, x.primary, x.fields.map((f) => f.attribute)])),
  );
  await t("tables", () => q.showAllTables().then((r) => r.filter((x) => /^[A-Z]/.test(x)).sort()));
  await t("fks", () => q.getForeignKeyReferencesForTable("Posts"));
  await t("addcol", () =>
    q
      .addColumn("Posts", "slug", {
        type: D.STRING,
        allowNull: false,
        defaultValue: "s",
        unique: false,
      })
      .then(() => 1),
  );
  await t("chg", () =>
    q.changeColumn("Posts", "n", { type: D.STRING, allowNull: true }).then(() => 1),
  );
  await t("chgid", () => q.changeColumn("Tags", "label", { type: D.STRING(30) }).then(() => 1));
  await t("ren", () => q.renameColumn("Posts", "slug", "slug2").then(() => 1));
  await t("addc", () =>
    q
      .addConstraint("Posts", {
        type: "check",
        fields: ["slug2"],
        where: { slug2: ["s", "t"] },
        name: "ck",
      })
      .then(() => 1),
  );
  await t("addu", () =>
    q.addConstraint("Posts", { type: "unique", fields: ["slug2", "id"], name: "uq" }).then(() => 1),
  );
  await t("rmc", () => q.removeConstraint("Posts", "uq").then(() => 1));
  await t("rmcol", () => q.removeColumn("Posts", "title").then(() => 1));
  await t("addidx", () =>
    q
      .addIndex("Posts", {
        fields: [{ name: "n", order: "DESC" }, "UserId"],
        name: "pi",
        concurrently: true,
      })
      .then(() => 1),
  );
  await t("rmidx", () => q.removeIndex("Posts", "pi").then(() => 1));
  await t("rmpk", () => q.removeConstraint("PostTag", "PostTag_pkey").then(() => 1));
  await t("addpk", () =>
    q
      .addConstraint("PostTag", {
        type: "primary key",
        fields: ["PostId", "TagLabel"],
        name: "pt_pk",
      })
      .then(() => 1),
  );
  await t("fn", () =>
    q
      .createFunction("sq_add", [{ type: "int", name: "a" }], "int", "sql", "select a+1", [], {
        force: true,
      })
      .then(() => 1),
  );
  await t("droptable", () => q.dropTable("PostTag").then(() => 1));
  await s.close();
})();
