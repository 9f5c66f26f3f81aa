//! Parameters of type `void` among the arguments of a function: what JDBC sends for those that come
//! out of a call, `{? = call f(?)}`. PostgreSQL looks the function up without them.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_parser::{Kind, Statement};
use braid_types::SqlType;
use braid_walk::WalkMut;
use sqlparser::ast::{self, VisitorMut};

/// The statement without such arguments; `None` if there are none.
pub(crate) fn without(statement: &Statement, declared: &[Option<SqlType>]) -> Option<Statement> {
    let is_void = |ty: &Option<SqlType>| *ty == Some(SqlType::Void);
    if !declared.iter().any(is_void) {
        return None;
    }
    let Kind::Sql(sql) = &*statement.kind else { return None };
    let names = (1..).zip(declared).filter(|(_, ty)| is_void(ty)).map(|(n, _)| format!("${n}"));
    let mut sql = sql.clone();
    let _ = sql.walk_mut(&mut Without(names.collect()));
    Some(Statement { kind: Arc::new(Kind::Sql(sql)), ..statement.clone() })
}

/// Takes parameters of these names out of calls.
struct Without(Vec<String>);

impl Without {
    fn take(&self, args: &mut Vec<ast::FunctionArg>) {
        args.retain(|arg| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) => {
                !matches!(&value.value, ast::Value::Placeholder(name) if self.0.contains(name))
            }
            _ => true,
        });
    }
}

impl VisitorMut for Without {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(function) = expr
            && let ast::FunctionArguments::List(list) = &mut function.args
        {
            self.take(&mut list.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { args: Some(given), .. } => self.take(&mut given.args),
            ast::TableFactor::Function { args, .. } => self.take(args),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
