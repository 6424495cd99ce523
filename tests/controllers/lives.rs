//! Controllers that create, bind, own and delete objects, and leader election.

use crate::controllers::api::{Object, fields};
use crate::controllers::world::{Bug, Controller, World};

fn refers(owner: &str, uid: &str) -> String {
    format!(r#"[{{"kind":"ConfigMap","apiVersion":"v1","name":"{owner}","uid":"{uid}"}}]"#)
}

/// Keeps two children of one owner.
pub struct ReplicaSets {
    uid: String,
}

impl ReplicaSets {
    pub fn new(world: &mut World) -> ReplicaSets {
        let wanted = fields([(".spec.replicas", "2".to_owned())]);
        let owner = world.api.create("user", "replicasets/default/web", wanted, "");
        ReplicaSets { uid: owner.uid }
    }
}

impl Controller for ReplicaSets {
    fn step(&mut self, world: &mut World) {
        let pods = world.api.list("rs", "pods", "");
        let children: Vec<String> = pods.into_keys().filter(|key| key.starts_with("pods/default/web-")).collect();
        if children.len() >= 2 && !world.strikes(Bug::MakesTooMany) {
            if world.dice.one_in(2) {
                let leaver = world.pick(&children).unwrap();
                world.api.delete("user", &leaver, "");
            }
            return;
        }
        let key = format!("pods/default/web-{}", world.number());
        world.api.create("rs", &key, fields([("owner", format!("ReplicaSet/web:{}", self.uid))]), "");
    }
}

/// Creates and deletes nodes under three names, and binds pods to existing ones.
#[derive(Default)]
pub struct Scheduler {
    known: Vec<String>,
}

impl Controller for Scheduler {
    fn step(&mut self, world: &mut World) {
        let nodes = world.alive("nodes/");
        if nodes.len() < 2 || world.dice.one_in(3) {
            let key = format!("nodes/node-{}", 1 + world.dice.roll(3));
            match nodes.contains(&key) {
                true => world.api.delete("cloud", &key, ""),
                false => {
                    world.api.create("kubelet", &key, fields([]), "");
                    self.known.push(key);
                }
            }
            return;
        }
        let key = format!("pods/default/job-{}", world.number());
        let pod = world.api.create("user", &key, fields([("phase", "Pending".to_owned())]), "");
        let there: Vec<String> = world.api.list("scheduler", "nodes", "").into_keys().collect();
        let gone: Vec<String> = self.known.iter().filter(|node| !there.contains(node)).cloned().collect();
        let mut node = world.pick(&there).unwrap();
        if !gone.is_empty() && world.strikes(Bug::BindsToTheDead) {
            node = world.pick(&gone).unwrap();
        }
        let bound = move |pod: &mut Object| {
            pod.fields.insert("node".to_owned(), node.trim_start_matches("nodes/").to_owned());
        };
        world.api.update("scheduler", &key, pod.revision, bound, "");
    }
}

/// Owners and their dependents. The garbage collector reads the owner from the server before it deletes a dependent.
#[derive(Default)]
pub struct Collector {
    /// Dependents with their owners: key, name and uid.
    parts: Vec<(String, String, String)>,
    /// Deleted owners.
    gone: Vec<(String, String)>,
}

impl Controller for Collector {
    fn step(&mut self, world: &mut World) {
        let owners = world.alive("configmaps/default/owner-");
        match world.dice.roll(4) {
            0 => {
                let key = format!("configmaps/default/owner-{}", world.number());
                world.api.create("user", &key, fields([]), "");
            }
            1 => {
                let Some(owner) = world.pick(&owners) else { return };
                let uid = world.api.live[&owner].uid.clone();
                let mut named = (owner.trim_start_matches("configmaps/default/").to_owned(), uid);
                if !self.gone.is_empty() && world.strikes(Bug::NamesADeadOwner) {
                    named = world.pick(&self.gone).unwrap();
                }
                let key = format!("configmaps/default/part-{}", world.number());
                let owner = fields([(".metadata.ownerReferences", refers(&named.0, &named.1))]);
                world.api.create("user", &key, owner, "");
                self.parts.push((key, named.0, named.1));
            }
            2 if owners.len() > 1 => {
                let owner = world.pick(&owners).unwrap();
                let uid = world.api.live[&owner].uid.clone();
                world.api.delete("user", &owner, "");
                self.gone.push((owner.trim_start_matches("configmaps/default/").to_owned(), uid));
            }
            _ => {
                let Some(part) = world.pick(&self.parts) else { return };
                let owner = world.api.get("gc", &format!("configmaps/default/{}", part.1), "");
                let lives = owner.is_some_and(|owner| owner.uid == part.2);
                if !lives || world.strikes(Bug::CollectsTooEarly) {
                    world.api.delete("gc", &part.0, "");
                    self.parts.retain(|other| *other != part);
                }
            }
        }
    }
}

/// Binds each claim to a volume of its own.
pub struct Claims;

impl Controller for Claims {
    fn step(&mut self, world: &mut World) {
        let there = world.alive("persistentvolumeclaims/");
        if there.len() > 4 {
            let leaver = world.pick(&there).unwrap();
            return world.api.delete("user", &leaver, "");
        }
        let bound: Vec<String> =
            there.iter().map(|key| world.api.live[key].field(".spec.volumeName").to_owned()).collect();
        let number = world.number();
        let mut volume = format!("pv-{number}");
        if !bound.is_empty() && world.strikes(Bug::BindsTwice) {
            volume = world.pick(&bound).unwrap();
        }
        let key = format!("persistentvolumeclaims/default/claim-{number}");
        let claim = world.api.create("user", &key, fields([("phase", "Pending".to_owned())]), "");
        let bind = move |claim: &mut Object| {
            claim.fields.insert("phase".to_owned(), "Bound".to_owned());
            claim.fields.insert(".spec.volumeName".to_owned(), volume);
        };
        world.api.update("binder", &key, claim.revision, bind, "");
    }
}

const LOCK: &str = "leases/kube-system/operator";

/// Two replicas, of which the leader assigns ranges to nodes.
pub struct Leaders {
    leader: usize,
    /// Whether the leader has assigned a range, so that ranges are known to be its task.
    acted: bool,
}

impl Leaders {
    pub fn new(world: &mut World) -> Leaders {
        world.api.create("one", LOCK, lock(0), "");
        Leaders { leader: 0, acted: false }
    }

    fn give(world: &mut World, replica: usize) {
        let number = world.number();
        let range = format!(r#"["10.{}.{}.0/24"]"#, number / 250, number % 250);
        let key = format!("ciliumnodes/range-{number}");
        world.api.create(REPLICAS[replica], &key, fields([(".spec.ipam.podCIDRs", range)]), "");
    }
}

const REPLICAS: [&str; 2] = ["one", "two"];

fn lock(replica: usize) -> std::collections::BTreeMap<String, String> {
    let holder = format!("{}-id", REPLICAS[replica]);
    fields([(".spec.holderIdentity", holder), (".spec.leaseDurationSeconds", "15".to_owned())])
}

impl Controller for Leaders {
    fn step(&mut self, world: &mut World) {
        let revision = world.api.live[LOCK].revision;
        match world.dice.roll(5) {
            0 => {
                let other = 1 - self.leader;
                world.api.pause(20);
                let taken = lock(other);
                world.api.update(REPLICAS[other], LOCK, revision, |object| object.fields = taken, "");
                let acted = std::mem::take(&mut self.acted);
                if acted && world.strikes(Bug::LeadsOn) {
                    Leaders::give(world, self.leader);
                }
                self.leader = other;
            }
            1..=2 => {
                world.api.update(REPLICAS[self.leader], LOCK, revision, |_| (), "");
            }
            _ => {
                Leaders::give(world, self.leader);
                self.acted = true;
            }
        }
    }
}

/// A kubelet runs a pod whose name is reused, deletes it, and writes the status of the pod that it runs.
#[derive(Default)]
pub struct Kubelet {
    runs: Option<String>,
    removed: Option<String>,
}

const POD: &str = "pods/default/db-0";

impl Controller for Kubelet {
    fn step(&mut self, world: &mut World) {
        if !world.api.live.contains_key(POD) {
            self.runs = None;
            world.api.create("sts", POD, fields([("phase", "Pending".to_owned())]), "");
            if let Some(uid) = self.removed.clone()
                && world.strikes(Bug::SpeaksForTheDead)
            {
                world.api.status("kubelet", POD, &uid, false);
            }
            return;
        }
        match (self.runs.clone(), world.dice.roll(3)) {
            (Some(uid), 0) => {
                world.api.delete("kubelet", POD, "");
                self.removed = Some(uid);
            }
            (Some(uid), _) => world.api.status("kubelet", POD, &uid, true),
            // Another client may delete a pod that no kubelet runs yet; the kubelet's later request is refused.
            (None, 0) => world.api.delete("user", POD, ""),
            (None, _) => {
                if let Some(uid) = self.removed.clone().filter(|_| world.dice.one_in(3)) {
                    world.api.status("kubelet", POD, &uid, true);
                }
                self.runs = world.api.get("kubelet", POD, "").map(|pod| pod.uid);
            }
        }
    }
}
