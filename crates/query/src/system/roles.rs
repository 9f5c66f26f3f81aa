//! What the catalogs show of roles, of who owns what, and of who may do what.

use braid_catalog::{
    BOOTSTRAP_NAME, BOOTSTRAP_ROLE, EVERY_DATABASE, Grant, PREDEFINED_ROLES, PUBLIC, Privileges,
    RoleAttributes, Securable, oid_of,
};
use braid_types::{ArrayValue, Datum, SqlResult, SqlType};

use super::relations::{acl_of_system, listed};
use super::sql_functions;
use super::table::{Rows, SystemTable, View, flag, object, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

fn made(layout: &'static str, rows: Rows) -> Option<SystemTable> {
    Some(SystemTable { layout, rows, oid: 0 })
}

/// A table of `pg_catalog` about roles.
pub fn table(name: &str) -> Option<SystemTable> {
    match name {
        "pg_roles" => made(
            "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, \
             rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolconnlimit int4, \
             rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, \
             rolconfig text[], oid oid",
            pg_roles,
        ),
        "pg_authid" => made(
            "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, \
             rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolbypassrls bool, \
             rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz",
            pg_authid,
        ),
        "pg_user" | "pg_shadow" => made(
            "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, \
             usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]",
            pg_user,
        ),
        "pg_group" => made("groname name, grosysid oid, grolist oid[]", pg_group),
        "pg_auth_members" => {
            made("roleid oid, member oid, grantor oid, admin_option bool", pg_auth_members)
        }
        "pg_default_acl" => made(
            "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl aclitem[]",
            pg_default_acl,
        ),
        "pg_db_role_setting" => {
            made("setdatabase oid, setrole oid, setconfig text[]", pg_db_role_setting)
        }
        _ => None,
    }
}

/// A table of `information_schema` about privileges.
pub(super) fn information_table(name: &str) -> Option<SystemTable> {
    match name {
        "table_privileges" | "role_table_grants" => made(
            "grantor name, grantee name, table_catalog name, table_schema name, \
             table_name name, privilege_type text, is_grantable yes_or_no, \
             with_hierarchy yes_or_no",
            table_privileges,
        ),
        "column_privileges" | "role_column_grants" => made(
            "grantor name, grantee name, table_catalog name, table_schema name, \
             table_name name, column_name name, privilege_type text, is_grantable yes_or_no",
            column_privileges,
        ),
        "usage_privileges" | "role_usage_grants" => made(
            "grantor name, grantee name, object_catalog name, object_schema name, \
             object_name name, object_type text, privilege_type text, is_grantable yes_or_no",
            usage_privileges,
        ),
        "routine_privileges" | "role_routine_grants" => made(
            "grantor name, grantee name, specific_catalog name, specific_schema name, \
             specific_name name, routine_catalog name, routine_schema name, routine_name name, \
             privilege_type text, is_grantable yes_or_no",
            routine_privileges,
        ),
        "administrable_role_authorizations" => {
            made("grantee name, role_name name, is_grantable yes_or_no", |v| {
                let mut rows = applicable_roles(v)?;
                rows.retain(|row| matches!(row.last(), Some(Datum::Text(may)) if **may == *"YES"));
                Ok(rows)
            })
        }
        "enabled_roles" => made("role_name name", |v| {
            Ok(all(v).into_iter().map(|role| vec![text(role.name)]).collect())
        }),
        "applicable_roles" => {
            made("grantee name, role_name name, is_grantable yes_or_no", applicable_roles)
        }
        _ => None,
    }
}

/// A role as the catalogs show it.
struct Shown<'a> {
    oid: u32,
    name: String,
    attributes: RoleAttributes,
    limit: i32,
    until: Option<i64>,
    settings: &'a [String],
}

