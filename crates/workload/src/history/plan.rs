//! Random transactions, a function of a seed: what a client is going to do, not how it ends.

use braid_env::random::Random;

/// Lists from this number on live in tables that are erased by TRUNCATE, all together.
pub(crate) const YARD: u32 = 1_000_000;

/// How many of these there are.
pub(crate) const YARDS: u32 = 4;

/// Registers.
pub(crate) const REGISTERS: u32 = 12;

/// Lists that are in use at the same time.
pub const WINDOW: u32 = 10;

/// Transactions after which the window moves on by one list.
const PACE: u64 = 120;

/// What a transaction does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads a list.
    Read(u32),
    /// Reads a list, its children and one of them by index.
    Look(u32),
    /// Reads all lists of the yard in one query.
    Scan,
    /// Reads the erasures of a list.
    Trail(u32),
    /// Reads a register.
    Get(u32),
    /// Writes a register.
    Write(u32),
    /// Appends to a list.
    Append(u32),
    /// Reads a list for update, deletes its family and writes it anew.
    Erase(u32),
    /// Reads the lists of the yard, truncates their tables and writes them anew.
    Truncate,
}

/// The plan of one transaction.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What it does.
    pub steps: Vec<Step>,
    /// Ends with ROLLBACK.
    pub gives_up: bool,
}

/// Lists that a history of this many transactions uses, without the yard.
pub fn lists(transactions: u64) -> u32 {
    (transactions / PACE) as u32 + WINDOW
}

/// The plan of the transaction with this number.
pub fn plan(random: &mut Random, number: u64) -> Plan {
    let first = (number / PACE) as u32;
    let mut plan = Plan { steps: Vec::new(), gives_up: random.chance(1, 25) };
    if random.chance(1, 150) {
        plan.steps.push(Step::Truncate);
    }
    for _ in 0..random.between(1, 4) {
        let yard = random.chance(1, 6);
        let list = if yard {
            YARD + random.below(u64::from(YARDS)) as u32
        } else {
            first + random.below(u64::from(WINDOW)) as u32
        };
        let register = random.below(u64::from(REGISTERS)) as u32;
        plan.steps.push(match random.below(100) {
            0..=21 => Step::Read(list),
            22..=33 => Step::Look(list),
            34..=37 => Step::Scan,
            38..=39 => Step::Trail(list),
            40..=51 => Step::Get(register),
            52..=61 => Step::Write(register),
            62..=93 => Step::Append(list),
            _ if yard => Step::Append(list),
            _ => Step::Erase(list),
        });
        // Reads before writes of the same register tell the order of its versions.
        if let Some(&Step::Write(register)) = plan.steps.last()
            && random.chance(2, 3)
        {
            plan.steps.insert(plan.steps.len() - 1, Step::Get(register));
        }
    }
    plan
}
