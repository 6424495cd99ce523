#![no_main]

use libfuzzer_sys::fuzz_target;
use retrograde::ingest::Format;

fuzz_target!(|bytes: &[u8]| reading::check(bytes, Format::Transactions));
