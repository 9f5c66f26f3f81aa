//! Random conditions and scalar expressions over the columns of one or more tables.

use braid_env::random::Random;

use super::schema::{Column, Type};

/// A column with the alias of its table.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) alias: String,
    pub(super) column: Column,
}

impl Source {
    pub(super) fn sql(&self) -> String {
        if self.alias.is_empty() {
            self.column.name.clone()
        } else {
            format!("{}.{}", self.alias, self.column.name)
        }
    }
}

pub(super) fn sources(alias: &str, columns: &[Column]) -> Vec<Source> {
    columns.iter().map(|c| Source { alias: alias.to_string(), column: c.clone() }).collect()
}

/// A boolean expression of limited depth.
pub(super) fn condition(random: &mut Random, from: &[Source], depth: u32) -> String {
    if depth > 0 && random.chance(1, 3) {
        let left = condition(random, from, depth - 1);
        let right = condition(random, from, depth - 1);
        return match random.below(3) {
            0 => format!("({left} AND {right})"),
            1 => format!("({left} OR {right})"),
            _ => format!("NOT ({left})"),
        };
    }
    let source = random.pick(from).clone();
    let (name, ty) = (source.sql(), source.column.ty);
    let literal = ty.literal(random);
    let other = ty.literal(random);
    let choice = random.below(10);
    match (choice, ty) {
        (_, Type::Bool) if choice < 4 => {
            format!("{name} IS {}", random.pick(&["TRUE", "NOT TRUE"]))
        }
        (0, _) => format!("{name} IS NULL"),
        (1, _) => format!("{name} IS NOT NULL"),
        (2, _) => format!("{name} IN ({literal}, {other})"),
        (3, _) => format!("{name} BETWEEN {literal} AND {other}"),
        (4, Type::Text) => {
            format!("{name} LIKE '{}'", random.pick(&["a%", "%b", "_", "%''%", "a\\_b"]))
        }
        (4, _) => format!("{name} IS DISTINCT FROM {literal}"),
        (5, _) => format!("{name} <> {literal}"),
        (6, _) => format!("{name} < {literal}"),
        (7, _) => format!("{name} >= {literal}"),
        _ => format!("{name} = {literal}"),
    }
}

/// A scalar expression; its type is whatever comes out.
pub(super) fn scalar(random: &mut Random, from: &[Source], depth: u32) -> String {
    let source = random.pick(from).clone();
    let (name, ty) = (source.sql(), source.column.ty);
    if depth == 0 {
        return name;
    }
    match (random.below(9), ty) {
        (0, _) => format!("coalesce({name}, {})", ty.literal(random)),
        (1, _) => format!("nullif({name}, {})", ty.literal(random)),
        (2, _) => {
            let condition = condition(random, from, 1);
            format!("CASE WHEN {condition} THEN {name} ELSE {} END", ty.literal(random))
        }
        (3, Type::Text) => format!("upper({name})"),
        (4, Type::Text) => format!("length({name})"),
        (5, Type::Text) => format!("{name} || '-' || {}", ty.literal(random)),
        (6, Type::Text) => format!("substr({name}, 1, 2)"),
        (3, t) if t.is_number() => format!("{name} + {}", ty.literal(random)),
        (4, t) if t.is_number() => format!("{name} * 3 - 1"),
        (5, t) if t.is_number() => format!("abs({name})"),
        (6, t) if t.is_number() => format!("{name} / {}", ty.literal(random)),
        (7, Type::Int4 | Type::Int8) => format!("{name} % 3"),
        (3, Type::Date) => format!("{name} + 7"),
        (4, Type::Date | Type::Timestamp) => format!("extract(month FROM {name})"),
        (5, Type::Timestamp) => format!("{name} + interval '1 month'"),
        (6, Type::Timestamp) => format!("date_trunc('day', {name})"),
        (8, _) => format!("CAST({name} AS text)"),
        _ => name,
    }
}
