//! From the text of a path to its tree.
//!
//! ```text
//!   or       and (|| and)*                         not     ! ( or ) | ! exists ( expr )
//!   and      test (&& test)*                       test    sum (== != <> < <= > >= sum)?
//!   sum      product (+ - product)*                         | sum starts with | sum like_regex
//!   product  sign (* / % sign)*                             | ( or ) is unknown | exists ( expr )
//!   sign     (+ -) sign | primary step*
//! ```

use braid_types::{SqlError, SqlResult, SqlState, jsonb};
use serde_json::Value;

use super::lexer::{Token, near, tokens};
use super::path::{Arithmetic, Method, Node, Path, Step};
use crate::{CmpOp, pattern};

pub(super) fn parse(text: &str) -> SqlResult<Path> {
    if text.is_empty() {
        let text = "invalid input syntax for type jsonpath: \"\"";
        return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, filters: 0, subscripts: 0, depth: 0 };
    let lax = match parser.word() {
        Some(mode @ ("lax" | "strict")) => {
            let lax = mode == "lax";
            parser.at += 1;
            lax
        }
        _ => true,
    };
    let root = parser.or()?;
    match parser.tokens.get(parser.at) {
        None => Ok(Path { lax, root }),
        Some(_) => Err(parser.unexpected()),
    }
}

/// Deeper expressions are refused: reading and evaluating them recurse.
const MAX_DEPTH: usize = 128;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// How deep it is in filters, and in subscripts.
    filters: usize,
    subscripts: usize,
    depth: usize,
}

