//! Random hierarchies of tables.

use braid_env::random::Random;

/// Types that columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int4,
    Int8,
    Text,
    Bool,
    Numeric,
    Date,
    Timestamp,
}

impl Type {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Type::Int4 => "int",
            Type::Int8 => "bigint",
            Type::Text => "text",
            Type::Bool => "boolean",
            Type::Numeric => "numeric(8,2)",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
        }
    }

    /// A literal from a domain small enough that rows meet each other.
    pub(super) fn literal(self, random: &mut Random) -> String {
        match self {
            Type::Int4 => (random.below(12) as i64 - 3).to_string(),
            Type::Int8 => (random.below(9) as i64 * 1_000_000_007).to_string(),
            Type::Text => {
                let words = ["a", "ab", "b", "B", "", "zz top", "it''s", "é", "100%", "a_b"];
                format!("'{}'", random.pick(&words))
            }
            Type::Bool => random.pick(&["true", "false"]).to_string(),
            Type::Numeric => format!("{}.{:02}", random.below(20) as i64 - 5, random.below(100)),
            Type::Date => format!("date '2026-0{}-1{}'", random.between(1, 9), random.below(10)),
            Type::Timestamp => {
                format!("timestamp '2026-0{}-11 0{}:30:00'", random.between(1, 4), random.below(10))
            }
        }
    }

    /// As [`Type::literal`], from an even smaller domain: children should find their parents.
    pub(super) fn key_literal(self, random: &mut Random) -> String {
        match self {
            Type::Int4 => (random.below(4) as i64 - 1).to_string(),
            Type::Int8 => (random.below(3) as i64 * 1_000_000_007).to_string(),
            Type::Text => format!("'{}'", random.pick(&["a", "ab", "", "é"])),
            Type::Date => format!("date '2026-02-1{}'", random.below(3)),
            other => other.literal(random),
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Type::Int4 | Type::Int8 | Type::Numeric)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) cascade: bool,
    /// Key columns first: the parent's, then own ones.
    pub(super) columns: Vec<Column>,
    pub(super) key_len: usize,
    extras: Vec<String>,
    indexes: Vec<String>,
}

impl Table {
    pub(super) fn key(&self) -> &[Column] {
        &self.columns[..self.key_len]
    }
}

pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
}

const KEY_TYPES: [Type; 5] = [Type::Int4, Type::Int8, Type::Text, Type::Date, Type::Int4];
const VALUE_TYPES: [Type; 8] = [
    Type::Int4,
    Type::Int8,
    Type::Text,
    Type::Bool,
    Type::Numeric,
    Type::Date,
    Type::Timestamp,
    Type::Int4,
];

impl Schema {
    /// `free`: nothing but keys restricts what rows may be.
    pub(super) fn random(random: &mut Random, free: bool) -> Schema {
        let count = random.between(2, 5) as usize;
        let mut tables: Vec<Table> = Vec::new();
        for i in 0..count {
            let parent = (i > 0 && random.chance(5, 6)).then(|| random.below(i as u64) as usize);
            let mut table = random_table(random, i, parent, &tables);
            if free {
                table.extras.clear();
            }
            tables.push(table);
        }
        Schema { tables }
    }

    /// Statements that create the tables; `interleaved` chooses the twin.
    pub(super) fn ddl(&self, interleaved: bool) -> Vec<String> {
        let mut out = Vec::new();
        for table in &self.tables {
            let mut parts: Vec<String> = table.columns.iter().map(column_sql).collect();
            let names =
                |key: &[Column]| key.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(", ");
            let mut clause = String::new();
            parts.push(format!("PRIMARY KEY ({})", names(table.key())));
            parts.extend(table.extras.iter().cloned());
            if let Some(parent) = table.parent {
                let parent = &self.tables[parent];
                let action = if table.cascade { "CASCADE" } else { "NO ACTION" };
                if interleaved {
                    clause = format!(" INTERLEAVE IN PARENT {} ON DELETE {action}", parent.name);
                } else {
                    let shared = names(&table.columns[..parent.key_len]);
                    parts.push(format!(
                        "FOREIGN KEY ({shared}) REFERENCES {} ({}) ON DELETE {action}",
                        parent.name,
                        names(parent.key())
                    ));
                }
            }
            out.push(format!("CREATE TABLE {} ({}){clause}", table.name, parts.join(", ")));
            out.extend(table.indexes.iter().cloned());
        }
        out
    }
}

fn column_sql(column: &Column) -> String {
    let mut out = format!("{} {}", column.name, column.ty.sql());
    if column.not_null {
        out.push_str(" NOT NULL");
    }
    if let Some(default) = &column.default {
        out.push_str(&format!(" DEFAULT {default}"));
    }
    out
}

fn random_table(random: &mut Random, i: usize, parent: Option<usize>, tables: &[Table]) -> Table {
    let mut columns: Vec<Column> = match parent {
        Some(p) => tables[p].key().to_vec(),
        None => Vec::new(),
    };
    // One in eight children has its parent's key and nothing more: at most one child row.
    let own = if parent.is_some() && random.chance(1, 8) { 0 } else { random.between(1, 2) };
    for k in 0..own {
        columns.push(Column {
            name: format!("k{i}{k}"),
            ty: *random.pick(&KEY_TYPES),
            not_null: true,
            default: None,
        });
    }
    let key_len = columns.len();
    for v in 0..random.between(1, 4) {
        let ty = *random.pick(&VALUE_TYPES);
        let default = random.chance(1, 4).then(|| ty.literal(random));
        columns.push(Column {
            name: format!("v{i}{v}"),
            ty,
            not_null: random.chance(1, 5),
            default,
        });
    }
    let values = &columns[key_len..];
    let mut extras = Vec::new();
    if let Some(number) = values.iter().find(|c| c.ty == Type::Int4)
        && random.chance(1, 3)
    {
        extras.push(format!("CHECK ({} < 8)", number.name));
    }
    if random.chance(1, 4) {
        extras.push(format!("UNIQUE ({})", random.pick(values).name));
    }
    let mut indexes = Vec::new();
    for n in 0..random.below(3) {
        let columns: Vec<&str> =
            (0..random.between(1, 2)).map(|_| random.pick(&columns).name.as_str()).collect();
        let mut columns = columns;
        columns.dedup();
        indexes.push(format!("CREATE INDEX t{i}_i{n} ON t{i} ({})", columns.join(", ")));
    }
    Table {
        name: format!("t{i}"),
        parent,
        cascade: random.chance(2, 3),
        key_len,
        extras,
        indexes,
        columns,
    }
}
