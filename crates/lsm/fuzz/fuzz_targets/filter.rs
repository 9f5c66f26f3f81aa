//! Fuzzes `braid_lsm::fuzzing::filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| braid_lsm::fuzzing::filter(data));
