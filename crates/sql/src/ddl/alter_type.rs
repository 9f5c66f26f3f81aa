//! ALTER COLUMN .. TYPE, with all that hangs on the column: its default is cast along, its checks
//! and foreign keys are proven again, indexes on it get new entries. Generated columns forbid it.
//!
//! ```text
//!   orders.id int -> bigint       stored alike: only descriptors, of what lies in it too
//!   orders.id int -> text         all rows of orders and of what lies in it move to other keys
//!   lines.price int -> numeric    the rows of lines, and the indexes that have the price
//! ```

use std::sync::Arc;

use braid_catalog::{Column, ForeignKey, Refined, Table};
use braid_types::{CastContext, Collation, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::column::check_default;
use super::{
    Change, alter, backfill, bad_table, composite, constraint, drop, index, moves, sequence, ttl,
};
use braid_parser::parse_expr;
use braid_rows::computed::Computed;
use braid_rows::{Row, table_scope};
use braid_scalar::{Bound, EvalContext, Refinement, Scope};

/// Whether a stored value of one type is a stored value of the other with the same meaning.
fn same_stored_form(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Int2, SqlType::Int4 | SqlType::Int8) | (SqlType::Int4, SqlType::Int8) => true,
        (SqlType::Varchar(_), SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Text, SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Varchar(Some(a)), SqlType::Varchar(Some(b))) => a <= b,
        (SqlType::Numeric(_), SqlType::Numeric(None)) => true,
        (a, b) => a == b,
    }
}

/// What the type is changed to.
pub(super) struct Target {
    pub(super) ty: SqlType,
    pub(super) refinement: Option<Refined>,
    pub(super) collation: Option<Arc<Collation>>,
}

/// Whether USING says no more than that the column is cast to its new type.
fn is_plain_cast(c: &Change, using: &ast::Expr, column: &str, to: &SqlType) -> bool {
    let ast::Expr::Cast { expr, data_type, .. } = using else { return false };
    let ast::Expr::Identifier(ident) = &**expr else { return false };
    braid_scalar::ident_name(ident) == column && c.ctx.type_of(data_type).is_ok_and(|ty| ty == *to)
}

/// What a plain cast of USING is in a table that calls the column otherwise.
fn cast_of(using: &ast::Expr, column: &str) -> ast::Expr {
    let mut own = using.clone();
    if let ast::Expr::Cast { expr, .. } = &mut own {
        **expr = ast::Expr::Identifier(ast::Ident::with_quote('"', column));
    }
    own
}

/// 42804: what USING gives is of no type that becomes the column's.
fn refused_using(e: SqlError, column: &str, ty: &SqlType) -> SqlError {
    if e.state() != SqlState::DATATYPE_MISMATCH {
        return e;
    }
    let text = format!(
        "result of USING clause for column \"{column}\" cannot be cast automatically to type {}",
        ty.name()
    );
    SqlError::new(e.state(), text).with_hint("You might need to add an explicit cast.")
}

/// Changes the type of the column at position `at`, and of all columns that share it along the
/// interleaving.
pub(super) fn run(
    c: &mut Change,
    t: &Arc<Table>,
    at: usize,
    to: &Target,
    using: Option<&ast::Expr>,
) -> SqlResult<()> {
    let ty = &to.ty;
    composite::refuse_row_type(c, &t.columns[at].name, ty)?;
    refuse_inherited(c, t, at, ty)?;
    let own = match using {
        Some(e) => {
            let bound = braid_scalar::bind_to(e, ty, &table_scope(t), &mut c.ctx.no_params());
            Some(bound.map_err(|e| refused_using(e, &t.columns[at].name, ty))?)
        }
        None => refuse_if_not_assignable(&t.columns[at], ty).map(|()| None)?,
    };
    let plain = using.is_none_or(|e| is_plain_cast(c, e, &t.columns[at].name, ty));
    let mut all = Vec::new();
    for (table, at) in holders(c, t, at)? {
        all.push(Altered::of(c, table, at, to)?);
    }
    for one in &all {
        check_keys(c, &all, one)?;
    }
    let (first, others) = all.split_first().expect("the column itself");
    sequence::follow_identity(c, &first.new.columns[first.at])?;
    if plain && all.iter().all(|one| one.is_as_stored(to)) {
        for one in &all {
            c.put(one.new.clone());
        }
        return all.iter().try_for_each(|one| one.check_again(c));
    }
    if !plain && !others.is_empty() {
        return Err(SqlError::unsupported(format!(
            "USING for column \"{}\", which tables interleaved in \"{}\" share",
            t.columns[at].name, t.name
        ))
        .with_hint("Take them out first: ALTER TABLE .. DROP INTERLEAVE."));
    }
    let in_key = t.primary.columns.iter().any(|k| k.column == t.columns[at].id);
    rewrite(c, &all, using.zip(own), in_key)?;
    for one in &all {
        one.check_again(c)?;
        one.check_references(c)?;
    }
    Ok(())
}

