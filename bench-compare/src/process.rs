//! An engine in another process (Pebble, driven by `pebble/main.go`): one line per step each way.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::step::{Report, Step, parse_report};

pub struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(program: &Path) -> Process {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the driver starts; build it as README.md says");
        let to = child.stdin.take().expect("it is piped");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        Process { child, to, from }
    }

    pub fn run(&mut self, step: &Step) -> Report {
        writeln!(self.to, "{step}").expect("the driver listens");
        let mut line = String::new();
        let read = self.from.read_line(&mut line).expect("the driver answers");
        assert!(read > 0 && line.starts_with("ok"), "step '{step}' failed: {line}");
        parse_report(&line)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
