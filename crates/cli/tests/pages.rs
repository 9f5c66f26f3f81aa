//! The examples of the documentation are true: each block of SQL in the README and in the pages of
//! `docs/SUMMARY.md` is run by `braid sql`, and prints what the page says.
//!
//! A page is one session on a node of its own; its blocks run in their order.
//!
//! | in the page | is |
//! |---|---|
//! | a fence `sql` | run, and must not fail, unless the page shows that it does |
//! | a fence `text,output` right behind it | what the shell prints then, errors among it. `..` in a line stands for anything, a line `..` for any lines |
//! | a fence `sql,cluster` | for several nodes: not run here, and counted in [`NOT_RUN`] |
//! | a comment that begins with `<!-- sql` | run and must not fail: what the page takes for granted |
//!
//! Files of `tests/pages` are those that pages import. `WRITE_DOCS=1` writes what was printed into
//! the pages, where they say something else.

#![expect(clippy::disallowed_methods, reason = "the pages are files of the repository")]

mod support;

use std::fmt::Write as _;
use std::io::{Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::Node;

/// Pages with examples that need something which is not here, and how many those are.
const NOT_RUN: &[(&str, usize)] = &[("docs/cluster.md", 1)];

/// Between two blocks in what the shell prints.
const MARK: &str = "-- end of a block --";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README, and what the site of the documentation has.
fn pages() -> Vec<String> {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the summary");
    let linked = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    let mut out = vec!["README.md".to_string()];
    out.extend(linked.map(|page| format!("docs/{page}")));
    out
}

/// An example.
#[derive(Debug, Default, PartialEq)]
struct Block {
    /// Where it begins in the page, from 1.
    line: usize,
    sql: String,
    /// The lines of the page, from and up to, that show what is printed.
    output: Option<(usize, usize)>,
}

/// The examples of a page, and how many of its blocks are not run.
fn blocks(page: &str) -> Result<(Vec<Block>, usize), String> {
    let lines: Vec<&str> = page.lines().collect();
    let (mut out, mut not_run, mut at) = (Vec::<Block>::new(), 0, 0);
    // Whether nothing but empty lines came since the last example.
    let mut behind = false;
    while at < lines.len() {
        let line = lines[at].trim();
        let until = |end: &str| {
            let length = lines[at + 1..].iter().position(|line| line.trim() == end);
            length.map(|n| at + 1 + n).ok_or(format!("line {}: no end", at + 1))
        };
        if let Some(rest) = line.strip_prefix("<!-- sql") {
            if !rest.is_empty() {
                return Err(format!("line {}: statements begin on the next line", at + 1));
            }
            let end = until("-->")?;
            out.push(Block { line: at + 1, sql: lines[at + 1..end].join("\n"), output: None });
            (at, behind) = (end, false);
        } else if let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) {
            let end = until("```")?;
            match kind {
                "sql" => {
                    let sql = lines[at + 1..end].join("\n");
                    out.push(Block { line: at + 1, sql, output: None });
                }
                "sql,cluster" => not_run += 1,
                "text,output" if behind => {
                    out.last_mut().expect("one before it").output = Some((at + 1, end));
                }
                "sh" | "rust" | "text" => {}
                other => return Err(format!("line {}: what is {other}?", at + 1)),
            }
            (at, behind) = (end, kind == "sql");
        } else if !line.is_empty() {
            behind = false;
        }
        at += 1;
    }
    Ok((out, not_run))
}

/// What the shell prints for each of the blocks of a page.
fn printed(blocks: &[Block]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a directory");
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages");
    for file in std::fs::read_dir(given).expect("files of the pages") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), files.join(file.file_name())).expect("a copy");
    }
    let import = ["--http", "off", "--import-dir", files.to_str().expect("a path")];
    let node = Node::start_as(&folder.path().join("store"), Stdio::null(), &import);
    let mut script = "\\set ON_ERROR_STOP off\n".to_string();
    for block in blocks {
        let _ = write!(script, "{}\n\\echo {MARK}\n", block.sql);
    }
    // One file for both, so that errors stand where they came.
    let mut screen = tempfile::tempfile().expect("a temporary file");
    let both = || Stdio::from(screen.try_clone().expect("a handle"));
    let mut shell = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["sql", &node.url])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(both())
        .stderr(both())
        .spawn()
        .expect("the shell starts");
    shell.stdin.take().expect("piped").write_all(script.as_bytes()).expect("it reads");
    shell.wait().expect("the shell ends");
    let mut text = String::new();
    screen.rewind().expect("a file");
    screen.read_to_string(&mut text).expect("text");
    let mut parts: Vec<String> =
        text.split(&format!("{MARK}\n")).map(|part| part.trim_end().to_string()).collect();
    let rest = parts.pop().unwrap_or_default();
    assert!(parts.len() == blocks.len() && rest.is_empty(), "the shell has ended early: {text}");
    parts
}

