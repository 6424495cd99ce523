//! A real etcd and two real API servers. A proxy in front of the second one's etcd can hold watch responses.

use crate::proxy::Proxy;
use crate::{LEVELS, Result, USERS};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for any condition on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// DER prefix of a P-256 public key (SubjectPublicKeyInfo, RFC 5480).
const PUBLIC_KEY_OF_P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// One of the two API servers. B is behind the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    A,
    B,
}

impl Server {
    pub const ALL: [Server; 2] = [Server::A, Server::B];

    pub fn audit_log(self) -> &'static str {
        match self {
            Server::A => "audit-A.log",
            Server::B => "audit-B.log",
        }
    }
}

/// The processes. All end when this is dropped.
pub struct Servers {
    binaries: PathBuf,
    /// Folder of logs, keys and data.
    work: PathBuf,
    etcd: SocketAddr,
    pub proxy: Proxy,
    ports: [u16; 2],
    processes: Vec<(String, Child)>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        // API servers first: without etcd they only log errors.
        for (_, process) in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Ports that are free now.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}

impl Servers {
    /// Starts etcd, the proxy and both servers. `work` must not exist.
    pub async fn start(binaries: &Path, work: &Path) -> Result<Servers> {
        fs::create_dir_all(work)?;
        let [client, peer, a, b] = free_ports()?;
        let etcd = SocketAddr::from(([127, 0, 0, 1], client));
        let proxy = Proxy::start(etcd).await?;
        let binaries = binaries.to_path_buf();
        let mut all = Servers { binaries, work: work.to_path_buf(), etcd, proxy, ports: [a, b], processes: Vec::new() };
        all.write_settings()?;
        let (client, peer) = (format!("http://{etcd}"), format!("http://127.0.0.1:{peer}"));
        let data = work.join("etcd").display().to_string();
        all.spawn(
            "etcd",
            "etcd",
            &[
                ("data-dir", &data),
                ("listen-client-urls", &client),
                ("advertise-client-urls", &client),
                ("listen-peer-urls", &peer),
                ("initial-advertise-peer-urls", &peer),
                ("initial-cluster", &format!("default={peer}")),
                ("log-level", "warn"),
                // The data are not used after the run.
                ("unsafe-no-fsync", "true"),
            ],
        )?;
        for server in Server::ALL {
            all.start_server(server)?;
        }
        Ok(all)
    }

    /// Writes a signing key, the users, and the audit policy.
    fn write_settings(&self) -> Result<()> {
        let random = SystemRandom::new();
        let no_key = |_| "no key could be made";
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(no_key)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random);
        let public =
            [&PUBLIC_KEY_OF_P256[..], pair.map_err(|_| "no key could be read")?.public_key().as_ref()].concat();
        for (name, kind, der) in [("sa.key", "PRIVATE", key.as_ref()), ("sa.pub", "PUBLIC", &public)] {
            let text = BASE64_STANDARD.encode(der);
            fs::write(self.work.join(name), format!("-----BEGIN {kind} KEY-----\n{text}\n-----END {kind} KEY-----\n"))?;
        }
        let mut tokens = String::new();
        let mut rules = String::new();
        for level in LEVELS {
            for user in USERS {
                tokens += &format!("{},{user},{user},\"system:masters,level-{level}\"\n", token(level, user));
            }
            rules += &format!("- level: {level}\n  userGroups: [level-{level}]\n");
        }
        fs::write(self.work.join("tokens.csv"), tokens)?;
        let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}- level: RequestResponse\n");
        fs::write(self.work.join("policy.yaml"), policy)?;
        Ok(())
    }

    fn spawn(&mut self, name: &str, program: &str, flags: &[(&str, &str)]) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.work.join(format!("{name}.log")))?;
        let process = Command::new(self.binaries.join(program))
            .args(flags.iter().map(|(flag, value)| format!("--{flag}={value}")))
            .current_dir(&self.work)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        self.processes.push((name.to_owned(), process));
        Ok(())
    }

    fn start_server(&mut self, server: Server) -> Result<()> {
        let path = |name: &str| self.work.join(name).display().to_string();
        let (key, public) = (path("sa.key"), path("sa.pub"));
        let (tokens, policy) = (path("tokens.csv"), path("policy.yaml"));
        let (audit, certificates) = (path(server.audit_log()), path(&format!("certificates-{server:?}")));
        let etcd = if server == Server::A { self.etcd } else { self.proxy.address };
        let flags = [
            ("etcd-servers", &*format!("http://{etcd}")),
            ("secure-port", &self.ports[server as usize].to_string()),
            ("bind-address", "127.0.0.1"),
            ("advertise-address", "127.0.0.1"),
            ("cert-dir", &certificates),
            ("service-cluster-ip-range", "10.96.0.0/16"),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-key-file", &public),
            ("service-account-signing-key-file", &key),
            ("token-auth-file", &tokens),
            ("authorization-mode", "RBAC"),
            ("audit-log-path", &audit),
            ("audit-policy-file", &policy),
            ("audit-log-maxsize", "0"),
            // Both servers run on one host, so each would take the other's identity lease for its own.
            ("feature-gates", "APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false"),
            // No service accounts are created here.
            ("disable-admission-plugins", "ServiceAccount"),
            ("endpoint-reconciler-type", "none"),
        ]
        .map(|(flag, value)| (flag, value.to_owned()));
        let flags: Vec<(&str, &str)> = flags.iter().map(|(flag, value)| (*flag, &**value)).collect();
        self.spawn(&format!("kube-apiserver-{server:?}"), "kube-apiserver", &flags)
    }

    /// Kills a server and restarts it. The caller waits until it is ready.
    pub fn restart(&mut self, server: Server) -> Result<()> {
        let name = format!("kube-apiserver-{server:?}");
        let at = self.processes.iter().position(|(running, _)| *running == name).ok_or("no such server")?;
        let (_, mut process) = self.processes.remove(at);
        process.kill()?;
        process.wait()?;
        self.start_server(server)
    }

    /// Fails if a process ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for (name, process) in &mut self.processes {
            if let Some(status) = process.try_wait()? {
                let log = fs::read_to_string(self.work.join(format!("{name}.log"))).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(20).collect();
                return Err(format!("{name} ended: {status}\n{}", tail.join("\n")).into());
            }
        }
        Ok(())
    }

    pub fn url(&self, server: Server) -> String {
        format!("https://127.0.0.1:{}", self.ports[server as usize])
    }

    pub fn audit_log(&self, server: Server) -> PathBuf {
        self.work.join(server.audit_log())
    }
}

/// The token of a user whose requests are logged at a level.
pub fn token(level: &str, user: &str) -> String {
    format!("{level}.{user}")
}

/// Polls until there is an answer.
pub async fn until<T>(what: &str, mut asked: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(answer) = asked().await? {
            return Ok(answer);
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("{what}: expected within {PATIENCE:?}, found no answer").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
