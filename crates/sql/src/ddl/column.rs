//! Column declarations: types, defaults, serial and identity, generated columns.

use std::sync::Arc;

use braid_catalog::{Column, ColumnOptions, Identity, Refined, Table};
use braid_types::{
    Collation, DEFAULT_COLLATION, IntervalFields, SqlError, SqlResult, SqlState, SqlType,
};
use sqlparser::ast;

use super::{
    Change, bad_table, commit_timestamp, composite, constraint, named_relations, sequence,
};
use braid_parser::{Name, SequenceChange};
use braid_rows::table_scope;
use braid_scalar::{Scope, ident_name};

/// What a column declaration says beyond the column itself.
pub(super) struct Declared {
    pub(super) name: String,
    /// Inline constraints, in the form of table constraints without columns.
    pub(super) constraints: Vec<ast::TableConstraint>,
    /// A sequence to create: serial or identity.
    sequence: Option<SequenceChange>,
}

/// The plain type behind serial types.
fn serial(ty: &ast::DataType) -> Option<SqlType> {
    match ty.to_string().to_lowercase().as_str() {
        "serial" | "serial4" => Some(SqlType::Int4),
        "bigserial" | "serial8" => Some(SqlType::Int8),
        "smallserial" | "serial2" => Some(SqlType::Int2),
        _ => None,
    }
}

/// 42701 for what every table of PostgreSQL has beside its columns: dumps would not load there, and
/// programs that ask for it mean that.
pub(in crate::ddl) fn check_name(name: &str) -> SqlResult<()> {
    const SYSTEM: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];
    if !SYSTEM.contains(&name) {
        return Ok(());
    }
    let text = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text))
}

/// Adds the declared column to the table.
pub(super) fn declare(c: &Change, t: &mut Table, def: &ast::ColumnDef) -> SqlResult<Declared> {
    let name = ident_name(&def.name);
    check_name(&name)?;
    if t.column_named(&name).is_some() {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{name}\" specified more than once"),
        ));
    }
    let serial = serial(&def.data_type);
    let commit_time = commit_timestamp::is_declared(&def.data_type);
    let ty = match &serial {
        Some(ty) => ty.clone(),
        None if commit_time => SqlType::TimestampTz,
        None => c.ctx.type_of(&def.data_type)?,
    };
    if matches!(ty, SqlType::Record | SqlType::Void | SqlType::Unknown) {
        return Err(bad_table(format!("column \"{name}\" has pseudo-type {}", ty.name())));
    }
    composite::refuse_row_type(c, &name, &ty)?;
    let mut out = Declared {
        name: name.clone(),
        constraints: Vec::new(),
        sequence: serial.is_some().then(SequenceChange::default),
    };
    let refinement = match &serial {
        None if !commit_time => refined(c, &def.data_type)?,
        _ => None,
    };
    check_conflicts(&t.name, &name, &def.options, serial.is_some())?;
    let collates = |o: &&ast::ColumnOptionDef| matches!(o.option, ast::ColumnOption::Collation(_));
    if def.options.iter().filter(collates).count() > 1 {
        return Err(SqlError::syntax("multiple COLLATE clauses not allowed"));
    }
    let nullable = serial.is_none();
    let collation = of_domain(c, refinement);
    let options = ColumnOptions { collation, ..ColumnOptions::default() };
    let new = Column::new(t.next_column, name, ty);
    let mut col = Column { nullable, refinement, commit_time, options, ..new };
    for o in &def.options {
        option(c, &mut col, &mut out, o)?;
    }
    t.next_column += 1;
    t.columns.push(col);
    Ok(out)
}

/// What a column declaration says of NULL and of where values come from, as far as it was read.
#[derive(Default)]
struct Said {
    not_null: Option<bool>,
    default: bool,
    identity: bool,
    generated: bool,
}

impl Said {
    /// What is wrong with one more saying of whether values may be NULL.
    fn null(&mut self, not_null: bool) -> Option<&'static str> {
        let before = self.not_null.replace(not_null);
        (before == Some(!not_null)).then_some("conflicting NULL/NOT NULL declarations")
    }

    /// What is wrong with one more option.
    fn option(&mut self, option: &ast::ColumnOption) -> Option<&'static str> {
        let wrong = match option {
            ast::ColumnOption::Null => self.null(false),
            ast::ColumnOption::NotNull => self.null(true),
            ast::ColumnOption::Default(_) => {
                let again = std::mem::replace(&mut self.default, true);
                again.then_some("multiple default values specified")
            }
            ast::ColumnOption::Generated { generation_expr: None, .. } => {
                match std::mem::replace(&mut self.identity, true) {
                    true => Some("multiple identity specifications"),
                    false => self.null(true),
                }
            }
            ast::ColumnOption::Generated { .. } => {
                let again = std::mem::replace(&mut self.generated, true);
                again.then_some("multiple generation clauses specified")
            }
            _ => None,
        };
        wrong.or(match (self.default, self.identity, self.generated) {
            (true, true, _) => Some("both default and identity specified"),
            (true, _, true) => Some("both default and generation expression specified"),
            (_, true, true) => Some("both identity and generation expression specified"),
            _ => None,
        })
    }
}

