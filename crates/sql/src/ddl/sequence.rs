//! CREATE SEQUENCE, ALTER SEQUENCE, and sequences of serial and identity columns.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{
    Column, Identity, Relation, Reversed, Sequence, Table, choose_constraint_name,
};
use braid_scalar::{ident_name, object_name_parts};
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use braid_walk::Walk;
use sqlparser::ast::{self, Visitor};

use super::access::roles::wrong_kind;
use super::named_relations::{may_name, name_of_constant};
use super::other_kinds::in_schema;
use super::{Change, exists, named_relations, temporary};
use crate::session::{SessionState, is_temporary_schema};
use braid_parser::{Name, SequenceChange, named_sequence};

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

pub(crate) fn create(
    c: &mut Change,
    name: &Name,
    (if_not_exists, temporary): (bool, bool),
    s: &SequenceChange,
) -> SqlResult<String> {
    let (schema, bare) = match temporary::place(c, name, temporary)? {
        Some(place) => place,
        None => c.ctx.target_schema(name)?,
    };
    if c.taken(schema, &bare) {
        if if_not_exists {
            let text = format!("relation \"{bare}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_TABLE, text);
            return Ok("CREATE SEQUENCE".into());
        }
        return Err(exists(&bare));
    }
    let ty = match &s.ty {
        Some(t) => c.ctx.type_of(t)?,
        None => SqlType::Int8,
    };
    let owner = match &s.owned_by {
        Some(Some(n)) => Some(owner(c, n)?),
        _ => None,
    };
    new(c, schema, &bare, ty, s, owner)?;
    Ok("CREATE SEQUENCE".into())
}

fn owner(c: &Change, name: &Name) -> SqlResult<(u32, u32)> {
    let (column, table) = name.split_last().ok_or_else(|| bad("OWNED BY needs table.column"))?;
    let t = c.ctx.table(&table.to_vec())?;
    let col = t.column_named(column).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", t.name),
        )
    })?;
    Ok((t.id, col.id))
}

fn bounds(ty: &SqlType) -> SqlResult<(i64, i64)> {
    match ty {
        SqlType::Int2 => Ok((i16::MIN.into(), i16::MAX.into())),
        SqlType::Int4 => Ok((i32::MIN.into(), i32::MAX.into())),
        SqlType::Int8 => Ok((i64::MIN, i64::MAX)),
        _ => Err(bad("sequence type must be smallint, integer, or bigint")),
    }
}

/// Adds a sequence to the catalog; returns its id.
pub(super) fn new(
    c: &mut Change,
    schema: u32,
    name: &str,
    ty: SqlType,
    s: &SequenceChange,
    owned_by: Option<(u32, u32)>,
) -> SqlResult<u32> {
    let (low, high) = bounds(&ty)?;
    let increment = s.increment.unwrap_or(1);
    let up = increment > 0;
    let min = s.min.flatten().unwrap_or(if up { 1 } else { low });
    let max = s.max.flatten().unwrap_or(if up { high } else { -1 });
    let seq = Sequence {
        id: c.new_id()?,
        schema,
        name: name.to_string(),
        ty,
        start: s.start.unwrap_or(if up { min } else { max }),
        increment,
        min,
        max,
        cycle: s.cycle.unwrap_or(false),
        cache: s.cache.unwrap_or(1),
        generation: 1,
        owned_by,
        reversed: (s.reversed || s.skip.is_some()).then(|| Reversed { skip: s.skip.flatten() }),
    };
    check_reversed(&seq, s)?;
    check(&seq)?;
    let id = seq.id;
    c.catalog.put_sequence(seq);
    c.sync();
    Ok(id)
}

/// A counter that is handed out in reverse goes up by one, and has all of bigint.
fn check_reversed(seq: &Sequence, s: &SequenceChange) -> SqlResult<()> {
    let Some(reversed) = &seq.reversed else { return Ok(()) };
    let shaped = s.increment.is_some() || s.min.is_some() || s.max.is_some() || seq.cycle;
    if shaped || seq.ty != SqlType::Int8 {
        return Err(bad(
            "a bit-reversed sequence has no type, INCREMENT, MINVALUE, MAXVALUE or CYCLE",
        )
        .with_hint("Its options are SKIP RANGE, START COUNTER and CACHE."));
    }
    match reversed.skip {
        Some((least, most)) if least > most || least < 1 => {
            Err(bad(format!("SKIP RANGE ({least}, {most}) must be positive and in order")))
        }
        _ => Ok(()),
    }
}

