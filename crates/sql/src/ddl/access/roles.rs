//! Roles, who owns what, and who may do what with it. Nothing is enforced: what is said is kept
//! and shown by the catalogs ([`braid_catalog::Notes`]).

use std::sync::Arc;

use braid_catalog::{
    BOOTSTRAP_ROLE, Catalog, EVERY_DATABASE, Membership, PUBLIC, Relation, Role, RoleAttributes,
    Securable, Table, change_acl, oid_of,
};
use braid_parser::{
    Access, GrantKind, GrantObjects, GrantPrivileges, Name, OwnedKind, OwnerChange, RoleChange,
    RoleName, RoleOption, SettingChange,
};
use braid_scalar::{SessionFunctions, ident_name};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::grant;
use crate::ddl::{Change, collation, user_type};
use crate::session::settings::{Settings, shown_name};

/// Runs a statement about roles; gives the command tag.
pub(crate) fn run(c: &mut Change, statement: &Access) -> SqlResult<String> {
    let tag = match statement {
        Access::CreateRole(name, options) => create(c, name, options).map(|()| "CREATE ROLE"),
        Access::AlterRole(role, change) => alter(c, role, change).map(|()| "ALTER ROLE"),
        Access::AlterDatabase(name, change) => {
            alter_database(c, name, change).map(|()| "ALTER DATABASE")
        }
        Access::DropRole(names, if_exists) => drop(c, names, *if_exists).map(|()| "DROP ROLE"),
        Access::Grant(g) => grant::privileges(c, g).map(|()| grant_tag(g)),
        Access::DefaultPrivileges(g) => grant::defaults(c, g).map(|()| "ALTER DEFAULT PRIVILEGES"),
        Access::GrantRole { roles, members, revoke, admin } => {
            membership(c, roles, members, *revoke, *admin)?;
            Ok(if *revoke { "REVOKE ROLE" } else { "GRANT ROLE" })
        }
        Access::Reassign(from, to) => reassign(c, from, to).map(|()| "REASSIGN OWNED"),
        Access::DropOwned(from, _) => drop_owned(c, from).map(|()| "DROP OWNED"),
    }?;
    c.sync();
    Ok(tag.to_string())
}

fn grant_tag(g: &GrantPrivileges) -> &'static str {
    if g.revoke { "REVOKE" } else { "GRANT" }
}

/// 42704.
pub(in crate::ddl) fn no_role(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

/// The oid of a role that a statement names; [`PUBLIC`] for all.
pub(super) fn oid_of_role(c: &Change, name: &RoleName) -> SqlResult<u32> {
    let session = &c.ctx.session;
    let name = match name {
        RoleName::Public => return Ok(PUBLIC),
        RoleName::Current => session.current_user(),
        RoleName::Session => session.session_user(),
        RoleName::Named(name) => name.clone(),
    };
    c.catalog.role_oid(&name, &session.user).ok_or_else(|| no_role(&name))
}

/// The same of a role that somebody can be.
fn single(c: &Change, name: &RoleName) -> SqlResult<u32> {
    match oid_of_role(c, name)? {
        PUBLIC => Err(no_role("public")),
        oid => Ok(oid),
    }
}

/// The role that the statement is run by.
pub(super) fn acting(c: &Change) -> u32 {
    c.catalog.role_oid(&c.ctx.session.current_user(), &c.ctx.session.user).unwrap_or(BOOTSTRAP_ROLE)
}

fn shown(c: &Change, oid: u32) -> String {
    c.catalog.role_name(oid, &c.ctx.session.user).unwrap_or_else(|| oid.to_string())
}

fn reserved(name: &str) -> SqlResult<()> {
    let error = || SqlError::new(SqlState("42939"), format!("role name \"{name}\" is reserved"));
    if name.starts_with("pg_") {
        let detail = "Role names starting with \"pg_\" are reserved.";
        return Err(error().with_detail(detail));
    }
    if matches!(name, "public" | "none") { Err(error()) } else { Ok(()) }
}

fn free_name(c: &Change, name: &str) -> SqlResult<()> {
    reserved(name)?;
    match c.catalog.role_oid(name, &c.ctx.session.user) {
        Some(_) => Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("role \"{name}\" already exists"),
        )),
        None => Ok(()),
    }
}

