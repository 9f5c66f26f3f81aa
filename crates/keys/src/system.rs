//! Keys of system records: everything below the first byte 01.
//!
//! ```text
//!   01 'a' id           what ANALYZE has found out about a table
//!   01 'b'              written by every change of what all sessions see: they exclude each other
//!   01 'c'              catalog version
//!   01 'd' id           descriptor of an object
//!   01 'e' id n         spans of a hierarchy in which rows were erased, and index entries were not
//!   01 'f'              since this is there, such spans have records
//!   01 'g' id gen       a generation inside of families that is over, until it is reclaimed
//!   01 'h' id           changes when reads of a table would answer differently by its descriptor
//!   01 'i'              next object id
//!   01 'j' id           a job: a schema change that runs in steps
//!   01 'k' process      until when what sessions of a node's process hold counts: its presence
//!   01 'l' id step      lock name of a table's shape at a step (never stored)
//!   01 'm'              the nodes of the cluster
//!   01 'n' id           who owns an object, who may use it, what is said about it
//!   01 'o' db kind a b  who has an advisory lock, of the sessions of all nodes
//!   01 'p' id           spans of an unfinished bulk load
//!   01 'q' id           rule that denies statements
//!   01 'r' id gen       where reclaiming entries of an index goes on
//!   01 's' id gen       current value of a sequence
//!   01 't' name         setting of the cluster
//!   01 'u' n            what NOTIFY has said, until all nodes have heard it
//!   01 'v'              version of the settings and rules
//!   01 'w' process      until when a node goes by what it knows of the schema: its lease
//!   01 'x' id           lock name of changes of a table (never stored)
//!   01 'y'              how much NOTIFY has said
//! ```

use crate::path::push_number;

/// First byte of system records.
pub(crate) const SYSTEM_PREFIX: u8 = 0x01;

fn key(kind: u8, numbers: &[u32]) -> Vec<u8> {
    let mut out = vec![SYSTEM_PREFIX, kind];
    for n in numbers {
        push_number(&mut out, u64::from(*n));
    }
    out
}

/// Span of all system records.
pub fn all() -> (Vec<u8>, Vec<u8>) {
    (vec![SYSTEM_PREFIX], vec![SYSTEM_PREFIX + 1])
}

/// What ANALYZE has found out about a table.
pub fn statistics(table: u32) -> Vec<u8> {
    key(b'a', &[table])
}

/// By this key those exclude each other who analyze a table because it has changed. Nothing is
/// there.
pub fn analyzing(table: u32) -> Vec<u8> {
    key(b'a', &[table, 0])
}

/// By this key changes of what all sessions see exclude each other.
pub fn shared_changes() -> Vec<u8> {
    key(b'b', &[])
}

/// Counts schema changes.
pub fn catalog_version() -> Vec<u8> {
    key(b'c', &[])
}

/// The next free object id.
pub fn next_id() -> Vec<u8> {
    key(b'i', &[])
}

/// The nodes of the cluster.
pub fn cluster_nodes() -> Vec<u8> {
    key(b'm', &[])
}

/// An object's descriptor.
pub fn descriptor(id: u32) -> Vec<u8> {
    key(b'd', &[id])
}

/// What is noted about an object beside its descriptor.
pub fn notes(id: u32) -> Vec<u8> {
    key(b'n', &[id])
}

/// Span of all [`notes`].
pub fn all_notes() -> (Vec<u8>, Vec<u8>) {
    (key(b'n', &[]), key(b'o', &[]))
}

/// Span of all descriptors.
pub fn descriptors() -> (Vec<u8>, Vec<u8>) {
    (key(b'd', &[]), key(b'e', &[]))
}

/// What serializable readers of a table depend on besides its rows: written by every change of its
/// descriptor that they would notice.
pub fn shape(id: u32) -> Vec<u8> {
    key(b'h', &[id])
}

/// Record of spans of a root table in which rows were erased, without their entries elsewhere.
pub fn erasure(root: u32, number: u64) -> Vec<u8> {
    let mut out = key(b'e', &[root]);
    push_number(&mut out, number);
    out
}

/// Span of all [`erasure`] records of a root table.
pub fn erasures(root: u32) -> (Vec<u8>, Vec<u8>) {
    (key(b'e', &[root]), key(b'e', &[root + 1]))
}

/// Span of all [`erasure`] records.
pub fn all_erasures() -> (Vec<u8>, Vec<u8>) {
    (key(b'e', &[]), key(b'f', &[]))
}

/// Says that erasures have records in this store.
pub fn erasures_are_noted() -> Vec<u8> {
    key(b'f', &[])
}

/// Record of a generation inside of families that is over.
pub fn discarded(id: u32, generation: u32) -> Vec<u8> {
    key(b'g', &[id, generation])
}

/// Id and generation of a [`discarded`] key.
pub fn discarded_id(key: &[u8]) -> Option<(u32, u32)> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'g'])?;
    let (id, n) = crate::path::read_number(rest)?;
    let (generation, m) = crate::path::read_number(&rest[n..])?;
    let both = u32::try_from(id).ok().zip(u32::try_from(generation).ok());
    both.filter(|_| n + m == rest.len())
}

/// Span of all [`discarded`] keys.
pub fn all_discarded() -> (Vec<u8>, Vec<u8>) {
    (key(b'g', &[]), key(b'h', &[]))
}

/// Where the search for dead entries of an index goes on.
pub fn reclaim_place(index: u32, generation: u32) -> Vec<u8> {
    key(b'r', &[index, generation])
}

/// Record of a job.
pub fn job(id: u32) -> Vec<u8> {
    key(b'j', &[id])
}

