//! Statements to the server, results to the screen.

use std::io::{BufRead, Read, Write};

use braid_env::clock::{Clock, WallClock};
use postgres::{Client, Config, NoTls};

use super::meta::{self, Meta};
use super::prompt::{Line, Prompt};
use super::statements::StatementBuffer;
use super::table;
use crate::CliResult;

/// Whether a person reads along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interaction {
    /// Errors are printed and the shell goes on.
    Person,
    /// The first error ends the run.
    Batch,
}

/// A shell on one connection.
pub(crate) struct Shell {
    client: Client,
    timing: bool,
    expanded: bool,
    quit: bool,
}

/// An error of the server with everything it said.
pub(crate) fn describe_error(e: &postgres::Error) -> String {
    let Some(e) = e.as_db_error() else { return e.to_string() };
    let mut out = format!("{}: {} (SQLSTATE {})", e.severity(), e.message(), e.code().code());
    if let Some(detail) = e.detail() {
        out.push_str(&format!("\nDETAIL: {detail}"));
    }
    if let Some(hint) = e.hint() {
        out.push_str(&format!("\nHINT: {hint}"));
    }
    if let Some(context) = e.where_() {
        out.push_str(&format!("\nCONTEXT: {context}"));
    }
    out
}

impl Shell {
    /// Connects to a node.
    pub(crate) fn connect(url: &str) -> CliResult<Shell> {
        let mut config: Config = url.parse()?;
        config.application_name("braid sql");
        config.notice_callback(|notice| {
            eprintln!("{}: {}", notice.severity(), notice.message());
        });
        let client = config.connect(NoTls).map_err(|e| {
            format!("{}\nIs a node running? Start one with `braid start`.", describe_error(&e))
        })?;
        Ok(Shell { client, timing: false, expanded: false, quit: false })
    }

    /// Reads and runs lines from a person until he leaves.
    pub(crate) fn interact(&mut self) -> CliResult {
        self.timing = true;
        let mut prompt = Prompt::new(self.words())?;
        let mut buffer = StatementBuffer::default();
        while !self.quit {
            match prompt.read(!buffer.is_empty())? {
                Line::Text(line) => self.line(&line, &mut buffer, Interaction::Person, None)?,
                Line::Discard => buffer = StatementBuffer::default(),
                Line::End => break,
            }
        }
        Ok(())
    }

