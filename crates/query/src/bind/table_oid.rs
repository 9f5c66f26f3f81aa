//! `tableoid`: which table a row is of. No table has it as a column; where it is named it is the
//! oid of the table that the other columns are of.

use braid_catalog::id_of_oid;
use braid_scalar::{Bound, CaseBranch, Node, Padding};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

use super::Binder;
use crate::system::TABLE_OID;

impl Binder<'_> {
    /// What a name means that may be `tableoid`; `None` if it is another one, or of no table.
    pub(super) fn table_oid(&mut self, parts: &[String]) -> SqlResult<Option<Bound>> {
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
            let Some(origin) = level.origins.get(at).copied().flatten() else { continue };
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
        let Some((_, oid)) = found else { return Ok(None) };
        let table = id_of_oid(oid).and_then(|id| self.context.catalog.table(id));
        if table.is_some_and(|t| t.partitioning().is_some()) {
            return Err(SqlError::unsupported("tableoid of a partitioned table")
                .with_hint("All of its rows are in one table: compare what they are divided by."));
        }
        let value = Bound::constant(Datum::Oid(oid), SqlType::Oid);
        let (true, Some(key)) = (padded, key) else { return Ok(Some(value)) };
        // An outer join may have found no row.
        let key = self.input_column(key)?;
        let branch = CaseBranch {
            when: Bound::new(Node::IsNull(key, false), SqlType::Bool),
            then: Bound::constant(Datum::Null, SqlType::Oid),
        };
        Ok(Some(Bound::new(Node::Case(vec![branch], Some(value)), SqlType::Oid)))
    }
}
