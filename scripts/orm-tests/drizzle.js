// Drizzle: migrations as drizzle-kit writes them, queries, relations, each answer on a line.
// usage: node drizzle.js URL
const { drizzle } = require("drizzle-orm/node-postgres");
const p = require("drizzle-orm/pg-core");
const { eq, sql, and, inArray, desc, relations, count, gt } = require("drizzle-orm");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const { Pool } = require("pg");
const fs = require("fs");
const pool = new Pool({ connectionString: process.argv[2] });
async function t(name, f) {
  try {
    const r = await f();
    console.log(name, JSON.stringify(r)?.slice(0, 600));
  } catch (e) {
    const c = e.cause || e;
    console.log(name, "ERR", c.code, c.message.slice(0, 300));
  }
}
const mood = p.pgEnum("dz_mood", ["ok", "bad"]);
const users = p.pgTable("dz_users", {
  id: p.serial("id").primaryKey(),
  name: p.varchar("name", { length: 40 }).notNull().unique(),
  mood: mood("mood").default("ok"),
  j: p.jsonb("j"),
  tags: p.text("tags").array(),
  at: p.timestamp("at", { withTimezone: true, precision: 3 }).defaultNow(),
  n: p.numeric("n", { precision: 8, scale: 2 }),
  u: p.uuid("u").defaultRandom(),
  b: p.bigint("b", { mode: "bigint" }),
  d: p.date("d"),
  iv: p.interval("iv"),
  ip: p.inet("ip"),
  tm: p.time("tm"),
});
const posts = p.pgTable(
  "dz_posts",
  {
    id: p.integer("id").primaryKey().generatedAlwaysAsIdentity(),
    uid: p.integer("uid").references(() => users.id, { onDelete: "cascade" }),
    title: p.text("title"),
  },
  (t) => [p.index("dz_ix").on(t.uid.asc(), t.title.desc().nullsLast())],
);
const ur = relations(users, ({ many }) => ({ posts: many(posts) })),
  pr = relations(posts, ({ one }) => ({
    user: one(users, { fields: [posts.uid], references: [users.id] }),
  }));
