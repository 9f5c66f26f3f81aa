//! The body of DO: a block of statements in PL/pgSQL, as far as it needs no variables.
//!
//! ```text
//!   BEGIN
//!     IF NOT EXISTS (SELECT FROM pg_type WHERE typname = 'mood') THEN
//!       CREATE TYPE mood AS ENUM ('calm');
//!     END IF;
//!   EXCEPTION WHEN duplicate_object THEN NULL;
//!   END
//! ```
//! Migrations of many tools say "unless it is there" so. Loops, variables and cursors are refused
//! with their name: a language is no part of this.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::MAX_DEPTH;
use crate::cursor::token_is;
use crate::lexical;
use crate::script::Places;

/// Statements that run one after the other, and what is done if one of them fails.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// What is done.
    pub steps: Vec<Step>,
    /// EXCEPTION: the first that fits an error runs, after what the block has done was taken back.
    pub handlers: Vec<Handler>,
}

/// `WHEN a OR b THEN ..`
#[derive(Clone, Debug)]
pub struct Handler {
    /// One of them must be met.
    pub conditions: Vec<Condition>,
    /// What is done then.
    pub steps: Vec<Step>,
}

/// Which errors a handler is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// OTHERS: all but a cancel.
    Others,
    /// An SQLSTATE, or a class of them: its first two characters.
    State(String),
}

impl Condition {
    /// Whether an error of this SQLSTATE is meant.
    pub fn is_met_by(&self, state: &str) -> bool {
        match self {
            Condition::Others => !state.starts_with("57"),
            Condition::State(code) => state.starts_with(code.as_str()),
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its line in the body, from 1.
    pub line: u64,
    /// What.
    pub does: Does,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Does {
    /// NULL: nothing.
    Nothing,
    /// RETURN: ends the body.
    Return,
    /// A statement.
    Sql(String),
    /// PERFORM: a query whose rows nobody wants, with SELECT in front.
    Perform(String),
    /// EXECUTE: a statement that an expression gives.
    Dynamic(String),
    /// Conditions with what is done if they hold, and what otherwise.
    If(Vec<(String, Vec<Step>)>, Vec<Step>),
    /// RAISE: the level, the text with a `%` for each expression.
    Raise(Level, String, Vec<String>),
    /// A block of its own.
    Block(Block),
}

/// How loud RAISE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Only clients hear it that asked for it.
    Debug,
    /// For the client.
    Notice,
    /// For the client, as something to look at.
    Warning,
    /// The end of the block.
    Exception,
}

const HINT: &str = "DO runs statements, IF, RAISE, PERFORM, EXECUTE, NULL and EXCEPTION. For \
                    anything else, write the statements out.";

/// Reads the body of DO.
///
/// # Errors
/// 42601 for what is no block; 0A000 for what needs more than statements; 42704 for the name of a
/// condition that does not exist.
pub fn parse_block(body: &str) -> SqlResult<Block> {
    let tokens = lexical::tokens(body).map_err(|e| SqlError::syntax(e.message))?;
    let mut reader = Reader { tokens, at: 0, places: Places::new(body), body, depth: 0 };
    let block = reader.block()?;
    reader.take(&Token::SemiColon);
    match reader.at == reader.tokens.len() {
        true => Ok(block),
        false => Err(reader.unexpected()),
    }
}

struct Reader<'a> {
    tokens: Vec<TokenWithSpan>,
    at: usize,
    places: Places<'a>,
    body: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn is(&self, word: &str) -> bool {
        self.tokens.get(self.at).is_some_and(|t| token_is(&t.token, word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|t| t.token == *token);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> SqlResult<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect(&mut self, token: &Token) -> SqlResult<()> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn line(&self) -> u64 {
        self.tokens.get(self.at).map_or(0, |t| t.span.start.line)
    }

    fn unexpected(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(t) => SqlError::syntax(format!("syntax error at or near \"{}\"", t.token)),
            None => SqlError::syntax("syntax error at end of input"),
        }
    }

    /// The text up to a token that stands in no brackets and no CASE; that is passed as well.
    fn text_until(&mut self, is_end: impl Fn(&Token) -> bool) -> SqlResult<String> {
        let Some(first) = self.tokens.get(self.at) else { return Err(self.unexpected()) };
        let start = self.places.byte(first.span.start);
        let (mut open, mut cases) = (0, 0);
        while let Some(t) = self.tokens.get(self.at) {
            if open == 0 && cases == 0 && is_end(&t.token) {
                let end = self.places.byte(t.span.start);
                self.at += 1;
                return Ok(self.body[start..end].trim().to_string());
            }
            match &t.token {
                Token::LParen => open += 1,
                Token::RParen if open > 0 => open -= 1,
                token if token_is(token, "case") => cases += 1,
                token if token_is(token, "end") && cases > 0 => cases -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Err(self.unexpected())
    }

    fn rest_of_statement(&mut self) -> SqlResult<String> {
        let start = self.at;
        let text = self.text_until(|token| *token == Token::SemiColon)?;
        if text.is_empty() {
            self.at = start;
            return Err(self.unexpected());
        }
        Ok(text)
    }

    fn block(&mut self) -> SqlResult<Block> {
        if self.is("declare") {
            return Err(unsupported("DECLARE"));
        }
        self.expect_word("begin")?;
        let steps = self.steps(&["exception", "end"])?;
        let mut handlers = Vec::new();
        if self.take_word("exception") {
            while self.take_word("when") {
                let conditions = self.conditions()?;
                handlers.push(Handler { conditions, steps: self.steps(&["when", "end"])? });
            }
        }
        self.expect_word("end")?;
        Ok(Block { steps, handlers })
    }

    fn conditions(&mut self) -> SqlResult<Vec<Condition>> {
        let mut out = Vec::new();
        loop {
            let token = self.tokens.get(self.at).map(|t| t.token.clone());
            let Some(Token::Word(word)) = token else { return Err(self.unexpected()) };
            self.at += 1;
            out.push(match word.value.to_lowercase().as_str() {
                "others" => Condition::Others,
                "sqlstate" => match self.tokens.get(self.at).map(|t| t.token.clone()) {
                    Some(Token::SingleQuotedString(code)) if code.len() == 5 => {
                        self.at += 1;
                        Condition::State(code)
                    }
                    _ => return Err(self.unexpected()),
                },
                name => condition(name)?,
            });
            if !self.take_word("or") {
                self.expect_word("then")?;
                return Ok(out);
            }
        }
    }

    /// Steps up to one of these words, which is left.
    fn steps(&mut self, ends: &[&str]) -> SqlResult<Vec<Step>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let text = "blocks are nested too deeply";
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, text));
        }
        let mut out = Vec::new();
        while !ends.iter().any(|word| self.is(word)) {
            let line = self.line();
            out.push(Step { line, does: self.step()? });
        }
        self.depth -= 1;
        Ok(out)
    }

