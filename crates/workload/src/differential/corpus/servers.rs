//! The two servers: both work on a list of statements at the same time.

use postgres::{Client, NoTls, SimpleQueryMessage};

use super::CorpusResult;

/// What a server said: rows as text, or SQLSTATE and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Rows(Vec<Vec<Option<String>>>),
    Error(String, String),
}

impl Answer {
    pub(super) fn same(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Rows(a), Answer::Rows(b)) => a == b,
            (Answer::Error(a, _), Answer::Error(b, _)) => {
                a.get(..2) == b.get(..2) && !a.starts_with("XX")
            }
            _ => false,
        }
    }

    pub(super) fn is_error(&self) -> bool {
        matches!(self, Answer::Error(..))
    }

    pub(super) fn short(&self) -> String {
        match self {
            Answer::Rows(rows) => {
                let rows: Vec<String> = rows
                    .iter()
                    .take(12)
                    .map(|r| {
                        let cells: Vec<&str> =
                            r.iter().map(|c| c.as_deref().unwrap_or("NULL")).collect();
                        cells.join(" | ")
                    })
                    .collect();
                rows.join("; ").chars().take(300).collect()
            }
            Answer::Error(state, message) => format!("{state} {message}"),
        }
    }

    pub(super) fn kind(&self) -> String {
        match self {
            Answer::Rows(_) => "value".to_string(),
            Answer::Error(state, _) => state.get(..2).unwrap_or("??").to_string(),
        }
    }
}

/// A server that is connected to again when a statement broke the connection.
pub(super) struct Server {
    url: String,
    pub(super) client: Client,
}

impl Server {
    pub(super) fn connect(url: &str) -> CorpusResult<Server> {
        let mut client = Client::connect(url, NoTls)?;
        client.batch_execute("SET timezone = 'UTC'")?;
        Ok(Server { url: url.to_string(), client })
    }

    fn answer(&mut self, sql: &str) -> Result<Answer, String> {
        match answer(&mut self.client, sql) {
            Ok(found) => Ok(found),
            Err(e) => {
                *self = Server::connect(&self.url).map_err(|_| e.clone())?;
                Ok(Answer::Error("XX000".to_string(), e))
            }
        }
    }

    fn answers(&mut self, statements: &[String]) -> Result<Vec<Answer>, String> {
        statements.iter().map(|sql| self.answer(sql)).collect()
    }
}

fn answer(client: &mut Client, sql: &str) -> Result<Answer, String> {
    match client.simple_query(sql) {
        Ok(messages) => Ok(Answer::Rows(
            messages
                .iter()
                .filter_map(|m| match m {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|i| row.get(i).map(str::to_string)).collect())
                    }
                    _ => None,
                })
                .collect(),
        )),
        Err(e) => match e.as_db_error() {
            Some(db) => Ok(Answer::Error(db.code().code().to_string(), db.message().to_string())),
            None => Err(format!("the connection broke at: {sql}: {e}")),
        },
    }
}

/// BraidDB and PostgreSQL.
pub(super) struct Servers {
    pub(super) braid: Server,
    pub(super) postgres: Server,
}

impl Servers {
    /// What both say to each statement: ours, theirs.
    pub(super) fn answers(&mut self, statements: &[String]) -> CorpusResult<Vec<(Answer, Answer)>> {
        let (braid, postgres) = (&mut self.braid, &mut self.postgres);
        let (ours, theirs) = std::thread::scope(|scope| {
            let ours = scope.spawn(|| braid.answers(statements));
            let theirs = postgres.answers(statements);
            (ours.join(), theirs)
        });
        let ours = ours.map_err(|_| "the thread of our server panicked")??;
        Ok(ours.into_iter().zip(theirs?).collect())
    }

    /// What both say to one statement.
    pub(super) fn answer(&mut self, sql: &str) -> CorpusResult<(Answer, Answer)> {
        let mut found = self.answers(&[sql.to_string()])?;
        found.pop().ok_or_else(|| "no answer".into())
    }
}
