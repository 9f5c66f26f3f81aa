//! Roles, and what is noted about objects that nobody needs to run a statement: who owns them, who
//! may do what with them, what is said about them.
//!
//! ```text
//!   Role  { id, name, .. member_of }          an object as others, of the whole cluster
//!   Notes { id of a table, owner, acl, .. }   beside the object's descriptor: GRANT and COMMENT
//!                                             make no plan stale
//!   DefaultAcl { role, schema, kind, acl }    ALTER DEFAULT PRIVILEGES
//! ```
//! Roles are named by oid wherever they are stored. The names behind them are found here and
//! nowhere else: [`Catalog::role_oid`], [`Catalog::role_name`]. Nothing is enforced yet: who wants
//! to know whether a role may do something asks [`Catalog::may`].
//!
//! The role of oid 10 owns what was there first and may do everything. Who connects by a name that
//! no role has acts as it, and sees it under that name.

use std::collections::BTreeMap;
use std::fmt::Write;

use braid_types::{PRIVILEGES, quote_ident};
use serde::{Deserialize, Serialize};

use crate::extensions::Extensions;
use crate::snapshot::Catalog;
use crate::{id_of_oid, oid_of};

/// Oid of the role that is always there.
pub const BOOTSTRAP_ROLE: u32 = 10;
/// Its name, unless somebody is connected by another that no role has.
pub const BOOTSTRAP_NAME: &str = "root";
/// Stands for everybody in a list of privileges.
pub const PUBLIC: u32 = 0;
/// Owner of the schema `public`: whoever owns the database.
const DATABASE_OWNER: u32 = 6171;

/// Roles that PostgreSQL has from the start beside the first one, by oid.
pub const PREDEFINED_ROLES: [(u32, &str); 12] = [
    (3373, "pg_monitor"),
    (3374, "pg_read_all_settings"),
    (3375, "pg_read_all_stats"),
    (3377, "pg_stat_scan_tables"),
    (4200, "pg_signal_backend"),
    (4544, "pg_checkpoint"),
    (4569, "pg_read_server_files"),
    (4570, "pg_write_server_files"),
    (4571, "pg_execute_server_program"),
    (DATABASE_OWNER, "pg_database_owner"),
    (6181, "pg_read_all_data"),
    (6182, "pg_write_all_data"),
];

/// A role: a user, a group, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Object id.
    pub id: u32,
    /// Name, unique in the cluster.
    pub name: String,
    /// What it may be.
    pub attributes: RoleAttributes,
    /// CONNECTION LIMIT; -1: none.
    pub connection_limit: i32,
    /// VALID UNTIL, in microseconds since 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
    /// `ALTER ROLE .. SET`: `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Roles that it is a member of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member_of: Vec<Membership>,
}

/// The yes and no of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleAttributes {
    /// SUPERUSER.
    pub superuser: bool,
    /// INHERIT.
    pub inherit: bool,
    /// CREATEROLE.
    pub create_role: bool,
    /// CREATEDB.
    pub create_db: bool,
    /// LOGIN.
    pub login: bool,
    /// REPLICATION.
    pub replication: bool,
    /// BYPASSRLS.
    pub bypass_rls: bool,
}

impl RoleAttributes {
    /// Of a role about which nothing is said.
    pub const PLAIN: RoleAttributes = RoleAttributes {
        superuser: false,
        inherit: true,
        create_role: false,
        create_db: false,
        login: false,
        replication: false,
        bypass_rls: false,
    };
    /// Of the role that is always there.
    pub const ALL: RoleAttributes = RoleAttributes {
        superuser: true,
        inherit: true,
        create_role: true,
        create_db: true,
        login: true,
        replication: true,
        bypass_rls: true,
    };
}

/// Being a member of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Oid of the role.
    pub role: u32,
    /// Oid of who granted it.
    pub grantor: u32,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges(pub u32);

