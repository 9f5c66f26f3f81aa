//! GROUP BY and aggregates.

use std::collections::HashMap;
use std::sync::Arc;

use braid_scalar::{
    AggregateCode, Bound, Choice, Code, Direct, OrderKey, Volatility, coerce, common_type,
    compared_form, first_of_group, is_hypothetical, order_form, order_forms, resolve,
    value_of_form, written_arguments,
};
use braid_types::{CastContext, Collated, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast;

use super::call::Arguments;
use super::{Binder, Named, SlotKind, aggregate_not_allowed, grouping_sets};
use crate::error::from_df;
use crate::exec::aggregate::{FIRST, Spec, aggregate};

/// One grouping expression.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) ast: Option<ast::Expr>,
    /// Over the inputs.
    pub(super) bound: Bound,
    /// Its value after grouping.
    pub(super) slot: usize,
}

/// An aggregate that was met.
pub(super) struct Pending {
    /// As it was written.
    text: String,
    udf: Arc<AggregateUDF>,
    args: Vec<Bound>,
    /// How many of them stand before WITHIN GROUP.
    direct: usize,
    filter: Option<Bound>,
    slot: usize,
    /// What the call is, over the slot.
    value: Bound,
}

impl Pending {
    /// Whether it may have another value when it is computed again.
    fn is_volatile(&self) -> bool {
        let mut parts = self.args.iter().chain(&self.filter);
        parts.any(|part| part.volatility() == Volatility::Volatile)
    }
}

/// An aggregate's function with its converted arguments.
pub(super) struct Chosen {
    pub(super) udf: Arc<AggregateUDF>,
    pub(super) args: Vec<Bound>,
    /// The type of what it computes.
    pub(super) ret: SqlType,
    pub(super) shown: Shown,
}

/// What is shown of what an aggregate computes: of a form that texts are ordered by, the text.
#[derive(Clone, Default)]
pub(super) struct Shown {
    /// The type of the value, if a form is computed.
    of_form: Option<SqlType>,
    collation: Collated,
}

impl Shown {
    /// The value as it is, of the collation of these.
    pub(super) fn like(args: &[Bound], ret: &SqlType) -> Shown {
        let collation = match ret.is_collatable() {
            true => args.iter().fold(Collated::Default, |all, arg| all.with(arg.collation())),
            false => Collated::Default,
        };
        Shown { of_form: None, collation }
    }

    /// The value over what was computed.
    pub(super) fn value(&self, computed: Bound) -> SqlResult<Bound> {
        match &self.of_form {
            Some(ty) => value_of_form(computed, ty, &self.collation),
            None => Ok(computed.with_collation(self.collation.clone())),
        }
    }
}

/// 0A000 for what counts equal values, where these are not equal in their bytes.
fn refuse_loose(name: &str, args: &[Bound], distinct: bool) -> SqlResult<()> {
    if !distinct && name != "mode" || args.iter().all(|arg| arg.collation().is_deterministic()) {
        return Ok(());
    }
    let text = format!("{name} of different values with a nondeterministic collation");
    Err(SqlError::unsupported(text).with_hint("SELECT DISTINCT them in a query in FROM."))
}

/// Puts forms that compare as the collations say in the places of values that an aggregate
/// compares; gives the type of what it computes then, and what is shown of that.
fn compare_by_forms(
    name: &str,
    args: &mut [Bound],
    within: usize,
    ret: SqlType,
) -> SqlResult<(SqlType, Shown)> {
    let mut shown = Shown::like(args, &ret);
    if args.iter().all(|arg| arg.collation().is_by_bytes()) {
        return Ok((ret, shown));
    }
    let direct = args.len() - within;
    if within > 0 && is_hypothetical(name) {
        for at in 0..within {
            let pair = order_forms(vec![args[at].clone(), args[direct + at].clone()])?;
            args[at] = pair[0].clone();
            args[direct + at] = pair[1].clone();
        }
        return Ok((ret, shown));
    }
    let (at, form) = match name {
        "min" | "max" => (0, compared_form(args[0].clone())?),
        _ if within == 1 => {
            args[direct].collation().check_implicit()?;
            (direct, compared_form(args[direct].clone())?)
        }
        _ => return Ok((ret, shown)),
    };
    let given = args[at].ty().clone();
    args[at] = form;
    let form = args[at].ty().clone();
    if form == given {
        return Ok((ret, shown));
    }
    // Several values at once are an array of them.
    let several = ret.element().is_some() && given.element().is_none();
    shown.of_form = Some(ret);
    Ok((if several { form.array_of() } else { form }, shown))
}

