//! The query of a view as PostgreSQL's `pg_get_viewdef` prints it, where it is made of SELECTs over
//! relations, of UNION and its like, of WITH and of queries in FROM.
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
use braid_types::{SqlType, quote_ident};
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

/// What is around a query.
struct Around<'a> {
    definition: &'a Definition,
    /// The queries of WITH that it can name, with their columns.
    with: Vec<(String, Columns)>,
    /// What relations of the queries around it are called: PostgreSQL gives others of these names
    /// new ones, which is not done here.
    taken: Vec<String>,
}

/// The columns of a query.
type Columns = Vec<(String, SqlType)>;

impl Printer<'_> {
    /// The text; `None` for queries that are not known here.
    pub fn text(&self, definition: &Definition, names: &[&str]) -> Option<String> {
        let query = parse_query(&definition.query).ok()?;
        let around = Around { definition, with: Vec::new(), taken: Vec::new() };
        Some(self.query(&query, Some(names), &around)?.0 + ";")
    }

    /// A query whose columns are called so, and its columns.
    fn query(
        &self,
        query: &ast::Query,
        names: Option<&[&str]>,
        around: &Around<'_>,
    ) -> Option<(String, Columns)> {
        if query.fetch.is_some() || !query.locks.is_empty() {
            return None;
        }
        let (with, ctes) = match &query.with {
            Some(with) => self.with(with, &query.body, around)?,
            None => (String::new(), around.with.clone()),
        };
        let (definition, taken) = (around.definition, around.taken.clone());
        let around = Around { definition, with: ctes, taken };
        let (mut out, columns) = match &*query.body {
            SetExpr::Select(select) => {
                self.select(select, query.order_by.as_ref(), names, &around)?
            }
            body => {
                let (mut out, columns) = self.set(body, names, &around)?;
                if let Some(order) = &query.order_by {
                    append(&mut out, "\n  ORDER BY ", &sorted_by_number(order, &columns)?);
                }
                (out, columns)
            }
        };
        if let Some(limits) = &query.limit_clause {
            out.push_str(&limited(limits)?);
        }
        Some((with + &out, columns))
    }

    /// WITH in front of a query, and all that this can name.
    fn with(
        &self,
        with: &ast::With,
        main: &SetExpr,
        around: &Around<'_>,
    ) -> Option<(String, Vec<(String, Columns)>)> {
        if with.recursive {
            return None;
        }
        let taken = around.taken.iter().cloned().chain(relations_of(main)?).collect();
        let mut inner = Around { definition: around.definition, with: around.with.clone(), taken };
        let mut shown = Vec::new();
        for cte in &with.cte_tables {
            let name = ident_name(&cte.alias.name);
            let (text, mut columns) = self.query(&cte.query, None, &inner)?;
            let called: Vec<String> =
                cte.alias.columns.iter().map(|column| ident_name(&column.name)).collect();
            for (column, name) in columns.iter_mut().zip(&called) {
                column.0.clone_from(name);
            }
            let list = match called.as_slice() {
                [] => String::new(),
                called => {
                    let called: Vec<_> = called.iter().map(|name| quote_ident(name)).collect();
                    format!("({})", called.join(", "))
                }
            };
            let kept = match cte.materialized {
                None => "",
                Some(ast::CteAsMaterialized::Materialized) => "MATERIALIZED ",
                Some(ast::CteAsMaterialized::NotMaterialized) => "NOT MATERIALIZED ",
            };
            let (name_shown, text) = (quote_ident(&name), further_in(&text)?);
            shown.push(format!("{name_shown}{list} AS {kept}(\n        {text}\n        )"));
            inner.with.push((name, columns));
        }
        Some((format!(" WITH {}\n", shown.join(", ")), inner.with))
    }

    /// UNION and its like, of queries that are not such themselves on the right.
    fn set(
        &self,
        body: &SetExpr,
        names: Option<&[&str]>,
        around: &Around<'_>,
    ) -> Option<(String, Columns)> {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return None };
        let all = match set_quantifier {
            ast::SetQuantifier::All => " ALL",
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => "",
            _ => return None,
        };
        let (text, columns) = match &**left {
            SetExpr::Select(select) => self.select(select, None, names, around)?,
            // Another one than this would stand in parentheses.
            SetExpr::SetOperation { op: before, set_quantifier: quantifier, .. }
                if before == op && quantifier == set_quantifier =>
            {
                self.set(left, names, around)?
            }
            _ => return None,
        };
        let SetExpr::Select(select) = &**right else { return None };
        let called: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let (behind, more) = self.select(select, None, Some(&called), around)?;
        let is_same = columns.iter().zip(&more).all(|(a, b)| a.1 == b.1);
        let is_alike = is_same && columns.len() == more.len();
        is_alike.then(|| (format!("{text}\n{op}{all}\n{behind}"), columns))
    }

    /// One SELECT, with what orders its rows.
    fn select(
        &self,
        select: &ast::Select,
        order: Option<&ast::OrderBy>,
        names: Option<&[&str]>,
        around: &Around<'_>,
    ) -> Option<(String, Columns)> {
        if select.into.is_some() || select.qualify.is_some() {
            return None;
        }
        let mut scope = Scope::default();
        let mut taken = around.taken.clone();
        for name in relations(&select.from)? {
            if taken.contains(&name) {
                return None;
            }
            taken.push(name);
        }
        let (definition, with) = (around.definition, around.with.clone());
        let inner = Around { definition, with, taken };
        let from = select.from.iter().map(|from| self.from(from, &inner, &mut scope));
        let from: Vec<String> = from.collect::<Option<_>>()?;
        let items = items(&select.projection, &scope)?;
        let reader = Reader { printer: self, scope: &scope, items: &items };
        let own: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        let names = names.unwrap_or(&own);
        let (list, columns) = reader.list(names)?;
        let mut out = String::from(" SELECT");
        append(&mut out, &reader.distinct(select.distinct.as_ref(), names)?, &list);
        if !from.is_empty() {
            out.push_str(&format!("\n   FROM {}", from.join(",\n    ")));
        }
        reader.clauses(select, &mut out)?;
        if !select.named_window.is_empty() {
            append(&mut out, "\n  WINDOW ", &self.windows(&select.named_window, &scope)?);
        }
        if let Some(order) = order {
            append(&mut out, "\n  ORDER BY ", &reader.order(order, names)?);
        }
        Some((out, columns))
    }

    /// What WINDOW names.
    fn windows(&self, all: &[ast::NamedWindowDefinition], scope: &Scope) -> Option<String> {
        let one = |ast::NamedWindowDefinition(name, what): &ast::NamedWindowDefinition| {
            let ast::NamedWindowExpr::WindowSpec(window) = what else { return None };
            let shown = braid_scalar::deparse_window(window, scope, self.for_people)?;
            Some(format!("{} AS {shown}", quote_ident(&ident_name(name))))
        };
        let all: Vec<String> = all.iter().map(one).collect::<Option<_>>()?;
        Some(all.join(", "))
    }

    /// A relation of FROM with what is joined to it, whose columns are added.
    fn from(
        &self,
        from: &ast::TableWithJoins,
        around: &Around<'_>,
        scope: &mut Scope,
    ) -> Option<String> {
        let mut text = self.relation(&from.relation, around, scope, true)?;
        for join in &from.joins {
            let right = self.relation(&join.relation, around, scope, false)?;
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
        around: &Around<'_>,
        scope: &mut Scope,
        is_first: bool,
    ) -> Option<String> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                let text = self.from(table_with_joins, around, scope)?;
                // What is joined first needs no parentheses.
                Some(if self.for_people && !is_first { format!("({text})") } else { text })
            }
            TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } => {
                if !alias.columns.is_empty() {
                    return None;
                }
                let (text, columns) = self.query(subquery, None, around)?;
                let name = ident_name(&alias.name);
                let columns = columns.into_iter().map(|(name, ty)| (name, ty, true));
                scope.push_table(&name, None, columns.collect::<Vec<_>>());
                Some(format!("({}) {}", further_in(&text)?, quote_ident(&name)))
            }
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                self.table(name, alias.as_ref(), around, scope)
            }
            _ => None,
        }
    }

    fn table(
        &self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        around: &Around<'_>,
        scope: &mut Scope,
    ) -> Option<String> {
        if braid_scalar::is_only(name) || alias.is_some_and(|a| !a.columns.is_empty()) {
            return None;
        }
        let parts = object_name_parts(name);
        let called = match alias {
            Some(alias) => ident_name(&alias.name),
            None => parts.last()?.clone(),
        };
        let shown = |name: String| match alias {
            Some(_) => format!("{name} {}", quote_ident(&called)),
            None => name,
        };
        if let [name] = parts.as_slice()
            && let Some((_, columns)) = around.with.iter().rev().find(|(cte, _)| cte == name)
        {
            let columns = columns.iter().map(|(name, ty)| (name.clone(), ty.clone(), true));
            scope.push_table(&called, None, columns.collect::<Vec<_>>());
            return Some(shown(quote_ident(name).to_string()));
        }
        let found = match parts.as_slice() {
            [name] => self.catalog.resolve(self.database, &around.definition.search_path, name),
            [schema, name] => {
                let schema = self.catalog.schema(self.database, schema)?;
                self.catalog.relation(schema.id, name)
            }
            _ => None,
        }?;
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
        Some(shown((self.name_of)(id)))
    }
}

