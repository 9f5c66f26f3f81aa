//! Stored expressions as PostgreSQL's `pg_get_expr` prints them: every operation in parentheses,
//! every literal with the type that it has become, every conversion spelled out.
//!
//! ```text
//!   a > 1 AND d = 'x'             ((a > 1) AND ((d)::text = 'x'::text))      d varchar
//!   a IN (1, 2)                   (a = ANY (ARRAY[1, 2]))
//!   b LIKE 'x%'                   (b ~~ 'x%'::text)
//!   e BETWEEN 0 AND 1             ((e >= (0)::numeric) AND (e <= (1)::numeric))   e numeric
//! ```
//! Tools compare these texts with those that they have sent, after PostgreSQL's rules. The tree is
//! the parsed one, since binding folds constants and forgets how things were said; binding its
//! parts tells their types.

use braid_types::{Datum, SqlType, Style, TypeCategory, quote_ident};
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    TrimWhereField, UnaryOperator, Value,
};

use crate::registry::ArgType;
use crate::{Bound, Node, ParamTypes, Scope, bind, common_type, ident_name, sql_type_of};

/// The text of an expression over these columns; `None` for what this does not know, which is then
/// best shown as it was written.
pub fn deparse(expr: &Expr, scope: &Scope) -> Option<String> {
    Deparser { scope }.text(expr)
}

/// A literal of a type: its value as that type prints it, and the type where it would be lost.
pub fn typed_literal(literal: &str, ty: &SqlType) -> String {
    let style = Style::utc();
    // Digits that a column leaves out are the literal's all the same.
    let any_numeric = SqlType::Numeric(None);
    let of = if matches!(ty, SqlType::Numeric(_)) { &any_numeric } else { ty };
    match Datum::parse(literal, of, style) {
        Ok(Datum::Bool(value)) => value.to_string(),
        Ok(value @ (Datum::Int4(_) | Datum::Numeric(_))) => {
            let text = value.to_text(style).unwrap_or_default();
            // Without a point it would be read as another type.
            let bare = matches!(value, Datum::Int4(_)) || text.contains('.');
            if text.starts_with('-') || !bare { quoted(&text, ty) } else { text }
        }
        Ok(value) => quoted(&value.to_text(style).unwrap_or_default(), ty),
        Err(_) => quoted(literal, ty),
    }
}

fn quoted(literal: &str, ty: &SqlType) -> String {
    // Blanks at the end mean nothing there.
    let literal = if matches!(ty, SqlType::Char(_)) { literal.trim_end() } else { literal };
    format!("'{}'::{}", literal.replace('\'', "''"), cast_name(ty))
}

fn cast_name(ty: &SqlType) -> String {
    match ty {
        SqlType::Char(_) => "bpchar".to_string(),
        SqlType::Bit(_) => "\"bit\"".to_string(),
        other => other.base_name(),
    }
}

/// A number as it is written, perhaps with its minus, which is part of it.
fn number(digits: &str, minus: bool) -> Option<String> {
    let text = format!("{}{digits}", if minus { "-" } else { "" });
    let whole = (text.parse::<i32>().is_ok(), text.parse::<i64>().is_ok());
    Some(match whole {
        (true, _) if !minus => text,
        (true, _) => format!("'{text}'::integer"),
        (_, true) => format!("'{text}'::bigint"),
        _ if digits.contains(['e', 'E']) => return None,
        _ if !minus && digits.contains('.') => text,
        _ => format!("'{text}'::numeric"),
    })
}

/// What is called without parentheses.
pub const SPECIAL: [&str; 10] = [
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "localtime",
    "current_user",
    "session_user",
    "current_role",
    "current_catalog",
    "current_schema",
];

struct Deparser<'a> {
    scope: &'a Scope,
}

/// What has no type yet.
fn unknown(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Nested(inner) => unknown(inner),
        Expr::Value(v) if matches!(v.value, Value::SingleQuotedString(_) | Value::Null) => {
            Some(&v.value)
        }
        _ => None,
    }
}

fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => plain(inner),
        other => other,
    }
}

