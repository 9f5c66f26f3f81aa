//! What makes ranges of types that users have made: functions that are named as the type is.
//!
//! ```text
//!   CREATE TYPE floatrange AS RANGE (subtype = float8)
//!   floatrange(1, 2)   floatrange(1, 2, '[]')
//!   floatmultirange()  floatmultirange(floatrange(1, 2), ..)
//! ```
//! The code needs to know the type, so that it is bound as a computation of its own.

use std::any::Any;

use braid_types::{CastContext, Datum, SqlResult, SqlType};
use sqlparser::ast::ObjectName;

use crate::bound::Applied;
use crate::conversion::{coerce, fold};
use crate::functions::{listed, ranged};
use crate::{
    BindContext, Bound, EvalContext, Node, Volatility, object_name_parts, registry, resolve,
};

/// A constructor of a type.
struct Constructor {
    ty: SqlType,
}

impl Applied for Constructor {
    fn apply(&self, args: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        match &self.ty {
            SqlType::Range(kind) => ranged(kind, args),
            SqlType::Multirange(kind) => listed(kind, args),
            _ => Ok(Datum::Null),
        }
    }

    fn label(&self) -> String {
        self.ty.base_name()
    }

    fn volatility(&self) -> Volatility {
        Volatility::Immutable
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The type of ranges of a user that a function is named after.
pub(crate) fn named_by(name: &ObjectName, ctx: &mut dyn BindContext) -> Option<SqlType> {
    let parts = object_name_parts(name);
    if let [name] = parts.as_slice()
        && !registry::overloads(name).is_empty()
    {
        return None;
    }
    let ty = ctx.params().named_types()?.user_type(&parts)?;
    ty.made_range().is_some().then_some(ty)
}

/// Binds a call of a constructor.
///
/// # Errors
/// 42883 for arguments that no constructor of the type takes.
pub(crate) fn bind(ty: SqlType, args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let given: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
    let wants: Vec<SqlType> = match (&ty, given.as_slice()) {
        // A type's name before a literal, or a value of the type, is a cast.
        (SqlType::Range(_), [_]) | (SqlType::Multirange(_), [SqlType::Unknown]) => {
            let arg = args.into_iter().next().expect("one argument");
            if braid_types::cast_exists(arg.ty(), &ty).is_none() {
                return Err(resolve::no_match(&ty.internal_name(), &given, false));
            }
            return coerce(arg, &ty, CastContext::Explicit, ctx);
        }
        (SqlType::Range(kind), [_, _]) => vec![kind.element(), kind.element()],
        (SqlType::Range(kind), [_, _, _]) => vec![kind.element(), kind.element(), SqlType::Text],
        (_, [one]) if one.same_base(&ty) => {
            return Ok(args.into_iter().next().expect("one argument"));
        }
        (SqlType::Multirange(kind), _) => vec![SqlType::Range(kind.clone()); given.len()],
        _ => return Err(resolve::no_match(&ty.internal_name(), &given, false)),
    };
    let takes = |(have, want): (&SqlType, &SqlType)| {
        braid_types::cast_exists(have, want) == Some(CastContext::Implicit)
    };
    if !given.iter().zip(&wants).all(takes) {
        return Err(resolve::no_match(&ty.internal_name(), &given, false));
    }
    let args = args.into_iter().zip(&wants);
    let args = args.map(|(arg, want)| coerce(arg, want, CastContext::Implicit, ctx));
    let args = args.collect::<SqlResult<Vec<_>>>()?;
    let code = Constructor { ty: ty.clone() };
    fold(Bound::new(Node::Apply(std::sync::Arc::new(code), args), ty))
}
