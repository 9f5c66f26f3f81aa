//! The columns an expression may name.
//!
//! A scope is the ordered list of columns of one row, each with the table alias it came from. The
//! ordinal of a column in the scope is its ordinal in the row given to `Bound::eval`.
//!
//! ```text
//!   FROM orders o JOIN lines        0 o.id  1 o.note  2 lines.id  3 lines.qty
//!   "note" -> 1    "o.id" -> 0    "id" -> ambiguous (42702)    "x.id" -> missing FROM (42P01)
//! ```

use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{AccessExpr, Expr, Ident, ObjectName, ObjectNamePart};

/// Columns of every row of the catalog, which no star gives.
const SYSTEM_COLUMNS: [&str; 2] = ["tableoid", "xmin"];

/// One column of a [`Scope`].
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// Alias (or name) of the table it comes from.
    pub table: Option<String>,
    /// Schema of that table, when it can be named with it.
    pub schema: Option<String>,
    /// Column name, folded.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// Collation.
    pub collation: Collated,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Hidden columns are found only with their table's name, and never by `*`.
    pub hidden: bool,
    /// A join by USING has it on its other side: found only with its table's name, too.
    pub merged: bool,
    /// The only column of a function in FROM: the function's alias means its value.
    pub scalar: bool,
    /// What an outer join puts here where it finds no row.
    pub padding: Padding,
}

impl ScopeColumn {
    /// A column of no table that may be NULL.
    pub fn new(name: impl Into<String>, ty: SqlType) -> ScopeColumn {
        ScopeColumn {
            table: None,
            schema: None,
            name: name.into(),
            ty,
            collation: Collated::Default,
            nullable: true,
            hidden: false,
            merged: false,
            scalar: false,
            padding: Padding::None,
        }
    }
}

/// Whether a column is NULL because an outer join found no row for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// It never is.
    #[default]
    None,
    /// It may be, and it may be NULL by itself.
    Mixed,
    /// It is NULL only because of that: it tells whether there is a row.
    Telling,
}

/// An ordered list of columns that expressions are bound over.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    columns: Vec<ScopeColumn>,
    /// Columns that `*` begins with, in this order: joins by USING have merged them.
    front: Vec<usize>,
}

impl Scope {
    /// No columns: for constants.
    pub fn empty() -> Scope {
        Scope::default()
    }

    /// One table under `alias`, optionally also named `schema.alias`.
    pub fn table(
        alias: &str,
        schema: Option<&str>,
        columns: impl IntoIterator<Item = (String, SqlType, bool)>,
    ) -> Scope {
        let mut scope = Scope::default();
        scope.push_table(alias, schema, columns);
        scope
    }

    /// Appends a table's columns; returns the ordinal of the first.
    pub fn push_table(
        &mut self,
        alias: &str,
        schema: Option<&str>,
        columns: impl IntoIterator<Item = (String, SqlType, bool)>,
    ) -> usize {
        let first = self.columns.len();
        self.columns.extend(columns.into_iter().map(|(name, ty, nullable)| ScopeColumn {
            table: Some(alias.to_string()),
            schema: schema.map(str::to_string),
            nullable,
            ..ScopeColumn::new(name, ty)
        }));
        first
    }

    /// Appends one column; returns its ordinal.
    pub fn push(&mut self, column: ScopeColumn) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// A join by USING makes one column of each of these pairs, the first of the pair. `*` begins
    /// with them.
    pub fn merge(&mut self, pairs: &[(usize, usize)]) {
        let mut front: Vec<usize> = pairs.iter().map(|(kept, _)| *kept).collect();
        for (_, other) in pairs {
            self.columns[*other].merged = true;
        }
        let before = std::mem::take(&mut self.front);
        front.extend(before.into_iter().filter(|at| !pairs.iter().any(|(kept, _)| kept == at)));
        self.front = front;
    }

    /// Appends columns that nobody can name until there are so many: of something else, only their
    /// place counts.
    pub fn pad(&mut self, width: usize) {
        while self.columns.len() < width {
            self.columns.push(ScopeColumn {
                hidden: true,
                ..ScopeColumn::new(String::new(), SqlType::Unknown)
            });
        }
    }

    /// The columns in order.
    pub fn columns(&self) -> &[ScopeColumn] {
        &self.columns
    }

