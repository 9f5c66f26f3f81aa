//! Roles and what they may do: CREATE, ALTER and DROP ROLE, GRANT and REVOKE, OWNER TO, ALTER
//! DEFAULT PRIVILEGES, REASSIGN and DROP OWNED.

use braid_types::SqlResult;
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Kind, Name};

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// PUBLIC.
    Public,
    /// CURRENT_USER, CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// By name.
    Named(String),
}

/// One option of CREATE ROLE and ALTER ROLE.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleOption {
    /// `SUPERUSER`, `NOLOGIN`, ..: the word without NO, and whether it is given.
    Attribute(&'static str, bool),
    /// PASSWORD; `None` is PASSWORD NULL.
    Password(Option<String>),
    /// CONNECTION LIMIT.
    ConnectionLimit(i64),
    /// VALID UNTIL.
    ValidUntil(String),
    /// IN ROLE, IN GROUP: roles that it becomes a member of.
    InRole(Vec<RoleName>),
    /// ROLE, USER: roles that become members of it; the flag is ADMIN.
    Members(Vec<RoleName>, bool),
}

/// What ALTER ROLE changes.
#[derive(Clone, Debug, PartialEq)]
pub enum RoleChange {
    /// Options.
    Options(Vec<RoleOption>),
    /// RENAME TO.
    Rename(String),
    /// SET and RESET.
    Setting(SettingChange),
    /// ALTER GROUP .. ADD or DROP USER.
    Members(Vec<RoleName>, bool),
}

/// What sessions of a role, or of a database, are to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// IN DATABASE.
    pub database: Option<String>,
    /// Of which setting; none: RESET ALL.
    pub name: Option<String>,
    /// SET TO; none: RESET.
    pub value: Option<String>,
}

/// What privileges are granted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantKind {
    /// TABLE, or nothing.
    Table,
    /// SEQUENCE.
    Sequence,
    /// DATABASE.
    Database,
    /// SCHEMA.
    Schema,
    /// TYPE, DOMAIN.
    Type,
    /// FUNCTION, PROCEDURE, ROUTINE.
    Function,
    /// LANGUAGE, TABLESPACE, FOREIGN SERVER and others that are not here: what it is called.
    Other(&'static str),
}

/// Objects of a GRANT.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantObjects {
    /// By name.
    Named(GrantKind, Vec<Name>),
    /// ALL .. IN SCHEMA.
    AllIn(GrantKind, Vec<String>),
    /// Those to come: ALTER DEFAULT PRIVILEGES, for roles and in schemas.
    ToCome(GrantKind, Vec<RoleName>, Vec<String>),
}

/// GRANT or REVOKE of privileges.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantPrivileges {
    /// REVOKE.
    pub revoke: bool,
    /// GRANT OPTION FOR: only the right to grant goes.
    pub option_only: bool,
    /// Names with the columns that are given; none: ALL.
    pub privileges: Vec<(String, Vec<String>)>,
    /// On what.
    pub objects: GrantObjects,
    /// To or from whom.
    pub grantees: Vec<RoleName>,
    /// WITH GRANT OPTION.
    pub with_option: bool,
}

/// A statement about roles.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// CREATE ROLE; CREATE USER, which may log in.
    CreateRole(String, Vec<RoleOption>),
    /// ALTER ROLE.
    AlterRole(RoleName, RoleChange),
    /// ALTER DATABASE .. SET and RESET.
    AlterDatabase(String, SettingChange),
    /// DROP ROLE; the flag is IF EXISTS.
    DropRole(Vec<RoleName>, bool),
    /// GRANT or REVOKE.
    Grant(GrantPrivileges),
    /// ALTER DEFAULT PRIVILEGES.
    DefaultPrivileges(GrantPrivileges),
    /// GRANT role TO role.
    GrantRole {
        /// Roles.
        roles: Vec<RoleName>,
        /// Who becomes a member, or is none any more.
        members: Vec<RoleName>,
        /// REVOKE.
        revoke: bool,
        /// WITH ADMIN OPTION, or ADMIN OPTION FOR.
        admin: bool,
    },
    /// REASSIGN OWNED BY .. TO.
    Reassign(Vec<RoleName>, RoleName),
    /// DROP OWNED BY; the flag is CASCADE.
    DropOwned(Vec<RoleName>, bool),
}

