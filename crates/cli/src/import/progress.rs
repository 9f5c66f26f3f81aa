//! How far something is: one line on a terminal, nothing elsewhere.

use std::io::{IsTerminal, Write};

use braid_env::clock::{Clock, WallClock};

/// Between two pictures.
const EVERY_NANOS: u64 = 100_000_000;
const WIDTH: usize = 24;

/// See the [module documentation](self).
pub(super) struct Progress {
    name: String,
    terminal: bool,
    begun: u64,
    shown: u64,
}

impl Progress {
    pub(super) fn new(name: &str) -> Progress {
        let begun = WallClock.monotonic_nanos();
        Progress { name: name.into(), terminal: std::io::stderr().is_terminal(), begun, shown: 0 }
    }

    /// So much is done, from 0 to 1; bytes if they are known; what is being done if that is not
    /// clear.
    pub(super) fn show(&mut self, fraction: f64, bytes: Option<u64>, step: &str) {
        let now = WallClock.monotonic_nanos();
        if !self.terminal || now - self.shown < EVERY_NANOS {
            return;
        }
        self.shown = now;
        let seconds = (now - self.begun) as f64 / 1e9;
        let line = picture(fraction, bytes, seconds, step);
        // A terminal that is gone is told nothing.
        let _gone = write!(std::io::stderr(), "\r{}: {line}\x1b[K", self.name);
    }

    /// Takes the line away.
    pub(super) fn end(self) {
        if self.terminal {
            let _gone = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn picture(fraction: f64, bytes: Option<u64>, seconds: f64, step: &str) -> String {
    let fraction = fraction.clamp(0.0, 1.0);
    let full = (fraction * WIDTH as f64) as usize;
    let mut out = format!("[{:<WIDTH$}] {:3.0} %", "#".repeat(full), fraction * 100.0);
    if let Some(bytes) = bytes {
        out.push_str(&format!("  {:.1} MB/s", bytes as f64 / 1e6 / seconds.max(0.001)));
    }
    if fraction > 0.01 && fraction < 1.0 {
        let left = (seconds / fraction * (1.0 - fraction)).round() as u64;
        out.push_str(&format!("  {}:{:02} left", left / 60, left % 60));
    }
    if !step.is_empty() {
        out.push_str(&format!("  {step}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_tells_part_rate_and_time() {
        let half = picture(0.5, Some(30_000_000), 10.0, "read");
        assert_eq!(half, "[############            ]  50 %  3.0 MB/s  0:10 left  read");
        assert_eq!(picture(2.0, None, 1.0, ""), format!("[{}] 100 %", "#".repeat(24)));
    }
}
