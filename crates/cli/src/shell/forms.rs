//! `\h`: the forms of statements, as `docs/statements.md` has them too.
//!
//! They stand in `forms.txt`, which says how; `query/tests/reference.rs` tries them all.

const FORMS: &str = include_str!("forms.txt");

/// The names of all statements, and their lines.
fn sections() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    FORMS.split("\n= ").skip(1).map(|section| {
        let (name, rest) = section.split_once('\n').unwrap_or((section, ""));
        (name, rest.lines().filter_map(|line| line.strip_prefix("  ")).collect())
    })
}

/// What is shown of the statements whose names begin with these words; without words, all names.
pub(super) fn help(words: &str) -> Result<String, String> {
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
    if words.is_empty() {
        let names: Vec<&str> = sections().map(|(name, _)| name).collect();
        return Ok(format!("{}\n\n\\h NAME shows the forms of one.", names.join("\n")));
    }
    let exact = sections().any(|(name, _)| name == words);
    let wanted = |name: &str| match exact {
        true => name == words,
        false => name.starts_with(&words),
    };
    let shown = sections().filter(|(name, _)| wanted(name));
    let shown: Vec<String> =
        shown.map(|(name, lines)| format!("{name}\n  {}", lines.join("\n  "))).collect();
    match shown.is_empty() {
        true => Err(format!("there is no statement {words}; \\h lists them")),
        false => Ok(shown.join("\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_found_by_the_first_words_of_a_name() {
        let one = help("create  table").expect("a statement");
        assert!(one.starts_with("CREATE TABLE\n  CREATE [ TEMPORARY"), "{one}");
        assert!(one.contains("INTERLEAVE IN [ PARENT ] parent"), "{one}");
        let several = help("drop t").expect("statements");
        for name in ["DROP TABLE\n", "DROP TYPE\n", "DROP TRIGGER\n"] {
            assert!(several.contains(name), "{several}");
        }
        assert!(help("").expect("names").contains("SELECT\n"));
        assert!(help("frobnicate").is_err());
    }
}
