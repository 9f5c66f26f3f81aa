//! GRANT and REVOKE of privileges, and ALTER DEFAULT PRIVILEGES.

use braid_catalog::{
    BOOTSTRAP_ROLE, DefaultAcl, Grant, PUBLIC, Privileges, Relation, Securable, change_acl,
};
use braid_parser::{GrantKind, GrantObjects, GrantPrivileges, Name};
use braid_types::{SqlError, SqlResult, SqlState};

use super::roles::{acting, oid_of_role, securable, type_id, wrong_kind};
use crate::ddl::Change;

/// What is granted on one kind of object: of the whole, and by column.
struct Wanted {
    whole: Privileges,
    columns: Vec<(Privileges, Vec<String>)>,
}

/// GRANT and REVOKE.
pub(super) fn privileges(c: &mut Change, g: &GrantPrivileges) -> SqlResult<()> {
    let grantees = grantees(c, g)?;
    for (id, kind) in objects(c, &g.objects)? {
        let wanted = wanted(c, g, kind, id)?;
        let owner = c.catalog.owner(id);
        let role = acting(c);
        let own = c.catalog.is_superuser(role) || c.catalog.is_member(role, owner);
        let grantor = if own { owner } else { role };
        let mut acl = c.catalog.acl(id).unwrap_or_else(|| kind.default_acl(owner));
        for grantee in &grantees {
            if wanted.whole != Privileges::NONE {
                put(&mut acl, g, *grantee, grantor, wanted.whole);
            }
        }
        let columns = columns(c, g, id, kind, &wanted)?;
        c.catalog.note(id, |notes| {
            if wanted.whole != Privileges::NONE {
                notes.acl = Some(acl);
            }
            for (column, privileges) in columns {
                let list = notes.columns.entry(column).or_default();
                for grantee in &grantees {
                    put(list, g, *grantee, grantor, privileges);
                }
            }
            notes.columns.retain(|_, list| !list.is_empty());
        });
    }
    Ok(())
}

/// Adds to a list of privileges, or takes from it.
fn put(acl: &mut Vec<Grant>, g: &GrantPrivileges, grantee: u32, grantor: u32, all: Privileges) {
    let option = g.with_option || g.option_only;
    let (privileges, grantable) = match (g.option_only, option) {
        (true, _) => (Privileges::NONE, all),
        (false, true) => (all, all),
        (false, false) => (all, Privileges::NONE),
    };
    change_acl(acl, Grant { grantee, grantor, privileges, grantable }, g.revoke);
}

fn grantees(c: &Change, g: &GrantPrivileges) -> SqlResult<Vec<u32>> {
    let oids: Vec<u32> = g.grantees.iter().map(|r| oid_of_role(c, r)).collect::<SqlResult<_>>()?;
    if g.with_option && oids.contains(&PUBLIC) {
        return Err(SqlError::new(SqlState("0LP01"), "grant options can only be granted to roles"));
    }
    Ok(oids)
}

/// The privileges that a statement names, which must be of the kind of object.
fn wanted(c: &Change, g: &GrantPrivileges, kind: Securable, id: u32) -> SqlResult<Wanted> {
    let mut out = Wanted { whole: Privileges::NONE, columns: Vec::new() };
    if g.privileges.is_empty() {
        out.whole = kind.privileges();
    }
    let as_table = matches!(g.objects, GrantObjects::Named(GrantKind::Table, _));
    for (name, columns) in &g.privileges {
        let Some(one) = Privileges::named(name) else {
            return Err(SqlError::syntax(format!("unrecognized privilege type \"{name}\"")));
        };
        let of = if columns.is_empty() { kind } else { Securable::Column };
        let sequence = Securable::Sequence.privileges();
        let (named, known) = match of {
            Securable::Table if as_table && sequence.has(one) => ("table", of.privileges()),
            Securable::Table => ("relation", of.privileges()),
            // GRANT ON s of a sequence takes what tables have, and keeps what it knows.
            Securable::Sequence if as_table => {
                ("relation", Securable::Table.privileges().with(sequence))
            }
            other => (other.name(), other.privileges()),
        };
        if !known.has(one) {
            return Err(SqlError::new(
                SqlState("0LP01"),
                format!("invalid privilege type {} for {named}", name.to_uppercase()),
            ));
        }
        match columns.is_empty() {
            true if !kind.privileges().has(one) => c.ctx.warn(format!(
                "sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                c.catalog.qualified_name(id).map_or(String::new(), |n| n.1)
            )),
            true => out.whole = out.whole.with(one),
            false => out.columns.push((one, columns.clone())),
        }
    }
    Ok(out)
}

/// The columns that are concerned, by their ids. What is revoked of a table is revoked of its
/// columns, too.
fn columns(
    c: &Change,
    g: &GrantPrivileges,
    id: u32,
    kind: Securable,
    wanted: &Wanted,
) -> SqlResult<Vec<(u32, Privileges)>> {
    let mut out = Vec::new();
    for (privileges, names) in &wanted.columns {
        for name in names {
            out.push((column(c, id, name)?, *privileges));
        }
    }
    let noted = c.catalog.notes(id).map(|n| n.columns.keys().copied().collect::<Vec<_>>());
    if g.revoke && kind == Securable::Table && wanted.whole != Privileges::NONE {
        out.extend(noted.into_iter().flatten().map(|column| (column, wanted.whole)));
    }
    Ok(out)
}