/// The entry of the registry for a call of an aggregate.
fn resolve_aggregate(
    name: &str,
    args: &[Bound],
    direct: usize,
    within: usize,
) -> SqlResult<(Choice, AggregateCode)> {
    let types: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
    let choice = resolve(name, &types, false)?;
    let Code::Aggregate(code) = choice.function.code else {
        return Err(SqlError::internal(format!("{name} is no aggregate")));
    };
    let before = match code.within_group {
        Some(Direct::Count(before)) => Some(before),
        Some(Direct::AsKeys) => Some(within),
        None => None,
    };
    match before {
        Some(before) if within == 0 || direct != before => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
        )),
        None if within > 0 => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"),
        )),
        _ => Ok((choice, code)),
    }
}

/// 42601 for clauses of arguments that have another meaning with WITHIN GROUP.
fn check_clauses(given: &Arguments<'_>, within: &[ast::OrderByExpr]) -> SqlResult<()> {
    if within.is_empty() || (!given.distinct && given.order.is_empty()) {
        return Ok(());
    }
    let what = if given.distinct { "DISTINCT" } else { "multiple ORDER BY clauses" };
    Err(SqlError::syntax(format!("cannot use {what} with WITHIN GROUP")))
}

/// 42803 for an aggregate in the arguments of another.
pub(super) fn nested_aggregate() -> SqlError {
    SqlError::new(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested")
}

impl Binder<'_> {
    /// Binds an aggregate's arguments and picks its function.
    pub(super) fn choose_aggregate(
        &mut self,
        name: &str,
        function: &ast::Function,
    ) -> SqlResult<Chosen> {
        let given = Self::arguments(function)?;
        let within: &[ast::OrderByExpr] = &function.within_group;
        check_clauses(&given, within)?;
        if !given.star && given.exprs.is_empty() && given.rows.is_empty() && within.is_empty() {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name}(*) must be used to call a parameterless aggregate function"),
            ));
        }
        let mut args = Vec::new();
        for expr in given.exprs.iter().copied().chain(within.iter().map(|o| &o.expr)) {
            args.push(self.expr(expr)?);
        }
        for table in &given.rows {
            let row = self.whole_row(table)?;
            args.push(
                row.ok_or_else(|| self.level().scope.not_found(&[table.clone(), "*".into()]))?,
            );
        }
        if is_hypothetical(name) && !within.is_empty() {
            args = self.of_one_row(name, args, given.exprs.len())?;
        }
        let written = if given.distinct { args.clone() } else { Vec::new() };
        let args = written_arguments(name, args)?;
        let (choice, code) = resolve_aggregate(name, &args, given.exprs.len(), within.len())?;
        let mut converted = Vec::with_capacity(args.len() + given.order.len());
        for (arg, ty) in args.into_iter().zip(&choice.args) {
            converted.push(coerce(arg, ty, CastContext::Implicit, self)?);
        }
        let mut args = converted;
        if args.is_empty() {
            // What is counted are rows.
            args.push(Bound::constant(Datum::Bool(true), SqlType::Bool));
        }
        refuse_loose(name, &args, given.distinct)?;
        let (ret, shown) = compare_by_forms(name, &mut args, within.len(), choice.ret)?;
        let types: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
        if given.distinct {
            types.iter().try_for_each(|ty| ty.check_comparable("equality"))?;
        }
        let sorted = types.len() - within.len()..types.len();
        types[sorted].iter().try_for_each(|ty| ty.check_comparable("ordering"))?;
        let order = self.aggregate_order(&given, within, (code, &written), &mut args)?;
        let spec = Spec {
            code,
            name: name.to_string(),
            args: types,
            ret: ret.clone(),
            distinct: given.distinct,
            filtered: function.filter.is_some(),
            order,
            within: within.iter().map(|key| OrderKey::of(&key.options)).collect(),
            place: self.place.clone(),
        };
        Ok(Chosen { udf: aggregate(spec), args, ret, shown })
    }

    /// The keys that the rows of an aggregate are sorted by, behind its arguments. Different values
    /// are sorted by nothing but the arguments, as they were written or converted.
    fn aggregate_order(
        &mut self,
        given: &Arguments<'_>,
        within: &[ast::OrderByExpr],
        (code, written): (AggregateCode, &[Bound]),
        args: &mut Vec<Bound>,
    ) -> SqlResult<Vec<(OrderKey, SqlType)>> {
        let own = args.len();
        let mut order = Vec::new();
        let unordered = given.order.is_empty() && !given.distinct && within.is_empty();
        let from = match unordered && code.by_order {
            true => self.level().aggregating.from_order.clone(),
            false => Vec::new(),
        };
        for key in given.order.iter().chain(&from) {
            let bound = self.settled(&key.expr)?;
            bound.ty().check_comparable("ordering")?;
            let is_argument = |arg: &Bound| arg.is_like(&bound, 0);
            let as_written = given.exprs.contains(&&key.expr);
            if given.distinct && !as_written && !written.iter().chain(&args[..own]).any(is_argument)
            {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument \
                     list",
                ));
            }
            let bound = order_form(bound)?;
            order.push((OrderKey::of(&key.options), bound.ty().clone()));
            args.push(bound);
        }
        if given.distinct && order.is_empty() && code.by_order {
            // Different values come in their order.
            let by_locale = args.iter().filter(|arg| !arg.collation().is_by_bytes());
            let forms = by_locale.cloned().map(order_form).collect::<SqlResult<Vec<_>>>()?;
            order.extend(forms.iter().map(|form| (OrderKey::default(), form.ty().clone())));
            args.extend(forms);
        }
        Ok(order)
    }

    /// The values of a row that is given, and those of the keys that it is compared with, each two
    /// of one type.
    fn of_one_row(
        &mut self,
        name: &str,
        mut args: Vec<Bound>,
        direct: usize,
    ) -> SqlResult<Vec<Bound>> {
        let keys = args.len() - direct;
        if direct != keys {
            let types: Vec<String> = args.iter().map(|arg| arg.ty().base_name()).collect();
            let text = format!("function {name}({}) does not exist", types.join(", "));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, text).with_hint(format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
                 arguments (here {direct}) must match the number of ordering columns (here {keys})."
            )));
        }
        for at in 0..direct {
            let types = [args[at].ty().clone(), args[direct + at].ty().clone()];
            let [a, b] = &types;
            let common = common_type(&[a, b]).ok_or_else(|| {
                let (a, b) = (a.base_name(), b.base_name());
                let text = format!("WITHIN GROUP types {b} and {a} cannot be matched");
                SqlError::new(SqlState::DATATYPE_MISMATCH, text)
            })?;
            for at in [at, direct + at] {
                args[at] = coerce(args[at].clone(), &common, CastContext::Implicit, self)?;
            }
        }
        Ok(args)
    }

    /// 42803 for an argument in front of WITHIN GROUP that differs among the rows of a group.
    fn check_direct(&mut self, direct: &[Bound]) -> SqlResult<()> {
        let inputs = self.level().inputs;
        for arg in direct {
            if self.level().groups.iter().any(|group| group.bound.is_like(arg, 0)) {
                continue;
            }
            for at in arg.columns().into_iter().filter(|at| *at < inputs) {
                self.group_of_input(at).map_err(|e| {
                    let only = "an ordered-set aggregate must use only grouped columns.";
                    e.with_detail(format!("Direct arguments of {only}"))
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn aggregate_call(
        &mut self,
        name: &str,
        function: &ast::Function,
    ) -> SqlResult<Bound> {
        if self.queries_out(function)? > 0 {
            let found = self.one_level_out(|b| b.aggregate_call(name, function).map(Some))?;
            let outer = found.ok_or_else(|| SqlError::internal("an aggregate of no query"))?;
            return Ok(self.brought_in(outer));
        }
        if let Some(clause) = self.level().aggregating.refused_in {
            return Err(aggregate_not_allowed(clause));
        }
        if self.level().aggregating.inside {
            return Err(nested_aggregate());
        }
        // Written once more, in HAVING or ORDER BY: it is computed once.
        let text = function.to_string();
        let same = self.level().aggregates.iter().find(|known| known.text == text);
        if let Some(known) = same.filter(|known| !known.is_volatile()) {
            return Ok(known.value.clone());
        }
        self.level().aggregating.inside = true;
        let chosen = self.choose_aggregate(name, function);
        let filter = match &function.filter {
            Some(filter) => self.condition(filter, "FILTER").map(Some),
            None => Ok(None),
        };
        self.level().aggregating.inside = false;
        let (chosen, filter) = (chosen?, filter?);
        let direct = match function.within_group.len() {
            0 => 0,
            keys => chosen.args.len() - keys,
        };
        self.check_direct(&chosen.args[..direct])?;
        let column = self.fresh("agg");
        let slot = self.add_column(&column, chosen.ret.clone());
        self.note_aggregate(name, &chosen, slot);
        let args = self.behind_filter(filter.as_ref(), chosen.args);
        let value = chosen.shown.value(Bound::column(slot, chosen.ret))?;
        let (udf, shown) = (chosen.udf, value.clone());
        let pending = Pending { text, udf, args, direct, filter, slot, value };
        self.level().aggregates.push(pending);
        Ok(shown)
    }

    /// Notes whether an aggregate can raise an error, and whether its numbers stay short.
    fn note_aggregate(&mut self, name: &str, chosen: &Chosen, slot: usize) {
        let exact = |ty: &SqlType| ty.is_integer() || matches!(ty, SqlType::Numeric(_));
        let all_exact = chosen.args.iter().all(|a| exact(a.ty()));
        self.risky |= match name {
            "count" | "min" | "max" | "bool_and" | "bool_or" | "every" | "array_agg"
            | "string_agg" => false,
            "sum" | "avg" => !all_exact,
            _ => true,
        };
        let short = |b: &Binder<'_>, a: &Bound| a.ty().is_integer() || b.is_short(a);
        if matches!(name, "sum" | "avg" | "min" | "max")
            && chosen.args.iter().all(|a| short(self, a))
        {
            self.level().short.insert(slot);
        }
    }

    /// The group that an expression is, if it is one.
    pub(super) fn grouped_expr(&mut self, expr: &ast::Expr) -> SqlResult<Option<Bound>> {
        let level = self.level();
        if level.aggregating.inside || level.groups.is_empty() {
            return Ok(None);
        }
        let found = level.groups.iter().find(|g| g.ast.as_ref() == Some(expr));
        Ok(found.map(|g| {
            let group = Bound::column(g.slot, g.bound.ty().clone());
            group.with_collation(g.bound.collation().clone())
        }))
    }

    /// Binds the GROUP BY list. `select` gives the expressions that ordinals and aliases mean.
    pub(super) fn bind_groups(
        &mut self,
        exprs: &[ast::Expr],
        select: &[(Option<String>, ast::Expr)],
    ) -> SqlResult<()> {
        let Some(sets) = grouping_sets::alternatives(exprs)? else {
            let keys = grouping_sets::flat(exprs);
            let groups: Vec<(ast::Expr, Bound)> =
                keys.into_iter().map(|e| self.bind_group(e, select)).collect::<SqlResult<_>>()?;
            for (target, bound) in groups {
                self.add_group(Some(target), bound);
            }
            return Ok(());
        };
        let mut groups: Vec<(ast::Expr, Bound)> = Vec::new();
        let mut members: Vec<Vec<usize>> = Vec::with_capacity(sets.len());
        for set in &sets {
            let mut own = Vec::with_capacity(set.len());
            for e in grouping_sets::flat(set) {
                let (target, bound) = self.bind_group(e, select)?;
                let known = groups.iter().position(|(_, g)| g.is_like(&bound, 0));
                own.push(known.unwrap_or(groups.len()));
                if known.is_none() {
                    groups.push((target, bound));
                }
            }
            members.push(own);
        }
        let count = groups.len();
        let set = |own: &Vec<usize>| (0..count).map(|n| own.contains(&n)).collect();
        self.note_sets(members.iter().map(set).collect());
        for (target, bound) in groups {
            self.add_group(Some(target), bound);
        }
        Ok(())
    }

    /// Binds one expression of GROUP BY.
    fn bind_group(
        &mut self,
        expr: &ast::Expr,
        select: &[(Option<String>, ast::Expr)],
    ) -> SqlResult<(ast::Expr, Bound)> {
        let mut expr = expr.clone();
        while let ast::Expr::Nested(inner) = expr {
            expr = *inner;
        }
        let target = self.group_target(&expr, select)?;
        let scope = self.level().scope.clone();
        let bound =
            self.without_aggregates("GROUP BY", |b| braid_scalar::bind(&target, &scope, b))?;
        bound.ty().check_comparable("equality")?;
        bound.collation().check_implicit()?;
        Ok((target, bound))
    }

    /// What a key of GROUP BY means: an item of the select list by its number or name, or itself.
    pub(super) fn group_target(
        &mut self,
        expr: &ast::Expr,
        select: &[(Option<String>, ast::Expr)],
    ) -> SqlResult<ast::Expr> {
        if let Some(at) = braid_scalar::column_by_number(expr, select.len(), "GROUP BY")? {
            return Ok(select[at].1.clone());
        }
        if let ast::Expr::Identifier(ident) = expr {
            let name = braid_scalar::ident_name(ident);
            // A column of FROM wins over an alias, as PostgreSQL has it.
            if self.level().scope.find(std::slice::from_ref(&name))?.is_none()
                && let Some((_, target)) =
                    select.iter().find(|(alias, _)| alias.as_ref() == Some(&name))
            {
                return Ok(target.clone());
            }
        }
        Ok(expr.clone())
    }

    fn add_group(&mut self, ast: Option<ast::Expr>, bound: Bound) -> usize {
        let name = self.fresh("group");
        let slot = self.add_column(&name, bound.ty().clone());
        self.level().groups.push(Group { ast, bound, slot });
        slot
    }

    /// Moves an expression of the select list from inputs to groups.
    ///
    /// # Errors
    /// 42803 for a column that is neither grouped nor aggregated.
    pub(super) fn regroup(&mut self, bound: &Bound) -> SqlResult<Bound> {
        let inputs = self.level().inputs;
        let mut moves: HashMap<usize, usize> = HashMap::new();
        for at in bound.columns() {
            if at < inputs {
                moves.insert(at, self.group_of_input(at)?);
            }
        }
        Ok(bound.remap_columns(&|at| moves.get(&at).copied().unwrap_or(at)))
    }

    /// The group an input column is, by itself or because its table's key is grouped.
    pub(super) fn group_of_input(&mut self, at: usize) -> SqlResult<usize> {
        let level = self.level();
        if let Some(group) = level.groups.iter().find(|g| level.is_column(&g.bound, at)) {
            return Ok(group.slot);
        }
        if let Some(Some(origin)) = level.origins.get(at).copied() {
            let always = |n: usize| level.grouping.as_ref().is_none_or(|sets| sets.all_have(n));
            let grouped = level
                .groups
                .iter()
                .enumerate()
                .filter(|(n, _)| always(*n))
                .filter_map(|(_, g)| g.bound.as_column())
                .filter_map(|c| level.origins.get(c).copied().flatten())
                .filter(|o| o.relation == origin.relation && o.key)
                .count();
            if origin.keys > 0 && grouped >= origin.keys {
                let ty = level.slots[at].ty.clone();
                return Ok(self.add_group(None, Bound::column(at, ty)));
            }
        }
        let column = &level.scope.columns()[at];
        let name = match &column.table {
            Some(table) => format!("{table}.{}", column.name),
            None => column.name.clone(),
        };
        Err(SqlError::new(
            SqlState::GROUPING_ERROR,
            format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate \
                 function"
            ),
        ))
    }

    /// The aggregation node for the groups and aggregates of this level.
    pub(super) fn aggregate_plan(&mut self, mut plan: LogicalPlan) -> SqlResult<LogicalPlan> {
        let groups = self.level().groups.clone();
        let pending = std::mem::take(&mut self.level().aggregates);
        let sets = self.level().grouping.clone();
        let mut keys = Vec::new();
        let mut results: Vec<Expr> = Vec::new();
        if let Some(sets) = &sets {
            plan = self.rows_by_set(plan, sets)?;
            keys.push(super::column(&self.slot_name(sets.slot)));
        }
        let present = sets.as_ref().and_then(|sets| sets.present.clone());
        for (n, group) in groups.iter().enumerate() {
            let value = sets.as_ref().map(|sets| sets.value(n, &group.bound));
            let bound = self.lift(&mut plan, value.as_ref().unwrap_or(&group.bound))?;
            let expr = self.plan_expr(&bound)?;
            let name = self.slot_name(group.slot);
            let collation = group.bound.collation();
            if crate::arrow_form::is_native(group.bound.ty()) && collation.is_deterministic() {
                keys.push(expr.alias(name));
            } else {
                // Grouped by the key, shown as the first of the equal values.
                let key = self.fresh("key");
                let form = self.equal_form(expr.clone(), group.bound.ty(), collation)?;
                keys.push(form.alias(key));
                results.push(self.first_value(expr, group.bound.ty()).alias(name));
            }
        }
        for one in pending {
            let mut args = Vec::with_capacity(one.args.len());
            for (at, arg) in one.args.iter().enumerate() {
                let of_sets = sets.as_ref().filter(|_| at < one.direct);
                let of_sets = of_sets.map(|sets| sets.over_groups(&groups, arg));
                let arg = self.lift(&mut plan, of_sets.as_ref().unwrap_or(arg))?;
                args.push(self.plan_number(&arg)?);
            }
            let filter = match &one.filter {
                Some(f) => {
                    let filter = self.lift(&mut plan, f)?;
                    Some(self.plan_expr(&filter)?)
                }
                None => None,
            };
            let there = present.as_ref().map(|present| super::column(present).is_not_null());
            let filter = match (there, filter) {
                (Some(there), Some(filter)) => Some(there.and(filter)),
                (one, other) => one.or(other),
            };
            let filter = filter.map(Box::new);
            let call = AggregateFunction::new_udf(one.udf, args, false, filter, Vec::new(), None);
            let name = self.slot_name(one.slot);
            results.push(Expr::AggregateFunction(call).alias(name));
        }
        if keys.is_empty() && results.is_empty() {
            // HAVING alone makes one group of all rows.
            let one = Expr::Literal(datafusion::common::ScalarValue::Int64(Some(1)), None);
            results.push(self.first_value(one, &SqlType::Int8).alias(self.fresh("group")));
        }
        let rows = present.map(|present| (self.fresh("rows"), present));
        if let Some((rows, present)) = &rows {
            results.push(grouping_sets::count_present(present).alias(rows.clone()));
        }
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate(keys, results)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        match (sets, rows) {
            (Some(sets), Some((rows, _))) => self.without_absent(plan, &sets, &rows),
            _ => Ok(plan),
        }
    }

    /// The plan name behind a slot made by `add_column`.
    pub(super) fn slot_name(&mut self, slot: usize) -> String {
        match &self.level().slots[slot].kind {
            SlotKind::Plan(Expr::Column(c)) => c.name.clone(),
            SlotKind::Plan(_) => self.fresh("col"),
        }
    }

    pub(super) fn first_value(&self, expr: Expr, ty: &SqlType) -> Expr {
        let spec = Spec {
            code: first_of_group(),
            name: FIRST.to_string(),
            args: vec![ty.clone()],
            ret: ty.clone(),
            distinct: false,
            filtered: false,
            order: Vec::new(),
            within: Vec::new(),
            place: self.place.clone(),
        };
        let call =
            AggregateFunction::new_udf(aggregate(spec), vec![expr], false, None, Vec::new(), None);
        Expr::AggregateFunction(call)
    }

    /// Keeps one row of each set of rows equal in these columns; the others' values are those of
    /// the first row.
    pub(super) fn distinct_plan(
        &mut self,
        plan: LogicalPlan,
        columns: &[Named],
    ) -> SqlResult<LogicalPlan> {
        let mut keys = Vec::new();
        let mut results = Vec::new();
        for (name, ty, collation) in columns {
            ty.check_comparable("equality")?;
            let expr = super::column(name);
            if crate::arrow_form::is_native(ty) && collation.is_deterministic() {
                keys.push(expr);
            } else {
                let key = self.fresh("key");
                keys.push(self.equal_form(expr.clone(), ty, collation)?.alias(key));
                results.push(self.first_value(expr, ty).alias(name.clone()));
            }
        }
        LogicalPlanBuilder::from(plan)
            .aggregate(keys, results)
            .and_then(|b| b.project(columns.iter().map(|(name, ..)| super::column(name))))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }
}
