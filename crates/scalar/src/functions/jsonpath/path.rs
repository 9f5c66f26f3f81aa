//! The tree of a path.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use braid_types::{SqlResult, jsonb};
use regex::Regex;
use serde_json::{Map, Value};

use super::eval::Asked;
use crate::CmpOp;

/// A parsed path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) lax: bool,
    pub(super) root: Node,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

/// An expression: it gives items, or, if it is a predicate, true, false or unknown.
#[derive(Debug)]
pub(super) enum Node {
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
    Compare(CmpOp, Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    IsUnknown(Box<Node>),
    Exists(Box<Node>),
    StartsWith(Box<Node>, Box<Node>),
    LikeRegex(Box<Node>, Arc<Regex>),
}

#[derive(Debug)]
pub(super) enum Step {
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
pub(super) enum Method {
    Type,
    Size,
    Double,
    Ceiling,
    Floor,
    Abs,
}

impl Node {
    pub(super) fn is_predicate(&self) -> bool {
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
    pub(super) fn parse(text: &str) -> SqlResult<Arc<Path>> {
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

    /// Whether it is in lax mode.
    pub(super) fn is_lax(&self) -> bool {
        self.lax
    }

    /// Its items in a document, with variables; and the error that ended it, if one did.
    pub(super) fn items(
        &self,
        document: &Value,
        variables: &Map<String, Value>,
        asked: Asked,
    ) -> (Vec<Value>, SqlResult<()>) {
        let mut out = Vec::new();
        let ended = super::eval::run(self, document, variables, asked, &mut out);
        // What was cut out of a document is one itself.
        (out.into_iter().filter_map(|v| jsonb::normalize(v).ok()).collect(), ended)
    }
}
