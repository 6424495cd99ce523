//! One call of Kubernetes, for audit logs and captures.

use super::{Evidence, at};

/// A call and its answer.
#[derive(Clone)]
pub struct Call {
    /// Audit id; empty: a generated one.
    pub id: String,
    pub stage: &'static str,
    pub user: String,
    pub agent: String,
    pub address: String,
    pub verb: &'static str,
    pub group: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub subresource: &'static str,
    pub query: String,
    pub status: u16,
    /// Body of the request, JSON; empty: none.
    pub asked: String,
    /// Body of the answer, JSON; empty: none.
    pub answered: String,
    /// Duration in microseconds, below 1,000.
    pub takes: u64,
    /// Milliseconds since the call before.
    pub step: u64,
    /// The decision in a capture; empty: none.
    pub decision: String,
}

impl Default for Call {
    fn default() -> Call {
        Call {
            id: String::new(),
            stage: "ResponseComplete",
            user: "u".to_owned(),
            agent: String::new(),
            address: String::new(),
            verb: "get",
            group: String::new(),
            resource: "pods".to_owned(),
            namespace: "d".to_owned(),
            name: String::new(),
            subresource: "",
            query: String::new(),
            status: 200,
            asked: String::new(),
            answered: String::new(),
            takes: 500,
            step: 1,
            decision: String::new(),
        }
    }
}

/// `,"name":value`, or nothing if the value is empty.
fn member(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(r#","{name}":{value}"#) }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(r#""{text}""#) }
}

impl Call {
    fn uri(&self) -> String {
        let mut uri = if self.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}/v1", self.group) };
        if !self.namespace.is_empty() {
            uri += &format!("/namespaces/{}", self.namespace);
        }
        uri += &format!("/{}", self.resource);
        if !self.name.is_empty() && (self.verb != "create" || !self.subresource.is_empty()) {
            uri += &format!("/{}", self.name);
        }
        if !self.subresource.is_empty() {
            uri += &format!("/{}", self.subresource);
        }
        if !self.query.is_empty() {
            uri += &format!("?{}", self.query);
        }
        uri
    }

    /// Writes the call as an audit event.
    pub fn audit(&self, out: &mut Evidence, n: u64) {
        writeln!(out, "{}", self.event(n));
    }

    /// The audit event.
    pub fn event(&self, n: u64) -> String {
        let level = if self.asked.is_empty() && self.answered.is_empty() { "Metadata" } else { "RequestResponse" };
        let id = if self.id.is_empty() { format!("a{n}") } else { self.id.clone() };
        let mut object = format!(r#"{{"resource":"{}","apiVersion":"v1""#, self.resource);
        let named = [("apiGroup", &*self.group), ("namespace", &self.namespace), ("name", &self.name)];
        for (name, value) in named.into_iter().chain([("subresource", self.subresource)]) {
            object += &member(name, &quoted(value));
        }
        let address = if self.address.is_empty() { String::new() } else { format!(r#"["{}"]"#, self.address) };
        let status =
            if self.stage == "RequestReceived" { String::new() } else { format!(r#"{{"code":{}}}"#, self.status) };
        let more = [
            member("sourceIPs", &address),
            member("userAgent", &quoted(&self.agent)),
            member("responseStatus", &status),
            member("requestObject", &self.asked),
            member("responseObject", &self.answered),
        ]
        .concat();
        let time = n * self.step;
        format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"{level}","auditID":"{id}","stage":"{}","requestURI":"{}","verb":"{}","user":{{"username":"{}"}},"objectRef":{object}}},"requestReceivedTimestamp":"{}","stageTimestamp":"{}"{more}}}"#,
            self.stage,
            self.uri(),
            self.verb,
            self.user,
            at(time, 0),
            at(time, self.takes),
        )
    }

    /// Writes the call as request and response of a capture.
    pub fn capture(&self, out: &mut Evidence, n: u64) {
        let method = match self.verb {
            "create" => "POST",
            "update" => "PUT",
            "patch" => "PATCH",
            "delete" | "deletecollection" => "DELETE",
            _ => "GET",
        };
        let time = n * self.step;
        let more = [
            member("user_agent", &quoted(&self.agent)),
            member("body", &self.asked),
            member("decision", &quoted(&self.decision)),
        ]
        .concat();
        writeln!(
            out,
            r#"{{"kind":"request","id":{n},"at":"{}","method":"{method}","uri":"{}"{more}}}"#,
            at(time, 0),
            self.uri()
        );
        if self.stage != "RequestReceived" {
            let body = member("body", &self.answered);
            let id = member("audit_id", &quoted(&self.id));
            let time = at(time, self.takes);
            writeln!(out, r#"{{"kind":"response","id":{n},"at":"{time}","status":{}{id}{body}}}"#, self.status);
        }
    }
}

/// An object. `metadata` and `rest` are further members of both, with a leading comma, or empty.
pub fn object(kind: &str, name: &str, uid: &str, revision: u64, metadata: &str, rest: &str) -> String {
    format!(
        r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"d","uid":"{uid}","resourceVersion":"{revision}","creationTimestamp":"2026-03-02T08:00:00Z"{metadata}}}{rest}}}"#
    )
}

/// A pod by the numbers of its name and uid.
pub fn pod(name: u64, uid: u64, revision: u64) -> String {
    object("Pod", &format!("p{name}"), &format!("u{uid}"), revision, "", "")
}

/// A list of pods; `items` are separated by commas.
pub fn pods(revision: u64, items: &str) -> String {
    format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":[{items}]}}"#)
}

/// Creates a pod.
pub fn create(name: u64, uid: u64, revision: u64) -> Call {
    let asked = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{name}","namespace":"d"}}}}"#);
    let answered = pod(name, uid, revision);
    Call { verb: "create", name: format!("p{name}"), status: 201, asked, answered, ..Call::default() }
}

/// Updates a pod from one revision to another.
pub fn update(name: u64, base: u64, revision: u64) -> Call {
    let (asked, answered) = (pod(name, name, base), pod(name, name, revision));
    Call { verb: "update", name: format!("p{name}"), asked, answered, ..Call::default() }
}

/// Reads a pod.
pub fn get(name: u64, revision: u64) -> Call {
    Call { name: format!("p{name}"), answered: pod(name, name, revision), ..Call::default() }
}

/// Lists pods.
pub fn list(revision: u64, items: &str) -> Call {
    Call { verb: "list", answered: pods(revision, items), ..Call::default() }
}

/// Deletes a pod.
pub fn delete(name: u64, uid: u64) -> Call {
    let answered = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","details":{{"name":"p{name}","kind":"pods","uid":"u{uid}"}}}}"#
    );
    Call { verb: "delete", name: format!("p{name}"), answered, ..Call::default() }
}

/// The call, refused.
pub fn refused(call: Call, status: u16, reason: &str, message: &str) -> Call {
    let answered = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{status}}}"#
    );
    Call { status, answered, ..call }
}