/// The number of a column of a table or view.
pub(in crate::ddl) fn column(c: &Change, id: u32, name: &str) -> SqlResult<u32> {
    let (found, relation) = match c.catalog.relation_by_id(id) {
        Some(Relation::Table(t) | Relation::Partition(t)) => {
            (t.column_named(name).map(|col| col.id), t.name.clone())
        }
        Some(Relation::View(v)) => {
            let at = v.columns.iter().position(|(n, _)| n == name);
            (at.map(|at| at as u32 + 1), v.name.clone())
        }
        _ => (None, String::new()),
    };
    found.ok_or_else(|| {
        let text = format!("column \"{name}\" of relation \"{relation}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, text)
    })
}

/// The objects that a statement names, with their kinds.
pub(super) fn objects(c: &Change, objects: &GrantObjects) -> SqlResult<Vec<(u32, Securable)>> {
    match objects {
        GrantObjects::Named(kind, names) => {
            if let GrantKind::Other(what) = kind {
                return Err(SqlError::unsupported(format!("GRANT ON {what}")));
            }
            if *kind == GrantKind::Function {
                return Err(SqlError::unsupported("GRANT ON FUNCTION")
                    .with_hint("There are no functions of users; everybody may call all."));
            }
            names.iter().map(|name| object(c, *kind, name)).collect()
        }
        GrantObjects::AllIn(kind, schemas) => {
            let mut out = Vec::new();
            for name in schemas {
                let (schema, _) = object(c, GrantKind::Schema, &vec![name.clone()])?;
                let of = |id: u32, schema_of: u32, securable: Securable| {
                    (schema_of == schema).then_some((id, securable))
                };
                let (tables, views) = (c.catalog.tables(), c.catalog.views());
                match kind {
                    GrantKind::Table => {
                        out.extend(tables.filter_map(|t| of(t.id, t.schema, Securable::Table)));
                        out.extend(views.filter_map(|v| of(v.id, v.schema, Securable::Table)));
                    }
                    GrantKind::Sequence => {
                        let all = c.catalog.sequences();
                        out.extend(all.filter_map(|s| of(s.id, s.schema, Securable::Sequence)));
                    }
                    _ => {}
                }
            }
            Ok(out)
        }
        GrantObjects::ToCome(..) => Ok(Vec::new()),
    }
}

fn object(c: &Change, kind: GrantKind, name: &Name) -> SqlResult<(u32, Securable)> {
    let bare = name.last().map_or("", String::as_str);
    Ok(match kind {
        GrantKind::Schema => {
            let found = c.catalog.schema(c.ctx.database, bare);
            (found.ok_or_else(|| crate::session::no_schema(bare))?.id, Securable::Schema)
        }
        GrantKind::Database => match c.catalog.database(bare) {
            Some(database) => (database.id, Securable::Database),
            None => {
                return Err(SqlError::new(
                    SqlState("3D000"),
                    format!("database \"{bare}\" does not exist"),
                ));
            }
        },
        GrantKind::Type => (type_id(c, name)?, Securable::Type),
        _ => {
            let relation = c.ctx.relation(name)?;
            let Some(securable) = securable(&relation) else {
                let text = format!("\"{bare}\" is an index");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
            };
            if kind == GrantKind::Sequence && securable != Securable::Sequence {
                return Err(wrong_kind(name, "sequence"));
            }
            (relation.id(), securable)
        }
    })
}

/// ALTER DEFAULT PRIVILEGES.
pub(super) fn defaults(c: &mut Change, g: &GrantPrivileges) -> SqlResult<()> {
    let GrantObjects::ToCome(kind, owners, schemas) = &g.objects else { return Ok(()) };
    let kind = match kind {
        GrantKind::Sequence => Securable::Sequence,
        GrantKind::Schema => Securable::Schema,
        GrantKind::Type => Securable::Type,
        GrantKind::Function => Securable::Function,
        _ => Securable::Table,
    };
    if kind == Securable::Schema && !schemas.is_empty() {
        return Err(SqlError::new(
            SqlState("0LP01"),
            "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS",
        ));
    }
    let grantees = grantees(c, g)?;
    let mut owners: Vec<u32> =
        owners.iter().map(|r| oid_of_role(c, r)).collect::<SqlResult<_>>()?;
    if owners.is_empty() {
        owners.push(acting(c));
    }
    let mut places = Vec::new();
    for name in schemas {
        places.push(Some(object(c, GrantKind::Schema, &vec![name.clone()])?.0));
    }
    if schemas.is_empty() {
        places.push(None);
    }
    let wanted = wanted(c, g, kind, 0)?;
    for owner in owners {
        for schema in &places {
            default_of(c, g, (owner, *schema, kind), &grantees, wanted.whole)?;
        }
    }
    Ok(())
}

fn default_of(
    c: &mut Change,
    g: &GrantPrivileges,
    (role, schema, kind): (u32, Option<u32>, Securable),
    grantees: &[u32],
    whole: Privileges,
) -> SqlResult<()> {
    let database = c.ctx.database;
    let same = |d: &&DefaultAcl| {
        d.role == role && d.database == database && d.schema == schema && d.kind == kind
    };
    // In a schema the list comes on top of the usual one.
    let usual = || match schema {
        None => kind.default_acl(role),
        Some(_) => Vec::new(),
    };
    let known = c.catalog.default_acls().find(same).cloned();
    let mut entry = match known {
        Some(entry) => entry,
        None => DefaultAcl { id: c.new_id()?, role, database, schema, kind, acl: usual() },
    };
    for grantee in grantees {
        put(&mut entry.acl, g, *grantee, role, whole);
    }
    if entry.acl == usual() {
        c.catalog.remove_default_acl(entry.id);
    } else {
        c.catalog.put_default_acl(entry);
    }
    debug_assert!(role != PUBLIC || role == BOOTSTRAP_ROLE || schema.is_none());
    Ok(())
}
