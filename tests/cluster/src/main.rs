//! Clients of kube-rs on a real control plane: an etcd and two API servers. A proxy can hold the etcd watches of the
//! second server.
//!
//! Arguments: the folder of the binaries `etcd` and `kube-apiserver` (as in `KUBEBUILDER_ASSETS`), a new folder for
//! the evidence, and scenarios (default: all). Each scenario writes a folder `INCIDENT/VARIANT` with the captures of
//! its clients and its part of both audit logs. A failed one has a file `failed` there. All processes end with the
//! program, and the program ends with its standard input.

mod boundaries;
mod client;
mod ip_reconciler;
mod kubelet_restart;
mod namespaces;
mod node_name_reuse;
mod proxy;
mod reflector_resume;
mod restarts;
mod servers;
mod stage;
mod writes;

use client::Process;
use serde_json::{Value, json};
use servers::{Server, Servers, token, until};
use stage::{ADMIN, Stage};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Audit levels. A user requests one by the group in its token.
const LEVELS: [&str; 3] = ["RequestResponse", "Request", "Metadata"];

const USERS: [&str; 23] = [
    "alice",
    "kubernetes-admin",
    "observer",
    "reader",
    "reflector-a",
    "reflector-b",
    "streamer-b",
    "suite",
    "system:kube-scheduler",
    "system:node:node-1",
    "system:node:node-2",
    "system:node:node-3",
    "system:serviceaccount:kube-system:azure-cns",
    "system:serviceaccount:kube-system:cloud-node-lifecycle",
    "system:serviceaccount:kube-system:dnc-rc",
    "system:serviceaccount:kube-system:endpoint-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:ip-reconciler",
    "system:serviceaccount:kube-system:multus",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:whereabouts",
    "writer",
];

/// Custom resources: the group, its version, kind and plural.
const CUSTOM: [(&str, &str, &str, &str); 3] = [
    ("acn.azure.com", "v1alpha", "NodeNetworkConfig", "nodenetworkconfigs"),
    ("whereabouts.cni.cncf.io", "v1alpha1", "IPPool", "ippools"),
    ("whereabouts.cni.cncf.io", "v1alpha1", "OverlappingRangeIPReservation", "overlappingrangeipreservations"),
];

/// A scenario: the incident, the variant, and the audit level.
type Scenario = (&'static str, String, &'static str);

fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    let incidents: [(&str, &[&str]); 4] = [
        ("kubelet-restart", &kubelet_restart::VARIANTS),
        ("node-name-reuse", &node_name_reuse::VARIANTS),
        ("ip-reconciler", &ip_reconciler::VARIANTS),
        ("reflector-resume", &reflector_resume::VARIANTS),
    ];
    for (incident, variants) in incidents {
        all.extend(variants.iter().map(|variant| (incident, (*variant).to_owned(), LEVELS[0])));
    }
    for level in &LEVELS[1..] {
        for (incident, variant) in [("kubelet-restart", "buggy"), ("kubelet-restart", "quorum-lists")] {
            all.push((incident, format!("{variant}-{}", level.to_lowercase()), *level));
        }
    }
    for level in LEVELS {
        all.push(("writes", level.to_lowercase(), level));
        all.push(("namespaces", level.to_lowercase(), level));
    }
    all.extend(boundaries::names().into_iter().map(|name| ("boundaries", name, LEVELS[0])));
    // This scenario is last: a restarted server has no memory of earlier revisions.
    all.push(("healthy", "restart".to_owned(), LEVELS[0]));
    all
}

/// Waits until both servers are ready.
pub async fn ready(servers: &mut Servers) -> Result<()> {
    for server in Server::ALL {
        let admin = Process::new(&servers.url(server), token(LEVELS[0], ADMIN), "ready/v1.0", None)?;
        let asked = async || {
            servers.check()?;
            Ok(admin.get("/readyz").await.is_ok_and(|answer| answer.status == 200).then_some(()))
        };
        until(&format!("{server:?} is ready"), asked).await?;
    }
    Ok(())
}

async fn define_resources(servers: &Servers) -> Result<()> {
    let admin = Process::new(&servers.url(Server::A), token(LEVELS[0], ADMIN), "setup/v1.0", None)?;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    for (group, version, kind, plural) in CUSTOM {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
            },
        });
        admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?.ok()?;
    }
    for server in Server::ALL {
        let admin = Process::new(&servers.url(server), token(LEVELS[0], ADMIN), "setup/v1.0", None)?;
        for (group, version, _, plural) in CUSTOM {
            let uri = format!("/apis/{group}/{version}/{plural}");
            let asked = async || Ok((admin.get(&uri).await?.status == 200).then_some(()));
            until(&uri, asked).await?;
        }
    }
    Ok(())
}

async fn play(servers: &mut Servers, folder: PathBuf, (incident, variant, level): &Scenario) -> Result<()> {
    let mut stage = Stage::open(servers, folder, level).await?;
    let suffix = format!("-{}", level.to_lowercase());
    let variant = variant.strip_suffix(&suffix).unwrap_or(variant);
    let played = match *incident {
        "kubelet-restart" => kubelet_restart::play(&stage, variant).await,
        "node-name-reuse" => node_name_reuse::play(&stage, variant).await,
        "ip-reconciler" => ip_reconciler::play(&stage, variant).await,
        "reflector-resume" => reflector_resume::play(&stage, variant).await,
        "writes" => writes::play(&stage).await,
        "boundaries" => boundaries::play(&stage, variant).await,
        "namespaces" => namespaces::play(&stage).await,
        _ => restarts::play(&mut stage).await,
    };
    stage.servers.proxy.release();
    let closed = match played {
        Ok(()) => stage.close().await,
        failed => failed,
    };
    stage.clear().await?;
    closed
}

async fn run(binaries: &Path, folder: &Path, wanted: &[String]) -> Result<()> {
    let begin = Instant::now();
    let mut servers = Servers::start(binaries, &folder.join("servers")).await?;
    ready(&mut servers).await?;
    define_resources(&servers).await?;
    let admin = Process::new(&servers.url(Server::A), token(LEVELS[0], ADMIN), "setup/v1.0", None)?;
    let version: Value = admin.get("/version").await?.ok()?;
    println!("Kubernetes {} ready after {:.1} s", version["gitVersion"], begin.elapsed().as_secs_f32());
    for scenario in scenarios() {
        let name = format!("{}/{}", scenario.0, scenario.1);
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let at = folder.join(&name);
        let begin = Instant::now();
        let played = play(&mut servers, at.clone(), &scenario).await;
        servers.proxy.release();
        println!("{name}: {:.1} s", begin.elapsed().as_secs_f32());
        if let Err(error) = played {
            println!("{name}: {error}");
            fs::write(at.join("failed"), error.to_string())?;
            servers.check()?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [binaries, folder, wanted @ ..] = arguments.as_slice() else {
        return Err("usage: control-plane BINARIES FOLDER [INCIDENT/VARIANT...]".into());
    };
    let (told, mut ended) = tokio::sync::mpsc::channel::<()>(1);
    std::thread::spawn(move || {
        // The caller keeps the input open. At its end all started processes end too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(told);
    });
    tokio::select! {
        done = run(Path::new(binaries), Path::new(folder), wanted) => done,
        _ = ended.recv() => Err("the input ended".into()),
    }
}
