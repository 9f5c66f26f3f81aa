//! Errors across the border: ours travel through DataFusion as external errors and come out as
//! they went in; its own become SQL errors.

use braid_types::{SqlError, SqlState};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::memory::exhausted;

/// Wraps an error of ours.
pub fn to_df(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Unwraps ours or translates theirs.
pub fn from_df(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<SqlError>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(deeper) => from_df(*deeper),
                Err(other) => SqlError::internal(other.to_string()),
            },
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_df(*inner)
        }
        DataFusionError::ArrowError(inner, _) => match *inner {
            ArrowError::ExternalError(inner) => from_df(DataFusionError::External(inner)),
            ArrowError::ArithmeticOverflow(_) => {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")
            }
            ArrowError::DivideByZero => {
                SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
            }
            other => SqlError::internal(other.to_string()),
        },
        DataFusionError::Shared(shared) => from_shared(&shared),
        DataFusionError::ResourcesExhausted(message) => exhausted(&message),
        // What the planner cannot plan is not supported; that it is wrong was found out before.
        DataFusionError::NotImplemented(message) | DataFusionError::Plan(message) => {
            SqlError::unsupported("this query").with_detail(message)
        }
        DataFusionError::SchemaError(inner, _) => {
            SqlError::unsupported("this query").with_detail(inner.to_string())
        }
        DataFusionError::Collection(mut all) if !all.is_empty() => from_df(all.swap_remove(0)),
        other => SqlError::internal(other.to_string()),
    }
}

fn from_shared(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<SqlError>() {
            Some(own) => own.clone(),
            None => SqlError::internal(inner.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_shared(inner)
        }
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::ExternalError(inner) => match inner.downcast_ref::<SqlError>() {
                Some(own) => own.clone(),
                None => match inner.downcast_ref::<DataFusionError>() {
                    Some(deeper) => from_shared(deeper),
                    None => SqlError::internal(inner.to_string()),
                },
            },
            other => SqlError::internal(other.to_string()),
        },
        DataFusionError::ResourcesExhausted(message) => exhausted(message),
        other => SqlError::internal(other.to_string()),
    }
}
