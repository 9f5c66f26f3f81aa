//! The query of a view as PostgreSQL's `pg_get_viewdef` prints it.
//!
//! ```text
//!   SELECT id, count(*) n FROM c JOIN o ON o.cid = c.id GROUP BY 1
//!
//!    SELECT c.id,
//!       count(*) AS n
//!      FROM (c
//!        JOIN o ON ((o.cid = c.id)))
//!     GROUP BY c.id;
//! ```
//! Every column is shown with its relation, every key of GROUP BY and ORDER BY as the expression
//! that it is, and a relation that is called as one of a query around it gets another name. What is
//! not known here is shown as it was written.
//!
//! - [`query`]: queries, WITH, UNION and its like, VALUES.
//! - [`from`]: relations, joins, queries and functions in FROM.
//! - [`clauses`]: the select list and the other clauses.

mod clauses;
mod from;
mod query;

pub use query::Printer;
