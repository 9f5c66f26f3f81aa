//! Plans run by several clients against a node, with schema changes in between.
//!
//! A list is a row with a text of its values and, interleaved below, a child for each value. To
//! erase it is to delete the row, which takes the children by a range delete, and to write it anew
//! in the same transaction. The lists of the yard go by TRUNCATE. One client at a time changes the
//! schema of the tables between its transactions.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::random::Random;
use postgres::{Client, NoTls, SimpleQueryMessage};

use super::plan::{Plan, REGISTERS, Step, YARD, YARDS, lists, plan};
use super::record::{History, Key, Level, Op, Outcome, Transaction};
use crate::WorkloadResult;

/// What to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the database listens.
    pub url: String,
    /// How many transactions.
    pub transactions: u64,
    /// The level of all of them.
    pub level: Level,
    /// Where randomness begins.
    pub seed: u64,
    /// Connections.
    pub clients: u64,
}

/// Schema changes, one after the other, again and again.
const CHANGES: &[&str] = &[
    "DROP INDEX member_v",
    "ALTER TABLE family ADD COLUMN extra int DEFAULT 7",
    "CREATE INDEX member_v ON member (v)",
    "CREATE INDEX plot_v ON plot (v)",
    "ALTER TABLE register ADD CONSTRAINT positive CHECK (v >= 0)",
    "ALTER TABLE family DROP COLUMN extra",
    "DROP INDEX plot_v",
    "ALTER TABLE register DROP CONSTRAINT positive",
    "CREATE TABLE passing (k int PRIMARY KEY REFERENCES register)",
    "DROP TABLE passing",
];

/// Transactions between two schema changes.
const CHANGE_PACE: u64 = 200;

/// What all clients share.
struct Shared<'a> {
    settings: &'a Settings,
    clock: AtomicU64,
    values: AtomicU64,
    numbers: AtomicU64,
}

impl Shared<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed)
    }
}

/// Creates the tables, runs all transactions, reads everything at the end. Returns the history and
/// how many schema changes happened in it.
pub fn run(settings: &Settings) -> WorkloadResult<(History, u64)> {
    let mut client = Client::connect(&settings.url, NoTls)?;
    create(&mut client, settings.transactions)?;
    let shared = Shared {
        settings,
        clock: AtomicU64::new(1),
        values: AtomicU64::new(1),
        numbers: AtomicU64::new(0),
    };
    let clients: Vec<WorkloadResult<Worker>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..settings.clients.max(1))
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || -> WorkloadResult<Worker> {
                    let mut worker = Worker::connect(shared, number)?;
                    worker.work(shared)?;
                    Ok(worker)
                })
            })
            .collect();
        handles.into_iter().map(|h| h.join().expect("a client does not panic")).collect()
    });
    let (mut history, mut changes) = (History::default(), 0);
    for worker in clients {
        let worker = worker?;
        history.transactions.extend(worker.done);
        changes += worker.changes;
    }
    history.transactions.push(last_look(&mut client, &shared)?);
    Ok((history, changes))
}

fn create(client: &mut Client, transactions: u64) -> WorkloadResult<()> {
    client.batch_execute(
        "DROP TABLE IF EXISTS member; DROP TABLE IF EXISTS family; DROP TABLE IF EXISTS plot;
         DROP TABLE IF EXISTS yard; DROP TABLE IF EXISTS trail; DROP TABLE IF EXISTS passing;
         DROP TABLE IF EXISTS register;
         CREATE TABLE family (k int PRIMARY KEY, list text NOT NULL);
         CREATE TABLE member (k int, v bigint, PRIMARY KEY (k, v))
             INTERLEAVE IN PARENT family ON DELETE CASCADE;
         CREATE INDEX member_v ON member (v);
         CREATE TABLE yard (k int PRIMARY KEY, list text NOT NULL);
         CREATE TABLE plot (k int, v bigint, PRIMARY KEY (k, v))
             INTERLEAVE IN PARENT yard ON DELETE CASCADE;
         CREATE TABLE trail (k int PRIMARY KEY, list text NOT NULL);
         CREATE TABLE register (k int PRIMARY KEY, v bigint NOT NULL)",
    )?;
    let rows = |keys: &mut dyn Iterator<Item = u32>, start: &str| {
        keys.map(|k| format!("({k}, {start})")).collect::<Vec<_>>().join(", ")
    };
    let (families, yards) = (0..lists(transactions), YARD..YARD + YARDS);
    for (table, rows) in [
        ("family", rows(&mut families.clone(), "''")),
        ("yard", rows(&mut yards.clone(), "''")),
        ("trail", rows(&mut families.chain(yards), "''")),
        ("register", rows(&mut (0..REGISTERS), "0")),
    ] {
        client.batch_execute(&format!("INSERT INTO {table} VALUES {rows}"))?;
    }
    Ok(())
}