fn create(c: &mut Change, name: &str, options: &[RoleOption]) -> SqlResult<()> {
    free_name(c, name)?;
    let mut role = Role {
        id: c.new_id()?,
        name: name.to_string(),
        attributes: RoleAttributes::PLAIN,
        connection_limit: -1,
        valid_until: None,
        settings: Vec::new(),
        member_of: Vec::new(),
    };
    let id = role.id;
    apply(c, &mut role, options)?;
    c.catalog.put_role(role);
    c.sync();
    for option in options {
        match option {
            RoleOption::InRole(roles) => {
                membership_of(c, roles, oid_of(id), false, false)?;
            }
            RoleOption::Members(members, admin) => {
                let own = [RoleName::Named(name.to_string())];
                membership(c, &own, members, false, *admin)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Applies the options that are about the role itself.
fn apply(c: &Change, role: &mut Role, options: &[RoleOption]) -> SqlResult<()> {
    for option in options {
        match option {
            RoleOption::Attribute(word, yes) => *attribute(&mut role.attributes, word) = *yes,
            RoleOption::Password(None) | RoleOption::InRole(_) | RoleOption::Members(..) => {}
            RoleOption::Password(Some(_)) => {
                c.ctx.notice("the password is not kept: there is no authentication yet");
            }
            RoleOption::ConnectionLimit(limit) => {
                role.connection_limit =
                    i32::try_from(*limit).ok().filter(|n| *n >= -1).ok_or_else(|| {
                        let text = format!("invalid connection limit: {limit}");
                        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
                    })?;
            }
            RoleOption::ValidUntil(text) => {
                let style = c.ctx.eval.style;
                role.valid_until = match Datum::parse(text, &SqlType::TimestampTz, style)? {
                    Datum::TimestampTz(micros) => Some(micros),
                    _ => None,
                };
            }
        }
    }
    Ok(())
}

fn attribute<'a>(all: &'a mut RoleAttributes, word: &str) -> &'a mut bool {
    match word {
        "superuser" => &mut all.superuser,
        "inherit" => &mut all.inherit,
        "createrole" => &mut all.create_role,
        "createdb" => &mut all.create_db,
        "replication" => &mut all.replication,
        "bypassrls" => &mut all.bypass_rls,
        _ => &mut all.login,
    }
}

fn alter(c: &mut Change, role: &RoleName, change: &RoleChange) -> SqlResult<()> {
    // ALTER ROLE ALL SET: of nobody in particular.
    let oid = match (role, change) {
        (RoleName::Public, RoleChange::Setting(_)) => PUBLIC,
        _ => single(c, role)?,
    };
    if let RoleChange::Setting(setting) = change {
        return change_setting(c, oid, setting);
    }
    let Some(mut new) = c.catalog.role(oid).cloned() else {
        return alter_built_in(c, oid, change);
    };
    match change {
        RoleChange::Options(options) => apply(c, &mut new, options)?,
        RoleChange::Rename(name) => {
            free_name(c, name)?;
            new.name = name.clone();
        }
        RoleChange::Setting(_) => {}
        RoleChange::Members(members, add) => {
            let own = [RoleName::Named(new.name.clone())];
            return membership(c, &own, members, !*add, false);
        }
    }
    c.catalog.put_role(new);
    Ok(())
}

/// ALTER DATABASE .. SET and RESET.
fn alter_database(c: &mut Change, name: &str, change: &SettingChange) -> SqlResult<()> {
    let database = Some(name.to_string());
    change_setting(c, PUBLIC, &SettingChange { database, ..change.clone() })
}

/// Notes what sessions of a role begin with: in a database, or in all.
fn change_setting(c: &mut Change, role: u32, change: &SettingChange) -> SqlResult<()> {
    if let Some(name) = &change.name {
        // Whether there is such a setting, and it may have the value.
        let mut probe = Settings::default();
        match &change.value {
            Some(value) => probe.set(name, value, false).map(|_| ())?,
            None => probe.reset(Some(name))?,
        }
    }
    let database = match &change.database {
        None => EVERY_DATABASE,
        Some(name) => match c.catalog.database(name) {
            Some(database) => database.id,
            None => {
                let text = format!("database \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, text));
            }
        },
    };
    let changed = |settings: &mut Vec<String>| match &change.name {
        None => settings.clear(),
        Some(name) => {
            settings
                .retain(|s| s.split_once('=').is_none_or(|(n, _)| !n.eq_ignore_ascii_case(name)));
            settings
                .extend(change.value.as_ref().map(|value| format!("{}={value}", shown_name(name))));
        }
    };
    match c.catalog.role(role).cloned() {
        Some(mut own) if database == EVERY_DATABASE => {
            changed(&mut own.settings);
            c.catalog.put_role(own);
        }
        _ => c.catalog.note(database, |notes| {
            let settings = notes.settings.entry(role).or_default();
            changed(settings);
            notes.settings.retain(|_, settings| !settings.is_empty());
        }),
    }
    Ok(())
}

/// The role that is always there has all attributes; dumps of whole clusters say so.
fn alter_built_in(c: &Change, oid: u32, change: &RoleChange) -> SqlResult<()> {
    let grants =
        |o: &RoleOption| matches!(o, RoleOption::Attribute(_, true) | RoleOption::Password(_));
    match change {
        RoleChange::Options(options) if oid == BOOTSTRAP_ROLE && options.iter().all(grants) => {
            Ok(())
        }
        _ => Err(SqlError::unsupported(format!("changing the role \"{}\"", shown(c, oid)))
            .with_hint("It is always there. Make a role with CREATE ROLE.")),
    }
}

fn drop(c: &mut Change, names: &[RoleName], if_exists: bool) -> SqlResult<()> {
    for name in names {
        let oid = match oid_of_role(c, name) {
            Ok(oid) => oid,
            Err(e) if if_exists && e.state() == SqlState::UNDEFINED_OBJECT => {
                c.ctx.notice(format!("{}, skipping", e.message()));
                continue;
            }
            Err(e) => return Err(e),
        };
        let text = shown(c, oid);
        let busy = |text: &str| SqlError::new(SqlState("55006"), text.to_string());
        if oid == acting(c) {
            return Err(busy("current user cannot be dropped"));
        }
        let Some(id) = c.catalog.role(oid).map(|r| r.id) else {
            let needed =
                format!("cannot drop role {text} because it is required by the database system");
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, needed));
        };
        let lines = dependents(&c.catalog, oid);
        if !lines.is_empty() {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("role \"{text}\" cannot be dropped because some objects depend on it"),
            )
            .with_detail(lines.join("\n")));
        }
        c.catalog.remove_role(id);
    }
    Ok(())
}

