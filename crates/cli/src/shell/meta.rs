//! Backslash commands, answered by queries on the system catalogs.

/// What a backslash command asks for.
pub(super) enum Meta {
    /// Run these queries and print their results.
    Queries(Vec<String>),
    /// Print a text.
    Text(&'static str),
    /// Turn the timing of statements on or off.
    Timing,
    /// Rows as lists instead of tables, on or off.
    Expanded,
    /// Leave the shell.
    Quit,
}

const HELP: &str = "\
\\d            tables, views and sequences
\\d NAME       one table: columns, and the statement that creates it
\\dt \\di \\dv \\ds   tables, indexes, views, sequences
\\dn \\l \\du    schemas, databases, users
\\timing       show how long statements take, on or off
\\x            rows as lists instead of tables, on or off
\\q            leave
A statement ends with a semicolon. Ctrl-C discards the line, Ctrl-D leaves.";

const USER_SCHEMAS: &str = "n.nspname NOT IN ('pg_catalog', 'information_schema')";

/// Understands a line that starts with a backslash.
pub(super) fn parse(line: &str) -> Result<Meta, String> {
    let mut words = line.trim().trim_end_matches(';').split_whitespace();
    let command = words.next().unwrap_or_default();
    let argument = words.next();
    let meta = match (command, argument) {
        ("\\q", _) => Meta::Quit,
        ("\\?" | "\\h", _) => Meta::Text(HELP),
        ("\\timing", _) => Meta::Timing,
        ("\\x", _) => Meta::Expanded,
        ("\\d", Some(name)) => describe(name),
        ("\\d", None) => relations("'r', 'v', 'S'"),
        ("\\dt", _) => tables(),
        ("\\di", _) => relations("'i'"),
        ("\\dv", _) => relations("'v'"),
        ("\\ds", _) => relations("'S'"),
        ("\\dn", _) => query("SELECT nspname AS name FROM pg_catalog.pg_namespace ORDER BY 1"),
        ("\\l", _) => query("SELECT datname AS name FROM pg_catalog.pg_database ORDER BY 1"),
        ("\\du", _) => query("SELECT rolname AS name FROM pg_catalog.pg_roles ORDER BY 1"),
        _ => return Err(format!("unknown command {command}; \\? lists them")),
    };
    Ok(meta)
}

fn query(text: &str) -> Meta {
    Meta::Queries(vec![text.to_string()])
}

fn relations(kinds: &str) -> Meta {
    query(&format!(
        "SELECT n.nspname AS schema, c.relname AS name, \
         CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'i' THEN 'index' \
         ELSE 'sequence' END AS kind \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ({kinds}) AND {USER_SCHEMAS} ORDER BY 1, 2"
    ))
}

fn tables() -> Meta {
    query(
        "SELECT table_schema AS schema, table_name AS name, parent_table_name AS \"inside\", \
         on_delete_action AS on_delete FROM information_schema.tables \
         WHERE table_type = 'BASE TABLE' \
         AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2",
    )
}

fn describe(name: &str) -> Meta {
    let (schema, table) = name.split_once('.').unwrap_or(("", name));
    let literal = |s: &str| s.replace('\'', "''");
    let in_schema = match schema {
        "" => String::new(),
        schema => format!(" AND table_schema = '{}'", literal(schema)),
    };
    Meta::Queries(vec![
        format!(
            "SELECT column_name AS column, data_type AS type, is_nullable AS nullable, \
             column_default AS \"default\" FROM information_schema.columns \
             WHERE table_name = '{}'{in_schema} ORDER BY ordinal_position",
            literal(table)
        ),
        format!("SHOW CREATE TABLE {name}"),
    ])
}