/// 42804 if a column cannot become one of another type by itself.
fn refuse_if_not_assignable(column: &Column, ty: &SqlType) -> SqlResult<()> {
    let how = braid_types::cast_exists(&column.ty, ty);
    if how.is_some_and(|how| matches!(how, CastContext::Implicit | CastContext::Assignment)) {
        return Ok(());
    }
    let name = &column.name;
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("column \"{name}\" cannot be cast automatically to type {}", ty.name()),
    )
    .with_hint(format!("You might need to specify \"USING {name}::{}\".", ty.name())))
}

/// 42P16 if the table has the column from the one that it lies in.
fn refuse_inherited(c: &Change, t: &Arc<Table>, at: usize, ty: &SqlType) -> SqlResult<()> {
    let column = &t.columns[at];
    let Some(i) = t.interleave.as_ref().filter(|i| i.columns.contains(&column.id)) else {
        return Ok(());
    };
    if column.ty == *ty {
        return Ok(());
    }
    let place = i.columns.iter().position(|id| *id == column.id).unwrap_or_default();
    let chain = c.catalog.chain(t);
    let owner = chain.iter().find(|t| t.primary.columns.len() > place);
    let name = owner.map_or("", |owner| &owner.name);
    Err(bad_table(format!(
        "cannot alter column \"{}\" of table \"{}\": it is shared along the interleaving",
        column.name, t.name
    ))
    .with_hint(format!("Alter it in table \"{name}\": all tables in it follow.")))
}

/// A column, and the columns in which tables below have it as a part of their keys; parents first.
fn holders(c: &Change, t: &Arc<Table>, at: usize) -> SqlResult<Vec<(Arc<Table>, usize)>> {
    let id = t.columns[at].id;
    let mut out = vec![(t.clone(), at)];
    let Some(place) = t.primary.columns.iter().position(|k| k.column == id) else { return Ok(out) };
    for s in c.catalog.subtree(t).into_iter().skip(1) {
        let shared = s.interleave.as_ref().and_then(|i| i.columns.get(place).copied());
        let at = shared.and_then(|id| s.ordinal(id));
        let at = at.ok_or_else(|| SqlError::internal("a table lacks its parent's key"))?;
        c.ctx.lock_for_change(s.id)?;
        out.push((s, at));
    }
    Ok(out)
}

/// A table whose column gets another type.
struct Altered {
    old: Arc<Table>,
    at: usize,
    new: Table,
    /// Whether expressions of indexes are made from it.
    computed: bool,
}

impl Altered {
    fn of(c: &mut Change, t: Arc<Table>, at: usize, to: &Target) -> SqlResult<Altered> {
        let (id, name) = (t.columns[at].id, &t.columns[at].name);
        ttl::refuse_used(&t, id)?;
        refuse_viewed(c, &t, name)?;
        refuse_generated_from(c, &t, at)?;
        let mut new = (*t).clone();
        new.columns[at].ty = to.ty.clone();
        new.columns[at].refinement = to.refinement;
        new.columns[at].options.collation.clone_from(&to.collation);
        index::check_key_types(&new, &new.primary.columns)?;
        let computed = renew_expressions(c, &mut new, id)?;
        for i in new.indexes.iter().filter(|i| i.columns.iter().any(|k| k.column == id)) {
            if let Some(declared) = i.declaration() {
                index::check_classes(&new, &i.columns, declared)?;
            }
            if i.unread.is_none() {
                index::check_key_types(&new, &i.columns)?;
            }
        }
        convert_default(c, &mut new, at, &t.columns[at].ty)?;
        Ok(Altered { old: t, at, new, computed })
    }

    fn id(&self) -> u32 {
        self.old.columns[self.at].id
    }

