//! Functions that users have made: a signature and a body, kept as text.
//!
//! ```text
//!   Function { id, schema, "price", (item int, rate numeric DEFAULT 1) -> numeric, "select .." }
//! ```
//! Names in a body mean what they mean where the function is called: the descriptor names no
//! table, and nothing keeps a table from being dropped because a body reads it. A schema may have
//! several functions of a name, told apart by the types of what they are given.

use std::sync::Arc;

use braid_types::SqlType;
use serde::{Deserialize, Serialize};

use crate::snapshot::Catalog;

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Object id.
    pub id: u32,
    /// Schema that holds it.
    pub schema: u32,
    /// Name; with the types of its inputs unique in the schema.
    pub name: String,
    /// Parameters in their order, those of the result included.
    pub params: Vec<Parameter>,
    /// The type of its value, or of the rows of a set.
    pub returns: SqlType,
    /// SETOF and TABLE: it gives any number of rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set: bool,
    /// How often its value may change.
    pub stability: Stability,
    /// NULL for NULL, without being asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// What is kept for dumps and means nothing here.
    #[serde(default)]
    pub remarks: Remarks,
    /// Its body: queries, or the expression of RETURN.
    pub body: String,
    /// The body was written as RETURN expression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
}

/// One parameter of a [`Function`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which way it goes.
    pub mode: Mode,
    /// Its type.
    pub ty: SqlType,
    /// What it is if it is not given, as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It is given.
    In,
    /// It is a part of the result.
    Out,
    /// Both.
    InOut,
    /// All arguments from here on, as an array.
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

impl Mode {
    /// Whether callers give it.
    pub fn is_given(self) -> bool {
        matches!(self, Mode::In | Mode::InOut | Mode::Variadic)
    }

    /// Whether it is a part of the result.
    pub fn is_result(self) -> bool {
        matches!(self, Mode::Out | Mode::InOut | Mode::Table)
    }

    /// Its letter in `pg_proc`.
    pub fn letter(self) -> &'static str {
        match self {
            Mode::In => "i",
            Mode::Out => "o",
            Mode::InOut => "b",
            Mode::Variadic => "v",
            Mode::Table => "t",
        }
    }
}

/// How often the value of a function may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stability {
    /// Never for the same arguments.
    Immutable,
    /// Not within a statement.
    Stable,
    /// With every call.
    Volatile,
}

/// What CREATE FUNCTION may say besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remarks {
    /// LEAKPROOF.
    pub leakproof: bool,
    /// SECURITY DEFINER.
    pub definer: bool,
    /// PARALLEL: `u`, `r` or `s`.
    pub parallel: char,
    /// COST, a number as text.
    pub cost: String,
    /// ROWS, in the same way; `0` if it gives no set.
    pub rows: String,
}

impl Default for Remarks {
    fn default() -> Remarks {
        let (cost, rows) = ("100".into(), "0".into());
        Remarks { leakproof: false, definer: false, parallel: 'u', cost, rows }
    }
}

impl Function {
    /// Parameters that callers give, in their order.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.params.iter().filter(|p| p.mode.is_given())
    }

    /// Parameters that are the result: the columns of a row, or of a set of rows.
    pub fn outputs(&self) -> impl Iterator<Item = &Parameter> {
        self.params.iter().filter(|p| p.mode.is_result())
    }

    /// The types that tell it from others of its name.
    pub fn signature(&self) -> Vec<&SqlType> {
        self.inputs().map(|p| &p.ty).collect()
    }

    /// `f(integer, text)`, as messages name it.
    pub fn shown(&self) -> String {
        let types: Vec<String> = self.inputs().map(|p| p.ty.base_name()).collect();
        format!("{}({})", self.name, types.join(","))
    }
}

impl Catalog {
    /// All functions that users have made.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// Function by id.
    pub fn function(&self, id: u32) -> Option<&Arc<Function>> {
        self.functions.get(&id)
    }

    /// Functions of a name in a schema.
    pub fn functions_in<'a>(
        &'a self,
        schema: u32,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Function>> {
        self.functions.values().filter(move |f| f.schema == schema && f.name == name)
    }

    /// Functions of a name in the schemas of a search path: of those that take the same types the
    /// first.
    pub fn resolve_functions(
        &self,
        database: u32,
        search_path: &[String],
        name: &str,
    ) -> Vec<Arc<Function>> {
        let mut found: Vec<Arc<Function>> = Vec::new();
        for schema in search_path.iter().filter_map(|s| self.schema(database, s)) {
            for f in self.functions_in(schema.id, name) {
                if !found.iter().any(|known| same_types(&known.signature(), &f.signature())) {
                    found.push(f.clone());
                }
            }
        }
        found
    }

    /// Adds or replaces a function.
    pub fn put_function(&mut self, f: Function) {
        self.functions.insert(f.id, Arc::new(f));
        self.reindex();
    }

    /// Puts the types as they are now into the functions that have them.
    pub(crate) fn settle_functions(&mut self) {
        let mut changed: Vec<Function> = Vec::new();
        for f in self.functions.values() {
            let stale = |ty: &SqlType| self.as_known(ty).is_some();
            if stale(&f.returns) || f.params.iter().any(|p| stale(&p.ty)) {
                let now = |ty: &SqlType| self.as_known(ty).unwrap_or_else(|| ty.clone());
                let mut f = (**f).clone();
                f.returns = now(&f.returns);
                f.params.iter_mut().for_each(|p| p.ty = now(&p.ty));
                changed.push(f);
            }
        }
        changed.into_iter().for_each(|f| drop(self.functions.insert(f.id, Arc::new(f))));
    }
}

/// Whether two lists of types tell the same function.
pub fn same_types(a: &[&SqlType], b: &[&SqlType]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_base(b))
}
