//! Fuzzes `braid_lsm::fuzzing::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| braid_lsm::fuzzing::segment(data));
