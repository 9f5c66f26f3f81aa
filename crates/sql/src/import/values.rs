//! What options of IMPORT and EXPORT can be: texts, flags, numbers, sizes.

use braid_types::{SqlError, SqlResult, SqlState};

type Value = Option<String>;

/// Values of the options of a statement, which messages name. Each function fails with 22023.
pub(crate) struct OptionsOf(pub(crate) &'static str);

/// Those of IMPORT.
pub(super) const IMPORT: OptionsOf = OptionsOf("IMPORT");

impl OptionsOf {
    /// A text that must be there.
    pub(crate) fn text(&self, name: &str, value: &Value) -> SqlResult<String> {
        value.clone().ok_or_else(|| self.bad(name, "needs a value"))
    }

    /// One byte; `\t` is a tab, as shells and CockroachDB's users write it.
    pub(crate) fn byte(&self, name: &str, value: &Value) -> SqlResult<u8> {
        let text = self.text(name, value)?;
        let text = if text == "\\t" { "\t" } else { &text };
        match text.as_bytes() {
            [b] if b.is_ascii() && !matches!(b, b'\n' | b'\r' | 0) => Ok(*b),
            _ => Err(self.bad(name, "must be a single one-byte character")),
        }
    }

    /// True or false; true if it stands there alone.
    pub(crate) fn flag(&self, name: &str, value: &Value) -> SqlResult<bool> {
        match value.as_deref().map(str::to_lowercase).as_deref() {
            None | Some("true" | "on" | "yes" | "1") => Ok(true),
            Some("false" | "off" | "no" | "0") => Ok(false),
            Some(_) => Err(self.bad(name, "is true or false")),
        }
    }

    /// A whole number from 0 on.
    pub(crate) fn number(&self, name: &str, value: &Value) -> SqlResult<u64> {
        let parsed = self.text(name, value)?.trim().parse();
        parsed.map_err(|_| self.bad(name, "needs a whole number"))
    }

    /// Bytes, with a unit if there is one: `512`, `10MB`, `1 GiB`. Never 0.
    pub(crate) fn size(&self, name: &str, value: &Value) -> SqlResult<usize> {
        let text = self.text(name, value)?;
        let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
        let (digits, unit) = text.trim().split_at(digits);
        let factor: usize = match unit.trim().to_lowercase().as_str() {
            "" | "b" => 1,
            "kb" | "kib" => 1 << 10,
            "mb" | "mib" => 1 << 20,
            "gb" | "gib" => 1 << 30,
            _ => return Err(self.bad(name, "is a size, such as 10MB")),
        };
        let bytes = digits.parse().ok().and_then(|n: usize| n.checked_mul(factor));
        bytes.filter(|n| *n > 0).ok_or_else(|| self.bad(name, "is a size, such as 10MB"))
    }

    /// An option that is not as it should be.
    pub(crate) fn bad(&self, name: &str, what: &str) -> SqlError {
        let message = format!("{} option \"{name}\" {what}", self.0);
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    }
}
