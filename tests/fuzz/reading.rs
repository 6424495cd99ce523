//! The assertions of every fuzz target.

use retrograde::history::etcd::load;
use retrograde::ingest::etcd_reports;
use retrograde::ingest::{
    Batch, FileId, Format, InputFile, Position, ReadOptions, Reading, Record, Refused, read, reread,
};

#[derive(Default)]
struct Marks(Vec<(u32, u64, String)>);

impl Batch for Marks {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        self.0.push((line, offset, format!("{record:?}")));
        Ok(())
    }
}

fn read_once(input: &InputFile, block_bytes: usize) -> (Vec<(Position, String)>, Reading) {
    let options = ReadOptions { threads: 1, block_bytes, max_line_bytes: 1 << 16, ..retrograde::read_options() };
    let mut records = Vec::new();
    let start = |_: &InputFile, _| Marks::default();
    let reading = read(std::slice::from_ref(input), &options, &(), start, |file, first, batch: Marks| {
        let place = |(line, offset, mark)| (Position { file, line: first + line, offset }, mark);
        records.extend(batch.0.into_iter().map(place));
    });
    (records, reading)
}

/// Reads the bytes as a file of an etcd client or member and assembles the recording: no panic, and the same
/// recording for every block size.
pub fn check_recording(bytes: &[u8], name: &str) {
    let recording = |block_bytes| {
        let files = vec![InputFile::in_memory(FileId(0), name, bytes)];
        let options = ReadOptions { threads: 1, block_bytes, max_line_bytes: 1 << 16, ..retrograde::read_options() };
        format!("{:?}", load(etcd_reports(files).reports, &options, &()))
    };
    assert_eq!(recording(1 << 13), recording(16));
}

/// Reads the bytes as the format and as what detection finds: no panic, every line accounted for, the same result for
/// every block size, and every record found again at its position.
pub fn check(bytes: &[u8], format: Format) {
    for forced in [Some(format), None] {
        let input = InputFile { format: forced, ..InputFile::in_memory(FileId(0), "fuzz", bytes) };
        let (records, reading) = read_once(&input, 1 << 13);
        let summary = &reading.files[0];
        if summary.format != Some("audit-legacy") {
            let of_the_file = reading.problems.iter().filter(|problem| problem.line == 0).count() as u64;
            let accounted = summary.records + summary.problems + summary.unknown;
            assert_eq!(accounted, summary.lines + of_the_file, "{summary:?}");
        }
        let (again, other) = read_once(&input, 16);
        assert_eq!(records, again);
        assert_eq!(reading.problems, other.problems);
        // Operation logs are not reread.
        if summary.format.and_then(Format::from_name).is_some_and(Format::is_operation_log) {
            continue;
        }
        // Records of binary files are no text, and a broken watch has complete parts.
        let broken = summary.format == Some("etcd-watches") && summary.problems > 0;
        if !broken && !matches!(summary.format, Some("etcd-log" | "etcd-store")) {
            let positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
            assert!(reread(&input, &positions).iter().all(Option::is_some));
        }
    }
}
