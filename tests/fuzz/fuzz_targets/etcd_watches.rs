#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reading::check(bytes, retrograde::ingest::Format::EtcdWatches);
    reading::check_recording(bytes, "r/client-1/watch.json");
});
