//! Names of constraints and indexes that the user did not name, as PostgreSQL makes them.

use braid_types::MAX_IDENTIFIER;

/// `table_column_suffix`, shortened so that it fits an identifier: the longer of table and column
/// part loses bytes first, as PostgreSQL's `makeObjectName` does.
pub fn constraint_name(table: &str, columns: &[&str], suffix: &str) -> String {
    let mut first = table.to_string();
    let mut second = columns.join("_");
    let overhead = suffix.len() + 1 + usize::from(!second.is_empty());
    while first.len() + second.len() + overhead > MAX_IDENTIFIER {
        let longer = if first.len() > second.len() { &mut first } else { &mut second };
        if longer.pop().is_none() {
            break;
        }
    }
    if second.is_empty() {
        format!("{first}_{suffix}")
    } else {
        format!("{first}_{second}_{suffix}")
    }
}

/// The first of these with a suffix of `key`, `key1`, `key2`, .. that is not taken. The number has
/// its place among the bytes, too.
pub fn choose_constraint_name(
    table: &str,
    columns: &[&str],
    suffix: &str,
    taken: impl Fn(&str) -> bool,
) -> String {
    let numbered = (1..).map(|n: u32| format!("{suffix}{n}"));
    std::iter::once(suffix.to_string())
        .chain(numbered)
        .map(|suffix| constraint_name(table, columns, &suffix))
        .find(|name| !taken(name))
        .expect("there are more numbers than relations")
}

/// The first of `name`, `name1`, `name2`, .. that is not taken.
pub fn choose_name(base: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(base) {
        return base.to_string();
    }
    (1..)
        .map(|n: u32| format!("{base}{n}"))
        .find(|n| !taken(n))
        .expect("there are more numbers than relations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_postgres() {
        assert_eq!(constraint_name("t", &[], "pkey"), "t_pkey");
        assert_eq!(constraint_name("t", &["a", "b"], "key"), "t_a_b_key");
        let long = constraint_name(&"x".repeat(80), &["col"], "fkey");
        assert_eq!(long.len(), MAX_IDENTIFIER);
        assert!(long.ends_with("x_col_fkey"));
        let taken = [long.clone(), long.replace("_fkey", "_fkey0")];
        let next = choose_constraint_name(&"x".repeat(80), &["col"], "fkey", |n| {
            taken.iter().any(|t| t == n)
        });
        assert_eq!(next, format!("{}_col_fkey1", "x".repeat(53)));
        assert_eq!(next.len(), MAX_IDENTIFIER);
        assert_eq!(choose_name("a", |n| n == "a" || n == "a1"), "a2");
    }
}