/// All roles, by oid.
fn all<'a>(v: &View<'a>) -> Vec<Shown<'a>> {
    let built_in = |oid, name: &str, attributes| Shown {
        oid,
        name: name.to_string(),
        attributes,
        limit: -1,
        until: None,
        settings: v.catalog.settings_everywhere(oid),
    };
    let first = v.catalog.role_name(BOOTSTRAP_ROLE, v.user);
    let first = first.as_deref().unwrap_or(BOOTSTRAP_NAME);
    let mut out = vec![built_in(BOOTSTRAP_ROLE, first, RoleAttributes::ALL)];
    let predefined = PREDEFINED_ROLES.iter();
    out.extend(predefined.map(|(oid, name)| built_in(*oid, name, RoleAttributes::PLAIN)));
    out.extend(v.catalog.roles().map(|r| Shown {
        oid: oid_of(r.id),
        name: r.name.clone(),
        attributes: r.attributes,
        limit: r.connection_limit,
        until: r.valid_until,
        settings: &r.settings,
    }));
    out
}

fn texts(items: &[String]) -> Datum {
    if items.is_empty() {
        return Datum::Null;
    }
    let items = items.iter().map(|item| text(item.as_str())).collect();
    Datum::Array(ArrayValue::list(SqlType::Text, items).into())
}

fn until(role: &Shown<'_>) -> Datum {
    role.until.map_or(Datum::Null, Datum::TimestampTz)
}

fn pg_roles(v: &View<'_>) -> Made {
    let row = |role: Shown<'_>| {
        let a = role.attributes;
        vec![
            text(role.name.as_str()),
            flag(a.superuser),
            flag(a.inherit),
            flag(a.create_role),
            flag(a.create_db),
            flag(a.login),
            flag(a.replication),
            Datum::Int4(role.limit),
            text("********"),
            until(&role),
            flag(a.bypass_rls),
            texts(role.settings),
            Datum::Oid(role.oid),
        ]
    };
    Ok(all(v).into_iter().map(row).collect())
}

fn pg_authid(v: &View<'_>) -> Made {
    let row = |role: Shown<'_>| {
        let a = role.attributes;
        vec![
            Datum::Oid(role.oid),
            text(role.name.as_str()),
            flag(a.superuser),
            flag(a.inherit),
            flag(a.create_role),
            flag(a.create_db),
            flag(a.login),
            flag(a.replication),
            flag(a.bypass_rls),
            Datum::Int4(role.limit),
            Datum::Null,
            until(&role),
        ]
    };
    Ok(all(v).into_iter().map(row).collect())
}

fn pg_user(v: &View<'_>) -> Made {
    let row = |role: Shown<'_>| {
        let a = role.attributes;
        vec![
            text(role.name.as_str()),
            Datum::Oid(role.oid),
            flag(a.create_db),
            flag(a.superuser),
            flag(a.replication),
            flag(a.bypass_rls),
            text("********"),
            until(&role),
            texts(role.settings),
        ]
    };
    Ok(all(v).into_iter().filter(|role| role.attributes.login).map(row).collect())
}

fn pg_group(v: &View<'_>) -> Made {
    let row = |role: Shown<'_>| {
        let members = v.catalog.roles().filter(|r| r.member_of.iter().any(|m| m.role == role.oid));
        let members = members.map(|r| object(r.id)).collect();
        let list = Datum::Array(ArrayValue::list(SqlType::Oid, members).into());
        vec![text(role.name), Datum::Oid(role.oid), list]
    };
    Ok(all(v).into_iter().filter(|role| !role.attributes.login).map(row).collect())
}

fn pg_auth_members(v: &View<'_>) -> Made {
    let rows = v.catalog.roles().flat_map(|role| {
        role.member_of.iter().map(|m| {
            let (of, grantor) = (Datum::Oid(m.role), Datum::Oid(m.grantor));
            vec![of, object(role.id), grantor, flag(m.admin)]
        })
    });
    Ok(rows.collect())
}