impl Privileges {
    /// None.
    pub const NONE: Privileges = Privileges(0);

    /// Those of the letters.
    pub fn of(letters: &str) -> Privileges {
        let bit = |c| PRIVILEGES.iter().position(|(letter, _)| *letter == c);
        Privileges(letters.chars().filter_map(bit).fold(0, |all, at| all | 1 << at))
    }

    /// The one of a name, in any case.
    pub fn named(name: &str) -> Option<Privileges> {
        let name = if name.eq_ignore_ascii_case("TEMP") { "TEMPORARY" } else { name };
        let at = PRIVILEGES.iter().position(|(_, n)| n.eq_ignore_ascii_case(name))?;
        Some(Privileges(1 << at))
    }

    /// Names of all in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = PRIVILEGES.iter().enumerate();
        all.filter(move |(at, _)| self.0 & (1 << at) != 0).map(|(_, (_, name))| *name)
    }

    /// Whether all of the others are in it.
    pub fn has(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Without those.
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }
}

/// What one role was granted by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Oid of the role; [`PUBLIC`] for all.
    pub grantee: u32,
    /// Oid of who granted it.
    pub grantor: u32,
    /// What it may do.
    pub privileges: Privileges,
    /// What it may grant to others.
    #[serde(default)]
    pub grantable: Privileges,
}

/// Kinds of objects that have privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Securable {
    /// Tables and views.
    Table,
    /// Columns.
    Column,
    /// Sequences.
    Sequence,
    /// Databases.
    Database,
    /// Schemas.
    Schema,
    /// Types and domains.
    Type,
    /// Functions.
    Function,
}

impl Securable {
    /// All that can be granted on it.
    pub fn privileges(self) -> Privileges {
        Privileges::of(match self {
            Securable::Table => "arwdDxt",
            Securable::Column => "arwx",
            Securable::Sequence => "rwU",
            Securable::Database => "CTc",
            Securable::Schema => "UC",
            Securable::Type => "U",
            Securable::Function => "X",
        })
    }

    /// What everybody may do unless it is revoked.
    pub fn public(self) -> Privileges {
        Privileges::of(match self {
            Securable::Database => "Tc",
            Securable::Type => "U",
            Securable::Function => "X",
            _ => "",
        })
    }

    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Securable::Table => "table",
            Securable::Column => "column",
            Securable::Sequence => "sequence",
            Securable::Database => "database",
            Securable::Schema => "schema",
            Securable::Type => "type",
            Securable::Function => "function",
        }
    }

    /// The kind behind a letter of `acldefault` and `pg_default_acl`.
    pub fn of_letter(letter: &str) -> Option<Securable> {
        Some(match letter {
            "r" => Securable::Table,
            "c" => Securable::Column,
            "S" | "s" => Securable::Sequence,
            "d" => Securable::Database,
            "n" => Securable::Schema,
            "T" => Securable::Type,
            "f" => Securable::Function,
            _ => return None,
        })
    }

    /// Its letter in `pg_default_acl`.
    pub fn letter(self) -> &'static str {
        match self {
            Securable::Table => "r",
            Securable::Column => "c",
            Securable::Sequence => "S",
            Securable::Database => "d",
            Securable::Schema => "n",
            Securable::Type => "T",
            Securable::Function => "f",
        }
    }

    /// What is granted on an object of which nothing is said.
    pub fn default_acl(self, owner: u32) -> Vec<Grant> {
        let grant = |grantee, privileges| Grant {
            grantee,
            grantor: owner,
            privileges,
            grantable: Privileges::NONE,
        };
        let public = Some(self.public()).filter(|p| *p != Privileges::NONE);
        let own = (self != Securable::Column).then(|| grant(owner, self.privileges()));
        public.map(|p| grant(PUBLIC, p)).into_iter().chain(own).collect()
    }
}