fn check(s: &Sequence) -> SqlResult<()> {
    let (low, high) = bounds(&s.ty)?;
    if s.increment == 0 {
        return Err(bad("INCREMENT must not be zero"));
    }
    if s.min >= s.max {
        return Err(bad(format!("MINVALUE ({}) must be less than MAXVALUE ({})", s.min, s.max)));
    }
    if s.min < low || s.max > high {
        return Err(bad(format!("bounds are out of range for sequence data type {}", s.ty.name())));
    }
    if s.start < s.min {
        return Err(bad(format!(
            "START value ({}) cannot be less than MINVALUE ({})",
            s.start, s.min
        )));
    }
    if s.start > s.max {
        return Err(bad(format!(
            "START value ({}) cannot be greater than MAXVALUE ({})",
            s.start, s.max
        )));
    }
    if s.cache < 1 {
        return Err(bad(format!("CACHE ({}) must be greater than zero", s.cache)));
    }
    Ok(())
}

/// Gives a sequence another type. Bounds that were those of the old one become those of the new.
fn retype(s: &mut Sequence, ty: SqlType) -> SqlResult<()> {
    let ((old_low, old_high), (low, high)) = (bounds(&s.ty)?, bounds(&ty)?);
    if s.max == old_high {
        s.max = high;
    }
    if s.min == old_low {
        s.min = low;
    }
    s.ty = ty;
    Ok(())
}

/// An identity column gets the type that it has: its sequence follows.
pub(super) fn follow_identity(c: &mut Change, column: &Column) -> SqlResult<()> {
    let Some(id) = column.sequence.filter(|_| column.identity.is_some()) else { return Ok(()) };
    let found = c.catalog.sequences().find(|s| s.id == id);
    let Some(mut sequence) = found.map(|s| (**s).clone()) else { return Ok(()) };
    if !column.ty.is_integer() {
        return Err(bad("identity column type must be smallint, integer, or bigint"));
    }
    // One that counts in reverse has all of bigint, whatever its column holds.
    if sequence.reversed.is_some() || sequence.ty == column.ty {
        return Ok(());
    }
    retype(&mut sequence, column.ty.clone())?;
    check(&sequence)?;
    c.catalog.put_sequence(sequence);
    c.sync();
    Ok(())
}

/// The schema, if it is given, and the name that an identity column's sequence is to have.
fn sequence_name(text: &str) -> SqlResult<(Option<String>, Option<String>)> {
    let parts = match braid_parser::parse_expr(text)? {
        ast::Expr::Identifier(name) => vec![name],
        ast::Expr::CompoundIdentifier(parts) => parts,
        _ => return Err(SqlError::syntax(format!("invalid name syntax: {text}"))),
    };
    let mut names = parts.iter().map(ident_name).rev();
    Ok((names.next(), names.next())).map(|(name, schema)| (schema, name))
}

/// The name of the sequence that a column of a table gets: the one that is asked for, or one that
/// is free.
///
/// # Errors
/// 42P07 if it is taken, 42P01 if it is to lie in another schema than the table: PostgreSQL looks
/// for the table there.
pub(super) fn own_name(
    c: &Change,
    t: &Table,
    column: &str,
    options: &SequenceChange,
) -> SqlResult<String> {
    let Some(name) = &options.rename else {
        return Ok(choose_constraint_name(&t.name, &[column], "seq", |n| c.taken(t.schema, n)));
    };
    let own = c.ctx.schema_name(t.schema);
    if let Some(other) = options.schema.as_ref().filter(|schema| **schema != own) {
        let text = format!("relation \"{other}.{}\" does not exist", t.name);
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, text));
    }
    if c.taken(t.schema, name) {
        return Err(exists(name));
    }
    Ok(name.clone())
}

