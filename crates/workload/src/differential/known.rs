//! Differences that are allowed, each with its reason. The list should shrink.

/// One allowed difference.
pub(super) struct Known {
    /// Why the answers may differ.
    pub(super) reason: &'static str,
    applies: fn(&Answers<'_>) -> bool,
}

/// A statement with what both sides said; an error is its SQLSTATE.
pub(super) struct Answers<'a> {
    pub(super) statement: &'a str,
    /// Whether it has changed no row here.
    pub(super) changed_nothing: bool,
    pub(super) ours: Result<(), &'a str>,
    pub(super) theirs: Result<(), &'a str>,
}

const KNOWN: &[Known] = &[
    Known {
        reason: "a statement that breaks two constraints reports one of them; which one depends \
                 on the order of checks, which PostgreSQL does not promise",
        applies: |a| {
            let constraint = |r: &Result<(), &str>| r.is_err_and(|s| s.starts_with("23"));
            constraint(&a.ours) && constraint(&a.theirs) && a.ours != a.theirs
        },
    },
    Known {
        reason: "PostgreSQL gives constants the types of their columns before it looks at the \
                 first row, so that one that does not fit is told before a broken constraint",
        applies: |a| {
            let constraint = |r: &Result<(), &str>| r.is_err_and(|s| s.starts_with("23"));
            let first = a.statement.starts_with("INSERT") && constraint(&a.ours);
            // Even where there is no row.
            let no_row = a.statement.contains("= DEFAULT") && a.changed_nothing;
            (first || no_row) && a.theirs == Err("22003")
        },
    },
    Known {
        reason: "PostgreSQL checks UNIQUE row by row, so an UPDATE whose rows collide only with \
                 each other's old values fails there; here the state after the statement counts, \
                 as the SQL standard has it",
        applies: |a| {
            a.statement.starts_with("UPDATE") && a.ours.is_ok() && a.theirs == Err("23505")
        },
    },
    Known {
        reason: "which row meets a runtime error (division by zero, overflow) first, or at all, \
                 depends on the order in which conditions are evaluated",
        applies: |a| {
            let runtime = |r: &Result<(), &str>| r.is_err_and(|s| s.starts_with("22"));
            a.statement.contains('/') && (runtime(&a.ours) || runtime(&a.theirs))
        },
    },
];

/// The entry that allows a difference, if any.
pub(super) fn find(answers: &Answers<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|k| (k.applies)(answers))
}
