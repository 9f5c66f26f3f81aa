//! `pg_proc`, `pg_operator` and `pg_cast`: what expressions can call, from the function table and
//! the rules of conversion. The corpus of expressions is made from these (`scripts/differential`),
//! so what stands here is tested.

use std::sync::{Arc, LazyLock};

use braid_scalar::{
    ArgType, Builtin, Direction, FunctionKind, TypeFunction, Volatility, functions_of,
    type_functions,
};
use braid_types::oid::{CITEXT, CITEXT_ARRAY};
use braid_types::{ArrayValue, CastContext, Datum, SqlResult, SqlType, cast_exists};

use super::sql_functions;
use super::table::{PG_CATALOG, ROOT, View, flag, text};

type Made = SqlResult<Vec<Vec<Datum>>>;

const ANY: u32 = 2276;

fn oid(a: &ArgType) -> u32 {
    match a {
        ArgType::Exact(ty) => ty.oid(),
        ArgType::AnyElement => 2283,
        ArgType::AnyArray => 2277,
        ArgType::AnyEnum => 3500,
        ArgType::AnyRange => 3831,
        ArgType::AnyMultirange => 4537,
        ArgType::Any => ANY,
    }
}

/// Oid of the first of them.
const FIRST_FUNCTION: u32 = 10_000;

/// What a row of `pg_proc` says of something that is built in.
struct Proc<'a> {
    oid: u32,
    name: &'a str,
    kind: &'static str,
    /// Type of the arguments that come at the end in any number, 0 if none do.
    variadic: u32,
    strict: bool,
    /// Whether it gives rows.
    set: bool,
    volatility: &'static str,
    args: Vec<u32>,
    result: u32,
}

impl Proc<'_> {
    fn row(self) -> Vec<Datum> {
        let count = self.args.len() as i16;
        let args = self.args.into_iter().map(Datum::Oid).collect();
        let mut row = vec![
            Datum::Oid(self.oid),
            text(self.name),
            Datum::Oid(PG_CATALOG),
            Datum::Oid(ROOT),
            Datum::Oid(12),
            Datum::Float4(1.0),
            Datum::Float4(if self.set { 100.0 } else { 0.0 }),
            Datum::Oid(self.variadic),
            Datum::Oid(0),
            text(self.kind),
            flag(false),
            flag(false),
            flag(self.strict),
            flag(self.set),
            text(self.volatility),
            text("s"),
            Datum::Int2(count),
            Datum::Int2(0),
            Datum::Oid(self.result),
            Datum::Array(Arc::new(ArrayValue::vector(SqlType::Oid, args))),
        ];
        row.extend(std::iter::repeat_n(Datum::Null, 5));
        row.push(text(self.name));
        row
    }
}

fn row(oid_of_function: u32, f: &Builtin) -> Vec<Datum> {
    let kind = f.kind();
    let proc = Proc {
        oid: oid_of_function,
        name: f.name,
        kind: match kind {
            FunctionKind::Aggregate => "a",
            FunctionKind::Window => "w",
            _ => "f",
        },
        variadic: if f.variadic { ANY } else { 0 },
        strict: f.strict,
        set: kind == FunctionKind::SetReturning,
        volatility: volatility(f),
        args: f.args.iter().map(oid).collect(),
        result: oid(&f.ret),
    };
    proc.row()
}

/// One that reads or writes values of a type.
fn type_function(f: &TypeFunction) -> Vec<Datum> {
    const CSTRING: u32 = 2275;
    const INTERNAL: u32 = 2281;
    let of = f.ty().map_or(ANY, |ty| ty.oid());
    let (mut args, result) = match f.direction {
        Direction::TextIn => (vec![CSTRING], of),
        Direction::TextOut => (vec![of], CSTRING),
        Direction::BinaryIn => (vec![INTERNAL], of),
        Direction::BinaryOut => (vec![of], SqlType::Bytea.oid()),
    };
    if f.modified {
        args.extend([SqlType::Oid.oid(), SqlType::Int4.oid()]);
    }
    let proc = Proc {
        oid: f.oid,
        name: f.name,
        kind: "f",
        variadic: 0,
        strict: true,
        set: false,
        volatility: "i",
        args,
        result,
    };
    proc.row()
}

fn volatility(f: &Builtin) -> &'static str {
    match f.volatility {
        Volatility::Immutable => "i",
        Volatility::Stable => "s",
        Volatility::Volatile => "v",
    }
}

/// Kinds that are called by a name, in the order of their rows.
const NAMED: [FunctionKind; 4] = [
    FunctionKind::Function,
    FunctionKind::Aggregate,
    FunctionKind::SetReturning,
    FunctionKind::Window,
];

/// What the rows of `pg_proc` come from, in their order: asked for each oid that is shown as a
/// name, so that it is put in order once.
static FUNCTIONS: LazyLock<Vec<&'static Builtin>> =
    LazyLock::new(|| NAMED.into_iter().flat_map(functions_of).collect());

/// All that is called by a name, with its oid.
pub(super) fn functions() -> impl Iterator<Item = (u32, &'static Builtin)> {
    (FIRST_FUNCTION..).zip(FUNCTIONS.iter().copied())
}

