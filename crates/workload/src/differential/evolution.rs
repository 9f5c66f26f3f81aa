//! Random schema changes: each three times, for the interleaved twin, the flat one, and PostgreSQL.

use braid_env::random::Random;

use super::schema::{Column, Index, Link, Rule, Schema, Table, Type, column_sql, names};

/// A change: what is said to the interleaved twin, to the flat one and to PostgreSQL, and what the
/// tables are when it has happened.
pub(super) struct Change {
    pub(super) sql: [String; 3],
    pub(super) after: Schema,
}

/// What is the same for all.
fn alike(sql: String) -> Option<[String; 3]> {
    Some([sql.clone(), sql.clone(), sql])
}

/// A change; `n` makes names that nobody has.
pub(super) fn random(random: &mut Random, schema: &Schema, n: u64) -> Change {
    loop {
        let at = random.below(schema.tables.len() as u64) as usize;
        let mut after = schema.clone();
        let table = &mut after.tables[at];
        let sql = match random.below(20) {
            0 | 1 => add_column(random, table, n),
            2 => drop_column(random, table),
            3 => rename_column(random, table, n),
            4 | 5 => create_index(random, table, n),
            6 => create_inner_index(random, &mut after, at, n),
            7 => drop_index(random, table),
            8 | 17 => change_type(random, &mut after, at),
            9 => nullability(random, table),
            10 => default(random, table),
            11 => rule(random, table, n),
            12 => truncate(&after, at),
            13 => action(&mut after, at),
            14 | 15 => link(random, &mut after, at),
            16 => again(&after, at),
            18 => key_again(&mut after, at),
            _ => other_key(&mut after, at),
        };
        if let Some(sql) = sql {
            return Change { sql, after };
        }
    }
}

/// The position of a random column that is in no key.
fn value(random: &mut Random, table: &Table) -> usize {
    random.between(table.key_len as u64, table.columns.len() as u64 - 1) as usize
}

fn add_column(random: &mut Random, table: &mut Table, n: u64) -> Option<[String; 3]> {
    let ty =
        *random.pick(&[Type::Int4, Type::Int8, Type::Text, Type::Bool, Type::Numeric, Type::Date]);
    let default = random.chance(1, 2).then(|| ty.literal(random));
    let not_null = default.is_some() && random.chance(1, 2);
    let column = Column { name: format!("a{n}"), ty, not_null, default };
    let sql = format!("ALTER TABLE {} ADD COLUMN {}", table.name, column_sql(&column));
    table.columns.push(column);
    alike(sql)
}

fn drop_column(random: &mut Random, table: &mut Table) -> Option<[String; 3]> {
    if table.columns.len() - table.key_len < 2 {
        return None;
    }
    let gone = table.columns.remove(value(random, table)).name;
    table.indexes.retain(|i| !i.columns.contains(&gone));
    table.rules.retain_mut(|rule| *rule.column() != gone);
    alike(format!("ALTER TABLE {} DROP COLUMN {gone} CASCADE", table.name))
}

fn rename_column(random: &mut Random, table: &mut Table, n: u64) -> Option<[String; 3]> {
    let at = value(random, table);
    let new = format!("r{n}");
    let old = std::mem::replace(&mut table.columns[at].name, new.clone());
    let indexed = table.indexes.iter_mut().flat_map(|i| &mut i.columns);
    for name in indexed.chain(table.rules.iter_mut().map(Rule::column)).filter(|name| **name == old)
    {
        name.clone_from(&new);
    }
    alike(format!("ALTER TABLE {} RENAME COLUMN {old} TO {new}", table.name))
}

fn create_index(random: &mut Random, table: &mut Table, n: u64) -> Option<[String; 3]> {
    if table.indexes.len() > 5 {
        return None;
    }
    let mut columns: Vec<String> =
        (0..random.between(1, 3)).map(|_| random.pick(&table.columns).name.clone()).collect();
    columns.sort();
    columns.dedup();
    let index = Index { name: format!("i{n}"), columns, unique: random.chance(1, 5) };
    let sql = index.sql(&table.name);
    table.indexes.push(index);
    alike(sql)
}

/// An index that lies in the rows of a table above its own, or of its own.
fn create_inner_index(
    random: &mut Random,
    schema: &mut Schema,
    at: usize,
    n: u64,
) -> Option<[String; 3]> {
    let mut above = at;
    while random.chance(1, 2)
        && schema.tables[above].link != Link::Apart
        && let Some(parent) = schema.tables[above].parent
    {
        above = parent;
    }
    let (name, key) = (schema.tables[above].name.clone(), schema.tables[above].key().to_vec());
    let table = &mut schema.tables[at];
    let mut columns: Vec<String> = key.iter().map(|c| c.name.clone()).collect();
    let more = random.pick(&table.columns).name.clone();
    if !columns.contains(&more) {
        columns.push(more);
    }
    let index = Index { name: format!("i{n}"), columns, unique: false };
    let flat = index.sql(&table.name);
    table.indexes.push(index);
    Some([format!("{flat} INTERLEAVE IN {name}"), flat.clone(), flat])
}

