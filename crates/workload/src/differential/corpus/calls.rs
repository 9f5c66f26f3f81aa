//! Calls of aggregates, set-returning and window functions over the rows of the table.

use braid_env::random::Random;

use super::CorpusResult;
use super::generate::Expr;
use super::recipes::{AGGREGATES, Recipe, SETS, WINDOWS};
use super::runner::{Position, ROWS, Run};
use super::values::TYPES;

/// What stands in OVER: the rows have a total order, so that every function has one answer.
const OVER: &[&str] = &[
    "ORDER BY id",
    "ORDER BY id DESC",
    "PARTITION BY id % 3 ORDER BY id",
    "PARTITION BY c_bool ORDER BY id",
    "PARTITION BY c_text ORDER BY c_numeric, id",
    "ORDER BY c_int4 NULLS FIRST, id",
    "ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ORDER BY id RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY c_numeric, id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
];

/// Peers are compared by functions that give the same value to all of them.
const OVER_PEERS: &[&str] =
    &["ORDER BY c_bool", "ORDER BY c_float8 DESC", "PARTITION BY id % 2 ORDER BY c_text", ""];

fn is_rank(name: &str) -> bool {
    matches!(name, "rank" | "dense_rank" | "percent_rank" | "cume_dist")
}

impl Run<'_> {
    /// One call of an aggregate, a set-returning or a window function.
    pub(super) fn call_in_rows(&mut self, random: &mut Random) -> CorpusResult<()> {
        let kind = random.below(3);
        let recipe: &Recipe = match kind {
            0 => random.pick(AGGREGATES),
            1 => random.pick(SETS),
            _ if random.chance(1, 3) => random.pick(AGGREGATES),
            _ => random.pick(WINDOWS),
        };
        if recipe.form == "NULL" {
            return Ok(());
        }
        let args = *random.pick(recipe.args);
        let depth = random.below(2) as u32;
        let parts: Vec<Expr> = args
            .iter()
            .map(|ty| match random.chance(1, 12) {
                // Of another type: refused alike, or converted alike.
                true => {
                    let other = random.pick(TYPES).name;
                    self.generator.typed(random, other, 0)
                }
                false => self.generator.typed(random, ty, depth),
            })
            .collect();
        let sql = match kind {
            0 => aggregate(random, recipe, &parts),
            1 => set(random, recipe, &parts),
            _ => window(random, recipe, &parts),
        };
        let label = format!("{}({})", recipe.name, args.join(", "));
        self.compare_call(Expr { sql, label, parts })
    }

    fn compare_call(&mut self, call: Expr) -> CorpusResult<()> {
        let (ours, theirs) = self.servers.answer(&call.sql)?;
        self.report.expressions += 1;
        if ours.same(&theirs) {
            self.report.errors_alike += u64::from(theirs.is_error());
            return Ok(());
        }
        for part in &call.parts {
            for row in 0..ROWS {
                if let Some((small, at, ours, theirs)) =
                    self.shrink(part, Position::General, row)?
                {
                    return self.note(&small, at, row, &ours, &theirs);
                }
            }
        }
        self.note(&call, Position::General, 0, &ours, &theirs)
    }
}

/// The form with its parts.
fn filled(form: &str, parts: &[Expr]) -> String {
    let mut pieces = form.split("{}");
    let mut out = pieces.next().unwrap_or_default().to_string();
    for (part, piece) in parts.iter().zip(pieces) {
        out.push_str(&part.sql);
        out.push_str(piece);
    }
    out
}

fn listed(parts: &[Expr]) -> String {
    parts.iter().map(|p| p.sql.as_str()).collect::<Vec<_>>().join(", ")
}

fn aggregate(random: &mut Random, recipe: &Recipe, parts: &[Expr]) -> String {
    let mut call = match recipe.form {
        "" => {
            let distinct = parts.len() == 1 && random.chance(1, 6);
            let (distinct, order) = match (distinct, random.below(4)) {
                (true, _) => ("DISTINCT ", ""),
                (_, 0) => ("", " ORDER BY c_int4 DESC NULLS LAST, id"),
                (_, 1) => ("", " ORDER BY c_text, id DESC"),
                _ => ("", " ORDER BY id"),
            };
            format!("{}({distinct}{}{order})", recipe.name, listed(parts))
        }
        form => filled(form, parts),
    };
    if random.chance(1, 6) {
        call.push_str(" FILTER (WHERE id > 3)");
    }
    match random.below(4) {
        0 => format!("SELECT id % 3, {call} FROM corpus GROUP BY id % 3 ORDER BY 1"),
        1 => format!("SELECT c_bool, {call} FROM corpus GROUP BY c_bool ORDER BY 1"),
        2 => format!("SELECT {call} FROM corpus WHERE id < 0"),
        _ => format!("SELECT {call}, pg_typeof({call})::text FROM corpus"),
    }
}

fn set(random: &mut Random, recipe: &Recipe, parts: &[Expr]) -> String {
    let call = filled(recipe.form, parts);
    let row = random.below(ROWS);
    match random.below(4) {
        0 => format!("SELECT id, {call} FROM corpus WHERE id = {row}"),
        1 => format!("SELECT f.* FROM corpus, {call} WITH ORDINALITY f WHERE id = {row}"),
        2 => format!("SELECT id, f.* FROM corpus CROSS JOIN LATERAL {call} f WHERE id = {row}"),
        _ => format!("SELECT f.* FROM corpus, {call} f WHERE id = {row}"),
    }
}

fn window(random: &mut Random, recipe: &Recipe, parts: &[Expr]) -> String {
    let call = match recipe.form {
        "" => format!("{}({})", recipe.name, listed(parts)),
        form => filled(form, parts),
    };
    let over = match is_rank(recipe.name) && random.chance(1, 2) {
        true => random.pick(OVER_PEERS),
        false => random.pick(OVER),
    };
    format!(
        "SELECT id, w, pg_typeof(w)::text FROM \
         (SELECT id, {call} OVER ({over}) AS w FROM corpus) s ORDER BY id"
    )
}
