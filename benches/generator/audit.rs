//! An audit log: 30 % lease updates, 28 % pod writes, 10 % configmap updates, 14 % gets, 1 % lists of 20 to 60 pods, 17 %
//! watches at level Metadata. Every ten seconds the API server renews its identity lease, as real ones do.

use super::fields::{Bodies, Fields};
use super::{Dice, fresh_uuid, stamp, uuid};
use std::fmt::Write as _;

const NODES: usize = 1_000;
const DEPLOYERS: usize = 20;
const CONFIGMAPS: usize = 300;
/// Pods of a namespace.
const NAMESPACE: usize = 60;
/// Microseconds between two renewals of the identity lease (`--identity-lease-renew-interval-seconds` is 10).
const RENEWAL: u64 = 10_000_000;

struct Object {
    namespace: usize,
    uid: String,
    revision: u64,
}

struct Watch {
    since: u64,
    revision: u64,
}

/// A cluster with an API server that writes an audit log.
pub struct AuditLog {
    dice: Dice,
    now: u64,
    revision: u64,
    /// The identity lease of the API server, and the time of its next renewal.
    identity: Object,
    renewal: u64,
    leases: Vec<Object>,
    pods: Vec<Object>,
    configmaps: Vec<Object>,
    watches: Vec<Watch>,
    fields: Fields,
    /// Events written so far.
    pub events: u64,
    /// Listed items written so far.
    pub items: u64,
}

/// The client of a request.
enum Sender {
    ApiServer,
    Kubelet(usize),
    Deployer(usize),
}

struct Request<'a> {
    verb: &'a str,
    sender: Sender,
    uri: String,
    reference: String,
    code: u16,
    request: Option<String>,
    response: Option<String>,
}

impl AuditLog {
    /// A cluster at its start.
    pub fn new(seed: u64, bodies: Bodies) -> AuditLog {
        let mut dice = Dice::new(seed);
        let mut revision = 1_000;
        let mut objects = |count: usize, namespace: usize| -> Vec<Object> {
            let object = |n: usize| {
                revision += 1;
                Object { namespace: n / namespace, uid: fresh_uuid(&mut dice), revision }
            };
            (0..count).map(object).collect()
        };
        let mut leases = objects(NODES + 1, usize::MAX);
        let identity = leases.pop().expect("it was made");
        let pods = objects(50 * NAMESPACE, NAMESPACE);
        let configmaps = objects(CONFIGMAPS, 10);
        let watches = (0..NODES).map(|_| Watch { since: 0, revision }).collect();
        let fields = Fields::new(bodies);
        let now = 1_000_000;
        AuditLog {
            dice,
            now,
            revision,
            identity,
            renewal: now,
            leases,
            pods,
            configmaps,
            watches,
            fields,
            events: 0,
            items: 0,
        }
    }

    /// A log of at least `bytes` bytes, with the cluster at its end.
    pub fn of_bytes(seed: u64, bodies: Bodies, bytes: usize) -> (Vec<u8>, AuditLog) {
        let mut log = AuditLog::new(seed, bodies);
        let mut text = String::with_capacity(bytes + (1 << 20));
        while text.len() < bytes {
            log.event(&mut text);
        }
        (text.into_bytes(), log)
    }

    /// Appends the next event.
    pub fn event(&mut self, out: &mut String) {
        self.now += 200 + self.dice.roll(1_500);
        self.events += 1;
        if self.now >= self.renewal {
            self.renewal += RENEWAL;
            let revision = self.commit();
            let before = std::mem::replace(&mut self.identity.revision, revision);
            let uid = self.identity.uid.clone();
            let name = "apiserver-kx6vxdmtfd54eztzgjyqy2m2ge";
            return self.renew(out, Sender::ApiServer, ("kube-system", name), &uid, (before, revision));
        }
        match self.dice.roll(100) {
            0..30 => self.lease(out),
            30..58 => self.pod(out),
            58..68 => self.configmap(out),
            68..82 => self.get(out),
            82 => self.list(out),
            _ => self.watch(out),
        }
    }

    fn commit(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn lease(&mut self, out: &mut String) {
        let node = self.dice.index(NODES);
        let revision = self.commit();
        let before = std::mem::replace(&mut self.leases[node].revision, revision);
        let (name, uid) = (format!("node-{node}"), self.leases[node].uid.clone());
        self.renew(out, Sender::Kubelet(node), ("kube-node-lease", &name), &uid, (before, revision));
    }

    fn renew(
        &mut self,
        out: &mut String,
        sender: Sender,
        (namespace, name): (&str, &str),
        uid: &str,
        (before, revision): (u64, u64),
    ) {
        let body = |revision: u64| {
            format!(
                r#"{{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{revision}","creationTimestamp":"2026-01-09T08:00:00Z"{}}},"spec":{{"holderIdentity":"{name}","leaseDurationSeconds":40,"renewTime":"2026-02-04T10:00:00.000000Z"}}}}"#,
                self.fields.managed
            )
        };
        let request = Request {
            verb: "update",
            sender,
            uri: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}?timeout=10s"),
            reference: format!(
                r#""resource":"leases","namespace":"{namespace}","name":"{name}","uid":"{uid}","apiGroup":"coordination.k8s.io","apiVersion":"v1","resourceVersion":"{before}""#
            ),
            code: 200,
            request: Some(body(before)),
            response: Some(body(revision)),
        };
        self.write(out, request);
    }