fn drop_index(random: &mut Random, table: &mut Table) -> Option<[String; 3]> {
    let at = (!table.indexes.is_empty()).then(|| random.below(table.indexes.len() as u64))?;
    alike(format!("DROP INDEX {}", table.indexes.remove(at as usize).name))
}

/// What a column of a type may become, and how, where that is not what an assignment does.
fn other_type(random: &mut Random, ty: Type, name: &str) -> (Type, String) {
    let to = match ty {
        Type::Int4 => *random.pick(&[Type::Int8, Type::Int8, Type::Numeric, Type::Text]),
        Type::Int8 => *random.pick(&[Type::Int4, Type::Numeric, Type::Text]),
        Type::Numeric => *random.pick(&[Type::Int4, Type::Int8, Type::Text]),
        Type::Text => *random.pick(&[Type::Int4, Type::Bool]),
        Type::Bool => Type::Text,
        Type::Date => *random.pick(&[Type::Timestamp, Type::Text]),
        Type::Timestamp => *random.pick(&[Type::Date, Type::Text]),
    };
    let using = match (ty, to) {
        (Type::Text, Type::Int4) => format!(" USING length({name})"),
        (Type::Text, _) => format!(" USING {name} > 'a'"),
        (Type::Int4 | Type::Int8, Type::Int8) if random.chance(1, 3) => {
            format!(" USING 2 - {name}")
        }
        _ => String::new(),
    };
    (to, using)
}

/// Another type for a column; if tables below have it in their keys, for theirs.
fn change_type(random: &mut Random, schema: &mut Schema, at: usize) -> Option<[String; 3]> {
    let table = &schema.tables[at];
    let place = random.below(table.columns.len() as u64) as usize;
    if table.parent.is_some_and(|parent| place < schema.tables[parent].key_len) {
        return None;
    }
    let (name, ty) = (table.columns[place].name.clone(), table.columns[place].ty);
    let below = if place < table.key_len { below(schema, at) } else { Vec::new() };
    let (to, mut using) = other_type(random, ty, &name);
    if !below.is_empty() {
        using.clear();
    }
    let alter = |table: &Table| {
        let (name, column) = (&table.name, &table.columns[place].name);
        format!("ALTER TABLE {name} ALTER COLUMN {column} TYPE {}{using}", to.sql())
    };
    // Interleaved tables follow; foreign keys stand in the way of each other's types.
    let mut nested = vec![alter(&schema.tables[at])];
    let (mut flat, mut after) = (Vec::new(), Vec::new());
    for child in &below {
        let table = &schema.tables[*child];
        if table.link == Link::Apart {
            nested.push(alter(table));
        }
        if table.link == Link::Enforced {
            let add = format!("ALTER TABLE {} ADD {}", table.name, schema.foreign_key(*child)?);
            flat.push(format!("ALTER TABLE {0} DROP CONSTRAINT {0}_parent", table.name));
            after.push(add);
        }
    }
    flat.push(alter(&schema.tables[at]));
    flat.extend(below.iter().map(|child| alter(&schema.tables[*child])));
    flat.extend(after);
    for table in std::iter::once(at).chain(below) {
        schema.tables[table].columns[place].ty = to;
    }
    let flat = flat.join("; ");
    Some([nested.join("; "), flat.clone(), flat])
}

/// All tables below one, wherever their rows lie; parents first.
fn below(schema: &Schema, at: usize) -> Vec<usize> {
    let mut out = vec![at];
    for (n, table) in schema.tables.iter().enumerate() {
        if table.parent.is_some_and(|parent| out.contains(&parent)) {
            out.push(n);
        }
    }
    out.split_off(1)
}

/// The primary key goes, and comes again with its own columns turned about.
fn key_again(schema: &mut Schema, at: usize) -> Option<[String; 3]> {
    let table = &schema.tables[at];
    let lies_inside = table.parent.is_some() && table.link != Link::Apart;
    if lies_inside || !below(schema, at).is_empty() {
        return None;
    }
    let inherited = table.parent.map_or(0, |parent| schema.tables[parent].key_len);
    let mut key: Vec<&str> = table.key().iter().map(|c| c.name.as_str()).collect();
    key[inherited..].reverse();
    let name = &table.name;
    let sql = format!(
        "ALTER TABLE {name} ADD PRIMARY KEY ({}), DROP CONSTRAINT {name}_pkey",
        key.join(", ")
    );
    let len = table.key_len;
    schema.tables[at].columns[inherited..len].reverse();
    alike(sql)
}

fn nullability(random: &mut Random, table: &mut Table) -> Option<[String; 3]> {
    let at = value(random, table);
    let column = &mut table.columns[at];
    column.not_null = !column.not_null;
    let verb = if column.not_null { "SET" } else { "DROP" };
    alike(format!("ALTER TABLE {} ALTER COLUMN {} {verb} NOT NULL", table.name, column.name))
}