fn pg_default_acl(v: &View<'_>) -> Made {
    let mine = v.catalog.default_acls().filter(|d| d.database == v.database_id);
    let rows = mine.map(|d| {
        vec![
            object(d.id),
            Datum::Oid(d.role),
            Datum::Oid(d.schema.map_or(0, oid_of)),
            text(d.kind.letter()),
            items(v, &d.acl),
        ]
    });
    Ok(rows.collect())
}

fn pg_db_role_setting(v: &View<'_>) -> Made {
    let set = v.catalog.roles().filter(|r| !r.settings.is_empty());
    let set = set.map(|r| vec![Datum::Oid(0), object(r.id), texts(&r.settings)]);
    let noted = v.catalog.noted_settings().map(|(database, role, all)| {
        let database = if database == EVERY_DATABASE { Datum::Oid(0) } else { object(database) };
        vec![database, Datum::Oid(role), texts(all)]
    });
    Ok(set.chain(noted).collect())
}

fn items(v: &View<'_>, acl: &[Grant]) -> Datum {
    let items = v.catalog.acl_items(acl, v.user).into_iter().map(Datum::text).collect();
    Datum::Array(ArrayValue::list(SqlType::Text, items).into())
}

/// Oid of the owner of an object.
pub(super) fn owner(v: &View<'_>, id: u32) -> Datum {
    Datum::Oid(v.catalog.owner(id))
}

/// Its name.
pub(super) fn owner_name(v: &View<'_>, id: u32) -> Datum {
    role_name(v, v.catalog.owner(id))
}

/// The name of a role by its oid.
pub(super) fn role_name(v: &View<'_>, role: u32) -> Datum {
    v.catalog.role_name(role, v.user).map_or(Datum::Null, Datum::text)
}

/// What `relacl` and its like say of an object.
pub(super) fn acl(v: &View<'_>, id: u32) -> Datum {
    v.catalog.acl(id).map_or(Datum::Null, |acl| items(v, &acl))
}

/// What `attacl` says of a column.
pub(super) fn column_acl(v: &View<'_>, id: u32, column: u32) -> Datum {
    let list = v.catalog.notes(id).and_then(|n| n.columns.get(&column));
    list.map_or(Datum::Null, |acl| items(v, acl))
}

/// One privilege of one role: grantor, grantee, name, YES or NO.
fn lines(v: &View<'_>, acl: &[Grant], of: Privileges) -> Vec<[Datum; 4]> {
    let name = |oid: u32| match oid {
        PUBLIC => text("PUBLIC"),
        oid => v.catalog.role_name(oid, v.user).map_or(Datum::Null, Datum::text),
    };
    let mut out = Vec::new();
    for grant in acl {
        let kept = Privileges(grant.privileges.0 & of.0);
        for privilege in kept.names() {
            let own = grant.grantee != PUBLIC
                && (v.catalog.is_superuser(grant.grantee) || grant.grantee == grant.grantor);
            let named = Privileges::named(privilege).unwrap_or(Privileges::NONE);
            let grantable = own || grant.grantable.has(named);
            let yes = text(if grantable { "YES" } else { "NO" });
            out.push([name(grant.grantor), name(grant.grantee), text(privilege), yes]);
        }
    }
    out
}

/// A row about a grant: who to whom, on what, what, and whether it may be given on.
fn granted([grantor, grantee, privilege, grantable]: [Datum; 4], place: &[Datum]) -> Vec<Datum> {
    let mut row = vec![grantor, grantee];
    row.extend_from_slice(place);
    row.extend([privilege, grantable]);
    row
}

/// A table or a view, what was granted on it, and its numbered columns.
struct Granted<'a> {
    /// Its id; none: it is one of the system's.
    id: Option<u32>,
    schema: &'a str,
    name: &'a str,
    acl: Vec<Grant>,
    columns: Vec<(u32, &'a str)>,
}

