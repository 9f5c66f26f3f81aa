//! `tableoid`: which table a row is of. No table has it as a column; where it is named it is the
//! oid of the table that the other columns are of, or of the partition that they put the row into.

use std::collections::HashMap;

use braid_catalog::{Table, id_of_oid};
use braid_scalar::{Bound, CaseBranch, Node, Padding};
use braid_sql::partitions::table_oid;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use sqlparser::ast::Ident;

use super::Binder;
use crate::system::TABLE_OID;

impl Binder<'_> {
    /// The same of a table of this level or one around it.
    pub(super) fn table_oid_in_reach(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        if parts.last().is_none_or(|name| name != TABLE_OID) {
            return Ok(None);
        }
        let own = self.table_oid(parts)?;
        if own.is_some() || self.level().arguments.is_some() {
            return Ok(own);
        }
        let found = self.one_level_out(|binder| binder.table_oid_in_reach(parts))?;
        Ok(found.map(|outer| self.brought_in(outer)))
    }

    /// What a name means that may be `tableoid`; `None` if it is another one, or of no table.
    fn table_oid(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
        let alias = match parts {
            [name] if name == TABLE_OID => None,
            [.., alias, name] if name == TABLE_OID => Some(alias),
            _ => return Ok(None),
        };
        let (mut found, mut key, mut padded) = (None, None, false);
        let level = self.level();
        for (at, column) in level.scope.columns().iter().enumerate() {
            if alias.is_some_and(|alias| column.table.as_ref() != Some(alias)) {
                continue;
            }
            let origin = level.origins.get(at).copied().flatten();
            let Some(origin) = origin.filter(|o| o.stored) else { continue };
            if found.is_some_and(|(relation, _)| relation != origin.relation) {
                let text = format!("column reference \"{TABLE_OID}\" is ambiguous");
                return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, text));
            }
            found = Some((origin.relation, origin.table_oid));
            padded |= column.padding != Padding::None;
            if origin.key {
                key = Some(at);
            }
        }
        let Some((relation, oid)) = found else { return Ok(None) };
        let table = id_of_oid(oid).and_then(|id| self.context.catalog.table(id)).cloned();
        let value = match table.filter(|t| t.partitioning().is_some()) {
            Some(table) => self.partition_oid(&table, relation)?,
            None => Bound::constant(Datum::Oid(oid), SqlType::Oid),
        };
        let (true, Some(key)) = (padded, key) else { return Ok(Some(value)) };
        // An outer join may have found no row.
        let key = self.input_column(key)?;
        let branch = CaseBranch {
            when: Bound::new(Node::IsNull(key, false), SqlType::Bool),
            then: Bound::constant(Datum::Null, SqlType::Oid),
        };
        Ok(Some(Bound::new(Node::Case(vec![branch], Some(value)), SqlType::Oid)))
    }

    /// The oid of the partition that a row of a relation is in.
    fn partition_oid(&mut self, table: &Table, relation: usize) -> SqlResult<Bound> {
        let level = self.level();
        let mut names = HashMap::new();
        for (at, column) in level.scope.columns().iter().enumerate() {
            let origin = level.origins.get(at).copied().flatten();
            let Some(origin) = origin.filter(|o| o.relation == relation) else { continue };
            let own = table.columns.iter().find(|c| i16::try_from(c.id) == Ok(origin.attnum));
            let parts = column.table.iter().chain([&column.name]);
            let parts = parts.map(|part| Ident::with_quote('"', part)).collect::<Vec<_>>();
            names.extend(own.map(|own| (own.name.clone(), parts)));
        }
        self.expr(&table_oid(table, &|name| names.get(name).cloned())?)
    }
}
