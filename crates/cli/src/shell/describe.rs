//! `\d` and its family: queries on the system catalogs.

/// The queries of a command, each with a title; `None` if it is no such command. `what` is a name
/// or a pattern with `*` and `?`.
pub(super) fn queries(command: &str, what: &str) -> Option<Vec<(String, String)>> {
    let (command, more) = match command.strip_suffix('+') {
        Some(command) => (command, true),
        None => (command, false),
    };
    let list = |title: &str, sql: String| Some(vec![(title.to_string(), sql)]);
    match command {
        "\\d" if what.is_empty() => list("Relations", relations("'r', 'p', 'v', 'm', 'S'", what)),
        "\\d" if what.contains(['*', '?']) => {
            list("Relations", relations("'r', 'p', 'v', 'm', 'S', 'i'", what))
        }
        "\\d" => Some(one(what, more)),
        "\\dt" => list("Tables", tables(what)),
        "\\di" => list("Indexes", relations("'i'", what)),
        "\\dv" => list("Views", relations("'v'", what)),
        "\\dm" => list("Materialized views", relations("'m'", what)),
        "\\ds" => list("Sequences", relations("'S'", what)),
        "\\dn" => list("Schemas", schemas(what)),
        "\\df" => list("Functions", functions(what)),
        "\\dT" => list("Types", types(what)),
        "\\du" | "\\dg" => list("Roles", roles(what)),
        "\\dx" => list("Extensions", extensions(what)),
        "\\l" => list("Databases", databases(what)),
        _ => None,
    }
}

const OWN: &str = "n.nspname NOT IN ('pg_catalog', 'information_schema')";

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A condition on a name: all of them, or those that fit a pattern.
fn fits(column: &str, pattern: &str) -> String {
    if pattern.is_empty() {
        return String::new();
    }
    let escaped = pattern.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!(" AND {column} LIKE {}", literal(&escaped.replace('*', "%").replace('?', "_")))
}

/// A pattern with a schema in front.
fn parted(pattern: &str) -> (&str, &str) {
    pattern.split_once('.').unwrap_or(("", pattern))
}

fn relations(kinds: &str, pattern: &str) -> String {
    let (schema, name) = parted(pattern);
    format!(
        "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'table' \
         WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' \
         WHEN 'i' THEN 'index' ELSE 'sequence' END AS kind, \
         pg_catalog.pg_get_userbyid(c.relowner) AS owner \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ({kinds}) AND {OWN}{}{} ORDER BY 1, 2",
        fits("n.nspname", schema),
        fits("c.relname", name)
    )
}

fn tables(pattern: &str) -> String {
    let (schema, name) = parted(pattern);
    format!(
        "SELECT table_schema AS schema, table_name AS name, \
         parent_table_name AS \"interleaved in\", \
         on_delete_action AS \"on delete\" FROM information_schema.tables \
         WHERE table_type = 'BASE TABLE' \
         AND table_schema NOT IN ('pg_catalog', 'information_schema'){}{} ORDER BY 1, 2",
        fits("table_schema", schema),
        fits("table_name", name)
    )
}

fn schemas(pattern: &str) -> String {
    format!(
        "SELECT n.nspname AS name, pg_catalog.pg_get_userbyid(n.nspowner) AS owner \
         FROM pg_catalog.pg_namespace n WHERE {OWN}{} ORDER BY 1",
        fits("n.nspname", pattern)
    )
}

fn functions(pattern: &str) -> String {
    let (schema, name) = parted(pattern);
    format!(
        "SELECT n.nspname AS schema, p.proname AS name, \
         pg_catalog.pg_get_function_result(p.oid) AS result, \
         pg_catalog.pg_get_function_arguments(p.oid) AS arguments \
         FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
         WHERE {}{}{} ORDER BY 1, 2, 4",
        if pattern.is_empty() { OWN } else { "true" },
        fits("n.nspname", schema),
        fits("p.proname", name)
    )
}

fn types(pattern: &str) -> String {
    let (schema, name) = parted(pattern);
    format!(
        "SELECT n.nspname AS schema, pg_catalog.format_type(t.oid, NULL) AS name, \
         CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN 'domain' WHEN 'c' THEN 'composite' \
         WHEN 'r' THEN 'range' WHEN 'm' THEN 'multirange' ELSE 'base' END AS kind \
         FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
         LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid \
         WHERE (t.typrelid = 0 OR c.relkind = 'c') AND t.typelem = 0 AND {}{}{} ORDER BY 1, 2",
        if pattern.is_empty() { OWN } else { "true" },
        fits("n.nspname", schema),
        fits("t.typname", name)
    )
}

fn roles(pattern: &str) -> String {
    format!(
        "SELECT rolname AS name, rolsuper AS superuser, rolcreaterole AS \"create role\", \
         rolcreatedb AS \"create db\", rolcanlogin AS login FROM pg_catalog.pg_roles \
         WHERE rolname !~ '^pg_'{} ORDER BY 1",
        fits("rolname", pattern)
    )
}

fn extensions(pattern: &str) -> String {
    format!(
        "SELECT extname AS name, extversion AS version FROM pg_catalog.pg_extension \
         WHERE true{} ORDER BY 1",
        fits("extname", pattern)
    )
}

fn databases(pattern: &str) -> String {
    format!(
        "SELECT datname AS name, pg_catalog.pg_get_userbyid(datdba) AS owner, \
         pg_catalog.pg_encoding_to_char(encoding) AS encoding FROM pg_catalog.pg_database \
         WHERE true{} ORDER BY 1",
        fits("datname", pattern)
    )
}

/// One relation. Names are those of statements: folded, unless in quotes.
fn one(name: &str, more: bool) -> Vec<(String, String)> {
    let oid = format!("{}::pg_catalog.regclass", literal(name));
    let columns = format!(
        "SELECT a.attname AS column, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, \
         CASE WHEN a.attnotnull THEN 'not null' END AS nullable, \
         pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS \"default\" \
         FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d \
         ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let indexes = format!(
        "SELECT c.relname AS index, pg_catalog.pg_get_indexdef(i.indexrelid) AS definition \
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = {oid} ORDER BY i.indisprimary DESC, 1"
    );
    let constraints = format!(
        "SELECT conname AS constraint, pg_catalog.pg_get_constraintdef(oid) AS definition \
         FROM pg_catalog.pg_constraint WHERE conrelid = {oid} AND contype <> 'n' \
         ORDER BY contype, 1"
    );
    let referrers = format!(
        "SELECT conrelid::pg_catalog.regclass AS table, conname AS constraint, \
         pg_catalog.pg_get_constraintdef(oid) AS definition \
         FROM pg_catalog.pg_constraint WHERE confrelid = {oid} AND contype = 'f' ORDER BY 1, 2"
    );
    let mut all = vec![
        (format!("Columns of {name}"), columns),
        ("Indexes".into(), indexes),
        ("Constraints".into(), constraints),
        ("Referred to by".into(), referrers),
        ("Interleaved".into(), format!("SHOW INTERLEAVE TREE FROM {name}")),
    ];
    if more {
        all.push(("Statement".into(), format!("SHOW CREATE TABLE {name}")));
    }
    all
}
