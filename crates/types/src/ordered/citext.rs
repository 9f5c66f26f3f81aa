//! `citext`: texts that compare as if all their letters were small. A value is the text as it was
//! written, and a key has the small letters.

use super::{Ordered, OrderedKind};

/// A text as such a value.
pub fn of(text: &str) -> Ordered {
    Ordered::new(OrderedKind::Citext, text.as_bytes())
}

/// The text as it was written.
pub fn text(value: &Ordered) -> &str {
    std::str::from_utf8(value.bytes()).unwrap_or_default()
}

pub(super) fn folded(value: &Ordered) -> String {
    text(value).to_lowercase()
}

pub(super) fn is_sound(bytes: &[u8]) -> bool {
    crate::checked_text(bytes).is_ok()
}
