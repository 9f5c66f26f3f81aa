//! Every interleaving of two and three short transactions, for each anomaly, at every mix of the
//! three isolation levels, against what each level promises (`harness/promises.rs`).
//!
//! Two transactions on a store of its own are always enumerated in full. Of three there are thousands
//! of interleavings and 27 mixes, and over ranges each takes several times as long: a seeded sample, or
//! all of them with `BRAID_ALL=1`. `BRAID_FIRST_SEED` chooses another sample.

mod harness;

use braid_env::random::Random;
use harness::promises::Judge;
use harness::schedules::Invariant::{Once, Same, Unique, Within};
use harness::schedules::{LEVELS, Level, Scenario, Theatre};

const NONE: Scenario = Scenario {
    name: "",
    schema: "",
    fill: "",
    tables: &[],
    transactions: Vec::new(),
    invariants: Vec::new(),
    errors: &[],
    changes_schema: false,
    cascades: false,
};

/// Three rows with an index over what changes.
fn rows(name: &'static str, transactions: Vec<&'static [&'static str]>) -> Scenario {
    Scenario {
        name,
        schema: "create table t (id int primary key, n int); create index on t (n)",
        fill: "insert into t values (1, 10), (2, 20), (3, 30)",
        tables: &["t"],
        transactions,
        invariants: vec![
            Same("select n, id from t where n = 10", "select n, id from t where n + 0 = 10"),
            Same("select n, id from t where n >= 0", "select n, id from t where n + 0 >= 0"),
        ],
        errors: &["23505"],
        ..NONE
    }
}

fn mixes(count: usize) -> Vec<Vec<Level>> {
    (0..count).fold(vec![Vec::new()], |all, _| {
        all.iter()
            .flat_map(|mix| LEVELS.iter().map(|&level| [mix.as_slice(), &[level]].concat()))
            .collect()
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Interleavings of three that are sampled from each mix of levels.
const SAMPLE: usize = 3;
/// Interleavings of two, and of three, that are sampled from each mix over ranges.
const OVER_RANGES: [usize; 2] = [3, 1];

fn prove(scenario: Scenario) {
    let seed = number("BRAID_FIRST_SEED", 1);
    let two = scenario.transactions.len() == 2;
    let over_ranges = env!("CARGO_CRATE_NAME").contains("_over_");
    let all = (two && !over_ranges) || number("BRAID_ALL", 0) == 1;
    let sample = if over_ranges { OVER_RANGES[usize::from(!two)] } else { SAMPLE };
    let mut random = Random::seeded(seed);
    let mut theatre = Theatre::new(&scenario);
    let mut judge = Judge::new(&scenario);
    let mut count = 0;
    for levels in mixes(scenario.transactions.len()) {
        let check = &mut |theatre: &mut Theatre<'_>, run: &_| judge.check(theatre, &levels, run);
        if all {
            count += theatre.every(&levels, check);
        } else {
            theatre.sample(&levels, &mut random, sample, check);
            count += sample;
        }
    }
    println!("{}: {count} runs, commits {:?}, seed {seed}", scenario.name, judge.commits);
    assert!(!judge.commits.contains(&0), "{}: somebody never commits", scenario.name);
}

/// What happens at one level is judged as if another had been asked for: the judge must object.
fn objects(scenario: Scenario, ran: Level, judged: Level) {
    let count = scenario.transactions.len();
    let (mut judge, mut objections) = (Judge::new(&scenario), 0);
    let mut random = Random::seeded(1);
    Theatre::new(&scenario).sample(&vec![ran; count], &mut random, 60, &mut |theatre, run| {
        objections += usize::from(judge.verdict(theatre, &vec![judged; count], run).is_err());
    });
    assert!(objections > 0, "{}: {ran:?} passes for {judged:?}", scenario.name);
}

#[test]
fn the_judge_objects_to_what_weaker_levels_allow() {
    let (weak, middle) = (Level::ReadCommitted, Level::RepeatableRead);
    let skew: Vec<&'static [&'static str]> = vec![
        &["select n from t where id = 2", "update t set n = 11 where id = 1"],
        &["select n from t where id = 1", "update t set n = 21 where id = 2"],
    ];
    objects(rows("write skew", skew), middle, Level::Serializable);
    let predicate: Vec<&'static [&'static str]> = vec![
        &["select count(*) from t where n >= 20", "insert into t values (4, 40)"],
        &["select count(*) from t where n >= 20", "insert into t values (5, 50)"],
    ];
    objects(rows("predicate skew", predicate), middle, Level::Serializable);
    let lost: Vec<&'static [&'static str]> = vec![
        &["select n from t where id = 1", "update t set n = 11 where id = 1"],
        &["select n from t where id = 1", "update t set n = 12 where id = 1"],
    ];
    objects(rows("lost update", lost.clone()), weak, middle);
    objects(rows("lost update", lost), weak, Level::Serializable);
    let unsteady: Vec<&'static [&'static str]> = vec![
        &["select n from t where id = 1", "select n from t where id = 1"],
        &["update t set n = 15 where id = 1"],
    ];
    objects(rows("non-repeatable read", unsteady), weak, middle);
}

