//! How an expression is printed, with its parentheses left open: PostgreSQL puts them around every
//! operation for programs, and only where they are needed for people.
//!
//! ```text
//!   for programs     (((a + 1) * 2) > (3)::numeric)
//!   for people       ((a + 1) * 2) > 3::numeric
//! ```
//! The rules for people are those of `isSimpleNode` in PostgreSQL's ruleutils.

use std::rc::Rc;

/// Longer texts are not made: `BETWEEN` prints its left side twice.
const LONGEST: usize = 1 << 20;

/// What an expression is to those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a constant, a call: never in parentheses.
    Atom,
    /// CASE, whose key words stand on lines of their own.
    Case,
    /// An operator and its level, if it is one of the few whose level is known to people.
    Operator(Option<Level>),
    And,
    Or,
    Not,
    /// IS NULL, IS TRUE, IS DISTINCT FROM.
    Test,
    /// ANY, ALL and COLLATE, which get parentheses wherever they are a part.
    Other,
    /// A conversion, which is a call of a function or just another view of the value.
    Converted {
        by_function: bool,
    },
    /// AT TIME ZONE, a call that brings its parentheses.
    Syntax,
    /// What has a query in it, and brings its parentheses, too.
    Query,
}

/// Which operators bind tighter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Sum,
    Product,
}

/// A part of a printed expression.
pub(super) enum Piece {
    /// As it is.
    Text(String),
    /// Something that stands between brackets or commas.
    Whole(Rc<Printed>),
    /// Something beside an operator.
    Operand(Rc<Printed>),
    /// A key of a list of keys that is no column.
    Key(Rc<Printed>),
    /// The lines of a query.
    Lines(String),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Piece {
        Piece::Text(text.to_string())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Piece {
        Piece::Text(text)
    }
}

/// An expression that can be printed.
pub(super) struct Printed {
    kind: Kind,
    pieces: Vec<Piece>,
    length: usize,
}

impl Printed {
    /// `None` if it would be too long.
    pub(super) fn new(kind: Kind, pieces: Vec<Piece>) -> Option<Rc<Printed>> {
        let length = pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Lines(text) => text.len(),
            Piece::Whole(inner) | Piece::Operand(inner) | Piece::Key(inner) => inner.length + 2,
        });
        let length = length.sum();
        (length <= LONGEST).then(|| Rc::new(Printed { kind, pieces, length }))
    }

    /// A name, a constant.
    pub(super) fn atom(text: impl Into<Piece>) -> Option<Rc<Printed>> {
        Printed::new(Kind::Atom, vec![text.into()])
    }

    /// Its text, for people or for programs.
    pub(super) fn text(&self, for_people: bool) -> String {
        self.text_at(for_people, 0)
    }

    /// The same with its lines so far to the right.
    pub(super) fn text_at(&self, for_people: bool, indent: usize) -> String {
        let mut out = Out { text: String::with_capacity(self.length), for_people };
        self.write(&mut out, indent);
        out.text
    }

    fn write(&self, out: &mut Out, indent: usize) {
        let encloses = match self.kind {
            Kind::Atom | Kind::Case | Kind::Converted { .. } | Kind::Query => false,
            Kind::Syntax => true,
            _ => !out.for_people,
        };
        if encloses {
            out.text.push('(');
        }
        let inner = if self.kind == Kind::Case { indent + 4 } else { indent };
        let mut is_first = true;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) if self.kind == Kind::Case => out.lines(text, indent),
                Piece::Text(text) => out.text.push_str(text),
                Piece::Lines(text) => out.text.push_str(&further_in(text, inner)),
                Piece::Whole(part) => part.write(out, inner),
                Piece::Key(part) => {
                    let bare = !part.is_enclosed_as_key(out.for_people);
                    out.text.push_str(if bare { "" } else { "(" });
                    part.write(out, inner);
                    out.text.push_str(if bare { "" } else { ")" });
                }
                Piece::Operand(part) => {
                    let bare = match self.kind {
                        Kind::Converted { .. } if !out.for_people => false,
                        _ => !out.for_people || part.is_simple(self.kind, is_first),
                    };
                    is_first = false;
                    if !bare {
                        out.text.push('(');
                    }
                    part.write(out, inner);
                    if !bare {
                        out.text.push(')');
                    }
                }
            }
        }
        if encloses {
            out.text.push(')');
        }
    }

    /// Whether people read it right without parentheses as a part of another.
    pub(super) fn is_simple(&self, parent: Kind, is_first: bool) -> bool {
        let in_connective = matches!(parent, Kind::And | Kind::Or | Kind::Not);
        match self.kind {
            Kind::Atom | Kind::Case | Kind::Syntax => true,
            Kind::Converted { by_function: true } => true,
            Kind::Converted { by_function: false } => {
                let inner = self.pieces.iter().find_map(|piece| match piece {
                    Piece::Operand(inner) => Some(inner),
                    _ => None,
                });
                inner.is_none_or(|inner| inner.is_simple(self.kind, true))
            }
            Kind::Operator(own) => match parent {
                Kind::Operator(outer) => match (own, outer) {
                    (Some(Level::Product), Some(Level::Sum)) => true,
                    (Some(own), Some(outer)) => own == outer && is_first,
                    _ => false,
                },
                _ => in_connective,
            },
            Kind::Test | Kind::Query => in_connective,
            Kind::And | Kind::Not => matches!(parent, Kind::And | Kind::Or),
            Kind::Or => parent == Kind::Or,
            Kind::Other => false,
        }
    }

    /// Whether it is a conversion that calls a function: what gives a value a length does, too.
    pub(super) fn calls_to_convert(&self) -> bool {
        let has_length =
            || matches!(self.pieces.last(), Some(Piece::Text(name)) if name.contains('('));
        matches!(self.kind, Kind::Converted { by_function } if by_function || has_length())
    }

    /// Whether it stands in parentheses in a list of keys. What is no function to PostgreSQL does
    /// without.
    pub(super) fn is_enclosed_as_key(&self, for_people: bool) -> bool {
        let is_own = || {
            let shown = self.text(for_people);
            ["COALESCE(", "GREATEST(", "LEAST(", "NULLIF("].iter().any(|w| shown.starts_with(w))
        };
        for_people || self.is_call() && !is_own() || self.calls_to_convert()
    }

    /// Whether it looks like a call, which needs no parentheses among the columns of an index.
    pub(super) fn is_call(&self) -> bool {
        self.kind == Kind::Syntax
            || self.kind == Kind::Atom
                && matches!(self.pieces.last(), Some(Piece::Text(text)) if text == ")")
    }
}

/// What a line begins with that stands further left than those around it.
pub const FURTHER_LEFT: char = '\u{1}';

/// The lines of a query within another one, so far to the right. What is in quotes is not moved.
pub fn further_in(text: &str, by: usize) -> String {
    let mut out = String::with_capacity(text.len() + by * 8);
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        out.push(c);
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\n', None) if rest.peek() == Some(&FURTHER_LEFT) => {
                rest.next();
                out.extend(std::iter::repeat_n(' ', by.saturating_sub(8)));
            }
            ('\n', None) => out.extend(std::iter::repeat_n(' ', by)),
            _ => {}
        }
    }
    out
}

struct Out {
    text: String,
    for_people: bool,
}

impl Out {
    /// Key words of a CASE, whose lines are indented.
    fn lines(&mut self, text: &str, indent: usize) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
                self.text.extend(std::iter::repeat_n(' ', indent));
            }
            self.text.push_str(line);
        }
    }
}
