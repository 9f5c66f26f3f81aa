//! What paths give.

use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, Style};

use crate::registry::overloads;
use crate::{EvalContext, LargeValues, SessionFunctions};

/// What `jsonb_path_query` gives.
fn query(document: &str, path: &str, ctx: &EvalContext) -> SqlResult<Vec<String>> {
    let variables = "{\"x\": 2, \"s\": \"ab\"}";
    let args = [
        Datum::parse(document, &SqlType::Jsonb, Style::utc())?,
        Datum::parse(path, &SqlType::Jsonpath, Style::utc())?,
        Datum::parse(variables, &SqlType::Jsonb, Style::utc())?,
    ];
    let all = overloads("jsonb_path_query_array");
    let function = all.iter().find(|f| f.args.len() == args.len()).unwrap();
    match function.eval(&args, ctx)? {
        Datum::Jsonb(items) => {
            Ok(items.as_array().unwrap().iter().map(ToString::to_string).collect())
        }
        other => panic!("{other}"),
    }
}

fn items(document: &str, path: &str) -> String {
    match query(document, path, &EvalContext::constant()) {
        Ok(items) => items.join("; "),
        Err(e) => format!("{}: {}", e.state().0, e.message()),
    }
}

#[test]
fn steps_filters_and_modes() {
    let d = r#"{"a": [1, 2, {"b": [3, 4]}], "c": {"d": null, "e": "abc"}, "n": 10}"#;
    for (path, want) in [
        ("$.a[*]", "1; 2; {\"b\":[3,4]}"),
        ("$.a.b", "[3,4]"),
        ("strict $.a.b", "2203A: jsonpath member accessor can only be applied to an object"),
        ("$.a[last, 0 to 1]", "{\"b\":[3,4]}; 1; 2"),
        ("$.a[5]", ""),
        ("strict $.a[5]", "22033: jsonpath array subscript is out of bounds"),
        ("$.n[0]", "10"),
        ("$.zz", ""),
        ("strict $.zz", "2203A: JSON object does not contain key \"zz\""),
        ("$.c.*", "null; \"abc\""),
        ("$.** ? (@.type() == \"number\")", "1; 2; 1; 2; 3; 4; 3; 4; 10"),
        ("strict $.** ? (@.type() == \"number\")", "1; 2; 3; 4; 10"),
        ("$.**{1}.e", "\"abc\""),
        ("$.a[*] ? (@ > 1)", "2"),
        ("$.a[*] ? (@ > 1 || @.b[*] == 4)", "2; {\"b\":[3,4]}"),
        ("$.c ? (exists(@.e)).e", "\"abc\""),
        ("$.c.e ? (@ starts with $s)", "\"abc\""),
        ("$.c.e ? (@ like_regex \"^A.c$\" flag \"i\")", "\"abc\""),
        ("$.c ? (@.d == null).e", "\"abc\""),
        ("$.n > 5", "true"),
        ("$.c.e > 5", "null"),
        ("($.c.e > 5) is unknown", "true"),
        ("!($.n > 5)", "false"),
    ] {
        assert_eq!(items(d, path), want, "{path}");
    }
}

#[test]
fn numbers_methods_and_errors() {
    let d = r#"{"a": [1, 2], "n": 0.1, "s": "1.5", "big": 12345678901234567890.5}"#;
    for (path, want) in [
        ("$.n + 0.2", "0.3"),
        ("$.big + 1", "12345678901234567891.5"),
        ("-$.a[*]", "-1; -2"),
        ("$.a + 1", "22038: left operand of jsonpath operator + is not a single numeric value"),
        ("1 / 0", "22012: division by zero"),
        ("2 + 3 * 4 % 5", "4"),
        ("$.a.size()", "2"),
        ("$.n.size()", "1"),
        ("$.a.type()", "\"array\""),
        ("$.s.double()", "1.5"),
        ("(-1.5).abs()", "1.5"),
        ("(1.5).ceiling()", "2"),
        ("$.a[*] ? (@ == $x)", "2"),
        ("$y", "42704: could not find jsonpath variable \"y\""),
        ("\"2020-01-02\".datetime()", "\"2020-01-02\""),
        ("\"12:30+02\".datetime(\"HH24:MITZH\").type()", "\"time with time zone\""),
        ("$.keyvalue().key", "\"a\"; \"n\"; \"s\"; \"big\""),
    ] {
        assert_eq!(items(d, path), want, "{path}");
    }
}

/// About as deep as a path may be, on a stack that is an eighth of those of the node.
#[test]
fn the_deepest_path_is_evaluated() {
    let deep = |n: usize| format!("{}$ == 1{}", "!(".repeat(n), ")".repeat(n));
    let long = |n: usize| format!("${}", ".a".repeat(n));
    let walk = move || {
        assert_eq!(items("1", &deep(100)), "true");
        assert!(items("1", &deep(300)).starts_with("54001"));
        assert!(items("1", &deep(100_000)).starts_with("54001"));
        assert_eq!(items("1", &long(100)), "");
        assert!(items("1", &long(100_000)).starts_with("54001"));
        assert!(items("1", &"$[".repeat(100_000)).starts_with("54001"));
        assert!(items("1", &"-".repeat(100_000)).starts_with("54001"));
        let sum = |n: usize| format!("1{}", "+1".repeat(n));
        assert_eq!(items("1", &sum(100)), "101");
        // What is kept has a level for each.
        assert!(items("1", &sum(20_000)).starts_with("54001"));
    };
    std::thread::Builder::new().stack_size(8 << 20).spawn(walk).unwrap().join().unwrap();
}

/// A session whose statement is to stop, and one that has no room.
struct Stopped;

impl SessionFunctions for Stopped {
    fn check_interrupt(&self) -> SqlResult<()> {
        Err(SqlError::new(SqlState::QUERY_CANCELED, "stop"))
    }
}

struct NoRoom;

impl LargeValues for NoRoom {
    fn pass(&self, _: usize) -> SqlResult<()> {
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, "no room"))
    }
}

#[test]
fn a_long_evaluation_is_stopped_and_a_large_one_refused() {
    let many = |n: usize| format!("[{}0]", "0,".repeat(n - 1));
    let stopped = EvalContext { session: Arc::new(Stopped), ..EvalContext::constant() };
    let product = query(&many(1000), "$[*] ? ($[*] == 1)", &stopped);
    assert_eq!(product.unwrap_err().state().0, "57014");
    let full = EvalContext { large: Some(Arc::new(NoRoom)), ..EvalContext::constant() };
    assert_eq!(query(&many(1000), "$[*] == 1", &full).unwrap(), ["false"]);
    let wide = query(&many(100_000), "$[*] == 1", &full);
    assert_eq!(wide.unwrap_err().state().0, "53200");
    let copies = query(&many(1000), "$[*] ? (1 == 1).**", &full).unwrap();
    assert_eq!(copies.len(), 1000);
}
