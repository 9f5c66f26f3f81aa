//! Relations, joins, queries and functions in FROM.
//!
//! ```text
//!   FROM c JOIN o USING (id), unnest(c.tags) t
//!
//!   FROM (c
//!     JOIN o USING (id)),
//!    LATERAL unnest(c.tags) t(t)
//! ```

use braid_catalog::Relation;
use braid_scalar::{Level, deparse_rows, further_in, ident_name, object_name_parts};
use braid_types::{SqlType, quote_ident};
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator, TableFactor,
};

use super::query::{Around, Columns, Inside, Names, Printer, called, named, quoted};

/// A relation that is read.
struct Source<'q> {
    /// What is written of it, without its alias.
    text: String,
    /// Its own name, where it needs no alias to be called so.
    name: Option<String>,
    /// The schema that it can be named with.
    schema: Option<String>,
    alias: Option<&'q ast::TableAlias>,
    columns: Columns,
    /// Whether the names of its columns stand behind the alias in any case.
    lists_columns: bool,
    /// Whether its only column is called as it is.
    scalar: bool,
}

impl<'a> Printer<'a> {
    /// A relation of FROM with what is joined to it, whose columns are added.
    pub(super) fn from(
        &self,
        from: &ast::TableWithJoins,
        around: &Around<'a>,
        level: &mut Level,
    ) -> Option<String> {
        let first = level.shown.len();
        let mut text = self.relation(&from.relation, around, level, true)?;
        for join in &from.joins {
            let middle = level.shown.len();
            let right = self.relation(&join.relation, around, level, false)?;
            let (mut word, constraint) = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => ("JOIN", on),
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => ("LEFT JOIN", on),
                JoinOperator::Right(on) | JoinOperator::RightOuter(on) => ("RIGHT JOIN", on),
                JoinOperator::FullOuter(on) => ("FULL JOIN", on),
                JoinOperator::CrossJoin(on) => ("CROSS JOIN", on),
                _ => return None,
            };
            let sides = (first, middle);
            let on = match constraint {
                JoinConstraint::On(condition) => {
                    let inside = Inside { printer: self, around, level };
                    let shown = inside.read(condition)?.text_in_query(self.for_people);
                    if self.for_people { format!(" ON {shown}") } else { format!(" ON ({shown})") }
                }
                JoinConstraint::Using(names) => {
                    let names = names.iter().map(|name| object_name_parts(name).pop());
                    merged(level, sides, word, &names.collect::<Option<Vec<_>>>()?)?
                }
                JoinConstraint::Natural => {
                    let names = common_names(level, sides);
                    match (names.is_empty(), word) {
                        (false, word) => merged(level, sides, word, &names)?,
                        (true, "JOIN") => {
                            word = "CROSS JOIN";
                            String::new()
                        }
                        (true, _) => " ON TRUE".into(),
                    }
                }
                JoinConstraint::None if word == "CROSS JOIN" => String::new(),
                JoinConstraint::None => return None,
            };
            text = format!("{text}\n     {word} {right}{on}");
            if !self.for_people {
                text = format!("({text})");
            }
        }
        Some(text)
    }

    fn relation(
        &self,
        factor: &TableFactor,
        around: &Around<'a>,
        level: &mut Level,
        is_first: bool,
    ) -> Option<String> {
        let source = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                let text = self.from(table_with_joins, around, level)?;
                // What is joined first needs no parentheses.
                return Some(if self.for_people && !is_first { format!("({text})") } else { text });
            }
            TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None } => {
                let inner = if *lateral { around.within(level) } else { around.clone() };
                let (text, columns) = self.query(subquery, Names::Own { visible: true }, &inner)?;
                let word = if *lateral { "LATERAL " } else { "" };
                let text = format!("{word}({})", further_in(&text, 8));
                let (alias, lists_columns) = (Some(alias), !alias.columns.is_empty());
                let (name, schema, scalar) = (None, None, false);
                Source { text, name, schema, alias, columns, lists_columns, scalar }
            }
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                self.table(name, alias.as_ref(), around)?
            }
            factor => self.function(factor, around, level)?,
        };
        placed(source, called(factor)?, around, level)
    }

    /// A table, a view or a query of WITH.
    fn table<'q>(
        &self,
        name: &ast::ObjectName,
        alias: Option<&'q ast::TableAlias>,
        around: &Around<'a>,
    ) -> Option<Source<'q>> {
        if braid_scalar::is_only(name) {
            return None;
        }
        let parts = object_name_parts(name);
        let (scalar, lists_columns) = (false, false);
        if let [name] = parts.as_slice()
            && let Some((_, columns)) = around.with.iter().rev().find(|(cte, _)| cte == name)
        {
            let (text, columns) = (quote_ident(name).to_string(), columns.clone());
            let (name, schema) = (Some(name.clone()), None);
            return Some(Source { text, name, schema, alias, columns, lists_columns, scalar });
        }
        let found = match parts.as_slice() {
            [name] => self.catalog.resolve(self.database, &around.definition.search_path, name),
            [schema, name] => {
                let schema = self.catalog.schema(self.database, schema)?;
                self.catalog.relation(schema.id, name)
            }
            _ => None,
        }?;
        let (columns, schema): (Columns, u32) = match &found {
            Relation::Table(t) | Relation::Partition(t) => {
                let columns = t.visible_columns().map(|c| (c.name.clone(), c.ty.clone()));
                (columns.collect(), t.schema)
            }
            Relation::View(v) => (v.columns.clone(), v.schema),
            _ => return None,
        };
        let id = match &found {
            Relation::Partition(t) => t.shown_id(),
            other => other.id(),
        };
        let schema = self.catalog.schema_by_id(schema).filter(|_| alias.is_none());
        let (text, name) = ((self.name_of)(id), Some(parts.last()?.clone()));
        let schema = schema.map(|s| s.name.clone());
        Some(Source { text, name, schema, alias, columns, lists_columns, scalar })
    }

    /// A function that gives rows.
    fn function<'q>(
        &self,
        factor: &'q TableFactor,
        around: &Around<'a>,
        level: &Level,
    ) -> Option<Source<'q>> {
        let (name, args, numbered, alias) = match factor {
            TableFactor::Table {
                name,
                args: Some(args),
                alias,
                with_ordinality,
                sample: None,
                ..
            } => (object_name_parts(name), given(&args.args)?, with_ordinality, alias),
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                (object_name_parts(name), given(args)?, with_ordinality, alias)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_ordinality, with_offset: false, ..
            } => (vec!["unnest".into()], array_exprs.iter().collect(), with_ordinality, alias),
            _ => return None,
        };
        let [name] = name.as_slice() else { return None };
        let call = |level: &Level| {
            deparse_rows(name, &args, Inside { printer: self, around, level }.within())
        };
        let (read, given) = call(level)?;
        // What it asks of the relations before it.
        let is_lateral = call(&Level::default()).is_none();
        let word = if is_lateral { "LATERAL " } else { "" };
        let ordinality = if *numbered { " WITH ORDINALITY" } else { "" };
        let text = format!("{word}{}{ordinality}", read.text_in_query(self.for_people));
        let own = alias.as_ref().map_or_else(|| name.clone(), |alias| ident_name(&alias.name));
        let scalar = given.len() == 1 && !numbered;
        let columns = given.into_iter().map(|(name, ty)| (name.unwrap_or_else(|| own.clone()), ty));
        let mut columns: Columns = columns.collect();
        if *numbered {
            columns.push(("ordinality".into(), SqlType::Int8));
        }
        let (alias, name, schema, lists_columns) = (alias.as_ref(), None, None, true);
        Some(Source { text, name, schema, alias, columns, lists_columns, scalar })
    }
}

