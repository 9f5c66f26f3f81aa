//! PARTITION BY: by what rows are divided.

use braid_catalog::{Index, KeyPart, PartitionKey, Strategy, Table};
use braid_parser::{PartitionBy, PartitionStrategy, parse_expr};
use braid_rows::table_scope;
use braid_scalar::{ParamTypes, bind, ident_name};
use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use crate::ddl::constraint::with_bare_columns;
use crate::ddl::{Change, index};

/// Most columns of a partition key.
const MAX_PARTS: usize = 32;

/// The key that PARTITION BY declares over a table's columns.
pub(in crate::ddl) fn declare_key(
    c: &Change,
    t: &Table,
    by: &PartitionBy,
) -> SqlResult<PartitionKey> {
    let strategy = match by.strategy {
        PartitionStrategy::List => Strategy::List,
        PartitionStrategy::Range => Strategy::Range,
        PartitionStrategy::Hash => Strategy::Hash,
    };
    if strategy == Strategy::List && by.keys.len() > 1 {
        return Err(bad_key("cannot use \"list\" partition strategy with more than one column"));
    }
    if by.keys.len() > MAX_PARTS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot partition using more than {MAX_PARTS} columns"),
        ));
    }
    let parts = by.keys.iter().map(|e| part(c, t, e, strategy)).collect::<SqlResult<Vec<_>>>()?;
    Ok(PartitionKey { strategy, parts })
}

fn bad_key(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

fn part(c: &Change, t: &Table, e: &ast::Expr, strategy: Strategy) -> SqlResult<KeyPart> {
    let mut e = e;
    while let ast::Expr::Nested(inner) = e {
        e = inner;
    }
    if let ast::Expr::Identifier(ident) = e {
        let name = ident_name(ident);
        let Some(column) = t.column_named(&name) else {
            let text = format!("column \"{name}\" named in partition key does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text));
        };
        if column.generated.is_some() {
            return Err(bad_key("cannot use generated column in partition key")
                .with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        check_type(&column.ty, strategy)?;
        check_collation(&column.collated(), strategy)?;
        return Ok(KeyPart::Column(column.id));
    }
    let what = "partition key expression";
    let bound =
        index::immutable(c, t, e, what, |e, scope, none| braid_scalar::bind(e, scope, none))?;
    if bound.columns().is_empty() {
        return Err(bad_key("cannot use constant expression as partition key"));
    }
    let generated = bound.columns().into_iter().find(|at| t.columns[*at].generated.is_some());
    if let Some(at) = generated {
        return Err(bad_key("cannot use generated column in partition key")
            .with_detail(format!("Column \"{}\" is a generated column.", t.columns[at].name)));
    }
    check_type(bound.ty(), strategy)?;
    check_collation(bound.collation(), strategy)?;
    Ok(KeyPart::Expression(with_bare_columns(c, t, e).to_string()))
}

/// Ranges of texts are those of their bytes.
fn check_collation(collation: &Collated, strategy: Strategy) -> SqlResult<()> {
    if strategy != Strategy::Range || collation.is_by_bytes() {
        return Ok(());
    }
    Err(SqlError::unsupported("ranges of texts in the order of a locale as partitions")
        .with_hint("Give the column COLLATE \"C\"."))
}

/// Types whose values have an order, or a hash that is PostgreSQL's.
fn check_type(ty: &SqlType, strategy: Strategy) -> SqlResult<()> {
    if strategy != Strategy::Hash {
        if braid_keys::column::is_key_type(ty) {
            return Ok(());
        }
        let text = format!(
            "data type {} has no default operator class for access method \"btree\"",
            ty.name()
        );
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text)
            .with_hint("Values of this type cannot be part of a partition key."));
    }
    let hashed = matches!(
        ty,
        SqlType::Bool
            | SqlType::Int2
            | SqlType::Int4
            | SqlType::Int8
            | SqlType::Oid
            | SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Name
            | SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Date
    ) || matches!(
        ty.base_name().as_str(),
        "timestamp without time zone" | "timestamp with time zone"
    );
    if hashed {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("hash partitions by values of type {}", ty.base_name()))
        .with_hint("Integers, text, uuid, dates and timestamps can be hashed."))
}

/// PostgreSQL's rule for unique keys of a partitioned table: they have all that rows are divided
/// by, so that two rows with equal keys are in one partition.
///
/// # Errors
/// 0A000.
pub(super) fn check_unique(
    t: &Table,
    key: &PartitionKey,
    index: &Index,
    kind: &str,
) -> SqlResult<()> {
    for part in &key.parts {
        let KeyPart::Column(id) = part else {
            let text = format!("unsupported {kind} constraint with partition key definition");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_detail(format!(
                "{kind} constraints cannot be used when partition keys include expressions."
            )));
        };
        if !index.columns.iter().any(|k| k.column == *id) {
            let column = t.column(*id).map_or("", |c| c.name.as_str());
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "unique constraint on partitioned table must include all partitioning columns",
            )
            .with_detail(format!(
                "{kind} constraint on table \"{}\" lacks column \"{column}\" which is part of \
                 the partition key.",
                t.name
            )));
        }
    }
    Ok(())
}

/// 42P16 for a column that decides to which partition a row belongs.
pub(in crate::ddl) fn refuse_key(t: &Table, column: u32, what: &str) -> SqlResult<()> {
    let Some(divided) = t.partitioning() else { return Ok(()) };
    let at = t.ordinal(column).unwrap_or_default();
    let name = &t.columns[at].name;
    let keys = divided.partitions.iter().filter_map(|p| Some((&p.name, p.key.as_ref()?)));
    for (of, key) in std::iter::once((&t.name, &divided.key)).chain(keys) {
        for part in &key.parts {
            let is_used = match part {
                KeyPart::Column(id) => *id == column,
                KeyPart::Expression(text) => {
                    let (scope, mut none) = (table_scope(t), ParamTypes::default());
                    bind(&parse_expr(text)?, &scope, &mut none)?.columns().contains(&at)
                }
            };
            if is_used {
                let text = format!(
                    "cannot {what} column \"{name}\" because it is part of the partition key of \
                     relation \"{of}\""
                );
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, text));
            }
        }
    }
    Ok(())
}

/// Renames a column in what is kept of partitions as text.
pub(in crate::ddl) fn rename_column(
    t: &mut Table,
    rename: impl Fn(&str) -> SqlResult<String>,
) -> SqlResult<()> {
    for of in t.indexes.iter_mut().filter_map(|i| i.of_partition.as_mut()) {
        of.predicate = of.predicate.as_deref().map(&rename).transpose()?;
    }
    let Some(divided) = t.partitioning_mut() else { return Ok(()) };
    let checks = divided.partitions.iter_mut().flat_map(|p| &mut p.checks);
    for check in checks {
        check.expr = rename(&check.expr)?;
    }
    let keys = divided.partitions.iter_mut().filter_map(|p| p.key.as_mut());
    for part in keys.chain([&mut divided.key]).flat_map(|key| &mut key.parts) {
        if let KeyPart::Expression(text) = part {
            *text = rename(text)?;
        }
    }
    Ok(())
}
