//! Controllers that change objects they have read. They share objects and own one field each. One compares and
//! decides again after a conflict, one may resend its old content, one may omit the version, one patches only its own
//! field.

use crate::simulation::cluster::Cluster;
use crate::simulation::fault::Fault;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PATH: &str = "/api/v1/namespaces/prod/configmaps";

#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) revision: u64,
    pub(super) data: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Compares,
    Launders,
    Replaces,
    Patches,
}

pub(super) struct Controller {
    client: usize,
    style: Style,
    /// The field that it owns.
    field: &'static str,
    /// The object that it has read and not written yet.
    held: Option<(String, Setting)>,
}

impl Controller {
    pub(super) fn all(first_client: usize) -> Vec<Controller> {
        let styles = [Style::Compares, Style::Launders, Style::Replaces, Style::Patches];
        let fields = ["image", "replicas", "paused", "note"];
        let controller = |(at, (style, field))| Controller { client: first_client + at, style, field, held: None };
        styles.into_iter().zip(fields).enumerate().map(controller).collect()
    }
}

impl Cluster {
    /// Creates the shared objects. Their creator does not change them later.
    pub(super) fn create_settings(&mut self) {
        for name in ["conf-0", "conf-1"] {
            let data = self.controllers.iter().map(|c| (c.field, 0)).collect();
            self.revision += 1;
            let setting = Setting { revision: self.revision, data };
            let mut request = shown(name, &setting);
            for field in ["uid", "resourceVersion"] {
                request["metadata"].as_object_mut().unwrap().remove(field);
            }
            self.exchange(0, 0, "create", "POST", PATH, Some(request), 201, Some(shown(name, &setting)), Some(name));
            self.settings.insert(name.to_owned(), setting);
        }
    }

    /// One controller reads, or writes from what it has read.
    pub(super) fn control(&mut self, late: bool) {
        let at = self.dice_of(4);
        let client = self.controllers[at].client;
        self.wait_for(client);
        match self.controllers[at].held.take() {
            None => {
                let name = format!("conf-{}", self.dice.roll(2));
                let setting = self.read(client, &name);
                self.controllers[at].held = Some((name, setting));
            }
            Some((name, held)) => self.follow(at, &name, held, late),
        }
    }

    fn read(&mut self, client: usize, name: &str) -> Setting {
        self.wait_for(client);
        let (server, setting) = (self.dice_of(2), self.settings[name].clone());
        let answer = Some(shown(name, &setting));
        self.exchange(client, server, "get", "GET", &format!("{PATH}/{name}"), None, 200, answer, Some(name));
        setting
    }

    fn follow(&mut self, at: usize, name: &str, held: Setting, late: bool) {
        let (client, style, field) =
            (self.controllers[at].client, self.controllers[at].style, self.controllers[at].field);
        let wanted = held.data[field] + 1;
        let with_own = |setting: &Setting| Setting {
            data: setting.data.iter().map(|(f, v)| (*f, if *f == field { wanted } else { *v })).collect(),
            ..*setting
        };
        let current = self.settings[name].clone();
        // Whether another controller changed a field in between.
        let others = held.data.iter().any(|(f, v)| *f != field && current.data[f] != *v);
        let mine = with_own(&held);
        if style == Style::Patches {
            let patch = json!({"data": {field: wanted.to_string()}});
            return self.put(client, "patch", name, patch, with_own(&current));
        }
        if style == Style::Replaces && others && self.strikes(Fault::BlindReplace, late, client) {
            let mut body = shown(name, &mine);
            for field in ["uid", "resourceVersion"] {
                body["metadata"].as_object_mut().unwrap().remove(field);
            }
            return self.put(client, "update", name, body, mine);
        }
        if current.revision == held.revision {
            return self.put(client, "update", name, shown(name, &mine), mine);
        }
        let refused =
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409});
        let uri = format!("{PATH}/{name}");
        self.exchange(client, 0, "update", "PUT", &uri, Some(shown(name, &mine)), 409, Some(refused), Some(name));
        if self.dice.one_in(3) {
            // It gives up and starts over later.
            return;
        }
        let current = self.read(client, name);
        let launders = style == Style::Launders && others && self.strikes(Fault::LaunderedConflict, late, client);
        let data = if launders { mine.data } else { with_own(&current).data };
        let again = Setting { data, ..current };
        self.wait_for(client);
        self.put(client, "update", name, shown(name, &again), again);
    }

    /// Commits a write.
    fn put(&mut self, client: usize, verb: &str, name: &str, request: Value, setting: Setting) {
        self.revision += 1 + self.dice.roll(3);
        let setting = Setting { revision: self.revision, ..setting };
        let (method, server) = (if verb == "patch" { "PATCH" } else { "PUT" }, self.dice_of(2));
        let (uri, answer) = (format!("{PATH}/{name}"), shown(name, &setting));
        self.exchange(client, server, verb, method, &uri, Some(request), 200, Some(answer), Some(name));
        self.settings.insert(name.to_owned(), setting);
    }
}

fn shown(name: &str, setting: &Setting) -> Value {
    let data: BTreeMap<&str, String> = setting.data.iter().map(|(field, value)| (*field, value.to_string())).collect();
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "prod", "uid": format!("uid-{name}"),
        "resourceVersion": setting.revision.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": data})
}
