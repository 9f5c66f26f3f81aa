//! Functions over enum types.
//!
//! What they give depends on the type of an argument that may be NULL (`enum_range(NULL::mood)`),
//! so that is settled when the call is bound: where nothing but the type counts the call is a
//! constant, and a bound that is NULL is the first or the last value.

use std::sync::Arc;

use braid_types::{
    ArrayValue, CastContext, Datum, EnumType, EnumValue, SqlError, SqlResult, SqlState, SqlType,
};

use crate::conversion::coerce;
use crate::registry::Table;
use crate::{BindContext, Bound, Node, resolve};

/// Values of a type between two places.
fn range(ty: &Arc<EnumType>, low: i64, high: i64) -> Datum {
    let between = ty.labels.iter().filter(|l| (low..=high).contains(&l.place));
    let items = between.map(|l| value(ty, l.place)).collect();
    Datum::Array(Arc::new(ArrayValue::list(SqlType::Enum(ty.clone()), items)))
}

fn value(ty: &Arc<EnumType>, place: i64) -> Datum {
    Datum::Enum(EnumValue { ty: ty.clone(), place })
}

/// The first or the last value of a type.
fn end(ty: &Arc<EnumType>, last: bool) -> SqlResult<Datum> {
    let label = if last { ty.labels.last() } else { ty.labels.first() };
    label.map(|l| value(ty, l.place)).ok_or_else(|| {
        SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("enum {} contains no values", ty.shown_name()),
        )
    })
}

/// Binds a call whose arguments are all there.
pub(crate) fn bind(name: &str, args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let found = args.iter().find_map(|arg| match arg.ty() {
        SqlType::Enum(ty) => Some(ty.clone()),
        _ => None,
    });
    let given: Vec<SqlType> = args.iter().map(|arg| arg.ty().clone()).collect();
    let Some(ty) = found else { return Err(resolve::no_match(name, &given, false)) };
    let own = SqlType::Enum(ty.clone());
    if let [_] = args.as_slice() {
        return Ok(match name {
            "enum_range" => {
                Bound::constant(range(&ty, i64::MIN, i64::MAX), SqlType::Array(Box::new(own)))
            }
            _ => Bound::constant(end(&ty, name == "enum_last")?, own),
        });
    }
    let choice = resolve::resolve(name, &vec![own.clone(); args.len()], false)?;
    let bounds = args.into_iter().zip([false, true]).map(|(arg, last)| {
        let arg = coerce(arg, &own, CastContext::Implicit, ctx)?;
        let otherwise = end(&ty, last).unwrap_or(Datum::Null);
        let otherwise = Bound::constant(otherwise, own.clone());
        Ok(Bound::new(Node::Coalesce(vec![arg, otherwise]), own.clone()))
    });
    let bounds = bounds.collect::<SqlResult<Vec<_>>>()?;
    Ok(Bound::new(Node::Call(choice.function, bounds), SqlType::Array(Box::new(own))))
}

/// Adds the functions of this file.
pub(crate) fn fill(t: &mut Table) {
    t.add("enum_first(anyenum) anyenum -- the first value of a type", |a, _| ends(&a[0], false));
    t.add("enum_last(anyenum) anyenum -- the last value of a type", |a, _| ends(&a[0], true));
    t.add("enum_range(anyenum) anyarray -- all values of a type", |a, _| match &a[0] {
        Datum::Enum(v) => Ok(range(&v.ty, i64::MIN, i64::MAX)),
        _ => Err(not_an_enum()),
    });
    t.add("enum_range(anyenum, anyenum) anyarray", |a, _| match (&a[0], &a[1]) {
        (Datum::Enum(low), Datum::Enum(high)) => Ok(range(&low.ty, low.place, high.place)),
        _ => Err(not_an_enum()),
    });
}

fn ends(of: &Datum, last: bool) -> SqlResult<Datum> {
    match of {
        Datum::Enum(v) => end(&v.ty, last),
        _ => Err(not_an_enum()),
    }
}

/// Binding lets only values of enum types through.
fn not_an_enum() -> SqlError {
    SqlError::internal("a value that is of no enum type")
}
