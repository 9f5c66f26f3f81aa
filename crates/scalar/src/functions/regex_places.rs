//! Where a regular expression matches: `regexp_instr`, `regexp_substr`, `regexp_count` from a
//! place on.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::text::replacement;
use super::{i64_of, text_of};
use crate::limits::check_bytes;
use crate::registry::{Eval, Table};
use crate::{EvalContext, pattern};

fn invalid(name: &str, value: i64) -> SqlError {
    let text = format!("invalid value for parameter \"{name}\": {value}");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

/// The argument at a place, which must be at least `least`.
fn number(a: &[Datum], at: usize, name: &str, default: i64, least: i64) -> SqlResult<i64> {
    let value = a.get(at).map_or(default, i64_of);
    if value < least { Err(invalid(name, value)) } else { Ok(value) }
}

fn flags<'a>(a: &'a [Datum], at: usize, function: &str) -> SqlResult<&'a str> {
    let flags = a.get(at).map_or("", text_of);
    match flags.contains('g') {
        true => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function}() does not support the \"global\" option"),
        )),
        false => Ok(flags),
    }
}

/// The byte where a search from a character, counted from one, begins; `None` behind the end.
fn start_of(text: &str, start: i64) -> Option<usize> {
    let at = usize::try_from(start - 1).ok()?;
    let mut places = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    places.nth(at)
}

/// Bytes of the n-th match, or of one of its groups.
fn place(
    a: &[Datum],
    function: &str,
    (flags_at, group_at): (usize, usize),
) -> SqlResult<Option<(usize, usize)>> {
    let start = number(a, 2, "start", 1, 1)?;
    let n = number(a, 3, "n", 1, 1)?;
    let group = number(a, group_at, "subexpr", 0, 0)?;
    let regex = pattern::regex(text_of(&a[1]), flags(a, flags_at, function)?)?;
    let text = text_of(&a[0]);
    let Some(first) = start_of(text, start) else { return Ok(None) };
    let found = pattern::matches_from(&regex, text, first).nth((n - 1) as usize);
    let group = found.and_then(|found| found.get(group as usize));
    Ok(group.map(|m| (m.start(), m.end())))
}

/// `regexp_replace(text, expression, replacement, start, n, flags)`: the n-th match from a place
/// on, or with 0 all of them.
fn replace(a: &[Datum], c: &EvalContext) -> SqlResult<Datum> {
    let (start, n) = (number(a, 3, "start", 1, 1)?, number(a, 4, "n", 1, 0)?);
    let regex = pattern::regex(text_of(&a[1]), a.get(5).map_or("", text_of))?;
    let (to, source) = (replacement(text_of(&a[2])), text_of(&a[0]));
    let (mut out, mut from) = (String::new(), 0);
    let found = start_of(source, start).map(|first| pattern::matches_from(&regex, source, first));
    for (number, found) in (1..).zip(found.into_iter().flatten()) {
        if n != 0 && number != n {
            continue;
        }
        let whole = found.get(0).map_or(0..0, |m| m.range());
        out.push_str(&source[from..whole.start]);
        found.expand(&to, &mut out);
        check_bytes(out.len(), source.len(), c)?;
        from = whole.end;
        if n != 0 {
            break;
        }
    }
    out.push_str(&source[from..]);
    Ok(Datum::text(out))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("regexp_replace(text, text, text, int4) text -- the first match from a place", replace);
    t.add("regexp_replace(text, text, text, int4, int4) text -- the n-th match", replace);
    t.add("regexp_replace(text, text, text, int4, int4, text) text", replace);
    let count: Eval = |a, _| {
        let start = number(a, 2, "start", 1, 1)?;
        let regex = pattern::regex(text_of(&a[1]), flags(a, 3, "regexp_count")?)?;
        let text = text_of(&a[0]);
        let count = start_of(text, start)
            .map_or(0, |first| pattern::matches_from(&regex, text, first).count());
        Ok(Datum::Int4(count as i32))
    };
    t.add("regexp_count(text, text) int4 -- how often the expression matches", count);
    t.add("regexp_count(text, text, int4) int4", count);
    t.add("regexp_count(text, text, int4, text) int4", count);
    let part: Eval = |a, _| {
        let text = text_of(&a[0]);
        Ok(match place(a, "regexp_substr", (4, 5))? {
            Some((start, end)) => Datum::text(&text[start..end]),
            None => Datum::Null,
        })
    };
    t.add("regexp_substr(text, text) text -- the part that matches", part);
    t.add("regexp_substr(text, text, int4) text", part);
    t.add("regexp_substr(text, text, int4, int4) text", part);
    t.add("regexp_substr(text, text, int4, int4, text) text", part);
    t.add("regexp_substr(text, text, int4, int4, text, int4) text", part);
    let position: Eval = |a, _| {
        let end = a.get(4).map_or(0, i64_of);
        if !(0..=1).contains(&end) {
            return Err(invalid("endoption", end));
        }
        let found = place(a, "regexp_instr", (5, 6))?;
        let characters = |byte: usize| text_of(&a[0])[..byte].chars().count() as i32 + 1;
        let found = found.map(|(start, behind)| if end == 0 { start } else { behind });
        Ok(Datum::Int4(found.map_or(0, characters)))
    };
    t.add(
        "regexp_instr(text, text) int4 -- where the expression matches; 0 if it does not",
        position,
    );
    t.add("regexp_instr(text, text, int4) int4", position);
    t.add("regexp_instr(text, text, int4, int4) int4", position);
    t.add("regexp_instr(text, text, int4, int4, int4) int4", position);
    t.add("regexp_instr(text, text, int4, int4, int4, text) int4", position);
    t.add("regexp_instr(text, text, int4, int4, int4, text, int4) int4", position);
}