    fn step(&mut self) -> SqlResult<Does> {
        if self.is("begin") || self.is("declare") {
            let block = self.block()?;
            self.expect(&Token::SemiColon)?;
            return Ok(Does::Block(block));
        }
        if self.take_word("if") {
            return self.conditional();
        }
        if self.take_word("raise") {
            return self.raise();
        }
        if self.take_word("perform") {
            return Ok(Does::Perform(format!("SELECT {}", self.rest_of_statement()?)));
        }
        if self.take_word("execute") {
            return self.dynamic();
        }
        for (word, does) in [("null", Does::Nothing), ("return", Does::Return)] {
            if self.take_word(word) {
                self.expect(&Token::SemiColon)?;
                return Ok(does);
            }
        }
        self.refuse_language()?;
        Ok(Does::Sql(self.rest_of_statement()?))
    }

    /// What is no statement of SQL.
    fn refuse_language(&self) -> SqlResult<()> {
        const WORDS: [&str; 16] = [
            "loop",
            "while",
            "for",
            "foreach",
            "exit",
            "continue",
            "case",
            "get",
            "open",
            "assert",
            "call",
            "commit",
            "rollback",
            "savepoint",
            "release",
            "start",
        ];
        if let Some(word) = WORDS.iter().find(|word| self.is(word)) {
            return Err(unsupported(&word.to_uppercase()));
        }
        match self.tokens.get(self.at + 1).map(|t| &t.token) {
            Some(Token::Assignment | Token::Eq) => Err(unsupported("an assignment")),
            _ if self.tokens.get(self.at).is_some_and(|t| t.token == Token::ShiftLeft) => {
                Err(unsupported("a label"))
            }
            _ => Ok(()),
        }
    }

