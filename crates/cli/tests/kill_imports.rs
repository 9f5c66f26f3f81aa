//! Imports, and dumps, of a node that is killed again and again: in the end all rows are there, once.
//!
//! `BRAID_KILLS=100` for as many kills; `BRAID_FIRST_SEED` for other moments.

mod support;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use braid_env::fs::{DiskFs, FileSystem};
use braid_env::random::Random;
use postgres::{Client, SimpleQueryMessage};
use support::Node;

const ROWS: u64 = 60_000;
/// Little memory and many checkpoints: runs, ssts and notes are there at any moment.
const OPTIONS: &str = "header, memory = '2MB', checkpoint_size = '400KB'";

fn given(name: &str, unless: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(unless)
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let line = |m: SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|n| row.get(n).unwrap_or("NULL"));
            Some(fields.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    answer.into_iter().filter_map(line).collect()
}

/// Four files of rows in random order, one of them compressed.
fn put_files(folder: &Path, random: &mut Random) {
    DiskFs.create_dir_all(folder).expect("a folder can be made");
    let mut keys: Vec<u64> = (0..ROWS).collect();
    for at in (1..keys.len()).rev() {
        keys.swap(at, random.below(at as u64 + 1) as usize);
    }
    for (part, keys) in keys.chunks(ROWS as usize / 4).enumerate() {
        let line = |n: &u64| format!("{n},{},\"name {}\"\n", n * 7 % 1000, n * n);
        let text = format!("id,n,t\n{}", keys.iter().map(line).collect::<String>());
        let (name, bytes) = match part {
            3 => {
                let to = flate2::Compression::fast();
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), to);
                packed.write_all(text.as_bytes()).expect("memory takes it");
                ("part-3.csv.gz".to_string(), packed.finish().expect("and the rest"))
            }
            _ => (format!("part-{part}.csv"), text.into_bytes()),
        };
        let file = DiskFs.create(&folder.join(name)).expect("a file can be made");
        file.write_at(&bytes, 0).expect("and written");
    }
}

/// All that can be seen of the table, by its rows and by each of its indexes.
fn content(client: &mut Client) -> Vec<String> {
    let mut out = Vec::new();
    for sql in [
        "SELECT count(*), sum(id), sum(n), count(DISTINCT id), md5(string_agg(t, ',' ORDER BY id)) FROM t",
        "SELECT count(*), sum(n) FROM t WHERE n >= 0",
        "SELECT n, count(*) FROM t WHERE n BETWEEN 10 AND 12 GROUP BY n ORDER BY n",
        "SELECT id FROM t WHERE t = 'name 3600' ORDER BY id",
    ] {
        out.extend(rows(client, sql));
    }
    out
}

/// A job that is to come to its end, whatever happens to its node.
struct Killed<'a> {
    store: &'a Path,
    job: String,
    /// It is told to pause now and then.
    pauses: bool,
    /// What must be true each time that the node is there again.
    check: &'a dyn Fn(&mut Client),
    /// Then it is left in peace.
    most: u64,
    kills: u64,
    resumed: u64,
}

impl Killed<'_> {
    /// Kills the node again and again until the job has succeeded.
    fn run(&mut self, mut node: Node, random: &mut Random) -> Node {
        let mut last = 0.0;
        loop {
            // The later, the longer: it has to come to its end, too.
            std::thread::sleep(Duration::from_millis(random.below(1_000 + 300 * self.kills)));
            let client = &mut node.client();
            let found = rows(client, "SHOW JOBS");
            let found = found.iter().find(|j| j.starts_with(&format!("{}|", self.job)));
            let fields: Vec<&str> = found.expect("the job is known").split('|').collect();
            let fraction: f64 = fields[fields.len() - 2].parse().unwrap_or(0.0);
            let state = fields[fields.len() - 4];
            assert!(fraction >= last, "progress went back from {last} to {fraction}");
            match state {
                "succeeded" => return node,
                "running" => {}
                other => panic!("job {} is {other}: {found:?}", self.job),
            }
            last = fraction;
            if self.kills >= self.most {
                continue;
            }
            if self.pauses && self.kills.is_multiple_of(2) {
                rows(client, &format!("PAUSE JOB {}", self.job));
            }
            // Only what a checkpoint has counts after a kill.
            last = 0.0;
            self.kills += 1;
            node.kill();
            node = Node::start(self.store);
            let client = &mut node.client();
            (self.check)(client);
            if rows(client, "SHOW JOBS").iter().any(|j| j.contains("|paused|")) {
                rows(client, &format!("RESUME JOB {}", self.job));
                self.resumed += 1;
            }
        }
    }
}

