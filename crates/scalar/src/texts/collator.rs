//! What orders the texts of a locale: ICU's rules, by the crates of ICU4X.
//!
//! A locale is named as PostgreSQL's `provider = icu` names it:
//!
//! ```text
//!   sv   de-AT   zh-Hant              a language, perhaps with a script and a region
//!   und-u-ks-level2-kn   de-u-co-phonebk     with settings, as BCP 47 writes them
//!   de@collation=phonebook;colStrength=secondary      as ICU wrote them before
//! ```

use std::collections::HashMap;
use std::sync::LazyLock;

use braid_types::{SqlError, SqlResult, SqlState};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use parking_lot::RwLock;

/// The version of the orders, as `pg_collation` shows it: that of the crate that brings them.
pub const COLLATION_VERSION: &str = "icu4x 2.1";

/// An order of texts.
pub(crate) struct Collator(CollatorBorrowed<'static>);

impl Collator {
    /// Bytes that order as the texts do; none of them is 0.
    pub(crate) fn write_key(&self, text: &str, into: &mut Vec<u8>) {
        let Ok(()) = self.0.write_sort_key_to(text, into);
    }
}

/// The order of a locale. It is made once and kept: there are as many as users have named.
///
/// # Errors
/// 22023 for what names no locale, 0A000 for settings that are not there.
pub(crate) fn collator(locale: &str) -> SqlResult<&'static Collator> {
    static KNOWN: LazyLock<RwLock<HashMap<String, &'static Collator>>> =
        LazyLock::new(RwLock::default);
    if let Some(known) = KNOWN.read().get(locale) {
        return Ok(*known);
    }
    let made = made(locale)?;
    let mut known = KNOWN.write();
    Ok(*known.entry(locale.to_string()).or_insert_with(|| Box::leak(Box::new(made))))
}

/// Fails if a locale cannot be named so, or asks for what is not there.
///
/// # Errors
/// As [`collator`].
pub fn check_locale(locale: &str) -> SqlResult<()> {
    made(locale).map(|_| ())
}

fn made(name: &str) -> SqlResult<Collator> {
    let (tag, settings) = settings_of(name)?;
    let locale: Locale = tag.parse().map_err(|_| bad_locale(name))?;
    let mut preferences = CollatorPreferences::from(&locale);
    let mut options = CollatorOptions::default();
    for (key, value) in &settings {
        set(key, value, (&mut preferences, &mut options))?;
    }
    CollatorBorrowed::try_new(preferences, options).map(Collator).map_err(|_| bad_locale(name))
}

