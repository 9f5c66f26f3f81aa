//! Heads: eight bytes of a key, as a number, that decide most comparisons.
//!
//! A head holds the eight bytes after a prefix that most keys of a list share. Keys without that
//! prefix get 0 or MAX: heads never contradict the order of keys, they only fail to decide.

/// The head of a key in a list whose keys mostly begin with `prefix`.
pub(crate) fn key_head(prefix: &[u8], key: &[u8]) -> u64 {
    let Some(rest) = key.strip_prefix(prefix) else {
        return if key < prefix { 0 } else { u64::MAX };
    };
    if let Some(first) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut head = [0; 8];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}
