//! WITH RECURSIVE: its items in an order in which each needs only those before it, and whether
//! those that name themselves may.
//!
//! ```text
//!   WITH RECURSIVE a AS (SELECT .. FROM b), b AS (..)        b, a
//!   WITH RECURSIVE a AS (SELECT .. FROM b), b AS (.. a)      0A000: mutual recursion
//!   WITH RECURSIVE a AS (start UNION ALL step)               start must not name a; step once,
//!                                                            where rows come one by one
//! ```
//! A name that a WITH further inside takes means that one there.

use std::borrow::Cow;
use std::ops::ControlFlow;

use braid_types::{Place, SqlError, SqlResult, SqlState};
use sqlparser::ast::{
    self, Ident, JoinOperator, ObjectName, SetExpr, SetOperator, SetQuantifier, Statement,
    TableFactor, TableWithJoins, Visitor,
};

use super::places::at_word;
use crate::{ident_name, object_name_parts};

/// Where in a query a name stands, as far as that is a reason to refuse it.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    /// Rows of it are taken one by one.
    Rows,
    Start,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

impl Within {
    fn refused(self) -> Option<&'static str> {
        Some(match self {
            Within::Rows => return None,
            Within::Start => "within its non-recursive term",
            Within::Subquery => "within a subquery",
            Within::OuterJoin => "within an outer join",
            Within::Intersect => "within INTERSECT",
            Within::Except => "within EXCEPT",
        })
    }

    /// The first reason stays.
    fn or(self, inner: Within) -> Within {
        if self == Within::Rows { inner } else { self }
    }
}

/// What a walk does with each name of a table.
type Found<'a> = &'a mut dyn FnMut(&Ident, &str, Within) -> SqlResult<()>;

/// Goes over the names of tables in a query that no WITH inside of it takes.
struct Walk<'a> {
    found: Found<'a>,
    hidden: Vec<String>,
}

/// Whether a query of a WITH RECURSIVE names itself.
pub fn names_itself(query: &ast::Query, name: &str) -> bool {
    let mut named = false;
    let mut found = |_: &Ident, used: &str, _: Within| {
        named |= used == name;
        Ok(())
    };
    let walked = Walk::new(&mut found).query(query, Within::Rows);
    walked.is_ok() && named
}

/// The items of a WITH in an order in which each needs only those before it.
///
/// # Errors
/// 0A000 if there is none; 42P19 for an item that names itself where it may not.
pub fn with_in_order(with: &ast::With) -> SqlResult<Cow<'_, ast::With>> {
    if !with.recursive {
        return Ok(Cow::Borrowed(with));
    }
    let names: Vec<String> =
        with.cte_tables.iter().map(|cte| ident_name(&cte.alias.name)).collect();
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(names.len());
    let mut recursive = Vec::with_capacity(names.len());
    for (at, cte) in with.cte_tables.iter().enumerate() {
        let mut others = Vec::new();
        let mut itself = false;
        let mut found = |_: &Ident, used: &str, _: Within| {
            match names.iter().position(|name| name == used) {
                Some(other) if other == at => itself = true,
                Some(other) => others.push(other),
                None => {}
            }
            Ok(())
        };
        Walk::new(&mut found).query(&cte.query, Within::Rows)?;
        needs.push(others);
        recursive.push(itself);
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    for at in 0..order.len() {
        let open = |item: &usize| needs[*item].iter().all(|needed| order[..at].contains(needed));
        let Some(next) = order[at..].iter().position(open) else {
            let text = "mutual recursion between WITH items is not implemented";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
            return Err(error.or_place(place(&with.cte_tables[order[at]].alias.name)));
        };
        order.swap(at, at + next);
    }
    for item in order.iter().filter(|item| recursive[**item]) {
        check(&with.cte_tables[*item].query, &names[*item])?;
    }
    if order.is_sorted() {
        return Ok(Cow::Borrowed(with));
    }
    let cte_tables = order.into_iter().map(|item| with.cte_tables[item].clone()).collect();
    Ok(Cow::Owned(ast::With { cte_tables, ..with.clone() }))
}

