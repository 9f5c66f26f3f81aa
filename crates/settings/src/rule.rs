//! Rules that deny statements: DENY QUERY.
//!
//! Two of the three ways to name a statement look for digests of its text, which the parser makes:
//! of the whole of it, and of each query inside of it, so that it does not help to put it into
//! another one. The third one is a regular expression, matched in time that grows with the text's
//! length only.

use std::collections::HashMap;

use braid_types::{SqlError, SqlResult, SqlState};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Bytes of a compiled expression at most.
const REGEX_MAX: usize = 1 << 20;

/// How a rule names statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Match {
    /// By their words and constants.
    Exact,
    /// By their words, whatever the constants.
    Fingerprint,
    /// By an expression that matches their text, or a part of it.
    Regex,
}

impl Match {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Match::Exact => "EXACT",
            Match::Fingerprint => "FINGERPRINT",
            Match::Regex => "REGEX",
        }
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Statements fail.
    Reject,
    /// They are counted.
    DryRun,
}

impl Action {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Action::Reject => "REJECT",
            Action::DryRun => "DRY RUN",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// How statements are named.
    pub by: Match,
    /// The statement or the expression, as it was written.
    pub text: String,
    /// Only what this user sends.
    pub user: Option<String>,
    /// Only what comes from this `application_name`.
    pub application: Option<String>,
    /// Holds until then, microseconds since 2000.
    pub until_micros: Option<i64>,
    /// What it does.
    pub action: Action,
    /// For those whose statements fail.
    pub reason: Option<String>,
    /// When it was made, microseconds since 2000.
    pub at_micros: i64,
    /// By whom.
    pub made_by: String,
}

impl Rule {
    /// Bytes of its record.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record.
    pub fn decode(bytes: &[u8]) -> Option<Rule> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether its time is over.
    pub fn is_over(&self, now_micros: i64) -> bool {
        self.until_micros.is_some_and(|until| until <= now_micros)
    }

    /// Whether it is about who asks.
    pub(crate) fn is_about(&self, user: &str, application: &str) -> bool {
        self.user.as_deref().is_none_or(|named| named == user)
            && self.application.as_deref().is_none_or(|named| named == application)
    }
}

/// Compiles the expression of a rule.
///
/// # Errors
/// 2201B for one that is none, or too large.
pub fn compiled(text: &str) -> SqlResult<Regex> {
    RegexBuilder::new(text).case_insensitive(true).size_limit(REGEX_MAX).build().map_err(|e| {
        let text = format!("invalid regular expression: {e}");
        SqlError::new(SqlState("2201B"), text).with_hint(
            "Back references and looking around are not there: matching takes linear time.",
        )
    })
}

/// The digest of a statement of a rule. It is none of what is stored: releases may make others.
pub type DigestFn = fn(&str, Match) -> u64;

/// Rules by what is looked for.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    /// Of both kinds that have digests: numbers of rules, ascending.
    exact: HashMap<u64, Vec<u32>>,
    loose: HashMap<u64, Vec<u32>>,
    regexes: Vec<(u32, Regex)>,
}

impl RuleIndex {
    /// Of these rules. An expression that cannot be compiled matches nothing, and the log says so.
    pub(crate) fn new<'a>(
        rules: impl Iterator<Item = (u32, &'a Rule)>,
        digest: DigestFn,
    ) -> RuleIndex {
        let mut index = RuleIndex::default();
        for (id, rule) in rules {
            match rule.by {
                Match::Exact => {
                    index.exact.entry(digest(&rule.text, rule.by)).or_default().push(id);
                }
                Match::Fingerprint => {
                    index.loose.entry(digest(&rule.text, rule.by)).or_default().push(id);
                }
                Match::Regex => match compiled(&rule.text) {
                    Ok(regex) => index.regexes.push((id, regex)),
                    Err(error) => tracing::error!(rule = id, %error, "a rule denies nothing"),
                },
            }
        }
        index
    }

    /// Whether statements must be known as they were sent.
    pub(crate) fn asks_for_text(&self) -> bool {
        !self.exact.is_empty() || !self.regexes.is_empty()
    }

    /// The rules that name a statement.
    pub(crate) fn naming(&self, loose: &[u64], exact: &[u64], text: &str) -> Vec<u32> {
        let of = |by: &HashMap<u64, Vec<u32>>, digests: &[u64]| -> Vec<u32> {
            digests.iter().filter_map(|digest| by.get(digest)).flatten().copied().collect()
        };
        let mut all = of(&self.loose, loose);
        if !self.exact.is_empty() {
            all.extend(of(&self.exact, exact));
        }
        all.extend(self.regexes.iter().filter(|(_, r)| r.is_match(text)).map(|(id, _)| *id));
        all.sort_unstable();
        all.dedup();
        all
    }
}
