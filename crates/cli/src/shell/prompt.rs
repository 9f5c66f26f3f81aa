//! Line editing with history and completion.

use std::borrow::Cow;
use std::path::PathBuf;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder, Prompt as ReedlinePrompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, default_emacs_keybindings,
};

use crate::CliResult;

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
    pub(super) fn new(words: Vec<String>) -> CliResult<Prompt> {
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
            .with_completer(Box::new(Words(words)))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        if let Some(path) = history_path() {
            let history = FileBackedHistory::with_file(1000, path)?;
            editor = editor.with_history(Box::new(history));
        }
        Ok(Prompt { editor })
    }

    /// Reads one line. Blocks.
    pub(super) fn read(&mut self, continued: bool) -> CliResult<Line> {
        let signal = self.editor.read_line(&Indicator { continued })?;
        Ok(match signal {
            Signal::Success(line) => Line::Text(line),
            Signal::CtrlC => Line::Discard,
            _ => Line::End,
        })
    }
}

fn history_path() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")?;
    Some(PathBuf::from(home).join(".braid_history"))
}

struct Indicator {
    continued: bool,
}

impl ReedlinePrompt for Indicator {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(if self.continued { "     " } else { "braid" })
    }
    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(if self.continued { "-> " } else { "=> " })
    }
    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("-> ")
    }
    fn render_prompt_history_search_indicator(&self, s: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search '{}': ", s.term))
    }
}

/// Completes the word before the cursor.
struct Words(Vec<String>);

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let head = &line[..pos];
        let start = head.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
        let typed = &head[start..];
        if typed.is_empty() {
            return CompletionResult::fresh(Vec::new());
        }
        let lower = typed.to_lowercase();
        let found = self
            .0
            .iter()
            .filter(|w| w.to_lowercase().starts_with(&lower))
            .map(|w| Suggestion {
                value: w.clone(),
                span: Span::new(start, pos),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect::<Vec<_>>();
        CompletionResult::fresh(found)
    }
}