/// Kinds of objects that ALTER .. OWNER TO names, as ALTER says them.
const OWNED: [(&[&str], OwnedKind); 10] = [
    (&["materialized", "view"], OwnedKind::Relation("materialized view")),
    (&["table"], OwnedKind::Relation("table")),
    (&["view"], OwnedKind::Relation("view")),
    (&["sequence"], OwnedKind::Relation("sequence")),
    (&["index"], OwnedKind::Relation("index")),
    (&["schema"], OwnedKind::Schema),
    (&["database"], OwnedKind::Database),
    (&["type"], OwnedKind::Type("type")),
    (&["domain"], OwnedKind::Type("domain")),
    (&["collation"], OwnedKind::Collation),
];

/// What ALTER .. OWNER TO is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedKind {
    /// A relation, of the kind that is said.
    Relation(&'static str),
    /// A schema.
    Schema,
    /// A database.
    Database,
    /// A type, or a domain.
    Type(&'static str),
    /// A collation.
    Collation,
}

/// `ALTER TABLE t OWNER TO r` and the same of other objects.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerChange {
    /// The kind of object.
    pub kind: OwnedKind,
    /// Its name.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The new owner.
    pub owner: RoleName,
}

/// Reads one of them; `None` if it is another statement.
pub(crate) fn access(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let role = |c: &Cursor, at| ["role", "user", "group"].iter().any(|w| c.is_word(at, w));
    let made = if c.is_word(0, "create") && role(c, 1) && !c.is_word(2, "mapping") {
        create_role(c)?
    } else if c.is_word(0, "alter") && role(c, 1) && !c.is_word(2, "mapping") {
        alter_role(c)?
    } else if c.is_word(0, "drop") && role(c, 1) && !c.is_word(2, "mapping") {
        c.next();
        c.next();
        let if_exists = c.take(&["if", "exists"]);
        Access::DropRole(roles(c)?, if_exists)
    } else if let Some(kind) = alter_database(c)? {
        return Ok(Some(kind));
    } else if c.take(&["grant"]) {
        grant(c, false)?
    } else if c.take(&["revoke"]) {
        grant(c, true)?
    } else if c.take(&["alter", "default", "privileges"]) {
        default_privileges(c)?
    } else if c.take(&["reassign", "owned", "by"]) {
        let from = roles(c)?;
        c.expect(&["to"])?;
        Access::Reassign(from, role_name(c)?)
    } else if c.take(&["drop", "owned", "by"]) {
        let from = roles(c)?;
        let cascade = c.take(&["cascade"]);
        c.take(&["restrict"]);
        Access::DropOwned(from, cascade)
    } else {
        return Ok(owner_to(c)?.map(|o| Kind::Owner(Box::new(o))));
    };
    Ok(Some(Kind::Access(Box::new(made))))
}

