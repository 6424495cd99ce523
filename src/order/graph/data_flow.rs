//! Order by reads and writes: revisions decide it, and no clock does. Edges are version order (ww), reads-from (wr) and
//! anti-dependency (rw) of Adya. Each key needs one sweep after sorting.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::source::{EdgeSource, Reason};
use super::sparse::{Edges, Node};
use super::unit::{Access, Touch, Units, What};
use crate::history::{History, KeyId, Revision};

/// Version order, reads-from and anti-dependencies between units.
///
/// For each key: a write comes before the next write. A write comes before every unit that saw its version, or a later version
/// that no unit wrote. A unit that saw a version comes before the next write. All other edges follow from these.
pub struct DataFlow<'h> {
    history: &'h History,
    units: &'h Units,
    /// By key, revision, then writes before reads.
    accesses: Vec<Access>,
}

impl<'h> DataFlow<'h> {
    /// Collects the accesses of these units.
    pub fn of(history: &'h History, units: &'h Units) -> DataFlow<'h> {
        let mut accesses = units.accesses.clone();
        accesses.sort_unstable_by_key(|a| (a.key, a.revision, a.touch, a.unit, a.at));
        DataFlow { history, units, accesses }
    }

    fn of_key(&self, key: KeyId) -> &[Access] {
        let from = self.accesses.partition_point(|a| a.key < key);
        let to = self.accesses.partition_point(|a| a.key <= key);
        &self.accesses[from..to]
    }

    /// The accesses of one unit, in order of key and revision.
    fn of_unit(&self, unit: Node) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(move |a| a.unit == unit)
    }

    /// The client of a unit, with its decision if it has one.
    fn who(&self, unit: Node) -> String {
        let unit = &self.units.units[unit as usize];
        let client = self.history.short_client(unit.incarnation);
        match unit.what {
            What::Decision(name) => format!("{client} in {}", self.history.name(name)),
            What::Record(_) => client.to_owned(),
        }
    }
}

impl EdgeSource for DataFlow<'_> {
    fn add_to(&self, edges: &mut Edges) {
        for accesses in self.accesses.chunk_by(|a, b| a.key == b.key) {
            let mut written: Option<Node> = None;
            // The units that saw the last written version or a later one.
            let mut seers: Vec<Node> = Vec::new();
            for access in accesses {
                let unit = access.unit;
                if access.touch != Touch::Wrote {
                    if let Some(writer) = written {
                        edges.add(writer, unit, EdgeKind::ReadsFrom);
                    }
                    seers.push(unit);
                    continue;
                }
                if let Some(writer) = written {
                    edges.add(writer, unit, EdgeKind::Version);
                }
                for seer in seers.drain(..) {
                    edges.add(seer, unit, EdgeKind::AntiDependency);
                }
                written = Some(unit);
            }
        }
    }

    fn explain(&self, step: Step) -> Option<Reason> {
        let (from, to) = (self.who(step.from), self.who(step.to));
        let reason = |access: &Access, says| {
            Some(Reason { kind: step.kind, says, at: access.at, key: access.key, revision: access.revision })
        };
        for touched in self.of_unit(step.from) {
            let accesses = self.of_key(touched.key);
            let key = self.history.key_name(touched.key);
            let next_write = |after: Revision| accesses.iter().find(|a| a.touch == Touch::Wrote && a.revision > after);
            match (step.kind, touched.touch) {
                (EdgeKind::Version, Touch::Wrote) => {
                    let Some(next) = next_write(touched.revision).filter(|a| a.unit == step.to) else { continue };
                    let says = format!(
                        "{to} wrote {key} at revision {}, over version {} of {from}",
                        next.revision, touched.revision
                    );
                    return reason(next, says);
                }
                (EdgeKind::ReadsFrom, Touch::Wrote) => {
                    let until = next_write(touched.revision).map_or(Revision::new(u128::MAX), |a| a.revision);
                    let saw = |a: &&Access| {
                        a.unit == step.to && a.touch != Touch::Wrote && (touched.revision..until).contains(&a.revision)
                    };
                    let Some(seen) = accesses.iter().find(saw) else { continue };
                    let whose = match seen.revision == touched.revision {
                        true => format!("which {from} had written"),
                        false => format!("after version {} of {from}", touched.revision),
                    };
                    return reason(seen, format!("{to} saw {}, {whose}", seen_words(&key, seen)));
                }
                (EdgeKind::AntiDependency, Touch::Saw | Touch::SawNothing) => {
                    let Some(next) = next_write(touched.revision).filter(|a| a.unit == step.to) else { continue };
                    let seen = match touched.touch {
                        Touch::SawNothing => format!("after {from} had seen nothing there at {}", touched.revision),
                        _ => format!("after version {} that {from} had seen", touched.revision),
                    };
                    let says = format!("{to} wrote {key} at revision {}, {seen}", next.revision);
                    return reason(next, says);
                }
                _ => {}
            }
        }
        None
    }
}

fn seen_words(key: &str, access: &Access) -> String {
    match access.touch {
        Touch::SawNothing => format!("no {key} at revision {}", access.revision),
        _ => format!("{key} at version {}", access.revision),
    }
}
