//! Controllers over one API, run in random order. Each can be given one bug.

use crate::controllers::addresses::{Plugin, Reconciler, Services};
use crate::controllers::api::{Api, fields};
use crate::controllers::lives::{Claims, Collector, Kubelet, Leaders, ReplicaSets, Scheduler};
use crate::support::dice::Dice;

/// A bug of a controller, which occurs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The reconciler frees an address whose pod does not show it yet.
    FreesInBetween,
    /// A Service takes an address that another one has.
    TakesAnAddress,
    /// A second claim is bound to a volume.
    BindsTwice,
    /// A pod is bound to a node that is gone.
    BindsToTheDead,
    /// An object is given an owner that is gone.
    NamesADeadOwner,
    /// The garbage collector removes what has a living owner.
    CollectsTooEarly,
    /// One child more than its owner wants.
    MakesTooMany,
    /// A former leader continues to write.
    LeadsOn,
    /// A kubelet reports on a pod that it has removed.
    SpeaksForTheDead,
}

impl Bug {
    pub const ALL: [Bug; 9] = [
        Bug::FreesInBetween,
        Bug::TakesAnAddress,
        Bug::BindsTwice,
        Bug::BindsToTheDead,
        Bug::NamesADeadOwner,
        Bug::CollectsTooEarly,
        Bug::MakesTooMany,
        Bug::LeadsOn,
        Bug::SpeaksForTheDead,
    ];

    /// Rules of which one must report the bug, and rules that may report its consequences.
    pub fn rules(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Bug::FreesInBetween => (&["intermediate-state"], &["double-allocation"]),
            Bug::TakesAnAddress => (&["double-allocation"], &[]),
            Bug::BindsTwice => (&["double-bind"], &[]),
            Bug::BindsToTheDead => (&["dead-binding"], &[]),
            Bug::NamesADeadOwner => (&["dangling-reference"], &[]),
            Bug::CollectsTooEarly => (&["premature-gc"], &[]),
            Bug::MakesTooMany => (&["duplicate-child"], &[]),
            Bug::LeadsOn => (&["unfenced-leader"], &[]),
            Bug::SpeaksForTheDead => (&["ghost-actor"], &["name-reuse"]),
        }
    }
}

/// The controllers and their users.
const CLIENTS: [(&str, &str); 13] = [
    ("user", "alice"),
    ("sts", "system:serviceaccount:kube-system:statefulset-controller"),
    ("cni", "system:serviceaccount:kube-system:whereabouts"),
    ("reconciler", "system:serviceaccount:kube-system:ip-reconciler"),
    ("rs", "system:serviceaccount:kube-system:replicaset-controller"),
    ("scheduler", "system:kube-scheduler"),
    ("cloud", "system:serviceaccount:kube-system:cloud-node-lifecycle"),
    ("gc", "system:serviceaccount:kube-system:generic-garbage-collector"),
    ("binder", "system:serviceaccount:kube-system:persistent-volume-binder"),
    ("kubelet", "system:node:node-1"),
    ("one", "system:serviceaccount:kube-system:cilium-operator"),
    ("two", "system:serviceaccount:kube-system:cilium-operator"),
    ("auditor", "bob"),
];

const RESOURCES: [&str; 8] =
    ["pods", "services", "nodes", "configmaps", "replicasets", "persistentvolumeclaims", "ciliumnodes", "ippools"];

pub struct World {
    pub api: Api,
    pub dice: Dice,
    bug: Option<Bug>,
    late: bool,
    /// Whether the bug has occurred.
    pub struck: bool,
    numbers: u64,
}

pub trait Controller {
    fn step(&mut self, world: &mut World);
    /// Whether a task is in progress that must be completed.
    fn is_busy(&self) -> bool {
        false
    }
}

impl World {
    /// Whether the bug occurs now.
    pub fn strikes(&mut self, bug: Bug) -> bool {
        let strikes = self.bug == Some(bug) && self.late && !self.struck;
        self.struck |= strikes;
        strikes
    }

    /// A number that no other name has.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// One of these, at random.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.dice.roll(from.len() as u64) as usize].clone())
    }

    /// Live keys with this prefix.
    pub fn alive(&self, prefix: &str) -> Vec<String> {
        self.api.live.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }
}

/// Runs all controllers. Returns the sketch, and whether the bug occurred.
pub fn run(seed: u64, bug: Option<Bug>, steps: u64) -> (String, bool) {
    let mut world =
        World { api: Api::new(&CLIENTS), dice: Dice::new(seed), bug, late: false, struck: false, numbers: 0 };
    let mut plugin = Plugin::new(&mut world);
    let mut reconciler = Reconciler::default();
    let mut others: Vec<Box<dyn Controller>> = vec![
        Box::new(Services),
        Box::new(ReplicaSets::new(&mut world)),
        Box::new(Scheduler::default()),
        Box::new(Collector::default()),
        Box::new(Claims),
        Box::new(Leaders::new(&mut world)),
        Box::new(Kubelet::default()),
    ];
    for step in 0..steps {
        world.late = step > steps / 3;
        match world.dice.roll(12) {
            0..=2 => plugin.step(&mut world),
            3..=4 => reconciler.step(&mut world, &mut plugin),
            other => others[other as usize - 5].step(&mut world),
        }
    }
    world.late = false;
    while plugin.is_busy() {
        plugin.step(&mut world);
    }
    // Built-in resources may have an etcd each, so only later requests of the same resource bound earlier ones.
    for kind in ["pods/default", "services/default", "nodes", "configmaps/default", "replicasets/default"] {
        world.api.create("user", &format!("{kind}/last"), fields([]), "");
    }
    // A state that no client reads cannot be judged.
    for resource in RESOURCES {
        world.api.list("auditor", resource, "");
    }
    let witness = bug.is_some() || world.dice.one_in(2);
    let audit = bug.is_none() && world.dice.one_in(3);
    let sketch = world.api.sketch(witness);
    (if audit { format!("recorded audit\n{sketch}") } else { sketch }, world.struck)
}
