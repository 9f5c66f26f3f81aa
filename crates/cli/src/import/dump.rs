//! A dump that lies on the node, and what hierarchy its tables could have.
//!
//! The statement answers when all of it is there; meanwhile another connection asks how far its job
//! is.

use std::sync::mpsc::{RecvTimeoutError, channel};

use postgres::{Client, NoTls, SimpleQueryRow};

use super::command::{ImportArguments, literal};
use super::on_node::{ASK_EVERY, given_options, query};
use super::progress::Progress;
use crate::CliResult;

/// IMPORT PGDUMP; prints a line for each finding.
pub(super) fn run(a: &ImportArguments, file: &str) -> CliResult {
    let mut options = given_options(a);
    if a.propose_interleave {
        // Nobody who asks wants the tables yet.
        options.extend(["dry_run".to_string(), "propose_interleave".to_string()]);
    } else if a.dry_run {
        options.push("dry_run".into());
    }
    if let Some(wish) = &a.interleave {
        options.push(format!("interleave = {}", literal(wish)));
    }
    let with =
        if options.is_empty() { String::new() } else { format!(" WITH {}", options.join(", ")) };
    let statement = format!("IMPORT PGDUMP {}{with}", literal(file));
    let rows = watched(a, &statement)?;
    for row in &rows {
        let field = |name: &str| row.get(name).unwrap_or_default();
        let (result, subject, detail) = (field("result"), field("subject"), field("detail"));
        match field("line") {
            "" => println!("{result}: {subject}: {detail}"),
            line => println!("{result} (line {line}): {subject}: {detail}"),
        }
    }
    Ok(())
}

/// Runs a statement in a thread and shows how far its job is.
fn watched(a: &ImportArguments, statement: &str) -> CliResult<Vec<SimpleQueryRow>> {
    let mut runner = Client::connect(&a.url, NoTls)?;
    let mut watcher = Client::connect(&a.url, NoTls)?;
    let (done, answers) = channel();
    let text = statement.to_string();
    let running = std::thread::Builder::new().name("import".into()).spawn(move || {
        let answer = query(&mut runner, &text).map_err(|e| e.to_string());
        // Nobody waits any more when the other connection has failed.
        let _gone = done.send(answer);
    })?;
    let mut progress = Progress::new("import");
    loop {
        match answers.recv_timeout(ASK_EVERY) {
            Ok(answer) => {
                progress.end();
                let _joined = running.join();
                return answer.map_err(Into::into);
            }
            Err(RecvTimeoutError::Disconnected) => return Err("the import has no answer".into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let jobs = query(&mut watcher, "SHOW JOBS")?;
        let ours = |row: &&SimpleQueryRow| {
            row.get("statement") == Some(statement) && row.get("state") == Some("running")
        };
        if let Some(job) = jobs.iter().find(ours) {
            let fraction = job.get("fraction").and_then(|f| f.parse().ok()).unwrap_or(0.0);
            progress.show(fraction, None, job.get("step").unwrap_or_default());
        }
    }
}

/// SHOW INTERLEAVE PROPOSALS, as a list.
pub(super) fn propose(a: &ImportArguments) -> CliResult {
    let mut client = Client::connect(&a.url, NoTls)?;
    let rows = query(&mut client, "SHOW INTERLEAVE PROPOSALS")?;
    if rows.is_empty() {
        println!("no table refers to another one");
    }
    for row in &rows {
        print!("{}", told(|name| row.get(name).unwrap_or_default()));
    }
    Ok(())
}

/// One proposal.
fn told<'a>(field: impl Fn(&str) -> &'a str) -> String {
    let (child, parent) = (field("table_name"), field("parent_table"));
    let mut out = format!("{child} in {parent}: {}\n", field("proposal"));
    let sizes = [
        ("rows", field("rows")),
        ("in each", field("rows_in_each")),
        ("at most", field("most_in_one")),
        ("bytes in each", field("bytes_in_each")),
    ];
    let sizes: Vec<String> = sizes
        .into_iter()
        .filter(|(_, n)| !n.is_empty())
        .map(|(what, n)| format!("{what} {n}"))
        .collect();
    let lines = [field("statement"), &sizes.join(", ")].map(str::to_string).into_iter();
    let lines = lines.chain(
        ["changes", "remarks"]
            .iter()
            .flat_map(|name| field(name).split("; ").map(str::to_string).collect::<Vec<_>>()),
    );
    for line in lines.filter(|line| !line.is_empty()) {
        out.push_str(&format!("  {line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_told_line_by_line() {
        let field = |name: &str| match name {
            "table_name" => "orders",
            "parent_table" => "customers",
            "proposal" => "ready",
            "statement" => "ALTER TABLE orders ..",
            "rows" => "12",
            "changes" => "a; b",
            _ => "",
        };
        let want = "orders in customers: ready\n  ALTER TABLE orders ..\n  rows 12\n  a\n  b\n";
        assert_eq!(told(field), want);
    }
}
