//! Statements: parse, bind, plan, execute.

pub mod expr;
