//! `retrograde mcp` with a caller that writes the protocol by hand. `cargo test --features mcp --test mcp` runs it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Session {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    next: u64,
}

impl Session {
    fn begin(folder: &Path) -> Session {
        let mut child = Command::new(env!("CARGO_BIN_EXE_retrograde"))
            .arg("mcp")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut session = Session { child, requests, answers, next: 0 };
        let client = json!({"name": "test", "version": "1"});
        let begun = session
            .ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        assert_eq!(begun["result"]["serverInfo"]["name"], "retrograde", "{begun}");
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.next, "{answer}");
        answer
    }

    /// The text of a tool, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        match answer["error"]["message"].as_str() {
            Some(error) => (error.to_owned(), true),
            None => {
                let result = &answer["result"];
                (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
            }
        }
    }

    fn end(self) -> Option<i32> {
        let Session { mut child, requests, .. } = self;
        drop(requests);
        child.wait().unwrap().code()
    }
}

fn histories() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/incidents/kubelet-restart")
}

#[test]
fn an_assistant_lists_and_calls_the_tools() {
    let mut session = Session::begin(&histories());
    let listed = session.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["check", "show", "explain", "rules"]);
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{listed}");
    let (text, failed) = session.call("check", json!({"paths": ["buggy"]}));
    assert!(!failed && text.starts_with("VIOLATED") && text.contains("monotonic-reads"), "{text}");
    let (text, failed) = session.call("check", json!({"paths": ["buggy"], "json": true, "only": ["monotonic-reads"]}));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(!failed && report["verdict"] == "violated", "{text}");
    let (text, failed) = session.call("show", json!({"paths": ["buggy"], "contract": true}));
    assert!(!failed && text.contains("watch-any"), "{text}");
    let (text, failed) = session.call("explain", json!({"paths": "buggy", "client": "node-1", "key": "web-0"}));
    assert!(!failed && text.contains("web-0"), "{text}");
    let (text, failed) = session.call("rules", json!({"rule": "monotonic-reads"}));
    assert!(!failed && text.contains("monotonic-reads"), "{text}");
    assert_eq!(session.end(), Some(0));
}

#[test]
fn a_call_reaches_no_file_outside_and_no_other_command() {
    let mut session = Session::begin(&histories());
    for (tool, arguments, expected) in [
        ("check", json!({"paths": ["../../../Cargo.toml"]}), "inside the served folder"),
        ("check", json!({"paths": ["/etc/passwd"]}), "inside the served folder"),
        ("check", json!({"paths": ["absent"]}), "inside the served folder"),
        ("check", json!({"output": "x"}), "found the argument output"),
        ("check", json!({"paths": [7]}), "expected texts"),
        ("check", json!({"json": "report.json"}), "expected true or false"),
        ("pack", json!({}), "found the tool pack"),
        ("rules", json!({"rule": "--help"}), "--help"),
        ("explain", json!({"paths": ["buggy"]}), "--client"),
    ] {
        let (text, failed) = session.call(tool, arguments.clone());
        assert!(failed && text.contains(expected), "{tool} {arguments}: {text}");
    }
    assert_eq!(session.end(), Some(0));
}

#[test]
fn a_long_answer_is_cut_and_says_so() {
    let mut session = Session::begin(&Path::new(env!("CARGO_MANIFEST_DIR")).join("histories/incidents"));
    let (text, failed) = session.call("check", json!({"json": true}));
    assert!(!failed && text.len() < 66_000 && text.contains("[cut: 65536 of "), "{} bytes", text.len());
    assert_eq!(session.end(), Some(0));
}