/// Tables of a list and of its children.
fn tables(list: u32) -> (&'static str, &'static str) {
    if list < YARD { ("family", "member") } else { ("yard", "plot") }
}

/// The values of a text; a row that is not there is a value that nobody wrote.
fn values(text: Option<&String>) -> Vec<u64> {
    match text {
        Some(text) => text.split(',').filter_map(|v| v.parse().ok()).collect(),
        None => vec![u64::MAX],
    }
}

/// Rows as text, and the count of the command.
fn query(client: &mut Client, sql: &str) -> WorkloadResult<(Vec<Vec<String>>, u64)> {
    let (mut rows, mut count) = (Vec::new(), 0);
    for message in client.simple_query(sql)? {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|i| row.get(i).unwrap_or("").to_string()).collect());
            }
            SimpleQueryMessage::CommandComplete(n) => count = n,
            _ => {}
        }
    }
    Ok((rows, count))
}

fn last_look(client: &mut Client, shared: &Shared<'_>) -> WorkloadResult<Transaction> {
    let began = shared.now();
    let mut ops = Vec::new();
    client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE")?;
    for (table, children) in [("family", "member"), ("yard", "plot"), ("trail", "")] {
        let mut below: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        if !children.is_empty() {
            for row in query(client, &format!("SELECT k, v FROM {children} ORDER BY k, v"))?.0 {
                below.entry(number(&row[0])).or_default().extend(row[1].parse::<u64>().ok());
            }
        }
        for row in query(client, &format!("SELECT k, list FROM {table} ORDER BY k"))?.0 {
            let k = number(&row[0]);
            let key = if children.is_empty() { Key::Trail(k) } else { Key::List(k) };
            ops.push(Op::Read { key, values: values(row.get(1)), scan: true });
            if !children.is_empty() {
                ops.push(Op::Children { key, values: below.remove(&k).unwrap_or_default() });
            }
        }
        // Children without their family.
        for (k, values) in below {
            ops.push(Op::Read { key: Key::List(k), values: vec![u64::MAX], scan: true });
            ops.push(Op::Children { key: Key::List(k), values });
        }
    }
    client.batch_execute("COMMIT")?;
    Ok(Transaction { began, ended: shared.now(), outcome: Outcome::Committed, ops })
}

fn number(text: &str) -> u32 {
    text.parse().expect("keys are integers")
}

struct Worker {
    number: u64,
    client: Client,
    random: Random,
    done: Vec<Transaction>,
    changes: u64,
    /// What was last seen of a list, for questions about values that are gone.
    seen: HashMap<u32, Vec<u64>>,
}

/// Whether a step could be done; a row to change that is not there ends the transaction.
type Done = bool;

impl Worker {
    fn connect(shared: &Shared<'_>, number: u64) -> WorkloadResult<Worker> {
        let client = Client::connect(&shared.settings.url, NoTls)?;
        let random = Random::seeded(shared.settings.seed.wrapping_mul(1_000_003) + number);
        let (done, seen) = (Vec::new(), HashMap::new());
        Ok(Worker { number, client, random, done, changes: 0, seen })
    }

