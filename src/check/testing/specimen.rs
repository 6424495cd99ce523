//! Small histories for the tests of rules, written as capture lines.

use crate::check::testing::trial::reading;
use crate::check::{Evidence, Facts, Finding, Kind, Options, Rule, RuleResult};
use crate::history::{Domains, History, load};
use crate::ingest::{FileId, InputFile};
use crate::order::{Order, OrderOptions};

/// An object of a list: name, uid, version.
pub type Shown<'a> = (&'a str, &'a str, u64);

/// A history under construction. Each line is one millisecond after the one before.
pub struct Specimen {
    lines: Vec<String>,
    files: Vec<(String, String)>,
    at: u64,
    id: u64,
    cut: usize,
}

impl Specimen {
    /// A history with a first client "reader" on server "a" and one clock.
    pub fn new() -> Specimen {
        let mut specimen =
            Specimen { lines: Vec::new(), files: Vec::new(), at: 1_700_000_000_000_000_000, id: 0, cut: 0 };
        specimen.client("reader", "a", "wall");
        specimen
    }

    /// Later lines belong to this client, server and clock.
    pub fn client(&mut self, name: &str, server: &str, clock: &str) -> &mut Specimen {
        self.line(format!(
            r#"{{"kind":"capture","version":1,"client":"{name}","incarnation":"{name}-1","server":"{server}","clock":"{clock}"}}"#
        ));
        self
    }

