//! The query of a view as PostgreSQL's `pg_get_viewdef` prints it, where it is one SELECT over
//! relations.
//!
//! ```text
//!   SELECT id, count(*) n FROM c JOIN o ON o.cid = c.id GROUP BY 1
//!
//!    SELECT c.id,
//!       count(*) AS n
//!      FROM (c
//!        JOIN o ON ((o.cid = c.id)))
//!     GROUP BY c.id;
//! ```
//! Every column is shown with its relation, every key of GROUP BY and ORDER BY as the expression
//! that it is.

use braid_catalog::{Catalog, Definition, Relation};
use braid_parser::parse_query;
use braid_scalar::{Deparsed, Scope, deparse_query, ident_name, object_name_parts};
use braid_types::quote_ident;
use sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, OrderByExpr,
    OrderByKind, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value,
};

/// How the text of a view is to be made.
pub struct Printer<'a> {
    /// All descriptors.
    pub catalog: &'a Catalog,
    /// The view's database.
    pub database: u32,
    /// What a relation is called, by its id.
    pub name_of: &'a dyn Fn(u32) -> String,
    /// With no more parentheses than people need.
    pub for_people: bool,
}

impl Printer<'_> {
    /// The text; `None` for queries that are not known here.
    pub fn text(&self, definition: &Definition, names: &[&str]) -> Option<String> {
        let query = parse_query(&definition.query).ok()?;
        let SetExpr::Select(select) = &*query.body else { return None };
        let is_plain = query.with.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && select.into.is_none()
            && select.named_window.is_empty()
            && select.qualify.is_none()
            && !matches!(select.distinct, Some(ast::Distinct::On(_)));
        if !is_plain {
            return None;
        }
        let mut scope = Scope::default();
        let from = select.from.iter().map(|from| self.from(from, definition, &mut scope));
        let from: Vec<String> = from.collect::<Option<_>>()?;
        let items = items(&select.projection, &scope)?;
        let reader = Reader { printer: self, scope: &scope, items: &items };
        let mut out = String::from(" SELECT");
        if select.distinct.is_some() {
            out.push_str(" DISTINCT");
        }
        append(&mut out, " ", &reader.list(names)?);
        if !from.is_empty() {
            out.push_str(&format!("\n   FROM {}", from.join(",\n    ")));
        }
        if let Some(condition) = &select.selection {
            append(&mut out, "\n  WHERE ", &reader.expression(condition)?);
        }
        let GroupByExpr::Expressions(keys, more) = &select.group_by else { return None };
        if !more.is_empty() {
            return None;
        }
        if !keys.is_empty() {
            let keys = keys.iter().map(|key| reader.key(reader.grouped(key)?));
            let mut keys: Vec<String> = keys.collect::<Option<_>>()?;
            let mut seen = Vec::new();
            keys.retain(|key| {
                let is_new = !seen.contains(key);
                seen.push(key.clone());
                is_new
            });
            append(&mut out, "\n  GROUP BY ", &keys.join(", "));
        }
        if let Some(condition) = &select.having {
            append(&mut out, "\n HAVING ", &reader.expression(condition)?);
        }
        if let Some(order) = &query.order_by {
            let OrderByKind::Expressions(keys) = &order.kind else { return None };
            let keys = keys.iter().map(|key| reader.sorted(key, names));
            let mut keys: Vec<(String, String)> = keys.collect::<Option<_>>()?;
            // A key that was there before decides nothing.
            let mut seen = Vec::new();
            keys.retain(|(key, _)| {
                let is_new = !seen.contains(key);
                seen.push(key.clone());
                is_new
            });
            let keys: Vec<String> = keys.into_iter().map(|(key, way)| key + &way).collect();
            append(&mut out, "\n  ORDER BY ", &keys.join(", "));
        }
        if let Some(limits) = &query.limit_clause {
            out.push_str(&limited(limits)?);
        }
        Some(out + ";")
    }

    /// A relation of FROM with what is joined to it, whose columns are added.
    fn from(
        &self,
        from: &ast::TableWithJoins,
        definition: &Definition,
        scope: &mut Scope,
    ) -> Option<String> {
        let mut text = self.relation(&from.relation, definition, scope, true)?;
        for join in &from.joins {
            let right = self.relation(&join.relation, definition, scope, false)?;
            let (word, constraint) = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => ("JOIN", on),
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => ("LEFT JOIN", on),
                JoinOperator::Right(on) | JoinOperator::RightOuter(on) => ("RIGHT JOIN", on),
                JoinOperator::FullOuter(on) => ("FULL JOIN", on),
                JoinOperator::CrossJoin(on) => ("CROSS JOIN", on),
                _ => return None,
            };
            let on = match constraint {
                JoinConstraint::On(condition) => {
                    let shown = deparse_query(condition, scope)?.text_in_query(self.for_people);
                    if self.for_people { format!(" ON {shown}") } else { format!(" ON ({shown})") }
                }
                JoinConstraint::None if word == "CROSS JOIN" => String::new(),
                _ => return None,
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
        definition: &Definition,
        scope: &mut Scope,
        is_first: bool,
    ) -> Option<String> {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
            let text = self.from(table_with_joins, definition, scope)?;
            // What is joined first needs no parentheses.
            return Some(if self.for_people && !is_first { format!("({text})") } else { text });
        }
        let TableFactor::Table { name, alias, args: None, sample: None, .. } = factor else {
            return None;
        };
        if braid_scalar::is_only(name) || alias.as_ref().is_some_and(|a| !a.columns.is_empty()) {
            return None;
        }
        let parts = object_name_parts(name);
        let found = match parts.as_slice() {
            [name] => self.catalog.resolve(self.database, &definition.search_path, name),
            [schema, name] => {
                let schema = self.catalog.schema(self.database, schema)?;
                self.catalog.relation(schema.id, name)
            }
            _ => None,
        }?;
        let called = match alias {
            Some(alias) => ident_name(&alias.name),
            None => parts.last()?.clone(),
        };
        let columns: Vec<_> = match &found {
            Relation::Table(t) | Relation::Partition(t) => {
                t.visible_columns().map(|c| (c.name.clone(), c.ty.clone(), true)).collect()
            }
            Relation::View(v) => {
                v.columns.iter().map(|(name, ty)| (name.clone(), ty.clone(), true)).collect()
            }
            _ => return None,
        };
        let id = match &found {
            Relation::Partition(t) => t.shown_id(),
            other => other.id(),
        };
        let schema = match &found {
            Relation::View(v) => v.schema,
            Relation::Table(t) | Relation::Partition(t) => t.schema,
            _ => return None,
        };
        let schema = self.catalog.schema_by_id(schema).filter(|_| alias.is_none());
        scope.push_table(&called, schema.map(|s| s.name.as_str()), columns);
        let name = (self.name_of)(id);
        Some(match alias {
            Some(alias) => format!("{name} {}", quote_ident(&ident_name(&alias.name))),
            None => name,
        })
    }
}

