//! SQL/JSON paths, as PostgreSQL 15 has them: `$.items[*] ? (@.price > 10).name`.
//!
//! ```text
//!   text ── parse ──> Path (mode, Node) ── eval ──> items: parts of the document, or values made
//! ```
//! A path in *lax* mode, the default, takes an array for its elements and an element for an array
//! of one where that helps, and finds nothing where there is nothing; *strict* makes errors of both.
//! In a predicate an error is *unknown*, which no filter lets pass.
//!
//! Not there: `.datetime()` and `.keyvalue()` (0A000). Numbers are `numeric`, exactly.
//! Source: ISO/IEC 9075-2:2016, 9.39, and the PostgreSQL manual, 9.16.2.

mod eval;
mod lexer;
mod parse;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use braid_types::{SqlResult, jsonb};
use regex::Regex;
use serde_json::{Map, Value};

pub(crate) use eval::{Asked, is_of_document};

/// A parsed path.
#[derive(Debug)]
pub(crate) struct Path {
    lax: bool,
    root: Node,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An expression: it gives items, or, if it is a predicate, true, false or unknown.
#[derive(Debug)]
enum Node {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `$name`
    Variable(String),
    Literal(Value),
    /// Steps from something, in their order.
    Steps(Box<Node>, Vec<Step>),
    Plus(Box<Node>),
    Minus(Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    IsUnknown(Box<Node>),
    Exists(Box<Node>),
    StartsWith(Box<Node>, Box<Node>),
    LikeRegex(Box<Node>, Arc<Regex>),
}

#[derive(Debug)]
enum Step {
    /// `.name`
    Member(String),
    /// `.*`
    AnyMember,
    /// `.**{from to to}`; none: the last level.
    Descend(Option<u32>, Option<u32>),
    /// `[*]`
    AnyElement,
    /// `[1, 2 to last]`
    Elements(Vec<(Node, Option<Node>)>),
    /// `? (..)`
    Filter(Node),
    Method(Method),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Type,
    Size,
    Double,
    Ceiling,
    Floor,
    Abs,
}

impl Node {
    fn is_predicate(&self) -> bool {
        use Node::{And, Compare, Exists, IsUnknown, LikeRegex, Not, Or, StartsWith};
        matches!(
            self,
            And(..) | Compare(..) | Exists(_) | IsUnknown(_) | LikeRegex(..) | Not(_) | Or(..)
        ) || matches!(self, StartsWith(..))
    }
}

thread_local! {
    static PARSED: RefCell<HashMap<String, Arc<Path>>> = RefCell::new(HashMap::new());
}

impl Path {
    /// Parses a path; recent ones are kept.
    ///
    /// # Errors
    /// 42601; 2201B for a malformed regular expression in it.
    pub(crate) fn parse(text: &str) -> SqlResult<Arc<Path>> {
        if let Some(found) = PARSED.with_borrow(|known| known.get(text).cloned()) {
            return Ok(found);
        }
        let path = Arc::new(parse::parse(text)?);
        PARSED.with_borrow_mut(|known| {
            if known.len() >= 64 {
                known.clear();
            }
            known.insert(text.to_string(), path.clone());
        });
        Ok(path)
    }

    /// Whether it is in lax mode.
    pub(crate) fn is_lax(&self) -> bool {
        self.lax
    }

