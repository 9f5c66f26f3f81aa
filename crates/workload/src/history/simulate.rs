//! Plans run by a model: histories that are known to be good, for the tests of the checker.

use std::collections::{BTreeMap, HashSet, VecDeque};

use braid_env::random::Random;

use super::plan::{Plan, Step, YARD, YARDS, lists, plan};
use super::record::{History, Key, Op, Outcome, Transaction};

/// What the model promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// One after the other.
    Serial,
    /// From snapshots that may be a few commits old; who comes second to a key gives up.
    Snapshot,
}

#[derive(Clone, Default)]
struct Data {
    lists: BTreeMap<Key, Vec<u64>>,
    registers: BTreeMap<Key, u64>,
}

/// Time between two commits.
const TICK: u64 = 100;

/// A good history.
pub fn simulate(model: Model, transactions: u64, seed: u64) -> History {
    let mut random = Random::seeded(seed);
    let mut history = History::default();
    let mut value = 0;
    let mut data = Data::default();
    // The states before the last commits, with what those commits wrote.
    let mut past: VecDeque<(Data, HashSet<Key>)> = VecDeque::new();
    for number in 0..transactions {
        let plan = plan(&mut random, number);
        let now = (number + 2) * TICK;
        if model == Model::Serial {
            let before = plan.gives_up.then(|| data.clone());
            let ops = perform(&mut data, &plan, &mut value, &mut random);
            let outcome = if plan.gives_up { Outcome::Aborted } else { Outcome::Committed };
            data = before.unwrap_or(data);
            let (began, ended) = (now - random.below(TICK * 2), now + random.below(TICK * 2));
            history.transactions.push(Transaction { began, ended, outcome, ops });
            continue;
        }
        let age = random.below(past.len() as u64 + 1) as usize;
        let recent = past.range(past.len() - age..);
        let mut view = match recent.clone().next() {
            Some((state, _)) => state.clone(),
            None => data.clone(),
        };
        let ops = perform(&mut view, &plan, &mut value, &mut random);
        let written: HashSet<Key> =
            ops.iter().filter(|op| op.written().is_some()).map(Op::key).collect();
        let conflicts = recent.clone().any(|(_, keys)| !keys.is_disjoint(&written));
        let outcome =
            if plan.gives_up || conflicts { Outcome::Aborted } else { Outcome::Committed };
        // Before the commits that it does not see, after those that it does.
        let began = now - (age as u64) * TICK - random.below(TICK) / 2 - 1;
        if outcome == Outcome::Committed {
            let before = data.clone();
            for key in &written {
                if let Some(list) = view.lists.get(key) {
                    data.lists.insert(*key, list.clone());
                }
                if let Some(register) = view.registers.get(key) {
                    data.registers.insert(*key, *register);
                }
            }
            past.push_back((before, written));
        } else {
            past.push_back((data.clone(), HashSet::new()));
        }
        if past.len() > 3 {
            past.pop_front();
        }
        let ended = now + random.below(TICK * 3);
        history.transactions.push(Transaction { began, ended, outcome, ops });
    }
    let end = (transactions + 10) * TICK;
    let keys = (0..lists(transactions)).chain(YARD..YARD + YARDS);
    let ops = keys
        .flat_map(|n| [Key::List(n), Key::Trail(n)])
        .map(|key| read(&data, key, false))
        .collect();
    let last = Transaction { began: end, ended: end + 1, outcome: Outcome::Committed, ops };
    history.transactions.push(last);
    history
}

fn read(data: &Data, key: Key, scan: bool) -> Op {
    Op::Read { key, values: data.lists.get(&key).cloned().unwrap_or_default(), scan }
}

fn perform(data: &mut Data, plan: &Plan, value: &mut u64, random: &mut Random) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut fresh = || {
        *value += 1;
        *value
    };
    for &step in &plan.steps {
        match step {
            Step::Read(n) => ops.push(read(data, Key::List(n), false)),
            Step::Look(n) => {
                let key = Key::List(n);
                ops.push(read(data, key, false));
                let values = data.lists.get(&key).cloned().unwrap_or_default();
                if !values.is_empty() {
                    let value = *random.pick(&values);
                    ops.push(Op::Lookup { key, value, found: true });
                }
                ops.push(Op::Children { key, values });
            }
            Step::Scan => {
                ops.extend((YARD..YARD + YARDS).map(|n| read(data, Key::List(n), true)));
            }
            Step::Trail(n) => ops.push(read(data, Key::Trail(n), false)),
            Step::Get(n) => {
                let key = Key::Register(n);
                let value = data.registers.get(&key).copied().unwrap_or(0);
                ops.push(Op::Get { key, value });
            }
            Step::Write(n) => {
                let (key, value) = (Key::Register(n), fresh());
                data.registers.insert(key, value);
                ops.push(Op::Write { key, value });
            }
            Step::Append(n) => {
                let (key, value) = (Key::List(n), fresh());
                data.lists.entry(key).or_default().push(value);
                ops.push(Op::Append { key, value });
            }
            Step::Erase(n) => erase(data, n, fresh(), &mut ops),
            Step::Truncate => {
                for n in YARD..YARD + YARDS {
                    erase(data, n, fresh(), &mut ops);
                }
            }
        }
    }
    ops
}

fn erase(data: &mut Data, number: u32, value: u64, ops: &mut Vec<Op>) {
    let (key, trail) = (Key::List(number), Key::Trail(number));
    ops.push(read(data, key, false));
    data.lists.entry(trail).or_default().push(value);
    ops.push(Op::Append { key: trail, value });
    data.lists.insert(key, vec![value]);
    ops.push(Op::Erase { key, value });
}