/// What is noted about an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Id of the object.
    pub id: u32,
    /// Oid of its owner; none: of the bootstrap role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
    /// Who may do what; none: as [`Securable::default_acl`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<Vec<Grant>>,
    /// The same of columns, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<u32, Vec<Grant>>,
    /// COMMENT ON, of objects whose descriptor does not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Comments on columns of a view, by their numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub column_comments: BTreeMap<u32, String>,
    /// Comments on its constraints, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constraints: BTreeMap<String, String>,
    /// Extensions of a database.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: Extensions,
    /// What sessions in a database begin with, by the oid of the role, [`PUBLIC`] for all:
    /// `name=value`. Noted under [`EVERY_DATABASE`]: in all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<u32, Vec<String>>,
}

/// The id under which settings for all databases are noted.
pub const EVERY_DATABASE: u32 = 0;

impl Notes {
    /// Whether nothing is noted.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Notes { id: self.id, ..Notes::default() }
    }
}

/// What is granted on objects that a role will make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultAcl {
    /// Object id.
    pub id: u32,
    /// Oid of the role.
    pub role: u32,
    /// Id of the database.
    pub database: u32,
    /// Id of the schema in which it holds; `None`: in all.
    pub schema: Option<u32>,
    /// Of which objects.
    #[serde(rename = "on")]
    pub kind: Securable,
    /// Instead of the default; within a schema, in addition to it.
    pub acl: Vec<Grant>,
}

/// Changes a list of privileges: adds, or takes away, of one role what another grants.
pub fn change_acl(acl: &mut Vec<Grant>, change: Grant, revoke: bool) {
    let same = |g: &Grant| g.grantee == change.grantee && g.grantor == change.grantor;
    match (acl.iter_mut().find(|g| same(g)), revoke) {
        (Some(found), false) => {
            found.privileges = found.privileges.with(change.privileges);
            found.grantable = found.grantable.with(change.grantable);
        }
        (None, false) => acl.push(change),
        (Some(found), true) => {
            found.privileges = found.privileges.without(change.privileges);
            found.grantable = found.grantable.without(change.grantable.with(change.privileges));
        }
        (None, true) => {}
    }
    acl.retain(|g| g.privileges != Privileges::NONE);
}

