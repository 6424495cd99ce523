//! Lists and gets, and their wrong answers.

use crate::simulation::cluster::Cluster;
use crate::simulation::fault::Fault;
use crate::simulation::recorder::body;
use serde_json::{Value, json};

impl Cluster {
    pub(super) fn list(&mut self, client: usize, late: bool) {
        self.wait_for(client);
        let server = self.dice_of(2);
        let cache = self.servers[server].cache;
        let behind = self.log.iter().any(|c| c.revision > cache);
        let stale = behind && self.strikes(Fault::StaleConsistentList, late && self.settled(cache), client);
        let revision = if stale { cache } else { self.revision };
        let state = self.state_at(revision);
        let mut items = self.items(&state, None);
        if items.len() > 1 {
            if self.strikes(Fault::LostItem, late, client) {
                items.remove(0);
            }
            if let Some(at) = self.outdated(&items).filter(|_| self.strikes(Fault::OldItem, late, client)) {
                let name = items[at]["metadata"]["name"].as_str().unwrap().to_owned();
                let current = &state[&name];
                let old = self
                    .log
                    .iter()
                    .rev()
                    .filter(|c| c.name == name && c.object.uid == current.uid && !c.deleted)
                    .nth(1)
                    .unwrap();
                items[at] = body(&name, &old.object, old.revision);
            }
        }
        let answer = self.answer_list(revision, items);
        self.exchange(client, server, "list", "GET", "/api/v1/namespaces/prod/pods", None, 200, Some(answer), None);
    }

    pub(super) fn outdated(&self, items: &[Value]) -> Option<usize> {
        items.iter().position(|i| {
            let (name, uid) = (i["metadata"]["name"].as_str().unwrap(), i["metadata"]["uid"].as_str().unwrap());
            self.log.iter().filter(|c| c.name == name && c.object.uid == uid && !c.deleted).count() > 1
        })
    }

    pub(super) fn get(&mut self, client: usize, late: bool) {
        self.wait_for(client);
        let server = self.dice_of(2);
        let cache = self.servers[server].cache;
        let old = self.state_at(cache);
        let stale_name = old
            .iter()
            .find(|(name, o)| self.live.get(*name).is_none_or(|l| l.revision != o.revision))
            .map(|(n, _)| n.clone());
        let name = stale_name.clone().unwrap_or_else(|| format!("web-{}", self.dice.roll(12)));
        let stale =
            stale_name.is_some() && self.settled(cache) && self.strikes(Fault::StaleConsistentGet, late, client);
        let found = if stale { old.get(&name) } else { self.live.get(&name) }.cloned();
        let uri = format!("/api/v1/namespaces/prod/pods/{name}");
        match found {
            Some(o) => self.exchange(
                client,
                server,
                "get",
                "GET",
                &uri,
                None,
                200,
                Some(body(&name, &o, o.revision)),
                Some(&name),
            ),
            None => {
                let answer = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
                self.exchange(client, server, "get", "GET", &uri, None, 404, Some(answer), Some(&name));
            }
        }
    }

    pub(super) fn exact_list(&mut self, client: usize, late: bool) {
        if self.log.is_empty() {
            return;
        }
        self.wait_for(client);
        let at = self.dice_of(self.log.len() as u64);
        let asked = self.log[at].revision;
        let old = asked < self.revision;
        let revision = if self.strikes(Fault::WrongSnapshot, late && old, client) { self.revision } else { asked };
        let items = self.items(&self.state_at(revision), None);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?resourceVersion={asked}&resourceVersionMatch=Exact");
        self.exchange(client, 0, "list", "GET", &uri, None, 200, Some(answer), None);
    }

    pub(super) fn minimum_list(&mut self, late: bool) {
        let client = 5;
        self.wait_for(client);
        let (asked, cache) = (self.revision, self.servers[1].cache);
        let below = cache < asked && self.strikes(Fault::BelowMinimum, late, client);
        let revision = if below { cache } else { asked };
        let items = self.items(&self.state_at(revision), None);
        let answer = self.answer_list(revision, items);
        let uri = format!("/api/v1/namespaces/prod/pods?resourceVersion={asked}&resourceVersionMatch=NotOlderThan");
        self.exchange(client, 1, "list", "GET", &uri, None, 200, Some(answer), None);
    }
}
