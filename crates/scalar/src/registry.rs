//! The registry: every function, operator, aggregate, set-returning and window function, once.
//!
//! An entry is a signature as text, with a line of documentation behind `--` at the first of a
//! name, and the code:
//!
//! ```text
//!   t.add("lower(text) text -- in small letters", |a, _| ...)
//!   t.add("+(int4, int4) int4", |a, _| ...)           operators are functions named by their sign
//!   t.add("concat(...any) text", |a, _| ...).lax()    variadic; lax: called with NULLs too
//!   t.aggregate("sum(int4) int8", |types| Box::new(...))           one Accumulator for each group
//!   t.rows("unnest(anyarray) anyelement", |a, _| ...)              all rows of one call
//!   t.window("rank() int8 -- ...")                                 computed by the general planner
//! ```
//!
//! Everything else is made of it: what calls bind to in both kinds of plans, `pg_proc`,
//! `docs/functions.md`, and what the corpus compares with PostgreSQL.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use braid_types::{Datum, SqlError, SqlResult, SqlType};

use crate::aggregates::{self, Accumulator, AggregateCode, AggregateTypes, Direct};
use crate::windows::WindowCode;
use crate::{EvalContext, Volatility, array_operators, functions, operators, sets, windows};

/// What a parameter of a function accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgType {
    /// This type.
    Exact(SqlType),
    /// Any type; all of these in one call are the same type.
    AnyElement,
    /// Any array, of the call's any-element type.
    AnyArray,
    /// As `AnyElement`, of enum types only.
    AnyEnum,
    /// Ranges of a type that a user has made; any-element is then the type of its bounds.
    AnyRange,
    /// Several such ranges.
    AnyMultirange,
    /// Any type, each on its own.
    Any,
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgType::Exact(ty) => write!(f, "{}", ty.base_name()),
            ArgType::AnyElement => f.write_str("anyelement"),
            ArgType::AnyArray => f.write_str("anyarray"),
            ArgType::AnyEnum => f.write_str("anyenum"),
            ArgType::AnyRange => f.write_str("anyrange"),
            ArgType::AnyMultirange => f.write_str("anymultirange"),
            ArgType::Any => f.write_str("any"),
        }
    }
}

/// Code of a function of values.
pub(crate) type Eval = fn(&[Datum], &EvalContext) -> SqlResult<Datum>;

/// Rows of values, in their order.
pub enum Rows {
    /// A few that are there.
    All(Vec<Vec<Datum>>),
    /// Any number: each is made when it is asked for.
    Each(Box<dyn Iterator<Item = SqlResult<Vec<Datum>>> + Send>),
}

impl Rows {
    /// None.
    pub(crate) fn none() -> Rows {
        Rows::All(Vec::new())
    }

    /// Rows that are made one by one.
    pub(crate) fn each(rows: impl Iterator<Item = SqlResult<Vec<Datum>>> + Send + 'static) -> Rows {
        Rows::Each(Box::new(rows))
    }

    /// One for each number below `count`. Rows of a large value are many times its size: they are
    /// made out of it one by one.
    pub(crate) fn numbered(
        count: usize,
        row: impl Fn(usize) -> Vec<Datum> + Send + 'static,
    ) -> Rows {
        Rows::each((0..count).map(move |at| Ok(row(at))))
    }
}

impl FromIterator<Vec<Datum>> for Rows {
    fn from_iter<I: IntoIterator<Item = Vec<Datum>>>(rows: I) -> Rows {
        Rows::All(rows.into_iter().collect())
    }
}

impl IntoIterator for Rows {
    type Item = SqlResult<Vec<Datum>>;
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + Send>;

    fn into_iter(self) -> Self::IntoIter {
        match self {
            Rows::All(rows) => Box::new(rows.into_iter().map(Ok)),
            Rows::Each(rows) => rows,
        }
    }
}

/// Code of a function that gives rows.
pub(crate) type RowsEval = fn(&[Datum], &EvalContext) -> SqlResult<Rows>;

