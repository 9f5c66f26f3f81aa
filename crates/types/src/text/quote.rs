//! Names as SQL text.

/// An identifier, quoted where it must be: when it is not lower case letters, digits and
/// underscores, or when it is a keyword that PostgreSQL quotes.
pub fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !KEYWORDS.split(' ').any(|word| word == name);
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Keywords of PostgreSQL 15 that are reserved in some place (`pg_get_keywords()`, all but
/// category U).
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary \
    bit boolean both case cast char character check coalesce collate collation column \
    concurrently constraint create cross current_catalog current_date current_role \
    current_schema current_time current_timestamp current_user dec decimal default \
    deferrable desc distinct do else end except exists extract false fetch float for foreign \
    freeze from full grant greatest group grouping having ilike in initially inner inout int \
    integer intersect interval into is isnull join lateral leading least left like limit \
    localtime localtimestamp national natural nchar none normalize not notnull null nullif \
    numeric offset on only or order out outer overlaps overlay placing position precision \
    primary real references returning right row select session_user setof similar smallint \
    some substring symmetric table tablesample then time timestamp to trailing treat trim \
    true union unique user using values varchar variadic verbose when where window with \
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi \
    xmlroot xmlserialize xmltable";

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
