#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reading::check(bytes, retrograde::ingest::Format::EtcdStore);
    reading::check_recording(bytes, "r/server-a/member/snap/db");
});