fn bad_locale(name: &str) -> SqlError {
    let text = format!("could not open collator for locale \"{name}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

/// Key and value of a setting.
type Setting = (String, String);

/// A locale as a tag without settings of collation, and those settings with their BCP 47 keys.
fn settings_of(name: &str) -> SqlResult<(String, Vec<Setting>)> {
    if let Some((tag, old)) = name.split_once('@') {
        let settings = old.split(';').filter(|s| !s.is_empty()).map(old_setting);
        return Ok((tag_of(tag), settings.collect::<SqlResult<_>>()?));
    }
    let name = tag_of(name);
    let Some((tag, extension)) = name.split_once("-u-") else { return Ok((name, Vec::new())) };
    let mut settings: Vec<Setting> = Vec::new();
    for word in extension.split('-') {
        match settings.last_mut() {
            _ if word.len() == 2 => settings.push((word.to_string(), String::new())),
            Some((_, value)) if value.is_empty() => *value = word.to_string(),
            Some((_, value)) => *value = format!("{value}-{word}"),
            None => return Err(bad_locale(&name)),
        }
    }
    Ok((tag.to_string(), settings))
}

/// `de_DE` as `de-de`; the root has a name.
fn tag_of(name: &str) -> String {
    match name.to_ascii_lowercase().replace('_', "-") {
        empty if empty.is_empty() || empty == "root" => "und".to_string(),
        tag => tag,
    }
}

/// `colStrength=secondary` as `ks`, `level2`.
fn old_setting(setting: &str) -> SqlResult<Setting> {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
    let new = match key.as_str() {
        "collation" => "co",
        "colstrength" => "ks",
        "colalternate" => "ka",
        "colcaselevel" => "kc",
        "colcasefirst" => "kf",
        "colnumeric" => "kn",
        "colnormalization" => "kk",
        "colbackwards" => "kb",
        "colreorder" => "kr",
        _ => return Err(not_there(&key)),
    };
    let value = match (new, value.as_str()) {
        ("ks", "primary") => "level1",
        ("ks", "secondary") => "level2",
        ("ks", "tertiary") => "level3",
        ("ks", "quaternary" | "quarternary") => "level4",
        ("ks", "identical") => "identic",
        ("ka", "non-ignorable") => "noignore",
        ("co", "phonebook") => "phonebk",
        ("co", "traditional") => "trad",
        ("co", "dictionary") => "dict",
        (_, "yes") => "true",
        (_, "no") => "false",
        (_, other) => other,
    };
    Ok((new.to_string(), value.to_string()))
}

fn not_there(key: &str) -> SqlError {
    SqlError::unsupported(format!("the setting \"{key}\" of a collation"))
        .with_hint("Settings are co, ka, kc, kf, kn, ks and kv.")
}

/// Takes one setting.
fn set(
    key: &str,
    value: &str,
    (preferences, options): (&mut CollatorPreferences, &mut CollatorOptions),
) -> SqlResult<()> {
    let bad = || {
        let text = format!("the setting \"{key}\" of a collation cannot be \"{value}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
    };
    match (key, value) {
        ("ks", "level1") => options.strength = Some(Strength::Primary),
        ("ks", "level2") => options.strength = Some(Strength::Secondary),
        ("ks", "level3") => options.strength = Some(Strength::Tertiary),
        ("ks", "level4") => options.strength = Some(Strength::Quaternary),
        ("ks", "identic") => options.strength = Some(Strength::Identical),
        ("ka", "noignore") => options.alternate_handling = Some(AlternateHandling::NonIgnorable),
        ("ka", "shifted") => options.alternate_handling = Some(AlternateHandling::Shifted),
        ("kc", "" | "true") => options.case_level = Some(CaseLevel::On),
        ("kc", "false") => options.case_level = Some(CaseLevel::Off),
        ("kv", "space") => options.max_variable = Some(MaxVariable::Space),
        ("kv", "punct") => options.max_variable = Some(MaxVariable::Punctuation),
        ("kv", "symbol") => options.max_variable = Some(MaxVariable::Symbol),
        ("kv", "currency") => options.max_variable = Some(MaxVariable::Currency),
        // It is always done.
        ("kk", _) => {}
        ("co", "standard") => preferences.collation_type = None,
        ("co" | "kf" | "kn", _) => {
            let tag: Locale =
                format!("und-u-{key}-{value}").trim_end_matches('-').parse().map_err(|_| bad())?;
            let wanted = CollatorPreferences::from(&tag);
            match key {
                "co" => preferences.collation_type = Some(wanted.collation_type.ok_or_else(bad)?),
                "kf" => preferences.case_first = Some(wanted.case_first.ok_or_else(bad)?),
                _ => {
                    preferences.numeric_ordering = Some(wanted.numeric_ordering.ok_or_else(bad)?);
                }
            }
        }
        ("ks" | "ka" | "kc" | "kv", _) => return Err(bad()),
        // They say nothing about the order of texts.
        (
            "ca" | "cf" | "cu" | "dx" | "em" | "fw" | "hc" | "lb" | "lw" | "ms" | "mu" | "nu"
            | "rg" | "sd" | "ss" | "tz",
            _,
        ) => {}
        _ => return Err(not_there(key)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(locale: &str, texts: &str) -> String {
        let collator = collator(locale).unwrap();
        let key = |text: &&str| {
            let mut key = Vec::new();
            collator.write_key(text, &mut key);
            assert!(!key.contains(&0), "{text}");
            key
        };
        let mut texts: Vec<&str> = texts.split(' ').collect();
        texts.sort_by_key(key);
        texts.join(" ")
    }

    #[test]
    fn locales_order_texts_as_their_speakers_do() {
        for (locale, texts) in [
            ("und", "a A \u{e4} b B z"),
            ("sv", "a A b z \u{e5} \u{e4} \u{f6}"),
            ("de", "a \u{e4} b o \u{f6} z"),
            ("de-u-co-phonebk", "ad \u{e4} af"),
            ("da", "B b z \u{e6} \u{f8} \u{e5}"),
            ("es", "n \u{f1} o"),
            ("cs", "c h ch i"),
            ("und-u-kn-true", "a2 a10"),
            ("@colNumeric=yes", "a2 a10"),
            ("und-u-kf-upper", "A a B b"),
            ("fr-CA", "cote c\u{f4}te cot\u{e9} c\u{f4}t\u{e9}"),
            ("fr", "cote cot\u{e9} c\u{f4}te c\u{f4}t\u{e9}"),
        ] {
            let mixed: Vec<&str> = texts.split(' ').rev().collect();
            assert_eq!(sorted(locale, &mixed.join(" ")), texts, "{locale}");
        }
    }

    #[test]
    fn what_names_no_locale_is_refused() {
        for (locale, state) in [
            ("und-u-ks-level9", SqlState::INVALID_PARAMETER_VALUE),
            ("und-u-kr-grek", SqlState::FEATURE_NOT_SUPPORTED),
            ("de@colReorder=grek", SqlState::FEATURE_NOT_SUPPORTED),
            ("no locale", SqlState::INVALID_PARAMETER_VALUE),
        ] {
            assert_eq!(check_locale(locale).unwrap_err().state(), state, "{locale}");
        }
    }
}
