//! `LIKE t INCLUDING ..` among the columns of CREATE TABLE.

use braid_types::SqlResult;
use sqlparser::tokenizer::TokenWithSpan;

use crate::Name;
use crate::cursor::{Cursor, token_is};

/// What a table takes over from another relation, besides the names, types and NOT NULL of its
/// columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LikeOptions {
    /// COMMENTS.
    pub comments: bool,
    /// CONSTRAINTS: CHECK.
    pub constraints: bool,
    /// DEFAULTS.
    pub defaults: bool,
    /// GENERATED.
    pub generated: bool,
    /// IDENTITY.
    pub identity: bool,
    /// INDEXES, with primary keys and unique constraints.
    pub indexes: bool,
}

/// A LIKE clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikeClause {
    /// How many columns are declared before it.
    pub columns_before: usize,
    /// What the table is to be like.
    pub source: Name,
    /// INCLUDING and EXCLUDING.
    pub options: LikeOptions,
}

/// Takes LIKE clauses out of the items of a table.
pub(crate) fn lift(items: &mut Vec<Vec<TokenWithSpan>>) -> SqlResult<Vec<LikeClause>> {
    let (mut out, mut columns, mut kept) = (Vec::new(), 0, Vec::new());
    for item in items.drain(..) {
        let is = |words: &[&str]| {
            item.first().is_some_and(|t| words.iter().any(|w| token_is(&t.token, w)))
        };
        if is(&["like"]) {
            out.push(clause(Cursor::new(item), columns)?);
            continue;
        }
        columns +=
            usize::from(!is(&["constraint", "primary", "unique", "check", "foreign", "exclude"]));
        kept.push(item);
    }
    *items = kept;
    Ok(out)
}

fn clause(mut c: Cursor, columns_before: usize) -> SqlResult<LikeClause> {
    c.expect(&["like"])?;
    let source = c.name()?;
    let mut options = LikeOptions::default();
    while !c.done() {
        let including = c.take(&["including"]);
        if !including {
            c.expect(&["excluding"])?;
        }
        let place = c.clone();
        match c.ident()?.as_str() {
            "all" => {
                options = LikeOptions {
                    comments: including,
                    constraints: including,
                    defaults: including,
                    generated: including,
                    identity: including,
                    indexes: including,
                }
            }
            "comments" => options.comments = including,
            "constraints" => options.constraints = including,
            "defaults" => options.defaults = including,
            "generated" => options.generated = including,
            "identity" => options.identity = including,
            "indexes" => options.indexes = including,
            // There is nothing of these to take over.
            "compression" | "statistics" | "storage" => {}
            _ => return Err(place.unexpected()),
        }
    }
    Ok(LikeClause { columns_before, source, options })
}
