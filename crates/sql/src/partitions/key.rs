//! The partition key of a table or of a partition: expressions over its rows.

use braid_catalog::{KeyPart, PartitionKey, Strategy, Table};
use braid_parser::parse_expr;
use braid_rows::table_scope;
use braid_scalar::{Bound, EvalContext, ParamTypes, bind};
use braid_types::{Datum, SqlResult, SqlType, Style};

/// A partition key, bound over the table's rows.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) strategy: Strategy,
    parts: Vec<Bound>,
    /// What messages call it: `(a, lower(b))`.
    names: Vec<String>,
}

impl Key {
    /// Binds it.
    pub(crate) fn new(table: &Table, key: &PartitionKey) -> SqlResult<Key> {
        let scope = table_scope(table);
        let (mut parts, mut names) = (Vec::new(), Vec::new());
        for part in &key.parts {
            let (bound, name) = match part {
                KeyPart::Column(id) => {
                    let at = table.ordinal(*id).unwrap_or_default();
                    let column = &table.columns[at];
                    (Bound::column(at, column.ty.clone()), column.name.clone())
                }
                KeyPart::Expression(text) => {
                    (bind(&parse_expr(text)?, &scope, &mut ParamTypes::default())?, text.clone())
                }
            };
            parts.push(bound);
            names.push(name);
        }
        Ok(Key { strategy: key.strategy, parts, names })
    }

    /// Types of its values.
    pub(crate) fn types(&self) -> impl Iterator<Item = &SqlType> {
        self.parts.iter().map(Bound::ty)
    }

    /// How many values it has.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The name of one of its parts.
    pub(crate) fn name(&self, at: usize) -> &str {
        &self.names[at]
    }

    /// Its values in a row.
    pub(crate) fn values(&self, row: &[Datum], eval: &EvalContext) -> SqlResult<Vec<Datum>> {
        self.parts.iter().map(|part| part.eval(row, eval)).collect()
    }

    /// `(a, b) = (1, null)`.
    pub(crate) fn described(&self, values: &[Datum]) -> String {
        let values: Vec<String> = values.iter().map(crate::dml::show).collect();
        format!("({}) = ({})", self.names.join(", "), values.join(", "))
    }

    /// A value of a bound.
    pub(crate) fn value(&self, at: usize, text: &str) -> SqlResult<Datum> {
        Datum::parse(text, self.parts[at].ty(), Style::utc())
    }
}
