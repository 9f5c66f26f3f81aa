//! Random expressions as trees, so that a difference can be shrunk to the part that causes it.

use braid_env::random::Random;

use super::catalog::{Arg, Claims, Form, Signature};
use super::constructs::{self, Part};
use super::{known, values};

/// An expression with its parts.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) sql: String,
    /// Signature or construct that it is made by; empty for a leaf.
    pub(super) label: String,
    pub(super) parts: Vec<Expr>,
}

impl Expr {
    /// This expression and all its parts, theirs included.
    pub(super) fn all(&self) -> Vec<&Expr> {
        let mut all = vec![self];
        all.extend(self.parts.iter().flat_map(Expr::all));
        all
    }

    /// Whether it names no column of the corpus table.
    pub(super) fn is_constant(&self) -> bool {
        let names = |e: &Expr| {
            e.sql
                .strip_prefix("c_")
                .is_some_and(|rest| rest.chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        !self.all().into_iter().any(names)
    }

    fn leaf(sql: String) -> Expr {
        Expr { sql, label: String::new(), parts: Vec::new() }
    }
}

/// Types that expressions are asked for.
const WANTED: &[&str] = &[
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar",
    "bpchar",
    "bytea",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
    "jsonb",
    "json",
    "_int4",
    "_text",
    "_numeric",
];

/// Makes expressions out of what a server claims.
pub(super) struct Generator<'a> {
    signatures: Vec<&'a Signature>,
    /// Whether columns of the corpus table may be named.
    pub(super) columns: bool,
}

impl<'a> Generator<'a> {
    pub(super) fn new(claims: &'a Claims) -> Generator<'a> {
        let signatures = claims
            .signatures
            .iter()
            .filter(|s| left_out_of(s).is_none() && without_values(s).is_empty())
            .collect();
        Generator { signatures, columns: true }
    }

    /// Number of signatures.
    pub(super) fn len(&self) -> usize {
        self.signatures.len()
    }

    /// A call of the signature with this number.
    pub(super) fn nth(&self, random: &mut Random, at: usize, depth: u32) -> Expr {
        let signature = self.signatures[at % self.signatures.len()];
        self.call(random, signature, None, depth)
    }

    /// A boolean expression around another.
    pub(super) fn condition(&self, random: &mut Random, inner: &Expr) -> Expr {
        let sql = match random.below(3) {
            0 => format!("({}) IS NOT NULL", inner.sql),
            1 => format!("({}) IS NULL", inner.sql),
            _ => format!("c_bool OR ({}) IS NOT NULL", inner.sql),
        };
        Expr { sql, label: "IS NULL".to_string(), parts: vec![inner.clone()] }
    }

    fn leaf(&self, random: &mut Random, ty: &str) -> Expr {
        if self.columns && values::of(ty).is_some() && random.chance(1, 3) {
            return Expr::leaf(format!("c{ty}", ty = column_suffix(ty)));
        }
        Expr::leaf(values::literal(random, ty))
    }

    /// An expression of a type.
    pub(super) fn typed(&self, random: &mut Random, ty: &str, depth: u32) -> Expr {
        if depth == 0 || random.chance(1, 5) {
            return self.leaf(random, ty);
        }
        if random.chance(1, 5) {
            return self.construct(random, ty, depth);
        }
        let fitting: Vec<&&Signature> = self
            .signatures
            .iter()
            .filter(|s| match &s.ret {
                Arg::Type(name) => name == ty,
                Arg::Array => ty.starts_with('_'),
                _ => false,
            })
            .collect();
        if fitting.is_empty() {
            return self.leaf(random, ty);
        }
        let chosen = **random.pick(&fitting);
        let element = ty.strip_prefix('_').filter(|_| chosen.ret == Arg::Array);
        self.call(random, chosen, element, depth)
    }

    /// CASE, COALESCE and the others that are no functions.
    fn construct(&self, random: &mut Random, ty: &str, depth: u32) -> Expr {
        let fitting = constructs::giving(ty, values::ELEMENTS);
        let chosen = *random.pick(&fitting);
        let other = *random.pick(WANTED);
        let element = match ty.strip_prefix('_') {
            Some(element) => element.to_string(),
            None => random.pick(values::ELEMENTS).to_string(),
        };
        let mut parts = Vec::new();
        let mut sql = String::new();
        let mut pieces = chosen.form.split("{}");
        sql.push_str(pieces.next().unwrap_or_default());
        for (part, piece) in chosen.parts.iter().zip(pieces) {
            let of = match part {
                Part::Same => ty.to_string(),
                Part::Other => other.to_string(),
                Part::Element => element.clone(),
                Part::Array => format!("_{element}"),
                Part::ArrayOfSame => format!("_{ty}"),
                Part::Of(name) => name.to_string(),
            };
            let e = self.typed(random, &of, depth - 1);
            sql.push_str(&format!("({}){piece}", e.sql));
            parts.push(e);
        }
        Expr { sql, label: chosen.label.to_string(), parts }
    }

    fn call(
        &self,
        random: &mut Random,
        signature: &Signature,
        element: Option<&str>,
        depth: u32,
    ) -> Expr {
        let element = match element {
            Some(e) => e.to_string(),
            None => random.pick(values::ELEMENTS).to_string(),
        };
        let mut count = signature.args.len();
        if signature.variadic {
            count += random.below(3) as usize;
        }
        let mut parts: Vec<Expr> = Vec::new();
        for at in 0..count {
            let arg = &signature.args[at.min(signature.args.len() - 1)];
            let ty = match arg {
                Arg::Type(name) => name.clone(),
                Arg::Element => element.clone(),
                Arg::Array => format!("_{element}"),
                Arg::Any => random.pick(WANTED).to_string(),
            };
            parts.push(self.argument(random, signature, at, &ty, depth));
        }
        let args: Vec<&str> = parts.iter().map(|p| p.sql.as_str()).collect();
        let sql = match signature.form {
            Form::Function if signature.args.is_empty() && is_keyword(&signature.name) => {
                signature.name.clone()
            }
            Form::Function if signature.name == "extract" => {
                format!("extract({} FROM {})", args[0].trim_matches('\''), args[1])
            }
            Form::Function if signature.name == "position" => {
                format!("position(({}) IN ({}))", args[1], args[0])
            }
            Form::Function => format!("{}({})", signature.name, args.join(", ")),
            Form::Prefix => format!("{} ({})", signature.name, args[0]),
            Form::Infix => format!("({}) {} ({})", args[0], signature.name, args[1]),
            Form::Cast => format!("CAST({} AS {})", args[0], values::type_sql(&signature.name)),
        };
        Expr { sql, label: signature.label(), parts }
    }

    fn argument(
        &self,
        random: &mut Random,
        signature: &Signature,
        at: usize,
        ty: &str,
        depth: u32,
    ) -> Expr {
        let name = match (signature.name.as_str(), signature.args.first()) {
            ("to_char", Some(Arg::Type(first))) => match first.as_str() {
                "timestamp" | "timestamptz" | "interval" => "to_char_date",
                _ => "to_char_number",
            },
            (other, _) => other,
        };
        if name == "extract" && at == 0 {
            let words = values::special(name, 0).unwrap_or(&["year"]);
            return Expr::leaf(random.pick(words).to_string());
        }
        if let Some(words) = values::special(name, at)
            && (values::formats(name, at) || !random.chance(1, 10))
        {
            let word = random.pick(words).replace('\'', "''");
            return Expr::leaf(format!("'{word}'"));
        }
        if values::small(name, at) {
            let n = random.below(14) as i64 - 2;
            return Expr::leaf(match ty {
                "_int4" => format!("ARRAY[{n}]"),
                _ => n.to_string(),
            });
        }
        if depth <= 1 && !(name == "timezone" && at == 0) && random.chance(1, 25) {
            // A literal whose type the call decides.
            let text = values::of(ty).map_or("1", |v| *random.pick(v.literals));
            return Expr::leaf(format!("'{}'", text.replace("it''s", "it's").replace('\'', "''")));
        }
        self.typed(random, ty, depth.saturating_sub(1))
    }
}

/// The name of a type's column in the corpus table: `c_int4`, `c__int4`.
pub(super) fn column_suffix(ty: &str) -> String {
    format!("_{ty}")
}

/// Why no call of this signature is made: its name, or a type that has no values.
pub(super) fn left_out_of(s: &Signature) -> Option<String> {
    if s.form == Form::Function && known::left_out(&s.name) {
        return Some(s.name.clone());
    }
    let cast_to = (s.form == Form::Cast).then(|| s.name.clone());
    let args = s.args.iter().filter_map(|a| match a {
        Arg::Type(name) => Some(name.clone()),
        _ => None,
    });
    args.chain(cast_to).find(|name| known::left_out_type(name))
}

/// Types of arguments without edge values.
pub(super) fn without_values(s: &Signature) -> Vec<String> {
    s.args
        .iter()
        .filter_map(|arg| match arg {
            Arg::Type(name) if values::of(name).is_none() => Some(name.clone()),
            _ => None,
        })
        .collect()
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "current_date"
            | "current_time"
            | "current_timestamp"
            | "localtime"
            | "localtimestamp"
            | "current_user"
            | "session_user"
            | "user"
            | "current_role"
            | "current_catalog"
            | "current_schema"
    )
}
