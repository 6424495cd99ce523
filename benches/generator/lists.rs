//! Many large lists: clients read all pods of a namespace in a list again and again, with a few writes in between.

use super::{Dice, fresh_uuid, stamp, uuid};
use std::fmt::Write as _;

/// Pods of a namespace; a list has all of them.
const PODS: usize = 500;
const NAMESPACES: usize = 20;
/// Writes before each list.
const WRITES: usize = 5;

/// A cluster whose audit log consists mostly of lists.
pub struct ListLog {
    dice: Dice,
    now: u64,
    revision: u64,
    pods: Vec<(String, u64)>,
    /// Events written so far.
    pub events: u64,
    /// Listed items written so far.
    pub items: u64,
}

impl ListLog {
    /// A cluster at its start.
    pub fn new(seed: u64) -> ListLog {
        let mut dice = Dice::new(seed);
        let pods: Vec<_> = (0..NAMESPACES * PODS).map(|n| (fresh_uuid(&mut dice), 100 + n as u64)).collect();
        ListLog { dice, now: 1_000_000, revision: 100 + pods.len() as u64, pods, events: 0, items: 0 }
    }

    /// Appends a few writes and a list.
    pub fn round(&mut self, out: &mut String) {
        let namespace = self.dice.index(NAMESPACES);
        for _ in 0..WRITES {
            let pod = self.dice.index(self.pods.len());
            self.revision += 1;
            self.pods[pod].1 = self.revision;
            let name = format!(r#","name":"web-{pod}""#);
            self.event(out, "patch", pod / PODS, &name, |log, out| log.pod(out, pod));
        }
        self.items += PODS as u64;
        self.event(out, "list", namespace, "", |log, out| {
            let _ = write!(
                out,
                r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":["#,
                log.revision
            );
            for pod in namespace * PODS..(namespace + 1) * PODS {
                if pod % PODS != 0 {
                    out.push(',');
                }
                log.pod(out, pod);
            }
            out.push_str("]}");
        });
    }

    fn pod(&self, out: &mut String, pod: usize) {
        let (uid, revision) = &self.pods[pod];
        let _ = write!(
            out,
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{pod}","namespace":"team-{}","uid":"{uid}","resourceVersion":"{revision}","creationTimestamp":"2026-02-04T08:00:00Z","labels":{{"app":"web"}}}}}}"#,
            pod / PODS
        );
    }

    fn event(
        &mut self,
        out: &mut String,
        verb: &str,
        namespace: usize,
        name: &str,
        body: impl FnOnce(&ListLog, &mut String),
    ) {
        self.events += 1;
        self.now += 500 + self.dice.roll(1_000);
        out.push_str(r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":""#);
        uuid(out, &mut self.dice);
        let client = self.dice.roll(20);
        let _ = write!(
            out,
            r#"","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/team-{namespace}/pods","verb":"{verb}","user":{{"username":"system:serviceaccount:prod:pager-{client}"}},"sourceIPs":["10.1.0.{client}"],"userAgent":"pager/v1.0","objectRef":{{"resource":"pods","namespace":"team-{namespace}"{name},"apiVersion":"v1"}},"responseStatus":{{"metadata":{{}},"code":200}},"responseObject":"#
        );
        body(self, out);
        out.push_str(r#","requestReceivedTimestamp":""#);
        stamp(out, self.now);
        out.push_str(r#"","stageTimestamp":""#);
        stamp(out, self.now + 400);
        out.push_str("\"}\n");
    }
}
