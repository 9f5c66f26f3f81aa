//! Extensions: what PostgreSQL has in packages of its own, and is built in here.
//!
//! What an extension brings is always there, in every schema of the search path. CREATE EXTENSION
//! is noted with the database, so that `pg_extension`, dumps and migrations see what they expect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::oid_of;
use crate::snapshot::Catalog;

/// An extension that can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// Name.
    pub name: &'static str,
    /// The only version of it.
    pub version: &'static str,
    /// What it is for.
    pub comment: &'static str,
    /// Whether roles that may create objects may have it.
    pub is_trusted: bool,
    /// The schema that it must be in.
    pub schema: Option<&'static str>,
}

impl Extension {
    /// The one of a name, if there is one.
    pub fn named(name: &str) -> Option<&'static Extension> {
        EXTENSIONS.iter().find(|extension| extension.name == name)
    }

    /// Whether it can move to another schema.
    pub fn is_relocatable(&self) -> bool {
        self.schema.is_none()
    }

    /// Whether every database has it from its start.
    pub fn is_always_there(&self) -> bool {
        self.schema.is_some()
    }
}

/// All that there are, by name.
pub const EXTENSIONS: [Extension; 5] = [
    Extension {
        name: "citext",
        version: "1.6",
        comment: "data type for case-insensitive character strings",
        is_trusted: true,
        schema: None,
    },
    Extension {
        name: "pg_stat_statements",
        version: "1.10",
        comment: "track planning and execution statistics of all SQL statements executed",
        is_trusted: false,
        schema: None,
    },
    Extension {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        is_trusted: true,
        schema: None,
    },
    Extension {
        name: "plpgsql",
        version: "1.0",
        comment: "PL/pgSQL procedural language",
        is_trusted: true,
        schema: Some("pg_catalog"),
    },
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        is_trusted: true,
        schema: None,
    },
];

/// Oid of what every database has: below those of objects, so that dumps leave it out.
const ALWAYS_THERE: u32 = 13_563;
/// Oid of its schema, `pg_catalog`.
const PG_CATALOG: u32 = 11;

/// Where an extension is that somebody has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Object id.
    pub id: u32,
    /// Id of the schema that it was put in.
    pub schema: u32,
}

/// Those of a database, by name.
pub(crate) type Extensions = BTreeMap<String, Installed>;

/// An extension that a database has, as clients are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownExtension {
    /// Oid.
    pub oid: u32,
    /// Oid of its schema.
    pub schema: u32,
}

impl Catalog {
    /// The extension of this name that a database has. One whose schema is gone went with it.
    pub fn extension(&self, database: u32, name: &str) -> Option<ShownExtension> {
        if Extension::named(name)?.is_always_there() {
            return Some(ShownExtension { oid: ALWAYS_THERE, schema: PG_CATALOG });
        }
        let Installed { id, schema } = *self.notes(database)?.extensions.get(name)?;
        self.schema_by_id(schema)?;
        Some(ShownExtension { oid: oid_of(id), schema: oid_of(schema) })
    }
}
