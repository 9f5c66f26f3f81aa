//! Names of more than 63 bytes, which are cut to that, as PostgreSQL cuts them: 42622 tells.
//!
//! Names are cut as they are read, so that all that can be named is: tables, columns and aliases,
//! prepared statements, cursors, savepoints. Names in texts (`'name'::regclass`) are cut where they
//! are looked up, and nobody is told.

use braid_types::{MAX_IDENTIFIER, SqlState, clip_name};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::Notice;

/// A notice, and where in the script stands what it is about.
pub(crate) type Told = (Location, Notice);

/// Cuts them.
pub(crate) fn cut(tokens: &mut [TokenWithSpan]) -> Vec<Told> {
    let mut told = Vec::new();
    for t in tokens {
        let Token::Word(word) = &mut t.token else { continue };
        if word.value.len() <= MAX_IDENTIFIER {
            continue;
        }
        let name = match word.quote_style {
            Some(_) => std::mem::take(&mut word.value),
            None => word.value.to_ascii_lowercase(),
        };
        word.value = clip_name(&name).to_string();
        let message = format!("identifier \"{name}\" will be truncated to \"{}\"", word.value);
        told.push((t.span.start, Notice { state: SqlState::NAME_TOO_LONG, message }));
    }
    told
}

#[cfg(test)]
mod tests {
    use crate::parse_script;

    #[test]
    fn long_names_are_cut_and_told_with_their_statement() {
        let name = "A".repeat(70);
        let all = parse_script(&format!("select 1; select \"{name}\"; select 'x' as {name}; "));
        let all = all.unwrap();
        assert_eq!(all.iter().map(|s| s.notices.len()).collect::<Vec<_>>(), [0, 1, 1]);
        let cut = "a".repeat(63);
        assert_eq!(
            all[2].notices[0].message,
            format!("identifier \"{}\" will be truncated to \"{cut}\"", "a".repeat(70))
        );
        assert!(all[1].notices[0].message.ends_with(&format!("\"{}\"", "A".repeat(63))));
        let wide = parse_script(&format!("select \"{}\"", "é".repeat(40))).unwrap();
        assert!(wide[0].notices[0].message.ends_with(&format!("\"{}\"", "é".repeat(31))));
    }

    #[test]
    fn names_of_63_bytes_and_long_texts_stay() {
        let text = format!("select \"{}\", '{}'", "a".repeat(63), "b".repeat(100));
        assert!(parse_script(&text).unwrap()[0].notices.is_empty());
    }
}
