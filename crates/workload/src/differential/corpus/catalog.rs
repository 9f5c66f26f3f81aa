//! What the server under test claims to have: read from its `pg_proc`, `pg_operator`, `pg_cast`.

use std::collections::HashMap;

use postgres::{Client, SimpleQueryMessage};

use super::CorpusResult;

/// What a parameter takes or a call gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    /// A type by its short name.
    Type(String),
    /// Any type, the same in one call.
    Element,
    /// An array of that type.
    Array,
    /// Any type.
    Any,
}

/// How a signature is written in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Function,
    Prefix,
    Infix,
    Cast,
}

/// A function, operator or cast.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) args: Vec<Arg>,
    pub(super) variadic: bool,
    pub(super) ret: Arg,
}

impl Signature {
    /// For reports: `name(args)`.
    pub(super) fn label(&self) -> String {
        let args: Vec<String> = self
            .args
            .iter()
            .map(|a| match a {
                Arg::Type(name) => name.clone(),
                Arg::Element => "anyelement".to_string(),
                Arg::Array => "anyarray".to_string(),
                Arg::Any => "any".to_string(),
            })
            .collect();
        match self.form {
            Form::Cast => format!("cast({} as {})", args.join(", "), self.name),
            _ => format!("{}({})", self.name, args.join(", ")),
        }
    }
}

/// Everything that is claimed.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) signatures: Vec<Signature>,
    pub(super) aggregates: Vec<String>,
    pub(super) set_returning: Vec<String>,
    pub(super) windows: Vec<String>,
}

/// Rows of a query as text.
pub(super) fn query(client: &mut Client, sql: &str) -> CorpusResult<Vec<Vec<Option<String>>>> {
    let messages = client.simple_query(sql)?;
    Ok(messages
        .iter()
        .filter_map(|m| match m {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|i| row.get(i).map(str::to_string)).collect())
            }
            _ => None,
        })
        .collect())
}

fn arg(oid: &str, names: &HashMap<String, String>) -> Arg {
    match oid {
        "2283" => Arg::Element,
        "2277" => Arg::Array,
        "2276" => Arg::Any,
        "3831" => Arg::Type("anyrange".to_string()),
        "4537" => Arg::Type("anymultirange".to_string()),
        other => Arg::Type(names.get(other).cloned().unwrap_or_else(|| other.to_string())),
    }
}

/// The oids of an `oidvector`.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split_ascii_whitespace()
}

/// Reads the claims of a server.
pub(super) fn claims(client: &mut Client) -> CorpusResult<Claims> {
    let mut names = HashMap::new();
    for row in query(client, "SELECT oid, typname FROM pg_type")? {
        if let [Some(oid), Some(name)] = row.as_slice() {
            names.insert(oid.clone(), name.clone());
        }
    }
    let mut claims = Claims::default();
    // What has PostgreSQL's oid reads and writes values, and cannot be called.
    let functions = "SELECT proname, proargtypes::text, prorettype, provariadic, provolatile, \
                     prokind, proretset FROM pg_proc WHERE oid >= 10000 \
                     ORDER BY proname, 2, prorettype";
    for row in query(client, functions)? {
        let cell = |at: usize| row[at].clone().unwrap_or_default();
        match cell(5).as_str() {
            "a" => {
                claims.aggregates.push(cell(0));
                continue;
            }
            "w" => {
                claims.windows.push(cell(0));
                continue;
            }
            _ => {}
        }
        if cell(6) == "t" {
            claims.set_returning.push(cell(0));
            continue;
        }
        claims.signatures.push(Signature {
            name: cell(0),
            form: Form::Function,
            args: list(&cell(1)).map(|o| arg(o, &names)).collect(),
            variadic: cell(3) != "0",
            ret: arg(&cell(2), &names),
        });
    }
    let operators = "SELECT oprname, oprleft, oprright, oprresult FROM pg_operator \
                     ORDER BY oprname, oprleft, oprright";
    for row in query(client, operators)? {
        let cell = |at: usize| row[at].clone().unwrap_or_default();
        let prefix = cell(1) == "0";
        let mut args = vec![arg(&cell(2), &names)];
        if !prefix {
            args.insert(0, arg(&cell(1), &names));
        }
        claims.signatures.push(Signature {
            name: cell(0),
            form: if prefix { Form::Prefix } else { Form::Infix },
            args,
            variadic: false,
            ret: arg(&cell(3), &names),
        });
    }
    let casts = "SELECT castsource, casttarget FROM pg_cast ORDER BY castsource, casttarget";
    for row in query(client, casts)? {
        let cell = |at: usize| row[at].clone().unwrap_or_default();
        let target = arg(&cell(1), &names);
        let Arg::Type(name) = target.clone() else { continue };
        claims.signatures.push(Signature {
            name,
            form: Form::Cast,
            args: vec![arg(&cell(0), &names)],
            variadic: false,
            ret: target,
        });
    }
    Ok(claims)
}