    fn conditional(&mut self) -> SqlResult<Does> {
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.text_until(|token| token_is(token, "then"))?;
            branches.push((condition, self.steps(&["elsif", "elseif", "else", "end"])?));
            if self.take_word("elsif") || self.take_word("elseif") {
                continue;
            }
            if self.take_word("else") {
                otherwise = self.steps(&["end"])?;
            }
            self.expect_word("end")?;
            self.expect_word("if")?;
            self.expect(&Token::SemiColon)?;
            return Ok(Does::If(branches, otherwise));
        }
    }

    fn dynamic(&mut self) -> SqlResult<Does> {
        let from = self.at;
        let text = self.rest_of_statement()?;
        let words = &self.tokens[from..self.at];
        if words.iter().any(|t| token_is(&t.token, "into") || token_is(&t.token, "using")) {
            return Err(unsupported("EXECUTE .. INTO or USING"));
        }
        Ok(Does::Dynamic(text))
    }

    fn raise(&mut self) -> SqlResult<Does> {
        const LEVELS: [(&str, Level); 6] = [
            ("debug", Level::Debug),
            ("log", Level::Debug),
            ("info", Level::Notice),
            ("notice", Level::Notice),
            ("warning", Level::Warning),
            ("exception", Level::Exception),
        ];
        let found = LEVELS.iter().find(|(word, _)| self.is(word));
        self.at += usize::from(found.is_some());
        let level = found.map_or(Level::Exception, |(_, level)| *level);
        let token = self.tokens.get(self.at).map(|t| t.token.clone());
        let Some(Token::SingleQuotedString(format)) = token else {
            return Err(unsupported("RAISE without a text"));
        };
        self.at += 1;
        let mut args = Vec::new();
        while self.take(&Token::Comma) {
            args.push(self.text_until(|t| matches!(t, Token::Comma | Token::SemiColon))?);
            self.at -= 1;
        }
        if self.is("using") {
            return Err(unsupported("RAISE .. USING"));
        }
        self.expect(&Token::SemiColon)?;
        let wanted = format.replace("%%", "").matches('%').count();
        match wanted.cmp(&args.len()) {
            std::cmp::Ordering::Equal => Ok(Does::Raise(level, format, args)),
            std::cmp::Ordering::Less => {
                Err(SqlError::syntax("too many parameters specified for RAISE"))
            }
            std::cmp::Ordering::Greater => {
                Err(SqlError::syntax("too few parameters specified for RAISE"))
            }
        }
    }
}

fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in DO")).with_hint(HINT)
}

/// What the name of a condition means.
fn condition(name: &str) -> SqlResult<Condition> {
    const CLASSES: [(&str, &str); 5] = [
        ("data_exception", "22"),
        ("integrity_constraint_violation", "23"),
        ("syntax_error_or_access_rule_violation", "42"),
        ("insufficient_resources", "53"),
        ("raise_exception", "P0001"),
    ];
    if let Some((_, class)) = CLASSES.iter().find(|(known, _)| *known == name) {
        return Ok(Condition::State((*class).to_string()));
    }
    match SqlState::named(name) {
        Some(state) => Ok(Condition::State(state.0.to_string())),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized exception condition \"{name}\""),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_with_all_that_it_may_have() {
        let block = parse_block(
            "BEGIN
               IF NOT EXISTS (SELECT CASE WHEN 1 = 1 THEN 2 END) THEN CREATE TABLE a (b int);
               ELSIF true THEN NULL; ELSE BEGIN PERFORM f(';'); END; END IF;
               RAISE NOTICE 'x % %%', 1 + (2), 'a,b';
             EXCEPTION WHEN duplicate_table OR SQLSTATE '42710' THEN NULL; WHEN others THEN RETURN;
             END;",
        );
        assert_eq!(block.unwrap_err().message(), "too many parameters specified for RAISE");
        let block =
            parse_block("BEGIN\n insert into a values (';');\n IF 1 = 1 THEN NULL; END IF; END");
        let block = block.unwrap();
        assert_eq!(block.steps.len(), 2);
        assert_eq!((block.steps[0].line, block.steps[1].line), (2, 3));
        let Does::Sql(text) = &block.steps[0].does else { panic!("{block:?}") };
        assert_eq!(text, "insert into a values (';')");
        let Does::If(branches, otherwise) = &block.steps[1].does else { panic!("{block:?}") };
        assert_eq!((branches[0].0.as_str(), otherwise.len()), ("1 = 1", 0));
    }

    #[test]
    fn conditions_are_states_or_classes() {
        assert!(condition("duplicate_object").unwrap().is_met_by("42710"));
        assert!(!condition("duplicate_object").unwrap().is_met_by("42P07"));
        assert!(condition("integrity_constraint_violation").unwrap().is_met_by("23505"));
        assert!(Condition::Others.is_met_by("XX000") && !Condition::Others.is_met_by("57014"));
        assert_eq!(condition("nonsense").unwrap_err().state(), SqlState::UNDEFINED_OBJECT);
    }

    #[test]
    fn a_language_is_refused_by_name() {
        for (body, what) in [
            ("DECLARE x int; BEGIN END", "DECLARE in DO"),
            ("BEGIN x := 1; END", "an assignment in DO"),
            ("BEGIN FOR i IN 1..2 LOOP NULL; END LOOP; END", "FOR in DO"),
            ("BEGIN EXECUTE 'select 1' INTO x; END", "EXECUTE .. INTO or USING in DO"),
        ] {
            let e = parse_block(body).unwrap_err();
            assert!(e.message().contains(what), "{body}: {e:?}");
            assert_eq!(e.state(), SqlState::FEATURE_NOT_SUPPORTED);
        }
        for body in ["", "select 1", "BEGIN select 1 END", "BEGIN ; END", "BEGIN END x y", "BEGIN"]
        {
            assert_eq!(parse_block(body).unwrap_err().state(), SqlState::SYNTAX_ERROR, "{body}");
        }
    }
}