const db = drizzle(pool, { schema: { users, posts, ur, pr } });
(async () => {
  await pool.query(
    "drop table if exists dz_posts, dz_users cascade; drop type if exists dz_mood; drop schema if exists drizzle cascade",
  );
  fs.rmSync(process.cwd() + "/dzm", { recursive: true, force: true });
  fs.mkdirSync(process.cwd() + "/dzm/meta", { recursive: true });
  fs.writeFileSync(
    process.cwd() + "/dzm/0000_a.sql",
    `DO $$ BEGIN
 CREATE TYPE "public"."dz_mood" AS ENUM('ok', 'bad');
EXCEPTION
 WHEN duplicate_object THEN null;
END $$;
--> statement-breakpoint
CREATE TABLE IF NOT EXISTS "dz_users" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" varchar(40) NOT NULL,
	"mood" "dz_mood" DEFAULT 'ok',
	"j" jsonb, "tags" text[], "at" timestamp (3) with time zone DEFAULT now(), "n" numeric(8, 2), "u" uuid DEFAULT gen_random_uuid(), "b" bigint, "d" date, "iv" interval, "ip" inet, "tm" time,
	CONSTRAINT "dz_users_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE IF NOT EXISTS "dz_posts" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "dz_posts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"uid" integer, "title" text
);
--> statement-breakpoint
DO $$ BEGIN
 ALTER TABLE "dz_posts" ADD CONSTRAINT "dz_posts_uid_fk" FOREIGN KEY ("uid") REFERENCES "public"."dz_users"("id") ON DELETE cascade ON UPDATE no action;
EXCEPTION
 WHEN duplicate_object THEN null;
END $$;
--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "dz_ix" ON "dz_posts" USING btree ("uid","title" DESC NULLS LAST);
--> statement-breakpoint
ALTER TABLE "dz_posts" ALTER COLUMN "id" SET DATA TYPE bigint;--> statement-breakpoint
ALTER TABLE "dz_users" ADD COLUMN "extra" integer GENERATED ALWAYS AS (length(name) * 2) STORED;`,
  );
  fs.writeFileSync(
    process.cwd() + "/dzm/meta/_journal.json",
    JSON.stringify({
      version: "7",
      dialect: "postgresql",
      entries: [{ idx: 0, version: "7", when: 1, tag: "0000_a", breakpoints: true }],
    }),
  );
  await t("mig", () => migrate(db, { migrationsFolder: process.cwd() + "/dzm" }).then(() => 1));
  await t("mig2", () => migrate(db, { migrationsFolder: process.cwd() + "/dzm" }).then(() => 1));
  await t("ins", () =>
    db
      .insert(users)
      .values([
        {
          name: "a",
          j: { x: [1] },
          tags: ["p", "q"],
          n: "1.5",
          d: "2020-01-02",
          iv: "1 day",
          ip: "10.0.0.1",
          tm: "10:11:12",
        },
        { name: "b" },
      ])
      .returning({
        id: users.id,
        name: users.name,
        mood: users.mood,
        tags: users.tags,
        iv: users.iv,
        n: users.n,
      }),
  );
  await t("insp", () =>
    db
      .insert(posts)
      .values([
        { uid: 1, title: "t1" },
        { uid: 1, title: "t2" },
        { uid: 2, title: "t3" },
      ])
      .returning(),
  );
  await t("up", () =>
    db
      .insert(users)
      .values({ name: "a", n: "3" })
      .onConflictDoUpdate({ target: users.name, set: { n: sql`excluded.n + 1` } })
      .returning({ n: users.n }),
  );
  await t("rel", () =>
    db.query.users.findMany({
      columns: { id: true, name: true, tags: true },
      with: {
        posts: {
          orderBy: (p, { desc }) => [desc(p.id)],
          limit: 1,
          columns: { id: true, title: true },
        },
      },
      orderBy: (u, { asc }) => [asc(u.id)],
    }),
  );
  await t("rel2", () =>
    db.query.posts.findFirst({
      with: { user: { columns: { name: true }, with: { posts: true } } },
      where: eq(posts.id, 3),
    }),
  );
  await t("join", () =>
    db
      .select({ n: users.name, c: count(posts.id) })
      .from(users)
      .leftJoin(posts, eq(posts.uid, users.id))
      .groupBy(users.id)
      .orderBy(users.id),
  );
  await t("cte", () => {
    const w = db.$with("w").as(
      db
        .select({ uid: posts.uid, c: sql`count(*)::int`.as("c") })
        .from(posts)
        .groupBy(posts.uid),
    );
    return db
      .with(w)
      .select({ n: users.name, c: w.c })
      .from(w)
      .innerJoin(users, eq(users.id, w.uid))
      .orderBy(desc(w.c));
  });
  await t("prep", async () => {
    const q = db
      .select({ id: users.id })
      .from(users)
      .where(eq(users.name, sql.placeholder("n")))
      .prepare("q1");
    return [await q.execute({ n: "a" }), await q.execute({ n: "b" })];
  });
  await t("tx", () =>
    db.transaction(
      async (x) => {
        await x.insert(users).values({ name: "c" });
        try {
          await x.transaction(async (y) => {
            await y.insert(users).values({ name: "c" });
          });
        } catch (e) {}
        return x.$count(users);
      },
      { isolationLevel: "repeatable read", accessMode: "read write" },
    ),
  );
  await t("updfrom", () =>
    db
      .update(posts)
      .set({ title: sql`${users.name} || ${posts.title}` })
      .from(users)
      .where(eq(posts.uid, users.id))
      .returning({ t: posts.title })
      .then((r) => r.map((x) => x.t).sort()),
  );
  await t("del", () =>
    db
      .delete(users)
      .where(inArray(users.name, ["b"]))
      .returning({ id: users.id }),
  );
  await t("lock", () =>
    db.transaction((x) =>
      x
        .select({ id: users.id })
        .from(users)
        .where(gt(users.id, 0))
        .for("update", { skipLocked: true })
        .orderBy(users.id),
    ),
  );
  await t("setop", () =>
    db
      .select({ x: users.name })
      .from(users)
      .union(db.select({ x: posts.title }).from(posts))
      .orderBy(sql`1`),
  );
  await t("mv", () =>
    pool
      .query("create materialized view dz_v as select name from dz_users")
      .then(() => db.execute(sql`refresh materialized view dz_v`))
      .then(() => pool.query("drop materialized view dz_v"))
      .then(() => 1),
  );
  await pool.end();
})();
