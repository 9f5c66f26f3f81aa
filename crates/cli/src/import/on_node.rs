//! Files that lie on the node: one IMPORT, as a job that another connection asks about.

use std::path::Path;
use std::time::Duration;

use postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use super::command::{ImportArguments, literal};
use super::progress::Progress;
use crate::CliResult;
use crate::shell::describe_error;

/// How often the job is asked about.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(a: &ImportArguments, table: &str) -> CliResult {
    let mut client = Client::connect(&a.url, NoTls)?;
    let statement = statement(a, table)?;
    let rows = query(&mut client, &statement)?;
    if a.dry_run {
        for row in &rows {
            println!("{}: {}", row.get(0).unwrap_or_default(), row.get(1).unwrap_or_default());
        }
        return Ok(());
    }
    let job = rows.first().and_then(|row| row.get("job_id")).ok_or("the node names no job")?;
    let mut progress = Progress::new(&format!("job {job}"));
    loop {
        let jobs = query(&mut client, "SHOW JOBS")?;
        let found = jobs.iter().find(|row| row.get("id") == Some(job));
        let found = found.ok_or_else(|| format!("the node has forgotten job {job}"))?;
        let column = |name: &str| found.get(name).unwrap_or_default().to_string();
        match column("state").as_str() {
            state @ ("running" | "paused") => {
                let step = if state == "paused" { "paused".into() } else { column("step") };
                progress.show(column("fraction").parse().unwrap_or(0.0), None, &step);
            }
            "succeeded" => {
                progress.end();
                println!("job {job}: succeeded");
                return Ok(());
            }
            state => {
                progress.end();
                return Err(format!("job {job}: {state}: {}", column("error")).into());
            }
        }
        std::thread::sleep(ASK_EVERY);
    }
}

pub(super) fn query(client: &mut Client, sql: &str) -> CliResult<Vec<SimpleQueryRow>> {
    let answer = client.simple_query(sql).map_err(|e| describe_error(&e))?;
    let row = |m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None };
    Ok(answer.into_iter().filter_map(row).collect())
}

fn statement(a: &ImportArguments, table: &str) -> CliResult<String> {
    let format = match &a.format {
        Some(format) => format.clone(),
        None => by_suffix(&a.files[0])?.to_string(),
    };
    let files: Vec<String> = a.files.iter().map(|path| literal(&path.to_string_lossy())).collect();
    let mut options: Vec<String> = Vec::new();
    if format == "csv" {
        let delimiter = if a.files[0].to_string_lossy().contains(".tsv") && a.delimiter == ',' {
            '\t'
        } else {
            a.delimiter
        };
        options.push(format!("delimiter = {}", literal(&delimiter.to_string())));
        options.push(format!("nullif = {}", literal(&a.null)));
        options.push(format!("header = {}", a.header));
    }
    options.extend(given_options(a));
    options.push(if a.dry_run { "dry_run" } else { "detached" }.into());
    let (files, options) = (files.join(", "), options.join(", "));
    Ok(format!("IMPORT INTO {table} {format} DATA ({files}) WITH ({options})"))
}

/// What `--option` says, as statements take it.
pub(super) fn given_options(a: &ImportArguments) -> Vec<String> {
    let option = |given: &String| match given.split_once('=') {
        Some((name, value)) => format!("{} = {}", name.trim(), literal(value)),
        None => given.clone(),
    };
    a.options.iter().map(option).collect()
}

/// The format that a name speaks of, whatever compression comes behind.
fn by_suffix(path: &Path) -> CliResult<&'static str> {
    let mut name = path.to_string_lossy().to_lowercase();
    for packed in [".gz", ".zst", ".bz2"] {
        name = name.strip_suffix(packed).map_or(name.clone(), str::to_string);
    }
    match name.rsplit_once('.').map_or("", |(_, suffix)| suffix) {
        "csv" | "tsv" | "txt" => Ok("csv"),
        "jsonl" | "ndjson" => Ok("jsonl"),
        "parquet" => Ok("parquet"),
        "avro" => Ok("avro"),
        _ => Err(format!("{}: say the format with --format", path.display()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, format) in [
            ("a.csv", "csv"),
            ("b.TSV.gz", "csv"),
            ("*.parquet", "parquet"),
            ("d/x.jsonl.zst", "jsonl"),
        ] {
            assert_eq!(by_suffix(Path::new(name)).expect(name), format);
        }
        assert!(by_suffix(Path::new("data")).is_err());
    }
}
