//! Functions over privileges: `has_table_privilege` and its like, `pg_has_role`, `acldefault`.
//! They answer by what was granted; nothing asks them before a statement runs.

use braid_catalog::{Catalog, PUBLIC, Privileges, Securable, id_of_oid};
use braid_scalar::SessionFunctions;
use braid_sql::session::SessionState;
use braid_types::{ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType};

use super::relations::{Listed, listed_by_oid};

/// The answer of one of these functions; `None` if it is another.
pub(super) fn function(
    session: &SessionState,
    name: &str,
    args: &[Datum],
) -> SqlResult<Option<Datum>> {
    let catalog = session.catalog();
    let asked = Asked { session, catalog: &catalog };
    match name {
        "acldefault" => Ok(Some(asked.default_acl(args))),
        "pg_has_role" => asked.has_role(args).map(Some),
        _ => {
            let kind = match name {
                "has_table_privilege" | "has_any_column_privilege" => Securable::Table,
                "has_column_privilege" => Securable::Column,
                "has_sequence_privilege" => Securable::Sequence,
                "has_schema_privilege" => Securable::Schema,
                "has_database_privilege" => Securable::Database,
                "has_type_privilege" => Securable::Type,
                "has_function_privilege" | "has_tablespace_privilege" => Securable::Function,
                _ => return Ok(None),
            };
            asked.has_privilege(kind, name, args).map(Some)
        }
    }
}

struct Asked<'a> {
    session: &'a SessionState,
    catalog: &'a Catalog,
}