fn relations<'a>(v: &View<'a>) -> Vec<Granted<'a>> {
    let mut out = Vec::new();
    for (schema, t) in v.tables() {
        let columns = t.visible_columns().map(|c| (c.id, c.name.as_str())).collect();
        let acl = whole(v, t.id, Securable::Table);
        out.push(Granted { id: Some(t.id), schema: &schema.name, name: &t.name, acl, columns });
    }
    for view in v.catalog.views() {
        if let Some(schema) = v.schema(view.schema) {
            let names = view.columns.iter().map(|(name, _)| name.as_str());
            let columns = (1..).zip(names).collect();
            let (id, acl) = (Some(view.id), whole(v, view.id, Securable::Table));
            out.push(Granted { id, schema: &schema.name, name: &view.name, acl, columns });
        }
    }
    out.extend(listed().iter().map(|of| Granted {
        id: None,
        schema: of.relation.schema,
        name: of.relation.name,
        acl: acl_of_system().to_vec(),
        columns: (1..).zip(of.columns.iter().map(|column| column.name)).collect(),
    }));
    out
}

fn whole(v: &View<'_>, id: u32, kind: Securable) -> Vec<Grant> {
    v.catalog.acl(id).unwrap_or_else(|| kind.default_acl(v.catalog.owner(id)))
}

fn table_privileges(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for of in relations(v) {
        for line in lines(v, &of.acl, Securable::Table.privileges()) {
            let hierarchy = match &line[2] {
                Datum::Text(name) if **name == *"SELECT" => text("YES"),
                _ => text("NO"),
            };
            let place = [v.database, of.schema, of.name].map(text);
            let mut row = granted(line, &place);
            row.push(hierarchy);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn column_privileges(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for of in relations(v) {
        for (number, column) in of.columns {
            let mut all = of.acl.clone();
            let notes = of.id.and_then(|id| v.catalog.notes(id));
            let own = notes.and_then(|n| n.columns.get(&number));
            for grant in own.into_iter().flatten() {
                braid_catalog::change_acl(&mut all, *grant, false);
            }
            for line in lines(v, &all, Securable::Column.privileges()) {
                let place = [v.database, of.schema, of.name, column].map(text);
                rows.push(granted(line, &place));
            }
        }
    }
    Ok(rows)
}

fn routine_privileges(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for (schema, f) in sql_functions::all(v) {
        let acl = whole(v, f.id, Securable::Function);
        for line in lines(v, &acl, Securable::Function.privileges()) {
            let names = [text(v.database), text(schema), sql_functions::specific_name(f)];
            let place: Vec<Datum> = names
                .into_iter()
                .chain([text(v.database), text(schema), text(f.name.as_str())])
                .collect();
            rows.push(granted(line, &place));
        }
    }
    Ok(rows)
}

fn usage_privileges(v: &View<'_>) -> Made {
    let mut objects: Vec<(u32, u32, &str, Securable, &str)> = Vec::new();
    for s in v.catalog.sequences() {
        objects.push((s.id, s.schema, s.name.as_str(), Securable::Sequence, "SEQUENCE"));
    }
    for t in v.catalog.user_types() {
        if matches!(t.kind, braid_catalog::TypeKind::Domain(_)) {
            objects.push((t.id, t.schema, t.name.as_str(), Securable::Type, "DOMAIN"));
        }
    }
    let mut rows = Vec::new();
    for (id, schema, name, kind, shown) in objects {
        let Some(schema) = v.schema(schema) else { continue };
        let acl = whole(v, id, kind);
        for line in lines(v, &acl, Privileges::of("U")) {
            let place = [text(v.database), text(schema.name.as_str()), text(name), text(shown)];
            rows.push(granted(line, &place));
        }
    }
    Ok(rows)
}

fn applicable_roles(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    for role in v.catalog.roles() {
        for m in &role.member_of {
            let of = v.catalog.role_name(m.role, v.user).map_or(Datum::Null, Datum::text);
            let yes = text(if m.admin { "YES" } else { "NO" });
            rows.push(vec![text(role.name.as_str()), of, yes]);
        }
    }
    Ok(rows)
}
