//! Random SELECT statements with subqueries of every shape, up to two deep.
//!
//! ```text
//!   EXISTS, IN, op ANY, op ALL, scalar     negated or not
//!   correlated by =, <, <>, or not         with their own conditions, groups, limits
//!   in WHERE, select list, CASE, OR, HAVING, ON, LATERAL
//! ```

use braid_env::random::Random;

use super::expressions::{Source, condition, sources};
use super::schema::{Schema, Table, Type};

/// FROM and WHERE of a subquery, and the columns it has.
struct Inner {
    from: String,
    own: Vec<Source>,
    keys: Vec<Source>,
}

/// A condition between columns of one type.
fn correlation(random: &mut Random, own: &[Source], outer: &[Source]) -> Option<String> {
    for _ in 0..4 {
        let o = random.pick(outer).clone();
        let same: Vec<&Source> = own.iter().filter(|s| s.column.ty == o.column.ty).collect();
        if !same.is_empty() {
            let s = (*random.pick(&same)).sql();
            let op = match o.column.ty {
                Type::Bool => "=",
                _ => *random.pick(&["=", "=", "=", "=", "<", "<>", ">="]),
            };
            return Some(format!("{s} {op} {}", o.sql()));
        }
    }
    None
}

fn inner(random: &mut Random, schema: &Schema, outer: &[Source], depth: u32) -> Inner {
    let table: Table = random.pick(&schema.tables).clone();
    let alias = format!("s{depth}");
    let own = sources(&alias, &table.columns);
    let keys = sources(&alias, table.key());
    let mut conditions = Vec::new();
    if random.chance(5, 6) {
        conditions.extend(correlation(random, &own, outer));
    }
    if random.chance(1, 4) {
        conditions.extend(correlation(random, &own, outer));
    }
    if random.chance(1, 2) {
        conditions.push(condition(random, &own, 1));
    }
    if depth > 0 && random.chance(1, 3) {
        // The deeper one sees this table, and sometimes the one around it as well.
        let mut seen = own.clone();
        if random.chance(1, 3) {
            seen.extend(outer.iter().cloned());
        }
        conditions.push(predicate(random, schema, &seen, depth - 1));
    }
    if conditions.is_empty() {
        conditions.push("true".to_string());
    }
    let from = format!("FROM {} {alias} WHERE {}", table.name, conditions.join(" AND "));
    Inner { from, own, keys }
}

/// A column of the subquery with the type of an outer one, and that one.
fn pair(random: &mut Random, own: &[Source], outer: &[Source]) -> Option<(Source, Source)> {
    for _ in 0..6 {
        let o = random.pick(outer).clone();
        let same: Vec<&Source> = own.iter().filter(|s| s.column.ty == o.column.ty).collect();
        if o.column.ty != Type::Bool && !same.is_empty() {
            return Some((o, (*random.pick(&same)).clone()));
        }
    }
    None
}

fn names(list: &[Source]) -> String {
    list.iter().map(Source::sql).collect::<Vec<_>>().join(", ")
}