/// Whether lines are those that a page shows.
fn fit(wanted: &[&str], found: &[&str]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((&"..", rest)) => (0..=found.len()).any(|at| fit(rest, &found[at..])),
        Some((first, rest)) => {
            found.first().is_some_and(|line| fits(first, line)) && fit(rest, &found[1..])
        }
    }
}

fn fits(wanted: &str, found: &str) -> bool {
    let mut parts = wanted.split("..");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What is wrong with a page.
fn check(page: &str, text: &str, wrong: &mut String) -> usize {
    let (blocks, not_run) = blocks(text).unwrap_or_else(|e| panic!("{page}, {e}"));
    let allowed = NOT_RUN.iter().find(|(name, _)| *name == page).map_or(0, |(_, n)| *n);
    assert_eq!(not_run, allowed, "{page}: examples that are not run are counted in NOT_RUN");
    if blocks.is_empty() {
        return 0;
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut written: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    for (block, found) in blocks.iter().zip(printed(&blocks)).rev() {
        let place = format!("{page}:{}", block.line);
        let Some((from, to)) = block.output else {
            if found.lines().any(|line| line.starts_with("ERROR") || line.starts_with("FATAL")) {
                let _ = writeln!(wrong, "{place} fails:\n{}\n{found}\n", block.sql);
            }
            continue;
        };
        let printed: Vec<&str> = found.lines().map(str::trim_end).collect();
        if !fit(&lines[from..to], &printed) {
            let shown = lines[from..to].join("\n");
            let _ = writeln!(wrong, "{place} prints\n{found}\nand not\n{shown}\n");
            written.splice(from..to, printed.iter().map(|line| line.to_string()));
        }
    }
    if std::env::var_os("WRITE_DOCS").is_some() {
        let text = written.join("\n") + "\n";
        std::fs::write(root().join(page), text).expect("the page can be written");
    }
    blocks.len()
}

#[test]
fn every_example_of_the_documentation_runs_and_prints_what_the_page_says() {
    let (mut wrong, mut count) = (String::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(root().join(&page)).expect("a page");
        count += check(&page, &text, &mut wrong);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 20, "examples are found: {count}");
}

#[test]
fn blocks_are_told_apart_and_outputs_belong_to_what_they_follow() {
    let page = "a\n<!-- sql\nselect 0;\n-->\n```sql\nselect 1;\n```\n\n```text,output\n1\n```\n\
        ```sql,cluster\nx\n```\n```text\nb\n```\n";
    let (found, not_run) = blocks(page).expect("a page");
    let block = |line, sql: &str, output| Block { line, sql: sql.into(), output };
    assert_eq!(found, [block(2, "select 0;", None), block(5, "select 1;", Some((9, 10)))]);
    assert_eq!(not_run, 1);
    for page in ["```sql\nselect 1;\n", "```SQL\nx\n```\n", "```sql\n```\na\n```text,output\n```\n"]
    {
        assert!(blocks(page).is_err(), "{page}");
    }
    for (wanted, found, fitting) in [
        ("a", "a", true),
        ("a", "b", false),
        ("a..c", "abc", true),
        ("a..c", "abcd", false),
        ("..b..", "abc", true),
        ("a\n..\nd", "a\nb\nc\nd", true),
        ("a\n..", "a", true),
        ("a\n..\nd", "a\nb", false),
    ] {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert_eq!(fit(&lines(wanted), &lines(found)), fitting, "{wanted}: {found}");
    }
}
