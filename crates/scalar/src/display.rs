//! Bound expressions as SQL text, for EXPLAIN.

use std::fmt;

use braid_types::{Datum, SqlType};

use crate::{Bound, Node, QuantifiedOp};

impl Bound {
    /// The expression as SQL, with columns named by `names`.
    pub fn to_sql(&self, names: &dyn Fn(usize) -> String) -> String {
        let sql = |e: &Bound| e.to_sql(names);
        let list = |parts: &[Bound], between: &str| {
            parts.iter().map(sql).collect::<Vec<_>>().join(between)
        };
        match self.node() {
            Node::Const(value) => literal(value, self.ty()),
            Node::Column(at) => names(*at),
            Node::Param(index) => format!("${}", index + 1),
            Node::And(parts) => format!("({})", list(parts, " AND ")),
            Node::Or(parts) => format!("({})", list(parts, " OR ")),
            Node::Not(inner) => format!("(NOT {})", sql(inner)),
            Node::Compare(op, a, b) => format!("({} {} {})", sql(a), op.symbol(), sql(b)),
            Node::IsDistinct(a, b, not) => {
                let not = if *not { "NOT " } else { "" };
                format!("({} IS {not}DISTINCT FROM {})", sql(a), sql(b))
            }
            Node::IsNull(a, not) => {
                format!("({} IS {}NULL)", sql(a), if *not { "NOT " } else { "" })
            }
            Node::IsTruth(a, truth, not) => {
                let word = match truth {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("({} IS {}{word})", sql(a), if *not { "NOT " } else { "" })
            }
            Node::InList(a, items, not) => {
                let not = if *not { "NOT " } else { "" };
                format!("({} {not}IN ({}))", sql(a), list(items, ", "))
            }
            Node::Quantified(op, a, b, all) => {
                let sign = match op {
                    QuantifiedOp::Compare(op) => op.symbol(),
                    QuantifiedOp::Function(f) => f.name,
                };
                format!("({} {sign} {} ({}))", sql(a), if *all { "ALL" } else { "ANY" }, sql(b))
            }
            Node::Cast(a, _) => format!("({})::{}", sql(a), self.ty()),
            Node::Case(branches, otherwise) => {
                let mut text = String::from("CASE");
                for branch in branches {
                    text.push_str(&format!(
                        " WHEN {} THEN {}",
                        sql(&branch.when),
                        sql(&branch.then)
                    ));
                }
                if let Some(e) = otherwise {
                    text.push_str(&format!(" ELSE {}", sql(e)));
                }
                text.push_str(" END");
                text
            }
            Node::Coalesce(parts) => format!("COALESCE({})", list(parts, ", ")),
            Node::NullIf(_, equality) => match equality.node() {
                Node::Compare(_, a, b) => format!("NULLIF({}, {})", sql(a), sql(b)),
                _ => format!("NULLIF({})", sql(equality)),
            },
            Node::Extreme(parts, smallest) => {
                let name = if *smallest { "LEAST" } else { "GREATEST" };
                format!("{name}({})", list(parts, ", "))
            }
            Node::Array(parts) => format!("ARRAY[{}]", list(parts, ", ")),
            Node::Row(parts, _) => format!("ROW({})", list(parts, ", ")),
            Node::Apply(code, parts) => format!("{}({})", code.label(), list(parts, ", ")),
            Node::Field(a, at) => match a.ty() {
                SqlType::Composite(ty) if *at < ty.fields.len() => {
                    format!("({}).{}", sql(a), braid_types::quote_ident(&ty.fields[*at].name))
                }
                _ => format!("({}).f{}", sql(a), at + 1),
            },
            Node::Subscript(a, at) => format!("{}[{}]", sql(a), list(at, "][")),
            Node::Slice(a, bounds) => {
                let bound = |b: &Option<Bound>| b.as_ref().map(sql).unwrap_or_default();
                let both = |(low, high): &(Option<Bound>, Option<Bound>)| {
                    format!("[{}:{}]", bound(low), bound(high))
                };
                format!("{}{}", sql(a), bounds.iter().map(both).collect::<String>())
            }
            Node::Call(f, parts) => {
                let sign = !f.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                match (sign, parts.as_slice()) {
                    (true, [a, b]) => format!("({} {} {})", sql(a), f.name, sql(b)),
                    (true, [a]) => format!("({} {})", f.name, sql(a)),
                    _ => format!("{}({})", f.name, list(parts, ", ")),
                }
            }
        }
    }
}

fn literal(value: &Datum, ty: &SqlType) -> String {
    match value {
        Datum::Null => "NULL".to_string(),
        Datum::Bool(b) => b.to_string(),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) => value.to_string(),
        other => {
            let text = format!("'{}'", other.to_string().replace('\'', "''"));
            if ty.is_text_like() || *ty == SqlType::Unknown {
                text
            } else {
                format!("{text}::{ty}")
            }
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_sql(&|at| format!("column {}", at + 1)))
    }
}