/// What keeps a role from being dropped, in lines.
fn dependents(catalog: &Catalog, oid: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for id in catalog.users_of_role(oid) {
        let Some(what) = described(catalog, id) else { continue };
        let owns = catalog.notes(id).is_some_and(|n| n.owner == Some(oid));
        let how = if owns { "owner of" } else { "privileges for" };
        lines.push(format!("{how} {what}"));
    }
    lines
}

/// `table t`, `schema s`.
fn described(catalog: &Catalog, id: u32) -> Option<String> {
    if let Some(relation) = catalog.relation_by_id(id) {
        let (schema, name) = catalog.qualified_name(id)?;
        let name = if schema == "public" { name } else { format!("{schema}.{name}") };
        return Some(format!("{} {name}", relation.kind()));
    }
    if let Some(schema) = catalog.schema_by_id(id) {
        return Some(format!("schema {}", schema.name));
    }
    if let Some(ty) = catalog.user_type(id) {
        return Some(format!("type {}", ty.name));
    }
    if let Some(f) = catalog.function(id) {
        return Some(format!("function {}", f.shown()));
    }
    catalog.databases().find(|d| d.id == id).map(|d| format!("database {}", d.name))
}

fn membership(
    c: &mut Change,
    roles: &[RoleName],
    members: &[RoleName],
    revoke: bool,
    admin: bool,
) -> SqlResult<()> {
    for member in members {
        let member = single(c, member)?;
        membership_of(c, roles, member, revoke, admin)?;
    }
    Ok(())
}

fn membership_of(
    c: &mut Change,
    roles: &[RoleName],
    member: u32,
    revoke: bool,
    admin: bool,
) -> SqlResult<()> {
    for role in roles {
        let role = single(c, role)?;
        let (name, of) = (shown(c, member), shown(c, role));
        let Some(mut new) = c.catalog.role(member).cloned() else {
            return Err(SqlError::unsupported(format!("making \"{name}\" a member of a role")));
        };
        let found = new.member_of.iter().position(|m| m.role == role);
        match (found, revoke) {
            (None, true) => {
                c.ctx.warn(format!("role \"{name}\" is not a member of role \"{of}\""));
                continue;
            }
            (Some(at), true) if admin => new.member_of[at].admin = false,
            (Some(at), true) => drop_at(&mut new.member_of, at),
            (Some(at), false) if admin && !new.member_of[at].admin => {
                new.member_of[at].admin = true;
            }
            (Some(_), false) => {
                c.ctx.notice(format!("role \"{name}\" is already a member of role \"{of}\""));
                continue;
            }
            (None, false) => {
                if c.catalog.is_member(role, member) {
                    return Err(SqlError::new(
                        SqlState("0LP01"),
                        format!("role \"{of}\" is a member of role \"{name}\""),
                    ));
                }
                let grantor = acting(c);
                new.member_of.push(Membership { role, grantor, admin });
            }
        }
        c.catalog.put_role(new);
    }
    Ok(())
}