/// 42601 for options that contradict each other. A serial column has a default, and is NOT NULL.
fn check_conflicts(
    table: &str,
    column: &str,
    options: &[ast::ColumnOptionDef],
    serial: bool,
) -> SqlResult<()> {
    let of_serial = [
        ast::ColumnOption::Default(ast::Expr::Identifier(ast::Ident::new("nextval"))),
        ast::ColumnOption::NotNull,
    ];
    let of_serial = of_serial.iter().filter(|_| serial);
    let mut said = Said::default();
    let wrong = options.iter().map(|o| &o.option).chain(of_serial).find_map(|o| said.option(o));
    wrong.map_or(Ok(()), |wrong| {
        Err(SqlError::syntax(format!("{wrong} for column \"{column}\" of table \"{table}\"")))
    })
}

/// What a declared type asks of values beyond their type.
pub(in crate::ddl) fn refined(c: &Change, data_type: &ast::DataType) -> SqlResult<Option<Refined>> {
    if let Some(name) = braid_scalar::user_type_name(data_type)
        && let Some(user) = c.ctx.user_type(&name)?
        && c.catalog.domain(user.id).is_some()
    {
        return Ok(Some(Refined::Domain(user.id)));
    }
    if let ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) = data_type {
        // That nothing is asked of arrays within arrays is seen by what follows.
        let types = c.ctx.no_params();
        braid_scalar::refinement_of(data_type, types.named_types())?;
        return Ok(match refined(c, element)? {
            Some(Refined::Domain(id)) => Some(Refined::Elements(id)),
            other => other,
        });
    }
    let types = c.ctx.no_params();
    let refinement = braid_scalar::refinement_of(data_type, types.named_types())?;
    if let Some(domain) = &refinement.domain {
        return Err(SqlError::unsupported(format!("a column of type {}", domain.name)));
    }
    Ok(match refinement.fields {
        Some(_) => {
            Some(Refined::Fields(IntervalFields::typmod(refinement.fields, refinement.precision)))
        }
        None => refinement.precision.map(Refined::Precision),
    })
}

/// The collation that COLLATE gives to values of a type; `None` is that of the database.
///
/// # Errors
/// 42704 if there is none of the name; 42804 if such values have none.
pub(in crate::ddl) fn collation(
    c: &Change,
    name: &Name,
    ty: &SqlType,
) -> SqlResult<Option<Arc<Collation>>> {
    let found = c.ctx.no_params().collation(name)?;
    ty.check_collation(&found)?;
    Ok(Some(found).filter(|found| found.oid != DEFAULT_COLLATION))
}

/// The collation of the values of a domain.
pub(in crate::ddl) fn of_domain(c: &Change, refined: Option<Refined>) -> Option<Arc<Collation>> {
    let (Refined::Domain(id) | Refined::Elements(id)) = refined? else { return None };
    c.catalog.collation_by_oid(c.catalog.domain(id)?.collation?)
}

fn option(
    c: &Change,
    col: &mut Column,
    out: &mut Declared,
    o: &ast::ColumnOptionDef,
) -> SqlResult<()> {
    match &o.option {
        ast::ColumnOption::Null => {}
        ast::ColumnOption::NotNull => col.nullable = false,
        ast::ColumnOption::Default(e) => {
            col.default = Some(check_default(c, e, (&col.name, &col.ty))?);
        }
        ast::ColumnOption::PrimaryKey(p) => {
            let mut p = p.clone();
            p.name = p.name.or_else(|| o.name.clone());
            out.constraints.push(ast::TableConstraint::PrimaryKey(p));
        }
        ast::ColumnOption::Unique(u) => {
            let mut u = u.clone();
            let (name, nulls_are_equal) = braid_parser::take_null_keys(o.name.as_ref());
            u.name = u.name.or(name);
            if nulls_are_equal {
                u.nulls_distinct = ast::NullsDistinctOption::NotDistinct;
            }
            out.constraints.push(ast::TableConstraint::Unique(u));
        }
        ast::ColumnOption::ForeignKey(f) => {
            let mut f = f.clone();
            f.name = f.name.or_else(|| o.name.clone());
            out.constraints.push(ast::TableConstraint::ForeignKey(f));
        }
        ast::ColumnOption::Check(k) => {
            let mut k = k.clone();
            k.name = k.name.or_else(|| o.name.clone());
            out.constraints.push(ast::TableConstraint::Check(k));
        }
        ast::ColumnOption::Generated {
            generated_as, sequence_options, generation_expr, ..
        } => match generation_expr {
            Some(e) => col.generated = Some(named_relations::kept(c, e)),
            None => {
                if !col.ty.is_integer() {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "identity column type must be smallint, integer, or bigint",
                    ));
                }
                col.nullable = false;
                col.identity = Some(match generated_as {
                    ast::GeneratedAs::Always => Identity::Always,
                    _ => Identity::ByDefault,
                });
                out.sequence = Some(sequence::options(sequence_options.as_deref())?);
            }
        },
        ast::ColumnOption::Collation(n) => {
            col.options.collation = collation(c, &super::parts(n), &col.ty)?;
        }
        ast::ColumnOption::Comment(text) => col.comment = Some(text.clone()),
        other => {
            return Err(SqlError::unsupported(format!("column option {other}")));
        }
    }
    Ok(())
}

