//! Line editing with history and completion.

use std::borrow::Cow;
use std::path::PathBuf;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder, Prompt as ReedlinePrompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, default_emacs_keybindings,
};

use super::wire::Status;
use super::words::Words;
use crate::CliResult;

/// Lines that are remembered.
const HISTORY: usize = 10_000;

/// What a person typed.
pub(super) enum Line {
    /// A line.
    Text(String),
    /// Ctrl-C: forget what was typed so far.
    Discard,
    /// Ctrl-D: leave.
    End,
}

/// The line editor.
pub(super) struct Prompt {
    editor: Reedline,
}

impl Prompt {
    pub(super) fn new(words: Words) -> CliResult<Prompt> {
        let menu = ColumnarMenu::default().with_name("completion");
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu("completion".to_string()),
                ReedlineEvent::MenuNext,
            ]),
        );
        let mut editor = Reedline::create()
            .with_completer(Box::new(OfWords(words)))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        if let Some(path) = history_path() {
            let history = FileBackedHistory::with_file(HISTORY, path)?;
            editor = editor.with_history(Box::new(history));
        }
        Ok(Prompt { editor })
    }

    /// Reads one line, of a statement that waits for this if it has begun. Blocks.
    pub(super) fn read(
        &mut self,
        database: &str,
        status: Status,
        waits_for: Option<char>,
    ) -> CliResult<Line> {
        let indicator = Indicator { text: indicated(database, status, waits_for) };
        let signal = self.editor.read_line(&indicator)?;
        Ok(match signal {
            Signal::Success(line) => Line::Text(line),
            Signal::CtrlC => Line::Discard,
            _ => Line::End,
        })
    }
}

/// `defaultdb=> `, with `*` in an open transaction and `!` in a failed one; `defaultdb-> ` while a
/// statement goes on, with what it waits for.
fn indicated(database: &str, status: Status, waits_for: Option<char>) -> String {
    let status = match status {
        Status::Idle => "",
        Status::Open => "*",
        Status::Failed => "!",
    };
    format!("{database}{}{status}> ", waits_for.unwrap_or('='))
}

fn history_path() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")?;
    Some(PathBuf::from(home).join(".braid_history"))
}

struct Indicator {
    text: String,
}

impl ReedlinePrompt for Indicator {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(&self.text)
    }
    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("-> ")
    }
    fn render_prompt_history_search_indicator(&self, s: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search '{}': ", s.term))
    }
}

/// Completes the word before the cursor.
struct OfWords(Words);

impl Completer for OfWords {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let head = &line[..pos];
        let start = head.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
        let suggested = |value: String| Suggestion {
            value,
            span: Span::new(start, pos),
            append_whitespace: true,
            ..Suggestion::default()
        };
        let found: Vec<_> = self.0.completions(head, start).into_iter().map(suggested).collect();
        CompletionResult::fresh(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_says_where_a_session_stands() {
        for (status, waits_for, wanted) in [
            (Status::Idle, None, "db=> "),
            (Status::Open, None, "db=*> "),
            (Status::Failed, None, "db=!> "),
            (Status::Idle, Some('-'), "db-> "),
            (Status::Open, Some('('), "db(*> "),
            (Status::Idle, Some('\''), "db'> "),
        ] {
            assert_eq!(indicated("db", status, waits_for), wanted);
        }
    }
}