/// A condition that is a subquery.
pub(super) fn predicate(
    random: &mut Random,
    schema: &Schema,
    outer: &[Source],
    depth: u32,
) -> String {
    let inner = inner(random, schema, outer, depth);
    let not = if random.chance(1, 2) { "NOT " } else { "" };
    let exists = |random: &mut Random, inner: &Inner| {
        let tail = match random.below(6) {
            0 => " LIMIT 1".to_string(),
            1 => format!(" GROUP BY {} HAVING count(*) > 1", random.pick(&inner.own).sql()),
            _ => String::new(),
        };
        let list = if tail.contains("GROUP") { "1" } else { random.pick(&["1", "*"]) };
        format!("{not}EXISTS (SELECT {list} {}{tail})", inner.from)
    };
    let Some((o, s)) = pair(random, &inner.own, outer) else { return exists(random, &inner) };
    let (o, s, from) = (o.sql(), s.sql(), &inner.from);
    match random.below(10) {
        0..=2 => exists(random, &inner),
        3 | 4 => format!("{o} {not}IN (SELECT {s} {from})"),
        5 => {
            let tail = match random.below(3) {
                0 => format!(" GROUP BY {s}"),
                1 => format!(" ORDER BY {} LIMIT 2", names(&inner.keys)),
                _ => String::new(),
            };
            format!("{o} {not}IN (SELECT {s} {from}{tail})")
        }
        6 => {
            let Some((o2, s2)) = pair(random, &inner.own, outer) else {
                return exists(random, &inner);
            };
            format!("({o}, {}) {not}IN (SELECT {s}, {} {from})", o2.sql(), s2.sql())
        }
        7 => {
            let op = random.pick(&["<", ">=", "=", "<>", ">"]);
            let kind = random.pick(&["ANY", "ALL"]);
            format!("{not}({o} {op} {kind} (SELECT {s} {from}))")
        }
        8 => format!("{o} {} (SELECT min({s}) {from})", random.pick(&["=", "<", ">=", "<>"])),
        _ => format!("{} {} {}", value(random, schema, outer, depth), random.pick(&[">", "="]), {
            random.below(3)
        }),
    }
}

/// A number that a subquery computes.
fn value(random: &mut Random, schema: &Schema, outer: &[Source], depth: u32) -> String {
    let inner = inner(random, schema, outer, depth);
    let column = random.pick(&inner.own).clone();
    let name = column.sql();
    let from = &inner.from;
    match random.below(7) {
        0 | 1 => format!("(SELECT count(*) {from})"),
        2 => format!("(SELECT count(DISTINCT {name}) + 1 {from})"),
        3 if column.column.ty.is_number() => format!("(SELECT sum({name}) {from})"),
        4 if column.column.ty.is_number() => {
            format!("(SELECT coalesce(max({name}), -1) {from})")
        }
        5 if column.column.ty.is_number() => format!("(SELECT 2 * avg({name}) {from})"),
        // A subquery that must give one row, or the error of several.
        6 if column.column.ty.is_number() && random.chance(1, 2) => {
            let key: Vec<String> = inner
                .keys
                .iter()
                .filter_map(|k| {
                    let same: Vec<&Source> =
                        outer.iter().filter(|o| o.column.ty == k.column.ty).collect();
                    (!same.is_empty())
                        .then(|| format!("{} = {}", k.sql(), (*random.pick(&same)).sql()))
                })
                .collect();
            match key.len() == inner.keys.len() {
                true => format!("(SELECT {name} {from} AND {})", key.join(" AND ")),
                false => format!("(SELECT count({name}) {from})"),
            }
        }
        _ => format!("(SELECT count({name}) {from})"),
    }
}

/// The first columns of rows, one each.
fn row_value(random: &mut Random, schema: &Schema, outer: &[Source], depth: u32) -> String {
    let inner = inner(random, schema, outer, depth);
    let direction = random.pick(&["", " DESC"]);
    let keys: Vec<String> = inner.keys.iter().map(|k| format!("{}{direction}", k.sql())).collect();
    let column = random.pick(&inner.own).sql();
    match random.below(4) {
        0 => format!("ARRAY(SELECT {column} {} ORDER BY {})", inner.from, keys.join(", ")),
        _ => format!(
            "(SELECT {column} {} ORDER BY {} LIMIT 1{})",
            inner.from,
            keys.join(", "),
            random.pick(&["", " OFFSET 1"])
        ),
    }
}