/// What the relations of FROM are called.
fn relations(from: &[ast::TableWithJoins]) -> Option<Vec<String>> {
    let mut out = Vec::new();
    for one in from {
        for factor in std::iter::once(&one.relation).chain(one.joins.iter().map(|j| &j.relation)) {
            match factor {
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. } => {
                    out.push(ident_name(&alias.name));
                }
                TableFactor::Table { name, alias: None, .. } => {
                    out.push(object_name_parts(name).pop()?);
                }
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    out.extend(relations(std::slice::from_ref(&**table_with_joins))?);
                }
                _ => return None,
            }
        }
    }
    Some(out)
}

/// The same of a whole query: the parts of UNION are queries of their own.
fn relations_of(body: &SetExpr) -> Option<Vec<String>> {
    match body {
        SetExpr::Select(select) => relations(&select.from),
        _ => Some(Vec::new()),
    }
}

/// The lines of a query within another one. A text that has lines is not moved.
fn further_in(text: &str) -> Option<String> {
    let mut is_quoted = false;
    for c in text.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '\n' if is_quoted => return None,
            _ => {}
        }
    }
    Some(text.replace('\n', "\n        "))
}

/// Keys of ORDER BY behind UNION, which are columns: by their numbers.
fn sorted_by_number(order: &ast::OrderBy, columns: &Columns) -> Option<String> {
    let OrderByKind::Expressions(keys) = &order.kind else { return None };
    let number = |key: &OrderByExpr| match &key.expr {
        Expr::Identifier(name) => {
            let name = ident_name(name);
            columns.iter().position(|(column, _)| *column == name).map(|at| at + 1)
        }
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        _ => None,
    };
    let keys = keys.iter().map(|key| {
        let number = number(key).filter(|_| key.with_fill.is_none())?;
        Some(format!("{number}{}", braid_scalar::direction(key)))
    });
    Some(keys.collect::<Option<Vec<_>>>()?.join(", "))
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

    /// DISTINCT and what separates it from the list.
    fn distinct(&self, distinct: Option<&ast::Distinct>, names: &[&str]) -> Option<String> {
        Some(match distinct {
            None | Some(ast::Distinct::All) => " ".into(),
            Some(ast::Distinct::Distinct) => " DISTINCT ".into(),
            Some(ast::Distinct::On(keys)) => {
                let keys = keys.iter().map(|key| self.key(self.meant(key, names)));
                let keys: Vec<String> = keys.collect::<Option<_>>()?;
                format!(" DISTINCT ON ({}) ", keys.join(", "))
            }
        })
    }

    /// WHERE, GROUP BY and HAVING.
    fn clauses(&self, select: &ast::Select, out: &mut String) -> Option<()> {
        if let Some(condition) = &select.selection {
            append(out, "\n  WHERE ", &self.expression(condition)?);
        }
        let GroupByExpr::Expressions(keys, more) = &select.group_by else { return None };
        if !more.is_empty() {
            return None;
        }
        if !keys.is_empty() {
            let keys = keys.iter().map(|key| self.key(self.grouped(key)?));
            let mut keys: Vec<String> = keys.collect::<Option<_>>()?;
            let mut seen = Vec::new();
            keys.retain(|key| {
                let is_new = !seen.contains(key);
                seen.push(key.clone());
                is_new
            });
            append(out, "\n  GROUP BY ", &keys.join(", "));
        }
        if let Some(condition) = &select.having {
            append(out, "\n HAVING ", &self.expression(condition)?);
        }
        Some(())
    }

    /// The keys of ORDER BY.
    fn order(&self, order: &ast::OrderBy, names: &[&str]) -> Option<String> {
        let OrderByKind::Expressions(keys) = &order.kind else { return None };
        let keys = keys.iter().map(|key| self.sorted(key, names));
        let mut keys: Vec<(String, String)> = keys.collect::<Option<_>>()?;
        // A key that was there before decides nothing.
        let mut seen = Vec::new();
        keys.retain(|(key, _)| {
            let is_new = !seen.contains(key);
            seen.push(key.clone());
            is_new
        });
        let keys: Vec<String> = keys.into_iter().map(|(key, way)| key + &way).collect();
        Some(keys.join(", "))
    }

    /// The select list, and its columns.
    fn list(&self, names: &[&str]) -> Option<(String, Columns)> {
        if self.items.len() != names.len() {
            return None;
        }
        let (mut out, mut columns) = (String::new(), Columns::new());
        for (at, (item, name)) in self.items.iter().zip(names).enumerate() {
            let read = self.read(&item.expr)?;
            let mut shown = read.text_in_query(self.printer.for_people);
            let own = match &item.expr {
                Expr::Identifier(own) => Some(ident_name(own)),
                Expr::CompoundIdentifier(parts) => parts.last().map(ident_name),
                _ => None,
            };
            if own.is_none_or(|own| own != *name) {
                shown = format!("{shown} AS {}", quote_ident(name));
            }
            append(&mut out, if at == 0 { "" } else { ",\n    " }, &shown);
            columns.push((name.to_string(), read.ty().clone()));
        }
        Some((out, columns))
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
        Some(self.read(expr)?.text_as_key(self.printer.for_people, is_column))
    }

    /// The expression that a key of ORDER BY or DISTINCT ON means: a name of the list goes before a
    /// column.
    fn meant<'e>(&'e self, key: &'e Expr, names: &[&str]) -> &'e Expr {
        let item = match key {
            Expr::Identifier(name) => {
                let name = ident_name(name);
                let shown = names.iter().position(|shown| *shown == name);
                self.named(&name).or_else(|| self.items.get(shown?))
            }
            other => self.numbered(other),
        };
        item.map_or(key, |item| &item.expr)
    }

    /// A key of ORDER BY, and its direction.
    fn sorted(&self, key: &OrderByExpr, names: &[&str]) -> Option<(String, String)> {
        if key.with_fill.is_some() {
            return None;
        }
        let shown = self.key(self.meant(&key.expr, names))?;
        Some((shown, braid_scalar::direction(key)))
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