/// Columns of a function that gives rows.
#[derive(Clone, Copy, Debug)]
pub enum Columns {
    /// One, named like the function, of the result's type.
    One,
    /// These, with their types.
    Named(&'static [(&'static str, &'static str)]),
    /// One for each argument, of its element type.
    Elements,
}

/// How a function is run.
#[derive(Clone, Copy)]
pub enum Code {
    /// One value of a row of arguments.
    Value(Eval),
    /// The rows of a row of arguments.
    Rows(RowsEval, Columns),
    /// One value of the rows of a group.
    Aggregate(AggregateCode),
    /// One value of a row and those around it.
    Window(WindowCode),
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// A function of values.
    Function,
    /// An operator.
    Operator,
    /// An aggregate.
    Aggregate,
    /// A function that gives rows.
    SetReturning,
    /// A window function.
    Window,
}

/// One overload of a function or operator.
pub struct Builtin {
    /// Name, or sign of an operator.
    pub name: &'static str,
    /// Parameter types; with `variadic`, the last repeats.
    pub args: Vec<ArgType>,
    /// Whether the last parameter repeats.
    pub variadic: bool,
    /// Result type.
    pub ret: ArgType,
    /// NULL in, NULL (or no row) out.
    pub strict: bool,
    /// How often the result may change.
    pub volatility: Volatility,
    /// What it does, in a line; at the first overload of a name.
    pub about: &'static str,
    /// The code.
    pub code: Code,
    /// PostgreSQL has no such function: one of a user goes before it.
    pub guest: bool,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Builtin {
    /// Kind of this entry.
    pub fn kind(&self) -> FunctionKind {
        match self.code {
            Code::Value(_) if is_sign(self.name) => FunctionKind::Operator,
            Code::Value(_) => FunctionKind::Function,
            Code::Rows(..) => FunctionKind::SetReturning,
            Code::Aggregate(_) => FunctionKind::Aggregate,
            Code::Window(_) => FunctionKind::Window,
        }
    }

    /// The value for a row of arguments.
    ///
    /// # Errors
    /// The function's own.
    pub fn eval(&self, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
        match self.code {
            Code::Value(eval) => eval(args, ctx),
            _ => Err(SqlError::internal(format!("{} has no value for one row", self.name))),
        }
    }

    /// `name(arguments) result`, as the documentation shows it.
    pub fn signature(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ArgType::to_string).collect();
        let dots = if self.variadic { ", ..." } else { "" };
        format!("{}({}{dots}) {}", self.name, args.join(", "), self.ret)
    }
}

fn is_sign(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The registry while it is being filled.
#[derive(Default)]
pub(crate) struct Table {
    by_name: HashMap<&'static str, Vec<Builtin>>,
    /// What is added now are guests.
    guests: bool,
}

/// The entry just added, for setting its properties.
pub(crate) struct Added<'a>(&'a mut Builtin);

impl Added<'_> {
    /// Called with NULL arguments too.
    pub(crate) fn lax(self) -> Self {
        self.0.strict = false;
        self
    }

    /// Depends on the session or the statement's time.
    pub(crate) fn stable(self) -> Self {
        self.0.volatility = Volatility::Stable;
        self
    }

    /// May differ at each call.
    pub(crate) fn volatile(self) -> Self {
        self.0.volatility = Volatility::Volatile;
        self
    }

    /// Gives these columns.
    pub(crate) fn columns(self, names: &'static [(&'static str, &'static str)]) -> Self {
        if let Code::Rows(_, columns) = &mut self.0.code {
            *columns = Columns::Named(names);
        }
        self
    }

    /// Gives a column of elements for each argument.
    pub(crate) fn elements(self) -> Self {
        if let Code::Rows(_, columns) = &mut self.0.code {
            *columns = Columns::Elements;
        }
        self
    }

    /// The order of the rows shows in the value.
    pub(crate) fn by_order(self) -> Self {
        if let Code::Aggregate(code) = &mut self.0.code {
            code.by_order = true;
        }
        self
    }

    /// Its value is the first, or the last, of the sorted values.
    pub(crate) fn extreme(self, last: bool) -> Self {
        if let Code::Aggregate(code) = &mut self.0.code {
            code.extreme = Some(last);
        }
        self
    }

    /// Called with WITHIN GROUP behind so many arguments.
    pub(crate) fn within_group(self, direct: usize) -> Self {
        self.behind(Direct::Count(direct))
    }

    /// Called with WITHIN GROUP behind the values of its keys.
    pub(crate) fn within_group_as_given(self) -> Self {
        self.behind(Direct::AsKeys)
    }

    fn behind(self, direct: Direct) -> Self {
        if let Code::Aggregate(code) = &mut self.0.code {
            code.within_group = Some(direct);
        }
        self
    }
}

fn arg_type(text: &str) -> ArgType {
    match text {
        "any" => ArgType::Any,
        "anyelement" => ArgType::AnyElement,
        "anyarray" => ArgType::AnyArray,
        "anyenum" => ArgType::AnyEnum,
        "anyrange" => ArgType::AnyRange,
        "anymultirange" => ArgType::AnyMultirange,
        name => ArgType::Exact(
            SqlType::from_any_name(name)
                .unwrap_or_else(|| panic!("signature names the unknown type {name}")),
        ),
    }
}

impl Table {
    /// Whether what is added from now on are guests (see [`Builtin::guest`]).
    pub(crate) fn guests(&mut self, guests: bool) {
        self.guests = guests;
    }