/// A statement whose condition, list, groups or joins hold subqueries.
pub(super) fn random(random: &mut Random, schema: &Schema) -> String {
    let table = random.pick(&schema.tables).clone();
    let outer = sources("o", &table.columns);
    let depth = u32::from(random.chance(1, 2));
    let list = names(&outer);
    let from = format!("FROM {} o", table.name);
    let one = predicate(random, schema, &outer, depth);
    match random.below(16) {
        14 | 15 => lateral(random, schema, &table),
        0..=2 => format!("SELECT {list} {from} WHERE {one}"),
        3 => {
            let more = predicate(random, schema, &outer, 0);
            let plain = condition(random, &outer, 1);
            format!("SELECT {list} {from} WHERE {plain} AND {one} AND {more}")
        }
        4 => {
            let plain = condition(random, &outer, 1);
            format!("SELECT {list} {from} WHERE {one} OR {plain}")
        }
        5 => format!("SELECT {list} {from} WHERE ({one}) IS NOT TRUE"),
        6 => {
            let more = value(random, schema, &outer, depth);
            format!("SELECT {list}, {one}, {more} {from}")
        }
        7 => {
            let more = value(random, schema, &outer, 0);
            format!("SELECT {list}, CASE WHEN {one} THEN {more} ELSE -1 END {from}")
        }
        8 => {
            let group = random.pick(&outer).clone();
            let more = value(random, schema, std::slice::from_ref(&group), 0);
            let group = group.sql();
            format!("SELECT {group}, count(*) {from} GROUP BY {group} HAVING count(*) <= {more}")
        }
        9 => {
            let first = value(random, schema, &outer, 0);
            format!("SELECT sum({first}), count(*) FILTER (WHERE {one}) {from}")
        }
        10 | 11 => joined(random, schema, &table),
        12 => {
            let more = row_value(random, schema, &outer, depth);
            format!("SELECT {list}, {more} {from}")
        }
        _ => {
            let plain = condition(random, &outer, 1);
            format!("SELECT count(*) {from} WHERE {plain} AND {one}")
        }
    }
}

fn lateral(random: &mut Random, schema: &Schema, table: &Table) -> String {
    let outer = sources("o", &table.columns);
    let depth = u32::from(random.chance(1, 3));
    let inner = inner(random, schema, &outer, depth);
    let column = random.pick(&inner.own).sql();
    let list = match random.below(4) {
        0 => format!("count(*) AS a, max({}) AS b", inner.keys[0].sql()),
        1 => format!("{column} AS a, {} AS b", random.pick(&outer).sql()),
        _ => format!("{column} AS a, {} AS b", random.pick(&inner.own).sql()),
    };
    let tail = match (list.starts_with("count"), random.below(3)) {
        (false, 0) => {
            let most = random.between(1, 2);
            format!(" ORDER BY {} LIMIT {most}", names(&inner.keys))
        }
        _ => String::new(),
    };
    let query = format!("LATERAL (SELECT {list} {}{tail}) l", inner.from);
    let name = &table.name;
    let names = names(&outer);
    match random.below(3) {
        0 => format!("SELECT {names}, l.a, l.b FROM {name} o, {query}"),
        1 => format!("SELECT {names}, l.a, l.b FROM {name} o LEFT JOIN {query} ON true"),
        _ => format!("SELECT {names}, l.a FROM {name} o JOIN {query} ON l.b IS NOT NULL"),
    }
}

fn joined(random: &mut Random, schema: &Schema, table: &Table) -> String {
    let other = random.pick(&schema.tables).clone();
    let outer = sources("o", &table.columns);
    let mut both = outer.clone();
    both.extend(sources("p", &other.columns));
    let on = correlation(random, &sources("p", &other.columns), &outer)
        .unwrap_or_else(|| "true".to_string());
    let kind = random.pick(&["JOIN", "LEFT JOIN", "JOIN", "FULL JOIN"]);
    // Full joins are of equalities only.
    let (kind, on) = match (*kind, on.contains(" = ")) {
        ("FULL JOIN", false) => ("LEFT JOIN", on),
        (kind, _) => (kind, on),
    };
    let one = predicate(random, schema, &both, 0);
    let list = format!("{}, {}", names(&outer), names(&both[outer.len()..]));
    let tables = format!("{} o {kind} {} p", table.name, other.name);
    match random.below(3) {
        0 if kind == "JOIN" => format!("SELECT {list} FROM {tables} ON {on} AND {one}"),
        1 => {
            let more = value(random, schema, &both, 0);
            format!("SELECT {list}, {more} FROM {tables} ON {on}")
        }
        _ => format!("SELECT {list} FROM {tables} ON {on} WHERE {one}"),
    }
}
