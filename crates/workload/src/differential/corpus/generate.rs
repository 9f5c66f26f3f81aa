//! Random expressions as trees, so that a difference can be shrunk to the part that causes it.

use braid_env::random::Random;

use super::catalog::{Arg, Claims, Form, Signature};
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
            .filter(|s| s.volatility != 'v' && !known::left_out(&s.name))
            .filter(|s| s.args.iter().all(known_type))
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
        let mut parts = Vec::new();
        let part = |random: &mut Random, ty: &str, parts: &mut Vec<Expr>| {
            let e = self.typed(random, ty, depth - 1);
            let sql = format!("({})", e.sql);
            parts.push(e);
            sql
        };
        let other = *random.pick(WANTED);
        let (label, sql) = match random.below(if ty == "bool" { 13 } else { 5 }) {
            0 => {
                let (c, a, b) = (
                    part(random, "bool", &mut parts),
                    part(random, ty, &mut parts),
                    part(random, ty, &mut parts),
                );
                ("CASE", format!("CASE WHEN {c} THEN {a} ELSE {b} END"))
            }
            1 => {
                let (a, b) = (part(random, ty, &mut parts), part(random, ty, &mut parts));
                ("COALESCE", format!("coalesce({a}, {b})"))
            }
            2 => {
                let (a, b) = (part(random, ty, &mut parts), part(random, ty, &mut parts));
                ("NULLIF", format!("nullif({a}, {b})"))
            }
            3 => {
                let (a, b) = (part(random, ty, &mut parts), part(random, ty, &mut parts));
                let name = if random.chance(1, 2) { "greatest" } else { "least" };
                ("GREATEST", format!("{name}({a}, {b})"))
            }
            4 => {
                let (o, v, a) = (
                    part(random, other, &mut parts),
                    part(random, other, &mut parts),
                    part(random, ty, &mut parts),
                );
                ("CASE x", format!("CASE {o} WHEN {v} THEN {a} END"))
            }
            5 => {
                let (a, b) = (part(random, other, &mut parts), part(random, other, &mut parts));
                let op = *random.pick(&["=", "<>", "<", "<=", ">", ">="]);
                ("comparison", format!("{a} {op} {b}"))
            }
            6 => {
                let (a, b) = (part(random, other, &mut parts), part(random, other, &mut parts));
                let not = if random.chance(1, 2) { "NOT " } else { "" };
                ("IS DISTINCT FROM", format!("{a} IS {not}DISTINCT FROM {b}"))
            }
            7 => {
                let (a, b, c) = (
                    part(random, other, &mut parts),
                    part(random, other, &mut parts),
                    part(random, other, &mut parts),
                );
                ("BETWEEN", format!("{a} BETWEEN {b} AND {c}"))
            }
            8 => {
                let (a, b, c) = (
                    part(random, other, &mut parts),
                    part(random, other, &mut parts),
                    part(random, other, &mut parts),
                );
                ("IN", format!("{a} IN ({b}, {c})"))
            }
            9 => {
                let (a, b) = (part(random, "bool", &mut parts), part(random, "bool", &mut parts));
                let op = if random.chance(1, 2) { "AND" } else { "OR" };
                ("AND", format!("{a} {op} {b}"))
            }
            10 => {
                let a = part(random, "bool", &mut parts);
                ("NOT", format!("NOT {a}"))
            }
            11 => {
                let a = part(random, "bool", &mut parts);
                let truth = *random.pick(&["TRUE", "FALSE", "UNKNOWN", "NOT TRUE", "NOT UNKNOWN"]);
                ("IS TRUE", format!("{a} IS {truth}"))
            }
            _ => {
                let element = *random.pick(values::ELEMENTS);
                let a = part(random, element, &mut parts);
                let b = part(random, &format!("_{element}"), &mut parts);
                let op = *random.pick(&["=", "<>", "<", ">="]);
                let all = if random.chance(1, 2) { "ANY" } else { "ALL" };
                ("ANY", format!("{a} {op} {all} ({b})"))
            }
        };
        Expr { sql, label: label.to_string(), parts }
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
            && !random.chance(1, 10)
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
        if depth <= 1 && random.chance(1, 25) {
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

fn known_type(arg: &Arg) -> bool {
    match arg {
        Arg::Type(name) => {
            values::of(name).is_some() || values::of(name.trim_matches('_')).is_some()
        }
        _ => true,
    }
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