fn drop_at(list: &mut Vec<Membership>, at: usize) {
    list.remove(at);
}

fn reassign(c: &mut Change, from: &[RoleName], to: &RoleName) -> SqlResult<()> {
    let to = single(c, to)?;
    for name in from {
        let from = single(c, name)?;
        for id in c.catalog.users_of_role(from) {
            if c.catalog.owner(id) == from {
                give(&mut c.catalog, id, to);
            }
        }
    }
    Ok(())
}

fn drop_owned(c: &mut Change, from: &[RoleName]) -> SqlResult<()> {
    for name in from {
        let role = single(c, name)?;
        let users = c.catalog.users_of_role(role);
        if users.iter().any(|id| c.catalog.owner(*id) == role) {
            return Err(SqlError::unsupported("DROP OWNED BY a role that owns objects")
                .with_hint("Drop them, or give them away with REASSIGN OWNED."));
        }
        for id in users {
            c.catalog.note(id, |notes| {
                let others = |g: &braid_catalog::Grant| g.grantee != role;
                notes.acl.iter_mut().for_each(|acl| acl.retain(others));
                notes.columns.values_mut().for_each(|acl| acl.retain(others));
                notes.columns.retain(|_, acl| !acl.is_empty());
            });
        }
        let altered = c.catalog.default_acls().filter(|d| d.role == role);
        let altered: Vec<u32> = altered.map(|d| d.id).collect();
        altered.into_iter().for_each(|id| c.catalog.remove_default_acl(id));
    }
    Ok(())
}

/// Makes a role the owner; what the old one was granted is the new one's.
fn give(catalog: &mut Catalog, id: u32, to: u32) {
    let (from, plain) = (catalog.owner(id), catalog.owner_of_new(id));
    let acl = catalog.acl(id).map(|acl| {
        let mut new = Vec::new();
        for mut grant in acl {
            let change = |oid: &mut u32| {
                if *oid == from {
                    *oid = to;
                }
            };
            change(&mut grant.grantee);
            change(&mut grant.grantor);
            change_acl(&mut new, grant, false);
        }
        new
    });
    catalog.note(id, |notes| {
        notes.owner = (to != plain).then_some(to);
        notes.acl = acl;
    });
}

/// Makes a role the owner of an object that was made just now.
pub(in crate::ddl) fn give_new(c: &mut Change, id: u32, owner: &str) -> SqlResult<()> {
    let owner = single(c, &RoleName::Named(owner.to_string()))?;
    give(&mut c.catalog, id, owner);
    Ok(())
}

/// OWNER TO as one of several changes of a table.
pub(in crate::ddl) fn give_table(
    c: &mut Change,
    t: &Arc<Table>,
    owner: &ast::Owner,
) -> SqlResult<()> {
    let owner = owner_of(c, owner)?;
    let sequences = t.columns.iter().filter_map(|col| col.sequence);
    for id in std::iter::once(t.id).chain(sequences) {
        give(&mut c.catalog, id, owner);
    }
    Ok(())
}

/// The same of a partition.
pub(in crate::ddl) fn give_partition(c: &mut Change, id: u32, owner: &ast::Owner) -> SqlResult<()> {
    let owner = owner_of(c, owner)?;
    give(&mut c.catalog, id, owner);
    Ok(())
}

/// The same of a function.
pub(in crate::ddl) fn give_function(c: &mut Change, id: u32, owner: &RoleName) -> SqlResult<()> {
    let owner = single(c, owner)?;
    give(&mut c.catalog, id, owner);
    Ok(())
}

fn owner_of(c: &Change, owner: &ast::Owner) -> SqlResult<u32> {
    let owner = match owner {
        ast::Owner::Ident(name) => RoleName::Named(ident_name(name)),
        ast::Owner::SessionUser => RoleName::Session,
        ast::Owner::CurrentRole | ast::Owner::CurrentUser => RoleName::Current,
    };
    single(c, &owner)
}

