//! What a cycle is called, by the kinds of order that it takes.
//!
//! The names are those of Adya ("Weak consistency", MIT 1999, section 5) as Elle uses them (Kingsbury and Alvaro, VLDB 2020),
//! with a suffix for what must be assumed beside the dependencies: that a process does things one after the other
//! (`-session`), or that what was over before something else began came first (`-realtime`).
//!
//! | cycle of | name | excluded by |
//! | --- | --- | --- |
//! | versions only | G0 | read uncommitted |
//! | versions and reads | G1c | read committed |
//! | one anti-dependency and else those | G-single | consistent view |
//! | several anti-dependencies | G2 | serializability |
//! | the same with `-session` | | the same, strong session |
//! | the same with `-realtime` | | the same, strict |

use super::component::Components;
use super::cycle::{Cycle, Found, Search};
use super::edge::{EdgeKind, EdgeKinds};
use super::sparse::Graph;
use std::fmt;

/// Which dependencies a cycle takes, the strongest anomaly first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependencies {
    /// None: the evidence about order contradicts itself.
    None,
    /// Only who wrote a key before whom.
    G0,
    /// Also who saw what.
    G1c,
    /// One replaced what another saw.
    GSingle,
    /// Several did.
    G2,
}

/// What a cycle takes beside dependencies, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assumed {
    /// Nothing.
    Nothing,
    /// What a process does comes one after the other, and after what it answers to.
    Session,
    /// Real time.
    RealTime,
}

/// The class of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anomaly {
    /// Which dependencies it takes.
    pub dependencies: Dependencies,
    /// What it takes beside them.
    pub assumed: Assumed,
}

impl Dependencies {
    const ALL: [Dependencies; 5] =
        [Dependencies::None, Dependencies::G0, Dependencies::G1c, Dependencies::GSingle, Dependencies::G2];

    /// The kinds that its cycles are made of; the one anti-dependency of a G-single aside.
    fn kinds(self) -> EdgeKinds {
        match self {
            Dependencies::None => EdgeKinds::NONE,
            Dependencies::G0 => EdgeKinds::of(&[EdgeKind::Version]),
            Dependencies::G1c | Dependencies::GSingle => EdgeKinds::of(&[EdgeKind::Version, EdgeKind::ReadsFrom]),
            Dependencies::G2 => EdgeKinds::of(&[EdgeKind::Version, EdgeKind::ReadsFrom, EdgeKind::AntiDependency]),
        }
    }
}

impl Assumed {
    const ALL: [Assumed; 3] = [Assumed::Nothing, Assumed::Session, Assumed::RealTime];

    fn kinds(self) -> EdgeKinds {
        let session = EdgeKinds::of(&[EdgeKind::Message, EdgeKind::Program, EdgeKind::Session]);
        match self {
            Assumed::Nothing => EdgeKinds::NONE,
            Assumed::Session => session,
            Assumed::RealTime => session.and(EdgeKinds::from(EdgeKind::RealTime)),
        }
    }
}

impl Anomaly {
    /// The class of a cycle.
    pub fn of(cycle: &Cycle) -> Anomaly {
        let kinds = cycle.steps.iter().fold(EdgeKinds::NONE, |all, step| all.and(step.kind.into()));
        let dependencies = match cycle.count(EdgeKind::AntiDependency) {
            0 if kinds.has(EdgeKind::ReadsFrom) => Dependencies::G1c,
            0 if kinds.has(EdgeKind::Version) => Dependencies::G0,
            0 => Dependencies::None,
            1 => Dependencies::GSingle,
            _ => Dependencies::G2,
        };
        let fits = |assumed: &Assumed| {
            kinds.within(Assumed::RealTime.kinds()).within(assumed.kinds()) == kinds.within(Assumed::RealTime.kinds())
        };
        let assumed = Assumed::ALL.into_iter().find(fits).unwrap_or(Assumed::RealTime);
        Anomaly { dependencies, assumed }
    }

    /// Whether this one is as bad as the other or worse, so that the other says nothing more.
    pub fn implies(self, other: Anomaly) -> bool {
        self.dependencies <= other.dependencies && self.assumed <= other.assumed
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.dependencies {
            Dependencies::None => "contradiction",
            Dependencies::G0 => "G0",
            Dependencies::G1c => "G1c",
            Dependencies::GSingle => "G-single",
            Dependencies::G2 => "G2",
        })?;
        f.write_str(match self.assumed {
            Assumed::Nothing => "",
            Assumed::Session => "-session",
            Assumed::RealTime => "-realtime",
        })
    }
}

/// The anomalies of a graph.
#[derive(Clone, Debug, Default)]
pub struct Anomalies {
    /// For each strongly connected component the worst anomalies (none implies another), each with a short cycle.
    pub cycles: Vec<(Anomaly, Cycle)>,
    /// Whether the budget was spent: a cycle may be longer than necessary, or a G2 may hide a G-single.
    pub is_cut: bool,
}

impl Anomalies {
    /// Finds them, looking at about `budget` edges beyond one pass over the graph for each class. That there is a cycle is never
    /// missed; its class is the worst one unless [`Anomalies::is_cut`].
    pub fn find(graph: &Graph, budget: u64) -> Anomalies {
        let mut found = Anomalies::default();
        let mut places = vec![u32::MAX; graph.nodes() as usize];
        for nodes in Components::find(graph, EdgeKinds::ALL).cyclic() {
            let part = graph.part(&nodes, &mut places);
            let mut search = Search::new(&part, budget);
            let mut worst = Dependencies::ALL.len();
            for assumed in Assumed::ALL {
                for (rank, dependencies) in Dependencies::ALL.into_iter().enumerate().take(worst) {
                    let kinds = dependencies.kinds().and(assumed.kinds());
                    let cycle = match dependencies {
                        Dependencies::GSingle => search.with_one_anti_dependency(kinds),
                        _ => search.shortest(kinds).map_or(Found::None, Found::One),
                    };
                    match cycle {
                        Found::None => {}
                        Found::Undecided => found.is_cut = true,
                        Found::One(mut cycle) => {
                            for step in &mut cycle.steps {
                                (step.from, step.to) = (nodes[step.from as usize], nodes[step.to as usize]);
                            }
                            found.cycles.push((Anomaly::of(&cycle), cycle));
                            worst = rank;
                            break;
                        }
                    }
                }
            }
            found.is_cut |= search.is_spent();
        }
        found
    }
}
