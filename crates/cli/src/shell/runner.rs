//! Statements to the server, results to the screen.

use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};

use super::copying::{self, Place};
use super::forms;
use super::interrupt::interrupts;
use super::meta::{self, Meta};
use super::output::{Format, Look, Shown};
use super::pager::{Screen, say};
use super::prompt::{Line, Prompt};
use super::report::Report;
use super::statements::{StatementBuffer, Whole};
use super::variables::Variables;
use super::wire::{Came, Column, Values, Wire};
use super::words;
use crate::CliResult;

/// Whether a person reads along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interaction {
    /// Errors are printed and the shell goes on.
    Person,
    /// The first error ends the run.
    Batch,
    /// A script that has set ON_ERROR_STOP to off: errors are printed.
    Lenient,
}

/// The nodes of a demo, which its shell ends and starts.
pub(crate) trait DemoNodes {
    /// Ends one as kill -9 does.
    fn kill(&mut self, node: usize) -> CliResult<String>;
    /// Starts one again.
    fn start(&mut self, node: usize) -> CliResult<String>;
    /// A line for each.
    fn list(&mut self) -> CliResult<String>;
}

/// A step of a tour: what it is about, and what is run.
pub(crate) struct Step {
    /// For the person.
    pub(crate) text: &'static str,
    /// Statements. `{before}` stands for the time at which the step before this one began.
    pub(crate) run: &'static str,
}

/// A shell on one connection.
pub(crate) struct Shell {
    wire: Wire,
    url: String,
    look: Look,
    timing: bool,
    quit: bool,
    /// The statement that was run last.
    last: String,
    /// Where results go, if not to the screen.
    target: Option<Place>,
    /// Files that include files.
    depth: usize,
    variables: Variables,
    nodes: Option<Box<dyn DemoNodes>>,
    tour: Vec<Step>,
    /// When the last step of the tour began.
    step_at: String,
}

/// Nobody types rows.
const NO_ROWS: &str =
    "COPY FROM STDIN takes its rows from a pipe or file: braid sql < FILE, or \\copy";
/// Files within files at most.
const DEPTH_MAX: usize = 20;

/// Where the rows of COPY FROM STDIN come from: the stream that the statement came from.
type Input<'a> = Option<&'a mut dyn BufRead>;

impl Shell {
    /// Connects to a node.
    pub(crate) fn connect(url: &str) -> CliResult<Shell> {
        let look = Look { format: Format::Table, null: "NULL".into() };
        Ok(Shell {
            wire: Wire::connect(url)?,
            url: url.to_string(),
            look,
            timing: false,
            quit: false,
            last: String::new(),
            target: None,
            depth: 0,
            variables: Variables::default(),
            nodes: None,
            tour: Vec::new(),
            step_at: String::new(),
        })
    }

    /// How results are shown.
    pub(crate) fn show_as(&mut self, format: Format) {
        self.look.format = format;
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: &str) -> CliResult {
        Ok(self.variables.set(name, value.to_string())?)
    }

    /// The nodes that `\kill` and `\start` are about.
    pub(crate) fn belongs_to(&mut self, nodes: Box<dyn DemoNodes>) {
        self.nodes = Some(nodes);
    }

    /// What `\tour` shows, step by step.
    pub(crate) fn with_tour(&mut self, mut steps: Vec<Step>) {
        steps.reverse();
        self.tour = steps;
    }

    /// Reads and runs lines from a person until he leaves.
    pub(crate) fn interact(&mut self) -> CliResult {
        self.timing = true;
        let words = words::Words::default();
        words.learn(&mut self.wire);
        let mut prompt = Prompt::new(words.clone())?;
        let mut buffer = StatementBuffer::default();
        while !self.quit {
            let waits_for = (!buffer.is_empty()).then(|| buffer.waits_for());
            let (database, status) = (self.wire.database.clone(), self.wire.status());
            match prompt.read(&database, status, waits_for)? {
                Line::Text(line) => {
                    self.line(&line, &mut buffer, Interaction::Person, None)?;
                    if words::changes_names(&self.last) && buffer.is_empty() {
                        words.learn(&mut self.wire);
                    }
                }
                Line::Discard => buffer = StatementBuffer::default(),
                Line::End => break,
            }
        }
        Ok(())
    }

