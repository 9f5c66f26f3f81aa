//! Ours, about transactions by the statements in them: `braid_transaction_statistics` since the
//! node began, and `braid_transaction_statistics_minute` for each of the last 60 minutes.
//! `avg_participants` is Spanner's word (`SPANNER_SYS.TXN_STATS_*`): in how many ranges a commit
//! had to agree.

use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::oid_of;
use braid_sql::runtime::{Transacted, TransactionStatistics};
use braid_types::{ArrayValue, Datum, SqlResult, SqlType};

use super::super::statistics::{number, sent_and_lost, time};
use super::super::table::{Rows, SystemTable, View, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// Longer texts are cut.
const TEXT_MAX: usize = 4 << 10;

/// Columns of one kind of transactions.
macro_rules! kind {
    () => {
        "database_id oid, transaction_id int8, query_ids int8[], query text, commits int8, \
         rollbacks int8, writing_commits int8, distributed_commits int8, \
         avg_participants float8, requests int8, remote_calls int8, network_bytes int8, \
         network_time float8, write_conflicts int8, read_conflicts int8, uncertain_reads int8, \
         deadlocks int8, leases_lost int8, schema_changes int8, total_time float8, \
         mean_time float8, total_commit_time float8, mean_commit_time float8"
    };
}

/// A table about transactions.
pub(in crate::system) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "braid_transaction_statistics" => (kind!(), since_the_start),
        "braid_transaction_statistics_minute" => {
            (concat!("interval_end timestamptz, ", kind!()), by_minute)
        }
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

/// Texts of statements by fingerprint, of those that are not forgotten.
struct Texts(HashMap<i64, String>);

impl Texts {
    fn of(&self, statements: &[i64]) -> String {
        let known = |id| self.0.get(id).map_or("..", String::as_str);
        let mut all = statements.iter().map(known).collect::<Vec<_>>().join("; ");
        all.truncate(all.floor_char_boundary(TEXT_MAX));
        all
    }
}

fn since_the_start(v: &View<'_>) -> Made {
    let (statements, all) = v.database_object.all_transactions();
    let texts = Texts(statements.into_iter().map(|s| (s.id, s.text)).collect());
    Ok(all.iter().map(|kind| row(kind, &texts)).collect())
}

fn by_minute(v: &View<'_>) -> Made {
    let statements = v.database_object.statements().all();
    let texts = Texts(statements.into_iter().map(|s| (s.id, s.text)).collect());
    let mut out = Vec::new();
    for minute in v.database_object.transactions().minutes() {
        for kind in &minute.kinds {
            let mut row = row(kind, &texts);
            row.insert(0, Datum::TimestampTz(minute.end));
            out.push(row);
        }
    }
    Ok(out)
}

/// `part` of each of `of`; NULL if there are none.
fn average(part: f64, of: u64) -> Datum {
    if of == 0 { Datum::Null } else { Datum::Float8(part / of as f64) }
}

fn row(kind: &TransactionStatistics, texts: &Texts) -> Vec<Datum> {
    let sum: &Transacted = &kind.sum;
    let ids = kind.statements.iter().map(|id| Datum::Int8(*id)).collect();
    let ids = ArrayValue::list(SqlType::Int8, ids);
    let mut row = vec![
        Datum::Oid(oid_of(kind.database)),
        Datum::Int8(kind.id),
        Datum::Array(Arc::new(ids)),
        text(texts.of(&kind.statements)),
        number(sum.commits),
        number(sum.rollbacks),
        number(sum.writing),
        number(sum.distributed),
        average(sum.participants as f64, sum.writing),
        number(sum.requests),
    ];
    row.extend(sent_and_lost(sum.network, &sum.lost));
    row.extend([
        time(sum.nanos),
        average(sum.nanos as f64 / 1e6, sum.count()),
        time(sum.commit_nanos),
        average(sum.commit_nanos as f64 / 1e6, sum.writing),
    ]);
    row
}
