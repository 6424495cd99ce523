#![no_main]

use retrograde::history::{Domains, load_each};
use std::path::PathBuf;
use std::sync::OnceLock;

// An archive is a file: its members are read in place.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| std::env::temp_dir().join(format!("retrograde-fuzz-{}.tar", std::process::id())));
    std::fs::write(path, bytes).expect("room for an archive");
    let inputs = retrograde::ingest::inputs(std::slice::from_ref(path), &[], &[]).expect("it is there");
    for history in load_each(inputs, &retrograde::read_options(), &Domains::default(), &()) {
        retrograde::judge(&history, &retrograde::Options::default());
    }
});