    /// Runs statements from a file or pipe. COPY FROM STDIN takes its rows from the same stream.
    pub(crate) fn run_stream(
        &mut self,
        input: &mut dyn BufRead,
        interaction: Interaction,
    ) -> CliResult {
        let mut buffer = StatementBuffer::default();
        let mut line = String::new();
        while !self.quit {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                break;
            }
            let text = line.trim_end_matches(['\n', '\r']).to_string();
            self.line(&text, &mut buffer, interaction, Some(&mut *input))?;
        }
        self.end(&mut buffer, interaction)
    }

    /// Runs a text of statements and commands.
    pub(crate) fn run_text(&mut self, text: &str, interaction: Interaction) -> CliResult {
        let mut buffer = StatementBuffer::default();
        for line in text.lines() {
            self.line(line, &mut buffer, interaction, None)?;
        }
        self.end(&mut buffer, interaction)
    }

    /// What has no semicolon at the end of a script.
    fn end(&mut self, buffer: &mut StatementBuffer, interaction: Interaction) -> CliResult {
        let Some(statement) = buffer.finish() else { return Ok(()) };
        let statement = self.variables.fill(&statement);
        self.statement(&statement, self.effective(interaction), None)
    }

    fn effective(&self, interaction: Interaction) -> Interaction {
        match interaction {
            Interaction::Batch if self.variables.go_on() => Interaction::Lenient,
            other => other,
        }
    }

    fn line(
        &mut self,
        line: &str,
        buffer: &mut StatementBuffer,
        interaction: Interaction,
        mut input: Input<'_>,
    ) -> CliResult {
        for whole in buffer.push_line(line) {
            let input = input.as_mut().map(|i| &mut **i as &mut dyn BufRead);
            let interaction = self.effective(interaction);
            match whole {
                Whole::Statement(statement) => {
                    let statement = self.variables.fill(&statement);
                    self.statement(&statement, interaction, input)?;
                }
                Whole::Command(command) => {
                    let is_system = command.starts_with("\\!");
                    let command = if is_system { command } else { self.variables.fill(&command) };
                    let done = meta::parse(&command)
                        .map_err(Into::into)
                        .and_then(|meta| self.command(meta, buffer, interaction));
                    told(done, interaction)?;
                }
            }
        }
        Ok(())
    }

    fn command(
        &mut self,
        meta: Meta,
        buffer: &mut StatementBuffer,
        interaction: Interaction,
    ) -> CliResult {
        match meta {
            Meta::Quit => self.quit = true,
            Meta::Text(text) => help(text)?,
            Meta::Help(words) => say(&forms::help(&words)?)?,
            Meta::Timing(to) => {
                self.timing = to.unwrap_or(!self.timing);
                say(&format!("Timing is {}.", if self.timing { "on" } else { "off" }))?;
            }
            Meta::Format(format) => {
                self.look.format = format;
                say(&format!("Results are shown as {}.", format.name()))?;
            }
            Meta::Expanded(to) => {
                let is = self.look.format == Format::Expanded;
                let to = to.unwrap_or(!is);
                self.look.format = if to { Format::Expanded } else { Format::Table };
                say(&format!("Rows as lists: {}.", if to { "on" } else { "off" }))?;
            }
            Meta::Null(text) => self.look.null = text,
            Meta::Describe(queries) => self.describe(&queries)?,
            Meta::Print => say(self.about(buffer).as_str())?,
            Meta::Reset => *buffer = StatementBuffer::default(),
            Meta::Go { to, expanded } => {
                let statement = self.taken(buffer)?;
                let (look, target) = (self.look.clone(), self.target.clone());
                if expanded {
                    self.look.format = Format::Expanded;
                }
                if let Some(to) = to {
                    self.target = Some(copying::target(&to));
                }
                let done = self.statement(&statement, interaction, None);
                (self.look, self.target) = (look, target);
                done?;
            }
            Meta::GoExec => {
                let statement = self.taken(buffer)?;
                for row in self.rows_of(&statement)? {
                    for made in row.into_iter().flatten() {
                        self.statement(&made, interaction, None)?;
                    }
                }
            }
            Meta::GoSet(prefix) => {
                let statement = self.taken(buffer)?;
                self.keep(&statement, &prefix)?;
            }
            Meta::Watch(seconds) => {
                let statement = self.taken(buffer)?;
                self.watch(&statement, seconds)?;
            }
            Meta::Edit(file) => {
                let text = edited(file.as_deref(), &self.about(buffer))?;
                *buffer = StatementBuffer::default();
                say(text.trim_end())?;
                self.line(text.trim_end(), buffer, interaction, None)?;
            }
            other => self.outward(other, interaction)?,
        }
        Ok(())
    }

    /// Commands that are about files, connections and nodes.
    fn outward(&mut self, meta: Meta, interaction: Interaction) -> CliResult {
        match meta {
            Meta::Include(name) => self.include(&name, interaction)?,
            Meta::Copy(text) => {
                let copying = copying::parse(&text)?;
                self.copy_file(&copying)?;
            }
            Meta::Output(to) => self.target = to.map(|to| copying::target(&to)),
            Meta::Echo(text) => say(&text)?,
            Meta::Set(name, value) => self.variables.set(&name, value)?,
            Meta::Unset(name) => self.variables.unset(&name),
            Meta::Variables => say(&self.variables.listed())?,
            Meta::Connect(to) => self.reconnect(&to)?,
            Meta::ConnectionInfo => {
                let version = self.wire.parameter("server_version").unwrap_or("?").to_string();
                let (database, user) = (&self.wire.database, &self.wire.user);
                let node = self.wire.node();
                say(&format!("Database \"{database}\" as user \"{user}\" at {node}, {version}."))?;
            }
            Meta::System(command) => {
                let ended = copying::shell(&command).status()?;
                if !ended.success() {
                    return Err(format!("the command ended with {ended}").into());
                }
            }
            Meta::Kill(node) => say(&self.nodes()?.kill(node)?)?,
            Meta::Start(node) => say(&self.nodes()?.start(node)?)?,
            Meta::Nodes => say(&self.nodes()?.list()?)?,
            Meta::Tour => self.step(interaction)?,
            _ => {}
        }
        Ok(())
    }

    fn nodes(&mut self) -> CliResult<&mut Box<dyn DemoNodes>> {
        let none = "only `braid demo --nodes 3` has nodes that this shell may end and start";
        self.nodes.as_mut().ok_or_else(|| none.into())
    }

    fn step(&mut self, interaction: Interaction) -> CliResult {
        let Some(Step { text, run }) = self.tour.pop() else {
            return Err("the tour is over; \\d and \\? show where to go on".into());
        };
        let now = self.rows_of("SELECT clock_timestamp()")?.pop().and_then(|mut row| row.pop());
        let before = std::mem::replace(&mut self.step_at, now.flatten().unwrap_or_default());
        let run = run.replace("{before}", &before);
        say(&format!("\n{text}\n\n{run}\n"))?;
        self.run_text(&run, interaction)?;
        Ok(say(if self.tour.is_empty() { "That was the tour." } else { "\\tour goes on." })?)
    }

    fn about(&self, buffer: &StatementBuffer) -> String {
        if buffer.is_empty() { self.last.clone() } else { buffer.text().to_string() }
    }

    fn include(&mut self, name: &str, interaction: Interaction) -> CliResult {
        if self.depth >= DEPTH_MAX {
            return Err(
                format!("{name}: files include each other more than {DEPTH_MAX} deep").into()
            );
        }
        let (mut input, _) = copying::reader(&Place::File(name.to_string()))?;
        self.depth += 1;
        let done = self.run_stream(&mut input, interaction);
        self.depth -= 1;
        done
    }

    /// Another database of this node, or what a URL names.
    fn reconnect(&mut self, to: &str) -> CliResult {
        let is_url = to.contains("://") || to.contains('=');
        let url = if is_url { to.to_string() } else { with_database(&self.url, to) };
        self.wire = Wire::connect(&url)?;
        self.url = url;
        let (database, node) = (&self.wire.database, self.wire.node());
        Ok(say(&format!("Connected to database \"{database}\" at {node}."))?)
    }

    fn describe(&mut self, queries: &[(String, String)]) -> CliResult {
        for (at, (title, query)) in queries.iter().enumerate() {
            let (columns, rows) = match self.result_of(query) {
                Ok(result) => result,
                // The first one says whether there is such a relation; others may have nothing to
                // say of one of its kind.
                Err(e) if at == 0 => return Err(e),
                Err(_) => continue,
            };
            if rows.is_empty() && at > 0 {
                continue;
            }
            // What has no default needs no word for it.
            let look = Look { null: String::new(), ..self.look.clone() };
            self.print(|out| {
                if look.format.is_for_people() {
                    writeln!(out, "{title}")?;
                }
                let mut shown = Shown::begin(&look, &columns, out)?;
                rows.into_iter().try_for_each(|row| shown.row(row))?;
                shown.end()
            })?;
        }
        Ok(())
    }

    /// Runs a statement that gives one row, whose values become variables.
    fn keep(&mut self, statement: &str, prefix: &str) -> CliResult {
        self.last = statement.to_string();
        let (columns, mut rows) = self.result_of(statement)?;
        let row = match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => row,
            (None, _) => return Err("\\gset takes one row, and there is none".into()),
            _ => return Err("\\gset takes one row, and there are more".into()),
        };
        for (column, value) in columns.iter().zip(row) {
            let name = format!("{prefix}{}", column.name);
            match value {
                Some(value) => self.variables.set(&name, value)?,
                None => self.variables.unset(&name),
            }
        }
        Ok(())
    }

    /// The statement that has begun, which is over then, with its variables; or the last one.
    fn taken(&self, buffer: &mut StatementBuffer) -> CliResult<String> {
        match buffer.finish() {
            Some(begun) => Ok(self.variables.fill(&begun)),
            None if self.last.is_empty() => Err("there is no statement yet".into()),
            None => Ok(self.last.clone()),
        }
    }

    /// Runs a statement until Ctrl-C, so many seconds after each end.
    fn watch(&mut self, statement: &str, seconds: f64) -> CliResult {
        let before = interrupts().pressed();
        let (clock, step) = (WallClock, Duration::from_millis(20));
        // Between two runs it ends this, and nothing else.
        let ends = interrupts().end_when_idle(false);
        let mut done = Ok(());
        while done.is_ok() && interrupts().pressed() == before {
            done = self.statement(statement, Interaction::Batch, None);
            let until = clock.monotonic_nanos() + (seconds * 1e9) as u64;
            while done.is_ok()
                && clock.monotonic_nanos() < until
                && interrupts().pressed() == before
            {
                clock.sleep(step);
            }
        }
        interrupts().end_when_idle(ends);
        done
    }

    /// Runs a statement, or several, and shows what comes of it.
    pub(super) fn statement(
        &mut self,
        statement: &str,
        interaction: Interaction,
        input: Input<'_>,
    ) -> CliResult {
        self.last = statement.to_string();
        let begun = WallClock.monotonic_nanos();
        let (done, ended) = self.run(statement, input);
        let elapsed = ended.saturating_sub(begun) as f64 / 1e6;
        if self.timing {
            say(&format!("Time: {elapsed:.3} ms\n"))?;
        }
        if let Err(e) = &done
            && e.downcast_ref::<io::Error>().is_some_and(is_lost)
        {
            if interaction != Interaction::Person {
                return done;
            }
            eprintln!("The connection is lost: {e}.");
            return self.connect_again();
        }
        told(done, interaction)
    }

    /// To the same node, or to another one that the URL names.
    fn connect_again(&mut self) -> CliResult {
        match Wire::connect(&self.url) {
            Ok(wire) => {
                eprintln!("Connected again, at {}. What was open is rolled back.", wire.node());
                self.wire = wire;
            }
            Err(e) => eprintln!("{e}"),
        }
        Ok(())
    }

    /// Runs it; and when the server had ended, whatever a person looks at then.
    fn run(&mut self, statement: &str, input: Input<'_>) -> (CliResult, u64) {
        let mut out = match Target::open(self.target.as_ref()) {
            Ok(out) => out,
            Err(e) => return (Err(e), WallClock.monotonic_nanos()),
        };
        let done = self.run_into(statement, input, &mut out);
        let ended = WallClock.monotonic_nanos();
        (out.close().and(done), ended)
    }

    fn run_into(&mut self, statement: &str, mut input: Input<'_>, out: &mut Target) -> CliResult {
        let _running = interrupts().run(self.wire.cancel_key());
        self.wire.send(statement)?;
        let mut failed: Option<Report> = None;
        let mut came = self.wire.next()?;
        while let Some(one) = came.take() {
            match one {
                Came::Columns(columns) => {
                    came = self.rows(&columns, out)?;
                    continue;
                }
                Came::Done(tag) if self.look.format.is_for_people() => {
                    // The count of rows says that already.
                    if !["SELECT", "SHOW", "EXPLAIN"].iter().any(|word| tag.starts_with(word)) {
                        out.line(&tag)?;
                    }
                }
                Came::Copied(rows) => out.bytes(&rows)?,
                Came::CopyIn => match input.as_mut() {
                    Some(input) => send_rows(&mut self.wire, &mut **input)?,
                    None => self.wire.end_copy(Some(NO_ROWS))?,
                },
                Came::Failed(report) => failed = Some(report),
                Came::Row(_) | Came::Done(_) | Came::Nothing => {}
            }
            came = self.wire.next()?;
        }
        failed.map_or(Ok(()), |report| Err(report.text(Some(statement)).into()))
    }

    /// Shows the rows of a result. Returns what comes behind its last one.
    fn rows(&mut self, columns: &[Column], out: &mut Target) -> CliResult<Option<Came>> {
        let look = self.look.clone();
        let mut shown = Shown::begin(&look, columns, out)?;
        loop {
            match self.wire.next()? {
                Some(Came::Row(row)) => shown.row(row)?,
                other => {
                    // A result that has failed has no end.
                    if !matches!(other, Some(Came::Failed(_))) {
                        shown.end()?;
                    }
                    return Ok(other);
                }
            }
        }
    }

    /// The rows of a query of this shell's own.
    fn result_of(&mut self, query: &str) -> CliResult<(Vec<Column>, Vec<Values>)> {
        let _running = interrupts().run(self.wire.cancel_key());
        words::result(&mut self.wire, query)
    }

    fn rows_of(&mut self, query: &str) -> CliResult<Vec<Values>> {
        Ok(self.result_of(query)?.1)
    }

    /// Shows what is written, on the screen or where results go.
    fn print(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> CliResult {
        let mut out = Target::open(self.target.as_ref())?;
        write(&mut out)?;
        out.close()
    }

    fn copy_file(&mut self, copying: &copying::Copying) -> CliResult {
        let _running = interrupts().run(self.wire.cancel_key());
        self.last = copying.statement.clone();
        let (mut reader, mut writer) = (None, None);
        // Before the server is told: a file that is not there is no statement.
        match copying.out {
            true => writer = Some(copying::writer(&copying.place)?),
            false => reader = Some(copying::reader(&copying.place)?),
        }
        self.wire.send(&copying.statement)?;
        let mut failed = None;
        while let Some(came) = self.wire.next()? {
            match came {
                Came::CopyIn => match &mut reader {
                    Some((reader, _)) => send_rows(&mut self.wire, reader)?,
                    None => self.wire.end_copy(Some("it is no COPY FROM STDIN"))?,
                },
                Came::Copied(rows) => {
                    if let Some((writer, _)) = &mut writer {
                        writer.write_all(&rows)?;
                    }
                }
                Came::Done(tag) => say(&tag)?,
                Came::Failed(report) => failed = Some(report),
                _ => {}
            }
        }
        let children = reader.and_then(|(_, child)| child).into_iter();
        let (written, writes) = writer.map_or((None, None), |(w, child)| (Some(w), child));
        if let Some(mut written) = written {
            written.flush()?;
        }
        for mut child in children.chain(writes) {
            child.wait()?;
        }
        failed.map_or(Ok(()), |report| Err(report.text(Some(&copying.statement)).into()))
    }
}

