//! Functions that are operators by another name, as PostgreSQL calls what is behind them; and those
//! that give the binary form of a value.

use braid_types::{Datum, SqlType};

use super::type_functions::{Direction, type_functions};
use crate::registry::{ArgType, Eval, Table};

fn is(arg: Option<&ArgType>, ty: &SqlType) -> bool {
    matches!(arg, Some(ArgType::Exact(own)) if own.same_base(ty))
}

fn documents(args: &[ArgType]) -> bool {
    is(args.first(), &SqlType::Jsonb)
}

fn by_name(args: &[ArgType]) -> bool {
    let json = is(args.first(), &SqlType::Jsonb) || is(args.first(), &SqlType::Json);
    json && is(args.get(1), &SqlType::Text)
}

fn by_place(args: &[ArgType]) -> bool {
    let json = is(args.first(), &SqlType::Jsonb) || is(args.first(), &SqlType::Json);
    json && is(args.get(1), &SqlType::Int4)
}

fn jsonb_by_name(args: &[ArgType]) -> bool {
    documents(args) && by_name(args)
}

fn json_by_name(args: &[ArgType]) -> bool {
    !documents(args) && by_name(args)
}

fn jsonb_by_place(args: &[ArgType]) -> bool {
    documents(args) && by_place(args)
}

fn json_by_place(args: &[ArgType]) -> bool {
    !documents(args) && by_place(args)
}

fn is_range(arg: &ArgType) -> bool {
    matches!(arg, ArgType::Exact(SqlType::Range(_)) | ArgType::AnyRange)
}

fn ranges(args: &[ArgType]) -> bool {
    args.len() == 2 && args.iter().all(is_range)
}

fn range_and_value(args: &[ArgType]) -> bool {
    args.len() == 2 && is_range(&args[0]) && !is_range(&args[1]) && !is_multirange(&args[1])
}

fn value_and_range(args: &[ArgType]) -> bool {
    args.len() == 2 && is_range(&args[1]) && !is_range(&args[0]) && !is_multirange(&args[0])
}

fn is_multirange(arg: &ArgType) -> bool {
    matches!(arg, ArgType::Exact(SqlType::Multirange(_)) | ArgType::AnyMultirange)
}

/// Function, operator, operands.
type Alias = (&'static str, &'static str, fn(&[ArgType]) -> bool);

const ALIASES: &[Alias] = &[
    ("jsonb_contains", "@>", documents),
    ("jsonb_contained", "<@", documents),
    ("jsonb_exists", "?", documents),
    ("jsonb_exists_any", "?|", documents),
    ("jsonb_exists_all", "?&", documents),
    ("jsonb_concat", "||", documents),
    ("jsonb_delete", "-", jsonb_by_place),
    ("jsonb_delete_path", "#-", documents),
    ("jsonb_object_field", "->", jsonb_by_name),
    ("jsonb_object_field_text", "->>", jsonb_by_name),
    ("jsonb_array_element", "->", jsonb_by_place),
    ("jsonb_array_element_text", "->>", jsonb_by_place),
    ("json_object_field", "->", json_by_name),
    ("json_object_field_text", "->>", json_by_name),
    ("json_array_element", "->", json_by_place),
    ("json_array_element_text", "->>", json_by_place),
    ("range_contains", "@>", ranges),
    ("range_contained_by", "<@", ranges),
    ("range_contains_elem", "@>", range_and_value),
    ("elem_contained_by_range", "<@", value_and_range),
    ("range_overlaps", "&&", ranges),
    ("range_adjacent", "-|-", ranges),
    ("range_before", "<<", ranges),
    ("range_after", ">>", ranges),
    ("range_overleft", "&<", ranges),
    ("range_overright", "&>", ranges),
    ("range_union", "+", ranges),
    ("range_intersect", "*", ranges),
    ("range_minus", "-", ranges),
];

fn sent(value: &Datum, ty: &SqlType) -> Datum {
    let mut bytes = Vec::new();
    value.to_binary(ty, &mut bytes);
    Datum::Bytea(bytes.into())
}

/// Adds the functions of this file; the operators are there.
pub(super) fn fill(t: &mut Table) {
    for (name, sign, fits) in ALIASES {
        let about: &'static str = Box::leak(format!("as `{sign}`").into_boxed_str());
        t.alias(name, (sign, about), *fits);
    }
    for function in type_functions() {
        let Some(ty) = function.ty() else { continue };
        let without = matches!(ty, SqlType::Void | SqlType::Unknown | SqlType::Record);
        if function.direction != Direction::BinaryOut || without {
            continue;
        }
        let about = "the bytes of a value as clients get them";
        let text = format!("{}({}) bytea -- {about}", function.name, ty.base_name());
        let code: Eval = match ty {
            SqlType::Jsonpath => |a, _| Ok(sent(&a[0], &SqlType::Jsonpath)),
            SqlType::CharByte => |a, _| Ok(sent(&a[0], &SqlType::CharByte)),
            _ => |a, _| Ok(sent(&a[0], &a[0].implied_type())),
        };
        t.add(Box::leak(text.into_boxed_str()), code);
    }
}
