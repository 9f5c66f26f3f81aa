//! FOR VALUES: bounds as they are declared, and that they leave each row to one partition.

use std::cmp::Ordering;

use braid_catalog::{Limit, Partition, PartitionBound, Partitioning, Strategy, Table};
use braid_parser::{ForValues, RangeLimit};
use braid_scalar::{Scope, bind_to};
use braid_types::{Datum, SqlError, SqlResult, SqlState, TimeZone};
use sqlparser::ast;

use crate::ddl::{Change, bad_table};
use crate::partitions::{Edge, Key, edges, limits_text, order};

fn bad_bound(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// The bound of a partition of what is divided by a key.
pub(super) fn declare(c: &Change, key: &Key, bound: &ForValues) -> SqlResult<PartitionBound> {
    match (key.strategy, bound) {
        (Strategy::Hash, ForValues::Default) => {
            Err(bad_table("a hash-partitioned table may not have a default partition"))
        }
        (_, ForValues::Default) => Ok(PartitionBound::Default),
        (Strategy::List, ForValues::In(values)) => {
            let mut out: Vec<Option<String>> = Vec::new();
            for e in values {
                let value = text_of(&value(c, key, 0, e)?);
                if !out.contains(&value) {
                    out.push(value);
                }
            }
            Ok(PartitionBound::List(out))
        }
        (Strategy::Range, ForValues::FromTo(from, to)) => {
            for (word, given) in [("FROM", from), ("TO", to)] {
                if given.len() != key.len() {
                    let text =
                        format!("{word} must specify exactly one value per partitioning column");
                    return Err(bad_table(text));
                }
            }
            Ok(PartitionBound::Range { from: limits(c, key, from)?, to: limits(c, key, to)? })
        }
        (Strategy::Hash, ForValues::With { modulus, remainder }) => hash(*modulus, *remainder),
        (strategy, _) => {
            let strategy = strategy.sql().to_lowercase();
            Err(bad_table(format!("invalid bound specification for a {strategy} partition")))
        }
    }
}

fn hash(modulus: i64, remainder: i64) -> SqlResult<PartitionBound> {
    let number = |n: i64| u32::try_from(n).ok().filter(|n| i32::try_from(*n).is_ok());
    let Some(modulus) = number(modulus).filter(|m| *m > 0) else {
        return Err(bad_table(
            "modulus for hash partition must be an integer value greater than zero",
        ));
    };
    let Some(remainder) = number(remainder) else {
        return Err(bad_table(
            "remainder for hash partition must be an integer value greater than or equal to zero",
        ));
    };
    if remainder >= modulus {
        return Err(bad_table("remainder for hash partition must be less than modulus"));
    }
    Ok(PartitionBound::Hash { modulus, remainder })
}

fn limits(c: &Change, key: &Key, given: &[RangeLimit]) -> SqlResult<Vec<Limit>> {
    let mut out: Vec<Limit> = Vec::new();
    for (at, limit) in given.iter().enumerate() {
        let new = match limit {
            RangeLimit::Min => Limit::Min,
            RangeLimit::Max => Limit::Max,
            RangeLimit::Value(e) => match text_of(&value(c, key, at, e)?) {
                Some(text) => Limit::Value(text),
                None => return Err(bad_bound("cannot specify NULL in range bound")),
            },
        };
        for (endless, word) in [(Limit::Min, "MINVALUE"), (Limit::Max, "MAXVALUE")] {
            if out.last() == Some(&endless) && new != endless {
                let text = format!("every bound following {word} must also be {word}");
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text));
            }
        }
        out.push(new);
    }
    Ok(out)
}

fn text_of(value: &Datum) -> Option<String> {
    value.to_text(TimeZone::utc())
}

/// A constant of the type of a part of the key.
fn value(c: &Change, key: &Key, at: usize, e: &ast::Expr) -> SqlResult<Datum> {
    let ty = key.types().nth(at).ok_or_else(|| SqlError::internal("a key has fewer parts"))?;
    let scope = Scope::empty();
    let bound =
        bind_to(e, ty, &scope, &mut c.ctx.no_params()).map_err(|error| match error.state() {
            SqlState::DATATYPE_MISMATCH => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "specified value cannot be cast to type {} for column \"{}\"",
                    ty.name(),
                    key.name(at)
                ),
            ),
            SqlState::UNDEFINED_COLUMN => SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "cannot use column reference in partition bound expression",
            ),
            _ => error,
        })?;
    bound.eval(&[], &c.ctx.eval)
}

