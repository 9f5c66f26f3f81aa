//! [`Entry`]: one type of statement.

use braid_parser::{Kind, Statement};
use braid_scalar::ParamTypes;
use braid_settings::Feature;
use braid_types::{SqlResult, SqlType};

use crate::ddl::Change;
use crate::general_query::ColumnInfo;
use crate::session::execute::Ran;
use crate::session::prepared::Plan;
use crate::session::{Context, Outcome, Session};

/// What a statement does to rows and descriptors. Decides whether a read-only transaction takes
/// it, and whether anybody waits for the end of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing at all: it is about the session.
    None,
    /// It only looks.
    Reads,
    /// It may change something.
    Writes,
    /// Its plan says: a query that locks rows writes.
    AsPlanned,
    /// As the statement in it that it runs.
    AsExplained,
}

/// One type of statement: what it is called, what it may do, and who runs it.
pub struct Entry {
    /// As messages call it, and as its command tag begins.
    pub name: &'static str,
    /// One of them, over the tables of `tests/statement_registry.rs`.
    pub example: &'static str,
    /// A line of documentation.
    pub about: &'static str,
    /// What it does to rows and descriptors.
    pub effect: Effect,
    /// Allowed in a block that has failed.
    pub in_failed_block: bool,
    /// Its result columns, if it has some without having a plan.
    pub(crate) columns: Option<ColumnsOf>,
    /// Whether one of them may run in steps that do not keep writers out.
    pub(crate) in_steps: Option<fn(&Kind) -> bool>,
    /// The class by which it can be switched off.
    pub feature: Option<Feature>,
    /// No rule denies it: by it sessions, transactions and rules are kept in order.
    pub never_denied: bool,
    pub(crate) runs: Runs,
}

type ColumnsOf = fn(&Session, &Statement) -> SqlResult<Option<Vec<ColumnInfo>>>;

/// The work of one statement, if it is of the type asked for.
type Work<'s, F> = Option<Box<F>>;
type OfSession = for<'s> fn(&'s Statement) -> Work<'s, InSession<'s>>;
type OfPlan = for<'s> fn(&'s Statement) -> Work<'s, Planning<'s>>;
type OfUtility = for<'s> fn(&'s Statement) -> Work<'s, InTransaction<'s>>;
type OfChange = for<'s> fn(&'s Statement) -> Work<'s, Changing<'s>>;

type InSession<'s> = dyn FnOnce(&mut Session) -> SqlResult<Outcome> + 's;
type Planning<'s> = dyn FnOnce(&mut Planner<'_>) -> SqlResult<Planned> + 's;
type InTransaction<'s> = dyn FnOnce(&mut Session, &Context) -> SqlResult<Ran> + 's;
type Changing<'s> = dyn FnOnce(&mut Change) -> SqlResult<String> + 's;

/// Who runs a statement. Each holds a function that recognises the statements of its type and
/// gives the work of one.
pub(crate) enum Runs {
    /// The session, in no transaction or beside the one that is open.
    Session(OfSession),
    /// A plan that is made once and kept.
    Plan(OfPlan),
    /// Code that goes by the parsed statement, in a transaction.
    Utility(OfUtility),
    /// A change of the catalog; gives the command tag.
    Change(OfChange),
}

/// What a plan is made in.
pub(crate) struct Planner<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) params: &'a mut ParamTypes,
    /// Parameter types that the client has declared.
    pub(crate) declared: &'a [Option<SqlType>],
}

/// A plan and its result columns.
pub(crate) type Planned = (Plan, Option<Vec<ColumnInfo>>);

/// The work of the statements that match a pattern: `work!(Kind::Reset(name) => |session| ..)`,
/// with the statement itself where it is needed, and `Sql` before patterns of sqlparser's.
macro_rules! work {
    (Sql $pattern:pat $(if $guard:expr)? => $work:expr) => {
        |statement| match &*statement.kind {
            braid_parser::Kind::Sql(sql) => match &**sql {
                $pattern $(if $guard)? => Some(Box::new($work)),
                _ => None,
            },
            _ => None,
        }
    };
    ($pattern:pat $(if $guard:expr)? => $work:expr) => {
        work!(_statement, $pattern $(if $guard)? => $work)
    };
    ($statement:ident, $pattern:pat $(if $guard:expr)? => $work:expr) => {
        |$statement| match &*$statement.kind {
            $pattern $(if $guard)? => Some(Box::new($work)),
            _ => None,
        }
    };
}
pub(crate) use work;

impl Entry {
    const fn new(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        effect: Effect,
        runs: Runs,
    ) -> Entry {
        let (in_failed_block, never_denied) = (false, false);
        let (columns, in_steps, feature) = (None, None, None);
        Entry {
            name,
            example,
            about,
            effect,
            in_failed_block,
            columns,
            in_steps,
            feature,
            never_denied,
            runs,
        }
    }

    /// A statement about the session.
    pub(super) const fn session(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        work: OfSession,
    ) -> Entry {
        Entry::new(name, example, about, Effect::None, Runs::Session(work))
    }

    /// A statement with a plan.
    pub(super) const fn plan(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        effect: Effect,
        work: OfPlan,
    ) -> Entry {
        Entry::new(name, example, about, effect, Runs::Plan(work))
    }

    /// A statement that runs in a transaction, without a plan.
    pub(super) const fn utility(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        effect: Effect,
        work: OfUtility,
    ) -> Entry {
        Entry::new(name, example, about, effect, Runs::Utility(work))
    }

    /// A change of the catalog.
    pub(super) const fn change(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        work: OfChange,
    ) -> Entry {
        Entry::new(name, example, about, Effect::Writes, Runs::Change(work))
    }

    /// It is allowed in a block that has failed.
    pub(super) const fn even_if_failed(mut self) -> Entry {
        self.in_failed_block = true;
        self
    }

    /// It is switched off with a class of statements.
    pub(super) const fn of(mut self, feature: Feature) -> Entry {
        self.feature = Some(feature);
        self
    }

    /// No rule denies it.
    pub(super) const fn never_denied(mut self) -> Entry {
        self.never_denied = true;
        self
    }

    /// It has these result columns.
    pub(super) const fn with_columns(mut self, columns: ColumnsOf) -> Entry {
        self.columns = Some(columns);
        self
    }

    /// It may run in steps.
    pub(super) const fn in_steps(mut self, may: fn(&Kind) -> bool) -> Entry {
        self.in_steps = Some(may);
        self
    }

    /// Whether a statement is of this type.
    pub fn claims(&self, statement: &Statement) -> bool {
        match self.runs {
            Runs::Session(of) => of(statement).is_some(),
            Runs::Plan(of) => of(statement).is_some(),
            Runs::Utility(of) => of(statement).is_some(),
            Runs::Change(of) => of(statement).is_some(),
        }
    }

    /// Whether it changes the catalog.
    pub(crate) fn changes_schema(&self) -> bool {
        matches!(self.runs, Runs::Change(_))
    }

    /// Who runs it, in a word: for the page of statements.
    pub fn runs_as(&self) -> &'static str {
        match self.runs {
            Runs::Session(_) => "session",
            Runs::Plan(_) => "plan",
            Runs::Utility(_) => "utility",
            Runs::Change(_) => "schema change",
        }
    }

    /// Whether one of its statements may run in steps.
    pub fn has_steps(&self) -> bool {
        self.in_steps.is_some()
    }
}