#[test]
fn dirty_write() {
    prove(rows(
        "dirty write",
        vec![
            &["update t set n = 11 where id = 1", "update t set n = 21 where id = 2"],
            &["update t set n = 12 where id = 1", "update t set n = 22 where id = 2"],
        ],
    ));
    prove(rows(
        "dirty write, crossed",
        vec![
            &["update t set n = 11 where id = 1", "update t set n = 21 where id = 2"],
            &["update t set n = 22 where id = 2", "update t set n = 12 where id = 1"],
        ],
    ));
}

#[test]
fn dirty_and_intermediate_read() {
    prove(rows(
        "intermediate read",
        vec![
            &["update t set n = 11 where id = 1", "update t set n = 12 where id = 1"],
            &["select n from t where id = 1", "select n from t where id = 1"],
        ],
    ));
    prove(rows(
        "dirty read of a deleted and a new row",
        vec![
            &["delete from t where id = 1", "insert into t values (4, 40)"],
            &["select id, n from t order by id", "select count(*) from t where n >= 10"],
        ],
    ));
    prove(rows(
        "dirty read, then gone",
        vec![
            &["update t set n = 99 where id = 1", "update t set n = 10 where id = 1"],
            &["select id from t where n = 99", "update t set n = n + 1 where id = 1"],
        ],
    ));
}

#[test]
fn lost_update() {
    prove(rows(
        "lost update, one statement",
        vec![&["update t set n = n + 1 where id = 1"], &["update t set n = n + 5 where id = 1"]],
    ));
    prove(rows(
        "lost update, read first",
        vec![
            &["select n from t where id = 1", "update t set n = 11 where id = 1"],
            &["select n from t where id = 1", "update t set n = n + 5 where id = 1"],
        ],
    ));
    prove(rows(
        "lost update, locked first",
        vec![
            &["select n from t where id = 1 for update", "update t set n = n + 1 where id = 1"],
            &["select n from t where id = 1 for update", "update t set n = n + 5 where id = 1"],
        ],
    ));
    prove(rows(
        "lost update, by index",
        vec![
            &["update t set n = n + 10 where n = 10"],
            &["update t set n = n + 10 where n = 20", "select n from t order by id"],
        ],
    ));
    prove(rows(
        "lost update and delete",
        vec![
            &["select n from t where id = 1", "delete from t where id = 1"],
            &["select n from t where id = 1", "update t set n = n + 5 where id = 1"],
        ],
    ));
}

#[test]
fn read_skew() {
    prove(rows(
        "read skew",
        vec![
            &["select n from t where id = 1", "select n from t where id = 2"],
            &["update t set n = 15 where id = 1", "update t set n = 15 where id = 2"],
        ],
    ));
    prove(rows(
        "read skew, then a write",
        vec![
            &["select n from t where id = 1", "update t set n = n + 1 where id = 2"],
            &["update t set n = 15 where id = 1", "update t set n = 15 where id = 2"],
        ],
    ));
}

#[test]
fn write_skew() {
    prove(rows(
        "write skew",
        vec![
            &["select n from t where id = 2", "update t set n = 11 where id = 1"],
            &["select n from t where id = 1", "update t set n = 21 where id = 2"],
        ],
    ));
    prove(rows(
        "write skew by subquery",
        vec![
            &["update t set n = 25 where id = 1", "select n from t where id = 2"],
            &["update t set n = 26 where id = 2", "select n from t where id = 1"],
        ],
    ));
}

