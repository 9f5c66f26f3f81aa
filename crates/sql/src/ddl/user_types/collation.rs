//! CREATE COLLATION, ALTER COLLATION and DROP COLLATION.
//!
//! A collation is the order of a locale, with settings. By most of them texts are equal only if
//! their bytes are, so that no key and no constraint has to know of them; where others would have
//! to be known, they are refused.

use std::sync::Arc;

use braid_catalog::{KeyPart, Table, TypeKind, UserCollation, oid_of};
use braid_parser::{CollationChange, CollationMade, CollationStatement, Name};
use braid_types::{
    DEFAULT_COLLATION, SqlError, SqlResult, SqlState, built_in_collation, no_collation, quote_ident,
};

use crate::ddl::{Change, alter_column, drop};

/// Runs one of them; gives the command tag.
pub(crate) fn run(c: &mut Change, statement: &CollationStatement) -> SqlResult<String> {
    let tag = match statement {
        CollationStatement::Create { name, if_not_exists, made } => {
            create(c, name, *if_not_exists, made)?;
            "CREATE COLLATION"
        }
        CollationStatement::Drop { names, if_exists, cascade } => {
            names.iter().try_for_each(|name| drop_named(c, name, *if_exists, *cascade))?;
            "DROP COLLATION"
        }
        CollationStatement::Alter(name, change) => {
            alter(c, name, change)?;
            "ALTER COLLATION"
        }
    };
    c.sync();
    Ok(tag.to_string())
}

/// 42P17 for what defines no collation.
fn bad_definition(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, text)
}

fn create(c: &mut Change, name: &Name, if_not_exists: bool, made: &CollationMade) -> SqlResult<()> {
    let (schema, name) = c.ctx.target_schema(name)?;
    let (locale, deterministic) = match made {
        CollationMade::From(other) => copied(c, other)?,
        CollationMade::With(given) => defined(given)?,
    };
    if c.catalog.collation_in(schema, &name).is_some() {
        let text = format!("collation \"{name}\" already exists");
        if !if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, text));
        }
        c.ctx.notice(format!("{text}, skipping"));
        return Ok(());
    }
    let id = c.new_id()?;
    let loose = !deterministic;
    c.catalog.put_collation(UserCollation { id, schema, name, locale, loose, comment: None });
    Ok(())
}

/// What a collation is made of: its locale, by bytes without one, and whether it is deterministic.
type Made = (Option<String>, bool);

/// That of another collation.
fn copied(c: &Change, other: &Name) -> SqlResult<Made> {
    let found = c.ctx.no_params().collation(other)?;
    if found.oid == DEFAULT_COLLATION {
        return Err(bad_definition("collation \"default\" cannot be copied"));
    }
    Ok((found.locale.clone(), found.deterministic))
}

/// What properties ask for.
fn defined(given: &[(String, String)]) -> SqlResult<Made> {
    let known = ["locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version"];
    if let Some((other, _)) = given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        let text = format!("collation attribute \"{other}\" not recognized");
        return Err(SqlError::syntax(text));
    }
    let find = |name: &str| given.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let (locale, own) = (find("locale"), find("lc_collate").or(find("lc_ctype")));
    if locale.is_some() && own.is_some() {
        return Err(SqlError::syntax("conflicting or redundant options")
            .with_detail("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE."));
    }
    let deterministic = match find("deterministic") {
        None => true,
        Some(value) => truth(value)?,
    };
    let provider = find("provider").unwrap_or("libc").to_ascii_lowercase();
    match provider.as_str() {
        "icu" => {
            let locale =
                locale.ok_or_else(|| bad_definition("parameter \"locale\" must be specified"))?;
            braid_scalar::check_locale(locale)?;
            Ok((Some(locale.to_string()), deterministic))
        }
        "libc" if !deterministic => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "nondeterministic collations not supported with this provider",
        )),
        "libc" => {
            let missing =
                |what: &str| bad_definition(format!("parameter \"{what}\" must be specified"));
            let collate = locale.or(find("lc_collate")).ok_or_else(|| missing("lc_collate"))?;
            locale.or(find("lc_ctype")).ok_or_else(|| missing("lc_ctype"))?;
            match built_in_collation(collate).filter(|known| known.locale.is_none()) {
                Some(_) => Ok((None, true)),
                None => Err(SqlError::unsupported(format!("the locale \"{collate}\" of libc"))
                    .with_hint("Orders of locales are those of ICU: provider = icu.")),
            }
        }
        _ => Err(bad_definition(format!("unrecognized collation provider: {provider}"))),
    }
}

