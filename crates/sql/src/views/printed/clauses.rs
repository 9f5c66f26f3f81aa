//! The select list, and what follows FROM.

use braid_scalar::{Deparsed, Level, ident_name, object_name_parts};
use braid_types::quote_ident;
use sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, SelectItem,
    SelectItemQualifiedWildcardKind, Value,
};

use super::query::{Columns, Inside};

/// Keys of ORDER BY behind UNION, which are columns: by their numbers.
pub(super) fn sorted_by_number(order: &ast::OrderBy, columns: &Columns) -> Option<String> {
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
pub(super) struct Item {
    expr: Expr,
    pub(super) name: String,
}

/// The select list with its stars written out.
pub(super) fn items(list: &[SelectItem], level: &Level) -> Option<Vec<Item>> {
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
        for at in level.scope.expand_star(of.as_deref()).ok()? {
            let column = &level.scope.columns()[at];
            let parts = [column.table.as_deref()?, column.name.as_str()];
            let parts = parts.map(|name| Ident::with_quote('"', name));
            add(&Expr::CompoundIdentifier(parts.to_vec()), None);
        }
    }
    Some(out)
}

/// What reads the expressions of the query.
pub(super) struct Reader<'r> {
    pub(super) inside: &'r Inside<'r, 'r>,
    pub(super) items: &'r [Item],
    pub(super) for_people: bool,
}

impl Reader<'_> {
    fn read(&self, expr: &Expr) -> Option<Deparsed> {
        self.inside.read(expr)
    }

    /// What WINDOW names.
    pub(super) fn windows(&self, all: &[ast::NamedWindowDefinition]) -> Option<String> {
        let one = |ast::NamedWindowDefinition(name, what): &ast::NamedWindowDefinition| {
            let ast::NamedWindowExpr::WindowSpec(window) = what else { return None };
            let within = self.inside.within();
            let shown = braid_scalar::deparse_window(window, within, self.for_people)?;
            Some(format!("{} AS {shown}", quote_ident(&ident_name(name))))
        };
        let all: Vec<String> = all.iter().map(one).collect::<Option<_>>()?;
        Some(all.join(", "))
    }

    fn expression(&self, expr: &Expr) -> Option<String> {
        Some(self.read(expr)?.text_in_query(self.for_people))
    }

    /// DISTINCT and what separates it from the list.
    pub(super) fn distinct(
        &self,
        distinct: Option<&ast::Distinct>,
        names: &[&str],
    ) -> Option<String> {
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
    pub(super) fn clauses(&self, select: &ast::Select, out: &mut String) -> Option<()> {
        if let Some(condition) = &select.selection {
            append(out, "\n  WHERE ", &self.expression(condition)?);
        }
        let GroupByExpr::Expressions(keys, more) = &select.group_by else { return None };
        if !more.is_empty() {
            return None;
        }
        if !keys.is_empty() {
            let keys = keys.iter().map(|key| self.group(key));
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

    /// An element of GROUP BY.
    fn group(&self, element: &Expr) -> Option<String> {
        let (words, sets, bare) = match element {
            Expr::Rollup(sets) => ("ROLLUP(", sets, true),
            Expr::Cube(sets) => ("CUBE(", sets, true),
            Expr::GroupingSets(sets) => ("GROUPING SETS (", sets, false),
            key => return self.key(self.grouped(key)?),
        };
        let set = |keys: &Vec<Expr>| {
            let shown = keys.iter().map(|key| self.key(self.grouped(key)?));
            let shown = shown.collect::<Option<Vec<_>>>()?.join(", ");
            Some(if bare && keys.len() == 1 { shown } else { format!("({shown})") })
        };
        let sets = sets.iter().map(set).collect::<Option<Vec<_>>>()?;
        Some(format!("{words}{})", sets.join(", ")))
    }

    /// The keys of ORDER BY.
    pub(super) fn order(&self, order: &ast::OrderBy, names: &[&str]) -> Option<String> {
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
    /// `?column?` is said where names are `visible` alone.
    pub(super) fn list(&self, names: &[&str], visible: bool) -> Option<(String, Columns)> {
        if self.items.len() != names.len() {
            return None;
        }
        let (mut out, mut columns) = (String::new(), Columns::new());
        for (at, (item, name)) in self.items.iter().zip(names).enumerate() {
            let read = self.read(&item.expr)?;
            let mut shown = read.text_in_query(self.for_people);
            let own = match &item.expr {
                Expr::Identifier(own) => Some(ident_name(own)),
                Expr::CompoundIdentifier(parts) => parts.last().map(ident_name),
                _ => None,
            };
            let is_said = visible || *name != "?column?";
            if is_said && own.is_none_or(|own| own != *name) {
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
        Some(self.read(expr)?.text_as_key(self.for_people, is_column))
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
pub(super) fn append(out: &mut String, separator: &str, part: &str) {
    out.push_str(if part.starts_with('\n') { separator.trim_end() } else { separator });
    out.push_str(part);
}