/// A relation as it is written in FROM; its columns can be named.
fn placed(
    source: Source<'_>,
    called: String,
    around: &Around<'_>,
    level: &mut Level,
) -> Option<String> {
    let shown = around.own.iter().find(|(own, _)| *own == called)?.1.clone();
    let names: &[_] = source.alias.map_or(&[], |alias| alias.columns.as_slice());
    if names.len() > source.columns.len() || names.iter().any(|name| name.data_type.is_some()) {
        return None;
    }
    let names: Vec<String> = names.iter().map(|column| ident_name(&column.name)).collect();
    let own: Vec<String> = source.columns.iter().map(|(name, _)| name.clone()).collect();
    let columns = named(source.columns, &names);
    let all: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let needs_alias = source.alias.is_some() || source.name.as_ref() != Some(&shown);
    let mut text = source.text;
    if needs_alias {
        text.push_str(&format!(" {}", quote_ident(&shown)));
    }
    if source.lists_columns || own != all {
        text.push_str(&format!("({})", quoted(&all)));
    }
    level.shown.extend(std::iter::repeat_n(shown, columns.len()));
    let columns = columns.into_iter().map(|(name, ty)| (name, ty, true));
    let first = level.scope.push_table(&called, source.schema.as_deref(), columns);
    level.scope.columns_mut()[first].scalar = source.scalar;
    Some(text)
}

/// USING: the columns of both sides, one of which is what the name means.
fn merged(
    level: &mut Level,
    (first, middle): (usize, usize),
    word: &str,
    names: &[String],
) -> Option<String> {
    let columns = level.scope.columns();
    let find = |from: usize, to: usize, name: &String| {
        let is_it = |at: &usize| columns[*at].name == *name && !columns[*at].merged;
        let mut found = (from..to).filter(is_it);
        let one = found.next()?;
        found.next().is_none().then_some(one)
    };
    let pair = |name: &String| {
        let (left, right) = (find(first, middle, name)?, find(middle, columns.len(), name)?);
        // A value that is computed of both sides has a name without a relation.
        if columns[left].ty != columns[right].ty {
            return None;
        }
        match word {
            "JOIN" | "LEFT JOIN" => Some((left, right)),
            "RIGHT JOIN" => Some((right, left)),
            _ => None,
        }
    };
    let pairs: Vec<(usize, usize)> = names.iter().map(pair).collect::<Option<_>>()?;
    level.scope.merge(&pairs);
    Some(format!(" USING ({})", quoted(names)))
}

/// The names of columns that both sides of a NATURAL join have.
fn common_names(level: &Level, (first, middle): (usize, usize)) -> Vec<String> {
    let columns = level.scope.columns();
    let names = |from: usize, to: usize| {
        columns[from..to].iter().filter(|column| !column.merged).map(|column| &column.name)
    };
    let right: Vec<&String> = names(middle, columns.len()).collect();
    names(first, middle).filter(|name| right.contains(name)).cloned().collect()
}

/// Arguments that are nothing but expressions.
fn given(args: &[FunctionArg]) -> Option<Vec<&Expr>> {
    let each = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    });
    each.collect()
}

/// What the relations of FROM are called.
pub(super) fn relations(from: &[ast::TableWithJoins]) -> Option<Vec<String>> {
    let mut out = Vec::new();
    for one in from {
        for factor in std::iter::once(&one.relation).chain(one.joins.iter().map(|j| &j.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    out.extend(relations(std::slice::from_ref(&**table_with_joins))?);
                }
                other => out.push(called(other)?),
            }
        }
    }
    Some(out)
}