/// Options in sqlparser's form (identity columns).
pub(super) fn options(list: Option<&[ast::SequenceOptions]>) -> SqlResult<SequenceChange> {
    let read = |text: &str| {
        let digits = text.replace(' ', "");
        digits.parse::<i64>().map_err(|_| bad(format!("{text} is not a number")))
    };
    let number = |e: &ast::Expr| read(&e.to_string());
    let mut s = SequenceChange::default();
    for o in list.unwrap_or_default() {
        match o {
            ast::SequenceOptions::IncrementBy(e, _) => s.increment = Some(number(e)?),
            ast::SequenceOptions::MinValue(e) => s.min = Some(e.as_ref().map(number).transpose()?),
            ast::SequenceOptions::MaxValue(e) => s.max = Some(e.as_ref().map(number).transpose()?),
            ast::SequenceOptions::StartWith(e, _) => s.start = Some(number(e)?),
            ast::SequenceOptions::Cache(e) => {
                let text = e.to_string();
                let (cache, name) = named_sequence(&text);
                s.cache = Some(read(cache)?);
                if let Some(name) = name {
                    (s.schema, s.rename) = sequence_name(name)?;
                }
            }
            ast::SequenceOptions::Cycle(no) => s.cycle = Some(!no),
        }
    }
    Ok(s)
}

pub(crate) fn alter(
    c: &mut Change,
    name: &Name,
    if_exists: bool,
    s: &SequenceChange,
) -> SqlResult<String> {
    let tag = "ALTER SEQUENCE".to_string();
    let Some(found) = c.ctx.find_relation(name)? else {
        if if_exists {
            c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
            return Ok(tag);
        }
        return Err(crate::session::no_relation(name));
    };
    let Relation::Sequence(old) = found else {
        return Err(wrong_kind(name, "sequence"));
    };
    check_owner(c, &old, s)?;
    let mut new = (*old).clone();
    if let Some(t) = &s.ty {
        retype(&mut new, c.ctx.type_of(t)?)?;
    }
    let up = s.increment.unwrap_or(new.increment) > 0;
    let (low, high) = bounds(&new.ty)?;
    new.increment = s.increment.unwrap_or(new.increment);
    if let Some(min) = s.min {
        new.min = min.unwrap_or(if up { 1 } else { low });
    }
    if let Some(max) = s.max {
        new.max = max.unwrap_or(if up { high } else { -1 });
    }
    new.start = s.start.unwrap_or(new.start);
    new.cache = s.cache.unwrap_or(new.cache);
    new.cycle = s.cycle.unwrap_or(new.cycle);
    match &s.owned_by {
        Some(None) => new.owned_by = None,
        Some(Some(n)) => new.owned_by = Some(owner(c, n)?),
        None => {}
    }
    if s.reversed && new.reversed.is_none() {
        return Err(bad(format!("sequence \"{}\" is not bit-reversed", new.name))
            .with_hint("Create another sequence with BIT_REVERSED_POSITIVE."));
    }
    match (&mut new.reversed, s.skip) {
        (Some(reversed), Some(skip)) => reversed.skip = skip,
        (None, Some(_)) => return Err(bad("SKIP RANGE is for bit-reversed sequences")),
        (_, None) => {}
    }
    check_reversed(&new, s)?;
    if let Some(to) = &s.schema {
        move_to(c, &mut new, to)?;
    }
    if let Some(n) = &s.rename {
        if c.taken(new.schema, n) {
            return Err(exists(n));
        }
        new.name = n.clone();
    }
    check(&new)?;
    if let Some(restart) = s.restart {
        let value = restart.unwrap_or(new.start);
        // A new generation is a new value key: the old value stays for a rollback.
        new.generation = c.new_generation()?;
        c.ctx.db.setval(&new, value, false)?;
    }
    named_relations::follow_one(c, &old, &new)?;
    c.catalog.put_sequence(new);
    c.sync();
    Ok(tag)
}

