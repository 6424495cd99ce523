//! A real etcd of one member.

use super::program::program;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An etcd with a folder, which is removed on drop.
pub struct Etcd {
    /// Address for clients.
    pub address: SocketAddr,
    folder: PathBuf,
    arguments: Vec<String>,
    running: Option<Running>,
}

/// A shell that kills etcd when its input is closed, so that no process outlives the test.
struct Running {
    shell: Child,
    etcd: String,
}

const KEEPER: &str = r#""$@" & child=$!; echo $child; cat > /dev/null; kill -9 $child; wait $child"#;

impl Etcd {
    /// Starts an etcd on an empty store. `None`: none is installed.
    pub fn start(name: &str, more: &[&str]) -> Option<Etcd> {
        let program = program("etcd")?;
        let folder = std::env::temp_dir().join(format!("retrograde-etcd-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        // Free ports, released just before etcd takes them.
        let ports: Vec<TcpListener> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let address = |n: usize| ports[n].local_addr().expect("an address");
        let (client, peer) = (address(0), address(1));
        drop(ports);
        let mut arguments = vec![
            program.display().to_string(),
            "--name=a".to_owned(),
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls=http://{client}"),
            format!("--advertise-client-urls=http://{client}"),
            format!("--listen-peer-urls=http://{peer}"),
            format!("--initial-advertise-peer-urls=http://{peer}"),
            format!("--initial-cluster=a=http://{peer}"),
        ];
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let mut etcd = Etcd { address: client, folder, arguments, running: None };
        etcd.restart();
        Some(etcd)
    }

    /// Restarts it on the same store.
    pub fn restart(&mut self) {
        self.kill();
        let mut shell = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let mut etcd = String::new();
        BufReader::new(shell.stdout.take().expect("its output")).read_line(&mut etcd).expect("a number");
        self.running = Some(Running { shell, etcd: etcd.trim().to_owned() });
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.shell.stdin.take());
            let _ = running.shell.wait();
        }
    }

    /// Stops the process without ending it: requests get no answer until it is killed.
    #[allow(dead_code, reason = "not every test does")]
    pub fn freeze(&self) {
        let Some(running) = &self.running else { return };
        assert!(Command::new("kill").args(["-STOP", &running.etcd]).status().is_ok_and(|status| status.success()));
    }

    /// Stops it cleanly.
    #[allow(dead_code, reason = "not every test does")]
    pub fn stop(&mut self) {
        let Some(running) = &self.running else { return };
        assert!(Command::new("kill").args(["-TERM", &running.etcd]).status().is_ok_and(|status| status.success()));
        // The port is open until the process ends.
        while std::net::TcpStream::connect(self.address).is_ok() || Path::new("/proc").join(&running.etcd).exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        self.kill();
    }

    /// The folder of its store.
    #[allow(dead_code, reason = "not every test does")]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