    /// Adds a file verbatim.
    pub fn file(&mut self, name: &str, text: &str) -> &mut Specimen {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Adds a line verbatim.
    pub fn line(&mut self, line: String) {
        self.at += 1_000_000;
        self.lines.push(line);
    }

    fn request(&mut self, method: &str, uri: &str, body: &str) -> u64 {
        self.id += 1;
        let (id, at) = (self.id, self.at);
        let body = if body.is_empty() { String::new() } else { format!(r#","body":{body}"#) };
        self.line(format!(
            r#"{{"kind":"request","id":{id},"at":{at},"method":"{method}","uri":"{uri}","user_agent":"test/1"{body}}}"#
        ));
        id
    }

    fn response(&mut self, id: u64, status: u16, body: &str) {
        let at = self.at;
        self.line(format!(r#"{{"kind":"response","id":{id},"at":{at},"status":{status},"body":{body}}}"#));
    }

    fn object(shown: Shown<'_>, more: &str) -> String {
        let (name, uid, version) = shown;
        let version = if version == 0 { String::new() } else { format!(r#","resourceVersion":"{version}""#) };
        let (namespace, name) = name.split_once('/').unwrap_or(("d", name));
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{uid}","creationTimestamp":"2026-01-01T00:00:00Z"{version}{more}}},"spec":{{}}}}"#
        )
    }

    /// A pod created.
    pub fn create(&mut self, name: &str, uid: &str, version: u64) -> &mut Specimen {
        self.create_labelled(name, uid, version, "{}")
    }

    /// A pod created with labels (JSON).
    pub fn create_labelled(&mut self, name: &str, uid: &str, version: u64, labels: &str) -> &mut Specimen {
        let namespace = name.split_once('/').map_or("d", |(n, _)| n);
        let uri = format!("/api/v1/namespaces/{namespace}/pods");
        let id = self.request("POST", &uri, &Self::object((name, uid, 0), ""));
        self.response(id, 201, &Self::object((name, uid, version), &format!(r#","labels":{labels}"#)));
        self
    }

    /// A pod written.
    pub fn update(&mut self, name: &str, uid: &str, base: u64, version: u64) -> &mut Specimen {
        self.update_labelled(name, uid, base, version, "{}")
    }

    /// A pod written, labels (JSON) included.
    pub fn update_labelled(&mut self, name: &str, uid: &str, base: u64, version: u64, labels: &str) -> &mut Specimen {
        let (namespace, plain) = name.split_once('/').unwrap_or(("d", name));
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{plain}");
        let id = self.request("PUT", &uri, &Self::object((name, uid, base), ""));
        self.response(id, 200, &Self::object((name, uid, version), &format!(r#","labels":{labels}"#)));
        self
    }

    /// A pod deleted. The answer is a `Status` without version.
    pub fn delete(&mut self, name: &str, uid: &str) -> &mut Specimen {
        let id = self.request("DELETE", &format!("/api/v1/namespaces/d/pods/{name}"), "");
        self.response(id, 200, &format!(r#"{{"kind":"Status","status":"Success","details":{{"uid":"{uid}"}}}}"#));
        self
    }

    /// A list of pods; `query` begins with `?` or is empty.
    pub fn list(&mut self, query: &str, revision: u64, items: &[Shown<'_>]) -> &mut Specimen {
        self.page(query, revision, items, "")
    }

    /// A page of a list, with the token for the next one.
    pub fn page(&mut self, query: &str, revision: u64, items: &[Shown<'_>], token: &str) -> &mut Specimen {
        let id = self.request("GET", &format!("/api/v1/namespaces/d/pods{query}"), "");
        let items: Vec<String> = items.iter().map(|i| Self::object(*i, "")).collect();
        let body = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}","continue":"{token}"}},"items":[{}]}}"#,
            items.join(",")
        );
        self.response(id, 200, &body);
        self
    }

    /// A read of one pod.
    pub fn get(&mut self, name: &str, query: &str, found: Option<(&str, u64)>) -> &mut Specimen {
        let id = self.request("GET", &format!("/api/v1/namespaces/d/pods/{name}{query}"), "");
        match found {
            Some((uid, version)) => self.response(id, 200, &Self::object((name, uid, version), "")),
            None => self.response(id, 404, r#"{"kind":"Status","status":"Failure","code":404}"#),
        }
        self
    }

    /// A watch of the pods of namespace d, answered 200. Returns its id.
    pub fn watch(&mut self, query: &str) -> u64 {
        let id = self.request("GET", &format!("/api/v1/namespaces/d/pods?watch=1{query}"), "");
        self.response(id, 200, "null");
        id
    }

    /// An event: `ADDED`, `MODIFIED`, `DELETED`.
    pub fn event(&mut self, watch: u64, kind: &str, shown: Shown<'_>) -> &mut Specimen {
        self.event_labelled(watch, kind, shown, "{}")
    }

    /// An event with labels (JSON).
    pub fn event_labelled(&mut self, watch: u64, kind: &str, shown: Shown<'_>, labels: &str) -> &mut Specimen {
        let (at, object) = (self.at, Self::object(shown, &format!(r#","labels":{labels}"#)));
        self.line(format!(
            r#"{{"kind":"event","id":{watch},"at":{at},"event":{{"type":"{kind}","object":{object}}}}}"#
        ));
        self
    }

    /// A bookmark; `ends` marks the end of the initial events.
    pub fn bookmark(&mut self, watch: u64, revision: u64, ends: bool) -> &mut Specimen {
        let at = self.at;
        let annotation = if ends { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        self.line(format!(
            r#"{{"kind":"event","id":{watch},"at":{at},"event":{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"{annotation}}}}}}}}}"#
        ));
        self
    }

    /// An error in the stream.
    pub fn error(&mut self, watch: u64, code: u16) -> &mut Specimen {
        let at = self.at;
        self.line(format!(
            r#"{{"kind":"event","id":{watch},"at":{at},"event":{{"type":"ERROR","object":{{"kind":"Status","code":{code}}}}}}}"#
        ));
        self
    }

    /// Cuts the last line, so that it is damaged.
    pub fn cut(&mut self) -> &mut Specimen {
        let line = self.lines.last_mut().expect("a line");
        line.truncate(line.len() / 2);
        self.cut += 1;
        self
    }

    /// The history.
    pub fn history(&self) -> History {
        let mut inputs = vec![InputFile::in_memory(FileId(0), "specimen.jsonl", self.lines.join("\n").into_bytes())];
        for (index, (name, text)) in self.files.iter().enumerate() {
            inputs.push(InputFile::in_memory(FileId(index as u32 + 1), name, text.clone().into_bytes()));
        }
        let history = load(inputs, &reading(), &Domains::default(), &());
        assert_eq!(history.problems.len(), self.cut, "{:?}", history.problems);
        history
    }

    /// The findings of a rule, and its number of checks.
    pub fn ruled(&self, rule: &Rule) -> (Vec<Finding>, u64) {
        let history = self.history();
        let order = Order::derive(&history, &OrderOptions::default());
        let options = Options::default();
        let evidence =
            Evidence { history: &history, order: &order, options: &options, facts: &Facts::of_small_sizes() };
        let mut result = RuleResult::new(rule.slug, &evidence);
        rule.check(&evidence, &mut result);
        for finding in &result.findings {
            assert!((1..=5).contains(&finding.certificate.facts.len()), "{finding:?}");
            assert!(finding.kind == Kind::Hazard || finding.certificate.facts.len() >= 2, "{finding:?}");
        }
        (result.findings, result.checked)
    }

    /// The kinds of a rule's findings, one per occurrence.
    pub fn kinds(&self, rule: &Rule) -> Vec<Kind> {
        let (findings, _) = self.ruled(rule);
        findings.iter().flat_map(|f| f.occurrences.iter().map(|_| f.kind)).collect()
    }

    /// Whether a rule proves a violation.
    pub fn violates(&self, rule: &Rule) -> bool {
        self.kinds(rule).contains(&Kind::Violation)
    }

    /// Whether a rule checked something and found nothing.
    pub fn keeps(&self, rule: &Rule) -> bool {
        let (findings, checked) = self.ruled(rule);
        if !findings.is_empty() {
            eprintln!("{findings:#?}");
        }
        findings.is_empty() && checked > 0
    }
}
