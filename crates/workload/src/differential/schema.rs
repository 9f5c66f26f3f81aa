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

/// How a table hangs on its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Each row needs its parent row: interleaved, or by a foreign key.
    Enforced,
    /// Interleaved, or not at all.
    Locality,
    /// Not at all.
    Apart,
}

/// What restricts the values of a column.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// Below 8.
    Small(String),
    Unique(String),
}

impl Rule {
    pub(super) fn column(&mut self) -> &mut String {
        match self {
            Rule::Small(column) | Rule::Unique(column) => column,
        }
    }

    fn sql(&self) -> String {
        match self {
            Rule::Small(column) => format!("CHECK ({column} < 8)"),
            Rule::Unique(column) => format!("UNIQUE ({column})"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) unique: bool,
}

impl Index {
    pub(super) fn sql(&self, table: &str) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {} ON {table} ({})", self.name, self.columns.join(", "))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) link: Link,
    pub(super) cascade: bool,
    /// Key columns first: the parent's, then own ones.
    pub(super) columns: Vec<Column>,
    pub(super) key_len: usize,
    pub(super) rules: Vec<Rule>,
    pub(super) indexes: Vec<Index>,
}

impl Table {
    pub(super) fn key(&self) -> &[Column] {
        &self.columns[..self.key_len]
    }

    pub(super) fn on_delete(&self) -> &'static str {
        if self.cascade { "CASCADE" } else { "NO ACTION" }
    }
}

#[derive(Clone, Debug)]
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
                table.rules.clear();
            }
            tables.push(table);
        }
        Schema { tables }
    }

    /// Statements that create the tables; `interleaved` chooses the twin.
    pub(super) fn ddl(&self, interleaved: bool) -> Vec<String> {
        (0..self.tables.len()).flat_map(|at| self.table_ddl(at, interleaved)).collect()
    }

    /// As [`Schema::ddl`], of one table.
    pub(super) fn table_ddl(&self, at: usize, interleaved: bool) -> Vec<String> {
        let table = &self.tables[at];
        let mut parts: Vec<String> = table.columns.iter().map(column_sql).collect();
        parts.push(format!("PRIMARY KEY ({})", names(table.key())));
        parts.extend(table.rules.iter().map(Rule::sql));
        let mut clause = String::new();
        if interleaved {
            clause = self.clause(at).map(|clause| format!(" {clause}")).unwrap_or_default();
        } else if table.link == Link::Enforced {
            parts.extend(self.foreign_key(at));
        }
        let create = format!("CREATE TABLE {} ({}){clause}", table.name, parts.join(", "));
        std::iter::once(create).chain(table.indexes.iter().map(|i| i.sql(&table.name))).collect()
    }

    /// How a table lies in its parent.
    pub(super) fn clause(&self, at: usize) -> Option<String> {
        let table = &self.tables[at];
        let parent = &self.tables[table.parent?].name;
        match table.link {
            Link::Enforced => {
                Some(format!("INTERLEAVE IN PARENT {parent} ON DELETE {}", table.on_delete()))
            }
            Link::Locality => Some(format!("INTERLEAVE IN {parent}")),
            Link::Apart => None,
        }
    }

    /// The constraint that says the same as an enforcing clause.
    pub(super) fn foreign_key(&self, at: usize) -> Option<String> {
        let table = &self.tables[at];
        let parent = &self.tables[table.parent?];
        let shared = names(&table.columns[..parent.key_len]);
        Some(format!(
            "CONSTRAINT {}_parent FOREIGN KEY ({shared}) REFERENCES {} ({}) \
             ON UPDATE CASCADE ON DELETE {}",
            table.name,
            parent.name,
            names(parent.key()),
            table.on_delete()
        ))
    }
}

pub(super) fn names(columns: &[Column]) -> String {
    columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(", ")
}

pub(super) fn column_sql(column: &Column) -> String {
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
    let mut rules = Vec::new();
    if let Some(number) = values.iter().find(|c| c.ty == Type::Int4)
        && random.chance(1, 3)
    {
        rules.push(Rule::Small(number.name.clone()));
    }
    if random.chance(1, 4) {
        rules.push(Rule::Unique(random.pick(values).name.clone()));
    }
    let mut indexes = Vec::new();
    for n in 0..random.below(3) {
        let mut of: Vec<String> =
            (0..random.between(1, 2)).map(|_| random.pick(&columns).name.clone()).collect();
        of.dedup();
        indexes.push(Index { name: format!("t{i}_i{n}"), columns: of, unique: false });
    }
    Table {
        name: format!("t{i}"),
        parent,
        link: if parent.is_some() { Link::Enforced } else { Link::Apart },
        cascade: random.chance(2, 3),
        key_len,
        rules,
        indexes,
        columns,
    }
}