fn default(random: &mut Random, table: &mut Table) -> Option<[String; 3]> {
    let at = value(random, table);
    let column = &mut table.columns[at];
    column.default = random.chance(2, 3).then(|| column.ty.literal(random));
    let change = match &column.default {
        Some(default) => format!("SET DEFAULT {default}"),
        None => "DROP DEFAULT".into(),
    };
    alike(format!("ALTER TABLE {} ALTER COLUMN {} {change}", table.name, column.name))
}

fn rule(random: &mut Random, table: &mut Table, n: u64) -> Option<[String; 3]> {
    let column = table.columns[value(random, table)].clone();
    let add = format!("ALTER TABLE {} ADD CONSTRAINT c{n}", table.name);
    if random.chance(1, 3) {
        table.rules.push(Rule::Unique(column.name.clone()));
        return alike(format!("{add} UNIQUE ({})", column.name));
    }
    if !column.ty.is_number() {
        return None;
    }
    table.rules.push(Rule::Small(column.name.clone()));
    alike(format!("{add} CHECK ({} < 8)", column.name))
}

fn children(schema: &Schema, at: usize) -> Vec<usize> {
    let tables = schema.tables.iter().enumerate();
    tables.filter(|(_, t)| t.parent == Some(at) && t.link != Link::Apart).map(|(n, _)| n).collect()
}

/// Whether every table below enforces its parent.
fn all_enforced(schema: &Schema, at: usize) -> bool {
    children(schema, at)
        .into_iter()
        .all(|child| schema.tables[child].link == Link::Enforced && all_enforced(schema, child))
}

fn truncate(schema: &Schema, at: usize) -> Option<[String; 3]> {
    let name = &schema.tables[at].name;
    match children(schema, at).is_empty() {
        true => alike(format!("TRUNCATE {name}")),
        false if all_enforced(schema, at) => alike(format!("TRUNCATE {name} CASCADE")),
        false => None,
    }
}

fn action(schema: &mut Schema, at: usize) -> Option<[String; 3]> {
    if schema.tables[at].link != Link::Enforced {
        return None;
    }
    schema.tables[at].cascade = !schema.tables[at].cascade;
    let (name, key) = (&schema.tables[at].name, schema.foreign_key(at)?);
    let nested = format!("ALTER TABLE {name} SET ON DELETE {}", schema.tables[at].on_delete());
    let flat =
        format!("ALTER TABLE {name} DROP CONSTRAINT {name}_parent; ALTER TABLE {name} ADD {key}");
    Some([nested, flat.clone(), flat])
}

/// A table goes into its parent, out of it, or stays there and is enforced or not.
fn link(random: &mut Random, schema: &mut Schema, at: usize) -> Option<[String; 3]> {
    schema.tables[at].parent?;
    let before = schema.tables[at].link;
    let now = *random.pick(&[Link::Enforced, Link::Locality, Link::Apart]);
    if now == before {
        return None;
    }
    schema.tables[at].link = now;
    let name = schema.tables[at].name.clone();
    let nested = match schema.clause(at) {
        Some(clause) => format!("ALTER TABLE {name} SET {clause}"),
        None => format!("ALTER TABLE {name} DROP INTERLEAVE"),
    };
    let flat = match (before, now) {
        (Link::Enforced, _) => format!("ALTER TABLE {name} DROP CONSTRAINT {name}_parent"),
        (_, Link::Enforced) => format!("ALTER TABLE {name} ADD {}", schema.foreign_key(at)?),
        _ => format!(
            "ALTER TABLE {name} ALTER COLUMN {} SET NOT NULL",
            schema.tables[at].columns[0].name
        ),
    };
    Some([nested, flat.clone(), flat])
}

/// Dropped and created again.
fn again(schema: &Schema, at: usize) -> Option<[String; 3]> {
    if !children(schema, at).is_empty() {
        return None;
    }
    let drop = format!("DROP TABLE {}", schema.tables[at].name);
    let all = |interleaved| {
        let parts = schema.table_ddl(at, interleaved);
        format!("{drop}; {}", parts.join("; "))
    };
    Some([all(true), all(false), all(false)])
}

/// The last two own columns of the key change their places.
fn other_key(schema: &mut Schema, at: usize) -> Option<[String; 3]> {
    let inherited = schema.tables[at].parent.map_or(0, |parent| schema.tables[parent].key_len);
    // Those that lie apart now may come back.
    let is_parent = schema.tables.iter().any(|t| t.parent == Some(at));
    if is_parent || schema.tables[at].key_len < inherited + 2 {
        return None;
    }
    let table = &mut schema.tables[at];
    table.columns.swap(table.key_len - 2, table.key_len - 1);
    let (name, key) = (table.name.clone(), names(table.key()));
    let flat = format!("ALTER TABLE {name} ALTER PRIMARY KEY USING COLUMNS ({key})");
    let nested = match schema.clause(at) {
        Some(clause) => format!("{flat} {clause}"),
        None => flat.clone(),
    };
    let there = format!(
        "ALTER TABLE {name} DROP CONSTRAINT {name}_pkey; ALTER TABLE {name} ADD PRIMARY KEY ({key})"
    );
    Some([nested, flat, there])
}