#[test]
fn phantoms() {
    prove(rows(
        "phantom",
        vec![
            &["select id from t where n >= 20 order by id", "select count(*) from t where n >= 20"],
            &["insert into t values (4, 40)", "delete from t where id = 2"],
        ],
    ));
    prove(rows(
        "phantom by key",
        vec![
            &[
                "select id from t where id >= 2 order by id",
                "select id from t where id >= 2 order by id",
            ],
            &["insert into t values (4, 5)", "update t set n = 50 where id = 1"],
        ],
    ));
    prove(rows(
        "predicate write skew",
        vec![
            &["select count(*) from t where n >= 20", "insert into t values (4, 40)"],
            &["select count(*) from t where n >= 20", "insert into t values (5, 50)"],
        ],
    ));
    prove(rows(
        "predicate write skew by update",
        vec![
            &["select id from t where n = 20", "update t set n = 20 where id = 1"],
            &["select id from t where n = 20", "update t set n = 20 where id = 3"],
        ],
    ));
    prove(rows(
        "predicate update and insert",
        vec![
            &["update t set n = n + 100 where n >= 20", "select id, n from t order by id"],
            &["insert into t values (4, 40)", "update t set n = 21 where id = 1"],
        ],
    ));
    prove(rows(
        "range delete and insert",
        vec![
            &["delete from t where id >= 2", "select id from t order by id"],
            &["insert into t values (4, 40)", "select id from t order by id"],
        ],
    ));
}

#[test]
fn long_fork() {
    prove(rows(
        "long fork",
        vec![
            &["update t set n = 11 where id = 1"],
            &["update t set n = 21 where id = 2"],
            &["select n from t where id = 1", "select n from t where id = 2"],
        ],
    ));
}

#[test]
fn read_only_anomaly() {
    prove(rows(
        "read-only anomaly",
        vec![
            &["select id, n from t where id <= 2 order by id", "update t set n = -1 where id = 1"],
            &["select n from t where id = 2", "update t set n = n + 20 where id = 2"],
            &["select id, n from t where id <= 2 order by id"],
        ],
    ));
}

#[test]
fn three_in_a_ring() {
    prove(rows(
        "ring of write skews",
        vec![
            &["select n from t where id = 2", "update t set n = 11 where id = 1"],
            &["select n from t where id = 3", "update t set n = 21 where id = 2"],
            &["select n from t where id = 1", "update t set n = 31 where id = 3"],
        ],
    ));
    prove(rows(
        "ring of waits",
        vec![
            &["update t set n = n + 1 where id = 1", "update t set n = n + 1 where id = 2"],
            &["update t set n = n + 1 where id = 2", "update t set n = n + 1 where id = 3"],
            &["update t set n = n + 1 where id = 3", "update t set n = n + 1 where id = 1"],
        ],
    ));
    prove(rows(
        "three increments and a sum",
        vec![
            &["update t set n = n + 1 where id = 1"],
            &["update t set n = n + 2 where id = 1", "select sum(n) from t"],
            &["delete from t where id = 1", "insert into t values (1, 0)"],
        ],
    ));
}

#[test]
fn unique_keys() {
    let unique = |name, transactions| Scenario {
        name,
        schema: "create table t (id int primary key, u int unique)",
        fill: "insert into t values (1, 10), (2, 20)",
        tables: &["t"],
        transactions,
        invariants: vec![
            Same("select u, id from t where u >= 0", "select u, id from t where u + 0 >= 0"),
            Unique("select u from t"),
            Unique("select id from t"),
        ],
        errors: &["23505"],
        ..NONE
    };
    prove(unique(
        "unique, both insert",
        vec![
            &["select id from t where u = 30", "insert into t values (3, 30)"],
            &["select id from t where u = 30", "insert into t values (4, 30)"],
        ],
    ));
    prove(unique(
        "unique, given back",
        vec![
            &["delete from t where id = 1", "insert into t values (1, 11)"],
            &["insert into t values (3, 10)", "select count(*) from t"],
        ],
    ));
    prove(unique(
        "unique, exchanged",
        vec![
            &["update t set u = 30 where id = 1", "update t set u = 10 where id = 2"],
            &["update t set u = 20 where id = 1", "select u from t order by id"],
        ],
    ));
    prove(unique(
        "unique, upserts",
        vec![
            &["insert into t values (3, 10) on conflict (u) do update set u = 40"],
            &[
                "insert into t values (4, 10) on conflict (u) do nothing",
                "select id, u from t order by id",
            ],
            &["delete from t where u = 10", "insert into t values (5, 40)"],
        ],
    ));
}

