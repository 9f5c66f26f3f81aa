//! Random SELECT statements.

use braid_env::random::Random;

use super::expressions::{Source, condition, scalar, sources};
use super::joins;
use super::schema::{Schema, Table, Type};
use super::subqueries;

/// A query, and whether its rows come in one possible order only.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) ordered: bool,
}

fn unordered(sql: String) -> Query {
    Query { sql, ordered: false }
}

/// A random query; one with subqueries if that is asked for.
pub(super) fn random(random: &mut Random, schema: &Schema, with_subqueries: bool) -> Query {
    if with_subqueries {
        return unordered(subqueries::random(random, schema));
    }
    let table = random.pick(&schema.tables).clone();
    let from = sources("", &table.columns);
    match random.below(16) {
        12..=14 => unordered(joins::random(random, schema)),
        15 => {
            let condition = joins::row_value(random, &from);
            unordered(format!("SELECT * FROM {} WHERE {condition}", table.name))
        }
        0 | 1 => point_or_span(random, &table, &from),
        2 => ordered_page(random, &table, &from),
        3 => {
            let list: Vec<String> =
                (0..random.between(1, 3)).map(|_| scalar(random, &from, 1)).collect();
            let condition = condition(random, &from, 2);
            unordered(format!("SELECT {} FROM {} WHERE {condition}", list.join(", "), table.name))
        }
        4 => aggregate(random, &table, &from),
        5 => group_by(random, &table, &from),
        6 | 7 => join(random, schema),
        8 => unordered(subqueries::random(random, schema)),
        9 => set_operation(random, schema),
        10 => window(random, &table, &from),
        _ => with_clause(random, &table, &from),
    }
}

fn key_names(table: &Table, alias: &str) -> Vec<String> {
    sources(alias, table.key()).iter().map(Source::sql).collect()
}

/// A condition on leading key columns: equalities, then perhaps a span.
pub(super) fn key_condition(random: &mut Random, table: &Table) -> String {
    let equal = random.between(0, table.key_len as u64) as usize;
    let mut parts: Vec<String> = table.key()[..equal]
        .iter()
        .map(|c| format!("{} = {}", c.name, c.ty.key_literal(random)))
        .collect();
    if equal < table.key_len {
        let c = &table.key()[equal];
        let literal = c.ty.key_literal(random);
        match random.below(4) {
            0 => parts.push(format!("{} >= {literal}", c.name)),
            1 => parts.push(format!("{} IN ({literal}, {})", c.name, c.ty.key_literal(random))),
            2 => parts.push(format!(
                "{0} > {literal} AND {0} <= {1}",
                c.name,
                c.ty.key_literal(random)
            )),
            _ => {}
        }
    }
    if parts.is_empty() { "true".to_string() } else { parts.join(" AND ") }
}

fn point_or_span(random: &mut Random, table: &Table, _from: &[Source]) -> Query {
    let condition = key_condition(random, table);
    let direction = random.pick(&["", " DESC"]);
    let order: Vec<String> =
        key_names(table, "").into_iter().map(|k| format!("{k}{direction}")).collect();
    Query {
        sql: format!(
            "SELECT * FROM {} WHERE {condition} ORDER BY {}",
            table.name,
            order.join(", ")
        ),
        ordered: true,
    }
}

fn ordered_page(random: &mut Random, table: &Table, from: &[Source]) -> Query {
    let first = random.pick(from).sql();
    let direction = random.pick(&["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"]);
    let condition = condition(random, from, 1);
    Query {
        sql: format!(
            "SELECT * FROM {} WHERE {condition} ORDER BY {first} {direction}, {} LIMIT {} \
             OFFSET {}",
            table.name,
            key_names(table, "").join(", "),
            random.between(1, 6),
            random.below(3)
        ),
        ordered: true,
    }
}

fn aggregate_call(random: &mut Random, from: &[Source]) -> String {
    let source = random.pick(from);
    let name = source.sql();
    match (random.below(6), source.column.ty) {
        (0, _) => "count(*)".to_string(),
        (1, _) => format!("count(DISTINCT {name})"),
        (2, t) if t.is_number() => format!("sum({name})"),
        (3, t) if t.is_number() => format!("avg({name})"),
        (4, t) if t != Type::Bool => format!("min({name})"),
        (5, t) if t != Type::Bool => format!("max({name})"),
        (_, Type::Bool) => format!("bool_and({name})"),
        _ => format!("count({name})"),
    }
}