    fn work(&mut self, shared: &Shared<'_>) -> WorkloadResult<()> {
        loop {
            let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
            if number >= shared.settings.transactions {
                return Ok(());
            }
            // Changes follow each other in one client, the first.
            if self.number == 0 && number / CHANGE_PACE > self.changes {
                self.change_schema()?;
            }
            let plan = plan(&mut self.random, number);
            let mut ops = Vec::new();
            let began = shared.now();
            let outcome = match self.transaction(shared, &plan, &mut ops) {
                Ok(outcome) => outcome,
                Err(e) if is_conflict(&e) => {
                    self.client.batch_execute("ROLLBACK")?;
                    Outcome::Aborted
                }
                Err(e) => return Err(e),
            };
            self.done.push(Transaction { began, ended: shared.now(), outcome, ops });
        }
    }

    fn change_schema(&mut self) -> WorkloadResult<()> {
        let change = CHANGES[self.changes as usize % CHANGES.len()];
        loop {
            match self.client.batch_execute(change) {
                Ok(()) => break,
                Err(e) if is_conflict(&e) => {}
                Err(e) => return Err(e),
            }
        }
        self.changes += 1;
        Ok(())
    }

    fn transaction(
        &mut self,
        shared: &Shared<'_>,
        plan: &Plan,
        ops: &mut Vec<Op>,
    ) -> WorkloadResult<Outcome> {
        let level = shared.settings.level.sql();
        self.client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        for &step in &plan.steps {
            if !self.step(shared, step, ops)? {
                self.client.batch_execute("ROLLBACK")?;
                return Ok(Outcome::Aborted);
            }
        }
        if plan.gives_up {
            self.client.batch_execute("ROLLBACK")?;
            return Ok(Outcome::Aborted);
        }
        self.client.batch_execute("COMMIT")?;
        Ok(Outcome::Committed)
    }

    fn step(&mut self, shared: &Shared<'_>, step: Step, ops: &mut Vec<Op>) -> WorkloadResult<Done> {
        match step {
            Step::Read(n) => self.read(n, ops).map(|_| true),
            Step::Look(n) => self.look(n, ops),
            Step::Scan => {
                let (rows, _) = query(&mut self.client, "SELECT k, list FROM yard ORDER BY k")?;
                let mut lists: HashMap<u32, String> =
                    rows.into_iter().map(|mut r| (number(&r[0]), r.remove(1))).collect();
                for n in YARD..YARD + YARDS {
                    let values = values(lists.remove(&n).as_ref());
                    ops.push(Op::Read { key: Key::List(n), values, scan: true });
                }
                Ok(true)
            }
            Step::Trail(n) => {
                let sql = format!("SELECT list FROM trail WHERE k = {n}");
                let (rows, _) = query(&mut self.client, &sql)?;
                let values = values(rows.first().map(|r| &r[0]));
                ops.push(Op::Read { key: Key::Trail(n), values, scan: false });
                Ok(true)
            }
            Step::Get(n) => {
                let sql = format!("SELECT v FROM register WHERE k = {n}");
                let (rows, _) = query(&mut self.client, &sql)?;
                let value = rows.first().and_then(|r| r[0].parse().ok()).unwrap_or(u64::MAX);
                ops.push(Op::Get { key: Key::Register(n), value });
                Ok(true)
            }
            Step::Write(n) => {
                let value = shared.value();
                ops.push(Op::Write { key: Key::Register(n), value });
                self.changes_one(&format!("UPDATE register SET v = {value} WHERE k = {n}"))
            }
            Step::Append(n) => {
                let value = shared.value();
                let (table, children) = tables(n);
                ops.push(Op::Append { key: Key::List(n), value });
                let update = format!("UPDATE {table} SET list = list || ',{value}' WHERE k = {n}");
                Ok(self.changes_one(&update)?
                    && self
                        .changes_one(&format!("INSERT INTO {children} VALUES ({n}, {value})"))?)
            }
            Step::Erase(n) => self.erase(shared, n, ops),
            Step::Truncate => self.truncate(shared, ops),
        }
    }