    fn pod_body(&self, pod: usize, revision: Option<u64>) -> String {
        let Object { namespace, uid, .. } = &self.pods[pod];
        let identity = revision.map(|revision| {
            format!(r#","uid":"{uid}","resourceVersion":"{revision}","creationTimestamp":"2026-02-04T08:00:00Z""#)
        });
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{pod:07}","namespace":"team-{namespace}"{},"labels":{{"app":"web","team":"{}"}}{}}},"spec":{{"nodeName":"node-{}"{}}},"status":{{"phase":"Running"{}}}}}"#,
            identity.unwrap_or_default(),
            namespace % 40,
            self.fields.metadata,
            pod % NODES,
            self.fields.spec,
            self.fields.status
        )
    }

    fn pod_reference(&self, pod: usize, more: &str) -> String {
        let namespace = self.pods[pod].namespace;
        format!(r#""resource":"pods","namespace":"team-{namespace}","name":"web-{pod:07}","apiVersion":"v1"{more}"#)
    }

    fn pod(&mut self, out: &mut String) {
        let revision = self.commit();
        let kind = self.dice.roll(28);
        let pod = if kind < 4 {
            let uid = fresh_uuid(&mut self.dice);
            self.pods.push(Object { namespace: self.pods.len() / NAMESPACE, uid, revision });
            self.pods.len() - 1
        } else {
            self.dice.index(self.pods.len())
        };
        let before = std::mem::replace(&mut self.pods[pod].revision, revision);
        let Object { namespace, uid, .. } = &self.pods[pod];
        let path = format!("/api/v1/namespaces/team-{namespace}/pods");
        let deployer = Sender::Deployer(namespace % DEPLOYERS);
        let (verb, sender, uri, reference, code, request) = match kind {
            0..4 => (
                "create",
                deployer,
                format!("{path}?fieldManager=deployer\\u0026fieldValidation=Strict"),
                self.pod_reference(pod, ""),
                201,
                self.pod_body(pod, None),
            ),
            4..14 => (
                "update",
                deployer,
                format!("{path}/web-{pod:07}"),
                self.pod_reference(pod, &format!(r#","uid":"{uid}","resourceVersion":"{before}""#)),
                200,
                self.pod_body(pod, Some(before)),
            ),
            _ => (
                "patch",
                Sender::Kubelet(pod % NODES),
                format!("{path}/web-{pod:07}/status"),
                self.pod_reference(pod, r#","subresource":"status""#),
                200,
                format!(r#"{{"metadata":{{"uid":"{uid}"}},"status":{{"phase":"Running"{}}}}}"#, self.fields.status),
            ),
        };
        let response = Some(self.pod_body(pod, Some(revision)));
        self.write(out, Request { verb, sender, uri, reference, code, request: Some(request), response });
    }

    fn configmap(&mut self, out: &mut String) {
        let at = self.dice.index(CONFIGMAPS);
        let revision = self.commit();
        let before = std::mem::replace(&mut self.configmaps[at].revision, revision);
        let Object { namespace, uid, .. } = &self.configmaps[at];
        let body = |revision: u64| {
            format!(
                r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"settings-{at}","namespace":"team-{namespace}","uid":"{uid}","resourceVersion":"{revision}","creationTimestamp":"2026-01-09T08:00:00Z"{}}},"data":{{"settings.yaml":"{}"}}}}"#,
                self.fields.managed, self.fields.data
            )
        };
        let request = Request {
            verb: "update",
            sender: Sender::Deployer(at % DEPLOYERS),
            uri: format!("/api/v1/namespaces/team-{namespace}/configmaps/settings-{at}"),
            reference: format!(
                r#""resource":"configmaps","namespace":"team-{namespace}","name":"settings-{at}","uid":"{uid}","apiVersion":"v1","resourceVersion":"{before}""#
            ),
            code: 200,
            request: Some(body(before)),
            response: Some(body(revision)),
        };
        self.write(out, request);
    }

    fn get(&mut self, out: &mut String) {
        let pod = self.dice.index(self.pods.len());
        let request = Request {
            verb: "get",
            sender: Sender::Kubelet(pod % NODES),
            uri: format!("/api/v1/namespaces/team-{}/pods/web-{pod:07}", self.pods[pod].namespace),
            reference: self.pod_reference(pod, ""),
            code: 200,
            request: None,
            response: Some(self.pod_body(pod, Some(self.pods[pod].revision))),
        };
        self.write(out, request);
    }

    fn list(&mut self, out: &mut String) {
        // The last namespace is still being filled. A page holds the first objects in name order.
        let namespace = self.dice.index(self.pods.len() / NAMESPACE);
        let limit = 20 + self.dice.index(NAMESPACE - 19);
        let pods = namespace * NAMESPACE..namespace * NAMESPACE + limit;
        self.items += limit as u64;
        let items: Vec<String> = pods.map(|pod| self.pod_body(pod, Some(self.pods[pod].revision))).collect();
        let more = if limit < NAMESPACE { r#","continue":"eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ""# } else { "" };
        let request = Request {
            verb: "list",
            sender: Sender::Deployer(namespace % DEPLOYERS),
            uri: format!("/api/v1/namespaces/team-{namespace}/pods?limit={limit}"),
            reference: format!(r#""resource":"pods","namespace":"team-{namespace}","apiVersion":"v1""#),
            code: 200,
            request: None,
            response: Some(format!(
                r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"{more}}},"items":[{}]}}"#,
                self.revision,
                items.join(",")
            )),
        };
        self.write(out, request);
    }

    /// Ends the watch of a kubelet and starts the next one at the current revision.
    fn watch(&mut self, out: &mut String) {
        let node = self.dice.index(NODES);
        let Watch { since, revision } = self.watches[node];
        // The node may have begun this watch in the same millisecond.
        let until = self.now.max(since);
        self.watches[node] = Watch { since: until + 1_000, revision: self.revision };
        let request = Request {
            verb: "watch",
            sender: Sender::Kubelet(node),
            uri: format!(
                "/api/v1/pods?allowWatchBookmarks=true\\u0026fieldSelector=spec.nodeName%3Dnode-{node}\\u0026resourceVersion={revision}\\u0026timeoutSeconds=381\\u0026watch=true"
            ),
            reference: r#""resource":"pods","apiVersion":"v1""#.to_owned(),
            code: 200,
            request: None,
            response: None,
        };
        self.write_between(out, request, since, until);
    }

    fn write(&mut self, out: &mut String, request: Request<'_>) {
        let until = self.now + 700 + self.dice.roll(6_000);
        self.write_between(out, request, self.now, until);
    }

    fn write_between(&mut self, out: &mut String, request: Request<'_>, from: u64, until: u64) {
        let level = if request.response.is_some() { "RequestResponse" } else { "Metadata" };
        let _ = write!(out, r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"{level}","auditID":""#);
        uuid(out, &mut self.dice);
        let Request { verb, uri, reference, code, .. } = &request;
        let _ =
            write!(out, r#"","stage":"ResponseComplete","requestURI":"{uri}","verb":"{verb}","user":{{"username":""#);
        let _ = match request.sender {
            Sender::ApiServer => write!(
                out,
                r#"system:apiserver","uid":"5d0e9f0c-7d14-410a-997b-000000000001","groups":["system:masters"]}},"sourceIPs":["::1"],"userAgent":"kube-apiserver/v1.34.1 (linux/amd64) kubernetes/93248f9""#
            ),
            Sender::Kubelet(node) => write!(
                out,
                r#"system:node:node-{node}","groups":["system:nodes","system:authenticated"]}},"sourceIPs":["10.0.{}.{}"],"userAgent":"kubelet/v1.34.1 (linux/amd64) kubernetes/93248f9""#,
                node / 250,
                node % 250
            ),
            Sender::Deployer(n) => write!(
                out,
                r#"system:serviceaccount:team-{n}:deployer","uid":"0a0e9f0c-7d14-410a-997b-0000000000{n:02}","groups":["system:serviceaccounts","system:authenticated"],"extra":{{"authentication.kubernetes.io/pod-name":["deployer-{n}"],"authentication.kubernetes.io/pod-uid":["1b0e9f0c-7d14-410a-997b-0000000000{n:02}"]}}}},"sourceIPs":["10.1.0.{n}"],"userAgent":"deployer/v2.1.0 (linux/amd64)""#
            ),
        };
        let _ = write!(out, r#","objectRef":{{{reference}}},"responseStatus":{{"metadata":{{}},"code":{code}}}"#);
        for (name, body) in [("requestObject", &request.request), ("responseObject", &request.response)] {
            if let Some(body) = body {
                let _ = write!(out, r#","{name}":{body}"#);
            }
        }
        out.push_str(r#","requestReceivedTimestamp":""#);
        stamp(out, from);
        out.push_str(r#"","stageTimestamp":""#);
        stamp(out, until);
        out.push_str(r#"","annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"edit\""}}"#);
        out.push('\n');
    }
}
