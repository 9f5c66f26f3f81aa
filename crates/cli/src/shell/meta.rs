//! Commands of the shell: what begins with a backslash.

use super::describe;
use super::output::Format;

/// What a command asks for. Those about a statement take the one that has begun, or the last one.
#[derive(Debug, PartialEq)]
pub(super) enum Meta {
    /// Runs these queries and shows their results, each below a title.
    Describe(Vec<(String, String)>),
    Text(&'static str),
    /// Shows the forms of statements.
    Help(String),
    /// Times of statements: shown or not, or the other way round.
    Timing(Option<bool>),
    Format(Format),
    /// Lists instead of tables, or tables again.
    Expanded(Option<bool>),
    /// What stands for NULL.
    Null(String),
    /// Runs the statement: into a file or `|command`, or as a list.
    Go {
        to: Option<String>,
        expanded: bool,
    },
    /// Runs the statement, and each value of its result as a statement.
    GoExec,
    /// Runs the statement; its only row becomes variables, whose names begin with this.
    GoSet(String),
    /// Sets a variable.
    Set(String, String),
    /// Shows the variables.
    Variables,
    Unset(String),
    /// Runs the statement again and again, so many seconds after each end.
    Watch(f64),
    /// Opens an editor on the statement, or on a file.
    Edit(Option<String>),
    /// Forgets the statement that has begun.
    Reset,
    /// Shows the statement.
    Print,
    /// Runs the statements of a file.
    Include(String),
    /// COPY with a file of this machine: what stands behind the word.
    Copy(String),
    /// Results go to a file, or `|command`; or to the screen again.
    Output(Option<String>),
    Echo(String),
    /// Another database or URL.
    Connect(String),
    ConnectionInfo,
    /// A command of the system's shell.
    System(String),
    /// The demo's nodes: end one as kill -9 does, start it again, list them.
    Kill(usize),
    Start(usize),
    Nodes,
    /// The next step of the demo's tour.
    Tour,
    Quit,
}

/// All commands, for help and for completion.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("\\? ", "this list"),
    ("\\h [STATEMENT]", "the forms of a statement; without a name, all names"),
    (
        "\\d [NAME]",
        "tables, views and sequences; or one of them: columns, keys, what it is interleaved with",
    ),
    ("\\d+ NAME", "the same, with the statement that creates it"),
    ("\\dt \\di \\dv \\dm \\ds [PATTERN]", "tables, indexes, views, materialized views, sequences"),
    (
        "\\df \\dT \\dn \\du \\dx \\l [PATTERN]",
        "functions, types, schemas, roles, extensions, databases",
    ),
    ("\\g [FILE]", "run the statement, its result to a file or |command; \\gx: as a list"),
    ("\\gexec", "run the statement, and each value that it gives as a statement"),
    ("\\gset [PREFIX]", "run the statement, and keep the values of its row as variables"),
    ("\\set [NAME VALUE]", "a variable: :NAME, :'NAME' or :\"NAME\" in statements; \\unset NAME"),
    ("\\watch [SECONDS]", "run the statement again and again, until Ctrl-C"),
    ("\\e [FILE]", "edit the statement or a file with $EDITOR"),
    ("\\p \\r", "show the statement that has begun, forget it"),
    ("\\i FILE", "run the statements of a file"),
    (
        "\\copy TABLE FROM|TO FILE",
        "COPY with a file of this machine; also (QUERY) TO, and WITH (..)",
    ),
    ("\\o [FILE]", "results go to a file or |command from now on; without one to the screen"),
    ("\\x [on|off]", "rows as lists instead of tables"),
    ("\\format [NAME]", "table, expanded, csv, tsv, json"),
    ("\\null TEXT", "what stands for NULL"),
    ("\\timing [on|off]", "show how long statements take"),
    ("\\c DATABASE|URL", "another database, or another node"),
    ("\\conninfo", "where this shell is connected"),
    ("\\echo TEXT", "print a text"),
    ("\\! COMMAND", "a command of the system's shell"),
    (
        "\\nodes \\kill N \\start N",
        "braid demo --nodes: list the nodes, end one as kill -9 does, start it again",
    ),
    ("\\tour", "braid demo: the next step of the tour"),
    ("\\q", "leave; also Ctrl-D"),
];

/// What the list says besides.
pub(super) const HELP: &str = "A statement ends with a semicolon. Ctrl-C cancels the statement \
that runs, or discards what was typed. The prompt shows * in an open transaction and ! in a \
failed one.";