/// Parents and children, by foreign key.
fn referenced(
    name: &'static str,
    schema: &'static str,
    transactions: Vec<&'static [&'static str]>,
) -> Scenario {
    Scenario {
        name,
        schema,
        fill: "insert into p values (1, 0), (2, 0); insert into c values (2, 9)",
        tables: &["p", "c"],
        transactions,
        invariants: vec![
            Within("select id from c where id is not null", "select id from p"),
            Same("select count(*) from c where k >= 0", "select count(*) from c where k + 0 >= 0"),
        ],
        errors: &["23503", "23505"],
        cascades: true,
        ..NONE
    }
}

const BY_KEY: &str = "create table p (id int primary key, n int); \
    create table c (id int references p, k int primary key)";
const BY_KEY_CASCADE: &str = "create table p (id int primary key, n int); \
    create table c (id int references p on delete cascade on update cascade, k int primary key)";
const BY_KEY_NULL: &str = "create table p (id int primary key, n int); \
    create table c (id int references p on delete set null on update set null, k int primary key)";
const INSIDE: &str = "create table p (id int primary key, n int); \
    create table c (id int, k int, primary key (id, k)) interleave in parent p on delete cascade; \
    create index on c (k)";
const INSIDE_STRICT: &str = "create table p (id int primary key, n int); \
    create table c (id int, k int, primary key (id, k)) interleave in parent p";

#[test]
fn orphans_by_foreign_key() {
    for schema in [BY_KEY, BY_KEY_CASCADE, BY_KEY_NULL] {
        prove(referenced(
            "orphans, insert and delete",
            schema,
            vec![
                &["select id from p order by id", "insert into c values (1, 1)"],
                &["select id, k from c order by k", "delete from p where id = 1"],
            ],
        ));
        prove(referenced(
            "orphans, moved and deleted",
            schema,
            vec![
                &["update c set id = 1 where k = 9", "select id from p order by id"],
                &["delete from p where id = 1", "select id, k from c order by k"],
            ],
        ));
        prove(referenced(
            "orphans, key moved",
            schema,
            vec![
                &["insert into c values (1, 1)", "select id from p order by id"],
                &["update p set id = 7 where id = 1", "select id, k from c order by k"],
            ],
        ));
    }
    prove(referenced(
        "orphans, two children and a parent",
        BY_KEY_CASCADE,
        vec![
            &["insert into c values (1, 1)"],
            &["delete from p where id = 1", "insert into p values (1, 5)"],
            &["update c set id = 1 where k = 9", "select id, k from c order by k"],
        ],
    ));
}

#[test]
fn orphans_by_interleaving() {
    for (goes, returning) in [
        ("range delete", &["select count(*) from c", "delete from p where id = 1"] as &[_]),
        ("row path", &["select count(*) from c", "delete from p where id = 1 returning id"]),
        ("by expression", &["select count(*) from c", "delete from p where id + 0 = 1"]),
    ] {
        for schema in [INSIDE, INSIDE_STRICT] {
            prove(referenced(
                goes,
                schema,
                vec![&["select id from p order by id", "insert into c values (1, 1)"], returning],
            ));
        }
    }
    prove(referenced(
        "a family erased and rewritten",
        INSIDE,
        vec![
            &[
                "delete from p where id = 2",
                "insert into p values (2, 1)",
                "insert into c values (2, 1)",
            ],
            &["insert into c values (2, 5)", "select id, k from c order by id, k"],
        ],
    ));
    prove(referenced(
        "a family erased twice, and a reader",
        INSIDE,
        vec![
            &["delete from p where id = 2", "insert into p values (2, 1)"],
            &["insert into c values (2, 5)", "delete from p where id = 2"],
            &["select id from p order by id", "select id, k from c order by id, k"],
        ],
    ));
}

#[test]
fn truncate_beside_statements() {
    for schema in [INSIDE, BY_KEY] {
        prove(referenced(
            "truncate and insert",
            schema,
            vec![
                &["select count(*) from c", "insert into c values (1, 1)"],
                &["truncate c", "insert into c values (1, 7)"],
            ],
        ));
        prove(referenced(
            "truncate and read",
            schema,
            vec![
                &["select count(*) from c", "update p set n = 5 where id = 1"],
                &["select n from p where id = 1", "truncate c"],
            ],
        ));
        prove(referenced(
            "truncate of all and insert",
            schema,
            vec![
                &["select id from p order by id", "insert into c values (1, 1)"],
                &["truncate p, c", "insert into p values (3, 3)"],
            ],
        ));
    }
}

