//! Where a statement ends: at a semicolon outside of quotes, dollar quotes and comments.

/// Gathers lines until they hold whole statements.
#[derive(Default)]
pub(super) struct StatementBuffer {
    text: String,
}

impl StatementBuffer {
    /// Adds a line (without its line break); returns the statements that it completes.
    pub(super) fn push_line(&mut self, line: &str) -> Vec<String> {
        self.text.push_str(line);
        self.text.push('\n');
        let mut out = Vec::new();
        while let Some(end) = end_of_statement(&self.text) {
            let rest = self.text.split_off(end);
            let statement = std::mem::replace(&mut self.text, rest);
            if statement.trim() != ";" {
                out.push(statement.trim().to_string());
            }
        }
        if self.text.trim().is_empty() {
            self.text.clear();
        }
        out
    }

    /// Whether a statement has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is left at the end of the input: a statement without its semicolon, or nothing.
    pub(super) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.text);
        let rest = rest.trim();
        (!rest.is_empty()).then(|| rest.to_string())
    }
}

/// The offset just after the first semicolon that ends a statement.
pub(super) fn end_of_statement(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let rest = &text[i..];
        i += match bytes[i] {
            b';' => return Some(i + 1),
            b'\'' | b'"' => quoted(rest, bytes[i])?,
            b'-' if rest.starts_with("--") => rest.find('\n')? + 1,
            b'/' if rest.starts_with("/*") => comment(rest)?,
            b'$' => match dollar_tag(rest) {
                Some(tag) => tag.len() + rest[tag.len()..].find(tag)? + tag.len(),
                None => 1,
            },
            // Stay on character boundaries.
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    None
}

/// Length of a quoted text with its quotes; a doubled quote stays inside.
fn quoted(text: &str, quote: u8) -> Option<usize> {
    text.bytes().skip(1).position(|b| b == quote).map(|p| p + 2)
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
        let mut out: Vec<String> = lines.iter().flat_map(|l| buffer.push_line(l)).collect();
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
    }
}