#[test]
fn an_import_that_is_killed_again_and_again_is_there_once() {
    let kills = given("BRAID_KILLS", 6);
    let mut random = Random::seeded(given("BRAID_FIRST_SEED", 1));
    let (mut killed, mut wanted) = (0, None);
    for round in 0.. {
        // Each mode at least once.
        if killed >= kills && round >= 3 {
            break;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = directory.path().join("store");
        // The same files each time: what is there in the end is the same, too.
        put_files(&store.join("import"), &mut Random::seeded(7));
        let node = Node::start(&store);
        let client = &mut node.client();
        rows(client, "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n >= 0), t text)");
        rows(client, "CREATE UNIQUE INDEX by_t ON t (t); CREATE INDEX by_n ON t (n, t)");
        rows(client, "INSERT INTO t VALUES (-1, 5, 'was there')");
        let pauses = random.below(4) == 0;
        let mode = ["one_pass", "two_pass", "auto"][round % 3];
        let sql =
            format!("IMPORT INTO t CSV DATA ('part-*') WITH {OPTIONS}, mode = '{mode}', detached");
        let job = rows(client, &sql)[0].split('|').next().expect("a job").to_string();
        let check = |client: &mut Client| {
            assert_eq!(rows(client, "SELECT count(*) FROM t WHERE id = -1"), ["1"]);
            let count = rows(client, "SELECT count(*) FROM t")[0].clone();
            assert!(count == "1" || count == (ROWS + 1).to_string(), "{count} rows are there");
        };
        let (store, check, most) = (&*store, &check, random.between(1, 8));
        let mut all = Killed { store, job, pauses, check, most, kills: 0, resumed: 0 };
        let node = all.run(node, &mut random);
        let client = &mut node.client();
        let found = content(client);
        assert_eq!(found, *wanted.get_or_insert_with(|| found.clone()), "mode {mode}");
        assert_eq!(found[0].split('|').next(), Some((ROWS + 1).to_string().as_str()));
        println!("{} kills, mode {mode}, {} times resumed", all.kills, all.resumed);
        killed += all.kills;
    }
}

/// A dump as pg_dump writes it: tables with their sequences and views, rows, then keys and indexes.
/// Compressed or not.
fn put_dump(folder: &Path) {
    DiskFs.create_dir_all(folder).expect("a folder can be made");
    let mut text = String::from(
        "SELECT pg_catalog.set_config('search_path', '', false);\n\
         CREATE TYPE public.kind AS ENUM ('even', 'odd');\n\
         CREATE TABLE public.t (id integer NOT NULL, n integer, t text, k public.kind, CHECK ((n >= 0)));\n\
         COMMENT ON TABLE public.t IS 'rows; of a dump';\n\
         CREATE SEQUENCE public.counted AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;\n\
         ALTER SEQUENCE public.counted OWNED BY public.t.id;\n\
         ALTER TABLE ONLY public.t ALTER COLUMN id SET DEFAULT nextval('public.counted'::regclass);\n\
         CREATE TABLE public.child (id integer NOT NULL, own integer NOT NULL);\n\
         ALTER TABLE public.child ALTER COLUMN own ADD GENERATED BY DEFAULT AS IDENTITY \
         (\n SEQUENCE NAME public.of_its_own\n START WITH 1\n);\n\
         CREATE VIEW public.few AS SELECT t.id FROM public.t WHERE (t.n = 7);\n\
         CREATE MATERIALIZED VIEW public.summed AS SELECT t.k, count(*) AS c FROM public.t GROUP BY t.k WITH NO DATA;\n\
         CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;\n\
         COPY public.t (id, n, t, k) FROM stdin;\n",
    );
    // In an order that is none.
    for id in (0..ROWS).map(|n| n * 7919 % ROWS) {
        let kind = if id % 2 == 0 { "even" } else { "odd" };
        text.push_str(&format!("{id}\t{}\tname {}\t{kind}\n", id * 7 % 1000, id * id));
    }
    text.push_str("\\.\nCOPY public.child (id, own) FROM stdin;\n");
    text.extend((0..ROWS / 10).map(|id| format!("{id}\t{}\n", id + 1)));
    text.push_str(&format!(
        "\\.\n\
         SELECT pg_catalog.setval('public.counted', {ROWS}, true);\n\
         SELECT pg_catalog.setval('public.of_its_own', 70000, false);\n\
         ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n\
         CREATE UNIQUE INDEX by_t ON public.t USING btree (t);\n\
         CREATE INDEX by_n ON public.t USING btree (n, t);\n\
         CREATE INDEX by_lower ON public.t USING btree (lower(t)) WHERE (n > 900);\n\
         CREATE TRIGGER tr BEFORE INSERT ON public.t FOR EACH ROW EXECUTE FUNCTION public.f();\n\
         ALTER TABLE ONLY public.child ADD CONSTRAINT child_t FOREIGN KEY (id) REFERENCES public.t(id);\n\
         COMMENT ON INDEX public.by_n IS 'an index';\n\
         REFRESH MATERIALIZED VIEW public.summed;\n",
    ));
    let to = flate2::Compression::fast();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), to);
    packed.write_all(text.as_bytes()).expect("memory takes it");
    let packed = packed.finish().expect("and the rest");
    for (name, bytes) in [("t.sql", text.as_bytes()), ("t.sql.gz", &packed)] {
        let file = DiskFs.create(&folder.join(name)).expect("a file can be made");
        file.write_at(bytes, 0).expect("and written");
    }
}

