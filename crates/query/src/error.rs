//! Errors across the border: ours travel through DataFusion as external errors and come out as
//! they went in; its own become SQL errors.
//!
//! ```text
//!   memory, spill files         53200, 53100, 58030
//!   a value too large           22003, 22012; 54000 for what does not fit into one batch
//!   a type that does not fit    42804
//!   a plan that cannot be made  0A000 with what the planner said, and a line in the log
//! ```
//!
//! That a query is wrong is found out before it becomes a plan; so what is left of the planner's
//! refusals are queries that are right and cannot be run here.

use std::error::Error;
use std::io;

use braid_types::{SqlError, SqlState};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::memory::exhausted;

/// Wraps an error of ours.
pub(crate) fn to_df(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Unwraps ours or translates theirs.
pub(crate) fn from_df(error: DataFusionError) -> SqlError {
    translated(&error)
}

fn translated(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => foreign(&**inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            translated(inner)
        }
        DataFusionError::Shared(inner) => translated(inner),
        DataFusionError::Collection(all) if !all.is_empty() => translated(&all[0]),
        DataFusionError::ArrowError(inner, _) => from_arrow(inner),
        DataFusionError::ResourcesExhausted(message) => exhausted(message),
        DataFusionError::IoError(inner) => from_io(inner),
        DataFusionError::NotImplemented(message) | DataFusionError::Plan(message) => {
            refused(message)
        }
        DataFusionError::SchemaError(inner, _) => refused(&inner.to_string()),
        DataFusionError::Execution(message) => computed(message),
        other => unplanned(&other.to_string()),
    }
}

/// What came through as somebody else's error.
fn foreign(error: &(dyn Error + Send + Sync + 'static)) -> SqlError {
    if let Some(own) = error.downcast_ref::<SqlError>() {
        own.clone()
    } else if let Some(deeper) = error.downcast_ref::<DataFusionError>() {
        translated(deeper)
    } else if let Some(arrow) = error.downcast_ref::<ArrowError>() {
        from_arrow(arrow)
    } else if let Some(io) = error.downcast_ref::<io::Error>() {
        from_io(io)
    } else {
        unplanned(&error.to_string())
    }
}

fn from_arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::ExternalError(inner) => foreign(&**inner),
        ArrowError::ArithmeticOverflow(_) => out_of_range(),
        ArrowError::DivideByZero => SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::MemoryError(message) => exhausted(message),
        ArrowError::IoError(_, inner) => from_io(inner),
        ArrowError::OffsetOverflowError(_)
        | ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError => SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "the values of one column that are worked on at a time exceed 2 GB",
        )
        .with_hint("Let the query give fewer or shorter values."),
        ArrowError::CastError(message) => SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "a value cannot be converted to the type that is wanted",
        )
        .with_detail(message.clone()),
        ArrowError::ComputeError(message) => computed(message),
        ArrowError::NotYetImplemented(message) => refused(message),
        other => unplanned(&other.to_string()),
    }
}

fn from_io(error: &io::Error) -> SqlError {
    // Writers of spill files wrap what the file system said, more than once.
    let wrapped = error.get_ref().filter(|inner| {
        inner.is::<io::Error>() || inner.is::<DataFusionError>() || inner.is::<ArrowError>()
    });
    if let Some(inner) = wrapped {
        return foreign(inner);
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            SqlError::new(SqlState::DISK_FULL, "no space left for what the query spills")
        }
        _ => SqlError::new(SqlState::IO_ERROR, format!("a spill file of the query: {error}")),
    }
}

fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
}

/// What an operator could not compute.
fn computed(message: &str) -> SqlError {
    match message.to_ascii_lowercase().contains("overflow") {
        true => out_of_range(),
        false => unplanned(message),
    }
}

fn refused(message: &str) -> SqlError {
    SqlError::unsupported("this query").with_detail(message)
}

/// A failure of DataFusion that is not the user's: the query is refused and the log tells why.
fn unplanned(message: &str) -> SqlError {
    tracing::error!(message, "a query failed inside of DataFusion");
    refused(message).with_hint("This is a limit of the server; another form of the query may work.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn state(error: DataFusionError) -> &'static str {
        from_df(error).state().0
    }

    #[test]
    fn no_failure_of_datafusion_is_an_internal_error() {
        let arrow = |e| DataFusionError::ArrowError(Box::new(e), None);
        let io = |kind| DataFusionError::IoError(io::Error::from(kind));
        let wrapped = |e| DataFusionError::IoError(io::Error::other(e));
        let full = || io::Error::other(io::Error::from(io::ErrorKind::StorageFull));
        let own = || to_df(SqlError::new(SqlState::UNDEFINED_FUNCTION, "ours"));
        for (error, want) in [
            (own(), "42883"),
            (DataFusionError::Shared(Arc::new(own())), "42883"),
            (own().context("while sorting"), "42883"),
            (arrow(ArrowError::ExternalError(Box::new(own()))), "42883"),
            (DataFusionError::Collection(vec![own()]), "42883"),
            (arrow(ArrowError::ArithmeticOverflow("x".into())), "22003"),
            (arrow(ArrowError::DivideByZero), "22012"),
            (arrow(ArrowError::ComputeError("Overflow happened on: 1 + 2".into())), "22003"),
            (arrow(ArrowError::CastError("x".into())), "42804"),
            (arrow(ArrowError::MemoryError("x".into())), "53200"),
            (arrow(ArrowError::OffsetOverflowError(1)), "54000"),
            (arrow(ArrowError::InvalidArgumentError("x".into())), "0A000"),
            (DataFusionError::ResourcesExhausted("x".into()), "53200"),
            (io(io::ErrorKind::StorageFull), "53100"),
            (io(io::ErrorKind::NotFound), "58030"),
            (wrapped(io(io::ErrorKind::StorageFull)), "53100"),
            (arrow(ArrowError::IoError("x".into(), full())), "53100"),
            (DataFusionError::Execution("Arithmetic overflow".into()), "22003"),
            (DataFusionError::Execution("x".into()), "0A000"),
            (DataFusionError::Internal("x".into()), "0A000"),
            (DataFusionError::Plan("x".into()), "0A000"),
            (DataFusionError::External("x".into()), "0A000"),
        ] {
            let shown = error.to_string();
            assert_eq!(state(error), want, "{shown}");
        }
    }
}
