//! The cheapest tree of joins over a graph.
//!
//! A join costs what it reads from both sides, once more what it holds of the left one, and what it
//! gives. Reading a table costs its rows, unless the join looks up few of them by a key.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::check::Check;
use super::estimate::Estimate;
use super::graph::{Graph, Set};

use crate::exec::facts::{LOOKUPS_MAX, SOME};
use crate::planning::check_stop;

/// Relations of which all trees are looked at.
const ALL_TREES: usize = 10;
/// What holding a row costs beside reading it.
const HELD: f64 = 1.0;
/// What a row that comes out of a join costs.
const GIVEN: f64 = 0.5;

/// A tree of joins; the left side is read first and held.
#[derive(Clone, Debug)]
enum Tree {
    Relation(usize),
    Join(Arc<Joined>, Arc<Joined>),
}

/// A tree with what it costs.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    tree: Tree,
    set: Set,
    rows: f64,
    cost: f64,
}

impl Joined {
    /// The plan of the tree.
    pub(super) fn plan(&self, graph: &Graph) -> Result<LogicalPlan> {
        match &self.tree {
            Tree::Relation(number) => graph.relation_plan(*number),
            Tree::Join(left, right) => {
                let (a, b) = (left.plan(graph)?, right.plan(graph)?);
                graph.join((a, left.set), (b, right.set))
            }
        }
    }
}

/// The best tree of all relations.
///
/// # Errors
/// 57014 when the statement shall stop.
pub(super) fn best(graph: &Graph) -> Result<Joined> {
    let single: Vec<Joined> = (0..graph.relations.len()).map(|n| relation(graph, n)).collect();
    let trees = match single.len() <= ALL_TREES {
        true => all_trees(graph, &single)?,
        false => greedy(graph, single, true)?,
    };
    // What nothing connects is multiplied, the smallest first.
    let mut whole = greedy(graph, trees, false)?;
    Ok(whole.pop().unwrap_or_else(|| relation(graph, 0)))
}

fn relation(graph: &Graph, number: usize) -> Joined {
    let estimate = &graph.relations[number].estimate;
    let read = estimate.table.as_ref().map_or(estimate.rows, |facts| facts.rows().max(1.0));
    let rows = estimate.rows.max(1.0);
    Joined { tree: Tree::Relation(number), set: 1 << number, rows, cost: read.max(rows) }
}

/// The best tree of each connected part.
fn all_trees(graph: &Graph, single: &[Joined]) -> Result<Vec<Joined>> {
    let all: Set = (1 << single.len()) - 1;
    let mut best: HashMap<Set, Joined> = single.iter().map(|j| (j.set, j.clone())).collect();
    for set in 1..=all {
        if set.count_ones() < 2 {
            continue;
        }
        check_stop()?;
        let mut cheapest: Option<Joined> = None;
        // Each way to cut the set in two, once: the lowest relation is on the left.
        let lowest = set & set.wrapping_neg();
        let mut left = (set - 1) & set;
        while left > 0 {
            if left & lowest != 0
                && let (Some(a), Some(b)) = (best.get(&left), best.get(&(set ^ left)))
                && let Some(joined) = join(graph, a, b)
                && cheapest.as_ref().is_none_or(|known| joined.cost < known.cost)
            {
                cheapest = Some(joined);
            }
            left = (left - 1) & set;
        }
        if let Some(joined) = cheapest {
            best.insert(set, joined);
        }
    }
    // The largest sets that do not overlap.
    let mut sets: Vec<Set> = best.keys().copied().collect();
    sets.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
    let mut covered = 0;
    let mut trees = Vec::new();
    for set in sets {
        if set & covered == 0 {
            covered |= set;
            trees.extend(best.remove(&set));
        }
    }
    Ok(trees)
}

/// Joins the pair with the smallest result until there is none; only connected ones if so wished.
fn greedy(graph: &Graph, mut trees: Vec<Joined>, connected: bool) -> Result<Vec<Joined>> {
    // Most pairs of a round were pairs of the round before.
    let mut known: HashMap<(Set, Set), Option<Joined>> = HashMap::new();
    loop {
        let mut smallest: Option<(usize, usize, f64)> = None;
        for a in 0..trees.len() {
            check_stop()?;
            for b in a + 1..trees.len() {
                let (left, right) = (&trees[a], &trees[b]);
                let joined = known.entry((left.set, right.set)).or_insert_with(|| {
                    let joined = join(graph, left, right);
                    let multiplies = !connected && both_give_rows(graph, left, right);
                    joined.or_else(|| multiplies.then(|| multiplied(graph, left, right)))
                });
                let Some(joined) = joined else { continue };
                if smallest.is_none_or(|(_, _, rows)| joined.rows < rows) {
                    smallest = Some((a, b, joined.rows));
                }
            }
        }
        let Some((a, b, _)) = smallest else { return Ok(trees) };
        let pair = (trees[a].set, trees[b].set);
        trees.remove(b);
        trees[a] = known.remove(&pair).flatten().expect("the pair was found");
    }
}

