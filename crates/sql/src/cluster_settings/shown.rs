//! SHOW CLUSTER SETTING, SHOW DENIED QUERIES, and the views with the same columns.

use braid_rows::Row;
use braid_settings::{Hits, Live, Rule, Setting, setting, settings};
use braid_types::{Datum, SqlResult};

use crate::database::Database;

/// Columns of SHOW CLUSTER SETTINGS.
pub(crate) const SETTING_COLUMNS: &[&str] = &[
    "variable",
    "value",
    "setting_type",
    "default_value",
    "changed_at",
    "changed_by",
    "description",
];
/// Columns of SHOW CLUSTER SETTING .. FOR ALL NODES.
pub(crate) const NODE_COLUMNS: &[&str] =
    &["node_id", "address", "state", "value", "version", "lag", "silent_ms"];
/// Columns of SHOW DENIED QUERIES.
pub(crate) const RULE_COLUMNS: &[&str] = &[
    "rule_id",
    "match",
    "query",
    "for_user",
    "for_application",
    "until",
    "action",
    "reason",
    "created_at",
    "created_by",
    "state",
    "hits",
    "last_hit",
    "sample",
];

fn text(s: impl AsRef<str>) -> Datum {
    Datum::text(s.as_ref())
}

fn optional(s: Option<&str>) -> Datum {
    s.map_or(Datum::Null, text)
}

/// All cluster settings: [`SETTING_COLUMNS`], with the time as a timestamp.
pub fn setting_rows(live: &Live) -> Vec<Row> {
    let picture = live.picture();
    let row = |setting: &Setting| {
        let stored = picture.values.get(setting.name);
        vec![
            text(setting.name),
            text(live.value(setting.name)),
            text(setting.kind.name()),
            text(setting.default),
            stored.map_or(Datum::Null, |stored| Datum::TimestampTz(stored.at_micros)),
            optional(stored.map(|stored| stored.by.as_str())),
            text(setting.about),
        ]
    };
    settings().iter().map(row).collect()
}

/// The value of one.
pub(crate) fn value(db: &Database, name: &str) -> SqlResult<Vec<Row>> {
    let known = setting(name)?;
    Ok(vec![vec![text(db.cluster_settings().value(known.name))]])
}

/// The value of one as each node has it: [`NODE_COLUMNS`]. A node that is more than one change
/// behind has an unknown value.
pub(crate) fn of_nodes(db: &Database, name: &str) -> SqlResult<Vec<Row>> {
    let known = setting(name)?;
    let live = db.cluster_settings();
    let (picture, number) = (live.picture(), |n: u64| text(n.to_string()));
    let stored = picture.values.get(known.name);
    let now = live.value(known.name);
    let nodes = db.coordinator().describe_nodes();
    if nodes.is_empty() {
        let own = [text("1"), Datum::Null, text("alone"), text(&now), number(picture.version)];
        return Ok(vec![own.into_iter().chain([text("0"), text("0")]).collect()]);
    }
    let said = db.coordinator().settings_of_nodes();
    let value_at = |version: u64| match stored {
        Some(stored) if version < stored.version => match version + 1 == stored.version {
            true => text(stored.before.as_deref().unwrap_or(known.default)),
            false => Datum::Null,
        },
        // Which version took a value away is not kept.
        None if version < picture.version => Datum::Null,
        _ => text(&now),
    };
    let row = |node: braid_kv::ShownNode| {
        let said = said.iter().find(|one| one.node == node.id);
        let of = |f: &dyn Fn(&braid_kv::NodeSettings) -> Datum| said.map_or(Datum::Null, f);
        vec![
            number(node.id),
            text(&node.address),
            text(node.state),
            of(&|said| value_at(said.version)),
            of(&|said| number(said.version)),
            of(&|said| number(picture.version.saturating_sub(said.version))),
            of(&|said| text(said.silent.as_millis().to_string())),
        ]
    };
    Ok(nodes.into_iter().map(row).collect())
}

/// All rules of DENY QUERY: [`RULE_COLUMNS`], with times as timestamps and counts as numbers.
/// Counts, times and samples are those of this node since it was started.
pub fn denied_queries(live: &Live, now_micros: i64) -> Vec<Row> {
    let (picture, hits) = (live.picture(), live.hits());
    let holds = live.value("sql.denied_queries.enabled") == "true";
    let row = |(id, rule): (&u32, &Rule)| {
        let Hits { count, last_micros, sample } = hits.get(id).cloned().unwrap_or_default();
        let met = count > 0;
        let state = match (holds, rule.is_over(now_micros)) {
            (_, true) => "over",
            (false, _) => "disabled",
            (true, false) => "holds",
        };
        vec![
            Datum::Int8((*id).into()),
            text(rule.by.name()),
            text(&rule.text),
            optional(rule.user.as_deref()),
            optional(rule.application.as_deref()),
            rule.until_micros.map_or(Datum::Null, Datum::TimestampTz),
            text(rule.action.name()),
            optional(rule.reason.as_deref()),
            Datum::TimestampTz(rule.at_micros),
            text(&rule.made_by),
            text(state),
            Datum::Int8(count as i64),
            if met { Datum::TimestampTz(last_micros) } else { Datum::Null },
            if met { text(sample) } else { Datum::Null },
        ]
    };
    picture.rules.iter().map(row).collect()
}
