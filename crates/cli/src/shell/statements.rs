//! Where a statement ends: at a semicolon outside of quotes, dollar quotes and comments; or at a
//! backslash, which begins a command of the shell.

/// What ends a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Behind a semicolon.
    Statement(usize),
    /// In front of a backslash.
    Command(usize),
}

/// What a line has completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// A statement, with its semicolon.
    Statement(String),
    /// A command of the shell, to the end of the line. What stands in front of it, without an end,
    /// stays in the buffer.
    Command(String),
}

/// Gathers lines until they hold whole statements.
#[derive(Default)]
pub(super) struct StatementBuffer {
    text: String,
}

impl StatementBuffer {
    /// Adds a line (without its line break); returns what it completes.
    pub(super) fn push_line(&mut self, line: &str) -> Vec<Whole> {
        self.text.push_str(line);
        self.text.push('\n');
        let mut out = Vec::new();
        while let Some(end) = first_end(&self.text) {
            match end {
                End::Statement(end) => {
                    let rest = self.text.split_off(end);
                    let statement = std::mem::replace(&mut self.text, rest);
                    if statement.trim() != ";" {
                        out.push(Whole::Statement(statement.trim().to_string()));
                    }
                }
                End::Command(at) => {
                    let command = self.text.split_off(at);
                    out.push(Whole::Command(command.trim().to_string()));
                }
            }
        }
        if self.text.trim().is_empty() {
            self.text.clear();
        }
        out
    }

    /// Whether a statement has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// What is there of a statement.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// What keeps the statement from its end, as a prompt shows it: a quote, a bracket, a comment,
    /// or nothing but a semicolon.
    pub(super) fn waits_for(&self) -> char {
        waits_for(&self.text)
    }

    /// What is left at the end of the input: a statement without its semicolon, or nothing.
    pub(super) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.text);
        let rest = rest.trim();
        (!rest.is_empty()).then(|| rest.to_string())
    }
}

/// A part of a text that belongs together.
pub(super) enum Token {
    /// Something in quotes, or a comment: so many bytes, or its end is not there.
    Inside(char, Option<usize>),
    Other(char),
}

/// What begins at this place.
pub(super) fn token(text: &str, at: usize) -> Token {
    let rest = &text[at..];
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        '\'' => Token::Inside('\'', quoted(rest, b'\'', is_escaping(&text[..at]))),
        '"' => Token::Inside('"', quoted(rest, b'"', false)),
        '-' if rest.starts_with("--") => Token::Inside('-', rest.find('\n').map(|end| end + 1)),
        '/' if rest.starts_with("/*") => Token::Inside('*', comment(rest)),
        '$' if !ends_in_name(&text[..at]) => match dollar_tag(rest) {
            Some(tag) => {
                let behind = &rest[tag.len()..];
                Token::Inside('$', behind.find(tag).map(|end| end + 2 * tag.len()))
            }
            None => Token::Other(first),
        },
        other => Token::Other(other),
    }
}

fn first_end(text: &str) -> Option<End> {
    let mut at = 0;
    while at < text.len() {
        at += match token(text, at) {
            Token::Inside(_, length) => length?,
            Token::Other(';') => return Some(End::Statement(at + 1)),
            Token::Other('\\') => return Some(End::Command(at)),
            Token::Other(other) => other.len_utf8(),
        };
    }
    None
}

fn waits_for(text: &str) -> char {
    let (mut at, mut open) = (0, 0u32);
    while at < text.len() {
        at += match token(text, at) {
            // A line's end ends such a comment.
            Token::Inside(_, Some(length)) => length,
            Token::Inside('-', None) => break,
            Token::Inside(kind, None) => return kind,
            Token::Other(other) => {
                match other {
                    '(' => open += 1,
                    ')' => open = open.saturating_sub(1),
                    _ => {}
                }
                other.len_utf8()
            }
        };
    }
    if open > 0 { '(' } else { '-' }
}

/// Whether backslashes mean something in a text whose quote comes behind this: `E'..'`.
fn is_escaping(before: &str) -> bool {
    let rest = before.strip_suffix(['e', 'E']);
    rest.is_some_and(|rest| !ends_in_name(rest))
}

fn ends_in_name(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Length of a quoted text with its quotes; a doubled quote begins a text that follows at once.
fn quoted(text: &str, quote: u8, escapes: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if escapes => at += 2,
            byte if *byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Length of a comment; comments nest.
fn comment(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut i = 0;
    while i < text.len() {
        let rest = &text.as_bytes()[i..];
        if rest.starts_with(b"/*") {
            depth += 1;
            i += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return Some(i);
            }
        } else {
            i += 1;
        }
    }
    None
}

/// `$$` or `$tag$` at the start of the text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let name = &text[1..end];
    let valid = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    valid.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(lines: &[&str]) -> Vec<String> {
        let mut buffer = StatementBuffer::default();
        let whole = |whole| match whole {
            Whole::Statement(text) | Whole::Command(text) => text,
        };
        let mut out: Vec<String> =
            lines.iter().flat_map(|l| buffer.push_line(l)).map(whole).collect();
        out.extend(buffer.finish());
        out
    }

    #[test]
    fn semicolons_inside_of_something_do_not_end_a_statement() {
        assert_eq!(
            split(&["SELECT ';', \"a;b\"; SELECT 2;"]),
            ["SELECT ';', \"a;b\";", "SELECT 2;"]
        );
        assert_eq!(
            split(&["SELECT 'it''s;'", "; -- x;", "SELECT 1"]),
            ["SELECT 'it''s;'\n;", "-- x;\nSELECT 1"]
        );
        assert_eq!(split(&["SELECT $a$;$$;$a$ /* ; /* ; */ ; */;"]).len(), 1);
        assert_eq!(split(&["SELECT $1;", ";;", "é;"]), ["SELECT $1;", "é;"]);
        assert_eq!(split(&["SELECT E'it\\';', 'a\\';"]), ["SELECT E'it\\';', 'a\\';"]);
        assert_eq!(split(&["SELECT a$b$ FROM t; SELECT 2;"]).len(), 2);
    }

    #[test]
    fn backslashes_begin_commands_and_leave_what_stands_before() {
        let mut buffer = StatementBuffer::default();
        assert_eq!(buffer.push_line("select 1"), []);
        assert_eq!(buffer.push_line("+ 2 \\gx"), [Whole::Command("\\gx".into())]);
        assert_eq!(buffer.text(), "select 1\n+ 2");
        assert_eq!(split(&["select 'a\\b';", "\\d t"]), ["select 'a\\b';", "\\d t"]);
    }

    #[test]
    fn a_prompt_can_say_what_is_missing() {
        for (text, wanted) in [
            ("select", '-'),
            ("select (1", '('),
            ("select ')' (", '('),
            ("select 'a", '\''),
            ("select \"a", '"'),
            ("select $x$ a", '$'),
            ("select /* a", '*'),
            ("select -- (a", '-'),
        ] {
            assert_eq!(waits_for(text), wanted, "{text}");
        }
    }
}
