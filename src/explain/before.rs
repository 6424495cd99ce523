//! Which fact of a certificate came before which, and how that is known.

use crate::check::Fact;

/// One edge: the earlier fact, the later one, and the reason, as a clause.
pub type Edge = (usize, usize, &'static str);

/// The edges between neighbours in time, as indices of `facts`. Two facts have one only where the facts themselves say it.
pub fn edges(facts: &[Fact]) -> Vec<Edge> {
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|&at| (facts[at].time, facts[at].revision));
    let mut edges = Vec::new();
    for pair in order.windows(2) {
        let (a, b) = (&facts[pair[0]], &facts[pair[1]]);
        let timed = a.time.is_known() && b.time.is_known() && a.clock == b.clock && a.time < b.time;
        let versions = a.key == b.key && a.revision.is_some() && a.revision < b.revision;
        let reason = match () {
            () if timed && a.incarnation.is_some() && a.incarnation == b.incarnation => "same process, earlier",
            () if timed => "earlier on the same clock",
            () if versions => "an earlier version of the same object",
            () => continue,
        };
        edges.push((pair[0], pair[1], reason));
    }
    edges
}
