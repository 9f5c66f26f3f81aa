//! Fuzzes `braid_lsm::fuzzing::tombstone_block`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| braid_lsm::fuzzing::tombstone_block(data));