fn aggregate(random: &mut Random, table: &Table, from: &[Source]) -> Query {
    let calls: Vec<String> =
        (0..random.between(1, 3)).map(|_| aggregate_call(random, from)).collect();
    let condition =
        if random.chance(1, 2) { key_condition(random, table) } else { condition(random, from, 1) };
    unordered(format!("SELECT {} FROM {} WHERE {condition}", calls.join(", "), table.name))
}

fn group_by(random: &mut Random, table: &Table, from: &[Source]) -> Query {
    let group = random.pick(from).sql();
    let call = aggregate_call(random, from);
    let having = match random.below(3) {
        0 => " HAVING count(*) > 1",
        _ => "",
    };
    unordered(format!("SELECT {group}, {call} FROM {} GROUP BY {group}{having}", table.name))
}

fn join(random: &mut Random, schema: &Schema) -> Query {
    let children: Vec<&Table> = schema.tables.iter().filter(|t| t.parent.is_some()).collect();
    let Some(child) = (!children.is_empty()).then(|| (*random.pick(&children)).clone()) else {
        return unordered(format!("SELECT count(*) FROM {}", schema.tables[0].name));
    };
    let parent = &schema.tables[child.parent.expect("children were filtered")];
    let kind = random.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
    let on: Vec<String> = parent.key().iter().map(|c| format!("p.{0} = c.{0}", c.name)).collect();
    let mut from = sources("p", &parent.columns);
    from.extend(sources("c", &child.columns));
    let condition = condition(random, &from, 1);
    let list: Vec<String> = (0..3).map(|_| scalar(random, &from, 1)).collect();
    unordered(format!(
        "SELECT {} FROM {} p {kind} {} c ON {} WHERE {condition}",
        list.join(", "),
        parent.name,
        child.name,
        on.join(" AND ")
    ))
}

fn set_operation(random: &mut Random, schema: &Schema) -> Query {
    let (a, b) = (random.pick(&schema.tables).clone(), random.pick(&schema.tables).clone());
    let left = random.pick(&a.columns).clone();
    let same: Vec<_> = b.columns.iter().filter(|c| c.ty == left.ty).collect();
    let right = if same.is_empty() { None } else { Some((*random.pick(&same)).clone()) };
    let (table, right) = match right {
        Some(right) => (b.name, right),
        None => (a.name.clone(), left.clone()),
    };
    let operation =
        random.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
    unordered(format!(
        "SELECT {} FROM {} {operation} SELECT {} FROM {table}",
        left.name, a.name, right.name
    ))
}

fn window(random: &mut Random, table: &Table, from: &[Source]) -> Query {
    let keys = key_names(table, "").join(", ");
    let (partition, of) = (random.pick(from).sql(), random.pick(from).sql());
    let call = match random.below(9) {
        0 => "row_number()".to_string(),
        1 => "rank()".to_string(),
        2 => format!("lag({of})"),
        3 => format!("lead({of}, {})", random.below(4)),
        4 => format!("first_value({of})"),
        5 => format!("last_value({of})"),
        6 => format!("nth_value({of}, {})", random.between(1, 3)),
        7 => format!("count({of})"),
        _ => "count(*)".to_string(),
    };
    let frame = random.pick(&[
        "",
        " ROWS 2 PRECEDING",
        " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
        " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        " GROUPS UNBOUNDED PRECEDING",
    ]);
    let condition = key_condition(random, table);
    let order = format!("ORDER BY {keys}{frame}");
    let (over, named) = match random.below(3) {
        0 => ("w".to_string(), format!(" WINDOW w AS (PARTITION BY {partition} {order})")),
        1 => (format!("(w {order})"), format!(" WINDOW w AS (PARTITION BY {partition})")),
        _ => (format!("(PARTITION BY {partition} {order})"), String::new()),
    };
    let table = &table.name;
    unordered(format!("SELECT {keys}, {call} OVER {over} FROM {table} WHERE {condition}{named}"))
}

fn with_clause(random: &mut Random, table: &Table, from: &[Source]) -> Query {
    let condition = condition(random, from, 1);
    let column = random.pick(from).sql();
    unordered(format!(
        "WITH w AS (SELECT * FROM {} WHERE {condition}) \
         SELECT w.{column}, count(*) FROM w GROUP BY w.{column}",
        table.name
    ))
}