impl Parser {
    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Whether a keyword comes; any case.
    fn is_word(&self, word: &str) -> bool {
        self.word().is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign)
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
        match self.tokens.get(self.at) {
            None => SqlError::syntax("syntax error at end of jsonpath input"),
            Some(Token::Sign(sign)) => near(sign),
            Some(Token::Word(text) | Token::Text(text) | Token::Number(text)) => near(text),
            Some(Token::Variable(name)) => near(&format!("${name}")),
        }
    }

    fn predicate(&self, node: Node) -> SqlResult<Node> {
        if node.is_predicate() { Ok(node) } else { Err(self.unexpected()) }
    }

    fn value(&self, node: Node) -> SqlResult<Node> {
        if node.is_predicate() { Err(self.unexpected()) } else { Ok(node) }
    }

    fn or(&mut self) -> SqlResult<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SqlError::syntax("jsonpath is nested too deeply"));
        }
        let mut node = self.and()?;
        while self.is("||") {
            let left = self.predicate(node)?;
            self.at += 1;
            let right = self.and()?;
            node = Node::Or(left.into(), self.predicate(right)?.into());
        }
        self.depth -= 1;
        Ok(node)
    }

    fn and(&mut self) -> SqlResult<Node> {
        let mut node = self.test()?;
        while self.is("&&") {
            let left = self.predicate(node)?;
            self.at += 1;
            let right = self.test()?;
            node = Node::And(left.into(), self.predicate(right)?.into());
        }
        Ok(node)
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
        if self.is_word("exists") && self.tokens.get(self.at + 1) == Some(&Token::Sign("(")) {
            return self.exists();
        }
        let left = self.sum()?;
        let comparison = [
            ("==", CmpOp::Eq),
            ("!=", CmpOp::Ne),
            ("<>", CmpOp::Ne),
            ("<=", CmpOp::Le),
            (">=", CmpOp::Ge),
            ("<", CmpOp::Lt),
            (">", CmpOp::Gt),
        ];
        if let Some((sign, op)) = comparison.into_iter().find(|(sign, _)| self.is(sign)) {
            let left = self.value(left)?;
            self.expect(sign)?;
            let right = self.sum()?;
            return Ok(Node::Compare(op, left.into(), self.value(right)?.into()));
        }
        if self.take_word("starts") {
            self.expect_word("with")?;
            let left = self.value(left)?;
            let initial = match self.tokens.get(self.at).cloned() {
                Some(Token::Text(text)) => Node::Literal(Value::String(text)),
                Some(Token::Variable(name)) => Node::Variable(name),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            return Ok(Node::StartsWith(left.into(), initial.into()));
        }
        if self.take_word("like_regex") {
            let left = self.value(left)?;
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
        match self.tokens.get(self.at).cloned() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// XQuery's flags: without `s` a point is no line's end, `m` makes lines begin and end.
    fn like_regex(&mut self, left: Node) -> SqlResult<Node> {
        let pattern = self.text()?;
        let flags = if self.take_word("flag") { self.text()? } else { String::new() };
        let mut spelled = String::new();
        let (mut lines, mut points, mut literally) = (false, false, false);
        for flag in flags.chars() {
            match flag {
                'i' => spelled.push('i'),
                's' => points = true,
                'm' => lines = true,
                'q' => literally = true,
                'x' => {
                    let text =
                        "XQuery \"x\" flag (expanded regular expressions) is not implemented";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
                }
                other => {
                    return Err(SqlError::syntax("invalid input syntax for type jsonpath")
                        .with_detail(format!(
                            "Unrecognized flag character \"{other}\" in LIKE_REGEX predicate."
                        )));
                }
            }
        }
        spelled.push(match (literally, lines, points) {
            (true, ..) => 'q',
            (false, true, true) => 'w',
            (false, true, false) => 'n',
            (false, false, true) => 's',
            (false, false, false) => 'p',
        });
        Ok(Node::LikeRegex(left.into(), pattern::regex(&pattern, &spelled)?))
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
        let mut node = operand(self)?;
        while let Some((_, op)) = signs.iter().find(|(sign, _)| self.is(sign)) {
            let left = self.value(node)?;
            self.at += 1;
            let right = operand(self)?;
            node = Node::Arithmetic(*op, left.into(), self.value(right)?.into());
        }
        Ok(node)
    }

    fn sign(&mut self) -> SqlResult<Node> {
        let mut signs = Vec::new();
        while self.is("+") || self.is("-") {
            signs.push(self.take("-"));
            if signs.last() == Some(&false) {
                self.expect("+")?;
            }
        }
        if signs.len() > MAX_DEPTH {
            return Err(SqlError::syntax("jsonpath is nested too deeply"));
        }
        let mut node = self.primary()?;
        for minus in signs.into_iter().rev() {
            let inner = self.value(node)?.into();
            node = if minus { Node::Minus(inner) } else { Node::Plus(inner) };
        }
        Ok(node)
    }

    fn primary(&mut self) -> SqlResult<Node> {
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err(self.unexpected()) };
        self.at += 1;
        let node = match token {
            Token::Text(text) => Node::Literal(Value::String(text)),
            Token::Number(text) => Node::Literal(jsonb::number(&text)),
            Token::Variable(name) => Node::Variable(name),
            Token::Sign("$") => Node::Root,
            Token::Sign("@") if self.filters > 0 => Node::Current,
            Token::Sign("@") => {
                return Err(SqlError::syntax("@ is not allowed in root expressions"));
            }
            Token::Sign("(") => {
                let inner = self.or()?;
                self.expect(")")?;
                if inner.is_predicate() && self.take_word("is") {
                    self.expect_word("unknown")?;
                    return Ok(Node::IsUnknown(inner.into()));
                }
                inner
            }
            Token::Word(word) => match word.as_str() {
                "null" => Node::Literal(Value::Null),
                "true" => Node::Literal(Value::Bool(true)),
                "false" => Node::Literal(Value::Bool(false)),
                w if w.eq_ignore_ascii_case("last") && self.subscripts > 0 => Node::Last,
                w if w.eq_ignore_ascii_case("last") => {
                    return Err(SqlError::syntax("LAST is allowed only in array subscripts"));
                }
                w => return Err(near(w)),
            },
            Token::Sign(_) => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        };
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
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
        let name = match self.tokens.get(self.at).cloned() {
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
        let method = match name.to_ascii_lowercase().as_str() {
            "type" => Method::Type,
            "size" => Method::Size,
            "double" => Method::Double,
            "ceiling" => Method::Ceiling,
            "floor" => Method::Floor,
            "abs" => Method::Abs,
            "datetime" | "keyvalue" => {
                return Err(SqlError::unsupported(format!("the jsonpath method .{name}()")));
            }
            _ => return Err(self.unexpected()),
        };
        self.expect("(")?;
        self.expect(")")?;
        Ok(Some(Step::Method(method)))
    }

    fn subscript(&mut self) -> SqlResult<Step> {
        if self.take("*") {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
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
        match self.tokens.get(self.at).cloned() {
            Some(Token::Number(text)) if let Ok(level) = text.parse() => {
                self.at += 1;
                Ok(Some(level))
            }
            _ => Err(self.unexpected()),
        }
    }
}