    /// Its items in a document, with variables; and the error that ended it, if one did.
    pub(crate) fn items(
        &self,
        document: &Value,
        variables: &Map<String, Value>,
        asked: Asked,
    ) -> (Vec<Value>, SqlResult<()>) {
        let mut out = Vec::new();
        let ended = eval::run(self, document, variables, asked, &mut out);
        // What was cut out of a document is one itself.
        (out.into_iter().filter_map(|v| jsonb::normalize(v).ok()).collect(), ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(document: &str, path: &str) -> String {
        let document: Value = serde_json::from_str(document).unwrap();
        let path = match Path::parse(path) {
            Ok(path) => path,
            Err(e) => return format!("{}: {}", e.state().0, e.message()),
        };
        let variables: Map<String, Value> =
            serde_json::from_str("{\"x\": 2, \"s\": \"ab\"}").unwrap();
        let (items, ended) = path.items(&document, &variables, Asked::All);
        let mut out: Vec<String> = items.iter().map(ToString::to_string).collect();
        if let Err(e) = ended {
            out.push(format!("{}: {}", e.state().0, e.message()));
        }
        out.join("; ")
    }

    #[test]
    fn steps_filters_and_modes() {
        let d = r#"{"a": [1, 2, {"b": [3, 4]}], "c": {"d": null, "e": "abc"}, "n": 10}"#;
        for (path, want) in [
            ("$.a[*]", "1; 2; {\"b\":[3,4]}"),
            ("$.a.b", "[3,4]"),
            ("strict $.a.b", "2203A: jsonpath member accessor can only be applied to an object"),
            ("$.a[last, 0 to 1]", "{\"b\":[3,4]}; 1; 2"),
            ("$.a[5]", ""),
            ("strict $.a[5]", "22033: jsonpath array subscript is out of bounds"),
            ("$.n[0]", "10"),
            ("$.zz", ""),
            ("strict $.zz", "2203A: JSON object does not contain key \"zz\""),
            ("$.c.*", "null; \"abc\""),
            ("$.** ? (@.type() == \"number\")", "1; 2; 1; 2; 3; 4; 3; 4; 10"),
            ("strict $.** ? (@.type() == \"number\")", "1; 2; 3; 4; 10"),
            ("$.**{1}.e", "\"abc\""),
            ("$.a[*] ? (@ > 1)", "2"),
            ("$.a[*] ? (@ > 1 || @.b[*] == 4)", "2; {\"b\":[3,4]}"),
            ("$.c ? (exists(@.e)).e", "\"abc\""),
            ("$.c.e ? (@ starts with $s)", "\"abc\""),
            ("$.c.e ? (@ like_regex \"^A.c$\" flag \"i\")", "\"abc\""),
            ("$.c ? (@.d == null).e", "\"abc\""),
            ("$.n > 5", "true"),
            ("$.c.e > 5", "null"),
            ("($.c.e > 5) is unknown", "true"),
            ("!($.n > 5)", "false"),
        ] {
            assert_eq!(items(d, path), want, "{path}");
        }
    }

    #[test]
    fn numbers_methods_and_errors() {
        let d = r#"{"a": [1, 2], "n": 0.1, "s": "1.5", "big": 12345678901234567890.5}"#;
        for (path, want) in [
            ("$.n + 0.2", "0.3"),
            ("$.big + 1", "12345678901234567891.5"),
            ("-$.a[*]", "-1; -2"),
            ("$.a + 1", "22038: left operand of jsonpath operator + is not a single numeric value"),
            ("1 / 0", "22012: division by zero"),
            ("2 + 3 * 4 % 5", "4"),
            ("$.a.size()", "2"),
            ("$.n.size()", "1"),
            ("$.a.type()", "\"array\""),
            ("$.s.double()", "1.5"),
            ("(-1.5).abs()", "1.5"),
            ("(1.5).ceiling()", "2"),
            ("$.a[*] ? (@ == $x)", "2"),
            ("$y", "42704: could not find jsonpath variable \"y\""),
            ("$.a[", "42601: syntax error at end of jsonpath input"),
            ("$.a &&", "42601: syntax error at or near \"&&\" of jsonpath input"),
            ("1 >", "42601: syntax error at end of jsonpath input"),
            ("@.a", "42601: @ is not allowed in root expressions"),
            ("last", "42601: LAST is allowed only in array subscripts"),
            ("$.\"a b\"", ""),
            ("\"\\u0041\\x42\\n\"", "\"AB\\n\""),
        ] {
            assert_eq!(items(d, path), want, "{path}");
        }
    }
}
