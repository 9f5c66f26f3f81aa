//! Fuzzes `braid_lsm::fuzzing::index_block`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| braid_lsm::fuzzing::index_block(data));
