//! LISTEN and NOTIFY as functions.

use braid_types::Datum;

use crate::registry::Table;

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("pg_notify(text, text) void -- as NOTIFY, with a channel and a payload", |a, c| {
        let said = |value: &Datum| value.to_text(c.style).unwrap_or_default();
        c.session.notify(&said(&a[0]), &said(&a[1]))?;
        Ok(Datum::text(""))
    })
    .lax()
    .volatile();
    t.add("pg_notification_queue_usage() float8 -- how full the queue of NOTIFY is", |_, _| {
        // There is none that all sessions share.
        Ok(Datum::Float8(0.0))
    })
    .volatile();
    t.rows("pg_listening_channels() text -- what the session listens to", |_, c| {
        Ok(c.session.listening().into_iter().map(|c| vec![Datum::Text(c)]).collect())
    })
    .stable();
}
