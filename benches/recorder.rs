//! Cost of recording a call: invocation and answer together.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use retrograde::Recorder;

/// Calls of one measurement. The memory of a recording grows, as it does in a test.
const CALLS: u64 = 10_000;

fn record(recorder: &Recorder<u64, u64>) {
    let client = recorder.client("a");
    for n in 0..CALLS {
        client.invoke(n).ok(n);
    }
}

fn calls(criterion: &mut Criterion) {
    let recorder = Recorder::new();
    record(&recorder);
    assert_eq!(recorder.history().expect("a history").calls().len(), CALLS as usize);
    let mut group = criterion.benchmark_group("recorder");
    group.throughput(criterion::Throughput::Elements(CALLS));
    group.bench_function("a call of one client", |bencher| {
        bencher.iter_batched_ref(Recorder::new, |recorder| record(recorder), BatchSize::SmallInput);
    });
    group.bench_function("a call of one of two clients at a time", |bencher| {
        bencher.iter_batched_ref(
            Recorder::new,
            |recorder| {
                std::thread::scope(|scope| {
                    let other = recorder.clone();
                    scope.spawn(move || {
                        let client = other.client("b");
                        (0..CALLS).for_each(|n| client.invoke(n).ok(n));
                    });
                    record(recorder);
                });
                assert_eq!(recorder.len(), 2 * CALLS as usize);
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