    /// The columns in order, for changing flags.
    pub fn columns_mut(&mut self) -> &mut [ScopeColumn] {
        &mut self.columns
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether a table is visible under this alias.
    pub fn has_table(&self, alias: &str) -> bool {
        self.columns.iter().any(|c| c.table.as_deref() == Some(alias))
    }

    /// Looks up `column`, `table.column` or `schema.table.column` (folded names); `None` if there
    /// is no such column.
    ///
    /// # Errors
    /// 42702 when several columns match.
    pub fn find(&self, parts: &[String]) -> SqlResult<Option<usize>> {
        let (qualifier, name) = match parts {
            [name] => (None, name),
            [table, name] => (Some((None, table)), name),
            [schema, table, name] => (Some((Some(schema), table)), name),
            [_, schema, table, name] => (Some((Some(schema), table)), name),
            _ => return Ok(None),
        };
        let mut found = None;
        for (at, column) in self.columns.iter().enumerate() {
            if column.name != *name {
                continue;
            }
            match qualifier {
                // What is known of every row of the catalog is never among its columns.
                None if column.hidden && !SYSTEM_COLUMNS.contains(&name.as_str()) => continue,
                None if column.merged => continue,
                Some((schema, table))
                    if column.table.as_deref() != Some(table.as_str())
                        || schema.is_some_and(|s| column.schema.as_ref() != Some(s)) =>
                {
                    continue;
                }
                _ => {}
            }
            if found.is_some() {
                return Err(SqlError::new(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("column reference \"{name}\" is ambiguous"),
                ));
            }
            found = Some(at);
        }
        Ok(found)
    }

    /// Like [`Scope::find`], with PostgreSQL's errors when nothing is found.
    ///
    /// # Errors
    /// 42703 unknown column, 42P01 unknown table, 42702 ambiguous.
    pub fn resolve(&self, parts: &[String]) -> SqlResult<usize> {
        match self.find(parts)? {
            Some(at) => Ok(at),
            None => Err(self.not_found(parts)),
        }
    }

    /// The error for a name that is not here.
    pub fn not_found(&self, parts: &[String]) -> SqlError {
        const SYSTEM: [&str; 5] = ["xmin", "xmax", "cmin", "cmax", "ctid"];
        let of_row = match parts {
            [name] => SYSTEM.contains(&name.as_str()) && !self.columns.is_empty(),
            [.., table, name] => SYSTEM.contains(&name.as_str()) && self.has_table(table),
            [] => false,
        };
        match (of_row, parts.last()) {
            (true, Some(name)) => SqlError::unsupported(format!("the system column \"{name}\""))
                .with_hint(
                    "Who asks whether a row has changed has a column of its own for it; a row is \
                     found by its primary key.",
                ),
            _ => self.no_such_column(parts),
        }
    }

    fn no_such_column(&self, parts: &[String]) -> SqlError {
        match parts {
            [.., table, name] => {
                if self.has_table(table) {
                    SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column {table}.{name} does not exist"),
                    )
                } else {
                    missing_table(table)
                }
            }
            _ => SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{}\" does not exist", parts.join(".")),
            ),
        }
    }

    /// Ordinals that `*` or `table.*` stand for.
    ///
    /// # Errors
    /// 42P01 when no such table is in the scope.
    pub fn expand_star(&self, table: Option<&str>) -> SqlResult<Vec<usize>> {
        if let Some(table) = table
            && !self.has_table(table)
        {
            return Err(missing_table(table));
        }
        let columns = self.columns.iter().enumerate();
        Ok(match table {
            Some(table) => {
                let own = |c: &ScopeColumn| c.table.as_deref() == Some(table);
                columns.filter(|(_, c)| own(c)).map(|(at, _)| at).collect()
            }
            None => {
                let rest = columns
                    .filter(|(at, c)| !c.hidden && !c.merged && !self.front.contains(at))
                    .map(|(at, _)| at);
                self.front.iter().copied().chain(rest).collect()
            }
        })
    }
}

/// 42P01 for a table that a query speaks of and does not read.
pub fn missing_table(table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("missing FROM-clause entry for table \"{table}\""),
    )
}

/// An identifier as the catalog knows it: unquoted names fold to lower case.
pub fn ident_name(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// What the parser puts before the name of `FROM ONLY t`.
const ONLY: &str = "\0only";

fn is_mark(part: &ObjectNamePart) -> bool {
    matches!(part, ObjectNamePart::Identifier(ident) if ident.value == ONLY)
}

/// Whether a table is read or written without what is below it: `FROM ONLY t`.
pub fn is_only(name: &ObjectName) -> bool {
    name.0.first().is_some_and(is_mark)
}

/// The folded parts of a possibly qualified name.
pub fn object_name_parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .filter(|part| !is_mark(part))
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => ident_name(ident),
            ObjectNamePart::Function(f) => ident_name(&f.name),
        })
        .collect()
}

/// Whether an access is the star of `(row).*`, which the parser hands on as `(row)."*"` because
/// sqlparser knows stars behind names only.
pub(crate) fn is_star(access: &AccessExpr) -> bool {
    matches!(access, AccessExpr::Dot(Expr::Identifier(ident))
        if ident.value == "*" && ident.quote_style == Some('"'))
}

/// The row whose fields `(row).*` stands for; `None` for another expression.
pub fn all_fields(e: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = e else { return None };
    let (last, before) = access_chain.split_last()?;
    if !is_star(last) {
        return None;
    }
    Some(match before {
        [] => (**root).clone(),
        _ => Expr::CompoundFieldAccess { root: root.clone(), access_chain: before.to_vec() },
    })
}
