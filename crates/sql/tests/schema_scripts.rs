//! Schema changes told in scripts: `testscripts/schema_changes/*.txt`.
//!
//! ```text
//!   SQL;                        run; rows and errors are printed
//!   at backfill: SQL            run by another session when a change in steps gets there
//!   at merge: cancel            CANCEL JOB at that step
//! ```
//! Printed besides: every step of a change, and the committed descriptors of a table whenever they
//! are others than those printed last. `BRAID_REWRITE=1` writes all of it anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{database, session, try_run};
use braid_catalog::{Addition, Catalog, ForeignKey, Index, Table, load_catalog};
use braid_kv::TxnOptions;
use braid_sql::jobs::Step;
use braid_sql::{Database, Session, SessionOptions};
use parking_lot::Mutex;

struct Scene {
    db: Arc<Database>,
    session: Session,
    /// Raised by CANCEL JOB.
    cancel: Arc<AtomicBool>,
    printed: Arc<Mutex<Printed>>,
}

/// What was printed last.
#[derive(Default)]
struct Printed {
    tables: BTreeMap<String, String>,
    /// Generations that tables and indexes have had, by id.
    generations: BTreeMap<u32, Vec<u32>>,
}

impl Printed {
    /// Says which generation it is, from the second on.
    fn generation(&mut self, id: u32, generation: u32) -> String {
        let known = self.generations.entry(id).or_default();
        if !known.contains(&generation) {
            known.push(generation);
        }
        match known.iter().position(|g| *g == generation) {
            Some(0) | None => String::new(),
            Some(n) => format!(", generation {}", n + 1),
        }
    }
}

impl Scene {
    fn new() -> Scene {
        let (db, cancel) = (database(), Arc::new(AtomicBool::new(false)));
        let options = SessionOptions {
            user: "root".into(),
            database: "defaultdb".into(),
            cancel: cancel.clone(),
            ..SessionOptions::default()
        };
        let session = Session::new(db.clone(), options).unwrap();
        Scene { session, db, cancel, printed: Arc::default() }
    }
}

fn index(p: &mut Printed, t: &Table, i: &Index) -> String {
    let name = |id: u32| t.column(id).map_or("?", |c| c.name.as_str());
    let keys: Vec<String> = i
        .columns
        .iter()
        .map(|c| format!("{}{}", name(c.column), if c.desc { " desc" } else { "" }))
        .collect();
    let include: Vec<&str> = i.include.iter().map(|c| name(*c)).collect();
    let include = if include.is_empty() {
        String::new()
    } else {
        format!(" include ({})", include.join(", "))
    };
    let unique = if i.unique { "unique " } else { "" };
    let inside = if i.interleave_in.is_some() { ", interleaved" } else { "" };
    let generation = p.generation(i.id, i.generation);
    format!("{unique}index {} ({}){include}{inside}{generation}", i.name, keys.join(", "))
}

fn foreign_key(catalog: &Catalog, t: &Table, fk: &ForeignKey) -> String {
    let parent = catalog.table(fk.parent).map_or("?", |p| p.name.as_str());
    let columns: Vec<&str> =
        fk.columns.iter().map(|c| t.column(*c).map_or("?", |c| c.name.as_str())).collect();
    let (columns, delete) = (columns.join(", "), fk.on_delete.sql());
    format!("foreign key {} ({columns}) to {parent}, on delete {delete}", fk.name)
}

