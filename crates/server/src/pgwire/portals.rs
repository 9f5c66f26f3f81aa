//! FETCH, MOVE and CLOSE of portals that Bind has made, in simple queries. They only go onward.

use std::collections::VecDeque;

use braid_parser::{FetchRows, Kind, Steps};
use braid_rows::Row;
use braid_sql::Outcome;
use braid_types::{SqlError, SqlState};

use super::connection::Connection;
use super::errors::Failure;
use super::extended::{Portal, PortalState, said_again};
use super::rows::{self, Format, RowWriter};

impl Connection {
    /// Whether a statement was about a portal: then it is done and answered. Cursors of SQL go
    /// before portals of the same name.
    pub(super) fn is_of_portal(&mut self, statement: &Kind) -> Result<bool, Failure> {
        if self.session.tx_status() == b'E' {
            return Ok(false);
        }
        let is_portal = |c: &Connection, name: &str| {
            c.extended.portals.get(name).is_some() && c.session.cursor_columns(name).is_err()
        };
        match statement {
            Kind::Fetch(fetch) if is_portal(self, &fetch.cursor) => self.fetch_portal(fetch)?,
            Kind::CloseCursor(Some(name)) if is_portal(self, name) => {
                drop(self.extended.portals.take(name));
                self.complete("CLOSE CURSOR".into())?;
            }
            Kind::CloseCursor(None) => {
                self.extended.portals.clear();
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// FETCH or MOVE. A portal that fails is gone.
    fn fetch_portal(&mut self, fetch: &FetchRows) -> Result<(), Failure> {
        let most = match fetch.steps {
            Steps::By(n) | Steps::Relative(n) if n > 0 => n as u64,
            Steps::By(0) if fetch.only_move => 0,
            Steps::AllOnward => u64::MAX,
            _ => {
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                return Err(SqlError::new(state, "cursor can only scan forward").into());
            }
        };
        let Some(mut portal) = self.extended.portals.take(&fetch.cursor) else { return Ok(()) };
        // RELATIVE gives the last of the rows that it passes.
        let (skipped, wanted) = match fetch.steps {
            Steps::Relative(_) => (most - 1, 1),
            _ => (0, most),
        };
        let format = [Format::Text];
        if !fetch.only_move {
            let columns = portal.prepared.columns().unwrap_or_default();
            rows::describe(&mut self.wire, columns, &format)?;
        }
        let mut passed = self.pass_rows(&mut portal, skipped, None)?;
        let given = match passed == skipped {
            true => self.pass_rows(&mut portal, wanted, (!fetch.only_move).then_some(&format))?,
            false => 0,
        };
        passed = if skipped > 0 { given } else { passed + given };
        self.extended.portals.put(&fetch.cursor, portal);
        let verb = if fetch.only_move { "MOVE" } else { "FETCH" };
        Ok(self.complete(format!("{verb} {passed}"))?)
    }

    /// Takes rows off a portal, and sends them if they are wanted in some format; how many.
    fn pass_rows(
        &mut self,
        portal: &mut Portal,
        most: u64,
        formats: Option<&[Format; 1]>,
    ) -> Result<u64, Failure> {
        if matches!(portal.state, PortalState::Fresh) {
            let parameters = std::mem::take(&mut portal.parameters);
            let Outcome::Rows(rows) = self.session.execute(&portal.prepared, parameters)? else {
                portal.state = PortalState::Finished("".into());
                return Ok(0);
            };
            portal.state = PortalState::Open { rows, rest: VecDeque::<Row>::new() };
        }
        let columns = portal.prepared.columns().unwrap_or_default();
        let mut writer = formats.map(|f| RowWriter::new(&self.session, columns, f));
        let PortalState::Open { rows, rest } = &mut portal.state else { return Ok(0) };
        let mut passed = 0;
        while passed < most {
            if let Some(row) = rest.pop_front() {
                if let Some(writer) = &mut writer {
                    writer.send(&mut self.wire, &row)?;
                }
                passed += 1;
            } else if let Some(batch) = rows.next_batch()? {
                rest.extend(batch);
            } else {
                portal.state = PortalState::Finished(said_again("SELECT"));
                return Ok(passed);
            }
        }
        rows.pause();
        Ok(passed)
    }
}
