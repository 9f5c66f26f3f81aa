//! From the text of a path to its tree.
//!
//! ```text
//!   or       and (|| and)*                         not     ! ( or ) | ! exists ( expr )
//!   and      test (&& test)*                       test    sum (== != <> < <= > >= sum)?
//!   sum      product (+ - product)*                         | sum starts with | sum like_regex
//!   product  sign (* / % sign)*                             | ( or ) is unknown | exists ( expr )
//!   sign     (+ -) sign | primary step*
//! ```

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::lexer::{Placed, Token, near, tokens};
use super::tree::{Arithmetic, Comparison, Method, Node, Path, RegexFlags, Step};
use crate::text_in::bad_input;
use crate::{SqlError, SqlResult, SqlState, jsonb, numeric, regexp};

pub(super) fn parse(text: &str) -> SqlResult<Path> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        filters: 0,
        subscripts: 0,
        depth: 0,
        misplaced: None,
    };
    if parser.tokens.is_empty() {
        return Err(bad_input("jsonpath", text));
    }
    let lax = !parser.take_word("strict");
    if lax {
        parser.take_word("lax");
    }
    let root = parser.or()?;
    if parser.at < parser.tokens.len() {
        return Err(parser.unexpected());
    }
    match parser.misplaced {
        Some(error) => Err(error),
        None => Ok(Path { lax, root }),
    }
}

/// How deep expressions may be nested, steps counted: reading, printing and evaluating recurse.
const MAX_DEPTH: usize = 128;

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// How deep it is in filters, and in subscripts.
    filters: usize,
    subscripts: usize,
    depth: usize,
    /// The first `@` or `last` where there is none: an error if nothing else is wrong.
    misplaced: Option<SqlError>,
}

impl Parser {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    /// Whether a keyword comes; any case.
    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token(), Some(Token::Sign(s)) if *s == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> SqlResult<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_word(&mut self, word: &str) -> SqlResult<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> SqlError {
        near("syntax error", self.tokens.get(self.at).map_or("", |placed| &placed.shown))
    }

    fn predicate(&self, node: Node) -> SqlResult<Node> {
        if node.is_predicate() { Ok(node) } else { Err(self.unexpected()) }
    }

    fn value(&self, node: Node) -> SqlResult<Node> {
        if node.is_predicate() { Err(self.unexpected()) } else { Ok(node) }
    }