/// Refuses what PostgreSQL does not let a recursive query be.
fn check(query: &ast::Query, name: &str) -> SqlResult<()> {
    let refused = |text: String| SqlError::new(SqlState("42P19"), text);
    let (left, right) = match &*query.body {
        SetExpr::SetOperation { left, op: SetOperator::Union, right, .. } => (left, right),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            let text = "must not contain data-modifying statements";
            return Err(refused(format!("recursive query \"{name}\" {text}")));
        }
        _ => {
            let text = "does not have the form non-recursive-term UNION [ALL] recursive-term";
            return Err(refused(format!("recursive query \"{name}\" {text}")));
        }
    };
    let mut uses = 0;
    let mut found = |ident: &Ident, used: &str, within: Within| {
        if used != name {
            return Ok(());
        }
        uses += 1;
        let what = match within.refused() {
            Some(what) => what,
            None if uses > 1 => "more than once",
            None => return Ok(()),
        };
        let text = format!("recursive reference to query \"{name}\" must not appear {what}");
        Err(refused(text).or_place(place(ident)))
    };
    let mut walk = Walk::new(&mut found);
    let inner = query.with.iter().flat_map(|with| &with.cte_tables);
    walk.hidden.extend(inner.map(|cte| ident_name(&cte.alias.name)));
    walk.set_expr(left, Within::Start)?;
    walk.set_expr(right, Within::Rows)?;
    walk.hidden.clear();
    if let Some(with) = &query.with {
        walk.with(with, Within::Subquery)?;
    }
    let text = if query.order_by.is_some() {
        "ORDER BY"
    } else if let Some(limit) = &query.limit_clause {
        match limit {
            ast::LimitClause::LimitOffset { offset: Some(_), .. } => "OFFSET",
            _ => "LIMIT",
        }
    } else if query.fetch.is_some() {
        "LIMIT"
    } else if !query.locks.is_empty() {
        "FOR UPDATE/SHARE"
    } else {
        return Ok(());
    };
    let text = format!("{text} in a recursive query is not implemented");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text))
}

fn place(ident: &Ident) -> Option<Place> {
    at_word(ident.span.start, &ident.value)
}

