//! Bipartite matching of unclaimed revisions and requests by augmenting paths (Kuhn 1955). Each request gets at most one
//! revision.

use rustc_hash::FxHashMap;

/// The current matching.
pub(super) struct Matching<'g> {
    gaps: &'g [(i64, Vec<u32>)],
    /// The gap of each matched request.
    pub used: FxHashMap<u32, usize>,
    /// The request of each matched gap.
    given: Vec<Option<u32>>,
}

impl<'g> Matching<'g> {
    /// The empty matching.
    pub fn new(gaps: &'g [(i64, Vec<u32>)]) -> Matching<'g> {
        Matching { gaps, used: FxHashMap::default(), given: vec![None; gaps.len()] }
    }

    fn give(&mut self, request: u32, gap: usize) {
        self.used.insert(request, gap);
        self.given[gap] = Some(request);
    }

    /// Finds a request for a gap, reassigning other gaps if necessary. The search is breadth-first, because paths can be long.
    pub fn augment(&mut self, gap: usize) -> bool {
        if let Some(free) = self.gaps[gap].1.iter().find(|request| !self.used.contains_key(request)) {
            self.give(*free, gap);
            return true;
        }
        let mut came_from: FxHashMap<u32, usize> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([gap]);
        while let Some(at) = queue.pop_front() {
            for &request in &self.gaps[at].1 {
                if came_from.contains_key(&request) {
                    continue;
                }
                came_from.insert(request, at);
                if let Some(&owner) = self.used.get(&request) {
                    queue.push_back(owner);
                    continue;
                }
                // A free request: each gap on the path takes the request that led to it.
                let mut free = request;
                loop {
                    let taker = came_from[&free];
                    let before = self.given[taker];
                    self.give(free, taker);
                    match before.filter(|_| taker != gap) {
                        Some(next) => free = next,
                        None => return true,
                    }
                }
            }
        }
        false
    }
}
