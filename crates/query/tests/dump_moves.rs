//! A dump whose tables move into their parents, and whose node stops in between: another process
//! moves the others, and tells of all of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use braid_env::fs::{CrashPolicy, DiskFs, FileSystem, MemFs, read_all};
use braid_env::random::Random;
use parking_lot::Mutex;

use crate::harness::Db;

const DUMP: &str = "SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.customers (id integer NOT NULL, name text);
CREATE TABLE public.lines (order_id integer NOT NULL, n integer NOT NULL, what text);
CREATE TABLE public.orders (customer integer NOT NULL, id integer NOT NULL, at date);
CREATE TABLE public.parts (customer integer NOT NULL, id integer NOT NULL, n integer NOT NULL);
CREATE TABLE public.tags (customer integer NOT NULL, tag text NOT NULL);
COPY public.customers (id, name) FROM stdin;
1\tAda
2\tBob
\\.
COPY public.orders (customer, id, at) FROM stdin;
1\t10\t2026-01-01
2\t12\t\\N
\\.
COPY public.parts (customer, id, n) FROM stdin;
1\t10\t1
1\t10\t2
\\.
COPY public.tags (customer, tag) FROM stdin;
1\tgood
2\tbad
\\.
ALTER TABLE ONLY public.customers ADD CONSTRAINT customers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_pkey PRIMARY KEY (customer, id);
ALTER TABLE ONLY public.parts ADD CONSTRAINT parts_pkey PRIMARY KEY (customer, id, n);
ALTER TABLE ONLY public.tags ADD CONSTRAINT tags_pkey PRIMARY KEY (customer, tag);
ALTER TABLE ONLY public.orders ADD CONSTRAINT orders_fkey FOREIGN KEY (customer) REFERENCES public.customers(id);
ALTER TABLE ONLY public.parts ADD CONSTRAINT parts_fkey FOREIGN KEY (customer, id) REFERENCES public.orders(customer, id);
ALTER TABLE ONLY public.tags ADD CONSTRAINT tags_fkey FOREIGN KEY (customer) REFERENCES public.customers(id);
";

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder, fs: &MemFs) -> Db {
    let db = Db::on(fs.clone());
    db.session.state().db().set_import_folder(&folder.0);
    db
}

/// The report of the job, when it has succeeded.
fn report(db: &mut Db, folder: &Folder) -> String {
    for _ in 0..1_000 {
        let job = db.try_run("SHOW JOBS").unwrap()[0].clone();
        let fields: Vec<&str> = job.split('|').collect();
        assert!(!["failed", "canceled"].contains(&fields[3]), "{job}");
        if fields[3] == "succeeded" {
            let path = folder.0.join(format!("d.sql-{}.report", fields[0]));
            return String::from_utf8(read_all(&DiskFs, &path).unwrap()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the job does not end");
}

fn content(db: &mut Db) -> Vec<String> {
    let mut out = Vec::new();
    for table in ["customers", "orders", "parts", "tags"] {
        out.extend(db.try_run(&format!("SHOW CREATE TABLE {table}")).unwrap());
        out.extend(db.try_run(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap());
    }
    out
}

#[test]
fn tables_that_have_moved_do_not_move_again() {
    let path = std::env::temp_dir().join(format!("braid-dump-moves-{}", std::process::id()));
    DiskFs.create_dir_all(&path).unwrap();
    let folder = Folder(path);
    DiskFs.create(&folder.0.join("d.sql")).unwrap().write_at(DUMP.as_bytes(), 0).unwrap();
    for wish in ["auto", "orders in customers, parts in orders, tags in customers"] {
        let fs = MemFs::new();
        let mut db = open(&folder, &fs);
        let clones: Arc<Mutex<Vec<MemFs>>> = Arc::default();
        let (all, source) = (clones.clone(), fs.clone());
        db.session.state().db().jobs().listen(move |step| {
            if step.name == "checkpoint" {
                let clone = source.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                all.lock().push(clone);
            }
        });
        let options = format!("interleave = '{wish}', checkpoint_size = '1', detached");
        db.try_run(&format!("IMPORT PGDUMP 'd.sql' WITH {options}")).unwrap();
        let told = report(&mut db, &folder);
        assert_eq!(told.matches("\"interleaved\"").count(), 3, "{told}");
        let want = content(&mut db);
        let clones = std::mem::take(&mut *clones.lock());
        // Of the statements, in front of the moves, and behind each of them.
        assert!(clones.len() > 18, "{}", clones.len());
        for (n, fs) in clones.iter().enumerate().skip(clones.len() - 6) {
            let mut db = open(&folder, fs);
            assert_eq!(db.session.state().db().resume_jobs().unwrap(), 1, "{wish} {n}");
            assert_eq!(report(&mut db, &folder), told, "{wish} {n}");
            assert_eq!(content(&mut db), want, "{wish} {n}");
        }
    }
}
