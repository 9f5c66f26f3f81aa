//! Scalar expressions: from parsed text to a typed tree, and from the tree to values.
//!
//! ```text
//!  ast::Expr --bind(scope, ctx)--> Bound (typed, overloads chosen, casts explicit)
//!                                    | eval(row, EvalContext)
//!                                    v
//!                                  Datum
//! ```
//! Every part of the system that computes a scalar goes through here: CHECK, DEFAULT, WHERE, SET,
//! VALUES, RETURNING in our own plans, and the functions that general plans call row by row. So a
//! value is the same on both paths.
//!
//! Invariants:
//! - A [`Bound`] never holds an implicit conversion that is not a node of the tree.
//! - Binding decides every type. Evaluation never looks at type names to choose a behaviour.
//! - Subqueries, aggregates and window functions are not scalar: binding them here fails with an
//!   error for which [`needs_general_query`] is true, unless [`BindContext::intercept`] takes them.

mod aggregates;
mod array_operators;
mod bind;
mod bind_call;
mod bind_compare;
mod bound;
mod context;
mod conversion;
mod display;
mod enums;
mod functions;
mod likeness;
mod limits;
mod named_arguments;
mod operators;
mod refinement;
mod registry;
mod resolve;
mod scope;
mod sets;
mod syntax;
mod texts;
mod type_name;
mod user_functions;
mod windows;

pub use aggregates::{
    Accumulator, AggregateCode, AggregateTypes, Direct, OrderKey, first_of_group,
};
pub use bind::{
    NamedFields, bind, bind_bool, bind_to, bind_unsettled, field_named, fields_of,
    general_query_needed, needs_general_query, told_to_clients,
};
pub use bind_call::{is_called_as_window, output_name};
pub use bind_compare::{compare_bound, row_fields};
pub use bound::{
    Applied, Bound, CaseBranch, CmpOp, FieldNames, Node, QuantifiedOp, Volatility, compare,
};

pub use array_operators::array_of_values;
pub use context::{
    Advisory, AdvisoryCall, AdvisoryKey, BindContext, EvalContext, LargeValues, NoSession,
    OpenCursor, ParamTypes, PreparedStatement, SessionFunctions, TypeNames,
};
pub use conversion::{common_type, convert as convert_datum, system_oid, written_arguments};
pub use functions::populate::{no_row_type, populate};
pub use functions::type_functions::{Direction, TypeFunction, functions_of_type, type_functions};
pub use functions::{NULL_BOUND, can_fail, is_short, partition_hash, plain_text, to_json};
pub use named_arguments::ordered_arguments;
pub use operators::add_interval;
pub use refinement::{Domain, Refinement};
pub use registry::{
    ArgType, Builtin, Code, Columns, FunctionKind, Rows, functions_of, is_aggregate,
    is_hypothetical, is_set_returning, overloads,
};
pub use resolve::{Choice, resolve};
pub use scope::{
    Padding, Scope, ScopeColumn, all_fields, ident_name, is_only, missing_table, object_name_parts,
};
pub use syntax::{
    Deparsed, FURTHER_LEFT, InnerQueries, LATE_ITEM, Level, RowColumns, SPECIAL, Within,
    at_beginning, beginning, column_by_number, comparison, decide_by_casts, deparse,
    deparse_column, deparse_of_domain, deparse_query, deparse_rows, deparse_window, direction,
    further_in, names_itself, parameter, typed_literal, untyped_items, with_in_order,
};
pub use texts::collated::{compared_form, equality_form, order_form, order_forms, value_of_form};
pub use texts::collator::{COLLATION_VERSION, check_locale};
pub use texts::pattern::TextPattern;
pub use type_name::{refinement_of, sql_type_of, user_type_name};
pub use user_functions::{
    UserBody, UserCall, UserFunction, UserParam, argument_number, as_result, no_argument,
    over_arguments, user_call, wrong_result,
};
pub use windows::WindowCode;

use texts::pattern;

use braid_types::{CastContext, SqlResult, SqlType};

/// Converts a bound expression to a type in a context.
///
/// # Errors
/// 42846 when there is no such cast, 42804 for assignment.
pub fn coerce(
    expr: Bound,
    to: &SqlType,
    context: CastContext,
    ctx: &mut dyn BindContext,
) -> SqlResult<Bound> {
    conversion::coerce(expr, to, context, ctx)
}

/// The captures of each match of a pattern, as arrays of text.
///
/// # Errors
/// 2201B for a malformed pattern, 22023 for unknown flags.
pub(crate) fn regexp_captures(
    text: &str,
    pattern: &str,
    flags: &str,
) -> SqlResult<Vec<braid_types::Datum>> {
    let regex = pattern::regex(pattern, flags)?;
    let first = usize::from(regex.captures_len() > 1);
    Ok(pattern::all_matches(&regex, text)
        .map(|found| {
            let items = (first..regex.captures_len())
                .map(|at| {
                    found
                        .get(at)
                        .map_or(braid_types::Datum::Null, |m| braid_types::Datum::text(m.as_str()))
                })
                .collect();
            array_operators::array(SqlType::Text, items)
        })
        .collect())
}
