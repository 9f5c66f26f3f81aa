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
use sqlparser::tokenizer::Token;

use crate::MAX_DEPTH;
use crate::cursor::{Cursor, token_is};
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
    /// RAISE.
    Raise(Box<Raise>),
    /// RAISE alone: the error that a handler is for, once more.
    RaiseAgain,
    /// A block of its own.
    Block(Block),
}

/// What RAISE says, and how.
#[derive(Clone, Debug)]
pub struct Raise {
    /// How loud.
    pub level: Level,
    /// The text with a `%` for each expression.
    pub text: Option<(String, Vec<String>)>,
    /// The name of a condition, or an SQLSTATE.
    pub condition: Option<String>,
    /// USING: options with their expressions.
    pub options: Vec<(RaiseOption, String)>,
}

/// An option of RAISE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    /// ERRCODE: the name of a condition, or an SQLSTATE.
    Code,
    /// MESSAGE.
    Message,
    /// DETAIL.
    Detail,
    /// HINT.
    Hint,
    /// COLUMN.
    Column,
    /// CONSTRAINT.
    Constraint,
    /// DATATYPE.
    DataType,
    /// TABLE.
    Table,
    /// SCHEMA.
    Schema,
}

/// The options by their names.
const RAISE_OPTIONS: [(&str, RaiseOption); 9] = [
    ("errcode", RaiseOption::Code),
    ("message", RaiseOption::Message),
    ("detail", RaiseOption::Detail),
    ("hint", RaiseOption::Hint),
    ("column", RaiseOption::Column),
    ("constraint", RaiseOption::Constraint),
    ("datatype", RaiseOption::DataType),
    ("table", RaiseOption::Table),
    ("schema", RaiseOption::Schema),
];

impl RaiseOption {
    /// As messages name it.
    pub fn name(self) -> String {
        let found = RAISE_OPTIONS.iter().find(|(_, option)| *option == self);
        found.map_or(String::new(), |(name, _)| name.to_uppercase())
    }
}

/// How loud RAISE is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Only clients hear it that asked for it.
    Debug,
    /// For the client, whatever it asked for.
    Info,
    /// For the client.
    Notice,
    /// For the client, as something to look at.
    Warning,
    /// The end of the block.
    Exception,
}

const HINT: &str = "DO runs statements, IF, RAISE, PERFORM, EXECUTE, NULL and EXCEPTION. For \
                    anything else, write the statements out.";

/// Reads the body of DO. Errors name no place: the body is a text within the client's.
///
/// # Errors
/// 42601 for what is no block; 0A000 for what needs more than statements; 42704 for the name of a
/// condition that does not exist.
pub fn parse_block(body: &str) -> SqlResult<Block> {
    let tokens = lexical::tokens(body).map_err(|e| SqlError::syntax(e.message))?;
    let tokens = Cursor::new(tokens);
    let mut reader = Reader { tokens, places: Places::new(body), body, depth: 0 };
    reader.whole().map_err(SqlError::without_place)
}

/// A text of a handler with what SQLERRM and SQLSTATE are there, as constants.
pub fn with_caught(text: &str, error: &SqlError) -> String {
    let mut out = text.to_string();
    let values = [("sqlerrm", error.message()), ("sqlstate", error.state().0)];
    let lower = text.to_lowercase();
    if !values.iter().any(|(word, _)| lower.contains(word)) {
        return out;
    }
    let (Ok(tokens), places) = (lexical::tokens(text), Places::new(text)) else { return out };
    for (at, token) in tokens.iter().enumerate().rev() {
        let is_field = at > 0 && tokens[at - 1].token == Token::Period;
        let found = values.iter().find(|(word, _)| token_is(&token.token, word));
        if let Some((word, value)) = found.filter(|_| !is_field) {
            let from = places.byte(token.span.start);
            let literal = format!("E'{}'", value.replace('\\', "\\\\").replace('\'', "''"));
            out.replace_range(from..from + word.len(), &literal);
        }
    }
    out
}