/// An error about a value of another type, with the name of the column that it is for.
pub(crate) fn named_column(e: SqlError, name: &str, what: &str) -> SqlError {
    if e.state() != SqlState::DATATYPE_MISMATCH || !e.message().starts_with("column is of type") {
        return e;
    }
    let text = e.message().replacen("column is", &format!("column \"{name}\" is"), 1);
    let text = text.replacen("but expression", &format!("but {what}"), 1);
    SqlError::new(e.state(), text)
        .with_hint("You will need to rewrite or cast the expression.")
        .or_place(e.place().cloned())
}

/// Checks that a DEFAULT fits its column; gives it as it is kept.
pub(super) fn check_default(
    c: &Change,
    e: &ast::Expr,
    (name, ty): (&str, &SqlType),
) -> SqlResult<String> {
    match braid_scalar::bind_to(e, ty, &Scope::empty(), &mut c.ctx.no_params()) {
        Ok(_) => Ok(named_relations::kept(c, e)),
        Err(e) if braid_scalar::needs_general_query(&e) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in DEFAULT expression",
        )),
        Err(e) if e.state() == SqlState::UNDEFINED_COLUMN => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use column reference in DEFAULT expression",
        )),
        Err(e) => Err(named_column(e, name, "default expression")),
    }
}

/// Creates the sequences of serial and identity columns, and checks generated columns.
///
/// `verb` is that of the statement: CREATE or ALTER.
pub(super) fn finish(
    c: &mut Change,
    t: &mut Table,
    declared: &[Declared],
    verb: &str,
) -> SqlResult<()> {
    for d in declared {
        if let Some(options) = &d.sequence {
            let at = t.columns.iter().position(|x| x.name == d.name).expect("declared");
            let name = sequence::own_name(c, t, &d.name, options)?;
            c.ctx.debug(format!(
                "{verb} TABLE will create implicit sequence \"{name}\" for serial column \"{}.{}\"",
                t.name, d.name
            ));
            let owner = (t.id, t.columns[at].id);
            let ty = t.columns[at].ty.clone();
            let id = sequence::new(c, t.schema, &name, ty, options, Some(owner))?;
            t.columns[at].sequence = Some(id);
            if t.columns[at].identity.is_none() {
                let schema = c.ctx.schema_name(t.schema);
                let full = named_relations::full_name(&schema, &name);
                t.columns[at].default = Some(format!("nextval('{full}'::regclass)"));
            }
        }
    }
    let scope = table_scope(t);
    for at in 0..t.columns.len() {
        if let Some(text) = &t.columns[at].generated {
            let e = constraint::with_bare_columns(c, t, &braid_parser::parse_expr(text)?);
            t.columns[at].generated = Some(e.to_string());
        }
    }
    for col in t.columns.iter().filter(|x| x.generated.is_some()) {
        let text = col.generated.as_deref().unwrap_or_default();
        let e = braid_parser::parse_expr(text)?;
        let bound = braid_scalar::bind_to(&e, &col.ty, &scope, &mut c.ctx.no_params());
        let bound = bound.map_err(|e| named_column(e, &col.name, "default expression"))?;
        if bound.volatility() != braid_scalar::Volatility::Immutable {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                "generation expression is not immutable",
            ));
        }
        let bad = bound.columns().into_iter().any(|o| t.columns[o].generated.is_some());
        if bad || col.default.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                format!(
                    "generated column \"{}\" cannot have a default or use another one",
                    col.name
                ),
            ));
        }
    }
    Ok(())
}

/// Makes an existing column an identity column.
pub(super) fn make_identity(
    c: &mut Change,
    t: &mut Table,
    at: usize,
    o: &ast::ColumnOptionDef,
) -> SqlResult<()> {
    let mut declared =
        Declared { name: t.columns[at].name.clone(), constraints: Vec::new(), sequence: None };
    let mut col = t.columns[at].clone();
    let wrong = if col.nullable {
        Some("must be declared NOT NULL before identity can be added")
    } else if col.identity.is_some() {
        Some("is already an identity column")
    } else if col.default.is_some() || col.generated.is_some() {
        Some("already has a default value")
    } else {
        None
    };
    // That its type cannot count is told first.
    option(c, &mut col, &mut declared, o)?;
    if let Some(wrong) = wrong {
        let text = format!("column \"{}\" of relation \"{}\" {wrong}", col.name, t.name);
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
    }
    t.columns[at] = col;
    finish(c, t, &[declared], "ALTER")
}
