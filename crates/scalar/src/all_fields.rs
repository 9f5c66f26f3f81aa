//! `(row).*`, which the parser hands on as `(row)."*"` because sqlparser knows stars behind names
//! only.

use sqlparser::ast::{AccessExpr, Expr};

/// Whether an access is the star of `(row).*`.
pub(crate) fn is_star(access: &AccessExpr) -> bool {
    matches!(access, AccessExpr::Dot(Expr::Identifier(ident))
        if ident.value == "*" && ident.quote_style == Some('"'))
}

/// The row whose fields `(row).*` stands for; `None` for another expression.
pub fn all_fields(e: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = e else { return None };
    let (last, before) = access_chain.split_last()?;
    if !is_star(last) {
        return None;
    }
    Some(match before {
        [] => (**root).clone(),
        _ => Expr::CompoundFieldAccess { root: root.clone(), access_chain: before.to_vec() },
    })
}
