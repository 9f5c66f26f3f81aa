//! IMPORT PGDUMP: dumps that are damaged, dry runs that tell all, statements that are left out.

mod harness;

use std::path::Path;

use braid_env::fs::{DiskFs, read_all};
use braid_env::random::Random;
use braid_sql::Session;
use harness::import_files::{Files, mutate};
use harness::{rows, run, state, try_run};

const PLAIN: &str = r#"--
-- PostgreSQL database dump
--
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TYPE public.mood AS ENUM ('sad', 'it''s; happy');
CREATE TABLE public.people (
    id integer NOT NULL,
    name text DEFAULT 'x;y'::text,
    mood public.mood,
    CONSTRAINT named CHECK ((name <> ''::text))
);
CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $_$ BEGIN RETURN NEW; -- ;
END $_$;
COPY public.people (id, name, mood) FROM stdin;
1	tab\there	sad
2	\N	it's; happy
3	back\\slash	\N
\.
INSERT INTO public.people VALUES (4, 'semi;colon', NULL);
ALTER TABLE ONLY public.people ADD CONSTRAINT people_pkey PRIMARY KEY (id);
CREATE TABLE public.notes (person integer NOT NULL, n integer NOT NULL, note text);
COPY public.notes (person, n, note) FROM stdin;
1	1	one
1	2	two
3	1	three
\.
ALTER TABLE ONLY public.notes ADD CONSTRAINT notes_pkey PRIMARY KEY (person, n);
ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_person_fkey FOREIGN KEY (person) REFERENCES public.people(id) ON DELETE CASCADE;
"#;

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn relations(s: &mut Session) -> Vec<String> {
    let mut out = Vec::new();
    for schema in rows(s, "show schemas") {
        if !schema.starts_with("pg_") && schema != "information_schema" {
            out.extend(rows(s, &format!("show tables from {schema}")));
            out.push(schema);
        }
    }
    out
}

/// Damaged dumps, plain and archives: an error that names its place and leaves nothing, or a whole
/// dump; never a panic. BRAID_SEEDS says how many.
#[test]
fn mutated_dumps_are_errors_or_whole_and_never_half() {
    let (first, rounds) =
        (given("BRAID_FIRST_SEED").unwrap_or(1), given("BRAID_SEEDS").unwrap_or(150));
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/dumps");
    let mut seeds = vec![PLAIN.as_bytes().to_vec()];
    for name in ["custom.dump", "piped.dump", "tar.dump"] {
        seeds.push(read_all(&DiskFs, &archives.join(name)).unwrap());
    }
    let files = Files::new();
    let mut open = None;
    for seed in first..first + rounds {
        let random = &mut Random::seeded(seed);
        let mut content = seeds[random.below(seeds.len() as u64) as usize].clone();
        for _ in 0..random.between(1, 4) {
            mutate(&mut content, random);
        }
        files.put("m", &content);
        // After one that was whole, a new database.
        let (_, s) = open.get_or_insert_with(|| files.database());
        let before = relations(s);
        match try_run(s, "import pgdump 'm' with ignore_unsupported_statements", &[]) {
            Ok(_) => open = None,
            Err(e) => {
                let told = format!("{} {}", e.message(), e.detail().unwrap_or_default());
                assert!(told.contains("\"m\""), "seed {seed}: {e:?} names no file");
                assert!(!e.state().0.starts_with("XX"), "seed {seed}: {e:?}");
                assert_eq!(relations(s), before, "seed {seed}: {e:?}");
            }
        }
    }
}

fn told(s: &mut Session, sql: &str) -> Vec<String> {
    let line = |r: Vec<String>| format!("{} {} {}: {}", r[0], r[1], r[2], r[3]);
    run(s, sql).rows.into_iter().map(line).collect()
}

#[test]
fn a_dry_run_goes_on_behind_what_fails_and_tells_all() {
    let files = Files::new();
    let wrong = PLAIN.replace("3\tback", "three\tback").replace(
        "CREATE TABLE public.notes",
        "CREATE FOREIGN TABLE b (i int) SERVER s;\nCREATE TABLE public.notes",
    );
    files.put("good.sql", PLAIN).put("wrong.sql", &wrong);
    let (_, s) = &mut files.database();
    let found = told(s, "import pgdump 'good.sql' with dry_run");
    let totals: Vec<&String> = found.iter().filter(|l| l.starts_with("total")).collect();
    assert_eq!(totals[0], "total NULL tables: 2");
    assert_eq!(totals[1], "total NULL rows: 6");
    assert_eq!(totals[4], "total NULL statements that fail: 0");
    let found = told(s, "import pgdump 'wrong.sql' with dry_run");
    let wrongs: Vec<&String> = found.iter().filter(|l| l.starts_with("wrong")).collect();
    // The COPY, the foreign table, and the foreign key whose rows are not there.
    assert_eq!(wrongs.len(), 3, "{found:#?}");
    assert!(
        wrongs[0].contains("22P02") && wrongs[0].contains("line 3, column id"),
        "{}",
        wrongs[0]
    );
    assert!(wrongs[1].starts_with("wrong 22 CREATE FOREIGN TABLE"), "{}", wrongs[1]);
    assert!(wrongs[2].contains("23503"), "{}", wrongs[2]);
    assert!(found.contains(&"loaded 24 public.notes: 3 rows".to_string()), "{found:#?}");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
    assert_eq!(state(s, "import pgdump 'wrong.sql'"), "22P02");
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
}

#[test]
fn what_is_left_out_is_written_whole_to_a_file() {
    let files = Files::new();
    files.put("d.sql", PLAIN);
    let (_, s) = &mut files.database();
    run(s, "import pgdump 'd.sql' with log_ignored_statements = 'left.sql', skip_foreign_keys");
    let left = files.text("left.sql");
    assert!(
        left.contains(
            "-- line 13: only functions in SQL are supported\nCREATE FUNCTION public.f()"
        ),
        "{left}"
    );
    assert!(left.contains("RETURN NEW; -- ;\nEND $_$;\n"), "{left}");
    assert!(
        left.contains("-- line 29: skip_foreign_keys\nALTER TABLE ONLY public.notes"),
        "{left}"
    );
    assert_eq!(rows(s, "select count(*) from notes"), ["3"]);
    run(s, "drop table notes; drop table people; drop type mood");
    let again = "import pgdump 'd.sql' with log_ignored_statements = 'left.sql'";
    assert_eq!(state(s, again), "58P02", "a file that is there is kept");
    for (option, wanted) in [
        ("log_ignored_statements = '../x'", "42501"),
        ("nonsense", "22023"),
        ("dry_run, dry_run", "22023"),
        ("interleave = 'a b c'", "22023"),
    ] {
        assert_eq!(state(s, &format!("import pgdump 'd.sql' with {option}")), wanted, "{option}");
    }
    assert_eq!(rows(s, "show tables"), Vec::<String>::new());
}
