//! Functions that call themselves.
//!
//! ```text
//!   f(n) = CASE WHEN n <= 1 THEN 1 ELSE n * f(n - 1) END
//!          ------------------------------- inlined --
//!                                          f(n - 1) binds the body again, when it is called
//! ```
//! How deep calls may stand in each other follows from what the stack of a thread can hold: the
//! levels of all bodies that are being computed are counted.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use braid_types::{Collated, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::Expr;

use super::{UserFunction, bound_body};
use crate::{Applied, Bound, EvalContext, Node, TypeNames, Volatility};

/// Most levels of expressions in bodies that are being computed inside of each other.
const LEVELS_MAX: usize = 2_000;
/// What one call takes besides the levels of its body.
const OWN_LEVELS: usize = 4;

thread_local! {
    static LEVELS: Cell<usize> = const { Cell::new(0) };
}

/// A call whose body is bound when it is made.
pub(super) fn deferred(
    function: &Arc<UserFunction>,
    value: &Expr,
    names: Option<Arc<dyn TypeNames>>,
    args: &[Bound],
    collation: &Collated,
) -> Bound {
    let (function, value) = (function.clone(), value.clone());
    let (collation, body) = (collation.of_column(), OnceLock::new());
    let returns = function.returns.clone();
    let code = Deferred { function, value, names, collation, body };
    Bound::new(Node::Apply(Arc::new(code), args.to_vec()), returns)
}

struct Deferred {
    function: Arc<UserFunction>,
    value: Expr,
    names: Option<Arc<dyn TypeNames>>,
    /// That of the call.
    collation: Collated,
    /// With the levels that it has.
    body: OnceLock<SqlResult<(Bound, usize)>>,
}

/// The levels of one body, as long as it is computed.
struct Level {
    before: usize,
}

impl Level {
    fn enter(levels: usize) -> SqlResult<Level> {
        let before = LEVELS.get();
        if before + levels > LEVELS_MAX {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            )
            .with_hint("A function calls itself too deeply."));
        }
        LEVELS.set(before + levels);
        Ok(Level { before })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(self.before);
    }
}

fn levels(body: &Bound) -> usize {
    1 + body.children().into_iter().map(levels).max().unwrap_or(0)
}

impl Applied for Deferred {
    fn apply(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        let function = &*self.function;
        if function.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let bind = || {
            let (names, active) = (self.names.clone(), Vec::new());
            let body = bound_body(function, &self.value, names, active, &self.collation)?;
            let levels = OWN_LEVELS + levels(&body);
            Ok((body, levels))
        };
        // Binding nests no deeper than the body is written, computing does.
        let (body, levels) = match self.body.get_or_init(bind) {
            Ok((body, levels)) => (body, *levels),
            Err(e) => return Err(e.clone()),
        };
        let _level = Level::enter(levels)?;
        let value = body.eval(args, ctx)?;
        Ok(if function.returns == SqlType::Void { Datum::Null } else { value })
    }

    fn label(&self) -> String {
        self.function.name.clone()
    }

    fn volatility(&self) -> Volatility {
        self.function.volatility
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
