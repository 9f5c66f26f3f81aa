//! The domains of `information_schema`, which every database has. They can be named in casts; no
//! column is of one, since they are in no catalog.

use std::sync::{Arc, LazyLock};

use braid_parser::parse_expr;
use braid_scalar::{Domain, ParamTypes, Refinement};
use braid_types::{SqlResult, SqlType};

use super::in_reach::value_scope;

/// One of them.
pub(super) struct StandardDomain {
    name: &'static str,
    pub(super) base: SqlType,
    /// Digits of seconds.
    precision: Option<u8>,
    /// The name of its condition, and the condition.
    check: Option<(&'static str, &'static str)>,
}

static ALL: LazyLock<[StandardDomain; 5]> = LazyLock::new(|| {
    let domain = |name, base| StandardDomain { name, base, precision: None, check: None };
    [
        StandardDomain {
            check: Some(("cardinal_number_domain_check", "value >= 0")),
            ..domain("cardinal_number", SqlType::Int4)
        },
        domain("character_data", SqlType::Varchar(None)),
        domain("sql_identifier", SqlType::Name),
        StandardDomain { precision: Some(2), ..domain("time_stamp", SqlType::TimestampTz) },
        StandardDomain {
            check: Some(("yes_or_no_check", "value IN ('YES', 'NO')")),
            ..domain("yes_or_no", SqlType::Varchar(Some(3)))
        },
    ]
});

/// The domain that a name with its schema means.
pub(super) fn named(parts: &[String]) -> Option<&'static StandardDomain> {
    let [schema, name] = parts else { return None };
    let mut all = ALL.iter();
    (schema == "information_schema").then(|| all.find(|own| own.name == *name)).flatten()
}

impl StandardDomain {
    /// What it asks of values.
    ///
    /// # Errors
    /// Those of binding its condition.
    pub(super) fn refinement(&self, params: &mut ParamTypes) -> SqlResult<Refinement> {
        let mut checks = Vec::new();
        if let Some((name, condition)) = self.check {
            let (expr, scope) = (parse_expr(condition)?, value_scope(&self.base));
            let bound = braid_scalar::bind_bool(&expr, "CHECK", &scope, params)?;
            checks.push((name.to_string(), bound));
        }
        let name = format!("information_schema.{}", self.name);
        let domain =
            Some(Arc::new(Domain { name, place: None, oids: None, not_null: false, checks }));
        Ok(Refinement { precision: self.precision, domain, ..Refinement::default() })
    }
}
