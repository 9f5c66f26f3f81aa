//! Partitions: what CREATE TABLE says of them, ATTACH and DETACH.
//!
//! ```text
//!   CREATE TABLE t (..) PARTITION BY RANGE (a, (b + 1))
//!                       \_________ lifted __________/
//!   CREATE TABLE p PARTITION OF t FOR VALUES FROM (1, MINVALUE) TO (9, MAXVALUE)
//!   ALTER TABLE t ATTACH PARTITION p DEFAULT
//!   ALTER INDEX i ATTACH PARTITION j
//! ```

use braid_types::{SqlError, SqlResult, built_in_collation};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{Cursor, closing, token_is};
use crate::{Kind, Name};

/// How rows are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionStrategy {
    /// By values.
    List,
    /// By bounds.
    Range,
    /// By the rest of a hash.
    Hash,
}

/// PARTITION BY.
#[derive(Clone, Debug)]
pub struct PartitionBy {
    /// LIST, RANGE or HASH.
    pub strategy: PartitionStrategy,
    /// Columns and expressions.
    pub keys: Vec<ast::Expr>,
}

/// One value of the bound of a range.
#[derive(Clone, Debug)]
pub enum RangeLimit {
    /// MINVALUE.
    Min,
    /// A value.
    Value(Box<ast::Expr>),
    /// MAXVALUE.
    Max,
}

/// FOR VALUES, or DEFAULT.
#[derive(Clone, Debug)]
pub enum ForValues {
    /// IN.
    In(Vec<ast::Expr>),
    /// FROM and TO.
    FromTo(Vec<RangeLimit>, Vec<RangeLimit>),
    /// WITH (MODULUS, REMAINDER).
    With {
        /// What the hash is divided by.
        modulus: i64,
        /// What is left.
        remainder: i64,
    },
    /// DEFAULT.
    Default,
}

/// CREATE TABLE .. PARTITION OF.
#[derive(Clone, Debug)]
pub struct CreatePartition {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// TEMPORARY.
    pub temporary: bool,
    /// What it is a partition of.
    pub parent: Name,
    /// Whether it has columns or constraints that it says itself.
    pub has_items: bool,
    /// Its rows.
    pub bound: ForValues,
    /// How it is divided itself.
    pub by: Option<PartitionBy>,
}

/// What ALTER TABLE and ALTER INDEX say about a partition.
#[derive(Clone, Debug)]
pub enum PartitionChange {
    /// ALTER TABLE .. ATTACH PARTITION.
    Attach {
        /// The partitioned table.
        table: Name,
        /// IF EXISTS.
        if_exists: bool,
        /// The table that becomes a partition.
        partition: Name,
        /// Its rows.
        bound: ForValues,
    },
    /// ALTER TABLE .. DETACH PARTITION.
    Detach {
        /// The partitioned table.
        table: Name,
        /// IF EXISTS.
        if_exists: bool,
        /// The partition that becomes a table.
        partition: Name,
    },
    /// ALTER INDEX .. ATTACH PARTITION.
    AttachIndex {
        /// The index of the partitioned table.
        index: Name,
        /// The index of the partition.
        partition: Name,
    },
}

/// Reads ATTACH and DETACH; `None` if it is something else.
pub(crate) fn change(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    if probe.take(&["alter", "index"]) {
        let _ = probe.take(&["if", "exists"]);
        let Ok(index) = probe.name() else { return Ok(None) };
        if !probe.take(&["attach", "partition"]) {
            return Ok(None);
        }
        let partition = probe.name()?;
        *c = probe;
        let change = PartitionChange::AttachIndex { index, partition };
        return Ok(Some(Kind::Partition(Box::new(change))));
    }
    if !probe.take(&["alter", "table"]) {
        return Ok(None);
    }
    let if_exists = probe.take(&["if", "exists"]);
    probe.take(&["only"]);
    let Ok(table) = probe.name() else { return Ok(None) };
    let change = if probe.take(&["attach", "partition"]) {
        let partition = probe.name()?;
        PartitionChange::Attach { table, if_exists, partition, bound: for_values(&mut probe)? }
    } else if probe.take(&["detach", "partition"]) {
        let partition = probe.name()?;
        // There is nothing that it would wait for in between.
        let _ = probe.take(&["concurrently"]) || probe.take(&["finalize"]);
        PartitionChange::Detach { table, if_exists, partition }
    } else {
        return Ok(None);
    };
    *c = probe;
    Ok(Some(Kind::Partition(Box::new(change))))
}