/// An item of the select list, and the name that it has by itself.
struct Item {
    expr: Expr,
    name: String,
}

/// The select list with its stars written out.
fn items(list: &[SelectItem], scope: &Scope) -> Option<Vec<Item>> {
    let mut out = Vec::new();
    let mut add = |expr: &Expr, name: Option<String>| {
        let column = match expr {
            Expr::Identifier(name) => Some(ident_name(name)),
            Expr::CompoundIdentifier(names) => names.last().map(ident_name),
            _ => None,
        };
        let own = name.or(column).unwrap_or_else(|| braid_scalar::output_name(expr));
        out.push(Item { expr: expr.clone(), name: own });
    };
    for item in list {
        let of = match item {
            SelectItem::UnnamedExpr(expr) => {
                add(expr, None);
                continue;
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                add(expr, Some(ident_name(alias)));
                continue;
            }
            SelectItem::Wildcard(_) => None,
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                object_name_parts(name).pop()
            }
            _ => return None,
        };
        for column in scope.columns() {
            let table = column.table.clone()?;
            if of.as_ref().is_none_or(|of| *of == table) {
                let parts = [table.as_str(), column.name.as_str()];
                let parts = parts.map(|name| Ident::with_quote('"', name));
                add(&Expr::CompoundIdentifier(parts.to_vec()), None);
            }
        }
    }
    Some(out)
}

/// What reads the expressions of the query.
struct Reader<'a> {
    printer: &'a Printer<'a>,
    scope: &'a Scope,
    items: &'a [Item],
}