/// ALTER .. OWNER TO.
pub(crate) fn change_owner(c: &mut Change, o: &OwnerChange) -> SqlResult<String> {
    let (kind, ids) = match owned(c, o) {
        Ok(found) => found,
        Err(e) if o.if_exists && e.state() == SqlState::UNDEFINED_TABLE => {
            c.ctx.notice(format!("{}, skipping", e.message()));
            return Ok(format!("ALTER {}", kind_of(o.kind).to_uppercase()));
        }
        Err(e) => return Err(e),
    };
    let owner = single(c, &o.owner)?;
    for id in ids {
        give(&mut c.catalog, id, owner);
    }
    c.sync();
    Ok(format!("ALTER {}", kind.to_uppercase()))
}

fn kind_of(kind: OwnedKind) -> &'static str {
    match kind {
        OwnedKind::Relation(kind) | OwnedKind::Type(kind) => kind,
        OwnedKind::Schema => "schema",
        OwnedKind::Database => "database",
        OwnedKind::Collation => "collation",
    }
}

/// The objects whose owner an ALTER changes.
fn owned(c: &Change, o: &OwnerChange) -> SqlResult<(&'static str, Vec<u32>)> {
    let kind = kind_of(o.kind);
    let ids = match o.kind {
        OwnedKind::Relation(wanted) => owned_relation(c, &o.name, wanted)?,
        OwnedKind::Schema | OwnedKind::Database => {
            let wanted = if kind == "schema" { GrantKind::Schema } else { GrantKind::Database };
            let objects = GrantObjects::Named(wanted, vec![o.name.clone()]);
            grant::objects(c, &objects)?.into_iter().map(|(id, _)| id).collect()
        }
        OwnedKind::Type(_) => vec![type_id(c, &o.name)?],
        OwnedKind::Collation => vec![collation::named(c, &o.name)?.id],
    };
    Ok((kind, ids))
}

/// Id of a type of a user.
pub(in crate::ddl) fn type_id(c: &Change, name: &Name) -> SqlResult<u32> {
    match c.ctx.user_type(name)? {
        Some(ty) => Ok(ty.id),
        None => Err(user_type::no_type(name)),
    }
}

fn owned_relation(c: &Change, name: &Name, wanted: &str) -> SqlResult<Vec<u32>> {
    let relation = c.ctx.relation(name)?;
    let found = relation.kind();
    if wanted != found && wanted != "table" {
        return Err(wrong_kind(name, wanted));
    }
    Ok(match &relation {
        Relation::Index(..) => {
            let own = name.last().map_or("", String::as_str);
            c.ctx.warn(format!("cannot change owner of index \"{own}\""));
            Vec::new()
        }
        Relation::Sequence(s) => match s.owned_by.and_then(|(t, _)| c.catalog.table(t)) {
            Some(table) => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot change owner of sequence \"{}\"", s.name),
                )
                .with_detail(format!(
                    "Sequence \"{}\" is linked to table \"{}\".",
                    s.name, table.name
                )));
            }
            None => vec![s.id],
        },
        Relation::View(v) => vec![v.id],
        Relation::Partition(w) => vec![w.shown_id()],
        Relation::Table(t) => {
            let sequences = t.columns.iter().filter_map(|col| col.sequence);
            std::iter::once(t.id).chain(sequences).collect()
        }
    })
}

/// 42809: a relation that is of another kind than a statement says.
pub(in crate::ddl) fn wrong_kind(name: &Name, wanted: &str) -> SqlError {
    let own = name.last().map_or("", String::as_str);
    let article = if wanted.starts_with('i') { "an" } else { "a" };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{own}\" is not {article} {wanted}"))
}

/// Notes who owns what a change has made, and who may use it.
pub(in crate::ddl) fn note_new_objects(c: &mut Change, old: &Catalog) {
    let role = acting(c);
    if role == BOOTSTRAP_ROLE && c.catalog.default_acls().next().is_none() {
        return;
    }
    for (id, kind, database, schema) in c.catalog.objects_beyond(old) {
        let acl = c.catalog.acl_of_new(role, database, schema, kind);
        let plain = c.catalog.owner_of_new(id);
        c.catalog.note(id, |notes| {
            if notes.owner.is_none() && role != plain {
                notes.owner = Some(role);
            }
            notes.acl = notes.acl.take().or(acl);
        });
    }
    c.sync();
}

/// The kind of privileges that a relation has; an index has none.
pub(super) fn securable(relation: &Relation) -> Option<Securable> {
    match relation {
        Relation::Table(_) | Relation::View(_) | Relation::Partition(_) => Some(Securable::Table),
        Relation::Sequence(_) => Some(Securable::Sequence),
        Relation::Index(..) => None,
    }
}
