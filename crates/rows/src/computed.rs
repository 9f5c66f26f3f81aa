//! Expressions of indexes: columns that are computed from a row whenever they are wanted.
//!
//! ```text
//!   CREATE INDEX i ON t ((lower(name))) WHERE active
//!   row      id 7, name 'Ann', active true      as it is stored
//!   decoded  .., lower(name) 'ann'              a hidden column behind the others
//!   entry    /i/'ann'/7                         only if `active` holds
//! ```
//! A row in memory has them as it has its other columns, so that keys, conditions and statistics
//! need not know that they are computed. Where the predicate of their index does not hold they are
//! NULL, and the expression is not evaluated: it may be the predicate that keeps it from failing.
//!
//! Whoever *makes* a row (writers, the build of an index) gets the error of an expression that
//! fails. Whoever reads one does not: a row that is stored was good for all indexes that readers
//! use, and what is wrong with one that is being built is told by its build.

use std::sync::LazyLock;

use braid_catalog::{Index, Table};
use braid_parser::parse_expr;
use braid_scalar::{Bound, EvalContext, ParamTypes, Scope, bind, bind_bool};
use braid_types::{Datum, SqlResult};

/// Index expressions are immutable: what they are evaluated in means nothing to them.
static NOWHERE: LazyLock<EvalContext> = LazyLock::new(EvalContext::constant);

/// One expression of an index.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Position in the table's row.
    pub ordinal: usize,
    /// As it was declared, over the table's columns.
    pub expr: Bound,
    /// When it is evaluated.
    only_if: Option<Predicate>,
    /// Ordinals of what it is made of, its predicate included.
    inputs: Vec<usize>,
}

impl Computed {
    /// The expressions of all indexes of a table, those that are being built included.
    pub fn of_table(table: &Table) -> SqlResult<Vec<Computed>> {
        let mut out = Vec::new();
        for (ordinal, column) in table.columns.iter().enumerate() {
            let Some(text) = &column.expression else { continue };
            let expr = bind(&parse_expr(text)?, &table_scope(table), &mut ParamTypes::default())?;
            let building = table.building_index().map(|(index, _)| index);
            let index = table.indexes.iter().chain(building);
            let index = index.into_iter().find(|i| i.columns.iter().any(|k| k.column == column.id));
            let only_if = index.map(|i| Predicate::of_index(table, i)).transpose()?.flatten();
            let mut inputs = expr.columns();
            inputs.extend(only_if.iter().flat_map(|p| p.inputs.iter().copied()));
            let inputs = inputs.into_iter().collect();
            out.push(Computed { ordinal, expr, only_if, inputs });
        }
        Ok(out)
    }

    /// The value for a row.
    pub fn value(&self, row: &[Datum]) -> SqlResult<Datum> {
        match &self.only_if {
            Some(predicate) if !predicate.holds(row)? => Ok(Datum::Null),
            _ => self.expr.eval(row, &NOWHERE),
        }
    }

    /// What has to be decoded for it.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }
}

/// The condition of a partial index.
#[derive(Clone, Debug)]
pub struct Predicate {
    /// Over the table's columns.
    pub condition: Bound,
    inputs: Vec<usize>,
}

impl Predicate {
    /// The one of an index, if it is partial.
    pub fn of_index(table: &Table, index: &Index) -> SqlResult<Option<Predicate>> {
        let Some(text) = &index.predicate else { return Ok(None) };
        let (scope, mut none) = (table_scope(table), ParamTypes::default());
        let condition = bind_bool(&parse_expr(text)?, "WHERE", &scope, &mut none)?;
        let inputs = condition.columns().into_iter().collect();
        Ok(Some(Predicate { condition, inputs }))
    }

    /// Whether a row has an entry.
    pub fn holds(&self, row: &[Datum]) -> SqlResult<bool> {
        self.condition.eval_bool(row, &NOWHERE)
    }

    /// Ordinals of the columns that it looks at.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }
}

/// Scope of a table's own columns, hidden ones included as hidden.
pub fn table_scope(t: &Table) -> Scope {
    let mut scope = Scope::table(
        &t.name,
        None,
        t.columns.iter().map(|c| (c.name.clone(), c.ty.clone(), c.nullable)),
    );
    for (s, c) in scope.columns_mut().iter_mut().zip(&t.columns) {
        s.hidden = c.hidden;
        s.collation = c.collated();
    }
    scope
}
