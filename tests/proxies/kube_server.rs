//! A real etcd and a real API server with an audit log, a user with a token and one with a certificate.

use crate::folder::Folder;
use crate::program::program;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The token of the user `ann`.
pub const TOKEN: &str = "a-token-that-no-file-may-have";

/// The servers; they end on drop.
pub struct KubeServer {
    folder: Folder,
    processes: Vec<Child>,
}

/// A shell that kills its program when its input is closed, so that no process outlives the test.
const KEEPER: &str = r#""$@" & child=$!; cat > /dev/null; kill -9 $child; wait $child"#;

impl Drop for KubeServer {
    fn drop(&mut self) {
        // The API server first: without etcd it only logs errors.
        for mut process in self.processes.drain(..).rev() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

/// The folder of the binaries. Without it the test is skipped, or fails if `CI` is set.
fn binaries() -> Option<PathBuf> {
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    let found = folder.filter(|folder| ["etcd", "kube-apiserver"].iter().all(|name| folder.join(name).is_file()));
    if found.is_none() {
        let is_needed = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
        assert!(!is_needed, "{VARIABLE} names no folder with etcd and kube-apiserver");
        eprintln!("skipped: {VARIABLE} names no folder with etcd and kube-apiserver");
    }
    found
}

impl KubeServer {
    /// The servers of all tests that run now. They need not be ready yet.
    pub fn shared() -> Option<Arc<KubeServer>> {
        static SHARED: Mutex<Weak<KubeServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(servers) = shared.upgrade() {
            return Some(servers);
        }
        let servers = Arc::new(KubeServer::start()?);
        *shared = Arc::downgrade(&servers);
        Some(servers)
    }

    fn start() -> Option<KubeServer> {
        let (binaries, openssl) = (binaries()?, program("openssl")?);
        let folder = Folder::new();
        make_keys(&openssl, folder.root());
        fs::write(folder.path("tokens.csv"), format!("{TOKEN},ann,ann,system:masters\n")).expect("the tokens");
        let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n";
        fs::write(folder.path("policy.yaml"), policy).expect("the policy");
        let ports: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let [client, peer, secure] = [0, 1, 2].map(|at| ports[at].local_addr().expect("an address").port());
        drop(ports);
        let mut servers = KubeServer { folder, processes: Vec::new() };
        servers.write_kubeconfig(secure);
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let etcd = [
            ("data-dir", "etcd"),
            ("listen-client-urls", &client),
            ("advertise-client-urls", &client),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", &format!("default={peer}")),
            ("unsafe-no-fsync", "true"),
        ];
        servers.spawn(&binaries, "etcd", &etcd);
        let api = [
            ("etcd-servers", &*client),
            ("secure-port", &secure.to_string()),
            ("bind-address", "127.0.0.1"),
            ("advertise-address", "127.0.0.1"),
            ("cert-dir", "certificates"),
            ("client-ca-file", "ca.crt"),
            ("service-cluster-ip-range", "10.96.0.0/16"),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-key-file", "sa.key"),
            ("service-account-signing-key-file", "sa.key"),
            ("token-auth-file", "tokens.csv"),
            ("authorization-mode", "RBAC"),
            ("audit-log-path", "audit.log"),
            ("audit-policy-file", "policy.yaml"),
            ("audit-log-maxsize", "0"),
            // No service accounts are created here.
            ("disable-admission-plugins", "ServiceAccount"),
            ("endpoint-reconciler-type", "none"),
            ("feature-gates", "CBORServingAndStorage=true"),
        ];
        servers.spawn(&binaries, "kube-apiserver", &api);
        Some(servers)
    }

    fn spawn(&mut self, binaries: &Path, program: &str, flags: &[(&str, &str)]) {
        let log = File::create(self.folder.path(&format!("{program}.log"))).expect("a log");
        let process = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(std::path::absolute(binaries.join(program)).expect("a path"))
            .args(flags.iter().map(|(flag, value)| format!("--{flag}={value}")))
            .current_dir(self.folder.root())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .spawn()
            .expect("a shell");
        self.processes.push(process);
    }

    fn write_kubeconfig(&self, port: u16) {
        fs::write(self.folder.path("token"), format!("{TOKEN}\n")).expect("the token");
        let text = format!(
            r#"
apiVersion: v1
kind: Config
current-context: token
contexts:
- {{name: token, context: {{cluster: here, user: ann}}}}
- {{name: file, context: {{cluster: here, user: file}}}}
- {{name: certificate, context: {{cluster: here, user: bob}}}}
- {{name: program, context: {{cluster: here, user: program}}}}
- {{name: wrong, context: {{cluster: here, user: wrong}}}}
clusters:
- name: here
  cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: certificates/apiserver.crt}}
users:
- {{name: ann, user: {{token: {TOKEN}}}}}
- {{name: file, user: {{tokenFile: token}}}}
- {{name: bob, user: {{client-certificate: bob.crt, client-key: bob.key}}}}
- {{name: program, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: get-token}}}}}}
- {{name: wrong, user: {{token: no-such-token}}}}
"#
        );
        fs::write(self.kubeconfig(), text).expect("the kubeconfig");
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path("kubeconfig.yaml")
    }

    pub fn audit_log(&self) -> PathBuf {
        self.folder.path("audit.log")
    }

    /// The end of the API server's log, for messages.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.path("kube-apiserver.log")).unwrap_or_default();
        log.lines().rev().take(10).collect::<Vec<_>>().join("\n")
    }
}

/// Makes the key of service accounts, and an authority with a certificate of the user `bob`.
fn make_keys(openssl: &Path, folder: &Path) {
    let commands = [
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out sa.key",
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout bob.key -out bob.csr -subj /O=system:masters/CN=bob",
        "x509 -req -in bob.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out bob.crt -days 2 -extfile bob.cnf",
    ];
    // With an extension it has version 3, as those of Kubernetes do.
    fs::write(folder.join("bob.cnf"), "extendedKeyUsage=clientAuth\n").expect("a file");
    for command in commands {
        let output = Command::new(openssl).args(command.split(' ')).current_dir(folder).output().expect("openssl runs");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
