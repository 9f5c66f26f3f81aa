//! Variables of the shell: `\set name value`, `\gset`, and `:name` in what comes after.
//!
//! `:name` is replaced by the value as it is, `:'name'` by it as a text, `:"name"` as a name;
//! outside of quotes and comments, and only if there is such a variable. `a::name` is a cast.

use std::collections::BTreeMap;

use super::statements::{Token, token};

/// What is set to off so that a script goes on behind an error.
const STOPS: &str = "ON_ERROR_STOP";

/// Values by their names.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        if name.is_empty() || !name.chars().all(is_part) {
            return Err(format!("a variable has letters, digits and _ in its name, not {name}"));
        }
        self.0.insert(name.to_string(), value);
        Ok(())
    }

    /// Forgets a variable.
    pub(super) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All of them, as `\set` lists them.
    pub(super) fn listed(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(|(n, v)| format!("{n} = '{v}'")).collect();
        lines.join("\n")
    }

    /// Whether a script goes on behind an error.
    pub(super) fn go_on(&self) -> bool {
        let set = self.0.get(STOPS).map(|value| value.to_lowercase());
        matches!(set.as_deref(), Some("off" | "0" | "false"))
    }

    /// A text with values in place of names.
    pub(super) fn fill(&self, text: &str) -> String {
        if self.0.is_empty() || !text.contains(':') {
            return text.to_string();
        }
        let (mut out, mut at) = (String::new(), 0);
        while at < text.len() {
            let rest = &text[at..];
            let length = match token(text, at) {
                Token::Inside(_, length) => length.unwrap_or(rest.len()).min(rest.len()),
                Token::Other(':') if !text[..at].ends_with(':') => match self.value(&rest[1..]) {
                    Some((value, length)) => {
                        out.push_str(&value);
                        at += 1 + length;
                        continue;
                    }
                    None => 1,
                },
                Token::Other(other) => other.len_utf8(),
            };
            out.push_str(&rest[..length]);
            at += length;
        }
        out
    }

    /// What stands for the name that a text begins with, and how long the name is with its quotes.
    fn value(&self, text: &str) -> Option<(String, usize)> {
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let name = &text[quote.map_or(0, char::len_utf8)..];
        let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
        let value = self.0.get(name)?;
        match quote {
            Some(quote) if text[1 + name.len()..].starts_with(quote) => {
                let doubled = value.replace(quote, &format!("{quote}{quote}"));
                // A backslash is one in such a text.
                let escaped = quote == '\'' && value.contains('\\');
                let (sign, inner) = match escaped {
                    true => ("E", doubled.replace('\\', "\\\\")),
                    false => ("", doubled),
                };
                Some((format!("{sign}{quote}{inner}{quote}"), name.len() + 2))
            }
            Some(_) => None,
            None => Some((value.clone(), name.len())),
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_where_they_stand_alone() {
        let mut variables = Variables::default();
        for (name, value) in [("n", "7"), ("t", "it's"), ("b", r"a\b"), ("c", "a \"c\"")] {
            variables.set(name, value.into()).expect(name);
        }
        for (text, wanted) in [
            ("select :n, :'t', :\"c\"", "select 7, 'it''s', \"a \"\"c\"\"\""),
            ("select :'b'", r"select E'a\\b'"),
            ("select '7'::n, x[1:n], x[1::n]", "select '7'::n, x[17], x[1::n]"),
            ("select ':n', \":n\", $$:n$$ -- :n", "select ':n', \":n\", $$:n$$ -- :n"),
            ("select :m, :'m', :'n", "select :m, :'m', :'n"),
            ("select :nn, é:n", "select :nn, é7"),
        ] {
            assert_eq!(variables.fill(text), wanted, "{text}");
        }
        assert!(variables.set("a-b", String::new()).is_err());
        variables.unset("n");
        assert_eq!(variables.fill("select :n"), "select :n");
    }

    #[test]
    fn a_script_goes_on_if_that_is_said() {
        let mut variables = Variables::default();
        assert!(!variables.go_on());
        for (value, wanted) in [("off", true), ("1", false), ("0", true), ("on", false)] {
            variables.set("ON_ERROR_STOP", value.into()).expect("a name");
            assert_eq!(variables.go_on(), wanted, "{value}");
        }
    }
}
