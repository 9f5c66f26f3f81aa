//! Where a row belongs: the partition that takes it, by a search among the bounds.

use std::cmp::Ordering;
use std::sync::Arc;

use braid_catalog::{Limit, PartitionBound, PartitionKey, Partitioning, Strategy, Table};
use braid_scalar::{EvalContext, partition_hash};
use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::key::Key;

/// One value of the bound of a range.
#[derive(Clone, Debug)]
pub(crate) enum Edge {
    Min,
    Value(Datum),
    Max,
}

/// The values of a bound.
pub(crate) fn edges(key: &Key, limits: &[Limit]) -> SqlResult<Vec<Edge>> {
    let edge = |(at, limit): (usize, &Limit)| {
        Ok(match limit {
            Limit::Min => Edge::Min,
            Limit::Max => Edge::Max,
            Limit::Value(text) => Edge::Value(key.value(at, text)?),
        })
    };
    limits.iter().enumerate().map(edge).collect()
}

/// The order of two bounds. What follows a MINVALUE or MAXVALUE says nothing.
pub(crate) fn order(a: &[Edge], b: &[Edge]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let found = match (a, b) {
            (Edge::Min, Edge::Min) | (Edge::Max, Edge::Max) => return Ordering::Equal,
            (Edge::Min, _) | (_, Edge::Max) => Ordering::Less,
            (Edge::Max, _) | (_, Edge::Min) => Ordering::Greater,
            (Edge::Value(a), Edge::Value(b)) => a.cmp_sql(b),
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// The order of a bound and the values of a row.
fn order_of_row(bound: &[Edge], values: &[Datum]) -> Ordering {
    for (edge, value) in bound.iter().zip(values) {
        let found = match edge {
            Edge::Min => Ordering::Less,
            Edge::Max => Ordering::Greater,
            Edge::Value(v) => v.cmp_sql(value),
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// How the table or a partition is divided.
#[derive(Clone, Debug)]
struct Division {
    /// The table or the partition.
    of: u32,
    key: Key,
    /// LIST: values in order with their partitions.
    values: Vec<(Datum, u32)>,
    /// LIST: who has NULL.
    null: Option<u32>,
    /// RANGE: bounds in order with their partitions.
    ranges: Vec<(Vec<Edge>, Vec<Edge>, u32)>,
    /// HASH: modulus, remainder, partition.
    rests: Vec<(u32, u32, u32)>,
    default: Option<u32>,
}

impl Division {
    fn new(
        table: &Table,
        divided: &Partitioning,
        (of, key): (u32, &PartitionKey),
    ) -> SqlResult<Division> {
        let mut new = Division {
            of,
            key: Key::new(table, key)?,
            values: Vec::new(),
            null: None,
            ranges: Vec::new(),
            rests: Vec::new(),
            default: None,
        };
        for p in divided.partitions_of(of) {
            match &p.bound {
                PartitionBound::Default => new.default = Some(p.id),
                PartitionBound::Hash { modulus, remainder } => {
                    new.rests.push((*modulus, *remainder, p.id));
                }
                PartitionBound::Range { from, to } => {
                    new.ranges.push((edges(&new.key, from)?, edges(&new.key, to)?, p.id));
                }
                PartitionBound::List(values) => {
                    for value in values {
                        match value {
                            None => new.null = Some(p.id),
                            Some(text) => new.values.push((new.key.value(0, text)?, p.id)),
                        }
                    }
                }
            }
        }
        new.values.sort_by(|a, b| a.0.cmp_sql(&b.0));
        new.ranges.sort_by(|a, b| order(&a.0, &b.0));
        Ok(new)
    }

    /// The partition for these values of the key.
    fn find(&self, values: &[Datum]) -> SqlResult<Option<u32>> {
        let found = match self.key.strategy {
            Strategy::List if values[0].is_null() => self.null,
            Strategy::List => {
                let at = self.values.binary_search_by(|(v, _)| v.cmp_sql(&values[0]));
                at.ok().map(|at| self.values[at].1)
            }
            Strategy::Range if values.iter().any(Datum::is_null) => None,
            Strategy::Range => {
                let above =
                    self.ranges.partition_point(|(from, ..)| order_of_row(from, values).is_le());
                let last = above.checked_sub(1).map(|at| &self.ranges[at]);
                last.filter(|(_, to, _)| order_of_row(to, values).is_gt()).map(|(.., id)| *id)
            }
            Strategy::Hash => {
                let hash = partition_hash(values)
                    .ok_or_else(|| SqlError::internal("a partition key without a hash"))?;
                let fits = |(modulus, remainder, _): &&(u32, u32, u32)| {
                    hash % u64::from(*modulus) == u64::from(*remainder)
                };
                self.rests.iter().find(fits).map(|(.., id)| *id)
            }
        };
        Ok(found.or(self.default))
    }
}

/// The partitions that a row belongs to, from the outside; and of what there is none for it, with
/// its key in words.
type Path = (Vec<u32>, Option<(u32, String)>);

/// Finds the partitions of a table's rows.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    /// The table, or the window that rows are written through.
    table: Arc<Table>,
    /// The table's first.
    divisions: Vec<Division>,
}

impl Router {
    /// That of a table; `None` if it is not divided.
    pub(crate) fn new(table: &Arc<Table>) -> SqlResult<Option<Router>> {
        let Some(divided) = table.partitioning() else { return Ok(None) };
        let inside = divided.partitions.iter().filter_map(|p| Some((p.id, p.key.as_ref()?)));
        let all = std::iter::once((table.id, &divided.key)).chain(inside);
        let divisions = all.map(|one| Division::new(table, divided, one));
        Ok(Some(Router { table: table.clone(), divisions: divisions.collect::<SqlResult<_>>()? }))
    }

    /// Where a row belongs.
    fn path(&self, row: &[Datum], eval: &EvalContext) -> SqlResult<Path> {
        let mut path = Vec::new();
        let mut at = self.table.id;
        while let Some(division) = self.divisions.iter().find(|d| d.of == at) {
            let values = division.key.values(row, eval)?;
            match division.find(&values)? {
                Some(id) => path.push(id),
                None => return Ok((path, Some((at, division.key.described(&values))))),
            }
            at = path.last().copied().unwrap_or(at);
        }
        Ok((path, None))
    }

    /// The id of the partition that a row lies in; `None` if there is none.
    pub(crate) fn leaf(&self, row: &[Datum], eval: &EvalContext) -> SqlResult<Option<u32>> {
        let (path, missing) = self.path(row, eval)?;
        Ok(path.last().copied().filter(|_| missing.is_none()))
    }

    /// The partition that takes a new row, with those that it is in, from the outside. `failing`
    /// tells the row.
    ///
    /// # Errors
    /// 23514 if there is none, or not within the partition that it is written through.
    pub(crate) fn route(
        &self,
        row: &[Datum],
        eval: &EvalContext,
        failing: impl Fn() -> String,
    ) -> SqlResult<Vec<u32>> {
        let (path, missing) = self.path(row, eval)?;
        if let Some(window) = self.table.window()
            && !path.contains(&window.id)
        {
            let text =
                format!("new row for relation \"{}\" violates partition constraint", window.name);
            return Err(SqlError::new(SqlState::CHECK_VIOLATION, text).with_detail(failing()));
        }
        if let Some((of, described)) = missing {
            let text = format!("no partition of relation \"{}\" found for row", self.name_of(of));
            return Err(SqlError::new(SqlState::CHECK_VIOLATION, text)
                .with_detail(format!("Partition key of the failing row contains {described}.")));
        }
        Ok(path)
    }

    /// The name of the innermost partition.
    pub(crate) fn name_within(&self, path: &[u32]) -> &str {
        self.name_of(path.last().copied().unwrap_or(self.table.id))
    }

    /// The name of the table or of a partition of it.
    pub(crate) fn name_of(&self, id: u32) -> &str {
        let partition = self.table.partitioning().and_then(|d| d.partition(id));
        partition.map_or(&self.table.name, |p| &p.name)
    }

    /// What a partition calls an index of the table.
    pub(crate) fn index_name(&self, partition: u32, index: u32) -> Option<&str> {
        let partition = self.table.partitioning()?.partition(partition)?;
        Some(&partition.indexes.iter().find(|i| i.of == index)?.name)
    }
}
