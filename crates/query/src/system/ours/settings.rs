//! Ours, about what holds on all nodes: `braid_cluster_settings` and `braid_denied_queries`, the
//! same as SHOW CLUSTER SETTINGS and SHOW DENIED QUERIES.

use braid_sql::cluster_settings::{denied_queries, setting_rows};
use braid_types::{Datum, SqlResult};

use super::super::table::{Rows, SystemTable, View};

type Made = SqlResult<Vec<Vec<Datum>>>;

/// A table about settings.
pub(in crate::system) fn table(name: &str) -> Option<SystemTable> {
    let (layout, rows): (&'static str, Rows) = match name {
        "braid_cluster_settings" => (
            "variable text, value text, setting_type text, default_value text, \
             changed_at timestamptz, changed_by text, description text",
            settings,
        ),
        "braid_denied_queries" => (
            "rule_id int8, match text, query text, for_user text, for_application text, \
             until timestamptz, action text, reason text, created_at timestamptz, \
             created_by text, state text, hits int8, last_hit timestamptz, sample text",
            rules,
        ),
        _ => return None,
    };
    Some(SystemTable { layout, rows, oid: 0 })
}

fn settings(v: &View<'_>) -> Made {
    Ok(setting_rows(v.database_object.cluster_settings()))
}

fn rules(v: &View<'_>) -> Made {
    let now = v.database_object.clock_micros();
    Ok(denied_queries(v.database_object.cluster_settings(), now))
}