fn truth(value: &str) -> SqlResult<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(SqlError::syntax("deterministic requires a Boolean value")),
    }
}

/// The collation of a user that a statement names.
pub(in crate::ddl) fn named(c: &Change, name: &Name) -> SqlResult<Arc<UserCollation>> {
    let found = match name.as_slice() {
        [bare] if built_in_collation(bare).is_none() => {
            c.catalog.resolve_collation(c.ctx.database, &c.ctx.search_path, bare)
        }
        [schema, bare] => match c.catalog.schema(c.ctx.database, schema) {
            Some(schema) => c.catalog.collation_in(schema.id, bare),
            None if schema == "pg_catalog" => None,
            None => return Err(crate::session::no_schema(schema)),
        },
        _ => None,
    };
    let built_in = match name.as_slice() {
        [bare] => built_in_collation(bare),
        [schema, bare] if schema == "pg_catalog" => built_in_collation(bare),
        _ => None,
    };
    match (found, built_in) {
        (Some(found), _) => Ok(found.clone()),
        (None, Some(own)) => Err(SqlError::unsupported(format!(
            "a change of the collation \"{}\", which is built in",
            own.name
        ))),
        (None, None) => Err(no_collation(&name.join("."))),
    }
}

fn alter(c: &mut Change, name: &Name, change: &CollationChange) -> SqlResult<()> {
    let old = named(c, name)?;
    let mut new = (*old).clone();
    match change {
        // The order is that of this version of the server.
        CollationChange::Refresh => {
            c.ctx.notice("version has not changed");
            return Ok(());
        }
        CollationChange::Rename(to) => new.name.clone_from(to),
        CollationChange::Schema(to) => {
            let schema = c.catalog.schema(c.ctx.database, to);
            new.schema = schema.ok_or_else(|| crate::session::no_schema(to))?.id;
        }
    }
    let other = c.catalog.collation_in(new.schema, &new.name).filter(|other| other.id != old.id);
    if other.is_some() {
        let schema = c.ctx.schema_name(new.schema);
        let text = format!("collation \"{}\" already exists in schema \"{schema}\"", new.name);
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, text));
    }
    if let Some(by) = written_in(c, &old.name).first() {
        let text = format!("cannot rename collation {} because {by} may name it", old.name);
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, text)
            .with_hint("Drop what names it first, and create it again afterwards."));
    }
    lock_users(c, oid_of(old.id))?;
    c.catalog.put_collation(new);
    Ok(())
}

/// Its name, with the schema where that is needed.
pub(in crate::ddl) fn shown(c: &Change, own: &UserCollation) -> String {
    let found = c.catalog.resolve_collation(c.ctx.database, &c.ctx.search_path, &own.name);
    let name = quote_ident(&own.name);
    match found.is_some_and(|found| found.id == own.id) {
        true => name.to_string(),
        false => format!("{}.{name}", quote_ident(&c.ctx.schema_name(own.schema))),
    }
}

/// 0A000 for keys of columns whose equal values may have different bytes: keys are of bytes.
///
/// # Errors
/// That.
pub(in crate::ddl) fn check_keys(t: &Table) -> SqlResult<()> {
    let unique = t.all_indexes().filter(|i| i.is_unique() || i.id == t.primary.id);
    let mut keys: Vec<u32> = unique.flat_map(|i| i.columns.iter().map(|k| k.column)).collect();
    if let Some(divided) = t.partitioning() {
        let parts = divided.partitions.iter().filter_map(|p| p.key.as_ref());
        for part in parts.chain([&divided.key]).flat_map(|key| &key.parts) {
            if let KeyPart::Column(id) = part {
                keys.push(*id);
            }
        }
    }
    for column in t.columns.iter().filter(|own| keys.contains(&own.id)) {
        if let Some(own) = column.options.collation.as_ref().filter(|own| !own.deterministic) {
            let what = match &column.expression {
                Some(text) => text,
                None => &column.name,
            };
            let text =
                format!("a key over {what} with the nondeterministic collation \"{}\"", own.name);
            return Err(SqlError::unsupported(text).with_hint(
                "A unique index of lower(a COLLATE \"und-x-icu\") tells texts apart but for their \
                 case.",
            ));
        }
    }
    Ok(())
}

