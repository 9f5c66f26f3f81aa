//! Where the rows came from whose keys are taken.
//!
//! A load is sorted by key, and no entry knows its line: that would cost every row of every load
//! some bytes. When a key turns out to be taken, the files are read once more, up to the rows that
//! want it.

use braid_rows::Row;
use std::collections::{HashMap, HashSet};

use braid_types::{SqlError, SqlResult};
use bytes::Bytes;

use super::refused::{Place, Refusal, Refused};
use super::run::{Item, Run};
use crate::dml::keys::duplicate_key;
use crate::dml::table_load::{TableLoad, TakenKey, is_of_row};

/// Where a key was met, and its row.
struct Met {
    first: Option<Place>,
    stored: bool,
}

/// Refuses every row that wants a key which a row before it, or a stored one, has.
///
/// # Errors
/// What refusing gives, and reading.
pub(super) fn refuse(run: &Run, taken: &[TakenKey], refused: &mut Refused) -> SqlResult<()> {
    let mut met: HashMap<(usize, Bytes), Met> = HashMap::new();
    for key in taken {
        let found = met.entry((key.target, key.key.clone()));
        found.or_insert(Met { first: None, stored: false }).stored |= key.stored;
    }
    let mut targets: Vec<usize> = taken.iter().map(|key| key.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut bad: Vec<(Place, Refusal)> = Vec::new();
    run.each(&mut |place, item| {
        let Some(row) = good_row(run, item)?.filter(|_| !refused.holds(&place)) else {
            return Ok(());
        };
        let keys = keys_of(run, &targets, &row)?;
        let clash = keys.iter().find(|key| {
            met.get(key).is_some_and(|met| met.stored || met.first.is_some_and(|p| p != place))
        });
        match clash {
            Some((target, _)) => {
                let error = duplicate(run, *target, &row);
                bad.push((place, Refusal { error, column: None, text: None }));
            }
            None => {
                for key in keys {
                    if let Some(met) = met.get_mut(&key) {
                        met.first.get_or_insert(place);
                    }
                }
            }
        }
        Ok(())
    })?;
    bad.into_iter().try_for_each(|(place, refusal)| refused.add_taken(&run.ctx, place, refusal))
}

/// A row as it is put into a load; `None` if it never is.
fn good_row(run: &Run, item: Item) -> SqlResult<Option<Row>> {
    let Item::Row(values) = item else { return Ok(None) };
    let mut row = match run.whole(values) {
        Ok(row) => row,
        Err(refusal) if is_of_row(&refusal.error) => return Ok(None),
        Err(refusal) => return Err(refusal.error),
    };
    Ok(run.info.filler.complete(&run.ctx, &mut row).is_ok().then_some(row))
}

/// The error of a taken key with the places of the rows that want it.
pub(super) fn tell(run: &Run, taken: &TakenKey, e: SqlError, refused: &Refused) -> SqlError {
    let mut places: Vec<Place> = Vec::new();
    let enough = if taken.stored { 1 } else { 2 };
    let looked = run.each(&mut |place, item| {
        if let Some(row) = good_row(run, item)?
            && TableLoad::key_in(&run.info.layout, taken.target, &row)?.as_deref()
                == Some(&taken.key[..])
        {
            places.push(place);
        }
        // Nothing else is to be found out: any error ends the reading.
        if places.len() < enough { Ok(()) } else { Err(SqlError::internal("found")) }
    });
    // Values that are not in the files (of sequences) are others this time.
    let _found_or_not = looked;
    let Some(last) = places.last() else { return e };
    let e = refused.placed(e, *last, None);
    match places.as_slice() {
        [first, _] => {
            let first = refused.place(*first, None);
            let detail = format!("{}\nThe same key is in {first}.", e.detail().unwrap_or_default());
            e.with_detail(detail)
        }
        _ => e,
    }
}

fn keys_of(run: &Run, targets: &[usize], row: &Row) -> SqlResult<HashSet<(usize, Bytes)>> {
    let mut out = HashSet::new();
    for target in targets {
        if let Some(key) = TableLoad::key_in(&run.info.layout, *target, row)? {
            out.insert((*target, Bytes::from(key)));
        }
    }
    Ok(out)
}

fn duplicate(run: &Run, target: usize, row: &Row) -> SqlError {
    let layout = &run.info.layout;
    let index = match target {
        0 => &layout.table.primary,
        n => layout.kept_indexes().nth(n - 1).map_or(&layout.table.primary, |i| &i.index),
    };
    let index = if index.unique { index } else { &layout.table.primary };
    duplicate_key(&run.ctx, &layout.table, index, row)
}
