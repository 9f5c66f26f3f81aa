//! What the rows of a partition have in common, as SQL.
//!
//! It is never NULL, so that the default partition can be what it is not. With types behind its
//! constants it is PostgreSQL's `pg_get_partition_constraintdef`; without, constants take the types
//! of the columns that they stand beside, and what only helps to find spans of keys is added.

use std::ops::ControlFlow;

use braid_catalog::{
    KeyPart, Limit, Partition, PartitionBound, PartitionKey, Partitioning, Table, oid_of,
};
use braid_parser::parse_expr;
use braid_scalar::ident_name;
use braid_types::{SqlResult, SqlType, quote_ident};
use braid_walk::WalkMut;
use sqlparser::ast::{self, VisitorMut};

use super::key::Key;

/// How constants are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constants {
    /// As literals without a type.
    Bare,
    /// With their types, as clients are shown them.
    Typed,
}

/// The condition on the table's rows that are seen through a window; `None` for a table.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub fn condition(window: &Table) -> SqlResult<Option<ast::Expr>> {
    match window.window() {
        None => Ok(None),
        Some(partition) => parse_expr(&condition_of(window, partition.id)?).map(Some),
    }
}

/// The condition on the table's rows that are in a partition, as text.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub(crate) fn condition_of(table: &Table, partition: u32) -> SqlResult<String> {
    whole(table, partition, Constants::Bare)
}

/// The oid of what a row is in, as SQL over the table's columns: that of its partition, or of the
/// table. `name` says how a column is called.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub fn table_oid(
    table: &Table,
    name: &dyn Fn(&str) -> Option<Vec<ast::Ident>>,
) -> SqlResult<ast::Expr> {
    let oid = |id: u32| format!("CAST({} AS oid)", oid_of(id));
    let Some(divided) = table.partitioning() else { return parse_expr(&oid(table.id)) };
    let mut branches = String::new();
    for leaf in divided.partitions.iter().filter(|p| p.key.is_none()) {
        let condition = condition_of(table, leaf.id)?;
        branches.push_str(&format!(" WHEN {condition} THEN {}", oid(leaf.id)));
    }
    let text = match branches.as_str() {
        "" => "CAST(NULL AS oid)".to_string(),
        branches => format!("CASE{branches} END"),
    };
    let mut expr = parse_expr(&text)?;
    let _ = expr.walk_mut(&mut Named(name));
    Ok(expr)
}

/// Calls columns by other names.
struct Named<'a>(&'a dyn Fn(&str) -> Option<Vec<ast::Ident>>);

impl VisitorMut for Named<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Identifier(name) = expr
            && let Some(name) = (self.0)(&ident_name(name))
        {
            *expr = ast::Expr::CompoundIdentifier(name);
        }
        ControlFlow::Continue(())
    }
}

/// The same as clients are shown it.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub fn constraint_text(table: &Table, partition: u32) -> SqlResult<String> {
    whole(table, partition, Constants::Typed)
}

fn whole(table: &Table, partition: u32, constants: Constants) -> SqlResult<String> {
    let Some(divided) = table.partitioning() else { return Ok("true".into()) };
    let mut parts = Vec::new();
    for p in divided.upwards(partition).into_iter().rev() {
        parts.extend(Level::new(table, divided, p.parent, constants)?.of(divided, p));
    }
    Ok(match parts.len() {
        0 => "true".into(),
        1 => parts.remove(0),
        _ => format!("({})", parts.join(" AND ")),
    })
}

/// One division, in words.
struct Level {
    key: Key,
    texts: Vec<String>,
    /// Which of them may be NULL.
    nullable: Vec<bool>,
    constants: Constants,
    parent: u32,
}

impl Level {
    fn new(
        table: &Table,
        divided: &Partitioning,
        parent: u32,
        constants: Constants,
    ) -> SqlResult<Level> {
        let key = divided.key_of(parent).unwrap_or(&divided.key);
        let texts = key.parts.iter().map(|part| part_text(table, part)).collect();
        let may_be_null = |part: &KeyPart| match part {
            KeyPart::Column(id) => table.column(*id).is_none_or(|c| c.nullable),
            KeyPart::Expression(_) => true,
        };
        let nullable = key.parts.iter().map(may_be_null).collect();
        Ok(Level { key: Key::new(table, key)?, texts, nullable, constants, parent })
    }

    fn types(&self) -> Vec<&SqlType> {
        self.key.types().collect()
    }

