//! Selects the parts of a large history near its findings, so that pictures stay small.

use super::Part;
use crate::ingest::Time;

/// A fact's neighbourhood extends by this fraction (1/200) of the whole time on each side.
const SHARE: i64 = 200;

/// Disjoint ascending intervals of time, in nanoseconds; or everything.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    near: Option<Vec<(i64, i64)>>,
}

impl Neighbourhood {
    /// Everything, if operations and deliveries together are at most `limit`. Otherwise the surroundings of the facts of the
    /// first `findings` findings. If no fact has a time, the begin of the history, up to about `limit` rows.
    pub fn of(part: &Part<'_>, limit: usize, findings: usize) -> Neighbourhood {
        let history = part.history;
        let cluster = history.cluster().map_or(0, |c| c.recording.operations.len() + c.recording.events.len());
        let count = history.operations.len() + history.deliveries.len() + history.calls().calls.len() + cluster;
        if count <= limit {
            return Neighbourhood { near: None };
        }
        let (first, last) = span(part);
        let margin = (last.saturating_sub(first) / SHARE).max(1_000);
        let facts = part.judgement.findings.iter().take(findings).flat_map(|f| &f.certificate.facts);
        let mut times: Vec<i64> = facts.map(|f| f.time).filter(|time| time.is_known()).map(|time| time.0).collect();
        times.sort_unstable();
        if times.is_empty() {
            let part = (last.saturating_sub(first) as f64 * limit as f64 / count as f64) as i64;
            return Neighbourhood { near: Some(vec![(first, first.saturating_add(part))]) };
        }
        let mut near: Vec<(i64, i64)> = Vec::new();
        for time in times {
            match near.last_mut() {
                Some(open) if open.1 >= time.saturating_sub(margin) => open.1 = time.saturating_add(margin),
                _ => near.push((time.saturating_sub(margin), time.saturating_add(margin))),
            }
        }
        Neighbourhood { near: Some(near) }
    }

    /// Whether an interval meets the selection. Without a known end, only its begin counts.
    pub fn covers(&self, begin: Time, end: Time) -> bool {
        let Some(near) = &self.near else { return true };
        let end = if end.is_known() { end.0.max(begin.0) } else { begin.0 };
        let at = near.partition_point(|(_, last)| *last < begin.0);
        near.get(at).is_some_and(|(first, _)| *first <= end)
    }
}

/// First and last time in a history or in its findings, in nanoseconds since 1970.
pub fn span(part: &Part<'_>) -> (i64, i64) {
    let history = part.history;
    let operations = history.operations.iter().flat_map(|o| [o.invoke, o.ret]);
    let deliveries = history.deliveries.iter().map(|d| d.at);
    let calls = history.calls().calls.iter().flat_map(|call| [call.invoke.time, call.ret.time]);
    let facts = part.judgement.findings.iter().flat_map(|f| &f.certificate.facts).map(|f| f.time);
    let recording = || history.cluster().into_iter().map(|cluster| &cluster.recording);
    let asked = recording().flat_map(|r| &r.operations).flat_map(|o| [o.call, o.returned]);
    let received = recording().flat_map(|r| &r.responses).map(|response| response.time);
    let mut known = operations
        .chain(deliveries)
        .chain(calls)
        .chain(asked)
        .chain(received)
        .chain(facts)
        .filter(|time| time.is_known())
        .map(|time| time.0);
    let Some(first) = known.next() else { return (0, 0) };
    known.fold((first, first), |(low, high), time| (low.min(time), high.max(time)))
}
