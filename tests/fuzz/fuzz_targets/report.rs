#![no_main]

use retrograde::ingest::{FileId, InputFile};
use retrograde::verify;

const EVIDENCE: [(&str, &[u8]); 3] = [
    ("audit.log", include_bytes!("../../samples/audit.log")),
    ("history.edn", include_bytes!("../../samples/history.edn")),
    ("client-1/operations.json", include_bytes!("../../samples/etcd-operations.json")),
];

// A foreign report is verified against the evidence: no panic, and a result for each claim.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(report) = serde_json::from_slice::<verify::Report>(bytes) else { return };
    let named = |(id, (name, bytes)): (u32, &(&str, &'static [u8]))| InputFile::in_memory(FileId(id), name, *bytes);
    let files: Vec<InputFile> = (0..).zip(&EVIDENCE).map(named).collect();
    let checks = verify::report(&report, &files, &retrograde::read_options(), None, 10_000);
    assert_eq!(checks.len(), report.histories.len());
    for (history, check) in report.histories.iter().zip(&checks) {
        assert_eq!((check.findings.len(), check.proofs.len()), (history.findings.len(), history.proofs.len()));
    }
});
