// Tools that read a database's catalogs, migrate it or put an API in front of it: node-pg-migrate, PostGraphile,
// extract-pg-schema (what kanel reads by), pg-introspection, slonik, umzug. usage: node introspect.js URL
const url = process.argv[2];
const { Pool, Client } = require("pg");
const cut = (r) => (JSON.stringify(r, (k, v) => (typeof v === "bigint" ? v + "n" : v)) ?? "undefined").slice(0, 2500);
async function t(name, f) {
  try {
    console.log(name, cut(await f()));
  } catch (e) {
    console.log(name, "ERR", e.code ?? "", String(e.message).split("\n")[0].slice(0, 300), e.originalError?.code ?? "");
  }
}
const schema = `
  create schema shop;
  comment on schema shop is 'what is sold';
  create type shop.mood as enum ('sad', 'ok', 'happy');
  create type shop.pair as (a int, b text);
  create domain shop.price as numeric(10,2) check (value >= 0);
  create table shop.makers (id serial primary key, name text not null unique, mood shop.mood not null default 'ok',
    at timestamptz default '2024-01-01 00:00+00', home shop.pair, tags text[] default '{}', doc jsonb);
  comment on table shop.makers is 'who makes'; comment on column shop.makers.name is 'how they are called';
  create table shop.things (id int generated always as identity primary key, maker_id int not null references shop.makers on delete cascade,
    title varchar(40) not null, cost shop.price, full_title text generated always as (title || '!') stored, constraint cheap check (cost < 1000));
  create index on shop.things (maker_id); create index things_lower on shop.things (lower(title)) where cost > 1;
  create unique index things_title on shop.things (maker_id, title) include (cost);
  create table shop.parts (thing_id int references shop.things, no int, what text, primary key (thing_id, no));
  create view shop.dear as select t.id, t.title, m.name from shop.things t join shop.makers m on m.id = t.maker_id where cost > 100;
  create materialized view shop.counted as select maker_id, count(*) n from shop.things group by 1;
  create function shop.makers_loud(m shop.makers) returns text language sql stable as 'select upper(m.name)';
  create function shop.add(a int, b int default 2) returns int language sql immutable as 'select a + b';
  create function shop.found(what text) returns setof shop.makers language sql stable as 'select * from shop.makers where name like what';
  create sequence shop.numbers increment 5 start 100;
  insert into shop.makers (name, home, doc) values ('Ann', row(1, 'x'), '{"k": [1]}'), ('Bo', null, null);
  insert into shop.things (maker_id, title, cost) values (1, 'Chair', 120), (1, 'Table', 900.5), (2, 'Lamp', 5);
  insert into shop.parts values (1, 1, 'leg'), (1, 2, 'seat');`;