/// SET SCHEMA. A sequence that belongs to a column goes where its table goes.
fn move_to(c: &Change, s: &mut Sequence, to: &str) -> SqlResult<()> {
    if let Some(table) = s.owned_by.and_then(|(table, _)| c.catalog.table(table)) {
        let text = "cannot move an owned sequence into another schema";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_detail(format!(
            "Sequence \"{}\" is linked to table \"{}\".",
            s.name, table.name
        )));
    }
    let Some(schema) = c.catalog.schema(c.ctx.database, to) else {
        return Err(crate::session::no_schema(to));
    };
    if schema.id != s.schema && c.taken(schema.id, &s.name) {
        return Err(in_schema(&s.name, to));
    }
    s.schema = schema.id;
    Ok(())
}

/// 0A000 for a sequence that is part of an identity column: it stays that column's.
fn check_owner(c: &Change, s: &Sequence, change: &SequenceChange) -> SqlResult<()> {
    let owner = s.owned_by.filter(|_| change.owned_by.is_some());
    let Some((table, column)) = owner else { return Ok(()) };
    let Some(table) = c.catalog.table(table) else { return Ok(()) };
    match table.column(column) {
        Some(column) if column.identity.is_some() => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot change ownership of identity sequence",
        )
        .with_detail(format!("Sequence \"{}\" is linked to table \"{}\".", s.name, table.name))),
        _ => Ok(()),
    }
}

/// The place of an identity column, and its sequence; none if it is another column.
fn identity_of(t: &Table, column: &str) -> SqlResult<Option<(usize, u32)>> {
    let at = t.columns.iter().position(|x| !x.hidden && x.name == column).ok_or_else(|| {
        let text = format!("column \"{column}\" of relation \"{}\" does not exist", t.name);
        SqlError::new(SqlState::UNDEFINED_COLUMN, text)
    })?;
    Ok(t.columns[at].sequence.filter(|_| t.columns[at].identity.is_some()).map(|s| (at, s)))
}

fn not_identity(t: &Table, column: &str) -> String {
    format!("column \"{column}\" of relation \"{}\" is not an identity column", t.name)
}

/// ALTER COLUMN .. RESTART, SET GENERATED, and options of its sequence.
pub(super) fn alter_identity(
    c: &mut Change,
    t: &Table,
    column: &str,
    always: Option<bool>,
    options: &SequenceChange,
) -> SqlResult<()> {
    let Some((at, id)) = identity_of(t, column)? else {
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        return Err(SqlError::new(state, not_identity(t, column)));
    };
    if let Some(always) = always {
        let mut new = t.clone();
        let identity = if always { Identity::Always } else { Identity::ByDefault };
        new.columns[at].identity = Some(identity);
        c.put(new);
        c.sync();
    }
    let (schema, name) = c
        .catalog
        .qualified_name(id)
        .ok_or_else(|| SqlError::internal("an identity column has no sequence"))?;
    alter(c, &vec![schema, name], false, options).map(|_| ())
}

/// ALTER COLUMN .. DROP IDENTITY: the column stays as it is, its sequence goes.
pub(super) fn drop_identity(
    c: &mut Change,
    t: &Table,
    column: &str,
    if_exists: bool,
) -> SqlResult<()> {
    let Some((at, id)) = identity_of(t, column)? else {
        if if_exists {
            c.ctx.notice(format!("{}, skipping", not_identity(t, column)));
            return Ok(());
        }
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        return Err(SqlError::new(state, not_identity(t, column)));
    };
    let mut new = t.clone();
    new.columns[at].identity = None;
    new.columns[at].sequence = None;
    c.put(new);
    c.catalog.remove(id);
    c.sync();
    Ok(())
}

/// A column whose default names a relation: in a call of a sequence's function, or as a value.
pub(super) struct DefaultOf {
    pub(super) table: u32,
    column: u32,
    line: String,
}