    /// What is asked of the rows of a partition, `None` if nothing.
    fn of(&self, divided: &Partitioning, p: &Partition) -> Option<String> {
        Some(match &p.bound {
            PartitionBound::List(values) => self.list(values),
            PartitionBound::Range { from, to } => {
                let mut parts = self.not_null();
                parts.extend(self.range(from, to));
                both(parts)
            }
            PartitionBound::Hash { modulus, remainder } => self.hash(*modulus, *remainder),
            PartitionBound::Default => return self.default(divided, p),
        })
    }

    /// What is in no other partition.
    fn default(&self, divided: &Partitioning, p: &Partition) -> Option<String> {
        let (mut values, mut ranges) = (Vec::new(), Vec::new());
        for other in divided.partitions_of(p.parent).filter(|other| other.id != p.id) {
            match &other.bound {
                PartitionBound::List(list) => values.extend(list.iter().cloned()),
                PartitionBound::Range { from, to } => ranges.push(both(self.range(from, to))),
                PartitionBound::Hash { .. } | PartitionBound::Default => {}
            }
        }
        if !values.is_empty() {
            return Some(format!("(NOT {})", self.list(&values)));
        }
        if ranges.is_empty() {
            return None;
        }
        let mut parts = self.not_null();
        parts.push(match ranges.len() {
            1 => ranges.remove(0),
            _ => format!("({})", ranges.join(" OR ")),
        });
        Some(format!("(NOT {})", both(parts)))
    }

    fn list(&self, values: &[Option<String>]) -> String {
        let (key, ty) = (&self.texts[0], self.types()[0]);
        let constants: Vec<String> =
            values.iter().flatten().map(|v| constant(v, ty, self.constants)).collect();
        let is_null = format!("({key} IS NULL)");
        let one_of = match (constants.as_slice(), self.constants) {
            ([], _) => return is_null,
            ([one], _) => format!("({key} = {one})"),
            (_, Constants::Typed) => format!("({key} = ANY (ARRAY[{}]))", constants.join(", ")),
            (_, Constants::Bare) => format!("({key} IN ({}))", constants.join(", ")),
        };
        match values.contains(&None) {
            true => format!("({is_null} OR {one_of})"),
            false if self.asks_for_null(0) => format!("(({key} IS NOT NULL) AND {one_of})"),
            false => one_of,
        }
    }

    /// Whether it is to be said that a value is not NULL: what cannot be is left out where spans of
    /// keys are to come of it.
    fn asks_for_null(&self, at: usize) -> bool {
        self.constants == Constants::Typed || self.nullable[at]
    }

    fn not_null(&self) -> Vec<String> {
        let asked = (0..self.texts.len()).filter(|at| self.asks_for_null(*at));
        asked.map(|at| format!("({} IS NOT NULL)", self.texts[at])).collect()
    }

    /// What a range asks beyond that nothing is NULL.
    fn range(&self, from: &[Limit], to: &[Limit]) -> Vec<String> {
        let mut parts = Vec::new();
        let same = from
            .iter()
            .zip(to)
            .take_while(|(a, b)| matches!((a, b), (Limit::Value(a), Limit::Value(b)) if a == b))
            .count();
        for (at, limit) in from.iter().enumerate().take(same) {
            parts.extend(self.compare(at, "=", limit));
        }
        let mut lower = self.edge(from, same, (">", ">="), &Limit::Min);
        let mut upper = self.edge(to, same, ("<", "<="), &Limit::Max);
        if self.constants == Constants::Bare && lower.len().max(upper.len()) > 1 {
            // Rows at one end in the first column that differs are beyond the other end for sure:
            // so each alternative is one span of keys.
            let at_from = lower.split_off(lower.len().min(1));
            let at_to = upper.split_off(upper.len().min(1));
            lower.extend(upper);
            let between = std::iter::once(both(lower));
            parts.extend(either(between.chain(at_from).chain(at_to).collect()));
        } else {
            parts.extend(either(lower));
            parts.extend(either(upper));
        }
        parts
    }

    /// One end of a range, from the first column on that is not the same at both ends, as
    /// alternatives, of which all but the first are about rows that have the limit's value there.
    /// `open`: a limit beyond which nothing is asked.
    fn edge(
        &self,
        limits: &[Limit],
        first: usize,
        (strict, weak): (&str, &str),
        open: &Limit,
    ) -> Vec<String> {
        let lower = *open == Limit::Min;
        let mut arms = Vec::new();
        for last in first..limits.len() {
            if !matches!(limits[last], Limit::Value(_)) {
                break;
            }
            let next = limits.get(last + 1);
            let ends = next.is_none_or(|next| next == open);
            let op = match (ends, lower, next.is_none()) {
                (true, true, _) | (true, false, false) => weak,
                _ => strict,
            };
            let mut arm: Vec<String> =
                (first..last).filter_map(|at| self.compare(at, "=", &limits[at])).collect();
            arm.extend(self.compare(last, op, &limits[last]));
            arms.push(both(arm));
            if ends {
                break;
            }
        }
        arms
    }

