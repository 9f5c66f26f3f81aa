//! Settings of the whole cluster, and statements that it denies.
//!
//! ```text
//!   SET CLUSTER SETTING name = value [FOR ALL NODES]      also TO; DEFAULT
//!   RESET CLUSTER SETTING name [FOR ALL NODES]
//!   SHOW [ALL] CLUSTER SETTINGS    SHOW CLUSTER SETTING name [FOR ALL NODES]
//!
//!   DENY QUERY [EXACT | FINGERPRINT | REGEX] 'text'       or FINGERPRINT queryid
//!       [FOR USER u] [FOR APPLICATION 'a'] [UNTIL 'time' | FOR [INTERVAL] '1 hour']
//!       [ACTION REJECT | ACTION DRY RUN] [REASON 'text']
//!   ALLOW QUERY n | ALL            SHOW DENIED QUERIES
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::Token;

use super::transaction::set_values;
use crate::cursor::Cursor;
use crate::{Denied, DenyQuery, Kind, Show};

/// A cluster setting's new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCluster {
    /// As it was written.
    pub name: String,
    /// `None`: its default.
    pub value: Option<String>,
    /// Waits for all nodes, also for those that are not there.
    pub for_all_nodes: bool,
}

/// SET and RESET CLUSTER SETTING; `None` if it is neither.
pub(crate) fn setting(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let resets = c.take(&["reset", "cluster", "setting"]);
    if !resets && !c.take(&["set", "cluster", "setting"]) {
        return Ok(None);
    }
    let name = c.any_name()?.join(".");
    let value = if resets { None } else { value(c)? };
    Ok(Some(Kind::SetCluster(SetCluster { name, value, for_all_nodes: all_nodes(c) })))
}

/// What a setting is set to; `None`: DEFAULT.
fn value(c: &mut Cursor) -> SqlResult<Option<String>> {
    if !c.take(&["to"]) {
        c.expect_token(&Token::Eq)?;
    }
    Ok(set_values(c)?.map(|values| values.join(", ")))
}

fn all_nodes(c: &mut Cursor) -> bool {
    c.take(&["for", "all", "nodes"])
}

/// SHOW of what there is here.
pub(crate) fn show(c: &mut Cursor) -> SqlResult<Option<Show>> {
    Ok(Some(if c.take(&["all", "cluster", "settings"]) || c.take(&["cluster", "settings"]) {
        Show::ClusterSettings
    } else if c.take(&["cluster", "setting"]) {
        let name = c.any_name()?.join(".");
        match all_nodes(c) {
            true => Show::ClusterSettingOfNodes(name),
            false => Show::ClusterSetting(name),
        }
    } else if c.take(&["denied", "queries"]) {
        Show::DeniedQueries
    } else {
        return Ok(None);
    }))
}

/// DENY QUERY and ALLOW QUERY; `None` if it is neither.
pub(crate) fn denied(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["deny", "query"]) {
        return deny(c).map(|deny| Some(Kind::DenyQuery(Box::new(deny))));
    }
    if !c.take(&["allow", "query"]) {
        return Ok(None);
    }
    if c.take(&["all"]) {
        return Ok(Some(Kind::AllowQuery(None)));
    }
    let number = match c.next() {
        Some(Token::Number(text, _)) => text.parse().ok(),
        _ => None,
    };
    let expected = || SqlError::syntax("the number of a rule is expected, or ALL");
    Ok(Some(Kind::AllowQuery(Some(number.ok_or_else(expected)?))))
}

fn deny(c: &mut Cursor) -> SqlResult<DenyQuery> {
    let what = if c.take(&["exact"]) {
        Denied::Exact(c.string()?)
    } else if c.take(&["regex"]) {
        Denied::Regex(c.string()?)
    } else {
        let _ = c.take(&["fingerprint"]);
        match query_id(c) {
            Some(id) => Denied::QueryId(id),
            None => Denied::Fingerprint(c.string()?),
        }
    };
    let mut deny = DenyQuery {
        what,
        user: None,
        application: None,
        until: None,
        interval: None,
        dry_run: false,
        reason: None,
    };
    while !c.done() {
        let taken = if c.take(&["for", "user"]) {
            deny.user.replace(name_or_text(c)?).is_none()
        } else if c.take(&["for", "application"]) {
            deny.application.replace(name_or_text(c)?).is_none()
        } else if c.take(&["for"]) {
            let _ = c.take(&["interval"]);
            deny.interval.replace(c.string()?).is_none() && deny.until.is_none()
        } else if c.take(&["until"]) {
            let _ = c.take(&["timestamptz"]) || c.take(&["timestamp"]);
            deny.until.replace(c.string()?).is_none() && deny.interval.is_none()
        } else if c.take(&["action", "reject"]) {
            true
        } else if c.take(&["action", "dry", "run"]) || c.take(&["action", "dry_run"]) {
            deny.dry_run = true;
            true
        } else if c.take(&["reason"]) {
            deny.reason.replace(c.string()?).is_none()
        } else {
            return Err(c.unexpected());
        };
        if !taken {
            return Err(SqlError::syntax("conflicting or redundant options"));
        }
    }
    Ok(deny)
}

/// As statistics name a statement.
fn query_id(c: &mut Cursor) -> Option<i64> {
    let minus = matches!(c.peek(), Some(Token::Minus));
    let Some(Token::Number(text, _)) = c.peek_at(usize::from(minus)) else { return None };
    let id = format!("{}{text}", if minus { "-" } else { "" }).parse().ok()?;
    (0..1 + usize::from(minus)).for_each(|_| drop(c.next()));
    Some(id)
}

fn name_or_text(c: &mut Cursor) -> SqlResult<String> {
    match c.peek() {
        Some(Token::Word(_)) => c.ident(),
        _ => c.string(),
    }
}