    /// Adds a function of values by its signature.
    pub(crate) fn add(&mut self, signature: &'static str, eval: Eval) -> Added<'_> {
        self.entry(signature, Code::Value(eval))
    }

    /// Adds a function that is an operator by another name, of those operands that fit.
    pub(crate) fn alias(
        &mut self,
        name: &'static str,
        (sign, about): (&'static str, &'static str),
        fits: fn(&[ArgType]) -> bool,
    ) {
        let all = self.by_name.get(sign).map_or(&[][..], Vec::as_slice);
        let guest = self.guests;
        let own: Vec<Builtin> = all
            .iter()
            .filter(|operator| fits(&operator.args))
            .map(|operator| Builtin {
                name,
                args: operator.args.clone(),
                ret: operator.ret.clone(),
                about: "",
                guest,
                ..*operator
            })
            .collect();
        let list = self.by_name.entry(name).or_default();
        for entry in own {
            if list.iter().all(|known| known.args != entry.args) {
                list.push(entry);
            }
        }
        if let Some(first) = list.first_mut().filter(|first| first.about.is_empty()) {
            first.about = about;
        }
    }

    /// Adds a function that gives rows.
    pub(crate) fn rows(&mut self, signature: &'static str, eval: RowsEval) -> Added<'_> {
        self.entry(signature, Code::Rows(eval, Columns::One))
    }

    /// Adds an aggregate: what makes the state of an empty group.
    pub(crate) fn aggregate(
        &mut self,
        signature: &'static str,
        start: fn(AggregateTypes<'_>) -> Box<dyn Accumulator>,
    ) -> Added<'_> {
        let code = AggregateCode { start, by_order: false, within_group: None, extreme: None };
        self.entry(signature, Code::Aggregate(code)).lax()
    }

    /// Adds a window function.
    pub(crate) fn window(&mut self, signature: &'static str, code: WindowCode) -> Added<'_> {
        self.entry(signature, Code::Window(code)).lax()
    }

    fn entry(&mut self, text: &'static str, code: Code) -> Added<'_> {
        let (signature, about) = text.split_once(" -- ").unwrap_or((text, ""));
        let open = signature.find('(').expect("signature has arguments");
        let close = signature.rfind(')').expect("signature has arguments");
        let name = &signature[..open];
        let mut variadic = false;
        let args = signature[open + 1..close]
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .map(|a| arg_type(a.strip_prefix("...").inspect(|_| variadic = true).unwrap_or(a)))
            .collect();
        let list = self.by_name.entry(name).or_default();
        list.push(Builtin {
            name,
            args,
            variadic,
            ret: arg_type(signature[close + 1..].trim()),
            strict: true,
            volatility: Volatility::Immutable,
            about,
            code,
            guest: self.guests,
        });
        Added(list.last_mut().expect("just pushed"))
    }
}

fn table() -> &'static HashMap<&'static str, Vec<Builtin>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Builtin>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::default();
        operators::fill(&mut table);
        array_operators::fill(&mut table);
        for fill in
            [functions::SUBJECTS, aggregates::SUBJECTS, sets::SUBJECTS].into_iter().flatten()
        {
            fill(&mut table);
        }
        windows::fill(&mut table);
        table.by_name
    })
}

/// Everything that is registered, by name.
pub fn functions_of(kind: FunctionKind) -> Vec<&'static Builtin> {
    let mut all: Vec<&'static Builtin> = table()
        .values()
        .flatten()
        .filter(|b| b.kind() == kind)
        // SIMILAR TO is syntax.
        .filter(|b| b.name != "similar_to")
        .collect();
    all.sort_by_key(|b| (b.name, b.args.len(), b.signature()));
    all
}

/// The overloads of a name.
pub fn overloads(name: &str) -> &'static [Builtin] {
    table().get(name).map_or(&[], Vec::as_slice)
}

fn has(name: &str, kind: FunctionKind) -> bool {
    overloads(name).iter().any(|b| b.kind() == kind)
}

/// Whether a function name (folded, without schema) is an aggregate.
pub fn is_aggregate(name: &str) -> bool {
    has(name, FunctionKind::Aggregate)
}

/// Whether a function name (folded, without schema) returns a set of rows.
pub fn is_set_returning(name: &str) -> bool {
    has(name, FunctionKind::SetReturning)
}

/// Whether there is a window function of this name, which some aggregates have as well.
pub(crate) fn is_window(name: &str) -> bool {
    has(name, FunctionKind::Window)
}

/// Whether an aggregate of this name ranks a row that is given to it.
pub fn is_hypothetical(name: &str) -> bool {
    overloads(name).iter().any(|entry| match &entry.code {
        Code::Aggregate(code) => code.within_group == Some(Direct::AsKeys),
        _ => false,
    })
}

/// Whether a function of this name may give another value at each call.
pub(crate) fn is_volatile(name: &str) -> bool {
    overloads(name).iter().any(|b| b.volatility == Volatility::Volatile)
}