    fn compare(&self, at: usize, op: &str, limit: &Limit) -> Option<String> {
        let Limit::Value(value) = limit else { return None };
        let value = constant(value, self.types()[at], self.constants);
        Some(format!("({} {op} {value})", self.texts[at]))
    }

    fn hash(&self, modulus: u32, remainder: u32) -> String {
        let of = match self.constants {
            Constants::Typed => format!("'{}'::oid", braid_catalog::oid_of(self.parent)),
            // The function goes by the types of the values.
            Constants::Bare => "0".into(),
        };
        format!("satisfies_hash_partition({of}, {modulus}, {remainder}, {})", self.texts.join(", "))
    }
}

fn both(mut parts: Vec<String>) -> String {
    match parts.len() {
        0 => "true".into(),
        1 => parts.remove(0),
        _ => format!("({})", parts.join(" AND ")),
    }
}

/// Alternatives; `None` of none.
fn either(mut arms: Vec<String>) -> Option<String> {
    match arms.len() {
        0 => None,
        1 => arms.pop(),
        _ => Some(format!("({})", arms.join(" OR "))),
    }
}

/// A value of a bound as an SQL constant.
fn constant(text: &str, ty: &SqlType, constants: Constants) -> String {
    let quoted = format!("'{}'", text.replace('\'', "''"));
    let plain = match ty {
        SqlType::Int4 => !text.starts_with('-'),
        SqlType::Numeric(_) => {
            text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['.', 'e', 'E'])
        }
        _ => false,
    };
    match (plain, constants) {
        _ if *ty == SqlType::Bool => if text == "t" { "true" } else { "false" }.into(),
        (true, _) => text.to_string(),
        (false, Constants::Bare) => quoted,
        (false, Constants::Typed) => format!("{quoted}::{}", ty.name()),
    }
}

fn part_text(table: &Table, part: &KeyPart) -> String {
    match part {
        KeyPart::Column(id) => quote_ident(table.column(*id).map_or("", |c| &c.name)),
        KeyPart::Expression(text) if is_call(text) => text.clone(),
        KeyPart::Expression(text) => format!("({text})"),
    }
}

/// Whether an expression is a call of a function, which needs no brackets.
fn is_call(text: &str) -> bool {
    matches!(parse_expr(text), Ok(ast::Expr::Function(_)))
}

/// A partition key as `pg_get_partkeydef` prints it.
pub fn key_text(table: &Table, key: &PartitionKey) -> String {
    let parts: Vec<String> = key.parts.iter().map(|part| part_text(table, part)).collect();
    format!("{} ({})", key.strategy.sql(), parts.join(", "))
}

/// One end of a range as clients are shown it: `(1, MINVALUE)`.
pub(crate) fn limits_text(key: &Key, limits: &[Limit]) -> String {
    let shown = limits.iter().zip(key.types()).map(|(limit, ty)| match limit {
        Limit::Min => "MINVALUE".into(),
        Limit::Max => "MAXVALUE".into(),
        Limit::Value(text) => constant(text, ty, Constants::Bare),
    });
    format!("({})", shown.collect::<Vec<String>>().join(", "))
}

/// A bound as `pg_get_expr` prints it.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub fn bound_text(table: &Table, p: &Partition) -> SqlResult<String> {
    let Some(divided) = table.partitioning() else { return Ok(String::new()) };
    let key = divided.key_of(p.parent).unwrap_or(&divided.key);
    let key = Key::new(table, key)?;
    let types: Vec<&SqlType> = key.types().collect();
    Ok(match &p.bound {
        PartitionBound::Default => "DEFAULT".into(),
        PartitionBound::List(values) => {
            let shown = values.iter().map(|value| match value {
                Some(text) => constant(text, types[0], Constants::Bare),
                None => "NULL".into(),
            });
            format!("FOR VALUES IN ({})", shown.collect::<Vec<_>>().join(", "))
        }
        PartitionBound::Range { from, to } => {
            format!("FOR VALUES FROM {} TO {}", limits_text(&key, from), limits_text(&key, to))
        }
        PartitionBound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    })
}

/// Types of the values of a partition key.
///
/// # Errors
/// Of parsing what is kept in the catalog.
pub fn key_types(table: &Table, key: &PartitionKey) -> SqlResult<Vec<SqlType>> {
    Ok(Key::new(table, key)?.types().cloned().collect())
}
