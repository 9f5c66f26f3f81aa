//! Differences that are allowed in the corpus, each with its reason. The list should shrink.

use super::servers::Answer;

/// Functions that no random call can compare, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("pg_*", "describes the catalog, the storage or the session"),
    ("has_*", "describes privileges"),
    ("current_*", "describes the session or the clock"),
    ("session_user", "describes the session"),
    ("user", "describes the session"),
    ("version", "names the server"),
    ("now", "the clock"),
    ("localtime", "the clock"),
    ("localtimestamp", "the clock"),
    ("transaction_timestamp", "the clock"),
    ("statement_timestamp", "the clock"),
    ("inet_server_*", "describes the connection"),
    ("obj_description", "describes the catalog"),
    ("col_description", "describes the catalog"),
    ("shobj_description", "describes the catalog"),
    ("row_security_active", "describes the catalog"),
    ("txid_current", "a counter of each server"),
    ("format_type", "takes oids: compared by the tests of the catalog"),
    ("to_regclass", "describes the catalog"),
    ("to_regtype", "describes the catalog"),
    ("uuid_generate_v4", "random, and an extension there"),
    ("regclass", "describes the catalog"),
    ("regtype", "describes the catalog"),
];

/// Whether calls of this function are not generated.
pub(super) fn left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(pattern, _)| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *pattern,
    })
}

/// A difference of one expression, shrunk: its parts alone have none.
pub(super) struct Found<'a> {
    pub(super) label: &'a str,
    /// What both sides say to each of its parts alone, and to theirs.
    pub(super) parts: &'a [(Answer, Answer)],
    pub(super) ours: &'a Answer,
    pub(super) theirs: &'a Answer,
}

struct Known {
    reason: &'static str,
    applies: fn(&Found<'_>) -> bool,
}

/// The value and the name of its type.
fn value(answer: &Answer) -> Option<(Option<&str>, &str)> {
    let Answer::Rows(rows) = answer else { return None };
    match rows.first()?.as_slice() {
        [value, Some(ty)] => Some((value.as_deref(), ty)),
        _ => None,
    }
}

/// The class of an error in values, or of a refusal.
fn runtime(answer: &Answer) -> Option<&str> {
    match answer {
        Answer::Error(state, _) if ["22", "0A", "54"].contains(&&state[..2]) => Some(&state[..2]),
        _ => None,
    }
}

impl Found<'_> {
    /// Whether one of the parts alone fails on both sides as the whole does on one.
    fn part_fails(&self, whole: &Answer) -> bool {
        let class = runtime(whole);
        class.is_some()
            && self.parts.iter().any(|(a, b)| runtime(a) == class && runtime(b) == class)
    }

    fn some_part(&self, holds: fn(&str) -> bool) -> bool {
        self.parts.iter().any(|(ours, _)| value(ours).is_some_and(|(v, _)| v.is_some_and(holds)))
    }

    fn null_part(&self) -> bool {
        self.parts.iter().any(|(ours, theirs)| {
            [ours, theirs].iter().all(|side| value(side).is_some_and(|(v, _)| v.is_none()))
        })
    }
}

/// Whether both gave a double and they differ by the last bits only.
fn last_bits(f: &Found<'_>) -> bool {
    let double = |answer| match value(answer) {
        Some((Some(text), "double precision")) => text.parse::<f64>().ok(),
        _ => None,
    };
    match (double(f.ours), double(f.theirs)) {
        (Some(x), Some(y)) => x.to_bits().abs_diff(y.to_bits()) <= 2,
        _ => false,
    }
}

const KNOWN: &[Known] = &[
    Known {
        reason: "the last digit of cube roots, powers and angles is that of the C library there",
        applies: |f| {
            let functions = [
                "cbrt", "||/", "^", "power", "pow", "sin", "cos", "tan", "cot", "sind", "cosd",
                "tand", "cotd", "asind", "acosd", "atand", "atan2", "atan2d", "sinh", "cosh",
                "tanh", "asinh", "acosh", "atanh", "exp", "ln", "log", "log10", "atan", "asin",
                "acos", "degrees", "radians",
            ];
            let name = f.label.split('(').next().unwrap_or_default();
            functions.contains(&name) && last_bits(f)
        },
    },
    Known {
        reason: "PostgreSQL 15 computes with the largest integer as if infinity were a time",
        applies: |f| {
            f.label.starts_with("age(")
                && matches!(f.ours, Answer::Error(state, _) if state == "22008")
                && matches!(f.theirs, Answer::Rows(_))
                && f.some_part(|v| v.ends_with("infinity"))
        },
    },
    Known {
        reason: "which of several equal values (0 and 0.00) is shown is left open",
        applies: |f| {
            let number = |answer: &Answer| match answer {
                Answer::Rows(rows) => rows.first()?.first()?.as_ref()?.parse::<f64>().ok(),
                Answer::Error(..) => None,
            };
            (f.label.starts_with("mode(") || f.label.starts_with("percentile_disc("))
                && number(f.ours).is_some()
                && number(f.ours) == number(f.theirs)
        },
    },
    Known {
        reason: "the difference of timestamps overflows silently in PostgreSQL 15",
        applies: |f| {
            f.label.starts_with("-(timestamp")
                && matches!(f.ours, Answer::Error(state, _) if state == "22008")
                && matches!(f.theirs, Answer::Rows(_))
        },
    },
    Known {
        reason: "refused here with 0A000 and a hint, which documents what is not supported",
        applies: |f| {
            // The name of what is not supported is in the message: this one is DataFusion's.
            matches!(f.ours, Answer::Error(state, message)
                if state == "0A000" && message != "this query is not supported")
        },
    },
    Known {
        reason: "PostgreSQL folds constants of branches that are never taken and fails; here a \
                 branch that is not taken is not computed",
        applies: |f| {
            let branches = ["CASE", "CASE x", "COALESCE", "AND", "IN"].contains(&f.label);
            branches && matches!(f.ours, Answer::Rows(_)) && f.part_fails(f.theirs)
        },
    },
    Known {
        reason: "a strict function of a NULL and of a part that fails, alone too, on both sides: \
                 one side does not compute the failing part, because the result is NULL anyway",
        applies: |f| {
            let null = |answer| value(answer).is_some_and(|(v, _)| v.is_none());
            f.null_part()
                && ((null(f.ours) && f.part_fails(f.theirs))
                    || (null(f.theirs) && f.part_fails(f.ours)))
        },
    },
    Known {
        reason: "two parts that fail in different ways, alone too, on both sides: which is met \
                 first depends on what is folded when",
        applies: |f| {
            runtime(f.ours) != runtime(f.theirs) && f.part_fails(f.ours) && f.part_fails(f.theirs)
        },
    },
];

/// Why a difference is allowed, if it is.
pub(super) fn reason(found: &Found<'_>) -> Option<&'static str> {
    KNOWN.iter().find(|k| (k.applies)(found)).map(|k| k.reason)
}
