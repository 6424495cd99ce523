#![no_main]

#[path = "../../support/container.rs"]
mod framing;

use retrograde::history::snapshot::{VERSION, read};
use retrograde::ingest::Fields;
use retrograde::report::{Format, Look, Part, Report};

/// Reads bytes as a container, then judges and reports its content without a panic.
fn judge(bytes: &[u8]) {
    // The sample was packed with these options.
    let Ok(unpacked) = read(&mut &*bytes, &Fields::default(), None) else { return };
    for history in &unpacked.histories {
        let judgement = retrograde::judge(history, &retrograde::Options::default());
        let report = Report { histories: vec![Part::of(history, &judgement)] };
        for format in [Format::Json, Format::Human, Format::Html] {
            report.write(format, Look::default(), &mut std::io::sink()).expect("nothing to fail");
        }
    }
}

// As given, and with right checksums, which mutation alone would not produce.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    judge(bytes);
    if let Some(chunks) = framing::chunks(bytes) {
        judge(&framing::sealed(&chunks, VERSION));
    }
});