impl Asked<'_> {
    fn default_acl(&self, args: &[Datum]) -> Datum {
        let [Datum::Text(letter), Datum::Oid(owner)] = args else { return Datum::Null };
        let Some(kind) = Securable::of_letter(letter) else { return Datum::Null };
        let acl = kind.default_acl(*owner);
        let items = self.catalog.acl_items(&acl, &self.session.user);
        let items = items.into_iter().map(Datum::text).collect();
        Datum::Array(ArrayValue::list(SqlType::Text, items).into())
    }

    /// A role by oid or name.
    fn role(&self, value: &Datum) -> SqlResult<u32> {
        match value {
            Datum::Oid(oid) => Ok(*oid),
            Datum::Text(name) if **name == *"public" => Ok(PUBLIC),
            Datum::Text(name) => self.catalog.role_oid(name, &self.session.user).ok_or_else(|| {
                let text = format!("role \"{name}\" does not exist");
                SqlError::new(SqlState::UNDEFINED_OBJECT, text)
            }),
            _ => Ok(PUBLIC),
        }
    }

    fn own_role(&self) -> u32 {
        self.catalog.acting_role(&self.session.current_user())
    }

    fn has_role(&self, args: &[Datum]) -> SqlResult<Datum> {
        let (role, of) = match args {
            [of, _] => (self.own_role(), self.role(of)?),
            [role, of, _] => (self.role(role)?, self.role(of)?),
            _ => return Ok(Datum::Null),
        };
        let wanted = args.last().map_or("", text_of);
        for word in wanted.split(',') {
            let word = word.trim().to_uppercase();
            let word = word.trim_end_matches(" WITH ADMIN OPTION");
            let word = word.trim_end_matches(" WITH GRANT OPTION");
            if !matches!(word, "MEMBER" | "USAGE" | "SET") {
                return Err(unrecognized(word));
            }
        }
        Ok(Datum::Bool(self.catalog.is_superuser(role) || self.catalog.is_member(role, of)))
    }

    fn has_privilege(&self, kind: Securable, name: &str, args: &[Datum]) -> SqlResult<Datum> {
        let parts = if kind == Securable::Column { 3 } else { 2 };
        let (role, args) = match args.split_first() {
            Some((first, rest)) if args.len() > parts => (self.role(first)?, rest),
            _ => (self.own_role(), args),
        };
        let Some((wanted, place)) = args.split_last() else { return Ok(Datum::Null) };
        let wanted = self.wanted(kind, name, text_of(wanted))?;
        if kind == Securable::Function {
            return Ok(Datum::Bool(true));
        }
        if let Some(relation) = self.of_system(kind, &place[0])? {
            let missing = place.get(1).map(|column| relation.has_column(column)).transpose()?;
            return Ok(match missing {
                Some(false) => Datum::Null,
                _ => Datum::Bool(
                    self.catalog.is_superuser(role) || wanted.contains(&Privileges::of("r")),
                ),
            });
        }
        let Some(id) = self.object(kind, &place[0])? else { return Ok(Datum::Null) };
        let own = if kind == Securable::Column { Securable::Table } else { kind };
        let column = match place.get(1) {
            Some(column) => match self.column(id, column)? {
                Some(column) => Some(column),
                None => return Ok(Datum::Null),
            },
            None => None,
        };
        let any_column = name == "has_any_column_privilege";
        let notes = self.catalog.notes(id);
        let of_columns = notes.into_iter().flat_map(|n| &n.columns);
        let of_columns: Vec<Privileges> = of_columns
            .filter(|(c, _)| any_column || Some(**c) == column)
            .map(|(_, acl)| self.catalog.granted(acl, role))
            .collect();
        let may = |p: &Privileges| {
            self.catalog.may(role, id, own, *p) || of_columns.iter().any(|c| c.has(*p))
        };
        Ok(Datum::Bool(wanted.iter().any(may)))
    }

    /// The privileges of a list, any of which is enough.
    fn wanted(&self, kind: Securable, function: &str, list: &str) -> SqlResult<Vec<Privileges>> {
        let known = match (kind, function) {
            (Securable::Function, "has_tablespace_privilege") => Privileges::of("C"),
            (Securable::Table, "has_any_column_privilege") => Securable::Column.privileges(),
            _ => kind.privileges(),
        };
        let one = |word: &str| {
            let word = word.trim();
            let upper = word.to_uppercase();
            let bare = upper.strip_suffix(" WITH GRANT OPTION").unwrap_or(&upper);
            let found = Privileges::named(bare.trim()).filter(|p| known.has(*p));
            found.ok_or_else(|| unrecognized(word))
        };
        list.split(',').map(one).collect()
    }

    /// The relation of the system that a name or an oid means.
    fn of_system(&self, kind: Securable, value: &Datum) -> SqlResult<Option<&'static Listed>> {
        if !matches!(kind, Securable::Table | Securable::Column) {
            return Ok(None);
        }
        let oid = match value {
            Datum::Oid(oid) => Some(*oid),
            Datum::Text(name) if self.session.relation_oid(name)?.is_none() => {
                braid_scalar::system_oid(name)
            }
            _ => None,
        };
        Ok(oid.and_then(listed_by_oid))
    }

    /// The object of a name or an oid; `None` for an oid of nothing.
    fn object(&self, kind: Securable, value: &Datum) -> SqlResult<Option<u32>> {
        let name = match value {
            Datum::Oid(oid) => {
                // What is built in belongs to everybody.
                let id = id_of_oid(*oid).unwrap_or(0);
                return Ok(Some(id));
            }
            Datum::Text(name) => name,
            _ => return Ok(None),
        };
        let missing = |state, what: &str| {
            SqlError::new(SqlState(state), format!("{what} \"{name}\" does not exist"))
        };
        let database = self.catalog.database(&self.session.database).map_or(0, |d| d.id);
        match kind {
            Securable::Schema if matches!(&**name, "pg_catalog" | "information_schema") => {
                Ok(Some(0))
            }
            Securable::Schema => match self.catalog.schema(database, name) {
                Some(schema) => Ok(Some(schema.id)),
                None => Err(missing("3F000", "schema")),
            },
            Securable::Database => match self.catalog.database(name) {
                Some(database) => Ok(Some(database.id)),
                None => Err(missing("3D000", "database")),
            },
            Securable::Type => {
                let built_in = SqlType::from_name(&name.to_lowercase()).is_some();
                match self.session.type_oid(name) {
                    _ if built_in => Ok(Some(0)),
                    Some(oid) => Ok(id_of_oid(oid)),
                    None => Err(missing("42704", "type")),
                }
            }
            _ => {
                match self.session.relation_oid(name)?.or_else(|| braid_scalar::system_oid(name)) {
                    Some(oid) => Ok(Some(id_of_oid(oid).unwrap_or(0))),
                    None => Err(missing("42P01", "relation")),
                }
            }
        }
    }

    /// The number of a column of a table or a view.
    fn column(&self, id: u32, column: &Datum) -> SqlResult<Option<u32>> {
        let (table, view) = (self.catalog.shown_table(id), self.catalog.view(id));
        match column {
            Datum::Int2(number) => Ok(u32::try_from(*number).ok().filter(|n| {
                table.is_some_and(|t| t.column(*n).is_some())
                    || view.is_some_and(|v| *n > 0 && *n as usize <= v.columns.len())
            })),
            Datum::Text(name) => {
                let of_table = || Some(table?.column_named(name)?.id);
                let of_view = || {
                    let at = view?.columns.iter().position(|(n, _)| **n == **name)?;
                    Some(at as u32 + 1)
                };
                let relation = table.map(|t| &t.name).or_else(|| view.map(|v| &v.name));
                of_table().or_else(of_view).map(Some).ok_or_else(|| {
                    let relation = relation.map_or("", String::as_str);
                    SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{name}\" of relation \"{relation}\" does not exist"),
                    )
                })
            }
            _ => Ok(None),
        }
    }
}

fn text_of(value: &Datum) -> &str {
    match value {
        Datum::Text(text) => text,
        _ => "",
    }
}

fn unrecognized(word: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unrecognized privilege type: \"{word}\""),
    )
}
