//! Scenario scripts: text files in which commands and the state that they print alternate.
//!
//! ```text
//!   # Why this scenario is worth reading.
//!   lock T1 a exclusive
//!   lock T2 a shared
//!   ----
//!   T1 has it
//!   T2 waits for T1
//!
//!   release T1                      blocks are separated by empty lines;
//!   ----                            the state goes on from block to block of a file
//!   T2 goes on
//! ```
//! A test gives the folder of its scripts, how a file's state starts, and what a block of commands
//! does to it and prints. The files are both the expectation and the documentation: with
//! `BRAID_REWRITE=1` they are written anew, and the difference is what a reviewer reads.
//!
//! Knows nothing of ours, and only tests depend on it.

use std::path::{Path, PathBuf};

/// Between commands and what they print.
const RULE: &str = "----";

/// Plays every `.txt` file of a folder and compares what is printed with what stands there.
///
/// # Panics
/// If something else is printed (unless `BRAID_REWRITE` is set), or there is no script.
#[allow(clippy::disallowed_methods, reason = "scripts are files of the repository")]
pub fn check<S>(
    folder: impl AsRef<Path>,
    start: impl Fn() -> S,
    block: impl Fn(&mut S, &[&str]) -> String,
) {
    let folder = folder.as_ref();
    let files = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = files.filter_map(|f| f.ok().map(|f| f.path())).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "txt"));
    files.sort();
    assert!(!files.is_empty(), "{} has no scripts", folder.display());
    let rewrite = std::env::var_os("BRAID_REWRITE").is_some();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        let played = replay(&text, &mut start(), &block);
        if rewrite {
            std::fs::write(&file, &played).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        } else if let Some(difference) = difference(&text, &played) {
            panic!("{}\n{difference}\nBRAID_REWRITE=1 writes it anew.", file.display());
        }
    }
}

/// The script with what its commands print now.
pub fn replay<S>(text: &str, state: &mut S, block: impl Fn(&mut S, &[&str]) -> String) -> String {
    let mut out = Vec::new();
    for part in text.trim_end().split("\n\n").filter(|part| !part.trim().is_empty()) {
        let part = part.trim_start_matches('\n');
        let lines: Vec<&str> = part.lines().take_while(|line| *line != RULE).collect();
        let commands: Vec<&str> =
            lines.iter().copied().filter(|line| !line.starts_with('#')).collect();
        if commands.is_empty() {
            out.push(lines.join("\n"));
            continue;
        }
        let printed = block(state, &commands);
        let printed = if printed.trim_end().is_empty() { "ok" } else { printed.trim_end() };
        // An empty line would end the block.
        let printed: Vec<&str> =
            printed.lines().map(|l| if l.is_empty() { "." } else { l }).collect();
        out.push(format!("{}\n{RULE}\n{}", lines.join("\n"), printed.join("\n")));
    }
    out.join("\n\n") + "\n"
}

/// The first line that differs.
fn difference(expected: &str, found: &str) -> Option<String> {
    let (mut a, mut b) = (expected.lines(), found.lines());
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => return (expected != found).then(|| "the end differs".to_string()),
            (x, y) if x == y => {}
            (x, y) => {
                let show = |side: Option<&str>| side.unwrap_or("(the end)").to_string();
                return Some(format!(
                    "line {line}\n  is        {}\n  should be {}",
                    show(y),
                    show(x)
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(state: &mut i64, lines: &[&str]) -> String {
        *state += lines.iter().map(|l| l.parse::<i64>().expect("a number")).sum::<i64>();
        format!("{state}\n\nso far")
    }

    #[test]
    fn state_goes_on_and_comments_stay() {
        let text = "# Title.\n\n# Two.\n1\n2\n----\nstale\n\n4\n";
        let played = replay(text, &mut 0, sum);
        let wanted = "# Title.\n\n# Two.\n1\n2\n----\n3\n.\nso far\n\n4\n----\n7\n.\nso far\n";
        assert_eq!(played, wanted);
        assert_eq!(replay(wanted, &mut 0, sum), wanted);
    }

    #[test]
    fn the_first_difference_is_told() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert!(difference("a\nb\n", "a\nc\n").is_some_and(|d| d.starts_with("line 2")));
        assert!(difference("a\n", "a\nc\n").is_some());
        assert!(difference("a\n", "a").is_some());
    }
}