    fn changes_one(&mut self, sql: &str) -> WorkloadResult<Done> {
        Ok(query(&mut self.client, sql)?.1 == 1)
    }

    fn read(&mut self, n: u32, ops: &mut Vec<Op>) -> WorkloadResult<Vec<u64>> {
        let sql = format!("SELECT list FROM {} WHERE k = {n}", tables(n).0);
        let (rows, _) = query(&mut self.client, &sql)?;
        let values = values(rows.first().map(|r| &r[0]));
        ops.push(Op::Read { key: Key::List(n), values: values.clone(), scan: false });
        Ok(values)
    }

    fn look(&mut self, n: u32, ops: &mut Vec<Op>) -> WorkloadResult<Done> {
        let list = self.read(n, ops)?;
        let (key, children) = (Key::List(n), tables(n).1);
        let sql = format!("SELECT v FROM {children} WHERE k = {n} ORDER BY v");
        let (rows, _) = query(&mut self.client, &sql)?;
        let values = rows.iter().filter_map(|r| r[0].parse().ok()).collect();
        ops.push(Op::Children { key, values });
        let before = self.seen.insert(n, list.clone()).unwrap_or_default();
        for candidates in [&before, &list] {
            if !candidates.is_empty() {
                let value = *self.random.pick(candidates);
                let sql = format!("SELECT k FROM {children} WHERE v = {value}");
                let (rows, _) = query(&mut self.client, &sql)?;
                ops.push(Op::Lookup { key, value, found: !rows.is_empty() });
            }
        }
        Ok(true)
    }

    fn erase(&mut self, shared: &Shared<'_>, n: u32, ops: &mut Vec<Op>) -> WorkloadResult<Done> {
        let sql = format!("SELECT list FROM family WHERE k = {n} FOR UPDATE");
        let (rows, _) = query(&mut self.client, &sql)?;
        let Some(row) = rows.first() else { return Ok(false) };
        ops.push(Op::Read { key: Key::List(n), values: values(row.first()), scan: false });
        let value = shared.value();
        ops.push(Op::Append { key: Key::Trail(n), value });
        ops.push(Op::Erase { key: Key::List(n), value });
        for sql in [
            format!("UPDATE trail SET list = list || ',{value}' WHERE k = {n}"),
            format!("DELETE FROM family WHERE k = {n}"),
            format!("INSERT INTO family (k, list) VALUES ({n}, ',{value}')"),
            format!("INSERT INTO member VALUES ({n}, {value})"),
        ] {
            if !self.changes_one(&sql)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn truncate(&mut self, shared: &Shared<'_>, ops: &mut Vec<Op>) -> WorkloadResult<Done> {
        let sql = "SELECT k, list FROM yard ORDER BY k FOR UPDATE";
        let (rows, _) = query(&mut self.client, sql)?;
        if rows.len() != YARDS as usize {
            return Ok(false);
        }
        for row in &rows {
            let key = Key::List(number(&row[0]));
            ops.push(Op::Read { key, values: values(row.get(1)), scan: false });
        }
        query(&mut self.client, "TRUNCATE yard, plot")?;
        for n in YARD..YARD + YARDS {
            let value = shared.value();
            ops.push(Op::Append { key: Key::Trail(n), value });
            ops.push(Op::Erase { key: Key::List(n), value });
            for sql in [
                format!("UPDATE trail SET list = list || ',{value}' WHERE k = {n}"),
                format!("INSERT INTO yard VALUES ({n}, ',{value}')"),
                format!("INSERT INTO plot VALUES ({n}, {value})"),
            ] {
                if !self.changes_one(&sql)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Serialization failures, deadlocks, and keys that somebody else has just written.
fn is_conflict(e: &postgres::Error) -> bool {
    e.code().is_some_and(|code| ["40001", "40P01", "23505"].contains(&code.code()))
}
