//! Transfers between accounts: money moves, the sum never changes.
//!
//! Each transfer also appends a line to a ledger under the account it came from, in the same
//! transaction. After a crash, the sum, and "balance = start + what the ledger says", tell whether
//! a transaction was lost or halved.

use braid_env::random::Random;
use postgres::{Client, SimpleQueryMessage};

use crate::WorkloadResult;

/// Balance of every account at the start.
pub(crate) const START_BALANCE: i64 = 1_000;

/// Creates the tables and `accounts` accounts.
pub fn create(client: &mut Client, accounts: i64) -> WorkloadResult<()> {
    client.batch_execute(
        "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL);
         CREATE TABLE ledger (id bigint, entry bigint, amount bigint NOT NULL, \
             PRIMARY KEY (id, entry)) INTERLEAVE IN PARENT account ON DELETE CASCADE",
    )?;
    for id in 0..accounts {
        client.batch_execute(&format!("INSERT INTO account VALUES ({id}, {START_BALANCE})"))?;
    }
    Ok(())
}

/// Moves a random amount. Returns the entry number on success, or `None` when the transaction must
/// be run again (a conflict).
pub fn transfer(
    client: &mut Client,
    random: &mut Random,
    accounts: i64,
    entry: i64,
) -> WorkloadResult<Option<i64>> {
    let from = random.below(accounts as u64) as i64;
    let to = (from + 1 + random.below(accounts as u64 - 1) as i64) % accounts;
    let amount = random.between(1, 50) as i64;
    let done = client.simple_query(&format!(
        "BEGIN;
         UPDATE account SET balance = balance - {amount} WHERE id = {from};
         UPDATE account SET balance = balance + {amount} WHERE id = {to};
         INSERT INTO ledger VALUES ({from}, {entry}, {}), ({to}, {entry}, {amount});
         COMMIT",
        -amount
    ));
    match done {
        Ok(answers) => {
            let counts: Vec<u64> = answers
                .iter()
                .filter_map(|m| match m {
                    SimpleQueryMessage::CommandComplete(n) => Some(*n),
                    _ => None,
                })
                .collect();
            assert_eq!(counts, [0, 1, 1, 2, 0], "rows of BEGIN, UPDATE, UPDATE, INSERT, COMMIT");
            Ok(Some(entry))
        }
        Err(e) if e.code().is_some_and(|c| c.code().starts_with("40")) => {
            client.batch_execute("ROLLBACK")?;
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// What is wrong with the state, if anything. `acknowledged` are entries whose commit was answered.
pub fn check(
    client: &mut Client,
    accounts: i64,
    acknowledged: &[i64],
) -> WorkloadResult<Result<(), String>> {
    let mut balances = std::collections::HashMap::new();
    for row in client.query("SELECT id, balance FROM account", &[])? {
        balances.insert(row.get::<_, i64>(0), row.get::<_, i64>(1));
    }
    let mut by_entry: std::collections::HashMap<i64, Vec<i64>> = std::collections::HashMap::new();
    let mut expected: std::collections::HashMap<i64, i64> =
        (0..accounts).map(|id| (id, START_BALANCE)).collect();
    for row in client.query("SELECT id, entry, amount FROM ledger", &[])? {
        let (id, entry, amount): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        by_entry.entry(entry).or_default().push(amount);
        *expected.entry(id).or_default() += amount;
    }
    if let Some((entry, half)) =
        by_entry.iter().find(|(_, a)| a.len() != 2 || a.iter().sum::<i64>() != 0)
    {
        return Ok(Err(format!("entry {entry} is half there: {half:?}")));
    }
    if let Some(lost) = acknowledged.iter().find(|e| !by_entry.contains_key(e)) {
        return Ok(Err(format!("acknowledged entry {lost} is lost")));
    }
    if let Some((id, want)) = expected.iter().find(|(id, want)| balances.get(id) != Some(want)) {
        let have = balances.get(id);
        return Ok(Err(format!("account {id} has {have:?}, its ledger says {want}")));
    }
    Ok(Ok(()))
}
