#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reading::check(bytes, retrograde::ingest::Format::EtcdTraffic);
    reading::check_recording(bytes, "r/traffic.json");
});
