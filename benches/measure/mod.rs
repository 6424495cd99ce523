//! Measurement in benches: processor time of the thread where the system reports it, since other work on the machine
//! distorts wall time; ratios of alternating runs; peak memory.
#![allow(dead_code, reason = "each bench uses a part")]

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use retrograde::ingest::{Batch, Record, Refused};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A batch that only counts its records.
pub struct Count(pub u64);

impl Batch for Count {
    fn record(&mut self, _line: u32, _offset: u64, record: Record<'_>) -> Result<(), Refused> {
        black_box(&record);
        self.0 += 1;
        Ok(())
    }
}

/// Processor time of the present thread (Linux); elsewhere wall time.
pub struct ThreadTime(WallTime);

impl Default for ThreadTime {
    fn default() -> Self {
        ThreadTime(WallTime)
    }
}

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;
    fn start(&self) -> Duration {
        thread_time()
    }
    fn end(&self, start: Duration) -> Duration {
        thread_time() - start
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        self.0.to_f64(value)
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        self.0.formatter()
    }
}

/// The bench harness with the options of the command line.
pub fn criterion() -> criterion::Criterion<ThreadTime> {
    criterion::Criterion::default()
        .with_measurement(ThreadTime::default())
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args()
}

/// Throughput of an input of `n` bytes.
pub fn bytes(n: usize) -> Throughput {
    Throughput::Bytes(n as u64)
}

/// Whether this run only shows that the benches work (`cargo test --benches`).
pub fn is_trial() -> bool {
    !std::env::args().any(|arg| arg == "--bench")
}

fn thread_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .filter(|nanos: &u64| *nanos > 0);
    spent.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// Processor time of all live threads of this process (Linux), in seconds; elsewhere wall time.
pub fn process_time() -> f64 {
    let spent = |entry: std::fs::DirEntry| -> Option<u64> {
        std::fs::read_to_string(entry.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    match std::fs::read_dir("/proc/self/task") {
        Ok(tasks) => tasks.filter_map(|task| spent(task.ok()?)).sum::<u64>() as f64 / 1e9,
        Err(_) => thread_time().as_secs_f64(),
    }
}

/// Times of one variant, in seconds.
#[derive(Clone, Default)]
pub struct Times {
    /// Processor time of the calling thread, one value per round.
    pub thread: Vec<f64>,
    /// Wall time, one value per round.
    pub wall: Vec<f64>,
}

/// Runs variants alternately, so that other work on the machine slows all of them.
pub fn in_turn(rounds: usize, variants: &mut [&mut dyn FnMut()]) -> Vec<Times> {
    let mut times = vec![Times::default(); variants.len()];
    for _ in 0..rounds {
        for (variant, times) in variants.iter_mut().zip(&mut times) {
            let (thread, wall) = (thread_time(), Instant::now());
            variant();
            times.thread.push((thread_time() - thread).as_secs_f64());
            times.wall.push(wall.elapsed().as_secs_f64());
        }
    }
    times
}

/// The median of some values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The median of the ratios a/b of each round.
pub fn ratio(a: &[f64], b: &[f64]) -> f64 {
    median(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>())
}

/// Peak resident memory of this process in bytes (Linux).
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Prints a figure with its target, and whether the target is missed.
pub fn figure(what: &str, value: f64, unit: &str, target: &str, met: bool) {
    let verdict = if met { "" } else { "  MISSED" };
    println!("{what:<52} {value:>10.2} {unit:<9} target {target}{verdict}");
}