impl<'a> Walk<'a> {
    fn new(found: Found<'a>) -> Walk<'a> {
        Walk { found, hidden: Vec::new() }
    }

    fn query(&mut self, query: &ast::Query, within: Within) -> SqlResult<()> {
        let known = self.hidden.len();
        if let Some(with) = &query.with {
            self.with(with, within)?;
        }
        self.set_expr(&query.body, within)?;
        self.expressions(&query.order_by)?;
        self.expressions(&query.limit_clause)?;
        self.expressions(&query.fetch)?;
        self.hidden.truncate(known);
        Ok(())
    }

    /// Leaves the names of the items hidden.
    fn with(&mut self, with: &ast::With, within: Within) -> SqlResult<()> {
        let mut names: Vec<String> =
            with.cte_tables.iter().map(|cte| ident_name(&cte.alias.name)).collect();
        if with.recursive {
            self.hidden.append(&mut names);
        }
        let mut names = names.into_iter();
        for cte in &with.cte_tables {
            self.query(&cte.query, within)?;
            self.hidden.extend(names.next());
        }
        Ok(())
    }

    /// Unions may be many: they are not gone down into by calls.
    fn set_expr(&mut self, body: &SetExpr, within: Within) -> SqlResult<()> {
        let mut open = vec![(body, within)];
        while let Some((body, within)) = open.pop() {
            match body {
                SetExpr::SetOperation { left, op, set_quantifier, right } => {
                    let all = *set_quantifier == SetQuantifier::All;
                    let (first, second) = match op {
                        SetOperator::Intersect if all => (Within::Intersect, Within::Intersect),
                        SetOperator::Except | SetOperator::Minus => {
                            let first = if all { Within::Except } else { Within::Rows };
                            (first, Within::Except)
                        }
                        _ => (Within::Rows, Within::Rows),
                    };
                    open.push((right, within.or(second)));
                    open.push((left, within.or(first)));
                }
                SetExpr::Select(select) => self.select(select, within)?,
                SetExpr::Query(query) => self.query(query, within)?,
                SetExpr::Insert(statement)
                | SetExpr::Update(statement)
                | SetExpr::Delete(statement)
                | SetExpr::Merge(statement) => self.writing(statement, within)?,
                other => self.expressions(other)?,
            }
        }
        Ok(())
    }

    fn select(&mut self, select: &ast::Select, within: Within) -> SqlResult<()> {
        let mut rest = select.clone();
        let from = std::mem::take(&mut rest.from);
        self.expressions(&rest)?;
        from.iter().try_for_each(|tables| self.joined(tables, within))
    }

    fn writing(&mut self, statement: &Statement, within: Within) -> SqlResult<()> {
        let from: &[TableWithJoins] = match statement {
            Statement::Insert(insert) => {
                if let Some(source) = &insert.source {
                    self.query(source, within)?;
                }
                let source = None;
                let rest = Statement::Insert(ast::Insert { source, ..insert.clone() });
                return self.expressions(&rest);
            }
            Statement::Update(update) => match &update.from {
                Some(ast::UpdateTableFromKind::AfterSet(from)) => from,
                _ => &[],
            },
            Statement::Delete(delete) => delete.using.as_deref().unwrap_or_default(),
            Statement::Merge(merge) => {
                self.factor(&merge.source, within)?;
                &[]
            }
            _ => &[],
        };
        from.iter().try_for_each(|tables| self.joined(tables, within))?;
        self.expressions(statement)
    }

    fn joined(&mut self, tables: &TableWithJoins, within: Within) -> SqlResult<()> {
        let mut around = within;
        let mut sides = Vec::with_capacity(tables.joins.len());
        for join in tables.joins.iter().rev() {
            let (left, right) = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
                JoinOperator::FullOuter(_) => (true, true),
                _ => (false, false),
            };
            let padded = |side| if side { Within::OuterJoin } else { Within::Rows };
            sides.push(around.or(padded(right)));
            around = around.or(padded(left));
        }
        self.factor(&tables.relation, around)?;
        for (join, side) in tables.joins.iter().zip(sides.into_iter().rev()) {
            self.factor(&join.relation, side)?;
            self.expressions(&join.join_operator)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor, within: Within) -> SqlResult<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.name(name, within),
            TableFactor::Derived { subquery, .. } => self.query(subquery, within),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.joined(table_with_joins, within)
            }
            other => self.expressions(other),
        }
    }

    fn name(&mut self, name: &ObjectName, within: Within) -> SqlResult<()> {
        let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else { return Ok(()) };
        match object_name_parts(name).as_slice() {
            [name] if !self.hidden.contains(name) => (self.found)(ident, name, within),
            _ => Ok(()),
        }
    }

    /// The queries within expressions.
    fn expressions(&mut self, node: &impl braid_walk::Walk) -> SqlResult<()> {
        let mut queries = Queries { walk: self, depth: 0 };
        match node.walk(&mut queries) {
            ControlFlow::Break(e) => Err(e),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

/// Hands the outermost queries of something to a walk.
struct Queries<'w, 'a> {
    walk: &'w mut Walk<'a>,
    depth: usize,
}

impl Visitor for Queries<'_, '_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        if self.depth == 1
            && let Err(e) = self.walk.query(query, Within::Subquery)
        {
            return ControlFlow::Break(e);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Query;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn parsed(text: &str) -> Box<Query> {
        Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_query().unwrap()
    }

    /// The names of the items, or what is wrong.
    fn order(text: &str) -> String {
        match with_in_order(parsed(text).with.as_ref().unwrap()) {
            Ok(with) => {
                let names = with.cte_tables.iter().map(|cte| cte.alias.name.value.clone());
                names.collect::<Vec<_>>().join(" ")
            }
            Err(e) => e.message().to_string(),
        }
    }

    #[test]
    fn items_come_behind_those_that_they_name() {
        let all = "a AS (SELECT * FROM b, c), b AS (SELECT * FROM c), c AS (SELECT 1)";
        assert_eq!(order(&format!("WITH RECURSIVE {all} SELECT 1")), "c b a");
        assert_eq!(order(&format!("WITH {all} SELECT 1")), "a b c");
        let hidden = "a AS (WITH b AS (SELECT 1) SELECT * FROM b), b AS (SELECT * FROM a)";
        assert_eq!(order(&format!("WITH RECURSIVE {hidden} SELECT 1")), "a b");
        let not_yet = "a AS (WITH c AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM b)";
        let all = format!("WITH RECURSIVE {not_yet}, b AS (SELECT 2) SELECT 1");
        assert_eq!(order(&all), "b a");
        let writing = "a AS (UPDATE a SET x = 1 FROM b RETURNING *), b AS (SELECT 1)";
        assert_eq!(order(&format!("WITH RECURSIVE {writing} SELECT 1")), "b a");
        let mutual = "a AS (SELECT * FROM b), b AS (SELECT (SELECT 1 FROM a))";
        assert!(order(&format!("WITH RECURSIVE {mutual} SELECT 1")).starts_with("mutual"));
    }

    #[test]
    fn a_query_names_itself_where_rows_come_one_by_one() {
        let told = |step: &str| order(&format!("WITH RECURSIVE x AS ({step}) SELECT 1"));
        let once =
            |place: &str| format!("recursive reference to query \"x\" must not appear {place}");
        let of = |step: &str| told(&format!("SELECT 1 UNION ALL {step}"));
        assert_eq!(of("SELECT * FROM t LEFT JOIN x ON true"), once("within an outer join"));
        assert_eq!(of("SELECT * FROM x LEFT JOIN t ON true"), "x");
        assert_eq!(
            of("SELECT * FROM x JOIN t ON true RIGHT JOIN u ON true"),
            once("within an outer join")
        );
        assert_eq!(of("(SELECT * FROM x UNION SELECT * FROM x)"), once("more than once"));
        assert_eq!(of("(SELECT * FROM x INTERSECT SELECT 1)"), "x");
        assert_eq!(of("(SELECT * FROM x INTERSECT ALL SELECT 1)"), once("within INTERSECT"));
        assert_eq!(of("(SELECT 1 EXCEPT SELECT * FROM x)"), once("within EXCEPT"));
        assert_eq!(of("SELECT (SELECT 1 FROM x) FROM x"), once("within a subquery"));
        assert_eq!(of("SELECT 1 FROM (SELECT * FROM x) s"), "x");
        assert_eq!(
            told("SELECT 1 FROM x UNION ALL SELECT 2"),
            once("within its non-recursive term")
        );
        assert_eq!(
            told("WITH y AS (SELECT 1 FROM x) SELECT 1 UNION SELECT * FROM x"),
            once("within a subquery")
        );
        assert_eq!(
            of("SELECT * FROM x FOR UPDATE"),
            "FOR UPDATE/SHARE in a recursive query is not implemented"
        );
        assert!(told("SELECT * FROM x").contains("does not have the form"));
    }
}
