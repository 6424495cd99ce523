//! Shapes of evidence that grow in one way each: more clients, keys or watches, longer chains of pages.
//!
//! A shape is written up to a size in bytes, streaming. The same size always gives the same bytes.

mod call;
mod capture;
mod changes;
mod etcd;
mod etcd_log;
mod kubernetes;
mod operations;

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// One way of growth.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Name: the format, and the quantity that grows.
    pub name: &'static str,
    draw: Draw,
}

/// Generator of a shape.
#[derive(Clone, Copy)]
enum Draw {
    /// Consecutive Kubernetes calls, as an audit log.
    Audit(fn(u64) -> call::Call),
    /// Consecutive Kubernetes calls, as a capture.
    Capture(fn(u64) -> call::Call),
    /// Streams of a capture with their events.
    Streams(capture::Streams),
    /// Lines of one file.
    Lines(&'static str, fn(u64) -> String),
    /// Operations of a model.
    Model(&'static str, fn(u64) -> String),
    /// Any other evidence.
    Whole(&'static str, fn(&mut Evidence)),
}

impl Shape {
    /// Arguments of `explain`: parts of the names of a client and of an object.
    pub fn question(&self) -> [&'static str; 4] {
        let (client, key) = match self.name.split('-').next() {
            Some("audit") => ("u", "p0"),
            Some("capture") => ("c", "p0"),
            _ => ("client", "k0"),
        };
        ["--client", client, "--key", key]
    }

    /// Writes the shape into an empty folder.
    pub fn draw(&self, folder: &Path, bytes: u64) {
        let file = match self.draw {
            Draw::Audit(_) => "audit.log",
            Draw::Capture(_) | Draw::Streams(_) => "capture.jsonl",
            Draw::Model(..) => "a.json",
            Draw::Lines(file, _) | Draw::Whole(file, _) => file,
        };
        let mut evidence = Evidence::new(folder, file, bytes);
        match self.draw {
            Draw::Audit(call) => evidence.each(|evidence, n| call(n).audit(evidence, n)),
            Draw::Capture(call) => {
                capture::context(&mut evidence, "c", "", "", "k");
                evidence.each(|evidence, n| call(n).capture(evidence, n));
            }
            Draw::Streams(streams) => streams.draw(&mut evidence),
            Draw::Lines(_, line) => evidence.each(|evidence, n| writeln!(evidence, "{}", line(n))),
            Draw::Model(model, line) => {
                writeln!(&mut evidence, r#"{{"kind":"operations","version":1,"model":"{model}"}}"#);
                evidence.each(|evidence, n| writeln!(evidence, "{}", line(n)));
            }
            Draw::Whole(_, draw) => draw(&mut evidence),
        }
        evidence.out.flush().expect("the folder takes what is written");
    }
}

/// All shapes.
pub fn shapes() -> Vec<Shape> {
    [kubernetes::SHAPES, capture::SHAPES, changes::SHAPES, etcd::SHAPES, etcd_log::SHAPES, operations::SHAPES].concat()
}

/// The files of one shape, during writing.
struct Evidence {
    folder: PathBuf,
    out: BufWriter<File>,
    /// Target size in bytes.
    size: u64,
    written: u64,
}

impl Evidence {
    fn new(folder: &Path, file: &str, size: u64) -> Evidence {
        Evidence { folder: folder.to_owned(), out: create(folder, file), size, written: 0 }
    }

    /// Continues in a new file.
    fn file(&mut self, file: &str) {
        let next = create(&self.folder, file);
        std::mem::replace(&mut self.out, next).flush().expect("the folder takes what is written");
    }

    /// Whether the size is not reached.
    fn more(&self) -> bool {
        self.written < self.size
    }

    /// Calls `write` with 0, 1 and so on until the size is reached.
    fn each(&mut self, mut write: impl FnMut(&mut Evidence, u64)) {
        let mut n = 0;
        while self.more() {
            write(self, n);
            n += 1;
        }
    }

    /// As [`Evidence::each`], with commas in between.
    fn list(&mut self, mut write: impl FnMut(&mut Evidence, u64)) {
        self.each(|evidence, n| {
            if n > 0 {
                write!(evidence, ",");
            }
            write(evidence, n);
        });
    }

    /// The function behind `write!`.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) {
        self.bytes(text.to_string().as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.write_all(bytes).expect("the folder takes what is written");
        self.written += bytes.len() as u64;
    }
}

fn create(folder: &Path, file: &str) -> BufWriter<File> {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("folders can be made");
    BufWriter::new(File::create(path).expect("files can be made"))
}

/// A time `milliseconds` after nine o'clock, in RFC 3339.
fn at(milliseconds: u64, micros: u64) -> String {
    let seconds = 9 * 3600 + milliseconds / 1000;
    let (day, hour, minute) = (2 + seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    format!("2026-03-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}{micros:03}Z", seconds % 60, milliseconds % 1000)
}