/// That a new partition of `parent` wants no row that another has.
///
/// # Errors
/// 42P17.
pub(super) fn check_new(
    table: &Table,
    divided: &Partitioning,
    parent: u32,
    (name, bound): (&str, &PartitionBound),
) -> SqlResult<()> {
    let Some(key) = divided.key_of(parent) else { return Ok(()) };
    let key = Key::new(table, key)?;
    if let PartitionBound::Range { from, to } = bound
        && order(&edges(&key, from)?, &edges(&key, to)?).is_ge()
    {
        return Err(bad_bound(format!("empty range bound specified for partition \"{name}\""))
            .with_detail(format!(
                "Specified lower bound {} is greater than or equal to upper bound {}.",
                limits_text(&key, from),
                limits_text(&key, to)
            )));
    }
    if *bound == PartitionBound::Default {
        return match divided.default_of(parent) {
            None => Ok(()),
            Some(other) => Err(bad_bound(format!(
                "partition \"{name}\" conflicts with existing default partition \"{}\"",
                other.name
            ))),
        };
    }
    check_moduli(divided, parent, bound)?;
    let mut met: Option<(&Partition, Vec<Edge>)> = None;
    for other in divided.partitions_of(parent) {
        if !overlap(&key, bound, &other.bound)? {
            continue;
        }
        // Of several the lowest one is named.
        let low = match &other.bound {
            PartitionBound::Range { from, .. } => edges(&key, from)?,
            _ => Vec::new(),
        };
        if met.as_ref().is_none_or(|(_, before)| order(&low, before) == Ordering::Less) {
            met = Some((other, low));
        }
    }
    match met {
        None => Ok(()),
        Some((other, _)) => Err(bad_bound(format!(
            "partition \"{name}\" would overlap partition \"{}\"",
            other.name
        ))),
    }
}

fn overlap(key: &Key, a: &PartitionBound, b: &PartitionBound) -> SqlResult<bool> {
    Ok(match (a, b) {
        (PartitionBound::List(a), PartitionBound::List(b)) => a.iter().any(|v| b.contains(v)),
        (PartitionBound::Range { from: a, to: b }, PartitionBound::Range { from: x, to: y }) => {
            let [a, b, x, y] = [a, b, x, y].map(|limits| edges(key, limits));
            order(&a?, &y?).is_lt() && order(&x?, &b?).is_lt()
        }
        (
            PartitionBound::Hash { modulus: m, remainder: r },
            PartitionBound::Hash { modulus: n, remainder: s },
        ) => {
            let least = m.min(n);
            r % least == s % least
        }
        _ => false,
    })
}

/// Each modulus is a factor of the next larger one: so every row has its place, and only one.
fn check_moduli(divided: &Partitioning, parent: u32, bound: &PartitionBound) -> SqlResult<()> {
    let PartitionBound::Hash { modulus, .. } = bound else { return Ok(()) };
    let others = divided.partitions_of(parent).filter_map(|p| match &p.bound {
        PartitionBound::Hash { modulus, remainder } => Some((*modulus, *remainder, &p.name)),
        _ => None,
    });
    let mut others: Vec<(u32, u32, &String)> = others.collect();
    others.sort_unstable();
    let below = others.iter().rev().find(|(m, ..)| m <= modulus);
    let above = others.iter().find(|(m, ..)| m > modulus);
    let detail = match (below, above) {
        (Some((m, _, name)), _) if modulus % m != 0 => format!(
            "The new modulus {modulus} is not divisible by {m}, the modulus of existing \
             partition \"{name}\"."
        ),
        (_, Some((m, _, name))) if m % modulus != 0 => format!(
            "The new modulus {modulus} is not a factor of {m}, the modulus of existing \
             partition \"{name}\"."
        ),
        _ => return Ok(()),
    };
    Err(bad_bound("every hash partition modulus must be a factor of the next larger modulus")
        .with_detail(detail))
}