struct Reader<'a> {
    tokens: Cursor,
    places: Places<'a>,
    body: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn whole(&mut self) -> SqlResult<Block> {
        let block = self.block()?;
        self.tokens.take_token(&Token::SemiColon);
        self.tokens.expect_end()?;
        Ok(block)
    }

    fn is(&self, word: &str) -> bool {
        self.tokens.is_word(0, word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.tokens.take(&[word])
    }

    fn unexpected(&self) -> SqlError {
        self.tokens.unexpected()
    }

    /// The text up to a token that stands in no brackets and no CASE; that is passed as well.
    fn text_until(&mut self, is_end: impl Fn(&Token) -> bool) -> SqlResult<String> {
        let Some(start) = self.tokens.place() else { return Err(self.unexpected()) };
        let start = self.places.byte(start);
        let (mut open, mut cases) = (0, 0);
        while let Some(place) = self.tokens.place() {
            let Some(token) = self.tokens.next() else { break };
            if open == 0 && cases == 0 && is_end(&token) {
                let end = self.places.byte(place);
                return Ok(self.body[start..end].trim().to_string());
            }
            match &token {
                Token::LParen => open += 1,
                Token::RParen if open > 0 => open -= 1,
                token if token_is(token, "case") => cases += 1,
                token if token_is(token, "end") && cases > 0 => cases -= 1,
                _ => {}
            }
        }
        Err(self.unexpected())
    }

    fn rest_of_statement(&mut self) -> SqlResult<String> {
        if self.tokens.peek() == Some(&Token::SemiColon) {
            return Err(self.unexpected());
        }
        self.text_until(|token| *token == Token::SemiColon)
    }

    fn block(&mut self) -> SqlResult<Block> {
        if self.is("declare") {
            return Err(unsupported("DECLARE"));
        }
        self.tokens.expect(&["begin"])?;
        let steps = self.steps(&["exception", "end"])?;
        let mut handlers = Vec::new();
        if self.take_word("exception") {
            while self.take_word("when") {
                let conditions = self.conditions()?;
                handlers.push(Handler { conditions, steps: self.steps(&["when", "end"])? });
            }
        }
        self.tokens.expect(&["end"])?;
        Ok(Block { steps, handlers })
    }

    fn conditions(&mut self) -> SqlResult<Vec<Condition>> {
        let mut out = Vec::new();
        loop {
            out.push(match self.tokens.ident()?.as_str() {
                "others" => Condition::Others,
                "sqlstate" => match self.tokens.peek() {
                    Some(Token::SingleQuotedString(code)) if code.len() == 5 => {
                        Condition::State(self.tokens.string()?)
                    }
                    _ => return Err(self.unexpected()),
                },
                name => condition(name)?,
            });
            if !self.take_word("or") {
                self.tokens.expect(&["then"])?;
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
            let line = self.tokens.place().map_or(0, |place| place.line);
            out.push(Step { line, does: self.step()? });
        }
        self.depth -= 1;
        Ok(out)
    }

    fn step(&mut self) -> SqlResult<Does> {
        if self.is("begin") || self.is("declare") {
            let block = self.block()?;
            self.tokens.expect_token(&Token::SemiColon)?;
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
                self.tokens.expect_token(&Token::SemiColon)?;
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
        match (self.tokens.peek(), self.tokens.peek_at(1)) {
            (_, Some(Token::Assignment | Token::Eq)) => Err(unsupported("an assignment")),
            (Some(Token::ShiftLeft), _) => Err(unsupported("a label")),
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
            self.tokens.expect(&["end", "if"])?;
            self.tokens.expect_token(&Token::SemiColon)?;
            return Ok(Does::If(branches, otherwise));
        }
    }

    fn dynamic(&mut self) -> SqlResult<Does> {
        let from = self.tokens.at();
        let text = self.rest_of_statement()?;
        let words = self.tokens.since(from);
        if words.iter().any(|t| token_is(&t.token, "into") || token_is(&t.token, "using")) {
            return Err(unsupported("EXECUTE .. INTO or USING"));
        }
        Ok(Does::Dynamic(text))
    }

    fn raise(&mut self) -> SqlResult<Does> {
        const LEVELS: [(&str, Level); 6] = [
            ("debug", Level::Debug),
            ("log", Level::Debug),
            ("info", Level::Info),
            ("notice", Level::Notice),
            ("warning", Level::Warning),
            ("exception", Level::Exception),
        ];
        if self.tokens.take_token(&Token::SemiColon) {
            return Ok(Does::RaiseAgain);
        }
        let found = LEVELS.iter().find(|(word, _)| self.take_word(word));
        let level = found.map_or(Level::Exception, |(_, level)| *level);
        let (mut text, mut condition) = (None, None);
        if let Some(Token::SingleQuotedString(_)) = self.tokens.peek() {
            text = Some(self.text_of_raise()?);
        } else if self.take_word("sqlstate") {
            let code = self.tokens.string()?;
            if !is_code(&code) {
                return Err(SqlError::syntax(format!(
                    "invalid SQLSTATE code at or near \"'{code}'\""
                )));
            }
            condition = Some(code);
        } else if !self.is("using") {
            condition = Some(self.tokens.ident()?);
            condition.as_deref().map_or(Ok(()), |name| named_state(name).map(|_| ()))?;
        }
        let mut options = Vec::new();
        if self.take_word("using") {
            loop {
                options.push(self.option_of_raise()?);
                if self.tokens.next() == Some(Token::SemiColon) {
                    break;
                }
            }
        } else {
            self.tokens.expect_token(&Token::SemiColon)?;
        }
        Ok(Does::Raise(Box::new(Raise { level, text, condition, options })))
    }

    /// The text of RAISE and its values.
    fn text_of_raise(&mut self) -> SqlResult<(String, Vec<String>)> {
        let format = self.tokens.string()?;
        let mut args = Vec::new();
        while self.tokens.take_token(&Token::Comma) {
            args.push(self.text_until(|token| {
                matches!(token, Token::Comma | Token::SemiColon) || token_is(token, "using")
            })?);
            self.tokens.back();
        }
        let wanted = format.replace("%%", "").matches('%').count();
        match wanted.cmp(&args.len()) {
            std::cmp::Ordering::Equal => Ok((format, args)),
            std::cmp::Ordering::Less => {
                Err(SqlError::syntax("too many parameters specified for RAISE"))
            }
            std::cmp::Ordering::Greater => {
                Err(SqlError::syntax("too few parameters specified for RAISE"))
            }
        }
    }

    /// An option up to the comma or the semicolon behind it, which is left.
    fn option_of_raise(&mut self) -> SqlResult<(RaiseOption, String)> {
        let name = self.tokens.ident()?;
        let known = RAISE_OPTIONS.iter().find(|(known, _)| *known == name);
        let Some((_, option)) = known else {
            return Err(SqlError::syntax(format!(
                "unrecognized RAISE statement option at or near \"{name}\""
            )));
        };
        if !self.tokens.take_token(&Token::Eq) && !self.tokens.take_token(&Token::Assignment) {
            return Err(SqlError::syntax("syntax error, expected \"=\""));
        }
        let value = self.text_until(|token| matches!(token, Token::Comma | Token::SemiColon))?;
        self.tokens.back();
        Ok((*option, value))
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
    named_state(name).map(|state| Condition::State(state.0.to_string()))
}

/// Whether this is written as an SQLSTATE is.
pub fn is_code(code: &str) -> bool {
    code.len() == 5 && code.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

/// What the name of a condition means where one SQLSTATE is wanted.
///
/// # Errors
/// 42704 for a name that is none.
pub fn named_state(name: &str) -> SqlResult<SqlState> {
    const CLASSES: [(&str, SqlState); 5] = [
        ("data_exception", SqlState("22000")),
        ("integrity_constraint_violation", SqlState("23000")),
        ("syntax_error_or_access_rule_violation", SqlState("42000")),
        ("insufficient_resources", SqlState("53000")),
        ("raise_exception", SqlState::RAISE_EXCEPTION),
    ];
    let class = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, state)| *state);
    class.or_else(|| SqlState::named(name)).ok_or_else(|| {
        let text = format!("unrecognized exception condition \"{name}\"");
        SqlError::new(SqlState::UNDEFINED_OBJECT, text)
    })
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
               RAISE NOTICE 'x % %% %', 1 + (2), 'a,b';
               insert into a values (';');
             EXCEPTION WHEN duplicate_table OR SQLSTATE '42710' THEN NULL; WHEN others THEN RETURN;
             END;",
        )
        .unwrap();
        let lines: Vec<u64> = block.steps.iter().map(|step| step.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        let Does::If(branches, otherwise) = &block.steps[0].does else { panic!("{block:?}") };
        assert_eq!(branches[0].0, "NOT EXISTS (SELECT CASE WHEN 1 = 1 THEN 2 END)");
        assert!(
            matches!(&branches[0].1[0].does, Does::Sql(text) if text == "CREATE TABLE a (b int)")
        );
        assert_eq!(branches[1].0, "true");
        let Does::Block(inner) = &otherwise[0].does else { panic!("{otherwise:?}") };
        assert!(matches!(&inner.steps[0].does, Does::Perform(text) if text == "SELECT f(';')"));
        let Does::Raise(raise) = &block.steps[1].does else { panic!("{block:?}") };
        let (text, args) = raise.text.as_ref().unwrap();
        assert_eq!(
            (raise.level, text.as_str(), args.join("|").as_str()),
            (Level::Notice, "x % %% %", "1 + (2)|'a,b'")
        );
        assert!(matches!(&block.steps[2].does, Does::Sql(t) if t == "insert into a values (';')"));
        let codes = ["42P07", "42710"].map(|code| Condition::State(code.to_string()));
        assert_eq!(block.handlers[0].conditions, codes);
        assert_eq!(block.handlers[1].conditions, [Condition::Others]);
        assert!(matches!(block.handlers[1].steps[0].does, Does::Return));
    }

    #[test]
    fn texts_of_raise_have_as_many_places_as_there_are_values() {
        for (body, message) in [
            ("BEGIN RAISE 'a %%', 1; END", "too many parameters specified for RAISE"),
            ("BEGIN RAISE 'a % %', 1; END", "too few parameters specified for RAISE"),
        ] {
            let error = parse_block(body).unwrap_err();
            assert_eq!((error.message(), error.place()), (message, None));
        }
    }

    #[test]
    fn what_was_caught_is_a_constant() {
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, "it's \\ there");
        assert_eq!(
            with_caught("SQLERRM || ' sqlerrm ' || t.sqlstate || sqlstate", &error),
            "E'it''s \\\\ there' || ' sqlerrm ' || t.sqlstate || E'23505'"
        );
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
            let e = parse_block(body).unwrap_err();
            assert_eq!((e.state(), e.place()), (SqlState::SYNTAX_ERROR, None), "{body}");
        }
    }
}
