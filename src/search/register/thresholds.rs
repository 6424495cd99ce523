//! Thresholds: sizes from which on the search of a register proceeds in another way. None changes a verdict.

/// The thresholds of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Events of a segment of the speculative search, at least.
    pub segment_events: usize,
    /// Work for each event above which half of a segment is hard. Usual is a work of two.
    pub hard_work_per_event: u64,
    /// Events of such a half, at least.
    pub half_events: u32,
    /// Active configurations from which other threads are worth waking.
    pub parallel_configurations: usize,
    /// Active configurations of a chunk, which one thread expands.
    pub chunk_configurations: usize,
    /// Layers of an interval, at most.
    pub interval_layers: usize,
    /// Layers of an interval that are worth a checkpoint.
    pub checkpoint_layers: usize,
    /// The newest intervals, which keep their layers: the search mostly backtracks over a short distance.
    pub whole_intervals: usize,
    /// New steps between two collections, at least.
    pub collected_steps: usize,
    /// Partial moves of one configuration before equal ones are looked for. (Small histories have few.)
    pub compared_moves: u64,
}

impl Thresholds {
    /// Thresholds that a history of a few calls exceeds, for tests.
    pub const SMALL: Thresholds = Thresholds {
        segment_events: 5,
        hard_work_per_event: 2,
        half_events: 1 << 6,
        parallel_configurations: 3,
        chunk_configurations: 1,
        interval_layers: 3,
        checkpoint_layers: 2,
        whole_intervals: 1,
        collected_steps: 1 << 6,
        compared_moves: 4,
    };
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            segment_events: 1 << 13,
            hard_work_per_event: 4,
            half_events: 1 << 11,
            parallel_configurations: 256,
            chunk_configurations: 16,
            interval_layers: 256,
            checkpoint_layers: 32,
            whole_intervals: 4,
            collected_steps: 1 << 16,
            compared_moves: 64,
        }
    }
}