impl Reader<'_> {
    fn read(&self, expr: &Expr) -> Option<Deparsed> {
        deparse_query(expr, self.scope)
    }

    fn expression(&self, expr: &Expr) -> Option<String> {
        Some(self.read(expr)?.text_in_query(self.printer.for_people))
    }

    fn list(&self, names: &[&str]) -> Option<String> {
        if self.items.len() != names.len() {
            return None;
        }
        let items = self.items.iter().zip(names).map(|(item, name)| {
            let shown = self.expression(&item.expr)?;
            let own = match &item.expr {
                Expr::Identifier(own) => Some(ident_name(own)),
                Expr::CompoundIdentifier(parts) => parts.last().map(ident_name),
                _ => None,
            };
            Some(match own.is_some_and(|own| own == *name) {
                true => shown,
                false => format!("{shown} AS {}", quote_ident(name)),
            })
        });
        let mut out = String::new();
        for (at, item) in items.collect::<Option<Vec<String>>>()?.iter().enumerate() {
            append(&mut out, if at == 0 { "" } else { ",\n    " }, item);
        }
        Some(out)
    }

    /// The item that a number means.
    fn numbered(&self, expr: &Expr) -> Option<&Item> {
        let Expr::Value(value) = expr else { return None };
        let Value::Number(digits, _) = &value.value else { return None };
        self.items.get(digits.to_string().parse::<usize>().ok()?.checked_sub(1)?)
    }

    /// The expression that a key of GROUP BY means: a column goes before a name of the list.
    fn grouped<'e>(&'e self, key: &'e Expr) -> Option<&'e Expr> {
        if let Some(item) = self.numbered(key) {
            return Some(&item.expr);
        }
        if let (Expr::Identifier(name), None) = (key, self.read(key)) {
            return self.named(&ident_name(name)).map(|item| &item.expr);
        }
        Some(key)
    }

    fn named(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }

    /// A key as it stands in a list of keys.
    fn key(&self, expr: &Expr) -> Option<String> {
        let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        let read = self.read(expr)?;
        let shown = read.text_in_query(self.printer.for_people);
        // What is no function to PostgreSQL stands without parentheses.
        let is_own = ["COALESCE(", "GREATEST(", "LEAST(", "NULLIF("];
        let is_function = read.is_call() && !is_own.iter().any(|word| shown.starts_with(word));
        let encloses = self.printer.for_people || is_function || read.calls_to_convert();
        Some(if encloses && !is_column { format!("({shown})") } else { shown })
    }

    /// A key of ORDER BY, and its direction.
    fn sorted(&self, key: &OrderByExpr, names: &[&str]) -> Option<(String, String)> {
        if key.with_fill.is_some() {
            return None;
        }
        let named = match &key.expr {
            Expr::Identifier(name) => {
                let name = ident_name(name);
                let shown = names.iter().position(|shown| *shown == name);
                self.named(&name).or_else(|| self.items.get(shown?))
            }
            other => self.numbered(other),
        };
        let shown = self.key(named.map_or(&key.expr, |item| &item.expr))?;
        let mut out = String::new();
        let falls = key.options.asc == Some(false);
        if falls {
            out.push_str(" DESC");
        }
        match key.options.nulls_first {
            Some(first) if first != falls => {
                out.push_str(if first { " NULLS FIRST" } else { " NULLS LAST" });
            }
            _ => {}
        }
        Some((shown, out))
    }
}

/// Adds a part behind what separates it: one that begins with a line of its own needs no blanks.
fn append(out: &mut String, separator: &str, part: &str) {
    out.push_str(if part.starts_with('\n') { separator.trim_end() } else { separator });
    out.push_str(part);
}

/// OFFSET and LIMIT by numbers.
fn limited(limits: &LimitClause) -> Option<String> {
    let LimitClause::LimitOffset { limit, offset, limit_by } = limits else { return None };
    if !limit_by.is_empty() {
        return None;
    }
    let number = |expr: &Expr| match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.to_string()),
            _ => None,
        },
        _ => None,
    };
    let mut out = String::new();
    if let Some(offset) = offset {
        out.push_str(&format!("\n OFFSET {}", number(&offset.value)?));
    }
    if let Some(limit) = limit {
        out.push_str(&format!("\n LIMIT {}", number(limit)?));
    }
    Some(out)
}
