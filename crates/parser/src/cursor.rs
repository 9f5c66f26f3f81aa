//! A position in a list of tokens, for the statements that we read ourselves.

use braid_types::{SqlError, SqlResult, is_reserved};
use braid_walk::WalkMut;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use crate::rewrites::{collations, quantified};
use crate::script::parser_error;
use crate::spellings::parentheses;
use crate::{Name, READER_DEPTH};

/// Tokens without white space, and where we are.
#[derive(Clone)]
pub(crate) struct Cursor {
    tokens: Vec<TokenWithSpan>,
    at: usize,
}

impl Cursor {
    pub(crate) fn new(tokens: Vec<TokenWithSpan>) -> Cursor {
        Cursor { tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.token)
    }

    pub(crate) fn peek_at(&self, n: usize) -> Option<&Token> {
        self.tokens.get(self.at + n).map(|t| &t.token)
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        let t = self.tokens.get(self.at).map(|t| t.token.clone());
        self.at += usize::from(t.is_some());
        t
    }

    pub(crate) fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(crate) fn rest(&self) -> Vec<TokenWithSpan> {
        self.tokens[self.at..].to_vec()
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Where the next token begins.
    pub(crate) fn place(&self) -> Option<Location> {
        self.tokens.get(self.at).map(|t| t.span.start)
    }

    /// The tokens from a place before this one up to here.
    pub(crate) fn since(&self, at: usize) -> &[TokenWithSpan] {
        &self.tokens[at..self.at]
    }

    /// Goes back to the last token.
    pub(crate) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(crate) fn is_word(&self, n: usize, word: &str) -> bool {
        matches!(self.peek_at(n), Some(t) if token_is(t, word))
    }

    /// Whether these words come next.
    pub(crate) fn looking_at(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, w)| self.is_word(n, w))
    }

    /// Takes these words if they come next.
    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let yes = self.looking_at(words);
        if yes {
            self.at += words.len();
        }
        yes
    }

    pub(crate) fn take_token(&mut self, token: &Token) -> bool {
        let yes = self.peek() == Some(token);
        self.at += usize::from(yes);
        yes
    }

    pub(crate) fn expect(&mut self, words: &[&str]) -> SqlResult<()> {
        if self.take(words) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn expect_token(&mut self, token: &Token) -> SqlResult<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn expect_end(&self) -> SqlResult<()> {
        if self.done() { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The syntax error at this place. Its position is found by the caller from the marker.
    pub(crate) fn unexpected(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(t) => parser_error(&format!(
                "found: {} at Line: {}, Column: {}",
                t.token, t.span.start.line, t.span.start.column
            )),
            None => SqlError::syntax("syntax error at end of input"),
        }
    }

    /// A word, whether it is a keyword or not.
    pub(crate) fn ident(&mut self) -> SqlResult<String> {
        match self.peek() {
            Some(Token::Word(w)) => {
                let name = fold(w);
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name that is no reserved word, unless it is in quotes.
    pub(crate) fn own_name(&mut self) -> SqlResult<String> {
        match self.peek() {
            Some(Token::Word(w)) if w.quote_style.is_none() && is_reserved(&fold(w)) => {
                Err(self.unexpected())
            }
            _ => self.ident(),
        }
    }

    /// The dotted name of a relation and its like.
    pub(crate) fn name(&mut self) -> SqlResult<Name> {
        let first = self.own_name()?;
        self.name_behind(first)
    }

    /// The dotted name of what may be called by a reserved word, too: functions, settings.
    pub(crate) fn any_name(&mut self) -> SqlResult<Name> {
        let first = self.ident()?;
        self.name_behind(first)
    }

    fn name_behind(&mut self, first: String) -> SqlResult<Name> {
        let mut out = vec![first];
        while self.take_token(&Token::Period) {
            out.push(self.ident()?);
        }
        Ok(out)
    }

    /// `(a, b, c)`.
    pub(crate) fn ident_list(&mut self) -> SqlResult<Vec<String>> {
        self.expect_token(&Token::LParen)?;
        let mut out = Vec::new();
        loop {
            out.push(self.own_name()?);
            if !self.take_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        Ok(out)
    }

    /// A string in any quotes, dollars among them.
    pub(crate) fn text(&mut self) -> SqlResult<String> {
        match self.peek() {
            Some(Token::DollarQuotedString(s)) => {
                let text = s.value.clone();
                self.at += 1;
                Ok(text)
            }
            _ => self.string(),
        }
    }

    pub(crate) fn string(&mut self) -> SqlResult<String> {
        match self.peek() {
            Some(
                Token::SingleQuotedString(s)
                | Token::EscapedStringLiteral(s)
                | Token::NationalStringLiteral(s),
            ) => {
                let s = s.clone();
                self.at += 1;
                Ok(s)
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(crate) fn integer(&mut self) -> SqlResult<i64> {
        let minus = self.take_token(&Token::Minus);
        if !minus {
            self.take_token(&Token::Plus);
        }
        match self.peek() {
            Some(Token::Number(n, _)) => {
                let text = if minus { format!("-{n}") } else { n.clone() };
                let v = text.parse().map_err(|_| self.unexpected())?;
                self.at += 1;
                Ok(v)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Lets sqlparser read from here; the cursor moves behind what it took.
    pub(crate) fn with_parser<T: WalkMut>(
        &mut self,
        f: impl FnOnce(&mut Parser<'_>) -> Result<T, sqlparser::parser::ParserError>,
    ) -> SqlResult<T> {
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(READER_DEPTH)
            .with_tokens_with_locations(self.rest());
        let mut out = f(&mut parser).map_err(|e| crate::script::from_parser(&e))?;
        // It may have looked beyond the last token.
        let end = (self.at + parser.index()).min(self.tokens.len());
        let read = &self.tokens[self.at..end];
        if quantified::is_marked(read) {
            quantified::settle(&mut out);
        }
        if collations::is_marked(read) {
            collations::settle(&mut out);
        }
        if parentheses::is_marked(read) {
            parentheses::settle(&mut out)?;
        }
        self.at = end;
        Ok(out)
    }

    /// An expression that ends where one of these words stands outside of brackets.
    pub(crate) fn expr_before(&mut self, ends: &[&[&str]]) -> SqlResult<ast::Expr> {
        let (mut depth, mut end) = (0usize, self.tokens.len());
        for at in self.at..self.tokens.len() {
            let stops = |words: &&[&str]| {
                words.iter().enumerate().all(|(n, word)| {
                    self.tokens.get(at + n).is_some_and(|t| token_is(&t.token, word))
                })
            };
            match self.tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0 && at > self.at && ends.iter().any(stops) => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let mut part = Cursor::new(self.tokens[self.at..end].to_vec());
        let expr = part.expr()?;
        part.expect_end()?;
        self.at = end;
        Ok(expr)
    }

    pub(crate) fn expr(&mut self) -> SqlResult<ast::Expr> {
        self.with_parser(|p| p.parse_expr())
    }
}

/// Whether an unquoted word token is this word, in any case.
pub(crate) fn token_is(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// The identifier a word means.
pub(crate) fn fold(w: &Word) -> String {
    if w.quote_style.is_some() { w.value.clone() } else { w.value.to_lowercase() }
}

/// Tokens between the commas that stand in no parentheses and no brackets.
pub(crate) fn at_commas(tokens: &[TokenWithSpan]) -> Vec<Vec<TokenWithSpan>> {
    let mut depth = 0i32;
    let mut out = vec![Vec::new()];
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Comma if depth == 0 => {
                out.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = out.last_mut() {
            last.push(token.clone());
        }
    }
    out
}

/// Index of the parenthesis that closes the one at `open`, if there is one.
pub(crate) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    if tokens.get(open)?.token != Token::LParen {
        return None;
    }
    let mut depth = 0usize;
    for (i, t) in tokens.iter().enumerate().skip(open) {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}
