//! Everything that expressions can call here is called by the corpus that compares with PostgreSQL
//! (`scripts/differential expressions`), or the corpus says why not.

use braid_scalar::{ArgType, Builtin, FunctionKind, functions_of};
use braid_workload::differential::{Claim, ClaimKind, allowed_differences, without_generator};

fn type_name(arg: &ArgType) -> String {
    match arg {
        ArgType::Exact(ty) => ty.internal_name(),
        ArgType::AnyElement => "anyelement".to_string(),
        ArgType::AnyArray => "anyarray".to_string(),
        ArgType::AnyEnum => "anyenum".to_string(),
        ArgType::AnyRange => "anyrange".to_string(),
        ArgType::AnyMultirange => "anymultirange".to_string(),
        ArgType::Any => "any".to_string(),
    }
}

const KINDS: [(FunctionKind, ClaimKind); 5] = [
    (FunctionKind::Function, ClaimKind::Function),
    (FunctionKind::Operator, ClaimKind::Operator),
    (FunctionKind::Aggregate, ClaimKind::Aggregate),
    (FunctionKind::SetReturning, ClaimKind::SetReturning),
    (FunctionKind::Window, ClaimKind::Window),
];

fn claims() -> Vec<Claim> {
    let of_kind = |(from, kind): (FunctionKind, ClaimKind)| {
        let claim = move |f: &Builtin| Claim {
            name: f.name.to_string(),
            args: f.args.iter().map(type_name).collect(),
            kind,
        };
        functions_of(from).into_iter().map(claim)
    };
    KINDS.into_iter().flat_map(of_kind).collect()
}

#[test]
fn every_function_and_operator_has_a_generator() {
    let all = claims();
    assert!(all.len() > 500, "{}", all.len());
    assert_eq!(without_generator(&all), Vec::<String>::new());
}

#[test]
fn a_function_without_generator_is_found() {
    for kind in [ClaimKind::Aggregate, ClaimKind::SetReturning, ClaimKind::Window] {
        let unknown = Claim { name: "frobnicate".into(), args: Vec::new(), kind };
        assert_eq!(without_generator(&[unknown]), ["frobnicate: no recipe"]);
    }
    for (kind, of) in [(ClaimKind::Function, "frobnicate"), (ClaimKind::Operator, "<=>")] {
        let args = vec!["int4".to_string(), "tsvector".to_string()];
        let unknown = Claim { name: of.into(), args, kind };
        let expected = format!("{of}(int4, tsvector): no values of tsvector");
        assert_eq!(without_generator(&[unknown]), [expected]);
    }
}

/// What may differ from PostgreSQL is told to users, not only to the corpus.
#[test]
fn every_allowed_difference_is_documented() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md"))
            .unwrap()
            .to_lowercase();
    for reason in allowed_differences() {
        assert!(page.contains(reason.trim().to_lowercase().as_str()), "not on the page: {reason}");
    }
}