/// A tree whose rows are checked; `None` if it has not all columns that are asked for.
fn checked(graph: &Graph, check: &Check, rows: &Joined, others: &Joined) -> Option<Joined> {
    if check.needs & !rows.set != 0 || rows.set & others.set != 0 {
        return None;
    }
    let left = (rows.rows * check.share).max(1.0);
    let own = others.set.trailing_zeros() as usize;
    let keys_of = |number: usize| -> Vec<String> {
        if number != own && !check.can_be_told() {
            return Vec::new();
        }
        check.keys(number == own).filter_map(column_name).map(str::to_string).collect()
    };
    Some(joined(graph, rows, others, left, &keys_of))
}

/// Whether two trees can be multiplied: what only checks rows cannot.
fn both_give_rows(graph: &Graph, a: &Joined, b: &Joined) -> bool {
    graph.check_of(a.set).or(graph.check_of(b.set)).is_none()
}

/// The join of two trees; `None` if nothing connects them.
fn join(graph: &Graph, a: &Joined, b: &Joined) -> Option<Joined> {
    match (graph.check_of(a.set), graph.check_of(b.set)) {
        (None, None) => {}
        (None, Some(check)) => return checked(graph, check, a, b),
        (Some(check), None) => return checked(graph, check, b, a),
        (Some(_), Some(_)) => return None,
    }
    let (mut of_a, mut of_b, mut keys) = (1.0, 1.0, Vec::new());
    for class in &graph.classes {
        let least = |set: Set| {
            let members = class.iter().filter(|m| set & 1 << m.relation != 0);
            members.map(|m| m.distinct).reduce(f64::min)
        };
        if let (Some(left), Some(right)) = (least(a.set), least(b.set)) {
            of_a *= left;
            of_b *= right;
            keys.push(class);
        }
    }
    if keys.is_empty() {
        return None;
    }
    let different = f64::max(f64::min(of_a, a.rows), f64::min(of_b, b.rows)).max(1.0);
    // Rows that a key tells apart: as many values as the table has rows.
    let unique = |set: Set| {
        (0..graph.relations.len()).filter(|n| set & 1 << n != 0).find_map(|number| {
            let facts = graph.relations[number].estimate.table.as_ref()?;
            let columns = keys.iter().flat_map(|class| class.iter());
            let own = columns.filter(|m| m.relation == number).map(|m| &m.expr);
            facts.has_key_within(own.filter_map(column_name)).then(|| facts.rows().max(1.0))
        })
    };
    let different = match (unique(a.set), unique(b.set)) {
        (Some(x), Some(y)) => x.max(y),
        (Some(rows), None) | (None, Some(rows)) => rows,
        (None, None) => different,
    };
    let filters = graph.conditions_between(a.set, b.set);
    let rows = (a.rows * b.rows / different * SOME.powi(filters as i32)).max(1.0);
    let one_way = joined(graph, a, b, rows, &|number| {
        let columns = keys.iter().flat_map(|class| class.iter());
        let own = columns.filter(|m| m.relation == number).map(|m| &m.expr);
        own.filter_map(column_name).map(str::to_string).collect()
    });
    Some(one_way)
}

fn column_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(c) => Some(&c.name),
        Expr::Cast(cast) => column_name(&cast.expr),
        _ => None,
    }
}

/// Two trees, the cheaper way round.
fn joined(
    graph: &Graph,
    a: &Joined,
    b: &Joined,
    rows: f64,
    keys_of: &dyn Fn(usize) -> Vec<String>,
) -> Joined {
    let way = |held: &Joined, read: &Joined| {
        let mut cost = read.cost;
        if let Tree::Relation(number) = read.tree
            && held.rows <= LOOKUPS_MAX as f64
            && let Estimate { table: Some(facts), wanted, .. } = &graph.relations[number].estimate
        {
            let keys = keys_of(number);
            let by_key = facts.cost_by_columns(keys.iter().map(String::as_str), held.rows, wanted);
            cost = by_key.map_or(cost, |by_key| cost.min(by_key));
        }
        held.cost + cost + held.rows * HELD + rows * GIVEN
    };
    let (ab, ba) = (way(a, b), way(b, a));
    let (left, right, cost) = match ba < ab || (ba == ab && b.rows < a.rows) {
        true => (b, a, ba),
        false => (a, b, ab),
    };
    let tree = Tree::Join(Arc::new(left.clone()), Arc::new(right.clone()));
    Joined { tree, set: a.set | b.set, rows, cost }
}

fn multiplied(graph: &Graph, a: &Joined, b: &Joined) -> Joined {
    let filters = graph.conditions_between(a.set, b.set);
    let rows = (a.rows * b.rows * SOME.powi(filters as i32)).max(1.0);
    joined(graph, a, b, rows, &|_| Vec::new())
}
