//! Values of an enum type in kept texts follow when they get another label: PostgreSQL keeps the
//! oids of constants, here they are texts.
//!
//! A text in quotes does not say of which type it is. So each that reads like the old label is
//! replaced by what no type has a value of: is that refused as a value of the type, it was one.

use std::ops::ControlFlow;

use braid_catalog::{
    KeyPart, Limit, Partition, PartitionBound, Table, UserType, is_type, oid_of, uses_type,
};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use braid_walk::VisitorMut;
use sqlparser::ast::{Value, ValueWithSpan};

use super::texts::{Kept, Rewrite, Tree, is_here, rewrite};
use crate::ddl::{Change, user_type};

/// What is no label: those cannot be typed.
const NO_LABEL: &str = "\u{1}";

/// Texts in quotes.
struct Literals<'a> {
    /// That read so.
    from: &'a str,
    /// What is to be in the place of the one of this number.
    to: Option<(usize, &'a str)>,
    seen: usize,
}

impl VisitorMut for Literals<'_> {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) =
            &mut value.value
        else {
            return ControlFlow::Continue(());
        };
        if text == self.from {
            if let Some((_, to)) = self.to.filter(|(at, _)| *at == self.seen) {
                *text = to.to_string();
            }
            self.seen += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Replaces a literal of this number; how many there are.
fn replace(tree: &mut Tree, from: &str, to: Option<(usize, &str)>) -> usize {
    let mut literals = Literals { from, to, seen: 0 };
    tree.walk_mut(&mut literals);
    literals.seen
}

/// Has constants of an enum type written with the new label; the type still has the old one.
///
/// # Errors
/// Of locking what they are kept with.
pub(in crate::ddl) fn follow(c: &mut Change, ty: &UserType, from: &str, to: &str) -> SqlResult<()> {
    let Some(SqlType::Enum(kind)) = c.catalog.sql_type(ty) else { return Ok(()) };
    let refused = format!("invalid input value for enum {}: \"{NO_LABEL}\"", kind.shown_name());
    let ctx = c.ctx.clone();
    let quoted = format!("'{}'", from.replace('\'', "''"));
    let may = |text: &str| text.contains(&quoted);
    let change = |kept: &mut Kept<'_>| {
        let original = kept.tree.clone();
        let mut changed = original.clone();
        // Those before it have been replaced by then.
        let mut at = 0;
        for number in 0..replace(&mut original.clone(), from, None) {
            kept.tree = original.clone();
            replace(&mut kept.tree, from, Some((number, NO_LABEL)));
            match kept.check(&ctx) {
                Err(e) if e.message() == refused => {
                    replace(&mut changed, from, Some((at, to)));
                }
                _ => at += 1,
            }
        }
        let any = changed != original;
        kept.tree = changed;
        Ok(any)
    };
    rewrite(c, &Rewrite { may: &may, change: &change })?;
    in_bounds(c, ty, from, to)
}

/// Refuses the change if a text has the old label within another constant, as in
/// `'{red,green}'::color[]`. The type has the new label by now.
///
/// # Errors
/// 2BP01.
pub(in crate::ddl) fn check(c: &mut Change, ty: &UserType, from: &str, to: &str) -> SqlResult<()> {
    let ctx = c.ctx.clone();
    let may = |text: &str| text.contains(from) || text.contains(to);
    let change = |kept: &mut Kept<'_>| match kept.check(&ctx) {
        Err(e) if e.state() == SqlState::INVALID_TEXT_REPRESENTATION => {
            Err(user_type::written(ty, "rename a value of", kept.what, kept.of))
        }
        _ => Ok(false),
    };
    rewrite(c, &Rewrite { may: &may, change: &change })
}

/// Bounds of partitions.
fn in_bounds(c: &mut Change, ty: &UserType, from: &str, to: &str) -> SqlResult<()> {
    let mut changed = Vec::new();
    for table in c.catalog.tables().filter(|t| t.partitioning().is_some() && is_here(c, t.schema)) {
        let mut new = (**table).clone();
        let Some(divided) = new.partitioning_mut() else { continue };
        let keys = divided.clone();
        for partition in &mut divided.partitions {
            let parts = keys.key_of(partition.parent).map_or(&[][..], |key| &key.parts);
            in_bound(table, parts, partition, (ty, from, to))?;
        }
        if *divided != keys {
            changed.push(new);
        }
    }
    for table in changed {
        c.ctx.lock_for_change(table.id)?;
        c.catalog.put_table(table);
    }
    Ok(())
}

fn in_bound(
    table: &Table,
    key: &[KeyPart],
    partition: &mut Partition,
    (ty, from, to): (&UserType, &str, &str),
) -> SqlResult<()> {
    let rename = |part: &KeyPart, text: &mut String| -> Result<(), SqlError> {
        let KeyPart::Column(column) = part else { return Ok(()) };
        let Some(column) = table.column(*column) else { return Ok(()) };
        if is_type(&column.ty, oid_of(ty.id)) {
            if text == from {
                *text = to.to_string();
            }
        } else if uses_type(&column.ty, oid_of(ty.id)) && text.contains(from) {
            let what = "the bound";
            return Err(user_type::written(ty, "rename a value of", what, &partition.name));
        }
        Ok(())
    };
    match &mut partition.bound {
        PartitionBound::List(values) => {
            for text in values.iter_mut().flatten() {
                key.first().map_or(Ok(()), |part| rename(part, text))?;
            }
        }
        PartitionBound::Range { from, to } => {
            for limits in [from, to] {
                for (limit, part) in limits.iter_mut().zip(key) {
                    if let Limit::Value(text) = limit {
                        rename(part, text)?;
                    }
                }
            }
        }
        PartitionBound::Hash { .. } | PartitionBound::Default => {}
    }
    Ok(())
}
