//! Classes of cycles, by the kinds of edges that a cycle has.
//!
//! The names are those of Adya ("Weak consistency", MIT 1999, section 5) as Elle uses them (Kingsbury and Alvaro, VLDB 2020). A
//! suffix names what must be assumed besides dependencies: that a process acts sequentially (`-session`), or that a unit which
//! ended before another began comes first (`-realtime`).
//!
//! | cycle of | name | excluded by |
//! | --- | --- | --- |
//! | versions only | G0 | read uncommitted |
//! | versions and reads | G1c | read committed |
//! | one anti-dependency, else versions and reads | G-single | consistent view |
//! | several anti-dependencies | G2 | serializability |
//! | the same with `-session` | | the same, strong session |
//! | the same with `-realtime` | | the same, strict |

use super::component::Components;
use super::cycle::{Cycle, Found, Search};
use super::edge::{EdgeKind, EdgeKinds};
use super::sparse::Graph;
use std::fmt;

/// The dependencies in a cycle, the strongest anomaly first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependencies {
    /// None: the evidence about order contradicts itself.
    None,
    /// Only the order of writes to a key.
    G0,
    /// Also reads of written versions.
    G1c,
    /// One anti-dependency: a unit replaced a version that another saw.
    GSingle,
    /// Several anti-dependencies.
    G2,
}

/// The assumptions of a cycle besides dependencies, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assumed {
    /// Nothing.
    Nothing,
    /// A process acts sequentially, and a request follows the answers that it refers to.
    Session,
    /// A unit that ended before another began comes first.
    RealTime,
}

/// The class of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anomaly {
    /// The dependencies in the cycle.
    pub dependencies: Dependencies,
    /// The assumptions besides them.
    pub assumed: Assumed,
}

impl Dependencies {
    const ALL: [Dependencies; 5] =
        [Dependencies::None, Dependencies::G0, Dependencies::G1c, Dependencies::GSingle, Dependencies::G2];

    /// The edge kinds of its cycles, without the one anti-dependency of a G-single.
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
    /// Classifies a cycle.
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

    /// Whether this class is at least as strong as the other, so that the other adds no information.
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

/// The anomalies of a graph, by strongly connected component.
#[derive(Clone, Debug, Default)]
pub struct Anomalies {
    /// For each strongly connected component its worst anomalies (none implies another), each with a short cycle.
    pub cycles: Vec<(Anomaly, Cycle)>,
    /// Whether the budget was spent. A cycle may then be longer than necessary, or a G2 may hide a G-single.
    pub is_cut: bool,
}

impl Anomalies {
    /// Finds the anomalies. `budget` limits the visited edges beyond one pass over the graph per class. A cycle is never missed,
    /// but its class is certainly the worst one only without [`Anomalies::is_cut`].
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
