//! Names of operators: what sqlparser calls them, and what the table of functions does.
//!
//! ```text
//!   a @> b                        BinaryOperator::AtArrow, "@>"
//!   a OPERATOR(pg_catalog.@>) b   the same
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::ast::BinaryOperator;

use crate::CmpOp;

/// The name an operator has in the function table, for those that are functions there.
pub(crate) fn operator_name(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::StringConcat => "||",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::PGBitwiseXor => "#",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::PGExp | BinaryOperator::BitwiseXor => "^",
        BinaryOperator::PGOverlap => "&&",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGStartsWith => "^@",
        BinaryOperator::Arrow => "->",
        BinaryOperator::LongArrow => "->>",
        BinaryOperator::HashArrow => "#>",
        BinaryOperator::HashLongArrow => "#>>",
        BinaryOperator::HashMinus => "#-",
        BinaryOperator::AtArrow => "@>",
        BinaryOperator::ArrowAt => "<@",
        BinaryOperator::Question => "?",
        BinaryOperator::QuestionAnd => "?&",
        BinaryOperator::QuestionPipe => "?|",
        BinaryOperator::AtQuestion => "@?",
        BinaryOperator::AtAt => "@@",
        BinaryOperator::AndLt => "&<",
        BinaryOperator::AndGt => "&>",
        BinaryOperator::AndLtPipe => "&<|",
        BinaryOperator::PipeAndGt => "|&>",
        BinaryOperator::LtLtPipe => "<<|",
        BinaryOperator::PipeGtGt => "|>>",
        BinaryOperator::LtCaret => "<^",
        BinaryOperator::GtCaret => ">^",
        BinaryOperator::LtDashGt => "<->",
        BinaryOperator::TildeEq => "~=",
        BinaryOperator::DoubleHash => "##",
        BinaryOperator::QuestionHash => "?#",
        BinaryOperator::QuestionDash => "?-",
        BinaryOperator::QuestionDoublePipe => "?||",
        BinaryOperator::QuestionDashPipe => "?-|",
        BinaryOperator::Custom(sign) => return custom_operator(sign),
        _ => return None,
    })
}

/// Operators for which the parser has no names.
fn custom_operator(sign: &str) -> Option<&'static str> {
    const SIGNS: &[&str] = &["<<=", ">>=", "-|-", "*=", "*<>", "*<", "*<=", "*>", "*>="];
    SIGNS.iter().find(|s| **s == sign).copied()
}

/// The comparison an operator is, if it is one.
pub fn comparison(op: &BinaryOperator) -> Option<CmpOp> {
    Some(match op {
        BinaryOperator::Eq => CmpOp::Eq,
        BinaryOperator::NotEq => CmpOp::Ne,
        BinaryOperator::Lt => CmpOp::Lt,
        BinaryOperator::LtEq => CmpOp::Le,
        BinaryOperator::Gt => CmpOp::Gt,
        BinaryOperator::GtEq => CmpOp::Ge,
        _ => return None,
    })
}

/// The operators that are named by nothing but a table of functions.
const NAMED: [BinaryOperator; 35] = [
    BinaryOperator::BitwiseOr,
    BinaryOperator::BitwiseAnd,
    BinaryOperator::PGBitwiseXor,
    BinaryOperator::PGBitwiseShiftLeft,
    BinaryOperator::PGBitwiseShiftRight,
    BinaryOperator::PGExp,
    BinaryOperator::PGOverlap,
    BinaryOperator::PGStartsWith,
    BinaryOperator::Arrow,
    BinaryOperator::LongArrow,
    BinaryOperator::HashArrow,
    BinaryOperator::HashLongArrow,
    BinaryOperator::HashMinus,
    BinaryOperator::AtArrow,
    BinaryOperator::ArrowAt,
    BinaryOperator::Question,
    BinaryOperator::QuestionAnd,
    BinaryOperator::QuestionPipe,
    BinaryOperator::AtQuestion,
    BinaryOperator::AtAt,
    BinaryOperator::AndLt,
    BinaryOperator::AndGt,
    BinaryOperator::AndLtPipe,
    BinaryOperator::PipeAndGt,
    BinaryOperator::LtLtPipe,
    BinaryOperator::PipeGtGt,
    BinaryOperator::LtCaret,
    BinaryOperator::GtCaret,
    BinaryOperator::LtDashGt,
    BinaryOperator::TildeEq,
    BinaryOperator::DoubleHash,
    BinaryOperator::QuestionHash,
    BinaryOperator::QuestionDash,
    BinaryOperator::QuestionDoublePipe,
    BinaryOperator::QuestionDashPipe,
];

/// `OPERATOR(pg_catalog.~)` as the plain operator.
pub(crate) fn plain_operator(op: &BinaryOperator) -> SqlResult<BinaryOperator> {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return Ok(op.clone()) };
    let sign = parts.last().map(String::as_str).unwrap_or_default();
    Ok(match sign {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        other => {
            let named = NAMED.iter().find(|op| operator_name(op) == Some(other)).cloned();
            let custom = || custom_operator(other).map(|s| BinaryOperator::Custom(s.into()));
            let op = named.or_else(custom);
            return op.ok_or_else(|| SqlError::unsupported(format!("operator {other}")));
        }
    })
}
