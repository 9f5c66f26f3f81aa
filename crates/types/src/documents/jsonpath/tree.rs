//! The tree of a path.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::SqlResult;

/// A parsed path.
#[derive(Debug)]
pub struct Path {
    /// In lax mode arrays stand for their elements where that helps; the other is strict.
    pub lax: bool,
    /// What it is.
    pub root: Node,
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
}

impl Arithmetic {
    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Sub => "-",
            Arithmetic::Mul => "*",
            Arithmetic::Div => "/",
            Arithmetic::Mod => "%",
        }
    }
}

/// A comparison of two items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// Its sign.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }

    /// Whether it holds for two items that are in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }
}

/// Flags of `like_regex`, as XQuery names them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegexFlags {
    /// `i`: letters of either case are the same.
    pub any_case: bool,
    /// `s`: a point is a line's end, too.
    pub points: bool,
    /// `m`: lines begin and end.
    pub lines: bool,
    /// `x`: blanks mean nothing; only where nothing means anything.
    pub blanks: bool,
    /// `q`: nothing means anything but itself.
    pub literally: bool,
}

/// An expression: it gives items, or, if it is a predicate, true, false or unknown.
#[derive(Debug)]
pub enum Node {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `$name`
    Variable(String),
    /// Null, a truth value, a number or a string.
    Literal(Value),
    /// Steps from something, in their order.
    Steps(Box<Node>, Vec<Step>),
    /// `+` in front.
    Plus(Box<Node>),
    /// `-` in front.
    Minus(Box<Node>),
    /// An operand, and operations on what is there so far, from left to right.
    Arithmetic(Box<Node>, Vec<(Arithmetic, Node)>),
    /// A comparison.
    Compare(Comparison, Box<Node>, Box<Node>),
    /// Two or more, from left to right.
    And(Vec<Node>),
    /// Two or more, from left to right.
    Or(Vec<Node>),
    /// `!`
    Not(Box<Node>),
    /// `is unknown`
    IsUnknown(Box<Node>),
    /// `exists (..)`
    Exists(Box<Node>),
    /// `starts with`
    StartsWith(Box<Node>, Box<Node>),
    /// `like_regex`: the pattern as it is written, its flags, and what they mean.
    LikeRegex(Box<Node>, String, RegexFlags, Arc<Regex>),
}

/// A step from an item to others.
#[derive(Debug)]
pub enum Step {
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
    /// `.size()`
    Method(Method),
    /// `.datetime()`, with the template if there is one.
    Datetime(Option<String>),
}

/// A method without arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// `.type()`
    Type,
    /// `.size()`
    Size,
    /// `.double()`
    Double,
    /// `.ceiling()`
    Ceiling,
    /// `.floor()`
    Floor,
    /// `.abs()`
    Abs,
    /// `.keyvalue()`
    KeyValue,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::Floor => "floor",
            Method::Abs => "abs",
            Method::KeyValue => "keyvalue",
        }
    }
}

impl Node {
    /// Whether it is true, false or unknown.
    pub(super) fn is_predicate(&self) -> bool {
        use Node::{And, Compare, Exists, IsUnknown, LikeRegex, Not, Or, StartsWith};
        matches!(
            self,
            And(_) | Compare(..) | Exists(_) | IsUnknown(_) | LikeRegex(..) | Not(_) | Or(_)
        ) || matches!(self, StartsWith(..))
    }
}

thread_local! {
    static PARSED: RefCell<HashMap<String, Arc<Path>>> = RefCell::new(HashMap::new());
}

impl Path {
    /// The text that a value of the type keeps of a path. It has parentheses around each operation
    /// of a chain, and can be read again.
    ///
    /// # Errors
    /// See [`Path::parse`].
    pub(crate) fn kept(text: &str) -> SqlResult<String> {
        let printed = Path::parse(text)?.to_string();
        Path::parse(&printed)?;
        Ok(printed)
    }

    /// Parses a path; recent ones are kept.
    ///
    /// # Errors
    /// 22P02 and 42601; 2201B for a malformed regular expression in it, 54001 for one that is
    /// nested too deeply.
    pub fn parse(text: &str) -> SqlResult<Arc<Path>> {
        if let Some(found) = PARSED.with_borrow(|known| known.get(text).cloned()) {
            return Ok(found);
        }
        let path = Arc::new(super::parse::parse(text)?);
        PARSED.with_borrow_mut(|known| {
            if known.len() >= 64 {
                known.clear();
            }
            known.insert(text.to_string(), path.clone());
        });
        Ok(path)
    }
}