    /// One level deeper.
    fn deeper(&mut self) -> SqlResult<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let text = "jsonpath is nested too deeply";
        Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, text)
            .with_detail(format!("A path has at most {MAX_DEPTH} steps and levels.")))
    }

    fn or(&mut self) -> SqlResult<Node> {
        self.deeper()?;
        let first = self.and()?;
        let node = self.logical(first, "||", Parser::and, Node::Or)?;
        self.depth -= 1;
        Ok(node)
    }

    fn and(&mut self) -> SqlResult<Node> {
        let first = self.test()?;
        self.logical(first, "&&", Parser::test, Node::And)
    }

    /// Predicates with this sign between them.
    fn logical(
        &mut self,
        first: Node,
        sign: &str,
        operand: fn(&mut Parser) -> SqlResult<Node>,
        of: fn(Vec<Node>) -> Node,
    ) -> SqlResult<Node> {
        if !self.is(sign) {
            return Ok(first);
        }
        let mut nodes = vec![self.predicate(first)?];
        while self.take(sign) {
            let next = operand(self)?;
            nodes.push(self.predicate(next)?);
        }
        Ok(of(nodes))
    }

    fn test(&mut self) -> SqlResult<Node> {
        if self.take("!") {
            if self.is_word("exists") {
                return Ok(Node::Not(self.exists()?.into()));
            }
            self.expect("(")?;
            let inner = self.or()?;
            let inner = self.predicate(inner)?;
            self.expect(")")?;
            return Ok(Node::Not(inner.into()));
        }
        if self.is_word("exists") {
            return self.exists();
        }
        let left = self.sum()?;
        let comparison = [
            ("==", Comparison::Eq),
            ("!=", Comparison::Ne),
            ("<>", Comparison::Ne),
            ("<=", Comparison::Le),
            (">=", Comparison::Ge),
            ("<", Comparison::Lt),
            (">", Comparison::Gt),
        ];
        if let Some((sign, op)) = comparison.into_iter().find(|(sign, _)| self.is(sign)) {
            let left = self.value(left)?;
            self.expect(sign)?;
            let right = self.sum()?;
            return Ok(Node::Compare(op, left.into(), self.value(right)?.into()));
        }
        if self.is_word("starts") {
            let left = self.value(left)?;
            self.at += 1;
            self.expect_word("with")?;
            let initial = match self.token().cloned() {
                Some(Token::Text(text)) => Node::Literal(Value::String(text)),
                Some(Token::Variable(name)) => Node::Variable(name),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            return Ok(Node::StartsWith(left.into(), initial.into()));
        }
        if self.is_word("like_regex") {
            let left = self.value(left)?;
            self.at += 1;
            return self.like_regex(left);
        }
        Ok(left)
    }

    fn exists(&mut self) -> SqlResult<Node> {
        self.at += 1;
        self.expect("(")?;
        let inner = self.or()?;
        let inner = self.value(inner)?;
        self.expect(")")?;
        Ok(Node::Exists(inner.into()))
    }

    fn text(&mut self) -> SqlResult<String> {
        match self.token().cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn like_regex(&mut self, left: Node) -> SqlResult<Node> {
        let pattern = self.text()?;
        let letters = if self.take_word("flag") { self.text()? } else { String::new() };
        let mut flags = RegexFlags::default();
        for letter in letters.chars() {
            *match letter {
                'i' => &mut flags.any_case,
                's' => &mut flags.points,
                'm' => &mut flags.lines,
                'x' => &mut flags.blanks,
                'q' => &mut flags.literally,
                other => {
                    let detail =
                        format!("Unrecognized flag character \"{other}\" in LIKE_REGEX predicate.");
                    let text = "invalid input syntax for type jsonpath";
                    return Err(SqlError::syntax(text).with_detail(detail));
                }
            } = true;
        }
        let regex = compiled(&pattern, flags)?;
        Ok(Node::LikeRegex(left.into(), pattern, flags, regex))
    }

    fn sum(&mut self) -> SqlResult<Node> {
        let signs = [("+", Arithmetic::Add), ("-", Arithmetic::Sub)];
        self.operations(&signs, Parser::product)
    }

    fn product(&mut self) -> SqlResult<Node> {
        let signs = [("*", Arithmetic::Mul), ("/", Arithmetic::Div), ("%", Arithmetic::Mod)];
        self.operations(&signs, Parser::sign)
    }

    /// Operands with these signs between them, from left to right.
    fn operations(
        &mut self,
        signs: &[(&str, Arithmetic)],
        operand: fn(&mut Parser) -> SqlResult<Node>,
    ) -> SqlResult<Node> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((sign, op)) = signs.iter().find(|(sign, _)| self.is(sign)) {
            if rest.is_empty() && first.is_predicate() {
                return Err(self.unexpected());
            }
            self.expect(sign)?;
            let right = operand(self)?;
            rest.push((*op, self.value(right)?));
        }
        Ok(if rest.is_empty() { first } else { Node::Arithmetic(first.into(), rest) })
    }

    fn sign(&mut self) -> SqlResult<Node> {
        let before = self.depth;
        let mut signs = Vec::new();
        while self.is("+") || self.is("-") {
            signs.push(self.is("-"));
            self.at += 1;
            self.deeper()?;
        }
        let mut node = self.primary()?;
        for minus in signs.into_iter().rev() {
            // The sign of a number is its own.
            node = match (self.value(node)?, minus) {
                (Node::Literal(Value::Number(number)), true) => {
                    let number = numeric::parse(&number.to_string());
                    let negated = number.map(|number| numeric::text(&-number));
                    Node::Literal(jsonb::number(&negated.unwrap_or_default()))
                }
                (number @ Node::Literal(Value::Number(_)), false) => number,
                (inner, true) => Node::Minus(inner.into()),
                (inner, false) => Node::Plus(inner.into()),
            };
        }
        self.depth = before;
        Ok(node)
    }

    /// Notes a word where it means nothing.
    fn misplaced(&mut self, text: &str) {
        self.misplaced.get_or_insert_with(|| SqlError::syntax(text));
    }

    fn primary(&mut self) -> SqlResult<Node> {
        let Some(token) = self.token().cloned() else { return Err(self.unexpected()) };
        let node = match token {
            Token::Text(text) => Node::Literal(Value::String(text)),
            Token::Number(text) => number(&text)?,
            Token::Variable(name) => Node::Variable(name),
            Token::Sign("$") => Node::Root,
            Token::Sign("@") => {
                if self.filters == 0 {
                    self.misplaced("@ is not allowed in root expressions");
                }
                Node::Current
            }
            Token::Sign("(") => return self.parenthesized(),
            Token::Word(word) => match word.as_str() {
                "null" => Node::Literal(Value::Null),
                "true" => Node::Literal(Value::Bool(true)),
                "false" => Node::Literal(Value::Bool(false)),
                w if w.eq_ignore_ascii_case("last") => {
                    if self.subscripts == 0 {
                        self.misplaced("LAST is allowed only in array subscripts");
                    }
                    Node::Last
                }
                _ => return Err(self.unexpected()),
            },
            Token::Sign(_) => return Err(self.unexpected()),
        };
        self.at += 1;
        self.steps(node)
    }

    fn parenthesized(&mut self) -> SqlResult<Node> {
        self.expect("(")?;
        let inner = self.or()?;
        self.expect(")")?;
        if inner.is_predicate() && self.take_word("is") {
            self.expect_word("unknown")?;
            return Ok(Node::IsUnknown(inner.into()));
        }
        self.steps(inner)
    }

    /// What follows a node.
    fn steps(&mut self, node: Node) -> SqlResult<Node> {
        let before = self.depth;
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
            self.deeper()?;
        }
        self.depth = before;
        Ok(if steps.is_empty() { node } else { Node::Steps(node.into(), steps) })
    }

    fn step(&mut self) -> SqlResult<Option<Step>> {
        if self.take("[") {
            return self.subscript().map(Some);
        }
        if self.take("?") {
            self.expect("(")?;
            self.filters += 1;
            let condition = self.or()?;
            let condition = self.predicate(condition)?;
            self.filters -= 1;
            self.expect(")")?;
            return Ok(Some(Step::Filter(condition)));
        }
        if !self.take(".") {
            return Ok(None);
        }
        if self.take("**") {
            return self.levels().map(Some);
        }
        if self.take("*") {
            return Ok(Some(Step::AnyMember));
        }
        let name = match self.token().cloned() {
            Some(Token::Text(name)) => {
                self.at += 1;
                return Ok(Some(Step::Member(name)));
            }
            Some(Token::Word(name)) => name,
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        if !self.is("(") {
            return Ok(Some(Step::Member(name)));
        }
        self.method(&name).map(Some)
    }

    fn method(&mut self, name: &str) -> SqlResult<Step> {
        use Method::{Abs, Ceiling, Double, Floor, KeyValue, Size, Type};
        if name.eq_ignore_ascii_case("datetime") {
            self.expect("(")?;
            let template = if self.is(")") { None } else { Some(self.text()?) };
            self.expect(")")?;
            return Ok(Step::Datetime(template));
        }
        let all = [Type, Size, Double, Ceiling, Floor, Abs, KeyValue];
        let method = all.into_iter().find(|method| name.eq_ignore_ascii_case(method.name()));
        let method = method.ok_or_else(|| self.unexpected())?;
        self.expect("(")?;
        self.expect(")")?;
        Ok(Step::Method(method))
    }

    fn subscript(&mut self) -> SqlResult<Step> {
        if self.take("*") {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        self.deeper()?;
        let mut all = Vec::new();
        self.subscripts += 1;
        loop {
            let from = self.sum()?;
            let from = self.value(from)?;
            let to = match self.take_word("to") {
                true => {
                    let to = self.sum()?;
                    Some(self.value(to)?)
                }
                false => None,
            };
            all.push((from, to));
            if self.take("]") {
                break;
            }
            self.expect(",")?;
        }
        self.subscripts -= 1;
        self.depth -= 1;
        Ok(Step::Elements(all))
    }

    /// `{2}`, `{1 to last}` behind `.**`.
    fn levels(&mut self) -> SqlResult<Step> {
        if !self.take("{") {
            return Ok(Step::Descend(Some(0), None));
        }
        let from = self.level()?;
        let to = if self.take_word("to") { self.level()? } else { from };
        self.expect("}")?;
        Ok(Step::Descend(from, to))
    }

    fn level(&mut self) -> SqlResult<Option<u32>> {
        if self.take_word("last") {
            return Ok(None);
        }
        match self.token().cloned() {
            Some(Token::Number(text)) if text.bytes().all(|b| b.is_ascii_digit()) => {
                self.at += 1;
                text.parse::<i32>().map(|level| Some(level as u32)).map_err(|_| {
                    let text = format!("value \"{text}\" is out of range for type integer");
                    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, text)
                })
            }
            _ => Err(self.unexpected()),
        }
    }
}

