//! What paths give.

use serde_json::{Map, Value};

use super::eval::Asked;
use super::path::Path;

fn items(document: &str, path: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap();
    let path = match Path::parse(path) {
        Ok(path) => path,
        Err(e) => return format!("{}: {}", e.state().0, e.message()),
    };
    let variables: Map<String, Value> = serde_json::from_str("{\"x\": 2, \"s\": \"ab\"}").unwrap();
    let (items, ended) = path.items(&document, &variables, Asked::All);
    let mut out: Vec<String> = items.iter().map(ToString::to_string).collect();
    if let Err(e) = ended {
        out.push(format!("{}: {}", e.state().0, e.message()));
    }
    out.join("; ")
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
        ("$.a[", "42601: syntax error at end of jsonpath input"),
        ("$.a &&", "42601: syntax error at or near \"&&\" of jsonpath input"),
        ("1 >", "42601: syntax error at end of jsonpath input"),
        ("@.a", "42601: @ is not allowed in root expressions"),
        ("last", "42601: LAST is allowed only in array subscripts"),
        ("$.\"a b\"", ""),
        ("\"\\u0041\\x42\\n\"", "\"AB\\n\""),
    ] {
        assert_eq!(items(d, path), want, "{path}");
    }
}
