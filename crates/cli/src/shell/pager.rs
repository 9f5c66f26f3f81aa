//! The screen: what does not fit goes through a pager, if a person reads it.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

/// Whoever read the output has closed it: the shell ends, and that is no failure.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the output any more")
    }
}

impl std::error::Error for OutputClosed {}

/// Told apart from a connection that is lost.
fn closed(e: io::Error) -> io::Error {
    if e.kind() == io::ErrorKind::BrokenPipe { io::Error::other(OutputClosed) } else { e }
}

/// A line to the screen.
pub(super) fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}").map_err(closed)
}

/// Gathers what is written, and shows it when it is flushed: whole, or by pages. What nobody reads
/// on a screen goes straight on.
#[derive(Default)]
pub(super) struct Screen {
    waiting: Vec<u8>,
    pager: Option<Child>,
    /// There is no pager, or nobody needs one.
    direct: bool,
}

impl Screen {
    /// Lines that fit.
    fn height() -> Option<usize> {
        let out = io::stdout();
        if !(out.is_terminal() && io::stdin().is_terminal()) {
            return None;
        }
        terminal_size().map(|(_, rows)| usize::from(rows))
    }

    /// Goes on through the pager once there is more than a screen.
    fn overflow(&mut self) -> io::Result<()> {
        let Some(height) = Screen::height() else {
            self.direct = true;
            return self.pass();
        };
        if self.waiting.iter().filter(|b| **b == b'\n').count() + 2 < height {
            return Ok(());
        }
        let named = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
        let command = named.unwrap_or_else(|| "less -FRSX".into());
        let started = Command::new("sh").args(["-c", &command]).stdin(Stdio::piped()).spawn();
        match started {
            Ok(child) => self.pager = Some(child),
            Err(_) => self.direct = true,
        }
        self.pass()
    }

    /// Hands on what waits.
    fn pass(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        match self.pager.as_mut().and_then(|child| child.stdin.as_mut()) {
            // Who leaves the pager has seen enough.
            Some(pager) => pager.write_all(&waiting).or_else(ignore_closed),
            None => io::stdout().write_all(&waiting).map_err(closed),
        }
    }
}

fn ignore_closed(e: io::Error) -> io::Result<()> {
    if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) }
}

/// Columns and rows of the terminal.
fn terminal_size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.direct || self.pager.is_some() {
            self.pass()?;
        } else if bytes.contains(&b'\n') {
            self.overflow()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass()?;
        io::stdout().flush().map_err(closed)?;
        if let Some(mut pager) = self.pager.take() {
            drop(pager.stdin.take());
            pager.wait()?;
        }
        Ok(())
    }
}
