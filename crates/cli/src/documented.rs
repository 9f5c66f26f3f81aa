//! The documentation names no subcommand and no option of `braid` that is not there.
//!
//! Commands in blocks of `sh` are read as the binary would read them; of those in running text
//! the words and the options that they name are looked up.

use std::path::Path;

use clap::{Command, CommandFactory, Parser};

use crate::Arguments;

/// The README and all pages.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs")).expect("pages") {
        let path = entry.expect("a page").path();
        paths.extend((path.extension().is_some_and(|end| end == "md")).then_some(path));
    }
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = |path: &Path| std::fs::read_to_string(path).expect("a page");
    paths.iter().map(|path| (named(path), text(path))).collect()
}

/// Lines of the blocks of `sh`, and what stands in backquotes elsewhere.
fn parts(page: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut commands, mut spans) = (Vec::new(), Vec::new());
    let (mut fence, mut prose) = (None, 0);
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        match (line.trim_end().strip_prefix("```"), fence) {
            (Some(kind), None) => {
                spans.extend(page[prose..begin].split('`').skip(1).step_by(2));
                fence = Some(kind);
            }
            (Some(_), Some(_)) => (fence, prose) = (None, at),
            (None, Some("sh")) => commands.push(line.trim_end()),
            _ => {}
        }
    }
    spans.extend(page[prose..].split('`').skip(1).step_by(2));
    (commands, spans)
}

/// The words of a line as a shell has them, up to a comment.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '#') if !begun => break,
            (None, c) if c.is_whitespace() => {
                if begun {
                    out.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        out.push(word);
    }
    out
}

/// The calls of `braid` in words of a shell.
fn calls(words: &[String]) -> Vec<&[String]> {
    let parts = words.split(|word| matches!(word.as_str(), "|" | "&&" | ";" | "<" | ">" | "&"));
    let call = |part: &[String]| {
        let at = part.iter().position(|word| word == "braid" || word.ends_with("/braid"))?;
        Some((at, part.len()))
    };
    let mut out = Vec::new();
    for part in parts {
        // `cargo run .. --bin braid -- demo`.
        if part.first().is_some_and(|word| word == "cargo") {
            let behind = part.iter().position(|word| word == "--").unwrap_or(part.len());
            if part.get(1).is_some_and(|word| word == "run") {
                out.push(&part[behind.min(part.len())..]);
            }
        } else if let Some((from, to)) = call(part) {
            out.push(&part[from..to]);
        }
    }
    out.into_iter().filter(|call| call.len() > 1).collect()
}

/// The subcommand that words lead to, and the words behind.
fn command_of<'c>(root: &'c Command, words: &[String]) -> (&'c Command, usize) {
    let (mut command, mut at) = (root, 1);
    while let Some(next) = words.get(at).and_then(|word| command.find_subcommand(word)) {
        (command, at) = (next, at + 1);
    }
    (command, at)
}

fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|a| {
        a.get_long().is_some_and(|long| option == format!("--{long}"))
            || a.get_short().is_some_and(|short| option == format!("-{short}"))
    })
}

fn any_has(command: &Command, option: &str) -> bool {
    has(command, option) || command.get_subcommands().any(|sub| any_has(sub, option))
}

/// Pages on which an option that stands alone is one of `braid`.
const ABOUT_BRAID: &[&str] = &["README.md", "cluster.md", "import.md", "operations.md", "shell.md"];
/// Options on them that are none: a script's.
const OTHERS: &[&str] = &["--long"];

#[test]
fn every_command_of_the_documentation_is_one() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    let mut root = Arguments::command();
    root.build();
    for (page, text) in pages() {
        let (commands, spans) = parts(&text);
        let mut variable: Option<(String, String)> = None;
        for line in commands {
            let mut all = words(line);
            if let Some((name, value)) = &variable {
                all.iter_mut().filter(|w| *w == name).for_each(|word| word.clone_from(value));
            }
            if let [word] = &all[..]
                && let Some((name, value)) = word.split_once('=')
            {
                variable = Some((format!("${name}"), value.to_string()));
            }
            for call in calls(&all) {
                count += 1;
                if let Err(e) = Arguments::try_parse_from(call) {
                    wrong.push(format!("{page}: {line}\n{e}"));
                }
            }
        }
        for span in spans {
            let words = words(span);
            let is_call = words.first().is_some_and(|word| word == "braid") && words.len() > 1;
            let about_braid = ABOUT_BRAID.contains(&page.as_str());
            let alone = about_braid && words.len() <= 2 && span.starts_with("--");
            if !is_call && !alone {
                continue;
            }
            count += 1;
            let (command, at) = if is_call { command_of(&root, &words) } else { (&root, 0) };
            let choices = words.get(1).is_some_and(|word| word.contains(['|', '.']));
            if is_call && at == 1 && !choices {
                wrong.push(format!("{page}: `{span}`: there is no such subcommand"));
            }
            for option in words[at..].iter().filter(|word| word.starts_with('-') && word.len() > 1)
            {
                let option = option.split('=').next().unwrap_or(option);
                let known = if is_call { has(command, option) } else { any_has(&root, option) };
                if !known && !OTHERS.contains(&option) {
                    wrong.push(format!("{page}: `{span}`: there is no {option}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "commands are found: {count}");
}

#[test]
fn calls_are_found_in_lines() {
    let line = "zcat 'a b.gz' | braid import t - --header   # braid nothing";
    let all = words(line);
    assert_eq!(all[1], "a b.gz");
    assert_eq!(calls(&all), [["braid", "import", "t", "-", "--header"]]);
    assert!(calls(&words("cargo build --bin braid")).is_empty());
    assert_eq!(calls(&words("cargo run --bin braid -- demo")), [["--", "demo"]]);
}
