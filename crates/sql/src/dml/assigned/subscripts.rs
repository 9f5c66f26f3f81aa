//! Subscripts as targets, as calls that give the whole value:
//!
//! ```text
//!   SET a[2] = 7          a = array_with(coalesce(a, '{}'), ARRAY[2], CAST(7 AS int))
//!   SET a[2:3] = x        a = array_with(coalesce(a, '{}'), ARRAY[2], ARRAY[3], CAST(x AS int[]))
//!   SET d['k'][0] = '1'   d = jsonb_with(d, jsonb_build_array('k', 0), CAST('1' AS jsonb))
//! ```

use braid_parser::parse_expr;
use braid_scalar::NULL_BOUND;
use braid_types::{GeometryKind, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{AccessExpr, Expr, Subscript};

/// The subscripts of one target.
pub(super) struct Subscripts(Vec<Subscript>);

/// 42804 for a type that has no parts.
pub(super) fn not_subscripted(ty: &SqlType) -> SqlError {
    let text = format!(
        "cannot subscript type {} because it does not support subscripting",
        ty.base_name()
    );
    SqlError::new(SqlState::DATATYPE_MISMATCH, text)
}

impl Subscripts {
    /// Reads `[1][2:3]`.
    pub(super) fn read(text: &str) -> SqlResult<Subscripts> {
        let whole = parse_expr(&format!("x {text}"))?;
        let wrong = || SqlError::syntax(format!("syntax error at or near \"{text}\""));
        let Expr::CompoundFieldAccess { access_chain, .. } = whole else { return Err(wrong()) };
        let one = |access| match access {
            AccessExpr::Subscript(Subscript::Slice { stride: Some(_), .. }) => Err(wrong()),
            AccessExpr::Subscript(subscript) => Ok(subscript),
            AccessExpr::Dot(_) => Err(wrong()),
        };
        Ok(Subscripts(access_chain.into_iter().map(one).collect::<SqlResult<_>>()?))
    }

    /// What is there.
    pub(super) fn of(&self, base: Expr) -> Expr {
        Expr::CompoundFieldAccess {
            root: Box::new(Expr::Nested(Box::new(base))),
            access_chain: self.0.iter().cloned().map(AccessExpr::Subscript).collect(),
        }
    }

    /// A value of a type with another one there.
    pub(super) fn assigned(&self, ty: &SqlType, base: Expr, value: Expr) -> SqlResult<Expr> {
        let text = match ty {
            SqlType::Jsonb => format!(
                "jsonb_with({base}, jsonb_build_array({}), CAST({value} AS jsonb))",
                self.path()?
            ),
            SqlType::Array(element) => self.of_array(ty, element, &base, &value),
            SqlType::Geometry(kind) => self.of_shape(*kind, ty, &base, &value)?,
            _ => return Err(not_subscripted(ty)),
        };
        parse_expr(&text)
    }

    /// The subscripts of a document.
    fn path(&self) -> SqlResult<String> {
        let one = |subscript: &Subscript| match subscript {
            Subscript::Index { index } => Ok(index.to_string()),
            Subscript::Slice { .. } => {
                let text = "jsonb subscript does not support slices";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, text))
            }
        };
        let all: SqlResult<Vec<String>> = self.0.iter().map(one).collect();
        Ok(all?.join(", "))
    }

    /// Of a shape of two parts. Without a value, it stays as it is.
    fn of_shape(
        &self,
        kind: GeometryKind,
        ty: &SqlType,
        base: &Expr,
        value: &Expr,
    ) -> SqlResult<String> {
        let part = kind.part().ok_or_else(|| not_subscripted(ty))?;
        if !matches!(kind, GeometryKind::Point | GeometryKind::Lseg) {
            let what = format!("assigning to a part of a value of type {ty}");
            return Err(SqlError::unsupported(what).with_hint("Assign the whole value."));
        }
        if self.0.iter().any(|s| matches!(s, Subscript::Slice { .. })) {
            let text = "slices of fixed-length arrays not implemented";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        let at: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let at = at.join(", ");
        Ok(format!(
            "coalesce(array_with({base}, CAST(ARRAY[{at}] AS int4[]), CAST({value} AS {part})), \
             {base})"
        ))
    }

    fn of_array(&self, ty: &SqlType, element: &SqlType, base: &Expr, value: &Expr) -> String {
        let array = ty.name();
        let base = format!("coalesce({base}, CAST('{{}}' AS {array}))");
        let slices = self.0.iter().any(|s| matches!(s, Subscript::Slice { .. }));
        if !slices {
            let at: Vec<String> = self.0.iter().map(ToString::to_string).collect();
            let (at, element) = (at.join(", "), element.name());
            return format!(
                "array_with({base}, CAST(ARRAY[{at}] AS int4[]), CAST({value} AS {element}))"
            );
        }
        let bound = |e: &Option<Expr>| match e {
            None => "NULL".to_string(),
            Some(e) => format!("coalesce({e}, {NULL_BOUND})"),
        };
        // Beside a slice, a single subscript is one from the first on.
        let both = |subscript: &Subscript| match subscript {
            Subscript::Index { index } => ("1".to_string(), bound(&Some(index.clone()))),
            Subscript::Slice { lower_bound, upper_bound, .. } => {
                (bound(lower_bound), bound(upper_bound))
            }
        };
        let (low, high): (Vec<String>, Vec<String>) = self.0.iter().map(both).unzip();
        let (low, high) = (low.join(", "), high.join(", "));
        format!(
            "array_with({base}, CAST(ARRAY[{low}] AS int4[]), CAST(ARRAY[{high}] AS int4[]), \
             CAST({value} AS {array}))"
        )
    }
}