/// Sends the rows of a stream up to its end, or to a line with `\.`.
fn send_rows(wire: &mut Wire, input: &mut dyn BufRead) -> CliResult {
    const PART: usize = 64 << 10;
    let mut part = Vec::new();
    let before = interrupts().pressed();
    loop {
        let at = part.len();
        match input.read_until(b'\n', &mut part) {
            Ok(0) => break,
            Ok(_) if matches!(&part[at..], b"\\.\n" | b"\\.\r\n" | b"\\.") => {
                part.truncate(at);
                break;
            }
            Ok(_) => {}
            // The rows before it must not stay.
            Err(e) => return Ok(wire.end_copy(Some(&format!("the rows cannot be read: {e}")))?),
        }
        if interrupts().pressed() != before {
            return Ok(wire.end_copy(Some("canceled by the user"))?);
        }
        if part.len() >= PART {
            wire.copy(&part)?;
            part.clear();
        }
    }
    if !part.is_empty() {
        wire.copy(&part)?;
    }
    Ok(wire.end_copy(None)?)
}

/// Where results are written: the screen, by pages if it is a person's, a file, a command.
struct Target {
    out: Box<dyn Write>,
    child: Option<Child>,
}

impl Target {
    fn open(place: Option<&Place>) -> CliResult<Target> {
        match place {
            Some(place) => {
                let (out, child) = copying::writer(place)?;
                Ok(Target { out, child })
            }
            None => Ok(Target { out: Box::new(Screen::default()), child: None }),
        }
    }

