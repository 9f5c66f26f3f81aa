//! DECLARE, FETCH, MOVE and CLOSE.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::Kind;
use crate::cursor::Cursor;
use crate::script::parse_nested;

/// DECLARE CURSOR.
#[derive(Clone, Debug)]
pub struct DeclareCursor {
    /// Name.
    pub name: String,
    /// SCROLL, or NO SCROLL.
    pub scroll: Option<bool>,
    /// WITH HOLD.
    pub hold: bool,
    /// BINARY: simple queries get its rows in binary form.
    pub binary: bool,
    /// Its rows.
    pub query: Box<ast::Query>,
}

/// Which rows FETCH and MOVE mean, from where the cursor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// So many rows onward, or if negative back; 0 is the row it stands on. NEXT is 1, PRIOR -1.
    By(i64),
    /// All that are left.
    AllOnward,
    /// All before it.
    AllBack,
    /// The row with this number, from the end if negative. FIRST is 1, LAST -1.
    Absolute(i64),
    /// The row so many rows away.
    Relative(i64),
}

/// FETCH or MOVE.
#[derive(Clone, Debug)]
pub struct FetchRows {
    /// Cursor.
    pub cursor: String,
    /// Which rows.
    pub steps: Steps,
    /// MOVE: no rows are given.
    pub only_move: bool,
}

/// Reads one of these statements; `None` if it is another.
pub(crate) fn sql_cursor(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["declare"]) {
        return declare(c).map(|d| Some(Kind::DeclareCursor(Box::new(d))));
    }
    for (word, only_move) in [("fetch", false), ("move", true)] {
        if c.take(&[word]) {
            let steps = steps(c)?;
            let _ = c.take(&["from"]) || c.take(&["in"]);
            return Ok(Some(Kind::Fetch(FetchRows { cursor: c.own_name()?, steps, only_move })));
        }
    }
    if c.take(&["close"]) {
        let name = if c.take(&["all"]) { None } else { Some(c.own_name()?) };
        return Ok(Some(Kind::CloseCursor(name)));
    }
    Ok(None)
}

fn declare(c: &mut Cursor) -> SqlResult<DeclareCursor> {
    let name = c.own_name()?;
    let (mut scrolls, mut stays, mut binary, mut insensitive) = (false, false, false, false);
    let mut asensitive = false;
    loop {
        let flag = if c.take(&["binary"]) {
            &mut binary
        } else if c.take(&["scroll"]) {
            &mut scrolls
        } else if c.take(&["no", "scroll"]) {
            &mut stays
        } else if c.take(&["insensitive"]) {
            &mut insensitive
        } else if c.take(&["asensitive"]) {
            &mut asensitive
        } else {
            break;
        };
        *flag = true;
    }
    for (both, words) in [
        (scrolls && stays, "SCROLL and NO SCROLL"),
        (insensitive && asensitive, "INSENSITIVE and ASENSITIVE"),
    ] {
        if both {
            let text = format!("cannot specify both {words}");
            return Err(SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, text));
        }
    }
    let scroll = (scrolls || stays).then_some(scrolls);
    c.expect(&["cursor"])?;
    let hold = c.take(&["with", "hold"]);
    c.take(&["without", "hold"]);
    c.expect(&["for"])?;
    if c.done() {
        return Err(c.unexpected());
    }
    match &*parse_nested(c.rest())?.kind {
        Kind::Sql(sql) => match &**sql {
            ast::Statement::Query(query) => {
                while c.next().is_some() {}
                if let Some(lock) = query.locks.first() {
                    check_read_only(lock, hold, scrolls, insensitive)?;
                }
                Ok(DeclareCursor { name, scroll, hold, binary, query: query.clone() })
            }
            _ => Err(c.unexpected()),
        },
        _ => Err(c.unexpected()),
    }
}

/// What a cursor cannot be whose rows are locked as they come.
fn check_read_only(
    lock: &ast::LockClause,
    hold: bool,
    scrolls: bool,
    insensitive: bool,
) -> SqlResult<()> {
    let no = SqlState::FEATURE_NOT_SUPPORTED;
    let (state, what, kind, end) = match (hold, scrolls, insensitive) {
        (true, ..) => (no, "CURSOR WITH HOLD", "Holdable", "supported"),
        (_, true, _) => (no, "SCROLL CURSOR", "Scrollable", "supported"),
        (.., true) => {
            (SqlState::INVALID_CURSOR_DEFINITION, "INSENSITIVE CURSOR", "Insensitive", "valid")
        }
        _ => return Ok(()),
    };
    let strength = lock.lock_type.to_string();
    Err(SqlError::new(state, format!("DECLARE {what} ... FOR {strength} is not {end}"))
        .with_detail(format!("{kind} cursors must be READ ONLY.")))
}

/// The direction, which may be left out.
fn steps(c: &mut Cursor) -> SqlResult<Steps> {
    Ok(if c.take(&["next"]) {
        Steps::By(1)
    } else if c.take(&["prior"]) {
        Steps::By(-1)
    } else if c.take(&["first"]) {
        Steps::Absolute(1)
    } else if c.take(&["last"]) {
        Steps::Absolute(-1)
    } else if c.take(&["absolute"]) {
        Steps::Absolute(c.integer()?)
    } else if c.take(&["relative"]) {
        Steps::Relative(c.integer()?)
    } else if c.take(&["all"]) {
        Steps::AllOnward
    } else if c.take(&["forward"]) {
        if c.take(&["all"]) { Steps::AllOnward } else { Steps::By(count(c)?.unwrap_or(1)) }
    } else if c.take(&["backward"]) {
        match c.take(&["all"]) {
            true => Steps::AllBack,
            false => Steps::By(count(c)?.unwrap_or(1).saturating_neg()),
        }
    } else {
        Steps::By(count(c)?.unwrap_or(1))
    })
}

fn count(c: &mut Cursor) -> SqlResult<Option<i64>> {
    match c.peek() {
        Some(Token::Number(..) | Token::Minus | Token::Plus) => c.integer().map(Some),
        _ => Ok(None),
    }
}