/// Object id of a job's key.
pub fn job_id(key: &[u8]) -> Option<u32> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'j'])?;
    crate::path::read_number(rest)
        .and_then(|(id, n)| if n == rest.len() { u32::try_from(id).ok() } else { None })
}

/// Span of all jobs.
pub fn jobs() -> (Vec<u8>, Vec<u8>) {
    (key(b'j', &[]), key(b'k', &[]))
}

/// Name under which statements lock a table's shape at a step; nothing is stored there.
pub fn table_lock(id: u32, step: u32) -> Vec<u8> {
    key(b'l', &[id, step])
}

/// The table whose shape is locked under this name.
pub fn locked_table(name: &[u8]) -> Option<u32> {
    let rest = name.strip_prefix(key(b'l', &[]).as_slice())?;
    u32::try_from(crate::path::read_number(rest)?.0).ok()
}

/// Name under which changes of a table exclude each other; nothing is stored there.
pub fn change_lock(id: u32) -> Vec<u8> {
    key(b'x', &[id])
}

/// Spans that a bulk load fills before its transaction commits; the id is used for
/// nothing else. Removed by that commit.
pub fn pending_load(id: u32) -> Vec<u8> {
    key(b'p', &[id])
}

/// The id of a pending load's key.
pub fn pending_load_id(key: &[u8]) -> Option<u32> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'p'])?;
    crate::path::read_number(rest)
        .and_then(|(id, n)| if n == rest.len() { u32::try_from(id).ok() } else { None })
}

/// Span of all pending loads.
pub fn pending_loads() -> (Vec<u8>, Vec<u8>) {
    (key(b'p', &[]), key(b'q', &[]))
}

/// Current value of a sequence.
pub fn sequence_value(id: u32, generation: u32) -> Vec<u8> {
    key(b's', &[id, generation])
}

/// The lease of a node's process on the schema.
pub fn schema_lease(process: u64) -> Vec<u8> {
    let mut out = key(b'w', &[]);
    push_number(&mut out, process);
    out
}

/// The process of a [`schema_lease`] key.
pub fn schema_lease_process(key: &[u8]) -> Option<u64> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'w'])?;
    crate::path::read_number(rest).filter(|(_, n)| *n == rest.len()).map(|(process, _)| process)
}

/// Span of all [`schema_lease`] keys.
pub fn schema_leases() -> (Vec<u8>, Vec<u8>) {
    (key(b'w', &[]), key(b'x', &[]))
}

/// A cluster setting.
pub fn setting(name: &str) -> Vec<u8> {
    let mut out = key(b't', &[]);
    out.extend_from_slice(name.as_bytes());
    out
}

/// The name of a [`setting`] key.
pub fn setting_name(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[SYSTEM_PREFIX, b't']).and_then(|name| std::str::from_utf8(name).ok())
}

/// Span of all [`setting`] keys.
pub fn all_settings() -> (Vec<u8>, Vec<u8>) {
    (key(b't', &[]), key(b'u', &[]))
}

/// Version of the cluster settings and the rules of denied statements.
pub fn settings_version() -> Vec<u8> {
    key(b'v', &[])
}

/// A rule that denies statements.
pub fn denied_query(id: u32) -> Vec<u8> {
    key(b'q', &[id])
}

/// The number of a [`denied_query`] key.
pub fn denied_query_id(key: &[u8]) -> Option<u32> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'q'])?;
    let (id, n) = crate::path::read_number(rest)?;
    (n == rest.len()).then(|| u32::try_from(id).ok()).flatten()
}

/// Span of all [`denied_query`] keys.
pub fn all_denied_queries() -> (Vec<u8>, Vec<u8>) {
    (key(b'q', &[]), key(b'r', &[]))
}

/// Until when what sessions of a process hold counts.
pub fn presence(process: u64) -> Vec<u8> {
    let mut out = key(b'k', &[]);
    push_number(&mut out, process);
    out
}

/// Span of all [`presence`] keys.
pub fn presences() -> (Vec<u8>, Vec<u8>) {
    (key(b'k', &[]), key(b'l', &[]))
}

/// Who has an advisory lock of a database: on one number of 64 bits, or on `two` of 32 bits each.
pub fn advisory_lock(database: u32, two: bool, number: u64) -> Vec<u8> {
    let mut out = key(b'o', &[database, u32::from(two)]);
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// Database, whether it is on two numbers, and the number, of an [`advisory_lock`] key.
pub fn advisory_lock_of(key: &[u8]) -> Option<(u32, bool, u64)> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'o'])?;
    let (database, n) = crate::path::read_number(rest)?;
    let (two, m) = crate::path::read_number(&rest[n..])?;
    let number = rest[n + m..].try_into().ok().map(u64::from_be_bytes)?;
    Some((u32::try_from(database).ok()?, two == 1, number))
}

/// Span of all [`advisory_lock`] keys.
pub fn advisory_locks() -> (Vec<u8>, Vec<u8>) {
    (key(b'o', &[]), key(b'p', &[]))
}

/// One of the things that NOTIFY has said, in the order of commits.
pub fn message(number: u64) -> Vec<u8> {
    let mut out = key(b'u', &[]);
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// The number of a [`message`] key.
pub fn message_number(key: &[u8]) -> Option<u64> {
    let rest = key.strip_prefix(&[SYSTEM_PREFIX, b'u'])?;
    rest.try_into().ok().map(u64::from_be_bytes)
}

/// How many [`message`]s there have been.
pub fn messages_said() -> Vec<u8> {
    key(b'y', &[])
}