/// Reads CREATE TABLE .. PARTITION OF; `None` if it is another CREATE TABLE. `words` are those
/// before the word TABLE.
pub(crate) fn create(c: &mut Cursor) -> SqlResult<Option<CreatePartition>> {
    let mut probe = c.clone();
    probe.take(&["create"]);
    let mut temporary = false;
    while ["temp", "temporary", "unlogged", "local", "global"].iter().any(|word| {
        let taken = probe.take(&[word]);
        temporary |= taken && word.starts_with("temp");
        taken
    }) {}
    probe.expect(&["table"])?;
    let if_not_exists = probe.take(&["if", "not", "exists"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    if !probe.take(&["partition", "of"]) {
        return Ok(None);
    }
    let parent = probe.name()?;
    let mut has_items = false;
    if probe.peek() == Some(&Token::LParen) {
        let rest = probe.rest();
        let end = closing(&rest, 0).ok_or_else(|| probe.unexpected())?;
        has_items = end > 1;
        for _ in 0..=end {
            probe.next();
        }
    }
    let bound = for_values(&mut probe)?;
    let by = partition_by(&mut probe)?;
    storage(&mut probe)?;
    probe.expect_end()?;
    *c = probe;
    Ok(Some(CreatePartition { name, if_not_exists, temporary, parent, has_items, bound, by }))
}

/// Where and how rows are stored is not the statement's to say here.
fn storage(c: &mut Cursor) -> SqlResult<()> {
    if c.take(&["using"]) {
        c.ident()?;
    }
    if c.take(&["with"]) {
        let rest = c.rest();
        let end = closing(&rest, 0).ok_or_else(|| c.unexpected())?;
        for _ in 0..=end {
            c.next();
        }
    }
    if c.take(&["tablespace"]) {
        c.ident()?;
    }
    Ok(())
}

/// Takes PARTITION BY out of what stands behind the columns of a table.
pub(crate) fn lift(tail: &mut Vec<TokenWithSpan>) -> SqlResult<Option<PartitionBy>> {
    let is = |n: usize, w: &str| tail.get(n).is_some_and(|t| token_is(&t.token, w));
    let mut depth = 0i32;
    let found = (0..tail.len()).find(|n| {
        match tail[*n].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && is(*n, "partition") && is(n + 1, "by")
    });
    let Some(at) = found else { return Ok(None) };
    let mut c = Cursor::new(tail[at..].to_vec());
    let by = partition_by(&mut c)?;
    let used = c.at();
    tail.drain(at..at + used);
    Ok(by)
}

fn partition_by(c: &mut Cursor) -> SqlResult<Option<PartitionBy>> {
    if !c.take(&["partition", "by"]) {
        return Ok(None);
    }
    let strategy = if c.take(&["list"]) {
        PartitionStrategy::List
    } else if c.take(&["range"]) {
        PartitionStrategy::Range
    } else if c.take(&["hash"]) {
        PartitionStrategy::Hash
    } else {
        let word = c.ident()?;
        let text = format!("unrecognized partitioning strategy \"{word}\"");
        return Err(SqlError::new(braid_types::SqlState::INVALID_PARAMETER_VALUE, text));
    };
    c.expect_token(&Token::LParen)?;
    let mut keys = Vec::new();
    loop {
        let key = match c.expr()? {
            ast::Expr::Collate { expr, collation } if is_by_bytes(&collation) => *expr,
            ast::Expr::Collate { collation, .. } => {
                let text = format!("collation {collation} in a partition key");
                return Err(SqlError::unsupported(text)
                    .with_hint("Partitions are found by the bytes of texts: COLLATE \"C\"."));
            }
            other => other,
        };
        keys.push(key);
        if c.peek() != Some(&Token::Comma) && c.peek() != Some(&Token::RParen) {
            // The name of an operator class: there is one of each type.
            c.name()?;
        }
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    Ok(Some(PartitionBy { strategy, keys }))
}

/// Whether a collation is one that orders by bytes.
fn is_by_bytes(name: &ast::ObjectName) -> bool {
    let bare = name.0.last().and_then(|part| part.as_ident());
    let known = bare.and_then(|bare| built_in_collation(&bare.value));
    known.is_some_and(|known| known.locale.is_none())
}

fn for_values(c: &mut Cursor) -> SqlResult<ForValues> {
    if c.take(&["default"]) {
        return Ok(ForValues::Default);
    }
    c.expect(&["for", "values"])?;
    if c.take(&["in"]) {
        return Ok(ForValues::In(list(c, Cursor::expr)?));
    }
    if c.take(&["from"]) {
        let from = list(c, limit)?;
        c.expect(&["to"])?;
        return Ok(ForValues::FromTo(from, list(c, limit)?));
    }
    c.expect(&["with"])?;
    let (mut modulus, mut remainder) = (None, None);
    list(c, |c| {
        let which = c.ident()?;
        let given = match which.as_str() {
            "modulus" => &mut modulus,
            "remainder" => &mut remainder,
            other => {
                let text = format!("unrecognized hash partition bound specification \"{other}\"");
                return Err(SqlError::syntax(text));
            }
        };
        *given = Some(c.integer()?);
        Ok(())
    })?;
    let missing = |what| SqlError::syntax(format!("{what} for hash partition must be specified"));
    Ok(ForValues::With {
        modulus: modulus.ok_or_else(|| missing("modulus"))?,
        remainder: remainder.ok_or_else(|| missing("remainder"))?,
    })
}

fn limit(c: &mut Cursor) -> SqlResult<RangeLimit> {
    if c.take(&["minvalue"]) {
        return Ok(RangeLimit::Min);
    }
    if c.take(&["maxvalue"]) {
        return Ok(RangeLimit::Max);
    }
    c.expr().map(|e| RangeLimit::Value(Box::new(e)))
}

fn list<T>(c: &mut Cursor, mut item: impl FnMut(&mut Cursor) -> SqlResult<T>) -> SqlResult<Vec<T>> {
    c.expect_token(&Token::LParen)?;
    let mut out = vec![item(c)?];
    while c.take_token(&Token::Comma) {
        out.push(item(c)?);
    }
    c.expect_token(&Token::RParen)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn kind(sql: &str) -> Kind {
        (*parse_script(sql).unwrap()[0].kind).clone()
    }

    #[test]
    fn keys_are_lifted_out_of_tables() {
        let Kind::CreateTable(t) =
            kind("create table t (a int, b text) partition by range (a, lower(b), (a + 1))")
        else {
            panic!()
        };
        let by = t.by.unwrap();
        assert_eq!(by.strategy, PartitionStrategy::Range);
        let keys: Vec<String> = by.keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys, ["a", "lower(b)", "(a + 1)"]);
        assert_eq!(t.base.columns.len(), 2);
    }

    #[test]
    fn bounds() {
        let Kind::CreatePartition(p) = kind(
            "create table if not exists s.p partition of t for values from (1, minvalue) to (2, \
             maxvalue) partition by hash (b)",
        ) else {
            panic!()
        };
        assert!(p.if_not_exists && !p.has_items && p.by.is_some());
        let ForValues::FromTo(from, to) = &p.bound else { panic!() };
        assert!(matches!(from[..], [RangeLimit::Value(_), RangeLimit::Min]));
        assert!(matches!(to[..], [RangeLimit::Value(_), RangeLimit::Max]));
        let Kind::Partition(change) = kind(
            "alter table only public.t attach partition public.p for values with (modulus 4, \
             remainder 1)",
        ) else {
            panic!()
        };
        assert!(matches!(
            *change,
            PartitionChange::Attach { bound: ForValues::With { modulus: 4, remainder: 1 }, .. }
        ));
    }
}