    fn line(&mut self, text: &str) -> CliResult {
        Ok(writeln!(self.out, "{text}")?)
    }

    fn bytes(&mut self, bytes: &[u8]) -> CliResult {
        Ok(self.out.write_all(bytes)?)
    }

    fn close(mut self) -> CliResult {
        self.out.flush()?;
        drop(self.out);
        if let Some(mut child) = self.child {
            child.wait()?;
        }
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// An error: a person reads it, and goes on.
fn told(done: CliResult, interaction: Interaction) -> CliResult {
    match done {
        Err(e) if interaction != Interaction::Batch => {
            eprintln!("{e}");
            Ok(())
        }
        done => done,
    }
}

fn is_lost(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn help(text: &str) -> CliResult {
    let width = meta::COMMANDS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, about) in meta::COMMANDS {
        say(&format!("{name:width$}  {about}"))?;
    }
    Ok(say(text)?)
}

/// A URL with another database.
fn with_database(url: &str, database: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgresql", url));
    let (rest, options) = match rest.split_once('?') {
        Some((rest, options)) => (rest, format!("?{options}")),
        None => (rest, String::new()),
    };
    let nodes = rest.split_once('/').map_or(rest, |(nodes, _)| nodes);
    format!("{scheme}://{nodes}/{database}{options}")
}

/// What a person makes of a text, or of a file, in an editor.
#[expect(clippy::disallowed_methods, reason = "a file of a person, not of a store")]
fn edited(file: Option<&str>, text: &str) -> CliResult<String> {
    let own = tempfile::Builder::new().prefix("braid-").suffix(".sql").tempfile()?;
    let path = match file {
        Some(file) => file.to_string(),
        None => {
            std::fs::write(own.path(), format!("{text}\n"))?;
            own.path().display().to_string()
        }
    };
    let named = |name: &str| std::env::var(name).ok().filter(|editor| !editor.is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".into());
    let quoted = format!("'{}'", path.replace('\'', "'\\''"));
    let ended = copying::shell(&format!("{editor} {quoted}")).stdin(Stdio::inherit()).status()?;
    if !ended.success() {
        return Err(format!("{editor} ended with {ended}").into());
    }
    Ok(std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?)
}

/// Statements from standard input.
pub(super) fn standard_input() -> Box<dyn BufRead> {
    Box::new(BufReader::new(io::stdin()))
}

/// Whether a person sits there.
pub(super) fn is_person() -> bool {
    io::stdin().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_keeps_its_nodes_and_options() {
        for (url, wanted) in [
            ("postgresql://root@h:1,h:2/a?x=y", "postgresql://root@h:1,h:2/b?x=y"),
            ("postgresql://root@h:1", "postgresql://root@h:1/b"),
        ] {
            assert_eq!(with_database(url, "b"), wanted);
        }
    }
}