(async () => {
  const pool = new Pool({ connectionString: url, max: 3 });
  await t("schema", async () => void (await pool.query(schema)));
  // node-pg-migrate
  const { runner } = await import("node-pg-migrate");
  const fs = require("node:fs");
  fs.mkdirSync("pgm", { recursive: true });
  fs.writeFileSync("pgm/1_first.js", `exports.up = (p) => {
    p.createType("pm_kind", ["a", "b"]); p.createSchema("pm", { ifNotExists: true });
    p.createTable({ schema: "pm", name: "users" }, { id: "id", name: { type: "varchar(100)", notNull: true, comment: "it's a name" }, kind: { type: "pm_kind", default: "a" },
      created: { type: "timestamp", notNull: true, default: p.func("current_timestamp") } }, { comment: "users" });
    p.createTable({ schema: "pm", name: "posts" }, { id: { type: "bigint", primaryKey: true, sequenceGenerated: { precedence: "ALWAYS", increment: 2 } },
      user_id: { type: "integer", notNull: true, references: { schema: "pm", name: "users" }, onDelete: "CASCADE", referencesConstraintName: "posts_user" }, body: { type: "text" } },
      { constraints: { check: "length(body) > 0", unique: [["user_id", "body"]] } });
    p.createIndex({ schema: "pm", name: "posts" }, ["user_id", { name: "body", sort: "DESC" }], { where: "body is not null", name: "pm_i" });
    p.createView("pm_v", {}, "select * from pm.users"); p.createMaterializedView("pm_mv", { ifNotExists: true }, "select count(*) from pm.users");
    p.createSequence("pm_seq", { start: 5, maxvalue: 50, cycle: true }); p.createDomain("pm_dom", "text", { check: "VALUE <> ''" });
    p.createRole("pm_role", { login: false }); p.grantOnTables({ privileges: ["SELECT"], tables: { schema: "pm", name: "users" }, roles: "pm_role" });
    p.addTypeValue("pm_kind", "c", { after: "a" }); };
    exports.down = (p) => { p.revokeOnTables({ privileges: "ALL", tables: { schema: "pm", name: "users" }, roles: "pm_role" }); p.dropRole("pm_role"); p.dropDomain("pm_dom"); p.dropSequence("pm_seq"); p.dropMaterializedView("pm_mv"); p.dropView("pm_v");
      p.dropTable({ schema: "pm", name: "posts" }); p.dropTable({ schema: "pm", name: "users" }); p.dropSchema("pm"); p.dropType("pm_kind"); };`);
  fs.writeFileSync("pgm/2_second.js", `exports.up = (p) => {
    const users = { schema: "pm", name: "users" };
    p.addColumns(users, { age: { type: "smallint", check: "age > 0" }, score: { type: "numeric(6,2)", default: 1.5 } });
    p.alterColumn(users, "age", { type: "integer", notNull: false, default: 18, comment: null }); p.renameColumn(users, "score", "points");
    p.addConstraint(users, "aged", { check: "age < 200" }); p.renameConstraint(users, "aged", "mortal"); p.renameTable({ schema: "pm", name: "posts" }, "notes");
    p.sql("INSERT INTO pm.users (name) VALUES ('{n}')", { n: "x" }); p.renameTypeValue("pm_kind", "b", "bb"); p.alterSequence("pm_seq", { increment: 3 }); };
    exports.down = (p) => { const users = { schema: "pm", name: "users" }; p.renameTypeValue("pm_kind", "bb", "b"); p.renameTable({ schema: "pm", name: "notes" }, "posts"); p.dropConstraint(users, "mortal"); p.dropColumns(users, ["age", "points"]); };`);
  const run = (direction, count) => runner({ databaseUrl: url, dir: "pgm", direction, count, migrationsTable: "pgmigrations", log: () => {}, logger: { debug() {}, info() {}, warn() {}, error() {} } });
  await t("pgm up", async () => (await run("up", Infinity)).map((m) => m.name));
  await t("pgm columns", async () => (await pool.query("select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns where table_schema = 'pm' order by 1, ordinal_position")).rows);
  await t("pgm down", async () => (await run("down", 2)).map((m) => m.name));
  // what kanel reads by
  const { extractSchemas } = (await import("extract-pg-schema")).default;
  await t("extract", async () => {
    const all = await extractSchemas({ connectionString: url }, { schemas: ["shop"] });
    const kinds = Object.entries(all.shop).filter(([, v]) => Array.isArray(v) && v.length);
    return kinds.map(([k, v]) => [k, v.map((x) => x.name)]);
  });
  for (const kind of ["tables", "views", "materializedViews", "enums", "domains", "ranges", "compositeTypes", "functions", "procedures"])
    await t("extract " + kind, async () => {
      const all = await extractSchemas({ connectionString: url }, { schemas: ["shop"] });
      const strip = (x) => JSON.parse(JSON.stringify(x, (k, v) => (k === "informationSchemaValue" || k === "fakeInformationSchemaValue" || k === "definition" ? undefined : v)));
      return strip(all.shop[kind]);
    });
  // PostGraphile 5's reader
  const { makeIntrospectionQuery, parseIntrospectionResults } = require("pg-introspection");
  await t("introspection", async () => {
    const text = makeIntrospectionQuery();
    const { rows } = await pool.query(text);
    const i = parseIntrospectionResults(rows[0].introspection, true);
    const of = (n) => i.classes.filter((c) => c.getNamespace()?.nspname === n);
    return of("shop").map((c) => [c.relname, c.relkind, c.getDescription(), c.getAttributes().filter((a) => a.attnum > 0).map((a) => [a.attname, a.getType()?.typname, a.attnotnull, a.getDescription()]),
      c.getConstraints().map((x) => [x.conname, x.contype]).sort(), c.getIndexes().map((x) => x.getIndexClass()?.relname).sort()]).sort();
  });
  // PostGraphile 4: GraphQL over the schema
  const { createPostGraphileSchema, withPostGraphileContext } = require("postgraphile");
  const { graphql, printSchema } = require("graphql");
  let made;
  await t("graphile", async () => {
    made = await createPostGraphileSchema(pool, ["shop"], { dynamicJson: true, simpleCollections: "both", disableDefaultMutations: false });
    const text = printSchema(made);
    return [text.split("\n").length, require("node:crypto").createHash("md5").update(text).digest("hex")];
  });
  const ask = (q) => withPostGraphileContext({ pgPool: pool }, (context) => graphql(made, q, null, { ...context }));
  for (const q of [
    "{ allMakers(orderBy: NAME_DESC) { totalCount nodes { id name mood at tags doc home { a b } loud thingsByMakerId(first: 1, orderBy: COST_DESC) { totalCount pageInfo { hasNextPage } nodes { title cost fullTitle } } } } }",
    "{ thingById(id: 1) { nodeId title makerByMakerId { name } partsByThingId { edges { cursor node { what no } } } } makerByName(name: \"Bo\") { id } add(a: 1) found(what: \"A%\") { nodes { name } } allDears { nodes { title name } } }",
    "{ allThings(condition: { makerId: 1 }, first: 1, offset: 1, orderBy: [TITLE_ASC]) { nodes { title } pageInfo { endCursor hasPreviousPage } } allCounteds { totalCount } }",
    "mutation { createMaker(input: { maker: { name: \"Eve\", mood: HAPPY, tags: [\"a\", \"b\"], home: { a: 5, b: \"z\" }, doc: { x: 1 } } }) { maker { id name mood tags home { a } } query { allMakers { totalCount } } } }",
    "mutation { updateMakerByName(input: { name: \"Eve\", makerPatch: { doc: null, mood: SAD } }) { maker { mood doc } } a: createThing(input: { thing: { makerId: 99, title: \"no\" } }) { thing { id } } }",
    "mutation { deleteMakerByName(input: { name: \"Eve\" }) { deletedMakerId maker { name } } createThing(input: { thing: { makerId: 1, title: \"X\", cost: \"-1\" } }) { thing { id } } }",
  ])
    await t("ask " + q.slice(0, 30), () => ask(q));
  // slonik
  const { createPool, sql } = await import("slonik");
  await t("slonik", async () => {
    const p = await createPool(url);
    const s = sql.unsafe;
    const out = [];
    out.push(await p.many(s`select * from ${sql.unnest([[1, "a"], [2, null]], ["int4", "text"])} as u(a, b)`));
    out.push(await p.one(s`select ${sql.jsonb({ a: [1] })} j, ${sql.array([1, 2], "int4")} arr, ${sql.date(new Date("2024-02-03"))} d, ${sql.timestamp(new Date(0))} ts, ${sql.interval({ days: 2 })} i, ${sql.uuid("0c8e4ff0-0000-4000-8000-000000000001")} u`));
    out.push(await p.transaction(async (tx) => {
      await tx.query(s`create temp table sl (a int primary key) on commit drop`);
      await tx.query(s`insert into sl select * from ${sql.unnest([[1], [2]], ["int4"])}`);
      return tx.oneFirst(s`select count(*) from sl`);
    }));
    out.push(await p.query(s`insert into shop.makers (name) values ('Ann')`).catch((e) => [e.constructor.name, e.constraint]));
    await p.end();
    return out;
  });
  await pool.end();
})();
