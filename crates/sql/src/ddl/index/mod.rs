//! CREATE INDEX: what is declared, and the entries for rows that are there.
//!
//! - [`mod@declare`]: CREATE INDEX and its checks.
//! - [`expressions`]: what expressions and predicates may be.
//! - [`methods`]: what USING asks for.
//! - [`promoted`]: ADD CONSTRAINT .. USING INDEX.
//! - [`stored`]: columns that entries hold besides their key come and go.
//! - [`entries`]: the entries for all rows of a table, made on several threads.

mod declare;
pub(super) mod entries;
mod expressions;
mod methods;
pub(super) mod promoted;
mod stored;

pub(crate) use declare::{add, check_key_types, declare, key_columns, rename, uses_column};
pub(crate) use declare::{alter, run};
pub(super) use expressions::immutable;
pub(super) use methods::check_classes;
pub(crate) use stored::store_column;
