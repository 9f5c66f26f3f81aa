//! Random joins of several tables, and conditions on row values and alternatives of keys: what a
//! planner may order and bound in many ways.

use braid_env::random::Random;

use super::expressions::{Source, condition, sources};
use super::schema::{Schema, Table};

/// A query over three to five tables.
pub(super) fn random(random: &mut Random, schema: &Schema) -> String {
    let count = random.between(3, 5) as usize;
    let tables: Vec<Table> = (0..count).map(|_| random.pick(&schema.tables).clone()).collect();
    let columns: Vec<Vec<Source>> =
        tables.iter().enumerate().map(|(n, t)| sources(&format!("t{n}"), &t.columns)).collect();
    let mut conditions = Vec::new();
    for n in 1..count {
        for _ in 0..random.between(1, 2) {
            let earlier = random.below(n as u64) as usize;
            conditions.extend(equality(random, &columns[n], &columns[earlier]));
        }
    }
    // Without a condition on it a table could multiply the rows.
    for own in &columns {
        if random.chance(1, 2) {
            conditions.push(condition(random, own, 1));
        }
    }
    let at = random.below(count as u64) as usize;
    if random.chance(1, 2) {
        conditions.push(row_value(random, &columns[at]));
    }
    if random.chance(1, 3) {
        conditions.push(condition(random, &columns.concat(), 2));
    }
    if random.chance(1, 3) {
        let table = random.pick(&schema.tables).clone();
        let inner = sources("e", &table.columns);
        let not = random.pick(&["", "NOT "]);
        let on = equality(random, &inner, &columns[at]).unwrap_or_else(|| "true".into());
        conditions.push(format!("{not}EXISTS (SELECT 1 FROM {} e WHERE {on})", table.name));
    }
    let from: Vec<String> =
        tables.iter().enumerate().map(|(n, t)| format!("{} t{n}", t.name)).collect();
    let grouped = random.pick(&columns[at]).sql();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let from = outer(random, from, &columns);
    format!("SELECT {grouped}, count(*) FROM {from}{filter} GROUP BY {grouped}")
}

/// The tables of FROM, the last of them perhaps by an outer join.
fn outer(random: &mut Random, mut from: Vec<String>, columns: &[Vec<Source>]) -> String {
    let last = from.len() - 1;
    if random.chance(2, 3) {
        return from.join(", ");
    }
    let Some(on) = equality(random, &columns[last], &columns[last - 1]) else {
        return from.join(", ");
    };
    let kind = random.pick(&["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]).to_string();
    let right = from.pop().expect("there are several tables");
    format!("{} {kind} {right} ON {on}", from.join(", "))
}

/// An equality of columns of one type.
fn equality(random: &mut Random, one: &[Source], other: &[Source]) -> Option<String> {
    let mut pairs = Vec::new();
    for a in one {
        let same = other.iter().filter(|b| b.column.ty == a.column.ty);
        pairs.extend(same.map(|b| (a.sql(), b.sql())));
    }
    if pairs.is_empty() {
        return None;
    }
    let (a, b) = random.pick(&pairs).clone();
    Some(format!("{a} = {b}"))
}

/// A comparison of a row of leading columns with rows of literals.
pub(super) fn row_value(random: &mut Random, columns: &[Source]) -> String {
    let most = columns.len().min(3) as u64;
    let width = random.between(1.min(most), most) as usize;
    let columns = &columns[..width.max(1)];
    let names: Vec<String> = columns.iter().map(Source::sql).collect();
    let row = |random: &mut Random| {
        let values: Vec<String> = columns.iter().map(|c| c.column.ty.key_literal(random)).collect();
        format!("ROW({})", values.join(", "))
    };
    let left = format!("ROW({})", names.join(", "));
    match random.below(3) {
        0 => {
            let rows: Vec<String> = (0..random.between(1, 4)).map(|_| row(random)).collect();
            format!("{left} IN ({})", rows.join(", "))
        }
        1 => {
            let either: Vec<String> =
                (0..random.between(2, 3)).map(|_| format!("{left} = {}", row(random))).collect();
            format!("({})", either.join(" OR "))
        }
        _ => {
            let op = random.pick(&["<", "<=", ">", ">=", "=", "<>"]).to_string();
            format!("{left} {op} {}", row(random))
        }
    }
}