/// What a table's descriptor says, a line for each part.
fn describe(p: &mut Printed, catalog: &Catalog, t: &Table) -> String {
    let columns: Vec<String> = t
        .columns
        .iter()
        .filter(|c| !c.hidden)
        .map(|c| {
            let null = if c.nullable { "" } else { " not null" };
            let default = c.default.as_ref().map_or(String::new(), |d| format!(" default {d}"));
            format!("{} {}{null}{default}", c.name, c.ty.name())
        })
        .collect();
    let inside = t.interleave.as_ref().map_or(String::new(), |i| {
        let parent = catalog.table(i.parent).map_or("?", |p| p.name.as_str());
        format!(" in {parent}, on delete {}", i.on_delete.sql())
    });
    let later = p.generation(t.id, t.generation);
    let mut lines = vec![
        format!("{}{inside}: step {}{later}", t.name, t.step),
        format!("  {}", columns.join(", ")),
    ];
    lines.push(format!("  {}", index(p, t, &t.primary)));
    lines.extend(t.indexes.iter().map(|i| format!("  {}", index(p, t, i))));
    lines.extend(t.checks.iter().map(|c| format!("  check {} ({})", c.name, c.expr)));
    lines.extend(t.foreign_keys.iter().map(|fk| format!("  {}", foreign_key(catalog, t, fk))));
    if let Some(building) = &t.building {
        let what = match &building.addition {
            Addition::Index { index: i, noting: true, .. } => format!("noting {}", index(p, t, i)),
            Addition::Index { index: i, noting: false, .. } => {
                format!("write-only {}", index(p, t, i))
            }
            Addition::Check(c) => format!("enforced check {} ({})", c.name, c.expr),
            Addition::ForeignKey(fk) => format!("enforced {}", foreign_key(catalog, t, fk)),
            Addition::NotNull(c) => {
                format!("enforced not null of {}", t.column(*c).map_or("?", |c| c.name.as_str()))
            }
        };
        lines.push(format!("  building: {what}"));
    }
    lines.join("\n")
}

/// Adds the descriptors that differ from those printed last.
fn news(db: &Arc<Database>, printed: &Mutex<Printed>, out: &mut Vec<String>) {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let catalog = load_catalog(&txn).unwrap();
    let mut printed = printed.lock();
    let now: BTreeMap<String, String> =
        catalog.tables().map(|t| (t.name.clone(), describe(&mut printed, &catalog, t))).collect();
    let before = std::mem::replace(&mut printed.tables, now);
    let now = &printed.tables;
    out.extend(before.keys().filter(|n| !now.contains_key(*n)).map(|n| format!("{n} is gone")));
    out.extend(now.iter().filter(|(n, text)| before.get(*n) != Some(text)).map(|(_, t)| t.clone()));
}

fn answer(s: &mut Session, sql: &str, out: &mut Vec<String>) {
    match try_run(s, sql, &[]) {
        Ok(answer) => out.extend(answer.rows.iter().map(|row| row.join(" | "))),
        Err(e) => {
            s.fail();
            out.push(format!("{}: {}", e.state().0, e.message()));
            out.extend(e.detail().map(|detail| format!("  {detail}")));
        }
    }
}

fn play(scene: &mut Scene, lines: &[&str]) -> String {
    // The server lowers it before each message.
    scene.cancel.store(false, Ordering::Relaxed);
    let (at, sql): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.starts_with("at "));
    let script: Vec<(String, String)> = at
        .iter()
        .map(|line| {
            line.strip_prefix("at ").and_then(|l| l.split_once(": ")).expect("at STEP: SQL")
        })
        .map(|(step, sql)| (step.to_string(), sql.to_string()))
        .collect();
    let out: Arc<Mutex<Vec<String>>> = Arc::default();
    let (db, printed, told) = (scene.db.clone(), scene.printed.clone(), out.clone());
    let other = Mutex::new(session(&db));
    scene.db.jobs().listen(move |step: &Step| {
        let mut out = told.lock();
        news(&db, &printed, &mut out);
        out.push(format!("-- {}", step.name));
        for (_, sql) in script.iter().filter(|(name, _)| name == step.name) {
            let sql = match sql.as_str() {
                "cancel" => format!("cancel job {}", step.job),
                sql => sql.to_string(),
            };
            out.push(format!("other: {sql}"));
            answer(&mut other.lock(), &sql, &mut out);
        }
    });
    for statement in sql.join("\n").split_inclusive(';') {
        let mut own = Vec::new();
        answer(&mut scene.session, statement, &mut own);
        out.lock().extend(own);
    }
    scene.db.jobs().listen(|_| {});
    let mut out = std::mem::take(&mut *out.lock());
    news(&scene.db, &scene.printed, &mut out);
    out.join("\n")
}

#[test]
fn scripts_of_schema_changes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testscripts/schema_changes");
    braid_script::check(folder, Scene::new, play);
}