/// Understands a command, which begins with a backslash.
pub(super) fn parse(line: &str) -> Result<Meta, String> {
    let line = line.trim();
    let (command, rest) = match line.split_once(char::is_whitespace) {
        Some((command, rest)) => (command, rest.trim()),
        None => (line, ""),
    };
    // A semicolon behind a command is a habit; of these it is a part.
    let whole = matches!(command, "\\copy" | "\\!" | "\\echo" | "\\g" | "\\o");
    let rest = if whole { rest } else { rest.trim_end_matches(';').trim_end() };
    let command = if rest.is_empty() { command.trim_end_matches(';') } else { command };
    let file = || (!rest.is_empty()).then(|| unquoted(rest));
    let needed = |what: &str| match rest.is_empty() {
        true => Err(format!("{command} needs {what}")),
        false => Ok(unquoted(rest)),
    };
    Ok(match command {
        "\\q" => Meta::Quit,
        "\\?" => Meta::Text(HELP),
        "\\h" | "\\help" => Meta::Help(rest.to_string()),
        "\\timing" => Meta::Timing(switch(command, rest)?),
        "\\x" => Meta::Expanded(switch(command, rest)?),
        "\\format" | "\\pset" => format(rest)?,
        "\\null" => Meta::Null(unquoted(rest)),
        "\\g" => Meta::Go { to: file(), expanded: false },
        "\\gx" => Meta::Go { to: file(), expanded: true },
        "\\gexec" => Meta::GoExec,
        "\\gset" => Meta::GoSet(rest.to_string()),
        "\\set" => set(rest),
        "\\unset" => Meta::Unset(needed("a name")?),
        "\\watch" => Meta::Watch(seconds(rest)?),
        "\\e" => Meta::Edit(file()),
        "\\p" => Meta::Print,
        "\\r" => Meta::Reset,
        "\\i" | "\\ir" => Meta::Include(needed("a file")?),
        "\\copy" => Meta::Copy(needed("a table and a file").map(|_| rest.to_string())?),
        "\\o" => Meta::Output(file()),
        "\\echo" => Meta::Echo(unquoted(rest)),
        "\\c" | "\\connect" => Meta::Connect(needed("a database or a URL")?),
        "\\conninfo" => Meta::ConnectionInfo,
        "\\!" => Meta::System(needed("a command").map(|_| rest.to_string())?),
        "\\kill" => Meta::Kill(node(command, rest)?),
        "\\start" => Meta::Start(node(command, rest)?),
        "\\nodes" => Meta::Nodes,
        "\\tour" => Meta::Tour,
        other => match describe::queries(other, rest) {
            Some(queries) => Meta::Describe(queries),
            None => return Err(format!("unknown command {other}; \\? lists them")),
        },
    })
}

/// Values behind each other are one: that is how PostgreSQL's shell has it.
fn set(rest: &str) -> Meta {
    let (name, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() {
        return Meta::Variables;
    }
    let mut value = String::new();
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = match rest.starts_with('\'') {
            true => end_of_text(rest),
            false => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        value.push_str(&unquoted(&rest[..end]));
        rest = &rest[end..];
    }
    Meta::Set(name.to_string(), value)
}

/// Behind a text in quotes, in which a doubled one is one.
fn end_of_text(text: &str) -> usize {
    let mut open = true;
    for (at, c) in text.char_indices().skip(1) {
        if c == '\'' {
            open = !open;
        } else if !open {
            return at;
        }
    }
    text.len()
}

fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    inner.map_or_else(|| text.to_string(), |inner| inner.replace("''", "'"))
}

fn switch(command: &str, rest: &str) -> Result<Option<bool>, String> {
    match rest {
        "" => Ok(None),
        "on" | "true" | "1" => Ok(Some(true)),
        "off" | "false" | "0" => Ok(Some(false)),
        other => Err(format!("{command} takes on or off, not {other}")),
    }
}

fn format(rest: &str) -> Result<Meta, String> {
    // As PostgreSQL's shell says it: \pset format csv, \pset null x.
    if let Some(text) = rest.strip_prefix("null") {
        return Ok(Meta::Null(unquoted(text.trim())));
    }
    let name = rest.strip_prefix("format").unwrap_or(rest).trim();
    let known = Format::named(if name.is_empty() { "table" } else { name });
    known
        .map(Meta::Format)
        .ok_or_else(|| format!("there is no format {name}: table, expanded, csv, tsv, json"))
}

fn seconds(rest: &str) -> Result<f64, String> {
    let text = rest.strip_prefix("i=").or(rest.strip_prefix("interval=")).unwrap_or(rest);
    if text.is_empty() {
        return Ok(2.0);
    }
    let seconds = text.parse().ok().filter(|s: &f64| (0.0..=86_400.0).contains(s));
    seconds.ok_or_else(|| format!("\\watch takes a number of seconds, not {rest}"))
}

fn node(command: &str, rest: &str) -> Result<usize, String> {
    let number = rest.parse().ok().filter(|n: &usize| *n > 0);
    number.ok_or_else(|| format!("{command} takes the number of a node, as \\nodes lists it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_with_their_arguments() {
        for (line, wanted) in [
            ("\\q;", Meta::Quit),
            ("\\timing on", Meta::Timing(Some(true))),
            ("\\x", Meta::Expanded(None)),
            ("\\watch", Meta::Watch(2.0)),
            ("\\watch 0.5", Meta::Watch(0.5)),
            ("\\g out.txt", Meta::Go { to: Some("out.txt".into()), expanded: false }),
            ("\\g | sort", Meta::Go { to: Some("| sort".into()), expanded: false }),
            ("\\i 'a file.sql'", Meta::Include("a file.sql".into())),
            ("\\copy t FROM 'x.csv' CSV;", Meta::Copy("t FROM 'x.csv' CSV;".into())),
            ("\\pset format csv", Meta::Format(Format::Csv)),
            ("\\pset null ''", Meta::Null(String::new())),
            ("\\set a b 'c  d''s' e", Meta::Set("a".into(), "bc  d'se".into())),
            ("\\set a", Meta::Set("a".into(), String::new())),
            ("\\gset x_;", Meta::GoSet("x_".into())),
            ("\\kill 2", Meta::Kill(2)),
            ("\\echo a  b", Meta::Echo("a  b".into())),
        ] {
            assert_eq!(parse(line), Ok(wanted), "{line}");
        }
        for line in [
            "\\nothing",
            "\\x perhaps",
            "\\watch -1",
            "\\watch soon",
            "\\i",
            "\\kill",
            "\\kill 0",
            "\\format xml",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn each_command_of_the_list_is_one() {
        for (names, _) in COMMANDS {
            for name in names.split_whitespace().filter(|word| word.starts_with('\\')) {
                let argument = if name == "\\copy" { "t from 'x'" } else { "1" };
                let known = parse(name).is_ok() || parse(&format!("{name} {argument}")).is_ok();
                assert!(known || name == "\\x", "{name}");
            }
        }
    }
}
