#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reading::check(bytes, retrograde::ingest::Format::EtcdOperations);
    reading::check_recording(bytes, "r/client-1/operations.json");
});