/// What is called by a name, by its oid.
pub(super) fn function(oid: u32) -> Option<&'static Builtin> {
    FUNCTIONS.get(oid.checked_sub(FIRST_FUNCTION)? as usize).copied()
}

/// The type of a parameter as `regprocedure` shows it.
pub(super) fn argument_name(a: &ArgType) -> String {
    match a {
        ArgType::Exact(ty) => ty.base_name(),
        ArgType::AnyElement => "anyelement".to_string(),
        ArgType::AnyArray => "anyarray".to_string(),
        ArgType::AnyEnum => "anyenum".to_string(),
        ArgType::AnyRange => "anyrange".to_string(),
        ArgType::AnyMultirange => "anymultirange".to_string(),
        ArgType::Any => "\"any\"".to_string(),
    }
}

pub(super) fn pg_proc(v: &View<'_>) -> Made {
    // Those that give binary forms are listed with their types.
    let own = |f: &Builtin| !type_functions().iter().any(|of_type| of_type.name == f.name);
    let mut rows: Vec<_> =
        functions().filter(|(_, f)| own(f)).map(|(oid, f)| row(oid, f)).collect();
    rows.extend(type_functions().iter().map(type_function));
    rows.extend(sql_functions::proc_rows(v));
    Ok(of_extensions(v, rows))
}

/// Rows without those about `citext`, unless its extension is there.
fn of_extensions(v: &View<'_>, mut rows: Vec<Vec<Datum>>) -> Vec<Vec<Datum>> {
    fn is_citext(value: &Datum) -> bool {
        match value {
            Datum::Oid(oid) => [CITEXT, CITEXT_ARRAY].contains(oid),
            Datum::Array(array) => array.items.iter().any(is_citext),
            _ => false,
        }
    }
    if v.catalog.extension(v.database_id, "citext").is_none() {
        rows.retain(|row| !row.iter().any(is_citext));
    }
    rows
}

/// An operator: what is left and right of it, by their oids (0 for nothing), and its result.
pub(super) struct Operator {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    pub(super) left: u32,
    pub(super) right: u32,
    result: u32,
}

/// All operators, in the order of their rows.
static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| {
    let mut all: Vec<Operator> = Vec::new();
    let mut add = |name, args: &[u32], result| {
        let (left, right) = match args {
            [a, b] => (*a, *b),
            [a] => (0, *a),
            _ => (0, 0),
        };
        let oid = 12_000 + all.len() as u32;
        all.push(Operator { oid, name, left, right, result });
    };
    for f in functions_of(FunctionKind::Operator) {
        let args: Vec<u32> = f.args.iter().map(oid).collect();
        // LIKE with an escape is three values and no operator.
        if args.len() <= 2 && f.name != "similar_to" {
            add(f.name, &args, oid(&f.ret));
        }
    }
    let boolean = SqlType::Bool.oid();
    for ty in SqlType::all_base().filter(|ty| ty.is_comparable()) {
        for name in ["=", "<>", "<", "<=", ">", ">="] {
            add(name, &[ty.oid(), ty.oid()], boolean);
        }
    }
    all
});

/// All operators.
pub(super) fn operators() -> impl Iterator<Item = &'static Operator> {
    OPERATORS.iter()
}

fn operator(o: &Operator) -> Vec<Datum> {
    let &Operator { oid, name, left, right, result } = o;
    let equality = name == "=";
    let mut row = vec![
        Datum::Oid(oid),
        text(name),
        Datum::Oid(PG_CATALOG),
        Datum::Oid(ROOT),
        text(if left == 0 { "l" } else { "b" }),
        flag(equality),
        flag(equality),
        Datum::Oid(left),
        Datum::Oid(right),
        Datum::Oid(result),
    ];
    row.extend(std::iter::repeat_n(Datum::Oid(0), 5));
    row
}

pub(super) fn pg_operator(v: &View<'_>) -> Made {
    Ok(of_extensions(v, operators().map(operator).collect()))
}

/// `xid`, whose values come as oids.
const XID: u32 = 28;

pub(super) fn pg_cast(v: &View<'_>) -> Made {
    let mut rows = Vec::new();
    let real = |ty: &&SqlType| {
        !matches!(ty, SqlType::Record | SqlType::Void | SqlType::Unknown | SqlType::CharByte)
    };
    for from in SqlType::all_base().filter(real) {
        for to in SqlType::all_base().filter(real) {
            let Some(context) = cast_exists(from, to).filter(|_| from != to) else { continue };
            let is_xid = *from == SqlType::Xid8 && *to == SqlType::Oid;
            rows.push(vec![
                Datum::Oid(14_000 + rows.len() as u32),
                Datum::Oid(from.oid()),
                Datum::Oid(if is_xid { XID } else { to.oid() }),
                Datum::Oid(0),
                text(match context {
                    CastContext::Implicit => "i",
                    CastContext::Assignment => "a",
                    CastContext::Explicit => "e",
                }),
                text("f"),
            ]);
        }
    }
    Ok(of_extensions(v, rows))
}
