use super::*;

/// Random observations: 5 keys, and small ranges so that many are equal; some revisions have more than 64 bits.
fn some(count: u32, clocks: usize) -> Vec<Observation> {
    let mut random = fastrand::Rng::with_seed(u64::from(count));
    let mut roll = move |sides: u64| random.u64(..sides);
    let observation = |n| {
        let (low, high) = (u128::from(roll(60)), u128::from(roll(8) / 7));
        Observation {
            time: Time(roll(90) as i64),
            clock: ClockId(roll(clocks as u64) as u32),
            revision: Revision::new(high << 70 | low),
            key: KeyId(roll(5) as u32),
            evidence: EvidenceRef::Answer(OperationId(n)),
        }
    };
    (0..count).map(observation).collect()
}

/// The highest revision before a moment, and the first and the last clock that show it.
fn highest_before(
    observations: &[Observation],
    clocks: &Clocks,
    clock: ClockId,
    time: Time,
) -> [Option<(Revision, ClockId)>; 2] {
    let before = |s: &&Observation| clocks.horizon(s.clock, clock, time).is_some_and(|horizon| s.time < horizon);
    let all = || observations.iter().filter(before).map(|s| (s.revision, s.clock));
    [all().max_by_key(|(revision, clock)| (*revision, std::cmp::Reverse(*clock))), all().max()]
}

/// The same, found.
fn found_before(records: Records<'_>, clocks: &Clocks, clock: ClockId, time: Time) -> [Option<(Revision, ClockId)>; 2] {
    [TieBreak::First, TieBreak::Last]
        .map(|tie_break| records.highest_before(clocks, clock, time, tie_break).map(|s| (s.revision, s.clock)))
}

#[test]
fn times_are_found_wherever_the_last_search_ended() {
    let history = History { clocks: vec![crate::history::Symbol::NONE], ..History::default() };
    let mut facts = Facts::default();
    let numbers: Vec<u32> =
        (0..500).map(|n| facts.other(Observation { time: Time(n / 3 * 2), ..some(1, 3)[0] })).collect();
    let reading = Reading { history: &history, facts: &facts };
    let by_time = FactsByTime::of(reading.in_order(numbers.into_iter()).into_iter());
    for range in [0..500, 0..499, 3..400, 101..499, 200..203, 7..7] {
        // Forward, back, and in leaps.
        for n in (0..340).chain((0..340).rev()).chain((0..700).map(|n| n * 97 % 340)) {
            let time = Time(n);
            let all = range.start + (range.clone()).take_while(|&at| reading.time(at as u32) < time).count();
            assert_eq!(by_time.before(reading, range.clone(), time), all, "{range:?} {time:?}");
        }
    }
}

#[test]
fn observations_are_found_as_by_looking_at_all_of_them() {
    // With more clocks than `FactsByTime::MAX_CLOCKS_WITHOUT_STARTS`, the start of each key and clock is kept.
    let many = FactsByTime::MAX_CLOCKS_WITHOUT_STARTS + 1;
    for (all, bounds) in [(3, None), (3, Some(7..8)), (3, Some(-9..40)), (many, Some(7..8)), (many, Some(-9..40))] {
        let history = History { clocks: vec![crate::history::Symbol::NONE; all], ..History::default() };
        let mut random = fastrand::Rng::with_seed(all as u64);
        let clocks =
            Clocks::with_bounds(all, || bounds.clone().filter(|_| random.u8(..) > 9).map(|bounds| random.i64(bounds)));
        let asking = (0..all as u32).step_by(1 + all / 4).map(ClockId);
        for count in [0, 1, 15, 16, 17, 40, 300] {
            let mut observations = some(count, all);
            let mut facts = Facts::default();
            let numbers: Vec<u32> = observations.iter().map(|observation| facts.other(*observation)).collect();
            let reading = Reading { history: &history, facts: &facts };
            let order = reading.in_order(numbers.into_iter());
            let (line, keyed) = (Observations::new(reading, &order), ByKey::new(reading, &order));
            assert_eq!(keyed.raised.runs.is_empty(), all == 3 || count == 0);
            observations.sort_by_key(Observation::place);
            for (clock, time) in asking.clone().flat_map(|clock| (-2..95).map(move |time| (clock, Time(time)))) {
                let found = found_before(line.raised.records(reading), &clocks, clock, time);
                assert_eq!(found, highest_before(&observations, &clocks, clock, time));
                for key in (0..5).map(KeyId) {
                    let own: Vec<Observation> = observations.iter().filter(|s| s.key == key).copied().collect();
                    let records = keyed.keyed(reading).get(&key);
                    let found = records.map_or([None; 2], |records| found_before(records, &clocks, clock, time));
                    assert_eq!(found, highest_before(&own, &clocks, clock, time));
                }
                for revision in [0, 5, 30, 59, 60, 1 << 70, u128::MAX].map(Revision::new) {
                    let above = line.line(reading).above(&clocks, clock, time, revision).map(|s| s.place());
                    let inside = |s: &&Observation| {
                        s.revision > revision
                            && clocks.horizon(s.clock, clock, time).is_some_and(|horizon| s.time < horizon)
                    };
                    let mut all: Vec<_> = observations.iter().filter(inside).map(Observation::place).collect();
                    all.reverse();
                    all.sort_by_key(|place| place.0);
                    assert_eq!(above.collect::<Vec<_>>(), all);
                }
            }
            for revision in (0..70).map(Revision::from) {
                let reached = line.raised.records(reading).reached(revision).map(|s| (s.clock, s.time));
                let first = |clock| {
                    let mut of = observations.iter().filter(|s| s.clock == clock);
                    of.find(|s| s.revision >= revision).map(|s| (clock, s.time))
                };
                let all: Vec<_> = (0..all as u32).filter_map(|clock| first(ClockId(clock))).collect();
                assert_eq!(reached.collect::<Vec<_>>(), all);
            }
        }
    }
}
