//! Controllers that assign addresses: a plugin that takes three writes for a pod, a reconciler that frees leftovers,
//! Services.

use crate::controllers::api::fields;
use crate::controllers::world::{Bug, Controller, World};
use std::collections::BTreeMap;

const POOL: &str = "ippools/kube-system/pool";

/// Assigns an address to one pod at a time, in three writes: the pool, the reservation, the pod.
pub struct Plugin {
    /// Entries of the pool: address to pod.
    entries: BTreeMap<u64, String>,
    /// The assignment in progress: the pod, the address, the number of writes done.
    under_way: Option<(String, u64, u8)>,
}

fn reservation(address: u64) -> String {
    format!("overlappingrangeipreservations/kube-system/10.0.0.{address}")
}

impl Plugin {
    pub fn new(world: &mut World) -> Plugin {
        let plugin = Plugin { entries: BTreeMap::new(), under_way: None };
        world.api.create("user", POOL, fields([(".spec.allocations", plugin.written())]), "");
        plugin
    }

    fn written(&self) -> String {
        let entries: Vec<String> =
            self.entries.iter().map(|(address, pod)| format!(r#""{address}":{{"podref":"default/{pod}"}}"#)).collect();
        format!("{{{}}}", entries.join(","))
    }

    fn shows(world: &World, pod: &str) -> bool {
        world.api.live.get(&format!("pods/default/{pod}")).is_some_and(|pod| pod.fields.len() > 1)
    }
}

impl Controller for Plugin {
    fn step(&mut self, world: &mut World) {
        let Some((pod, address, done)) = self.under_way.take() else {
            let leavers: Vec<String> = world.alive("pods/default/ip-");
            if leavers.len() > 4 {
                let leaver = world.pick(&leavers).unwrap();
                return world.api.delete("sts", &leaver, "");
            }
            let pod = format!("ip-{}", world.number());
            world.api.create("sts", &format!("pods/default/{pod}"), fields([("phase", "Pending".to_owned())]), "");
            self.under_way = Some((pod, 0, 0));
            return;
        };
        self.under_way = match done {
            0 => {
                let pool = world.api.get("cni", POOL, "").unwrap();
                let free = |address: &u64| !self.entries.contains_key(address);
                let address = (1..).find(free).unwrap();
                self.entries.insert(address, pod.clone());
                let written = self.written();
                let change = |object: &mut crate::controllers::api::Object| {
                    object.fields.insert(".spec.allocations".to_owned(), written);
                };
                world.api.update("cni", POOL, pool.revision, change, "");
                Some((pod, address, 1))
            }
            1 if world.api.live.contains_key(&reservation(address)) => {
                // The address is taken after all: another attempt.
                Some((pod, 0, 0))
            }
            1 => {
                let podref = fields([(".spec.podref", format!("default/{pod}"))]);
                world.api.create("cni", &reservation(address), podref, "");
                Some((pod, address, 2))
            }
            _ => {
                let status = format!(r#""[{{\"ips\":[\"10.0.0.{address}\"]}}]""#);
                let name = r#".metadata.annotations["k8s.v1.cni.cncf.io/network-status"]"#.to_owned();
                let change = |object: &mut crate::controllers::api::Object| {
                    object.fields.insert(name, status);
                };
                world.api.patch("cni", &format!("pods/default/{pod}"), change, "");
                None
            }
        };
    }

    fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }
}

/// Frees addresses whose pods are gone. It reads the pool first, so each pod in it existed by then.
#[derive(Default)]
pub struct Reconciler {
    runs: u64,
    /// The run in progress: the version of the pool, and its entries.
    seen: Option<(u64, BTreeMap<u64, String>)>,
}

impl Reconciler {
    pub fn step(&mut self, world: &mut World, plugin: &mut Plugin) {
        let Some((base, entries)) = self.seen.take() else {
            self.runs += 1;
            let pool = world.api.get("reconciler", POOL, &self.run()).unwrap();
            self.seen = Some((pool.revision, plugin.entries.clone()));
            return;
        };
        let run = self.run();
        let pods = world.api.list("reconciler", "pods", &run);
        let gone = |pod: &String| !pods.contains_key(&format!("pods/default/{pod}"));
        let mut left: Vec<u64> = entries.iter().filter(|(_, pod)| gone(pod)).map(|(address, _)| *address).collect();
        let under_way = plugin.under_way.clone().filter(|(pod, address, done)| {
            *done > 0 && entries.get(address) == Some(pod) && !gone(pod) && !Plugin::shows(world, pod)
        });
        let unchanged = world.api.live[POOL].revision == base;
        if let Some((_, address, _)) = under_way
            && unchanged
            && world.strikes(Bug::FreesInBetween)
        {
            left.push(address);
        }
        if left.is_empty() {
            return;
        }
        let mut kept = entries;
        kept.retain(|address, _| !left.contains(address));
        let written = Plugin { entries: kept.clone(), under_way: None }.written();
        let change = |object: &mut crate::controllers::api::Object| {
            object.fields.insert(".spec.allocations".to_owned(), written);
        };
        if world.api.update("reconciler", POOL, base, change, &run) {
            plugin.entries = kept;
            for key in left.into_iter().map(reservation) {
                if world.api.live.contains_key(&key) {
                    world.api.delete("reconciler", &key, &run);
                }
            }
        }
    }

    fn run(&self) -> String {
        format!(" for run-{}", self.runs)
    }
}

/// Services are created and deleted, each with an address of its own.
pub struct Services;

impl Controller for Services {
    fn step(&mut self, world: &mut World) {
        let there = world.alive("services/");
        if there.len() > 4 || (!there.is_empty() && world.dice.one_in(4)) {
            let leaver = world.pick(&there).unwrap();
            return world.api.delete("user", &leaver, "");
        }
        let taken: Vec<String> =
            there.iter().map(|key| world.api.live[key].field(".spec.clusterIPs").to_owned()).collect();
        let free = (1..).map(|host| format!(r#"["10.96.0.{host}"]"#)).find(|address| !taken.contains(address));
        let mut address = free.unwrap();
        if !taken.is_empty() && world.strikes(Bug::TakesAnAddress) {
            address = world.pick(&taken).unwrap();
        }
        let key = format!("services/default/svc-{}", world.number());
        world.api.create("user", &key, fields([(".spec.clusterIPs", address)]), "");
    }
}
