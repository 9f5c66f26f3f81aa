//! Windows and aggregates as PostgreSQL's `pg_get_viewdef` prints them.
//!
//! ```text
//!   sum(b) OVER (ORDER BY a DESC NULLS LAST ROWS 1 PRECEDING)
//!
//!   sum(t.b) OVER (ORDER BY t.a DESC NULLS LAST ROWS 1 PRECEDING)
//! ```

use braid_types::{SqlType, quote_ident};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, OrderByExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

use super::deparse::{Deparser, Part, Read, known, listed, operand};
use super::printed::{Kind, Piece};
use crate::{ident_name, resolve};

impl Deparser<'_> {
    /// What it is made of, in parentheses.
    pub(super) fn window(&self, window: &WindowSpec) -> Option<Vec<Piece>> {
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        if let Some(name) = &window.window_name {
            parts.push(vec![quote_ident(&ident_name(name)).to_string().into()]);
        }
        let (mut keys, mut excluded) = (window.partition_by.as_slice(), "");
        if let [first, rest @ ..] = keys
            && let Some(words) = Deparser::exclusion(first)
        {
            (keys, excluded) = (rest, words);
        }
        if !keys.is_empty() {
            let keys = keys.iter().map(|key| Some(vec![self.key(key)?]));
            parts.push(after("PARTITION BY ", keys.collect::<Option<_>>()?));
        }
        if !window.order_by.is_empty() {
            let keys = window.order_by.iter().map(|key| self.sorted(key));
            parts.push(after("ORDER BY ", keys.collect::<Option<_>>()?));
        }
        if let Some(frame) = &window.window_frame {
            let mut frame = self.frame(frame)?;
            frame.push(excluded.into());
            parts.push(frame);
        }
        let mut out: Vec<Piece> = vec!["(".into()];
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                out.push(" ".into());
            }
            out.extend(part);
        }
        out.push(")".into());
        Some(out)
    }

    /// An aggregate or a window function.
    pub(super) fn aggregate(
        &self,
        name: &str,
        function: &Function,
        list: &FunctionArgumentList,
    ) -> Option<Part> {
        if !function.within_group.is_empty() || function.null_treatment.is_some() {
            return None;
        }
        let order = match list.clauses.as_slice() {
            [] => &[][..],
            [FunctionArgumentClause::OrderBy(keys)] => keys,
            _ => return None,
        };
        let args = list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => self.read(e),
            _ => None,
        });
        let (args, ty) = match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => (vec!["*".into()], SqlType::Int8),
            _ => {
                let args: Vec<Read> = args.collect::<Option<_>>()?;
                let given = |arg: &Read| arg.ty().map_or(SqlType::Unknown, operand);
                let given: Vec<SqlType> = args.iter().map(given).collect();
                let choice = resolve(name, &given, false).ok()?;
                let args = args.iter().zip(&choice.args).map(|(arg, ty)| arg.as_type(ty));
                (listed(args.collect::<Option<Vec<_>>>()?), choice.ret)
            }
        };
        let distinct = match list.duplicate_treatment {
            Some(DuplicateTreatment::Distinct) => "DISTINCT ",
            _ => "",
        };
        let mut pieces = vec![format!("{}({distinct}", quote_ident(name)).into()];
        pieces.extend(args);
        if !order.is_empty() {
            let keys = order.iter().map(|key| self.sorted(key));
            pieces.extend(after(" ORDER BY ", keys.collect::<Option<_>>()?));
        }
        pieces.push(")".into());
        if let Some(condition) = &function.filter {
            let condition = Piece::Whole(self.known(condition)?.printed);
            pieces.extend([" FILTER (WHERE ".into(), condition, ")".into()]);
        }
        if let Some(over) = &function.over {
            pieces.push(" OVER ".into());
            match over {
                WindowType::NamedWindow(name) => {
                    pieces.push(quote_ident(&ident_name(name)).to_string().into());
                }
                WindowType::WindowSpec(window) => pieces.extend(self.window(window)?),
            }
        }
        known(Kind::Atom, pieces, ty)
    }

    fn key(&self, expr: &Expr) -> Option<Piece> {
        let printed = self.known(expr)?.printed;
        let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        Some(if is_column { Piece::Whole(printed) } else { Piece::Key(printed) })
    }

    fn sorted(&self, key: &OrderByExpr) -> Option<Vec<Piece>> {
        if key.with_fill.is_some() {
            return None;
        }
        Some(vec![self.key(&key.expr)?, direction(key).into()])
    }

    fn frame(&self, frame: &WindowFrame) -> Option<Vec<Piece>> {
        let unit = match frame.units {
            WindowFrameUnits::Rows => "ROWS ",
            WindowFrameUnits::Range => "RANGE ",
            WindowFrameUnits::Groups => "GROUPS ",
        };
        let mut out: Vec<Piece> = vec![unit.into()];
        if frame.end_bound.is_some() {
            out.push("BETWEEN ".into());
        }
        out.extend(self.bound_of_frame(&frame.start_bound)?);
        if let Some(end) = &frame.end_bound {
            out.push(" AND ".into());
            out.extend(self.bound_of_frame(end)?);
        }
        Some(out)
    }

    fn bound_of_frame(&self, bound: &WindowFrameBound) -> Option<Vec<Piece>> {
        let (offset, way) = match bound {
            WindowFrameBound::CurrentRow => return Some(vec!["CURRENT ROW".into()]),
            WindowFrameBound::Preceding(offset) => (offset, "PRECEDING"),
            WindowFrameBound::Following(offset) => (offset, "FOLLOWING"),
        };
        let Some(offset) = offset else { return Some(vec![format!("UNBOUNDED {way}").into()]) };
        // The type of a text in quotes follows from the key, which is not asked here.
        if matches!(**offset, Expr::Nested(_) | Expr::Value(_)) && self.is_untyped(offset) {
            return None;
        }
        Some(vec![Piece::Whole(self.known(offset)?.printed), format!(" {way}").into()])
    }
}

/// Keys behind the words for them.
fn after(words: &str, keys: Vec<Vec<Piece>>) -> Vec<Piece> {
    let mut out: Vec<Piece> = vec![words.into()];
    for (at, key) in keys.into_iter().enumerate() {
        if at > 0 {
            out.push(", ".into());
        }
        out.extend(key);
    }
    out
}

/// DESC and where NULLs are, as far as it must be said.
pub fn direction(key: &OrderByExpr) -> String {
    let falls = key.options.asc == Some(false);
    let nulls = match key.options.nulls_first {
        Some(first) if first != falls => {
            if first {
                " NULLS FIRST"
            } else {
                " NULLS LAST"
            }
        }
        _ => "",
    };
    format!("{}{nulls}", if falls { " DESC" } else { "" })
}
