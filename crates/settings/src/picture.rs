//! All settings and rules as of one version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// A setting that somebody has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// As [`crate::Setting::checked`] gives it.
    pub value: String,
    /// The version with which it came.
    #[serde(default)]
    pub version: u64,
    /// What held before; `None`: the default.
    #[serde(default)]
    pub before: Option<String>,
    /// When, microseconds since 2000.
    #[serde(default)]
    pub at_micros: i64,
    /// By whom.
    #[serde(default)]
    pub by: String,
}

impl Stored {
    /// Bytes of its record.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record. What is no object is the value alone, as the records once were.
    pub fn decode(bytes: &[u8]) -> Option<Stored> {
        let text = std::str::from_utf8(bytes).ok()?;
        if text.starts_with('{') {
            return serde_json::from_str(text).ok();
        }
        let value = match text {
            "on" => "true",
            "off" => "false",
            other => other,
        };
        let (value, by) = (value.to_string(), String::new());
        Some(Stored { value, version: 0, before: None, at_micros: 0, by })
    }
}

/// See the [module's page](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Raised by each change.
    pub version: u64,
    /// What was set, by name; also names that only newer releases know.
    pub values: BTreeMap<String, Stored>,
    /// What is denied, by number. Numbers are those of versions, so that none comes twice.
    pub rules: BTreeMap<u32, Rule>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_before_are_values() {
        let stored = Stored::decode(b"off").expect("it is one");
        assert_eq!((stored.value.as_str(), stored.version), ("false", 0));
        let stored = Stored { value: "7".into(), version: 3, ..stored };
        assert_eq!(Stored::decode(&stored.encode()), Some(stored));
        assert_eq!(Stored::decode(b"{\"value\""), None);
        assert_eq!(Stored::decode(b"\xff"), None);
    }
}