    /// Runs statements from a file or pipe. COPY FROM STDIN takes its rows from the same stream.
    pub(crate) fn run_stream(&mut self, input: &mut dyn BufRead) -> CliResult {
        let mut buffer = StatementBuffer::default();
        let mut line = String::new();
        while !self.quit {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                break;
            }
            let text = line.trim_end_matches(['\n', '\r']).to_string();
            self.line(&text, &mut buffer, Interaction::Batch, Some(&mut *input))?;
        }
        match buffer.finish() {
            Some(statement) => self.statement(&statement, Interaction::Batch, None),
            None => Ok(()),
        }
    }

    /// Runs a text of statements or one backslash command.
    pub(crate) fn run_text(&mut self, text: &str, interaction: Interaction) -> CliResult {
        let mut buffer = StatementBuffer::default();
        for line in text.lines() {
            self.line(line, &mut buffer, interaction, None)?;
        }
        match buffer.finish() {
            Some(statement) => self.statement(&statement, interaction, None),
            None => Ok(()),
        }
    }

    fn line(
        &mut self,
        line: &str,
        buffer: &mut StatementBuffer,
        interaction: Interaction,
        mut input: Option<&mut dyn BufRead>,
    ) -> CliResult {
        if buffer.is_empty() && line.trim_start().starts_with('\\') {
            return self.meta(line, interaction);
        }
        for statement in buffer.push_line(line) {
            let input = input.as_mut().map(|i| &mut **i as &mut dyn BufRead);
            self.statement(&statement, interaction, input)?;
        }
        Ok(())
    }

    fn meta(&mut self, line: &str, interaction: Interaction) -> CliResult {
        match meta::parse(line) {
            Ok(Meta::Quit) => self.quit = true,
            Ok(Meta::Text(text)) => println!("{text}"),
            Ok(Meta::Timing) => {
                self.timing = !self.timing;
                println!("Timing is {}.", if self.timing { "on" } else { "off" });
            }
            Ok(Meta::Expanded) => self.expanded = !self.expanded,
            Ok(Meta::Queries(queries)) => {
                for query in queries {
                    self.statement(&query, interaction, None)?;
                }
            }
            Err(message) if interaction == Interaction::Batch => return Err(message.into()),
            Err(message) => eprintln!("{message}"),
        }
        Ok(())
    }

    fn statement(
        &mut self,
        statement: &str,
        interaction: Interaction,
        input: Option<&mut dyn BufRead>,
    ) -> CliResult {
        let clock = WallClock;
        let start = clock.monotonic_nanos();
        let done = match copy_direction(statement) {
            Some(Copy::In) => self.copy_in(statement, input),
            Some(Copy::Out) => self.copy_out(statement),
            None => match self.client.simple_query(statement) {
                Ok(messages) => {
                    table::print(&messages, self.expanded);
                    Ok(())
                }
                Err(e) => Err(describe_error(&e).into()),
            },
        };
        if self.timing {
            let elapsed = (clock.monotonic_nanos() - start) as f64 / 1e6;
            println!("Time: {elapsed:.3} ms\n");
        }
        match done {
            Err(e) if interaction == Interaction::Person => {
                eprintln!("{e}");
                Ok(())
            }
            done => done,
        }
    }

    fn copy_in(&mut self, statement: &str, input: Option<&mut dyn BufRead>) -> CliResult {
        let Some(input) = input else {
            return Err(
                "COPY FROM STDIN takes its rows from a pipe or file: braid sql < FILE".into()
            );
        };
        let server = |e: postgres::Error| describe_error(&e);
        let mut sink = self.client.copy_in(statement).map_err(server)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 || line.strip_suffix(b"\n") == Some(b"\\.")
            {
                break;
            }
            // When the server has given up, `finish` says why.
            if sink.write_all(&line).is_err() {
                break;
            }
        }
        println!("OK, {} rows", sink.finish().map_err(server)?);
        Ok(())
    }

    fn copy_out(&mut self, statement: &str) -> CliResult {
        let mut source = self.client.copy_out(statement).map_err(|e| describe_error(&e))?;
        let mut stdout = std::io::stdout().lock();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = source.read(&mut buffer)?;
            if read == 0 {
                return Ok(stdout.flush()?);
            }
            stdout.write_all(&buffer[..read])?;
        }
    }

    /// Names to complete: keywords, tables and columns.
    fn words(&mut self) -> Vec<String> {
        const KEYWORDS: &str = "SELECT INSERT UPDATE DELETE FROM WHERE GROUP ORDER LIMIT VALUES \
            CREATE TABLE INDEX DROP ALTER TRUNCATE EXPLAIN BEGIN COMMIT ROLLBACK INTERLEAVE PARENT \
            CASCADE PRIMARY REFERENCES RETURNING";
        let mut words: Vec<String> = KEYWORDS.split_whitespace().map(str::to_string).collect();
        let names = "SELECT table_name FROM information_schema.tables UNION \
            SELECT column_name FROM information_schema.columns \
            WHERE table_schema NOT IN ('pg_catalog', 'information_schema')";
        // Completion is a comfort: without the names it still knows the keywords.
        if let Ok(messages) = self.client.simple_query(names) {
            words.extend(messages.iter().filter_map(|m| match m {
                postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
                _ => None,
            }));
        }
        words
    }
}

enum Copy {
    In,
    Out,
}

fn copy_direction(statement: &str) -> Option<Copy> {
    let upper = statement.to_ascii_uppercase();
    let mut words = upper.split_whitespace().map(|w| w.trim_end_matches(';'));
    if words.next() != Some("COPY") {
        return None;
    }
    let words: Vec<&str> = words.collect();
    words.windows(2).find_map(|pair| match pair {
        ["FROM", "STDIN"] => Some(Copy::In),
        ["TO", "STDOUT"] => Some(Copy::Out),
        _ => None,
    })
}