/// A table whose schema changes beside statements on it.
fn changing(name: &'static str, transactions: Vec<&'static [&'static str]>) -> Scenario {
    Scenario {
        name,
        schema: "create table p (id int primary key); create table t (id int primary key, n int)",
        fill: "insert into p values (10); insert into t values (1, 10)",
        tables: &["p", "t"],
        transactions,
        invariants: vec![
            Same("select id from t where n = 10", "select id from t where n + 0 = 10"),
            Same("select id from t where n = 20", "select id from t where n + 0 = 20"),
        ],
        errors: &["23505", "23503", "23502", "23514", "42P01", "42703", "42601", "0A000"],
        changes_schema: true,
        ..NONE
    }
}

#[test]
fn indexes_created_beside_statements() {
    prove(changing(
        "create index",
        vec![
            &["insert into t values (2, 20)", "update t set n = 20 where id = 1"],
            &["select count(*) from t", "create index i on t (n)"],
        ],
    ));
    let mut unique = changing(
        "create unique index",
        vec![
            &["insert into t values (2, 10)", "select count(*) from t"],
            &["create unique index i on t (n)", "select count(*) from t where n = 10"],
        ],
    );
    let another = "select id from t where n = 10 and id > 1";
    unique.invariants.push(Once("insert into t values (9, 10)", "23505", another));
    prove(unique);
}

#[test]
fn constraints_added_beside_statements() {
    let once = |mut scenario: Scenario, statement, code, query| {
        scenario.invariants.push(Once(statement, code, query));
        prove(scenario);
    };
    let check = changing(
        "add check",
        vec![
            &["insert into t values (2, 20)", "select n from t order by id"],
            &["select count(*) from t", "alter table t add constraint k check (n < 15)"],
        ],
    );
    once(check, "insert into t values (9, 99)", "23514", "select id from t where n + 0 >= 15");
    let not_null = changing(
        "set not null",
        vec![
            &["insert into t values (2, null)", "select n from t order by id"],
            &["alter table t alter column n set not null", "select count(*) from t"],
        ],
    );
    once(not_null, "insert into t values (9, null)", "23502", "select id from t where n is null");
    let references = changing(
        "add foreign key",
        vec![
            &["insert into t values (2, 20)", "select n from t order by id"],
            &["select count(*) from t", "alter table t add foreign key (n) references p"],
        ],
    );
    once(references, "insert into t values (9, 77)", "23503", "select id from t where n + 0 = 20");
    let parent = changing(
        "add foreign key, parent goes",
        vec![
            &["delete from p where id = 10", "select id from p"],
            &["select count(*) from t", "alter table t add foreign key (n) references p"],
        ],
    );
    once(
        parent,
        "insert into t values (9, 77)",
        "23503",
        "select n from t where n = 10 and id = 9",
    );
    prove(changing(
        "add column",
        vec![
            &["insert into t (id, n) values (2, 20)", "update t set n = 20 where id = 1"],
            &["alter table t add column m int default 7", "select m from t order by id"],
        ],
    ));
}

#[test]
fn tables_dropped_beside_statements() {
    prove(changing(
        "drop table",
        vec![
            &["select count(*) from t", "insert into t values (2, 20)"],
            &["select count(*) from p", "drop table t"],
        ],
    ));
    prove(changing(
        "drop column",
        vec![
            &["insert into t values (2, 20)", "select id from t order by id"],
            &["alter table t drop column n", "select id from t order by id"],
        ],
    ));
}

#[test]
fn schema_changes_and_truncate_beside_two() {
    prove(changing(
        "create index beside two writers",
        vec![
            &["insert into t values (2, 20)"],
            &["update t set n = 20 where id = 1", "select id from t where n = 20 order by id"],
            &["create index i on t (n)"],
        ],
    ));
    prove(changing(
        "two schema changes and a writer",
        vec![
            &["insert into t (id, n) values (2, 20)"],
            &["alter table t add column m int default 7"],
            &["create index i on t (n)", "select id from t where n = 20"],
        ],
    ));
    prove(referenced(
        "truncate beside two",
        INSIDE,
        vec![
            &["insert into c values (1, 1)"],
            &["delete from p where id = 2", "select count(*) from c"],
            &["truncate c", "insert into c values (1, 7)"],
        ],
    ));
}
