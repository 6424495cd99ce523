//! The program as a proxy.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running proxy; killed on drop.
pub struct Proxy {
    process: Child,
    /// Its address for clients.
    pub address: SocketAddr,
    said: Option<JoinHandle<String>>,
}

/// The end of a proxy.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// What it wrote to standard error after its first line.
    pub said: String,
    /// Time from the signal to the end.
    pub took: Duration,
}

pub fn retrograde(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
    command.args(arguments).stdin(Stdio::null());
    command
}

impl Proxy {
    /// Starts a proxy on a free port. The error is its message, if it does not start.
    pub fn start(arguments: &[&str]) -> Result<Proxy, String> {
        let mut process = retrograde(&["record"])
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(process.stderr.take().expect("its messages"));
        let mut told = String::new();
        let Some(address) = address(&mut lines, &mut told) else {
            let _ = process.wait();
            return Err(told);
        };
        let said = std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = lines.read_to_string(&mut rest);
            rest
        });
        Ok(Proxy { process, address, said: Some(said) })
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, signal: &str) -> Ended {
        let id = self.process.id().to_string();
        let begin = Instant::now();
        assert!(Command::new("kill").args([signal, &id]).status().is_ok_and(|status| status.success()));
        let code = self.process.wait().expect("it ends").code();
        let took = begin.elapsed();
        let said = self.said.take().expect("its messages").join().expect("text");
        Ended { code, said, took }
    }
}

/// The address in the message of a start; `None`: the proxy ended before. Keeps what it said.
fn address(lines: &mut impl BufRead, told: &mut String) -> Option<SocketAddr> {
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).expect("text") == 0 {
            return None;
        }
        told.push_str(&line);
        if let Some(rest) = line.strip_prefix("recording http://") {
            return rest.split(' ').next().and_then(|text| text.parse().ok());
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The files below a folder, with their lines. Each line must be complete JSON.
pub fn whole_files(folder: &Path) -> Vec<(String, Vec<serde_json::Value>)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            assert!(text.ends_with('\n'), "{} is cut off", path.display());
            let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            files.push((path.file_name().expect("a name").to_string_lossy().into_owned(), lines));
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    files
}