/// COMMENT ON COLLATION.
pub(in crate::ddl) fn comment(c: &mut Change, name: &Name, text: Option<String>) -> SqlResult<()> {
    let old = named(c, name)?;
    c.catalog.put_collation(UserCollation { comment: text, ..(*old).clone() });
    Ok(())
}

/// Excludes all who use tables with columns of the collation.
fn lock_users(c: &Change, oid: u32) -> SqlResult<()> {
    for table in c.catalog.tables() {
        if table
            .columns
            .iter()
            .any(|own| own.options.collation.as_ref().is_some_and(|c| c.oid == oid))
        {
            c.ctx.lock_for_change(table.id)?;
        }
    }
    Ok(())
}

/// Whether an expression that is kept as text may name a collation.
fn names(text: &str, collation: &str) -> bool {
    let collates = text.to_ascii_lowercase().contains("collate");
    let mut words = text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c));
    collates && words.any(|word| word == collation)
}

/// What holds expressions that may name a collation.
fn written_in(c: &Change, collation: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in c.catalog.tables() {
        let texts = table
            .columns
            .iter()
            .flat_map(|own| [&own.default, &own.generated, &own.expression].into_iter().flatten());
        let checks = table.kept_checks().map(|check| &check.expr);
        let predicates = table.indexes.iter().filter_map(|index| index.predicate.as_ref());
        if texts.chain(checks).chain(predicates).any(|text| names(text, collation)) {
            found.push(format!("table {}", table.name));
        }
    }
    for (view, definition) in c.catalog.definitions() {
        if names(&definition.query, collation)
            && let Some(view) = c.catalog.relation_by_id(view)
        {
            found.push(drop::called(c, &view));
        }
    }
    let bodies = c.catalog.functions().filter(|f| names(&f.body, collation));
    found.extend(bodies.map(|f| format!("function {}", f.shown())));
    found
}

fn drop_named(c: &mut Change, name: &Name, if_exists: bool, cascade: bool) -> SqlResult<()> {
    let old = match named(c, name) {
        Ok(old) => old,
        Err(e) if if_exists && e.state() == SqlState::UNDEFINED_OBJECT => {
            c.ctx.notice(format!("collation \"{}\" does not exist, skipping", name.join(".")));
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    drop_collation(c, &old, cascade)
}

/// Drops a collation; columns that have it stand in the way, or go along with CASCADE.
pub(in crate::ddl) fn drop_collation(
    c: &mut Change,
    old: &UserCollation,
    cascade: bool,
) -> SqlResult<()> {
    let shown = shown(c, old);
    let Dependents { columns, lines, others } = dependents(c, old);
    // What is kept as text, and domains, do not go along.
    drop::refuse_or_notice(c, cascade && others == 0, &format!("collation {shown}"), &lines)?;
    for (table, column) in columns {
        if let Some(table) = c.catalog.table(table).cloned() {
            alter_column::drop(c, &table, &column, false, true)?;
        }
    }
    c.catalog.remove(old.id);
    c.sync();
    Ok(())
}

/// What depends on a collation.
pub(in crate::ddl) struct Dependents {
    /// Tables and names of columns.
    columns: Vec<(u32, String)>,
    /// All that depends, as errors tell it.
    pub(in crate::ddl) lines: Vec<String>,
    /// How much of it are no columns.
    others: usize,
}

/// Finds it.
pub(in crate::ddl) fn dependents(c: &Change, old: &UserCollation) -> Dependents {
    let (oid, shown) = (oid_of(old.id), shown(c, old));
    let (mut columns, mut lines) = (Vec::new(), Vec::new());
    for table in c.catalog.tables() {
        let own = table.columns.iter().rev();
        for column in own.filter(|own| own.options.collation.as_ref().is_some_and(|c| c.oid == oid))
        {
            columns.push((table.id, column.name.clone()));
            let (column, table) = (&column.name, &table.name);
            lines.push(format!("column {column} of table {table} depends on collation {shown}"));
        }
    }
    for user in c.catalog.user_types() {
        if let TypeKind::Domain(domain) = &user.kind
            && domain.collation == Some(oid)
        {
            lines.push(format!("type {} depends on collation {shown}", user.name));
        }
    }
    let written = written_in(c, &old.name);
    lines.extend(written.iter().map(|by| format!("{by} depends on collation {shown}")));
    let others = lines.len() - columns.len();
    Dependents { columns, lines, others }
}
