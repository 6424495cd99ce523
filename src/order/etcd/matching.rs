//! Gaps given requests, each request to one gap at most (Kuhn 1955, augmenting paths).

use rustc_hash::FxHashMap;

/// Gaps and the requests that they were given.
pub(super) struct Matching<'g> {
    gaps: &'g [(i64, Vec<u32>)],
    /// By request the gap that has it.
    pub used: FxHashMap<u32, usize>,
    /// By gap the request that it has.
    given: Vec<Option<u32>>,
}

impl<'g> Matching<'g> {
    /// Nothing given yet.
    pub fn new(gaps: &'g [(i64, Vec<u32>)]) -> Matching<'g> {
        Matching { gaps, used: FxHashMap::default(), given: vec![None; gaps.len()] }
    }

    fn give(&mut self, request: u32, gap: usize) {
        self.used.insert(request, gap);
        self.given[gap] = Some(request);
    }

    /// Finds a request for a gap, giving others other ones where that helps. A search in breadth: paths can be long.
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
                // Free: everybody on the way takes the one that led there.
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
