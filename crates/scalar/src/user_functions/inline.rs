//! A body with its arguments in it.

use std::any::Any;
use std::sync::Arc;

use braid_types::{Datum, SqlResult, SqlType};

use super::UserFunction;
use crate::conversion::fold;
use crate::{Applied, Bound, EvalContext, Node, Volatility};

/// The value of a call: the body with the arguments in the places of its columns, or the body over
/// arguments that are computed once.
pub(super) fn inlined(function: &UserFunction, body: Bound, args: &[Bound]) -> SqlResult<Bound> {
    let mut uses = vec![0usize; args.len()];
    count(&body, &mut uses);
    let stands = |(arg, uses): (&Bound, &usize)| match *uses {
        1 => true,
        _ => is_cheap(arg),
    };
    let declared = function.volatility >= body.volatility();
    let strict = !function.strict || (is_strict(&body) && uses.iter().all(|n| *n > 0));
    if function.returns != SqlType::Void && declared && strict && args.iter().zip(&uses).all(stands)
    {
        return substituted(&body, args);
    }
    fold(over_arguments(function, body, args))
}

/// A body over its arguments as columns, which are computed before it, once.
pub fn over_arguments(function: &UserFunction, body: Bound, args: &[Bound]) -> Bound {
    let ty = function.returns.clone();
    let code = Body {
        name: function.name.clone(),
        strict: function.strict,
        void: ty == SqlType::Void,
        volatility: function.volatility.min(body.volatility()),
        body,
    };
    Bound::new(Node::Apply(Arc::new(code), args.to_vec()), ty)
}

fn count(body: &Bound, uses: &mut [usize]) {
    if let Some(at) = body.as_column()
        && let Some(n) = uses.get_mut(at)
    {
        *n += 1;
    }
    body.children().into_iter().for_each(|child| count(child, uses));
}

/// Whether it may be computed any number of times, also never.
fn is_cheap(arg: &Bound) -> bool {
    match arg.node() {
        Node::Const(_) | Node::Column(_) | Node::Param(_) => true,
        Node::Cast(inner, _) => is_cheap(inner),
        _ => false,
    }
}

/// Whether it is NULL as soon as one of its columns is.
fn is_strict(body: &Bound) -> bool {
    let own = match body.node() {
        Node::Const(_) | Node::Column(_) | Node::Param(_) => true,
        Node::Compare(..) | Node::Not(_) => true,
        Node::Cast(inner, _) => !inner.ty().is_row() && !body.ty().is_row(),
        Node::Call(function, _) => function.strict,
        _ => false,
    };
    own && body.children().into_iter().all(is_strict)
}

/// The body over what the arguments are made of; what is constant now is computed.
fn substituted(body: &Bound, args: &[Bound]) -> SqlResult<Bound> {
    if let Some(at) = body.as_column() {
        return Ok(args[at].clone());
    }
    let mut failed = None;
    let new = body.map_children(&mut |child| match substituted(child, args) {
        Ok(new) => new,
        Err(e) => {
            failed.get_or_insert(e);
            child.clone()
        }
    });
    match (failed, new.node()) {
        (Some(e), _) => Err(e),
        // A row of constants stays a row, as where it is written.
        (None, Node::Row(..) | Node::Const(_) | Node::Param(_)) => Ok(new),
        (None, _) => fold(new),
    }
}

/// A body over arguments that are computed before it.
struct Body {
    name: String,
    strict: bool,
    void: bool,
    volatility: Volatility,
    body: Bound,
}

impl Applied for Body {
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let value = self.body.eval(args, ctx)?;
        Ok(if self.void { Datum::Null } else { value })
    }

    fn label(&self) -> String {
        self.name.clone()
    }

    fn volatility(&self) -> Volatility {
        self.volatility
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
