//! Names as SQL text.

/// An identifier, quoted where it must be: when it is not lower case letters, digits and
/// underscores, or when it is a keyword that PostgreSQL quotes.
pub fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_reserved(name)
        && !NO_FUNCTION.split(' ').any(|word| word == name);
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether a word in small letters stands for no table, column, cursor and the like unless it is
/// quoted.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.split(' ').any(|reserved| reserved == word)
}

/// Keywords of PostgreSQL 15 that name no table and no column unless they are quoted
/// (`pg_get_keywords()`, categories R and T).
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric authorization binary both case cast \
    check collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user \
    default deferrable desc distinct do else end except false fetch for foreign freeze from \
    full grant group having ilike in initially inner intersect into is isnull join lateral \
    leading left like limit localtime localtimestamp natural not notnull null offset on only \
    or order outer overlaps placing primary references returning right select session_user \
    similar some symmetric table tablesample then to trailing true union unique user using \
    variadic verbose when where window with";

/// Those that do, but no function and no type (category C).
const NO_FUNCTION: &str = "\
    between bigint bit boolean char character coalesce dec decimal exists extract float \
    greatest grouping inout int integer interval least national nchar none normalize nullif \
    numeric out overlay position precision real row setof smallint substring time timestamp \
    treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest \
    xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

#[cfg(test)]
mod tests {
    use super::quote_ident;

    #[test]
    fn only_what_needs_quotes_gets_them() {
        for plain in ["a", "_x1", "index", "interleave", "parent", "key"] {
            assert_eq!(quote_ident(plain), plain);
        }
        for (name, quoted) in [
            ("", "\"\""),
            ("A", "\"A\""),
            ("1a", "\"1a\""),
            ("a$", "\"a$\""),
            ("a\"b", "\"a\"\"b\""),
            ("select", "\"select\""),
            ("xmltable", "\"xmltable\""),
            ("all", "\"all\""),
        ] {
            assert_eq!(quote_ident(name), quoted);
        }
    }
}