    /// Whether what is stored is right as it is: what is asked of values now was asked before, or
    /// nothing is asked.
    fn is_as_stored(&self, to: &Target) -> bool {
        let old = &self.old.columns[self.at];
        let as_refined = to.refinement.is_none() || to.refinement == old.refinement;
        as_refined && !self.computed && same_stored_form(&old.ty, &to.ty)
    }

    /// CHECK constraints mean something else over another type, and values have changed: rows are
    /// looked at again, by constraints on the column.
    fn check_again(&self, c: &Change) -> SqlResult<()> {
        let t = &c.stored(self.old.id)?;
        let (scope, at) = (table_scope(t), self.at);
        for check in t.checks.iter().filter(|check| !check.not_valid) {
            let e = parse_expr(&check.expr)?;
            let bound = braid_scalar::bind_bool(&e, "CHECK", &scope, &mut c.ctx.no_params())?;
            if bound.columns().contains(&at) {
                backfill::validate_check(c, t, &check.name, &bound)?;
            }
        }
        if !t.columns[at].nullable {
            backfill::validate_not_null(c, t.id, at)?;
        }
        for fk in
            t.foreign_keys.iter().filter(|fk| fk.columns.contains(&self.id()) && !fk.not_valid)
        {
            backfill::validate_foreign_key(c, t, fk)?;
        }
        Ok(())
    }

    /// Foreign keys to the column: the values that rows refer to may have gone.
    fn check_references(&self, c: &Change) -> SqlResult<()> {
        let id = self.id();
        for r in c.catalog.referencing_tables(self.old.id) {
            let to_it =
                |fk: &&ForeignKey| fk.parent == self.old.id && fk.parent_columns.contains(&id);
            for fk in r.foreign_keys.iter().filter(to_it) {
                c.ctx.lock_for_change(r.id)?;
                backfill::validate_foreign_key(c, r, fk)?;
            }
        }
        Ok(())
    }
}

/// Expressions and predicates of indexes mean something else over another type: those indexes get
/// new entries. Whether there are any.
fn renew_expressions(c: &Change, t: &mut Table, id: u32) -> SqlResult<bool> {
    let mut some = false;
    for n in 0..t.indexes.len() {
        let index = t.indexes[n].clone();
        let plain = index.columns.iter().any(|k| k.column == id) || index.include.contains(&id);
        if plain || !index::uses_column(t, &index, id)? {
            continue;
        }
        for computed in Computed::of_table(t)? {
            let own = t.columns[computed.ordinal].id;
            if index.columns.iter().any(|k| k.column == own) {
                let column = &mut t.columns[computed.ordinal];
                column.ty = computed.expr.ty().clone();
                column.options.collation = computed.expr.collation().known().cloned();
            }
        }
        index::check_key_types(t, &index.columns)?;
        t.indexes[n].generation = c.next_generation(index.id, index.generation)?;
        some = true;
    }
    Ok(some)
}

/// How the values of a column are made.
struct Conversion<'a> {
    table: u32,
    at: usize,
    from: &'a SqlType,
    ty: &'a SqlType,
    using: Option<Bound>,
    refinement: Refinement,
}

impl Conversion<'_> {
    fn convert(&self, mut row: Row, eval: &EvalContext) -> SqlResult<Row> {
        let value = match &self.using {
            Some(e) => e.eval(&row, eval)?,
            None => crate::dml::assign(&row[self.at], self.from, self.ty, eval)?,
        };
        row[self.at] = self.refinement.refine(value, eval)?;
        Ok(row)
    }
}

/// Gives all rows values of the new type, and the tables their new descriptors. USING is bound for
/// the first of them; the others call their column otherwise.
fn rewrite(
    c: &mut Change,
    all: &[Altered],
    using: Option<(&ast::Expr, Bound)>,
    in_key: bool,
) -> SqlResult<()> {
    let eval = c.ctx.eval.clone();
    let mut conversions = Vec::new();
    let mut new = Vec::new();
    for (n, one) in all.iter().enumerate() {
        let ty = &one.new.columns[one.at].ty;
        let using = match &using {
            Some((_, own)) if n == 0 => Some(own.clone()),
            Some((e, _)) => {
                let own = cast_of(e, &one.old.columns[one.at].name);
                let scope = table_scope(&one.old);
                Some(braid_scalar::bind_to(&own, ty, &scope, &mut c.ctx.no_params())?)
            }
            None => None,
        };
        let mut table = one.new.clone();
        table.columns[one.at].missing = None;
        conversions.push(Conversion {
            table: table.id,
            at: one.at,
            from: &one.old.columns[one.at].ty,
            ty,
            using,
            refinement: c.ctx.refinement(&table.columns[one.at])?,
        });
        new.push(table);
    }
    let first = &all[0];
    if in_key {
        return moves::rewrite(c, &first.old, new, |table, row| {
            match conversions.iter().find(|one| one.table == table) {
                Some(one) => one.convert(row, &eval),
                None => Ok(row),
            }
        });
    }
    let (old, id) = (backfill::layout(c, first.old.id)?, first.id());
    for mut table in new {
        for i in &mut table.indexes {
            if i.columns.iter().any(|k| k.column == id) || i.include.contains(&id) {
                i.generation = c.next_generation(i.id, i.generation)?;
            }
        }
        c.put(table);
    }
    backfill::rewrite(c, &old, first.old.id, |row| conversions[0].convert(row, &eval))
}

