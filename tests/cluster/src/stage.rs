//! The namespace of a scenario, and its folder of evidence.

use crate::Result;
use crate::client::{Process, version};
use crate::servers::{Server, Servers, token, until};
use retrograde::assertion::{Capture, Subject};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub const ADMIN: &str = "kubernetes-admin";
/// User that polls a server's cache. No finding about it is expected.
const OBSERVER: &str = "observer";

/// A running scenario in a namespace of its own.
pub struct Stage<'s> {
    pub servers: &'s mut Servers,
    pub namespace: String,
    /// Audit level of all users.
    level: &'static str,
    folder: PathBuf,
    /// Length of each audit log at the beginning.
    begin: [u64; 2],
}

impl<'s> Stage<'s> {
    /// Creates the folder and the namespace.
    pub async fn open(servers: &'s mut Servers, folder: PathBuf, level: &'static str) -> Result<Stage<'s>> {
        fs::create_dir_all(&folder)?;
        let parts: Vec<_> = folder.iter().rev().take(2).map(|part| part.to_string_lossy().into_owned()).collect();
        let namespace = format!("{}-{}", parts[1], parts[0]);
        let begin = [whole_lines(&servers.audit_log(Server::A))?, whole_lines(&servers.audit_log(Server::B))?];
        let stage = Stage { servers, namespace, level, folder, begin };
        stage.make_namespace(&stage.namespace).await?;
        Ok(stage)
    }

    /// A recorded process of a user. The capture names its incarnation.
    pub fn process(&self, user: &str, life: &str, server: Server) -> Result<Process> {
        let name = user.rsplit(':').next().unwrap_or(user);
        let path = self.folder.join(format!("{name}-{life}-{server:?}.jsonl"));
        let subject = Subject {
            client: user.to_owned(),
            incarnation: life.to_owned(),
            server: format!("{server:?}"),
            clock: "host".to_owned(),
        };
        let capture = Capture::create(path, &subject)?;
        Process::new(&self.servers.url(server), token(self.level, user), &format!("{name}/v1.0"), Some(capture))
    }

    /// A process that only the audit log records.
    pub fn unrecorded(&self, user: &str, server: Server) -> Result<Process> {
        Process::new(&self.servers.url(server), token(self.level, user), &format!("{user}/v1.0"), None)
    }

    pub async fn make_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.unrecorded(ADMIN, Server::A)?.post("/api/v1/namespaces", &namespace).await?.ok()?;
        Ok(())
    }

    /// The path of a core resource in the scenario's namespace.
    pub fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// The path of a resource of another group there.
    pub fn of(&self, group: &str, rest: &str) -> String {
        format!("/apis/{group}/namespaces/{}/{rest}", self.namespace)
    }

    /// Waits until a server's cache has a version.
    pub async fn caught_up(&self, server: Server, list: &str, object: &Value) -> Result<()> {
        let observer = self.unrecorded(OBSERVER, server)?;
        let uri = format!("{list}?resourceVersion={}&resourceVersionMatch=NotOlderThan", version(object));
        until(&format!("{server:?} has {uri}"), async || Ok((observer.get(&uri).await?.status == 200).then_some(())))
            .await
    }

    /// Waits until the audit logs have every answer of the captures, and extracts this scenario's part.
    pub async fn close(&self) -> Result<()> {
        let mut open = BTreeSet::new();
        for entry in fs::read_dir(&self.folder)? {
            open.extend(audit_ids(&fs::read_to_string(entry?.path())?));
        }
        let logs = until("the audit logs are whole", async || {
            let mut logs = Vec::new();
            for (server, begin) in Server::ALL.into_iter().zip(self.begin) {
                let path = self.servers.audit_log(server);
                let mut text = String::new();
                let mut file = File::open(&path)?;
                let length = whole_lines(&path)?;
                file.seek(SeekFrom::Start(begin))?;
                file.take(length - begin).read_to_string(&mut text)?;
                for line in text.lines().filter(|line| line.contains(r#""stage":"ResponseComplete""#)) {
                    let event: Value = serde_json::from_str(line)?;
                    open.remove(event["auditID"].as_str().unwrap_or_default());
                }
                logs.push((server, text));
            }
            Ok(open.is_empty().then_some(logs))
        });
        for (server, text) in logs.await? {
            fs::write(self.folder.join(server.audit_log()), text)?;
        }
        Ok(())
    }

    /// Deletes the objects that the next scenario would list.
    pub async fn clear(self) -> Result<()> {
        let admin = Process::new(&self.servers.url(Server::A), token(self.level, ADMIN), "cleanup/v1.0", None)?;
        for resource in ["pods", "services"] {
            let answer = admin.delete(&self.core(resource), &json!({"gracePeriodSeconds": 0})).await?;
            answer.ok()?;
        }
        Ok(())
    }
}

/// Audit ids of completed answers.
fn audit_ids(capture: &str) -> Vec<String> {
    let lines: Vec<Value> = capture.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let watches: BTreeSet<u64> = lines
        .iter()
        .filter(|line| line["uri"].as_str().is_some_and(|uri| uri.contains("watch=")))
        .filter_map(|line| line["id"].as_u64())
        .collect();
    let answers = lines.iter().filter(|line| line["kind"] == "response");
    let answers = answers.filter(|line| !watches.contains(&line["id"].as_u64().unwrap_or_default()));
    answers.filter_map(|line| line["audit_id"].as_str().map(str::to_owned)).collect()
}

/// Length of the complete lines of a file.
fn whole_lines(path: &Path) -> Result<u64> {
    let bytes = fs::read(path)?;
    Ok(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1))
}
