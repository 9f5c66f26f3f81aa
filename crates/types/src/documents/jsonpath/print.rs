//! The text of a path, as PostgreSQL prints it: names in quotes, operations in parentheses.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::tree::{Arithmetic, Node, Path, RegexFlags, Step};
use crate::json::quoted;

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lax { "" } else { "strict " })?;
        node(&self.root, true, f)
    }
}

/// How strongly the operation of a node binds: what binds less, or as much, stands in parentheses.
fn priority(node: &Node) -> u8 {
    match node {
        Node::Or(_) => 0,
        Node::And(_) => 1,
        Node::Compare(..) | Node::StartsWith(..) => 2,
        Node::Arithmetic(_, operations) => match operations.last() {
            Some((op, _)) => strength(*op),
            None => 6,
        },
        Node::Plus(_) | Node::Minus(_) => 5,
        _ => 6,
    }
}

fn strength(op: Arithmetic) -> u8 {
    if matches!(op, Arithmetic::Add | Arithmetic::Sub) { 3 } else { 4 }
}

/// In parentheses, if the operation around it asks for them.
fn operand(inner: &Node, around: u8, f: &mut Formatter<'_>) -> fmt::Result {
    node(inner, priority(inner) <= around, f)
}

/// Operands with a sign before each but the first. What is written from left to right is one
/// operation in the other: each but the last has parentheses of its own, as far as its sign does
/// not bind more strongly than the next one.
fn chain(
    first: &Node,
    rest: &[(&'static str, u8, &Node)],
    parentheses: bool,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let within = |at: usize| match rest.get(at + 1) {
        Some((_, around, _)) => rest[at].1 <= *around,
        None => parentheses,
    };
    for _ in (0..rest.len()).filter(|at| within(*at)) {
        f.write_str("(")?;
    }
    for (at, (sign, own, right)) in rest.iter().enumerate() {
        if at == 0 {
            operand(first, *own, f)?;
        }
        write!(f, " {sign} ")?;
        operand(right, *own, f)?;
        f.write_str(if within(at) { ")" } else { "" })?;
    }
    Ok(())
}

fn logical(
    nodes: &[Node],
    sign: &'static str,
    parentheses: bool,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let Some((first, rest)) = nodes.split_first() else { return Ok(()) };
    let own = if sign == "||" { 0 } else { 1 };
    let rest: Vec<_> = rest.iter().map(|node| (sign, own, node)).collect();
    chain(first, &rest, parentheses, f)
}

fn node(it: &Node, parentheses: bool, f: &mut Formatter<'_>) -> fmt::Result {
    match it {
        Node::Root => f.write_str("$"),
        Node::Current => f.write_str("@"),
        Node::Last => f.write_str("last"),
        Node::Variable(name) => write!(f, "${}", quoted(name)),
        Node::Literal(Value::String(text)) => f.write_str(&quoted(text)),
        Node::Literal(value) => write!(f, "{value}"),
        Node::Steps(from, steps) => {
            match &**from {
                Node::Literal(Value::Number(number)) => write!(f, "({number})")?,
                from => node(from, true, f)?,
            }
            steps.iter().try_for_each(|s| step(s, f))
        }
        Node::Or(nodes) => logical(nodes, "||", parentheses, f),
        Node::And(nodes) => logical(nodes, "&&", parentheses, f),
        Node::Arithmetic(first, operations) => {
            let rest: Vec<_> =
                operations.iter().map(|(op, right)| (op.sign(), strength(*op), right)).collect();
            chain(first, &rest, parentheses, f)
        }
        Node::Compare(op, left, right) => chain(left, &[(op.sign(), 2, &**right)], parentheses, f),
        Node::StartsWith(left, right) => {
            chain(left, &[("starts with", 2, &**right)], parentheses, f)
        }
        Node::Not(inner) => {
            f.write_str("!(")?;
            node(inner, false, f)?;
            f.write_str(")")
        }
        Node::IsUnknown(inner) => {
            f.write_str("(")?;
            node(inner, false, f)?;
            f.write_str(") is unknown")
        }
        Node::Exists(inner) => {
            f.write_str("exists (")?;
            node(inner, false, f)?;
            f.write_str(")")
        }
        Node::Plus(inner) => signed("+", inner, parentheses, f),
        Node::Minus(inner) => signed("-", inner, parentheses, f),
        Node::LikeRegex(left, pattern, flags, _) => {
            f.write_str(if parentheses { "(" } else { "" })?;
            operand(left, priority(it), f)?;
            write!(f, " like_regex {}", quoted(pattern))?;
            flag(*flags, f)?;
            f.write_str(if parentheses { ")" } else { "" })
        }
    }
}

fn signed(sign: &str, inner: &Node, parentheses: bool, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(if parentheses { "(" } else { "" })?;
    f.write_str(sign)?;
    operand(inner, 5, f)?;
    f.write_str(if parentheses { ")" } else { "" })
}

fn flag(flags: RegexFlags, f: &mut Formatter<'_>) -> fmt::Result {
    let all = [
        (flags.any_case, 'i'),
        (flags.points, 's'),
        (flags.lines, 'm'),
        (flags.blanks, 'x'),
        (flags.literally, 'q'),
    ];
    let set: String = all.iter().filter(|(on, _)| *on).map(|(_, c)| c).collect();
    if set.is_empty() { Ok(()) } else { write!(f, " flag \"{set}\"") }
}

fn step(it: &Step, f: &mut Formatter<'_>) -> fmt::Result {
    match it {
        Step::Member(name) => write!(f, ".{}", quoted(name)),
        Step::AnyMember => f.write_str(".*"),
        Step::AnyElement => f.write_str("[*]"),
        Step::Descend(from, to) => {
            let level = |level: &Option<u32>| level.map_or("last".to_string(), |n| n.to_string());
            match (from, to) {
                (Some(0), None) => f.write_str(".**"),
                (from, to) if from == to => write!(f, ".**{{{}}}", level(from)),
                (from, to) => write!(f, ".**{{{} to {}}}", level(from), level(to)),
            }
        }
        Step::Elements(wanted) => {
            for (at, (from, to)) in wanted.iter().enumerate() {
                f.write_str(if at == 0 { "[" } else { "," })?;
                node(from, false, f)?;
                if let Some(to) = to {
                    f.write_str(" to ")?;
                    node(to, false, f)?;
                }
            }
            f.write_str("]")
        }
        Step::Filter(condition) => {
            f.write_str("?(")?;
            node(condition, false, f)?;
            f.write_str(")")
        }
        Step::Method(method) => write!(f, ".{}()", method.name()),
        Step::Datetime(template) => {
            let template = template.as_deref().map(quoted).unwrap_or_default();
            write!(f, ".datetime({template})")
        }
    }
}
