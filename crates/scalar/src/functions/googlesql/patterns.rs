//! Regular expressions as GoogleSQL has them: RE2's, of which this library's syntax is one.

use std::cell::RefCell;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use regex::Regex;

use super::guests::invalid;
use crate::array_operators::array;
use crate::functions::{i64_of, text_of};
use crate::limits;
use crate::registry::{Eval, Table};

thread_local! {
    /// The expression that was asked for last: mostly it is the same for all rows.
    static LAST: RefCell<Option<(String, Arc<Regex>)>> = const { RefCell::new(None) };
}

fn expression(text: &str) -> SqlResult<Arc<Regex>> {
    let known = LAST.with_borrow(|last| match last {
        Some((known, regex)) if known == text => Some(regex.clone()),
        _ => None,
    });
    if let Some(known) = known {
        return Ok(known);
    }
    // What is compiled is bounded by the library's own limit.
    let made = Regex::new(text).map_err(|e| {
        let line = e.to_string();
        let line = line.lines().last().unwrap_or_default().trim_start_matches("error: ");
        SqlError::new(SqlState("2201B"), format!("invalid regular expression: {line}"))
    })?;
    let made = Arc::new(made);
    LAST.set(Some((text.to_string(), made.clone())));
    Ok(made)
}

/// The group that an expression extracts: its only one, or the whole.
fn group(regex: &Regex) -> SqlResult<usize> {
    match regex.captures_len() {
        1 => Ok(0),
        2 => Ok(1),
        _ => Err(invalid("a regular expression that extracts has at most one group")),
    }
}

/// `regexp_extract(text, expression, position, occurrence)`.
fn extract(a: &[Datum]) -> SqlResult<Datum> {
    let (from, wanted) = (a.get(2).map_or(1, i64_of), a.get(3).map_or(1, i64_of));
    if from < 1 || wanted < 1 {
        return Err(invalid("the position and the occurrence must be positive"));
    }
    let regex = expression(text_of(&a[1]))?;
    let (text, group) = (text_of(&a[0]), group(&regex)?);
    let mut places = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    let Some(start) = places.nth((from - 1) as usize) else { return Ok(Datum::Null) };
    // What stands before the position does not count, neither for `^`.
    let mut found = regex.captures_iter(&text[start..]);
    let part = found.nth((wanted - 1) as usize).and_then(|found| found.get(group));
    Ok(part.map_or(Datum::Null, |part| Datum::text(part.as_str())))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("regexp_contains(text, text) bool -- whether a part matches, by RE2", |a, _| {
        Ok(Datum::Bool(expression(text_of(&a[1]))?.is_match(text_of(&a[0]))))
    });
    let one: Eval = |a, _| extract(a);
    t.add("regexp_extract(text, text) text -- the n-th part that matches, or its group", one);
    t.add("regexp_extract(text, text, int8) text", one);
    t.add("regexp_extract(text, text, int8, int8) text", one);
    t.add(
        "regexp_extract_all(text, text) text[] -- all parts that match, or their group",
        |a, _| {
            let regex = expression(text_of(&a[1]))?;
            let group = group(&regex)?;
            let all = regex.captures_iter(text_of(&a[0]));
            let all = all.map(|found| found.get(group).map_or("", |part| part.as_str()));
            Ok(array(SqlType::Text, limits::items(all.map(Datum::text))?))
        },
    );
}
