//! Rows whose first batch is there before the client is told of any.
//!
//! On a node of a cluster a read may turn out to be in doubt: its statement is to run again at a
//! later time. That is possible as long as nobody knows of the first try, and the first request to
//! another node is where it turns out, nearly always. So the first batch is waited for here, inside
//! of the try. On a node alone a read never has to be tried again, and rows come when they are
//! asked for.

use braid_catalog::After;
use braid_rows::Row;
use braid_types::SqlResult;

use super::context::Context;
use crate::answer::Answer;
use crate::general_query::RowStream;

/// What the first pull gave, and the rest.
struct Begun {
    first: Option<SqlResult<Option<Answer>>>,
    rest: Box<dyn RowStream>,
}

/// The same rows; the first of them are there if the statement may have to be tried again.
///
/// # Errors
/// Those after which a statement runs again. Others come when the rows are asked for.
pub(crate) fn begun(
    ctx: &Context,
    mut stream: Box<dyn RowStream>,
) -> SqlResult<Box<dyn RowStream>> {
    if !ctx.db.is_shared() {
        return Ok(stream);
    }
    match stream.next_answer() {
        Err(e) if After::error(&e).is_again() => Err(e),
        first => Ok(Box::new(Begun { first: Some(first), rest: stream })),
    }
}

impl RowStream for Begun {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        match self.first.take() {
            Some(first) => Ok(first?.map(Answer::into_rows)),
            None => self.rest.next_batch(),
        }
    }

    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        self.first.take().unwrap_or_else(|| self.rest.next_answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::outcome::VecRows;
    use braid_types::Datum;

    #[test]
    fn the_first_rows_are_given_once_and_in_either_form() {
        let rows = |n| vec![vec![Datum::Int4(n)]];
        let begun = || {
            let first = Some(Ok(Some(Answer::Rows(rows(1)))));
            Begun { first, rest: Box::new(VecRows::new(rows(2))) }
        };
        let shown = |rows: SqlResult<Option<Vec<Row>>>| format!("{:?}", rows.expect("rows"));
        let expected = [rows(1), rows(2)].map(|rows| format!("{:?}", Some(rows)));
        let mut batches = begun();
        expected.iter().for_each(|rows| assert_eq!(shown(batches.next_batch()), *rows));
        assert_eq!(shown(batches.next_batch()), "None");
        let mut answers = begun();
        let mut next = || shown(answers.next_answer().map(|all| all.map(Answer::into_rows)));
        expected.iter().for_each(|rows| assert_eq!(next(), *rows));
        assert_eq!(next(), "None");
    }
}
