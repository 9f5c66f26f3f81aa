// Objection on knex: graphs, relations, JSON, upserts, schema changes; each answer on a line.
// usage: node objection.js URL
const { Model, raw, ref, transaction, fn, val } = require("objection");
const Knex = require("knex");
const knex = Knex({ client: "pg", connection: process.argv[2], pool: { min: 1, max: 4 } });
Model.knex(knex);
async function t(name, f) {
  try {
    console.log(name, JSON.stringify(await f())?.slice(0, 900));
  } catch (e) {
    console.log(
      name,
      "ERR",
      e.name,
      e.nativeError?.code ?? e.code,
      e.message.slice(0, 300),
      e.constraint ?? "",
      e.table ?? "",
      e.columns ?? "",
    );
  }
}
class Person extends Model {
  static tableName = "ob_persons";
  static jsonAttributes = ["data"];
  static relationMappings = () => ({
    pets: {
      relation: Model.HasManyRelation,
      modelClass: Pet,
      join: { from: "ob_persons.id", to: "ob_pets.ownerId" },
    },
    parent: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: "ob_persons.parentId", to: "ob_persons.id" },
    },
    children: {
      relation: Model.HasManyRelation,
      modelClass: Person,
      join: { from: "ob_persons.id", to: "ob_persons.parentId" },
    },
    movies: {
      relation: Model.ManyToManyRelation,
      modelClass: Movie,
      join: {
        from: "ob_persons.id",
        through: { from: "ob_pm.personId", to: "ob_pm.movieId", extra: ["role"] },
        to: "ob_movies.id",
      },
    },
  });
}
class Pet extends Model {
  static tableName = "ob_pets";
  static relationMappings = () => ({
    owner: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: "ob_pets.ownerId", to: "ob_persons.id" },
    },
  });
}
class Movie extends Model {
  static tableName = "ob_movies";
}
(async () => {
  await t("schema", () =>
    knex.schema
      .createTable("ob_persons", (x) => {
        x.increments("id");
        x.string("name").notNullable().index();
        x.integer("parentId")
          .unsigned()
          .references("id")
          .inTable("ob_persons")
          .onDelete("SET NULL")
          .index();
        x.jsonb("data");
        x.specificType("tags", "text[]");
        x.decimal("score", 10, 2).defaultTo(0);
        x.uuid("key").defaultTo(knex.raw("gen_random_uuid()"));
        x.timestamps(true, true);
        x.enu("mood", ["sad", "ok"], { useNative: true, enumName: "ob_mood" });
        x.binary("blob");
        x.check("?? >= 0", ["score"]);
      })
      .createTable("ob_pets", (x) => {
        x.bigIncrements("id");
        x.integer("ownerId").references("ob_persons.id").onDelete("CASCADE");
        x.string("name");
        x.enum("kind", ["dog", "cat"]);
        x.unique(["ownerId", "name"], { useConstraint: true, deferrable: "deferred" });
      })
      .createTable("ob_movies", (x) => {
        x.increments();
        x.string("name").unique();
      })
      .createTable("ob_pm", (x) => {
        x.integer("personId").references("id").inTable("ob_persons").onDelete("CASCADE");
        x.integer("movieId").references("id").inTable("ob_movies").onDelete("CASCADE");
        x.string("role");
        x.primary(["personId", "movieId"]);
      })
      .then(() => "ok"),
  );
  await t("graph", () =>
    Person.query()
      .insertGraph({
        name: "P",
        data: { a: { b: [1, 2] } },
        tags: ["x", "y z"],
        mood: "ok",
        children: [
          { name: "C1", pets: [{ name: "Rex", kind: "dog" }] },
          { name: "C2", movies: [{ name: "M1", role: "lead" }] },
        ],
        pets: [{ name: "Tom", kind: "cat" }],
      })
      .then((r) => [r.name, r.children.length]),
  );
  await t("fetch", () =>
    Person.query()
      .findById(1)
      .withGraphFetched("[pets, children.[pets, movies]]")
      .omit(["key", "created_at", "updated_at"])
      .then((r) =>
        JSON.parse(
          JSON.stringify(r, (k, v) =>
            ["key", "created_at", "updated_at"].includes(k) ? undefined : v,
          ),
        ),
      ),
  );
  await t("joined", () =>
    Person.query()
      .withGraphJoined("[pets, parent, movies]")
      .where("parent.name", "P")
      .orderBy("ob_persons.id")
      .then((r) =>
        r.map((x) => [x.name, x.pets, x.parent.name, x.movies.map((m) => [m.name, m.role])]),
      ),
  );
  await t("upsertg", () =>
    Person.query()
      .upsertGraph({
        id: 1,
        name: "P2",
        pets: [{ name: "New", kind: "cat" }],
        children: [{ id: 2, name: "C1b" }],
      })
      .then(() => Pet.query().orderBy("id").select("name")),
  );
  await t("json", () => Person.query().where(ref("data:a.b[0]").castInt(), 1).select("name"));
  await t("json2", () => Person.query().whereJsonSupersetOf("data", { a: {} }).select("name"));
  await t("json3", () => Person.query().whereJsonHasAny("data:a", ["b", "z"]).select("name"));
  await t("jpatch", () => Person.query().findById(1).patch({ "data:a.c": 5 }).returning("data"));
  await t("agg", () =>
    Person.query().select("name", Person.relatedQuery("pets").count().as("n")).orderBy("id"),
  );
  await t("page", () =>
    Person.query()
      .orderBy("id")
      .page(0, 2)
      .then((r) => [r.total, r.results.map((x) => x.name)]),
  );
  await t("range", () =>
    Person.query()
      .orderBy("id")
      .range(1, 1)
      .then((r) => [r.total, r.results.map((x) => x.name)]),
  );
  await t("exists", () =>
    Person.query().whereExists(Person.relatedQuery("pets")).select("name").orderBy("id"),
  );
  await t("conf", () =>
    Movie.query().insert({ name: "M1" }).onConflict("name").merge().returning("*"),
  );
  await t("uniq", () => Movie.query().insert({ name: "M1" }));
  await t("fk", () => Pet.query().insert({ ownerId: 99, name: "q" }));
  await t("check", () => Pet.query().insert({ ownerId: 1, name: "q", kind: "cow" }));
  await t("null", () => Person.query().insert({ mood: "ok" }));
  await t("enum", () => Person.query().insert({ name: "z", mood: "bad" }));
  await t("tx", () =>
    Person.transaction(async (x) => {
      await Movie.query(x).insert({ name: "tx" });
      await Person.transaction(x, async (y) => {
        await Movie.query(y).insert({ name: "sp" });
        throw new Error("b");
      }).catch(() => 0);
      return Movie.query(x).select("name").orderBy("id");
    }),
  );
  await t("txiso", () =>
    knex.transaction(async (x) => (await x.raw("show transaction_isolation")).rows, {
      isolationLevel: "repeatable read",
    }),
  );
  await t("relate", () =>
    Person.relatedQuery("movies")
      .for(1)
      .relate({ id: 1, role: "extra" })
      .then(() => knex("ob_pm").orderBy("personId")),
  );
  await t("unrel", () => Person.relatedQuery("movies").for(1).unrelate());
  await t("recursive", () =>
    Person.query()
      .withRecursive("d", (q) => {
        q.select("id", "name", raw("0 as l"))
          .from("ob_persons")
          .whereNull("parentId")
          .union((u) =>
            u
              .select("c.id", "c.name", raw("d.l + 1"))
              .from("ob_persons as c")
              .join("d", "d.id", "c.parentId"),
          );
      })
      .from("d")
      .select("name", "l")
      .orderBy(["l", "name"]),
  );
  await t("stream", async () => {
    let n = 0;
    for await (const r of knex.select("*").from(knex.raw("generate_series(1, 1000) g")).stream())
      n += r.g;
    return n;
  }).catch(() => 0);
  await t("colinfo", () => knex("ob_persons").columnInfo());
  await t("fetchmeta", () => Person.fetchTableMetadata());
  await t("has", async () => [
    await knex.schema.hasTable("ob_pm"),
    await knex.schema.hasColumn("ob_pm", "role"),
  ]);
  await t("alter", () =>
    knex.schema
      .alterTable("ob_pets", (x) => {
        x.string("name", 50).notNullable().alter();
        x.renameColumn("kind", "sort");
        x.dropUnique(["ownerId", "name"]);
        x.timestamp("at", { precision: 3 }).defaultTo(knex.fn.now(3));
        x.setNullable("name");
        x.index(["sort"], "pet_sort", { predicate: knex.whereNotNull("sort") });
        x.dropForeign("ownerId");
      })
      .then(() => knex("ob_pets").columnInfo()),
  );
  await t("rename", () =>
    knex.schema
      .renameTable("ob_pm", "ob_cast")
      .then(() => knex.schema.raw("select count(*)::int from ob_cast").then((r) => r.rows)),
  );
  await t("view", () =>
    knex.schema
      .createViewOrReplace("ob_v", (v) => {
        v.columns(["n"]);
        v.as(knex("ob_persons").select("name"));
      })
      .then(() => knex("ob_v").orderBy("n")),
  );
  await t("mview", () =>
    knex.schema
      .createMaterializedView("ob_mv", (v) => {
        v.columns(["n"]);
        v.as(knex("ob_persons").select("name"));
      })
      .then(() => knex.schema.refreshMaterializedView("ob_mv"))
      .then(() => knex("ob_mv").count()),
  );
  await t("drop", () =>
    knex.schema
      .dropViewIfExists("ob_v")
      .dropMaterializedView("ob_mv")
      .dropTable("ob_cast")
      .dropTable("ob_movies")
      .dropTable("ob_pets")
      .dropTable("ob_persons")
      .then(() => "ok"),
  );
  await knex.destroy();
})();