/// What is there of a dump besides rows, each once.
fn objects(client: &mut Client) -> Vec<String> {
    let mut out = Vec::new();
    for sql in [
        "SELECT relname, relkind, obj_description(oid, 'pg_class') FROM pg_class \
         WHERE relnamespace = 'public'::regnamespace ORDER BY 1, 2",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint \
         WHERE connamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT typname FROM pg_type WHERE typtype = 'e'",
        "SELECT count(*), sum(id) FROM few",
        "SELECT k, c FROM summed ORDER BY k",
        "SELECT count(*), count(DISTINCT id), sum(own) FROM child",
        "SELECT count(*) FROM t WHERE lower(t) = 'name 16129' AND n > 900",
        "SELECT nextval('counted'), nextval('of_its_own')",
    ] {
        out.extend(rows(client, sql));
    }
    out
}

#[test]
fn a_dump_that_is_killed_again_and_again_is_there_once() {
    let kills = given("BRAID_KILLS", 6);
    let mut random = Random::seeded(given("BRAID_FIRST_SEED", 1));
    let (mut killed, mut wanted) = (0, None);
    while killed < kills {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = directory.path().join("store");
        put_dump(&store.join("import"));
        let node = Node::start(&store);
        // From the first statement, or from a place between two, or within a table.
        let size = ["512MB", "1", "100KB", "400KB"][random.below(4) as usize];
        let file = ["t.sql", "t.sql.gz"][random.below(2) as usize];
        let sql = format!("IMPORT PGDUMP '{file}' WITH checkpoint_size = '{size}', detached");
        let told = rows(&mut node.client(), &sql);
        let job = told[0].split("job ").nth(1).and_then(|j| j.split('|').next()).expect("a job");
        let check = |client: &mut Client| {
            // All tables, or none.
            let there = rows(client, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
            if there != ["0"] {
                assert_eq!(rows(client, "SELECT count(*) FROM public.t"), [ROWS.to_string()]);
            }
        };
        let pauses = random.below(3) == 0;
        let (store, check, most) = (&*store, &check, random.between(1, 8));
        let job = job.to_string();
        let mut all = Killed { store, job, pauses, check, most, kills: 0, resumed: 0 };
        let node = all.run(node, &mut random);
        let client = &mut node.client();
        let mut found = content(client);
        found.extend(objects(client));
        assert_eq!(found, *wanted.get_or_insert_with(|| found.clone()));
        assert!(found.contains(&format!("{}|70000", ROWS + 1)), "{found:#?}");
        assert_eq!(found[0].split('|').next(), Some(ROWS.to_string().as_str()));
        let again = client.simple_query("INSERT INTO child (id) VALUES (-7)");
        assert!(again.is_err(), "the foreign key is there");
        println!("{} kills, {file}, checkpoints {size}, {} times resumed", all.kills, all.resumed);
        killed += all.kills;
    }
}