/// The defaults that name one of these relations, except those of some columns.
///
/// # Errors
/// Of reading what is kept.
pub(super) fn defaults_of(
    c: &Change,
    relations: &BTreeSet<u32>,
    except: &dyn Fn(&Table, &Column) -> bool,
) -> SqlResult<Vec<DefaultOf>> {
    let mut out = Vec::new();
    if relations.is_empty() {
        return Ok(out);
    }
    let here = |t: &&Arc<Table>| {
        c.catalog.schema_by_id(t.schema).is_some_and(|s| s.database == c.ctx.database)
    };
    for table in c.catalog.tables().filter(here) {
        for column in table.columns.iter().filter(|column| !except(table, column)) {
            let Some(default) = column.default.as_ref().filter(|d| may_name(d)) else { continue };
            let mut named = Named(column.sequence.map(Ok).into_iter().collect());
            let _ = braid_parser::parse_expr(default)?.walk(&mut named);
            for one in named.0 {
                let found = match one {
                    Ok(id) => Some(id),
                    Err(name) => named_in_default(c, &name)?,
                };
                let Some(id) = found.filter(|id| relations.contains(id)) else { continue };
                let kind = c.catalog.relation_by_id(id).map_or("", |relation| relation.kind());
                let line = format!(
                    "default value for column {} of table {} depends on {kind} {}",
                    column.name,
                    table.name,
                    called(c, id)
                );
                out.push(DefaultOf { table: table.id, column: column.id, line });
                break;
            }
        }
    }
    Ok(out)
}

/// The relation that a default names, in temporary tables of other sessions, too: whoever drops
/// something looks at all defaults.
fn named_in_default(c: &Change, name: &Name) -> SqlResult<Option<u32>> {
    let found = match name.as_slice() {
        [schema, bare] if is_temporary_schema(schema) => {
            let schema = c.catalog.schema(c.ctx.database, schema);
            schema.and_then(|schema| c.catalog.relation(schema.id, bare))
        }
        _ => c.ctx.find_relation(name)?,
    };
    Ok(found.map(|relation| relation.id()))
}

/// A relation's name, with its schema where the search path does not find it.
pub(super) fn called(c: &Change, id: u32) -> String {
    let Some((schema, name)) = c.catalog.qualified_name(id) else { return String::new() };
    let found = c.catalog.resolve(c.ctx.database, &c.ctx.search_path, &name);
    match found.is_some_and(|relation| relation.id() == id) {
        true => name,
        false => format!("{schema}.{name}"),
    }
}

/// What is said of them.
pub(super) fn lines(defaults: &[DefaultOf]) -> impl Iterator<Item = String> {
    defaults.iter().map(|default| default.line.clone())
}

/// Takes them away.
///
/// # Errors
/// Of locking their tables.
pub(super) fn forget_defaults(c: &mut Change, defaults: &[DefaultOf]) -> SqlResult<()> {
    for default in defaults {
        let Some(table) = c.catalog.table(default.table).cloned() else { continue };
        c.ctx.lock_for_change(table.id)?;
        let mut table = (*table).clone();
        if let Some(at) = table.ordinal(default.column) {
            let column = &mut table.columns[at];
            (column.default, column.sequence, column.identity) = (None, None, None);
        }
        c.put(table);
    }
    Ok(())
}

/// Relations that an expression names as values, by their ids or names.
struct Named(Vec<Result<u32, Name>>);

impl Visitor for Named {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Function(call) = expr
            && let Some(name) = sequence_of_call(call)
        {
            self.0.push(Err(name));
        }
        self.0.extend(name_of_constant(expr).map(Err));
        ControlFlow::Continue(())
    }
}

/// The name in `nextval('name')` or `nextval('name'::regclass)`.
pub(super) fn sequence_of_call(call: &ast::Function) -> Option<Name> {
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let called = object_name_parts(&call.name).pop()?;
    let of_sequence = ["nextval", "currval", "setval"].contains(&called.as_str());
    let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg))) = list.args.first() else {
        return None;
    };
    let literal = match arg {
        ast::Expr::Cast { expr, .. } => expr,
        other => other,
    };
    match literal {
        ast::Expr::Value(v) if of_sequence => match &v.value {
            ast::Value::SingleQuotedString(name) => Some(SessionState::split_name(name)),
            _ => None,
        },
        _ => None,
    }
}