/// `ALTER object name OWNER TO role` alone.
fn owner_to(c: &mut Cursor) -> SqlResult<Option<OwnerChange>> {
    let mut probe = c.clone();
    if !probe.take(&["alter"]) {
        return Ok(None);
    }
    let Some((_, kind)) = OWNED.iter().find(|(words, _)| probe.take(words)) else {
        return Ok(None);
    };
    let if_exists = probe.take(&["if", "exists"]);
    probe.take(&["only"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    probe.take_token(&Token::Mul);
    if !probe.take(&["owner", "to"]) {
        return Ok(None);
    }
    let owner = role_name(&mut probe)?;
    if !probe.done() {
        // One of several changes of a table.
        return Ok(None);
    }
    *c = probe;
    Ok(Some(OwnerChange { kind: *kind, name, if_exists, owner }))
}

/// A role; `current_user` and others mean who they say unless they are quoted.
pub(crate) fn role_name(c: &mut Cursor) -> SqlResult<RoleName> {
    c.take(&["group"]);
    let quoted = matches!(c.peek(), Some(Token::Word(w)) if w.quote_style.is_some());
    let name = c.ident()?;
    Ok(match name.as_str() {
        _ if quoted => RoleName::Named(name),
        "public" => RoleName::Public,
        "current_user" | "current_role" => RoleName::Current,
        "session_user" => RoleName::Session,
        _ => RoleName::Named(name),
    })
}

fn roles(c: &mut Cursor) -> SqlResult<Vec<RoleName>> {
    let mut out = vec![role_name(c)?];
    while c.take_token(&Token::Comma) {
        out.push(role_name(c)?);
    }
    Ok(out)
}

/// Words of attributes; each may have NO in front.
const ATTRIBUTES: [&str; 7] =
    ["superuser", "inherit", "createrole", "createdb", "login", "replication", "bypassrls"];

fn create_role(c: &mut Cursor) -> SqlResult<Access> {
    c.next();
    let login = c.is_word(0, "user");
    c.next();
    let is_somebody =
        ["current_user", "current_role", "session_user"].iter().any(|w| c.is_word(0, w));
    let name = if is_somebody { c.ident()? } else { c.own_name()? };
    let mut options = vec![RoleOption::Attribute("login", login)];
    options.extend(role_options(c, true)?);
    Ok(Access::CreateRole(name, options))
}

fn role_options(c: &mut Cursor, new: bool) -> SqlResult<Vec<RoleOption>> {
    c.take(&["with"]);
    let mut out = Vec::new();
    while !c.done() {
        out.push(role_option(c, new)?);
    }
    Ok(out)
}

fn role_option(c: &mut Cursor, new: bool) -> SqlResult<RoleOption> {
    for word in ATTRIBUTES {
        let no = format!("no{word}");
        if c.take(&[word]) {
            return Ok(RoleOption::Attribute(word, true));
        }
        if c.take(&[&no]) {
            return Ok(RoleOption::Attribute(word, false));
        }
    }
    if c.take(&["encrypted"]) && !c.is_word(0, "password") {
        return Err(c.unexpected());
    }
    Ok(if c.take(&["password"]) {
        RoleOption::Password(if c.take(&["null"]) { None } else { Some(c.string()?) })
    } else if c.take(&["connection", "limit"]) {
        RoleOption::ConnectionLimit(c.integer()?)
    } else if c.take(&["valid", "until"]) {
        RoleOption::ValidUntil(c.string()?)
    } else if c.take(&["sysid"]) {
        RoleOption::ConnectionLimit(c.integer().map(|_| -1)?)
    } else if new && (c.take(&["in", "role"]) || c.take(&["in", "group"])) {
        RoleOption::InRole(roles(c)?)
    } else if new && (c.take(&["role"]) || c.take(&["user"])) {
        RoleOption::Members(roles(c)?, false)
    } else if new && c.take(&["admin"]) {
        RoleOption::Members(roles(c)?, true)
    } else {
        return Err(c.unexpected());
    })
}

fn alter_role(c: &mut Cursor) -> SqlResult<Access> {
    c.next();
    let group = c.is_word(0, "group");
    c.next();
    let role = match c.take(&["all"]) {
        true => RoleName::Public,
        false => role_name(c)?,
    };
    if group && (c.is_word(0, "add") || c.is_word(0, "drop")) {
        let add = c.is_word(0, "add");
        c.next();
        c.expect(&["user"])?;
        return Ok(Access::AlterRole(role, RoleChange::Members(roles(c)?, add)));
    }
    if c.take(&["rename", "to"]) {
        return Ok(Access::AlterRole(role, RoleChange::Rename(c.ident()?)));
    }
    let database = if c.take(&["in", "database"]) { Some(c.ident()?) } else { None };
    if let Some(change) = setting(c, database)? {
        return Ok(Access::AlterRole(role, RoleChange::Setting(change)));
    }
    Ok(Access::AlterRole(role, RoleChange::Options(role_options(c, false)?)))
}

/// `ALTER DATABASE d SET name TO value`; `None` if it is another statement.
fn alter_database(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    if !probe.take(&["alter", "database"]) {
        return Ok(None);
    }
    let Ok(name) = probe.ident() else { return Ok(None) };
    if probe.looking_at(&["set", "tablespace"]) {
        return Ok(None);
    }
    let Some(change) = setting(&mut probe, None)? else { return Ok(None) };
    *c = probe;
    Ok(Some(Kind::Access(Box::new(Access::AlterDatabase(name, change)))))
}

/// SET and RESET of what sessions begin with.
fn setting(c: &mut Cursor, database: Option<String>) -> SqlResult<Option<SettingChange>> {
    if c.take(&["reset", "all"]) {
        return Ok(Some(SettingChange { database, name: None, value: None }));
    }
    if c.take(&["reset"]) {
        let name = Some(c.any_name()?.join("."));
        return Ok(Some(SettingChange { database, name, value: None }));
    }
    if c.take(&["set"]) {
        let zone = c.take(&["time", "zone"]);
        let name = if zone { "timezone".to_string() } else { c.any_name()?.join(".") };
        if !zone && !c.take(&["to"]) {
            c.expect_token(&Token::Eq)?;
        }
        let mut value = Vec::new();
        while let Some(token) = c.next() {
            value.push(match token {
                Token::SingleQuotedString(s) => s,
                Token::Comma => ", ".to_string(),
                other => other.to_string(),
            });
        }
        if value.is_empty() {
            return Err(c.unexpected());
        }
        let value = Some(value.concat()).filter(|v| !v.eq_ignore_ascii_case("default"));
        return Ok(Some(SettingChange { database, name: Some(name), value }));
    }
    Ok(None)
}

/// What follows GRANT or REVOKE.
fn grant(c: &mut Cursor, revoke: bool) -> SqlResult<Access> {
    if !about_objects(c) {
        let mut admin = revoke && c.take(&["admin", "option", "for"]);
        let names = roles(c)?;
        c.expect(&[if revoke { "from" } else { "to" }])?;
        let members = roles(c)?;
        admin |= !revoke && c.take(&["with", "admin", "option"]);
        ending(c)?;
        return Ok(Access::GrantRole { roles: names, members, revoke, admin });
    }
    let option_only = revoke && c.take(&["grant", "option", "for"]);
    let privileges = privileges(c)?;
    c.expect(&["on"])?;
    let objects = objects(c)?;
    grantees(c, revoke, option_only, privileges, objects).map(Access::Grant)
}

/// Whether ON follows before TO or FROM: else roles are granted.
fn about_objects(c: &Cursor) -> bool {
    let mut depth = 0;
    for n in 0.. {
        match c.peek_at(n) {
            None => return false,
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth -= 1,
            _ if depth > 0 => {}
            _ if c.is_word(n, "on") => return true,
            _ if c.is_word(n, "to") || c.is_word(n, "from") => return false,
            _ => {}
        }
    }
    false
}

fn privileges(c: &mut Cursor) -> SqlResult<Vec<(String, Vec<String>)>> {
    if c.take(&["all"]) {
        c.take(&["privileges"]);
        if c.peek() != Some(&Token::LParen) {
            return Ok(Vec::new());
        }
        let columns = c.ident_list()?;
        let all = ["insert", "select", "update", "references"];
        return Ok(all.iter().map(|p| (p.to_string(), columns.clone())).collect());
    }
    let mut out = Vec::new();
    loop {
        let mut name = c.ident()?;
        if name == "alter" && c.take(&["system"]) {
            name = "alter system".into();
        }
        let columns = if c.peek() == Some(&Token::LParen) { c.ident_list()? } else { Vec::new() };
        out.push((name, columns));
        if !c.take_token(&Token::Comma) {
            return Ok(out);
        }
    }
}

fn objects(c: &mut Cursor) -> SqlResult<GrantObjects> {
    if c.take(&["all"]) {
        let kind = plural(c)?;
        c.expect(&["in", "schema"])?;
        let mut schemas = vec![c.ident()?];
        while c.take_token(&Token::Comma) {
            schemas.push(c.ident()?);
        }
        return Ok(GrantObjects::AllIn(kind, schemas));
    }
    let kinds: [(&[&str], GrantKind); 14] = [
        (&["table"], GrantKind::Table),
        (&["sequence"], GrantKind::Sequence),
        (&["database"], GrantKind::Database),
        (&["schema"], GrantKind::Schema),
        (&["type"], GrantKind::Type),
        (&["domain"], GrantKind::Type),
        (&["function"], GrantKind::Function),
        (&["procedure"], GrantKind::Function),
        (&["routine"], GrantKind::Function),
        (&["language"], GrantKind::Other("LANGUAGE")),
        (&["tablespace"], GrantKind::Other("TABLESPACE")),
        (&["parameter"], GrantKind::Other("PARAMETER")),
        (&["large", "object"], GrantKind::Other("LARGE OBJECT")),
        (&["foreign"], GrantKind::Other("FOREIGN")),
    ];
    // A table may have one of these names.
    let next_is_name = |c: &Cursor, n| matches!(c.peek_at(n), Some(Token::Word(_)));
    let end = |c: &Cursor, n| c.is_word(n, "to") || c.is_word(n, "from");
    let found = kinds.iter().find(|(words, _)| {
        let n = words.len();
        c.looking_at(words) && next_is_name(c, n) && !end(c, n)
    });
    let kind = found.map_or(GrantKind::Table, |(words, kind)| {
        c.take(words);
        *kind
    });
    if matches!(kind, GrantKind::Function | GrantKind::Other(_)) {
        // There are none: what their names are does not matter.
        while !c.done() && !end(c, 0) {
            c.next();
        }
        return Ok(GrantObjects::Named(kind, Vec::new()));
    }
    let mut names = vec![c.name()?];
    while c.take_token(&Token::Comma) {
        names.push(c.name()?);
    }
    Ok(GrantObjects::Named(kind, names))
}

/// `TABLES`, `SEQUENCES`, ..
fn plural(c: &mut Cursor) -> SqlResult<GrantKind> {
    for (word, kind) in [
        ("tables", GrantKind::Table),
        ("sequences", GrantKind::Sequence),
        ("functions", GrantKind::Function),
        ("procedures", GrantKind::Function),
        ("routines", GrantKind::Function),
        ("types", GrantKind::Type),
        ("schemas", GrantKind::Schema),
    ] {
        if c.take(&[word]) {
            return Ok(kind);
        }
    }
    Err(c.unexpected())
}

fn grantees(
    c: &mut Cursor,
    revoke: bool,
    option_only: bool,
    privileges: Vec<(String, Vec<String>)>,
    objects: GrantObjects,
) -> SqlResult<GrantPrivileges> {
    c.expect(&[if revoke { "from" } else { "to" }])?;
    let grantees = roles(c)?;
    let with_option = !revoke && c.take(&["with", "grant", "option"]);
    ending(c)?;
    Ok(GrantPrivileges { revoke, option_only, privileges, objects, grantees, with_option })
}

/// GRANTED BY, CASCADE, RESTRICT.
fn ending(c: &mut Cursor) -> SqlResult<()> {
    if c.take(&["granted", "by"]) {
        role_name(c)?;
    }
    let _ = c.take(&["cascade"]) || c.take(&["restrict"]);
    Ok(())
}

fn default_privileges(c: &mut Cursor) -> SqlResult<Access> {
    let (mut owners, mut schemas) = (Vec::new(), Vec::new());
    loop {
        if c.take(&["for", "role"]) || c.take(&["for", "user"]) {
            owners = roles(c)?;
        } else if c.take(&["in", "schema"]) {
            schemas.push(c.ident()?);
            while c.take_token(&Token::Comma) {
                schemas.push(c.ident()?);
            }
        } else {
            break;
        }
    }
    let revoke = c.take(&["revoke"]);
    if !revoke {
        c.expect(&["grant"])?;
    }
    let option_only = revoke && c.take(&["grant", "option", "for"]);
    let privileges = privileges(c)?;
    c.expect(&["on"])?;
    let objects = GrantObjects::ToCome(plural(c)?, owners, schemas);
    grantees(c, revoke, option_only, privileges, objects).map(Access::DefaultPrivileges)
}