fn number(text: &str) -> SqlResult<Node> {
    match numeric::parse(text.strip_suffix('.').unwrap_or(text)) {
        Some(number) => Ok(Node::Literal(jsonb::number(&numeric::text(&number)))),
        None => Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value overflows numeric format",
        )),
    }
}

/// XQuery's flags: without `s` a point is no line's end, `m` makes lines begin and end.
fn compiled(pattern: &str, flags: RegexFlags) -> SqlResult<Arc<Regex>> {
    if flags.blanks && !flags.literally {
        let text = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
    }
    let mut spelled = String::from(if flags.any_case { "i" } else { "" });
    spelled.push(match (flags.literally, flags.lines, flags.points) {
        (true, ..) => 'q',
        (false, true, true) => 'w',
        (false, true, false) => 'n',
        (false, false, true) => 's',
        (false, false, false) => 'p',
    });
    regexp::regex(pattern, &spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        match parse(text) {
            Ok(path) => path.to_string(),
            Err(e) => format!("{} {}", e.state().0, e.message()),
        }
    }

    #[test]
    fn what_is_read_is_printed_in_the_form_that_is_kept() {
        for (text, want) in [
            ("lax $.a.**{2 to 2}.b", "$.\"a\".**{2}.\"b\""),
            ("strict $", "strict $"),
            ("$.a + 1 - 2", "(($.\"a\" + 1) - 2)"),
            (
                "$.a[1, 2 to last] ? (@.b >= 1 && !(@.c == 2 || exists(@.d)))",
                "$.\"a\"[1,2 to last]?(@.\"b\" >= 1 && !(@.\"c\" == 2 || exists (@.\"d\")))",
            ),
            ("-1.50", "-1.50"),
            ("$x starts with \"a\"", "($\"x\" starts with \"a\")"),
            ("$ like_regex \"^a\" flag \"qi\"", "($ like_regex \"^a\" flag \"iq\")"),
            ("($ == 1) is unknown", "($ == 1) is unknown"),
            ("$.datetime(\"HH24\").type()", "$.datetime(\"HH24\").type()"),
            ("1 || 2", "42601 syntax error at or near \"||\" of jsonpath input"),
            ("", "22P02 invalid input syntax for type jsonpath: \"\""),
            (
                "$ ? (@ like_regex \"(\")",
                "2201B invalid regular expression: parentheses () not balanced",
            ),
        ] {
            assert_eq!(printed(text), want, "{text}");
            if !want.starts_with(|c: char| c.is_ascii_digit()) {
                assert_eq!(printed(want), want, "{text}");
            }
        }
    }
}