impl Catalog {
    /// Roles by id.
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        self.roles.values().map(|r| &**r)
    }

    /// A role by its oid; not those that are always there.
    pub fn role(&self, oid: u32) -> Option<&Role> {
        self.roles.get(&id_of_oid(oid)?).map(|r| &**r)
    }

    /// A role that somebody made, by name.
    pub fn role_named(&self, name: &str) -> Option<&Role> {
        self.roles().find(|r| r.name == name)
    }

    /// The oid of a role; `user` is who is connected.
    pub fn role_oid(&self, name: &str, user: &str) -> Option<u32> {
        if let Some(role) = self.role_named(name) {
            return Some(oid_of(role.id));
        }
        let predefined = PREDEFINED_ROLES.iter().find(|(_, n)| *n == name).map(|(oid, _)| *oid);
        predefined.or((name == BOOTSTRAP_NAME || name == user).then_some(BOOTSTRAP_ROLE))
    }

    /// The name of a role; `user` is who is connected.
    pub fn role_name(&self, oid: u32, user: &str) -> Option<String> {
        if let Some(role) = self.role(oid) {
            return Some(role.name.clone());
        }
        if oid == BOOTSTRAP_ROLE {
            let own = self.role_named(user).is_none() && !user.is_empty();
            return Some(if own { user } else { BOOTSTRAP_NAME }.to_string());
        }
        let predefined = PREDEFINED_ROLES.iter().find(|(o, _)| *o == oid);
        predefined.map(|(_, name)| name.to_string())
    }

    /// The role that somebody acts as who is connected by a name.
    pub fn acting_role(&self, user: &str) -> u32 {
        self.role_oid(user, user).unwrap_or(BOOTSTRAP_ROLE)
    }

    /// Whether a role may do everything.
    pub fn is_superuser(&self, oid: u32) -> bool {
        oid == BOOTSTRAP_ROLE || self.role(oid).is_some_and(|r| r.attributes.superuser)
    }

    /// Whether a role is another, or a member of it, near or far.
    pub fn is_member(&self, oid: u32, of: u32) -> bool {
        let mut todo = vec![oid];
        let mut seen = Vec::new();
        while let Some(next) = todo.pop() {
            if next == of {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                let above = self.role(next).map(|r| r.member_of.iter().map(|m| m.role));
                todo.extend(above.into_iter().flatten());
            }
        }
        false
    }

    /// What is noted about an object.
    pub fn notes(&self, id: u32) -> Option<&Notes> {
        self.notes.get(&id).map(|n| &**n)
    }

    /// Oid of the owner of an object.
    pub fn owner(&self, id: u32) -> u32 {
        if let Some(owner) = self.notes(id).and_then(|n| n.owner) {
            return owner;
        }
        self.owner_of_new(id)
    }

    /// Who owns an object of which nothing is said.
    pub fn owner_of_new(&self, id: u32) -> u32 {
        match self.schema_by_id(id) {
            Some(schema) if schema.name == "public" => DATABASE_OWNER,
            _ => BOOTSTRAP_ROLE,
        }
    }

    /// Objects that have privileges and are not in another catalog: id, kind, database, schema.
    pub fn objects_beyond(&self, old: &Catalog) -> Vec<(u32, Securable, u32, Option<u32>)> {
        let mut out = Vec::new();
        let database = |schema: u32| self.schema_by_id(schema).map_or(0, |s| s.database);
        let mut add = |id: u32, kind, schema: u32| {
            out.push((id, kind, database(schema), Some(schema)));
        };
        for t in self.tables().filter(|t| old.table(t.id).is_none()) {
            add(t.id, Securable::Table, t.schema);
        }
        let partitions = self.partitions().filter(|p| !old.has_partition(p.id));
        for p in partitions.filter(|p| old.table(p.id).is_none()) {
            add(p.id, Securable::Table, p.schema);
        }
        for v in self.views().filter(|v| old.view(v.id).is_none()) {
            add(v.id, Securable::Table, v.schema);
        }
        for s in self.sequences().filter(|s| old.sequence(s.id).is_none()) {
            add(s.id, Securable::Sequence, s.schema);
        }
        for t in self.user_types().filter(|t| old.user_type(t.id).is_none()) {
            add(t.id, Securable::Type, t.schema);
        }
        for f in self.functions().filter(|f| old.function(f.id).is_none()) {
            add(f.id, Securable::Function, f.schema);
        }
        for s in self.schemas.values().filter(|s| old.schema_by_id(s.id).is_none()) {
            out.push((s.id, Securable::Schema, s.database, None));
        }
        for d in self.databases().filter(|d| !old.databases.contains_key(&d.id)) {
            out.push((d.id, Securable::Database, d.id, None));
        }
        out
    }

    /// Who may do what with an object; `None` if nobody has said so.
    pub fn acl(&self, id: u32) -> Option<Vec<Grant>> {
        if let Some(acl) = self.notes(id).and_then(|n| n.acl.clone()) {
            return Some(acl);
        }
        let public = self.schema_by_id(id).is_some_and(|s| s.name == "public");
        public.then(|| {
            let mut acl = Securable::Schema.default_acl(self.owner(id));
            let usage = Privileges::of("U");
            acl.push(Grant { grantee: PUBLIC, privileges: usage, ..acl[0] });
            acl
        })
    }

    /// Whether a role has privileges on an object, by what is noted.
    pub fn may(&self, role: u32, id: u32, kind: Securable, wanted: Privileges) -> bool {
        let acl = self.acl(id).unwrap_or_else(|| kind.default_acl(self.owner(id)));
        self.is_superuser(role) || self.is_member(role, self.owner(id)) || {
            self.granted(&acl, role).has(wanted)
        }
    }

    /// What a list of privileges gives to a role.
    pub fn granted(&self, acl: &[Grant], role: u32) -> Privileges {
        let own = |g: &&Grant| g.grantee == PUBLIC || self.is_member(role, g.grantee);
        acl.iter().filter(own).fold(Privileges::NONE, |all, g| all.with(g.privileges))
    }

    /// Default privileges that were altered.
    pub fn default_acls(&self) -> impl Iterator<Item = &DefaultAcl> {
        self.default_acls.values().map(|d| &**d)
    }

    /// The list of an object that a role makes in a schema; `None`: the usual one.
    pub fn acl_of_new(
        &self,
        role: u32,
        database: u32,
        schema: Option<u32>,
        kind: Securable,
    ) -> Option<Vec<Grant>> {
        let mine = |d: &&DefaultAcl| d.role == role && d.database == database && d.kind == kind;
        let of = |schema| self.default_acls().filter(mine).find(move |d| d.schema == schema);
        let everywhere = of(None);
        let here = schema.and_then(|s| of(Some(s)));
        if everywhere.is_none() && here.is_none() {
            return None;
        }
        let usual = || kind.default_acl(role);
        let mut acl = everywhere.map_or_else(usual, |d| d.acl.clone());
        for grant in here.into_iter().flat_map(|d| &d.acl) {
            change_acl(&mut acl, *grant, false);
        }
        (acl != usual()).then_some(acl)
    }

    /// A list of privileges as clients are shown it: `name=arw*/grantor`, one item each.
    pub fn acl_items(&self, acl: &[Grant], user: &str) -> Vec<String> {
        acl.iter().map(|grant| self.acl_item(grant, user)).collect()
    }

    fn acl_item(&self, grant: &Grant, user: &str) -> String {
        let name = |oid: u32| match self.role_name(oid, user) {
            Some(name) => quote_ident(&name).to_string(),
            None => oid.to_string(),
        };
        let mut text = if grant.grantee == PUBLIC { String::new() } else { name(grant.grantee) };
        text.push('=');
        for (at, (letter, _)) in PRIVILEGES.iter().enumerate() {
            let bit = Privileges(1 << at);
            if grant.privileges.has(bit) {
                text.push(*letter);
            }
            if grant.grantable.has(bit) {
                text.push('*');
            }
        }
        let _ = write!(text, "/{}", name(grant.grantor));
        text
    }

    /// Adds or replaces a role.
    pub fn put_role(&mut self, role: Role) {
        self.roles.insert(role.id, role.into());
    }

    /// Adds or replaces what is granted on objects to come; with an empty list nothing is.
    pub fn put_default_acl(&mut self, acl: DefaultAcl) {
        self.default_acls.insert(acl.id, acl.into());
    }

    /// Forgets what is granted on objects to come.
    pub fn remove_default_acl(&mut self, id: u32) {
        self.default_acls.remove(&id);
    }

    /// Removes a role, and what it was granted.
    pub fn remove_role(&mut self, id: u32) {
        self.roles.remove(&id);
        let oid = oid_of(id);
        let mut changed: Vec<Role> = self.roles().cloned().collect();
        changed.retain_mut(|r| {
            let before = r.member_of.len();
            r.member_of.retain(|m| m.role != oid);
            r.member_of.len() != before
        });
        changed.into_iter().for_each(|r| self.put_role(r));
    }

    /// Changes what is noted about an object.
    pub fn note(&mut self, id: u32, change: impl FnOnce(&mut Notes)) {
        let mut notes = self.notes(id).cloned().unwrap_or_default();
        notes.id = id;
        change(&mut notes);
        if notes.is_empty() {
            self.notes.remove(&id);
        } else {
            self.notes.insert(id, notes.into());
        }
    }

    /// What sessions of a role in a database begin with, the last word of each name last.
    pub fn session_settings(&self, database: u32, role: u32) -> Vec<(String, String)> {
        let noted = |id: u32, role: u32| self.notes(id).and_then(|n| n.settings.get(&role));
        let own = self.role(role).map(|role| &role.settings);
        let all = [
            noted(EVERY_DATABASE, PUBLIC),
            noted(database, PUBLIC),
            own.or_else(|| noted(EVERY_DATABASE, role)),
            noted(database, role),
        ];
        let pair = |s: &String| s.split_once('=').map(|(n, v)| (n.to_string(), v.to_string()));
        all.into_iter().flatten().flatten().filter_map(pair).collect()
    }

    /// What sessions of a role that nobody made begin with in all databases.
    pub fn settings_everywhere(&self, role: u32) -> &[String] {
        let noted = self.notes(EVERY_DATABASE).and_then(|n| n.settings.get(&role));
        noted.map_or(&[], Vec::as_slice)
    }

    /// All settings that are noted: the database, the oid of the role, what they are.
    pub fn noted_settings(&self) -> impl Iterator<Item = (u32, u32, &Vec<String>)> {
        let of = |n: &std::sync::Arc<Notes>| !n.settings.is_empty();
        let noted = self.notes.values().filter(move |n| of(n));
        noted.flat_map(|n| n.settings.iter().map(move |(role, all)| (n.id, *role, all)))
    }

    /// Whether a role of this oid is named by something: an owner or a grant.
    pub fn users_of_role(&self, oid: u32) -> Vec<u32> {
        let by = |g: &Grant| g.grantee == oid || g.grantor == oid;
        let named = |n: &&std::sync::Arc<Notes>| {
            n.owner == Some(oid)
                || n.acl.iter().flatten().any(by)
                || n.columns.values().flatten().any(by)
        };
        self.notes.values().filter(named).map(|n| n.id).collect()
    }

    /// Forgets what was noted about objects, columns and constraints that are gone.
    pub(crate) fn prune_notes(&mut self) {
        let ids: Vec<u32> = self.notes.keys().copied().collect();
        for id in ids {
            if !self.has_object(id) {
                self.notes.remove(&id);
                continue;
            }
            let Some(table) = self.table(id).cloned() else { continue };
            let gone = |n: &Notes| {
                n.columns.keys().any(|c| table.column(*c).is_none())
                    || n.constraints.keys().any(|name| !table.has_constraint(name))
            };
            if self.notes(id).is_some_and(gone) {
                self.note(id, |n| {
                    n.columns.retain(|c, _| table.column(*c).is_some());
                    n.constraints.retain(|name, _| table.has_constraint(name));
                });
            }
        }
        let is_gone = |role: u32| id_of_oid(role).is_some() && self.role(role).is_none();
        let of_gone: Vec<(u32, u32)> = self
            .noted_settings()
            .filter(|(_, role, _)| is_gone(*role))
            .map(|(database, role, _)| (database, role))
            .collect();
        for (database, role) in of_gone {
            self.note(database, |n| drop(n.settings.remove(&role)));
        }
        let gone = |d: &DefaultAcl, catalog: &Catalog| {
            d.schema.is_some_and(|s| catalog.schema_by_id(s).is_none())
                || (d.role != BOOTSTRAP_ROLE && catalog.role(d.role).is_none())
        };
        let gone: Vec<u32> = self.default_acls().filter(|d| gone(d, self)).map(|d| d.id).collect();
        gone.into_iter().for_each(|id| self.remove_default_acl(id));
    }

    /// Whether anything has this id.
    fn has_object(&self, id: u32) -> bool {
        id == EVERY_DATABASE
            || self.relation_by_id(id).is_some()
            || self.schema_by_id(id).is_some()
            || self.user_type(id).is_some()
            || self.function(id).is_some()
            || self.user_collation(id).is_some()
            || self.databases().any(|d| d.id == id)
            || self.roles.contains_key(&id)
    }
}