/// What an operator makes of a type: texts of all kinds are compared as `text`.
fn operand(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        SqlType::Char(_) => SqlType::Char(0),
        SqlType::Numeric(_) => SqlType::Numeric(None),
        other => other.clone(),
    }
}

fn is_same(a: &SqlType, b: &SqlType) -> bool {
    a.base_name() == b.base_name()
}

fn is_integer(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
}

impl Deparser<'_> {
    fn bound(&self, expr: &Expr) -> Option<Bound> {
        bind(expr, self.scope, &mut ParamTypes::default()).ok()
    }

    /// `None` within: it has none yet.
    fn ty(&self, expr: &Expr) -> Option<Option<SqlType>> {
        match unknown(expr) {
            Some(_) => Some(None),
            None => Some(Some(self.bound(expr)?.ty().clone())),
        }
    }

    fn text(&self, expr: &Expr) -> Option<String> {
        Some(match expr {
            Expr::Nested(inner) => self.text(inner)?,
            Expr::Identifier(name) => self.column(expr, name)?,
            Expr::CompoundIdentifier(names) => self.column(expr, names.last()?)?,
            Expr::Value(v) => match &v.value {
                Value::Number(digits, _) => number(&digits.to_string(), false)?,
                Value::Boolean(value) => value.to_string(),
                Value::SingleQuotedString(_) | Value::Null => self.typed(expr, &SqlType::Text)?,
                _ => return None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match plain(expr) {
                Expr::Value(v) => match &v.value {
                    Value::Number(digits, _) => number(&digits.to_string(), true)?,
                    _ => return None,
                },
                other => format!("(- {})", self.text(other)?),
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => format!("(NOT {})", self.text(expr)?),
            Expr::BinaryOp { op: BinaryOperator::And, .. }
            | Expr::BinaryOp { op: BinaryOperator::Or, .. } => self.chain(expr)?,
            Expr::BinaryOp { left, op, right } => self.operation(left, &op.to_string(), right)?,
            Expr::Cast { expr, data_type, format: None, .. } => {
                let refined = crate::refinement_of(data_type, None).ok()?;
                let to = sql_type_of(data_type, None).ok()?;
                if refined.precision.is_some() || has_modifier(&to) {
                    return None;
                }
                match (plain(expr), &to) {
                    // Its elements are converted.
                    (Expr::Array(array), SqlType::Array(element)) => {
                        self.array(&array.elem, element)?
                    }
                    _ => self.typed(expr, &to)?,
                }
            }
            Expr::TypedString(_) | Expr::Interval(_) => {
                let bound = self.bound(expr)?;
                let Node::Const(value) = bound.node() else { return None };
                quoted(&value.to_text(Style::utc())?, bound.ty())
            }
            other => self.test(other).or_else(|| self.call(other))?,
        })
    }

    fn column(&self, expr: &Expr, name: &sqlparser::ast::Ident) -> Option<String> {
        let bound = self.bound(expr)?;
        matches!(bound.node(), Node::Column(_)).then(|| quote_ident(&ident_name(name)))
    }

    /// An expression where a value of a type is wanted.
    fn typed(&self, expr: &Expr, want: &SqlType) -> Option<String> {
        match unknown(expr) {
            // A name of an object has another value later.
            Some(Value::SingleQuotedString(_)) if want.names_objects() => return None,
            Some(Value::SingleQuotedString(text)) => return Some(typed_literal(text, want)),
            Some(_) => return Some(format!("NULL::{}", cast_name(want))),
            None => {}
        }
        let have = self.ty(expr)??;
        let text = self.text(expr)?;
        Some(match is_same(&have, want) {
            true => text,
            false => format!("({text})::{}", cast_name(want)),
        })
    }

    /// `a AND b AND c`, which is one thing with three parts.
    fn chain(&self, expr: &Expr) -> Option<String> {
        let Expr::BinaryOp { op, .. } = expr else { return None };
        let mut parts = Vec::new();
        let mut rest = expr;
        while let Expr::BinaryOp { left, op: other, right } = plain(rest)
            && other == op
        {
            parts.push(self.text(right)?);
            rest = left;
        }
        parts.push(self.text(rest)?);
        parts.reverse();
        Some(format!("({})", parts.join(&format!(" {op} "))))
    }

    /// The types that the sides of an operator are taken as.
    fn sides(&self, left: &Expr, sign: &str, right: &Expr) -> Option<(SqlType, SqlType)> {
        let is_comparison = matches!(sign, "=" | "<>" | "<" | "<=" | ">" | ">=");
        let is_of_text =
            matches!(sign, "||" | "~" | "~*" | "!~" | "!~*" | "~~" | "!~~" | "~~*" | "!~~*");
        let (l, r) = (self.ty(left)?, self.ty(right)?);
        let (l, r) = match (l, r) {
            (Some(l), Some(r)) => (operand(&l), operand(&r)),
            (None, None) => (SqlType::Text, SqlType::Text),
            (Some(known), None) | (None, Some(known)) => {
                let known = operand(&known);
                let is_text = known.category() == TypeCategory::String;
                // Elsewhere the literal need not be of the type of the other side.
                let is_number = known.category() == TypeCategory::Numeric;
                if !(is_comparison || is_of_text && is_text || is_number) {
                    return None;
                }
                (known.clone(), known)
            }
        };
        if is_of_text && [&l, &r].iter().any(|ty| ty.category() != TypeCategory::String) {
            return None;
        }
        if is_same(&l, &r) || is_integer(&l) && is_integer(&r) {
            return Some((l, r));
        }
        let class = l.category();
        if class != r.category() {
            return match (sign, &l, &r) {
                // These have operators of their own.
                ("+" | "-", SqlType::Date, SqlType::Int4)
                | (
                    "+" | "-",
                    SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz,
                    SqlType::Interval,
                ) => Some((l, r)),
                _ => None,
            };
        }
        match class {
            TypeCategory::Numeric => {
                let is_float = |ty: &SqlType| matches!(ty, SqlType::Float4 | SqlType::Float8);
                let common = match is_float(&l) || is_float(&r) {
                    true if is_float(&l) && is_float(&r) => return Some((l, r)),
                    // Each of them is compared with the other as it is.
                    true if is_float(&l) => return Some((l, SqlType::Float8)),
                    true => return Some((SqlType::Float8, r)),
                    false => SqlType::Numeric(None),
                };
                Some((common.clone(), common))
            }
            TypeCategory::DateTime if is_comparison || sign == "-" => Some((l, r)),
            TypeCategory::String => Some((SqlType::Text, SqlType::Text)),
            _ => None,
        }
    }

    fn operation(&self, left: &Expr, sign: &str, right: &Expr) -> Option<String> {
        let sign = if sign == "!=" { "<>" } else { sign };
        let (l, r) = self.sides(left, sign, right)?;
        Some(format!("({} {sign} {})", self.typed(left, &l)?, self.typed(right, &r)?))
    }

    /// What is true, false or unknown of a value.
    fn test(&self, expr: &Expr) -> Option<String> {
        let is = |e: &Expr, what: &str| Some(format!("({} IS {what})", self.text(e)?));
        match expr {
            Expr::IsNull(e) => is(e, "NULL"),
            Expr::IsNotNull(e) => is(e, "NOT NULL"),
            Expr::IsTrue(e) => is(e, "TRUE"),
            Expr::IsNotTrue(e) => is(e, "NOT TRUE"),
            Expr::IsFalse(e) => is(e, "FALSE"),
            Expr::IsNotFalse(e) => is(e, "NOT FALSE"),
            Expr::IsUnknown(e) => is(e, "UNKNOWN"),
            Expr::IsNotUnknown(e) => is(e, "NOT UNKNOWN"),
            Expr::IsDistinctFrom(a, b) => self.distinct(a, b),
            Expr::IsNotDistinctFrom(a, b) => Some(format!("(NOT {})", self.distinct(a, b)?)),
            Expr::Between { expr, negated, low, high } => {
                let (above, below, both) = match negated {
                    false => (">=", "<=", "AND"),
                    true => ("<", ">", "OR"),
                };
                let above = self.operation(expr, above, low)?;
                Some(format!("({above} {both} {})", self.operation(expr, below, high)?))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                self.operation(expr, if *negated { "!~~" } else { "~~" }, pattern)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                self.operation(expr, if *negated { "!~~*" } else { "~~*" }, pattern)
            }
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, &compare_op.to_string(), right, "ANY")
            }
            Expr::AllOp { left, compare_op, right } => {
                self.quantified(left, &compare_op.to_string(), right, "ALL")
            }
            _ => None,
        }
    }

    fn distinct(&self, a: &Expr, b: &Expr) -> Option<String> {
        let (l, r) = self.sides(a, "=", b)?;
        Some(format!("({} IS DISTINCT FROM {})", self.typed(a, &l)?, self.typed(b, &r)?))
    }

    /// The type that all of these become.
    fn common(&self, parts: &[&Expr]) -> Option<SqlType> {
        let mut common: Option<SqlType> = None;
        for part in parts {
            common = match (common, self.ty(part)?) {
                (Some(a), Some(b)) if is_same(&a, &b) => Some(a),
                (Some(a), Some(b)) => Some(common_type(&[&a, &b])?),
                (one, other) => one.or(other),
            };
        }
        Some(common.unwrap_or(SqlType::Text))
    }

    fn array(&self, items: &[Expr], of: &SqlType) -> Option<String> {
        let items: Option<Vec<String>> = items.iter().map(|item| self.typed(item, of)).collect();
        Some(format!("ARRAY[{}]", items?.join(", ")))
    }

    fn in_list(&self, expr: &Expr, list: &[Expr], negated: bool) -> Option<String> {
        let (sign, word) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        if let [one] = list {
            return self.operation(expr, sign, one);
        }
        // Columns in the list would stand beside it.
        if list.iter().any(|item| self.bound(item).is_none_or(|b| !b.columns().is_empty())) {
            return None;
        }
        let all: Vec<&Expr> = std::iter::once(expr).chain(list).collect();
        let common = self.common(&all)?;
        let array = self.array(list, &common)?;
        let (left, array) = match (&common, self.ty(expr)??) {
            (SqlType::Varchar(_), _) => {
                (self.typed(expr, &SqlType::Text)?, format!("({array})::text[]"))
            }
            (common, own) if is_integer(common) && is_integer(&own) => (self.text(expr)?, array),
            (common, _) => (self.typed(expr, common)?, array),
        };
        Some(format!("({left} {sign} {word} ({array}))"))
    }

    fn quantified(&self, left: &Expr, sign: &str, right: &Expr, word: &str) -> Option<String> {
        let (array, of) = match plain(right) {
            Expr::Array(array) => {
                let items: Vec<&Expr> = array.elem.iter().collect();
                (array, self.common(&items)?)
            }
            Expr::Cast { expr, data_type, .. } => {
                let Expr::Array(array) = plain(expr) else { return None };
                let SqlType::Array(of) = sql_type_of(data_type, None).ok()? else { return None };
                (array, *of)
            }
            _ => return None,
        };
        let sign = if sign == "!=" { "<>" } else { sign };
        let left_type = operand(&self.ty(left)??);
        if !(is_same(&left_type, &of) || is_integer(&left_type) && is_integer(&of)) {
            return None;
        }
        let left = self.typed(left, &left_type)?;
        Some(format!("({left} {sign} {word} ({}))", self.array(&array.elem, &of)?))
    }

    fn call(&self, expr: &Expr) -> Option<String> {
        Some(match expr {
            Expr::Function(function) => return self.function(expr, function),
            Expr::Case { operand, conditions, else_result, .. } => {
                return self.case(operand.as_deref(), conditions, else_result.as_deref());
            }
            Expr::Array(array) => {
                let items: Vec<&Expr> = array.elem.iter().collect();
                self.array(&array.elem, &self.common(&items)?)?
            }
            Expr::Extract { field, expr, .. } => {
                let field = field.to_string().to_lowercase();
                format!("EXTRACT({field} FROM {})", self.text(expr)?)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let zone = self.typed(time_zone, &SqlType::Text)?;
                format!("({} AT TIME ZONE {zone})", self.text(timestamp)?)
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let side = match trim_where {
                    None | Some(TrimWhereField::Both) => "BOTH",
                    Some(TrimWhereField::Leading) => "LEADING",
                    Some(TrimWhereField::Trailing) => "TRAILING",
                };
                let what = match trim_what {
                    Some(what) => format!("{} ", self.typed(what, &SqlType::Text)?),
                    None => String::new(),
                };
                format!("TRIM({side} {what}FROM {})", self.text(expr)?)
            }
            _ => return None,
        })
    }

    fn function(&self, expr: &Expr, function: &Function) -> Option<String> {
        let [part] = function.name.0.as_slice() else { return None };
        let name = ident_name(part.as_ident()?);
        let is_without_arguments = match &function.args {
            FunctionArguments::None => true,
            FunctionArguments::List(list) => list.args.is_empty(),
            FunctionArguments::Subquery(_) => false,
        };
        if is_without_arguments && SPECIAL.contains(&name.as_str()) {
            return Some(name.to_uppercase());
        }
        let FunctionArguments::List(list) = &function.args else { return None };
        let is_plain = list.duplicate_treatment.is_none()
            && list.clauses.is_empty()
            && function.filter.is_none()
            && function.over.is_none()
            && function.within_group.is_empty();
        let args = list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
            _ => None,
        });
        let args: Vec<&Expr> = args.collect::<Option<_>>().filter(|_| is_plain)?;
        if matches!(name.as_str(), "coalesce" | "greatest" | "least" | "nullif") {
            let common = self.common(&args)?;
            let args: Option<Vec<String>> = args.iter().map(|a| self.typed(a, &common)).collect();
            return Some(format!("{}({})", name.to_uppercase(), args?.join(", ")));
        }
        let bound = self.bound(expr)?;
        let types: Vec<Option<SqlType>> = match bound.node() {
            Node::Call(f, given) if given.len() == args.len() && !f.variadic => {
                let exact = |ty: &ArgType| match ty {
                    ArgType::Exact(ty) => Some(ty.clone()),
                    _ => None,
                };
                f.args.iter().map(exact).collect()
            }
            // It was computed: what has no type was a text, as nearly always.
            Node::Const(_) => vec![None; args.len()],
            _ => return None,
        };
        let args = args.iter().enumerate().map(|(at, arg)| match types.get(at)? {
            Some(ty) => self.typed(arg, ty),
            None => self.text(arg),
        });
        let args: Option<Vec<String>> = args.collect();
        Some(format!("{}({})", quote_ident(&name), args?.join(", ")))
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Option<String> {
        let results: Vec<&Expr> = conditions.iter().map(|c| &c.result).chain(otherwise).collect();
        let common = self.common(&results)?;
        let mut out = String::from("\nCASE");
        if let Some(operand) = operand {
            out.push_str(&format!(" {}", self.text(operand)?));
        }
        for CaseWhen { condition, result } in conditions {
            let when = match operand {
                Some(operand) => self.typed(condition, &self.sides(operand, "=", condition)?.1)?,
                None => self.text(condition)?,
            };
            out.push_str(&format!("\n    WHEN {when} THEN {}", self.typed(result, &common)?));
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.typed(otherwise, &common)?,
            None => format!("NULL::{}", cast_name(&common)),
        };
        out.push_str(&format!("\n    ELSE {otherwise}\nEND"));
        Some(out)
    }
}

/// A conversion to such a type is two in PostgreSQL's tree.
fn has_modifier(ty: &SqlType) -> bool {
    match ty {
        SqlType::Varchar(Some(_)) | SqlType::Numeric(Some(_)) | SqlType::Varbit(Some(_)) => true,
        SqlType::Char(n) | SqlType::Bit(n) => *n > 0,
        SqlType::Array(element) => has_modifier(element),
        _ => false,
    }
}
