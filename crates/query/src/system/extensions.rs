//! Extensions: those of a database, and those that it could have.

use braid_catalog::{EXTENSIONS, Extension};
use braid_types::{Datum, SqlResult};

use super::table::{ROOT, Rows, SystemTable, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about extensions.
pub(super) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "pg_extension" => (
            "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, \
             extversion text, extconfig oid[], extcondition text[]",
            installed,
        ),
        "pg_available_extensions" => {
            ("name name, default_version text, installed_version text, comment text", available)
        }
        "pg_available_extension_versions" => (
            "name name, version text, installed bool, superuser bool, trusted bool, \
             relocatable bool, schema name, requires name[], comment text",
            versions,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn is_installed(v: &View<'_>, extension: &Extension) -> bool {
    v.catalog.extension(v.database_id, extension.name).is_some()
}

fn installed(v: &View<'_>) -> Made {
    let rows = EXTENSIONS.iter().filter_map(|extension| {
        let found = v.catalog.extension(v.database_id, extension.name)?;
        let mut row = vec![Datum::Oid(found.oid), text(extension.name), Datum::Oid(ROOT)];
        row.extend([Datum::Oid(found.schema), flag(extension.is_relocatable())]);
        row.push(text(extension.version));
        Some(row)
    });
    Ok(rows.collect())
}

fn available(v: &View<'_>) -> Made {
    let rows = EXTENSIONS.iter().map(|extension| {
        let version = text(extension.version);
        let installed = if is_installed(v, extension) { version.clone() } else { Datum::Null };
        vec![text(extension.name), version, installed, text(extension.comment)]
    });
    Ok(rows.collect())
}

fn versions(v: &View<'_>) -> Made {
    let rows = EXTENSIONS.iter().map(|extension| {
        vec![
            text(extension.name),
            text(extension.version),
            flag(is_installed(v, extension)),
            flag(true),
            flag(extension.is_trusted),
            flag(extension.is_relocatable()),
            extension.schema.map_or(Datum::Null, text),
            Datum::Null,
            text(extension.comment),
        ]
    });
    Ok(rows.collect())
}
