//! Tables of some size before a round begins: many rows, few, one or none.
//!
//! The rows are computed by SQL, from a number and from the keys of the parents, so that all
//! databases get the same ones:
//!
//! ```text
//!   INSERT INTO t1 SELECT p.k00, g, nullif(x % 12 - 3, 5), ..
//!     FROM (SELECT p.k00, g, abs(p.k00 * 131 + g * 7919) AS x
//!           FROM t0 p, generate_series(0, 9) AS s(g)) r
//! ```
//! Some columns take their values from as few as the literals of statements do, some from many.

use braid_env::random::Random;

use super::schema::{Column, Schema, Table, Type};

/// How many rows a table gets, by chance: parts of the most.
const PARTS: [u64; 6] = [1, 1, 2, 10, 100, 1_000];

/// Statements that fill the tables of a schema, parents first, each with at most so many rows.
pub(super) fn statements(random: &mut Random, schema: &Schema, most: u64) -> Vec<String> {
    let mut rows: Vec<u64> = Vec::new();
    let mut out = Vec::new();
    for table in &schema.tables {
        let wanted = match random.below(12) {
            0 => 0,
            1 => 1,
            _ => most / random.pick(&PARTS),
        };
        let parents = table.parent.map(|at| (&schema.tables[at], rows[at]));
        let (statement, count) = fill(random, table, parents, wanted);
        rows.push(count);
        out.extend(statement);
    }
    out
}

/// The statement that fills one table, and about how many rows it gives.
fn fill(
    random: &mut Random,
    table: &Table,
    parents: Option<(&Table, u64)>,
    wanted: u64,
) -> (Option<String>, u64) {
    let outer = parents.map_or(1, |(_, rows)| rows);
    if wanted == 0 || outer == 0 {
        return (None, 0);
    }
    let inherited = parents.map_or(0, |(parent, _)| parent.key_len);
    let own = &table.key()[inherited..];
    let each = if own.is_empty() { 1 } else { wanted.div_ceil(outer) };
    let one_of = (outer * each).div_ceil(wanted).max(1);
    let keys: Vec<String> =
        table.key()[..inherited].iter().map(|c| format!("p.{}", c.name)).collect();
    let hash = keys.iter().zip(table.key()).map(|(key, column)| number(key, column.ty));
    let hash: Vec<String> = hash.chain(["g * 7919".to_string()]).collect();
    let from = match parents {
        Some((parent, _)) => format!("{} p, ", parent.name),
        None => String::new(),
    };
    let inner = format!(
        "SELECT {} abs({}) AS x FROM {from}generate_series(0, {}) AS s(g)",
        keys.iter().map(|key| format!("{key},")).chain(["g,".into()]).collect::<String>(),
        hash.join(" + "),
        each - 1
    );
    let names = table.key()[..inherited].iter().map(|c| format!("r.{}", c.name));
    // Two own key columns are the digits of the number.
    let base = random.between(2, 40);
    let digits = own.iter().enumerate().map(|(n, column)| {
        let digit = match (n, own.len()) {
            (_, 1) => "g".to_string(),
            (0, _) => format!("g / {base}"),
            _ => format!("g % {base}"),
        };
        key_value(column.ty, &digit)
    });
    let values = table.columns[table.key_len..].iter().map(|c| value(random, c, wanted));
    let list: Vec<String> = names.chain(digits).chain(values).collect();
    let filter = if one_of > 1 { format!(" WHERE x % {one_of} = 0") } else { String::new() };
    let sql =
        format!("INSERT INTO {} SELECT {} FROM ({inner}) r{filter}", table.name, list.join(", "));
    (Some(sql), (outer * each / one_of).max(1))
}

/// A number that tells keys apart, somewhat.
fn number(key: &str, ty: Type) -> String {
    match ty {
        Type::Int4 | Type::Int8 => format!("{key}::bigint * 131"),
        Type::Text => format!("length({key}) * 17 + ascii(right({key}, 1)) * 31"),
        Type::Date => format!("({key} - date '2026-01-01') * 131"),
        Type::Bool | Type::Numeric | Type::Timestamp => "0".to_string(),
    }
}

/// A key for a number: the first ones are those that statements ask for.
fn key_value(ty: Type, number: &str) -> String {
    match ty {
        Type::Int4 => format!("({number} - 1)::int"),
        Type::Int8 => format!("({number}) * 1000000007::bigint"),
        Type::Text => {
            format!("coalesce((ARRAY['a', 'ab', '', 'é'])[{number} + 1], 'k' || {number})")
        }
        _ => format!("date '2026-02-10' + ({number})::int"),
    }
}

/// A value from few or many.
fn value(random: &mut Random, column: &Column, rows: u64) -> String {
    let many = random.chance(1, 2);
    let domain = if many { rows.max(2) } else { random.between(2, 12) };
    let n = format!("(x / {} % {domain})", random.pick(&[1, 3, 7]));
    let plain = match column.ty {
        Type::Int4 => format!("({n} - 3)::int"),
        Type::Int8 => format!("{n} * 1000000007::bigint"),
        Type::Text => {
            let words = "ARRAY['a', 'ab', 'b', 'B', '', 'zz top', 'it''s', 'é', '100%', 'a_b']";
            let more = if many { format!(" || {n}") } else { String::new() };
            format!("({words})[{n} % 10 + 1]{more}")
        }
        Type::Bool => format!("{n} % 2 = 0"),
        Type::Numeric => format!("({n} % 900000 / 10.0 - 5)::numeric(8,2)"),
        Type::Date => format!("date '2026-01-10' + ({n} % 3000)::int"),
        Type::Timestamp => format!("timestamp '2026-01-11 00:30:00' + {n} * interval '1 hour'"),
    };
    match !column.not_null && random.chance(2, 3) {
        true => {
            let part = random.between(2, 30);
            format!("CASE WHEN x % {part} > 0 THEN {plain} END")
        }
        false => plain,
    }
}
