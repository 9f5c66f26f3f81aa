//! Which types of users a name means: those of a catalog, by a search path.

use std::sync::Arc;

use braid_catalog::Catalog;
use braid_scalar::{ParamTypes, TypeNames};
use braid_types::{SqlResult, SqlType};
use sqlparser::ast::DataType;

/// The types of a database as a search path sees them.
#[derive(Debug)]
struct InReach {
    catalog: Arc<Catalog>,
    database: u32,
    search_path: Vec<String>,
}

impl TypeNames for InReach {
    fn user_type(&self, parts: &[String]) -> Option<SqlType> {
        let found = match parts {
            [name] => self.catalog.resolve_type(self.database, &self.search_path, name),
            [schema, name] => {
                let schema = self.catalog.schema(self.database, schema)?;
                self.catalog.type_in(schema.id, name)
            }
            _ => None,
        }?;
        self.catalog.sql_type(found)
    }
}

/// What binding asks about types; nothing in a catalog without any.
pub fn types_in_reach(
    catalog: &Arc<Catalog>,
    database: u32,
    search_path: &[String],
) -> Option<Arc<dyn TypeNames>> {
    catalog.user_types().next()?;
    let search_path = search_path.to_vec();
    Some(Arc::new(InReach { catalog: catalog.clone(), database, search_path }))
}

impl super::Context {
    /// Parameters with the types that the client has declared, and all types that can be named.
    pub(crate) fn params(&self, declared: &[Option<SqlType>]) -> ParamTypes {
        let types = types_in_reach(&self.catalog, self.database, &self.search_path);
        ParamTypes::new(declared).with_types(types)
    }

    /// The type that a parsed type name means.
    ///
    /// # Errors
    /// Those of [`braid_scalar::sql_type_of`].
    pub(crate) fn type_of(&self, data_type: &DataType) -> SqlResult<SqlType> {
        braid_scalar::sql_type_of(data_type, self.no_params().named_types())
    }

    /// For binding an expression without parameters.
    pub(crate) fn no_params(&self) -> ParamTypes {
        self.params(&[])
    }
}
