#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    reading::check(bytes, retrograde::ingest::Format::EtcdLog);
    reading::check_recording(bytes, "r/server-a/member/wal/0000000000000000-0000000000000000.wal");
});
