//! Boundaries of the contract (`retrograde explore --boundaries`) on real servers: in each run the second server answers one form
//! of a read as it may never answer another one.

use crate::Result;
use crate::client::{Answer, Process, version};
use crate::servers::Server;
use crate::stage::Stage;
use retrograde::explore::{Action, Boundary, boundaries};
use serde_json::{Value, json};

const WRITER: &str = "writer";
const READER: &str = "reader";

/// The name of a boundary's scenario.
pub fn name(boundary: &Boundary) -> String {
    format!("{}-not-{}", boundary.row, boundary.other)
}

/// The names of all scenarios.
pub fn names() -> Vec<String> {
    boundaries().map_or_else(|_| Vec::new(), |found| found.iter().map(name).collect())
}

/// The number of writes that an object shows.
fn shown(object: &Value) -> usize {
    object["data"]["writes"].as_str().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX)
}

/// Sends a read, and returns how many writes its answer shows.
async fn read(reader: &Process, row: &str, uri: &str) -> Result<usize> {
    if row.starts_with("watchlist") {
        let mut watch = reader.watch(uri).await?;
        let object = watch.expect("ADDED", "a").await?;
        // The evidence shows the state of a stream by the bookmark at the end of its initial events.
        while let Some(event) = watch.next().await? {
            if event["type"] == "BOOKMARK" {
                return Ok(shown(&object));
            }
        }
        return Err("expected a bookmark, found the end of the stream".into());
    }
    let body = reader.get(uri).await?.ok()?;
    let object = match body["items"].as_array() {
        Some(items) => items.iter().find(|item| item["metadata"]["name"] == "a").ok_or("the list has no object a")?,
        None => &body,
    };
    Ok(shown(object))
}

pub async fn play(stage: &Stage<'_>, variant: &str) -> Result<()> {
    let found = boundaries().map_err(|error| error.to_string())?;
    let boundary = found.iter().find(|boundary| name(boundary) == variant).ok_or("expected a boundary")?;
    let writer = stage.process(WRITER, "writer-0", Server::A)?;
    let reader = stage.process(READER, "reader-0", Server::B)?;
    let object = |writes: usize| {
        let data = json!({"writes": writes.to_string()});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    };
    let mut last = writer.post(&stage.core("configmaps"), &object(0)).await?.ok()?;
    for server in Server::ALL {
        stage.caught_up(server, &stage.core("configmaps"), &last).await?;
    }
    let (mut writes, mut known) = (0, version(&last).to_owned());
    for action in &boundary.actions {
        match action {
            Action::Write => {
                writes += 1;
                let answer: Answer = writer.patch(&stage.core("configmaps/a"), "merge", &object(writes)).await?;
                last = answer.ok()?;
            }
            Action::Know => {
                last = writer.get(&stage.core("configmaps")).await?.ok()?;
                known = version(&last).to_owned();
            }
            Action::Hold => {
                stage.caught_up(Server::B, &stage.core("configmaps"), &last).await?;
                stage.servers.proxy.hold();
            }
            Action::Read => {
                let path = if boundary.row.starts_with("get") { "configmaps/a" } else { "configmaps" };
                let uri = format!("{}?{}", stage.core(path), boundary.query.replace("{known}", &known));
                let found = read(&reader, boundary.row, uri.trim_end_matches('?')).await?;
                if found != boundary.shown {
                    return Err(format!("expected {} of {writes} writes, found {found}", boundary.shown).into());
                }
            }
        }
    }
    stage.servers.proxy.release();
    Ok(())
}
