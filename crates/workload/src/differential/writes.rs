//! Random INSERT, UPDATE and DELETE statements.

use braid_env::random::Random;

use super::expressions::{condition, sources};
use super::queries::key_condition;
use super::schema::{Column, Schema, Table};

pub(super) fn random(random: &mut Random, schema: &Schema) -> String {
    let table = random.pick(&schema.tables).clone();
    match random.below(10) {
        0..=4 => insert(random, &table),
        5 => upsert(random, &table),
        6 | 7 => update(random, &table),
        _ => delete(random, &table),
    }
}

/// As [`random`], with changes of keys, which children follow.
pub(super) fn of_living(random: &mut Random, schema: &Schema) -> String {
    if !random.chance(1, 8) {
        return self::random(random, schema);
    }
    let table = random.pick(&schema.tables).clone();
    let column = random.pick(table.key()).clone();
    format!(
        "UPDATE {} SET {} = {} WHERE {}",
        table.name,
        column.name,
        column.ty.key_literal(random),
        key_condition(random, &table)
    )
}

fn value(random: &mut Random, column: &Column) -> String {
    if random.chance(1, 8) {
        if column.default.is_some() { "DEFAULT".to_string() } else { "NULL".to_string() }
    } else {
        column.ty.literal(random)
    }
}

fn insert(random: &mut Random, table: &Table) -> String {
    let rows: Vec<String> = (0..random.between(1, 4)).map(|_| row(random, table)).collect();
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let returning = if random.chance(1, 4) { " RETURNING *" } else { "" };
    format!(
        "INSERT INTO {} ({}) VALUES {}{returning}",
        table.name,
        names.join(", "),
        rows.join(", ")
    )
}

fn row(random: &mut Random, table: &Table) -> String {
    let mut values: Vec<String> = table.key().iter().map(|c| c.ty.key_literal(random)).collect();
    values.extend(table.columns[table.key_len..].iter().map(|c| value(random, c)));
    format!("({})", values.join(", "))
}

fn upsert(random: &mut Random, table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let keys: Vec<&str> = table.key().iter().map(|c| c.name.as_str()).collect();
    let action = match table.columns.get(table.key_len) {
        Some(c) if random.chance(2, 3) => {
            format!("DO UPDATE SET {0} = excluded.{0} RETURNING {0}", c.name)
        }
        _ => "DO NOTHING".to_string(),
    };
    format!(
        "INSERT INTO {} ({}) VALUES {} ON CONFLICT ({}) {action}",
        table.name,
        names.join(", "),
        row(random, table),
        keys.join(", ")
    )
}

fn where_clause(random: &mut Random, table: &Table) -> String {
    if random.chance(2, 3) {
        key_condition(random, table)
    } else {
        condition(random, &sources("", &table.columns), 1)
    }
}

fn update(random: &mut Random, table: &Table) -> String {
    let column = random.pick(&table.columns[table.key_len..]).clone();
    let set = if column.ty.is_number() && random.chance(1, 2) {
        format!("{0} = {0} + 1", column.name)
    } else {
        format!("{} = {}", column.name, value(random, &column))
    };
    format!("UPDATE {} SET {set} WHERE {}", table.name, where_clause(random, table))
}

fn delete(random: &mut Random, table: &Table) -> String {
    let returning = if random.chance(1, 6) { " RETURNING *" } else { "" };
    format!("DELETE FROM {} WHERE {}{returning}", table.name, where_clause(random, table))
}
