//! Arguments of `retrograde record`. The doc comments are the help texts.
// A program without the proxies shows the arguments and does not use them.
#![cfg_attr(not(feature = "proxy"), allow(dead_code))]

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `retrograde record`.
#[derive(Debug, Args)]
pub struct Record {
    /// What is recorded.
    #[command(subcommand)]
    pub of: Recorded,
}

/// The two proxies.
#[derive(Debug, Subcommand)]
pub enum Recorded {
    /// Record clients of etcd: a gRPC proxy that writes a recording.
    #[command(after_help = ENDED)]
    Etcd(Etcd),
    /// Record clients of Kubernetes: an HTTP proxy, as `kubectl proxy` is one, that writes a capture for each client.
    #[command(after_help = ENDED)]
    Kube(Kube),
}

const ENDED: &str = "It ends with Ctrl-C or SIGTERM. Exit codes: 0 ended, 2 not started, 3 the recording is incomplete. \
                     docs/record-any-language.md has examples.";

/// Arguments of both proxies.
#[derive(Debug, Args)]
pub struct Proxy {
    /// Write into this folder. Nothing in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// The name of the client. By default each User-Agent is a client.
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// Allow an address of --listen that other hosts reach. They get the credentials of this proxy.
    #[arg(long)]
    pub allow_other_hosts: bool,
}

/// `retrograde record kube`.
#[derive(Debug, Args)]
pub struct Kube {
    /// The kubeconfig; by default $KUBECONFIG, or .kube/config in the home folder.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; by default its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The address for clients; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    pub listen: SocketAddr,
    /// The user of the kubeconfig, as the audit log names it; by default the server is asked.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The name of the clock in the captures; by default no other recording has it.
    #[arg(long, value_name = "NAME")]
    pub clock: Option<String>,
    /// Keep the fields of this rules file as well (repeatable; docs/rules-file.md).
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
    /// Arguments of both proxies.
    #[command(flatten)]
    pub proxy: Proxy,
}

/// `retrograde record etcd`.
#[derive(Debug, Args)]
pub struct Etcd {
    /// Members of etcd.
    #[arg(long, value_name = "URL,...", value_delimiter = ',', default_value = "http://127.0.0.1:2379")]
    pub endpoints: Vec<String>,
    /// The address for clients; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2479")]
    pub listen: SocketAddr,
    /// Certificate authorities of etcd in PEM; by default those of the system.
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The certificate that the proxy shows to etcd, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of --cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Arguments of both proxies.
    #[command(flatten)]
    pub proxy: Proxy,
}