/// A view shows its columns with the types that they had when it was made.
fn refuse_viewed(c: &Change, t: &Table, column: &str) -> SqlResult<()> {
    let Some(view) = alter::viewer_of_column(c, t, column) else { return Ok(()) };
    let text = "cannot alter type of a column used by a view or rule";
    let called = drop::called(c, &view);
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
        .with_detail(format!("rule _RETURN on {called} depends on column \"{column}\""))
        .with_hint("Drop the view and create it again afterwards."))
}

/// A generated column that is made from this one would have to be made again with another meaning.
fn refuse_generated_from(c: &Change, t: &Table, at: usize) -> SqlResult<()> {
    let scope = table_scope(t);
    for column in &t.columns {
        let Some(text) = &column.generated else { continue };
        let bound = braid_scalar::bind(&parse_expr(text)?, &scope, &mut c.ctx.no_params())?;
        if bound.columns().contains(&at) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column",
            )
            .with_detail(format!(
                "Column \"{}\" is used by generated column \"{}\".",
                t.columns[at].name, column.name
            )));
        }
    }
    Ok(())
}

/// The default keeps its value. A literal is one of the old type; anything else has a type of its
/// own, and goes the way to the new one that any value goes which the column is given.
fn convert_default(c: &Change, t: &mut Table, at: usize, old: &SqlType) -> SqlResult<()> {
    let column = &mut t.columns[at];
    let Some(text) = &column.default else { return Ok(()) };
    if column.sequence.is_some() || old.same_base(&column.ty) {
        return Ok(());
    }
    let e = parse_expr(text)?;
    let (e, own) = match &e {
        ast::Expr::Value(literal) if literal.value.clone().into_string().is_some() => {
            (parse_expr(&format!("CAST({e} AS {})", old.name()))?, old.clone())
        }
        _ => {
            let own = braid_scalar::bind(&e, &Scope::empty(), &mut c.ctx.no_params())?.ty().clone();
            (e, own)
        }
    };
    let castable = own.same_base(&column.ty)
        || braid_types::cast_exists(&own, &column.ty).is_some_and(|k| k <= CastContext::Assignment);
    if !castable {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "default for column \"{}\" cannot be cast automatically to type {}",
                column.name,
                column.ty.name()
            ),
        ));
    }
    column.default = Some(check_default(c, &e, (&column.name, &column.ty))?);
    Ok(())
}

/// Foreign keys of the column and to it must still be comparable.
fn check_keys(c: &Change, all: &[Altered], one: &Altered) -> SqlResult<()> {
    let (t, id) = (&one.new, one.id());
    let now = |table: u32| {
        let altered = all.iter().find(|one| one.new.id == table).map(|one| &one.new);
        altered.or_else(|| c.catalog.table(table).map(|t| &**t))
    };
    for fk in t.foreign_keys.iter().filter(|fk| fk.columns.contains(&id)) {
        let parent = now(fk.parent);
        let parent = parent.ok_or_else(|| SqlError::internal("referenced table is gone"))?;
        constraint::check_types(t, parent, &fk.name, &fk.columns, &fk.parent_columns)?;
    }
    for r in c.catalog.referencing_tables(t.id).filter_map(|r| now(r.id)).filter(|r| r.id != t.id) {
        for fk in r.foreign_keys.iter().filter(|fk| fk.parent == t.id) {
            if fk.parent_columns.contains(&id) {
                constraint::check_types(r, t, &fk.name, &fk.columns, &fk.parent_columns)?;
            }
        }
    }
    Ok(())
}
