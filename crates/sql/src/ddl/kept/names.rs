//! The names in a kept text.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Catalog, Function, Relation, UserType};
use braid_parser::Name;
use braid_scalar::{object_name_parts, overloads, user_type_name};
use braid_types::SqlType;
use braid_walk::VisitorMut;
use sqlparser::ast::{self, DataType, Expr, ObjectName, TableFactor};

use crate::ddl::view::ident;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    Relation,
    Type,
    Function,
    Collation,
}

/// Tells every name of an object of a schema, and writes another one in its place where one is
/// given. Names behind columns (`schema.table.column`) are told as those of relations.
pub(super) struct Names<'a> {
    pub(super) of: &'a mut dyn FnMut(Meant, &[String]) -> Option<Name>,
    pub(super) changed: bool,
}

impl Names<'_> {
    fn object(&mut self, meant: Meant, name: &mut ObjectName) {
        if let Some(new) = (self.of)(meant, &object_name_parts(name)) {
            *name = written(&new);
            self.changed = true;
        }
    }

    fn data_type(&mut self, ty: &mut DataType) {
        if let DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(inner, _)
            | ast::ArrayElemTypeDef::AngleBracket(inner)
            | ast::ArrayElemTypeDef::Parenthesis(inner),
        ) = ty
        {
            return self.data_type(inner);
        }
        let Some(parts) = user_type_name(ty) else { return };
        if let Some(new) = (self.of)(Meant::Type, &parts) {
            let modifiers = match ty {
                DataType::Custom(_, modifiers) => std::mem::take(modifiers),
                _ => Vec::new(),
            };
            *ty = DataType::Custom(written(&new), modifiers);
            self.changed = true;
        }
    }

    /// The relation in front of a column or a star, if its schema is written too.
    fn in_front(&mut self, parts: &mut Vec<ast::Ident>) {
        if parts.len() < 3 {
            return;
        }
        let names: Name = parts[..parts.len() - 1].iter().map(braid_scalar::ident_name).collect();
        if let Some(new) = (self.of)(Meant::Relation, &names) {
            let last = parts.len() - 1;
            parts.splice(..last, new.iter().map(|name| ident(name)));
            self.changed = true;
        }
    }

    fn alias(&mut self, alias: Option<&mut ast::TableAlias>) {
        for column in alias.into_iter().flat_map(|alias| &mut alias.columns) {
            if let Some(ty) = &mut column.data_type {
                self.data_type(ty);
            }
        }
    }
}

fn written(name: &[String]) -> ObjectName {
    ObjectName::from(name.iter().map(|part| ident(part)).collect::<Vec<_>>())
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let ast::SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
                && name.0.len() > 1
            {
                self.object(Meant::Relation, name);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args, alias, .. } => {
                let meant = if args.is_some() { Meant::Function } else { Meant::Relation };
                self.object(meant, name);
                self.alias(alias.as_mut());
            }
            TableFactor::Function { name, alias, .. } => {
                self.object(Meant::Function, name);
                self.alias(alias.as_mut());
            }
            TableFactor::UNNEST { alias, .. } | TableFactor::TableFunction { alias, .. } => {
                self.alias(alias.as_mut());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Cast { data_type, .. } => self.data_type(data_type),
            Expr::TypedString(typed) => self.data_type(&mut typed.data_type),
            Expr::Function(call) => self.object(Meant::Function, &mut call.name),
            Expr::Collate { collation, .. } => self.object(Meant::Collation, collation),
            Expr::CompoundIdentifier(parts) => self.in_front(parts),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Objects by their names.
pub(super) struct Finder<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) database: u32,
    pub(super) path: &'a [String],
}

impl Finder<'_> {
    /// The type of a name, or of the elements of the array type of that name.
    pub(super) fn user_type(&self, parts: &[String]) -> Option<Arc<UserType>> {
        let found = |parts: &[String]| match parts {
            [bare] => self.catalog.resolve_named(self.database, self.path, bare).cloned(),
            [schema, bare] => {
                let schema = self.catalog.schema(self.database, schema)?.id;
                let own = self.catalog.type_in(schema, bare);
                own.or_else(|| self.catalog.multirange_in(schema, bare)).cloned()
            }
            _ => None,
        };
        found(parts).or_else(|| {
            let (last, schema) = parts.split_last()?;
            found(&[schema, &[last.strip_prefix('_')?.to_string()]].concat())
        })
    }

    /// The table or view whose rows have the type of a name, or are the elements of the array
    /// type of that name.
    pub(super) fn rows_of(&self, parts: &[String]) -> Option<u32> {
        if self.user_type(parts).is_some() {
            return None;
        }
        let found = |parts: &[String]| {
            let relation = match parts {
                // Types that are built in are found first.
                [bare] if SqlType::from_name(bare).is_some() => None,
                [bare] => self.catalog.resolve(self.database, self.path, bare),
                [schema, bare] => {
                    self.catalog.resolve(self.database, std::slice::from_ref(schema), bare)
                }
                _ => None,
            };
            match relation? {
                Relation::Table(table) => Some(table.id),
                Relation::View(view) => Some(view.id),
                _ => None,
            }
        };
        found(parts).or_else(|| {
            let (last, schema) = parts.split_last()?;
            found(&[schema, &[last.strip_prefix('_')?.to_string()]].concat())
        })
    }

    /// The functions of users that a name may mean; none where a function that is built in is
    /// called so.
    pub(super) fn functions(&self, parts: &[String]) -> Vec<Arc<Function>> {
        match parts {
            [bare] if !overloads(bare).is_empty() => Vec::new(),
            [bare] => self.catalog.resolve_functions(self.database, self.path, bare),
            [schema, bare] => {
                let schema = self.catalog.schema(self.database, schema).map_or(0, |s| s.id);
                self.catalog.functions_in(schema, bare).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The name with its schema of what a name without one means: of a type, and of functions that
    /// all lie in one schema. What is temporary keeps its name.
    pub(super) fn full_name(&self, meant: Meant, parts: &[String]) -> Option<Name> {
        let [bare] = parts else { return None };
        let schema = match meant {
            Meant::Type => match self.user_type(parts) {
                Some(user) => user.schema,
                None => match self.catalog.resolve(self.database, self.path, bare)? {
                    Relation::Table(table) | Relation::Partition(table) => table.schema,
                    Relation::View(view) => view.schema,
                    _ => return None,
                },
            },
            Meant::Function => match self.functions(parts).as_slice() {
                [first, rest @ ..] if rest.iter().all(|f| f.schema == first.schema) => first.schema,
                [] if overloads(bare).is_empty() => {
                    self.user_type(parts).filter(|user| user.multirange().is_some())?.schema
                }
                _ => return None,
            },
            Meant::Relation | Meant::Collation => return None,
        };
        let schema = &self.catalog.schema_by_id(schema)?.name;
        (!schema.starts_with("pg_temp_")).then(|| vec![schema.clone(), bare.clone()])
    }
}
