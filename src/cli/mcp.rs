//! `retrograde mcp`: the commands that read, as tools for assistants (Model Context Protocol over standard input and
//! output).
//!
//! Input: calls of tools. Output: what the command writes for a person. Invariants: only files inside one folder are named,
//! nothing is written, an answer has at most [`LONGEST_ANSWER`] bytes, and one command runs at a time for at most
//! [`PATIENCE`].
//!
//! Each call runs this program again, so that it has the limits of memory and time of the command line, and a call that
//! fails takes nothing with it.

use super::exit::Exit;
use super::halting;
use anyhow::Context as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Mutex;

/// The most bytes of an answer. An assistant pays for each of them.
const LONGEST_ANSWER: usize = 64 << 10;

/// Time after which a command is killed. `check` ends before it, with what is known.
const PATIENCE: Duration = Duration::from_secs(120);

/// Interval between looks for a signal.
const TICK: Duration = Duration::from_millis(50);

/// The time budget of `check`.
const CHECKING: &str = "--time-budget=100s";

const INSTRUCTIONS: &str = "Checks recorded etcd and Kubernetes histories: audit logs, watch and list captures, operation logs. \
    Call `check` first. `show` says what the evidence is, `explain` tells about one request or one client, and `rules` says \
    what a rule proves and what it cannot see. A verdict `unknown` is no success: its reason is in the report.";

/// Serves a folder until its caller closes standard input.
pub fn serve(folder: &Path) -> anyhow::Result<Exit> {
    let folder = folder
        .canonicalize()
        .with_context(|| format!("expected a folder with evidence, found {}", folder.display()))?;
    anyhow::ensure!(folder.is_dir(), "expected a folder with evidence, found the file {}", folder.display());
    let assistant = Assistant { program: std::env::current_exe()?, folder, running: Mutex::new(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The first signal ends the session. A second one ends the process at once.
    halting::report_from_here();
    let session = async {
        let service = assistant.serve(rmcp::transport::stdio()).await.context("no assistant began a session")?;
        service.waiting().await.context("the session ended early")
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = session => ended.map(|_| ()),
            () = signalled() => Ok(()),
        }
    });
    // A read of standard input cannot be cancelled, so the runtime does not wait for it.
    runtime.shutdown_background();
    ended.map(|()| Exit::Holds)
}

async fn signalled() {
    while halting::halt().why().is_none() {
        tokio::time::sleep(TICK).await;
    }
}

/// The tools over one folder.
struct Assistant {
    program: PathBuf,
    folder: PathBuf,
    running: Mutex<()>,
}

/// A kind of argument.
#[derive(Clone, Copy)]
enum Kind {
    /// Files or folders, relative to the folder.
    Paths,
    /// `--NAME=TEXT`.
    Text,
    /// `--NAME=TEXT` for each.
    Texts,
    /// `--NAME`.
    Flag,
    /// The only argument without a name.
    Place,
}

/// An argument: its name, kind and meaning.
type Argument = (&'static str, Kind, &'static str);

const PATHS: Argument =
    ("paths", Kind::Paths, "Files or folders of evidence, relative to the served folder. Default: all of it.");
const SOURCE: Argument = (
    "source",
    Kind::Texts,
    "The source of files that do not name it: GLOB:server=NAME,client=NAME,clock=NAME,cluster=NAME",
);
const CLIENT: Argument = ("client", Kind::Text, "Only clients whose user name contains this");

/// The tools: name, meaning, arguments.
const TOOLS: [(&str, &str, &[Argument]); 4] = [
    (
        "check",
        "Decides whether each client's observed sequence is consistent with the order of writes. Answers with the verdict \
         (holds, violated, unknown) and each finding with its lines.",
        &[
            PATHS,
            SOURCE,
            CLIENT,
            ("namespace", Kind::Text, "Only findings about objects in this namespace"),
            ("since", Kind::Text, "Only findings that end at this time or later (RFC 3339)"),
            ("until", Kind::Text, "Only findings that begin at this time or earlier (RFC 3339)"),
            ("only", Kind::Texts, "Only these rules"),
            ("json", Kind::Flag, "Answer with the JSON report"),
        ],
    ),
    (
        "show",
        "Shows the contents of the evidence: files, clients, clocks, coverage of revisions.",
        &[
            PATHS,
            SOURCE,
            ("key", Kind::Text, "Every version and record of one key, such as 'pods default/web-0'"),
            ("around", Kind::Text, "The records nearest to this revision"),
            (
                "contract",
                Kind::Flag,
                "The forms of reads that the evidence exercises, and which of them a server broke",
            ),
        ],
    ),
    (
        "explain",
        "Explains one request (was this read stale, and by whose fault), or the decisions of a client on old state.",
        &[
            PATHS,
            SOURCE,
            CLIENT,
            ("audit-id", Kind::Text, "The request with this audit id"),
            ("key", Kind::Text, "Requests for this key, or with it in the answer"),
        ],
    ),
    (
        "rules",
        "Lists the rules, or explains what one rule proves, needs and cannot see.",
        &[("rule", Kind::Place, "The name of a rule. Default: a list of all.")],
    ),
];

fn tool(&(name, meaning, arguments): &(&'static str, &'static str, &[Argument])) -> Tool {
    let property = |(name, kind, meaning): &Argument| {
        let schema = match kind {
            Kind::Paths | Kind::Texts => json!({"type": "array", "items": {"type": "string"}, "description": meaning}),
            Kind::Text | Kind::Place => json!({"type": "string", "description": meaning}),
            Kind::Flag => json!({"type": "boolean", "description": meaning}),
        };
        ((*name).to_owned(), schema)
    };
    let properties: JsonObject = arguments.iter().map(property).collect();
    let schema: JsonObject = [
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
        ("additionalProperties".to_owned(), json!(false)),
    ]
    .into_iter()
    .collect();
    Tool::new(name, meaning, schema).annotate(ToolAnnotations::new().read_only(true))
}

impl ServerHandler for Assistant {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("retrograde", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, arguments) = self.command(&request).map_err(|why| ErrorData::invalid_params(why, None))?;
        let _one = self.running.lock().await;
        let (ok, text) = match tokio::time::timeout(PATIENCE, self.run(name, &arguments)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => (false, format!("the command did not run: {error}")),
            Err(_) => (false, format!("the command did not end within {} s", PATIENCE.as_secs())),
        };
        let content = vec![ContentBlock::text(text)];
        Ok(CallToolResponse::Complete(if ok {
            CallToolResult::success(content)
        } else {
            CallToolResult::error(content)
        }))
    }
}

impl Assistant {
    /// The command line of a call.
    ///
    /// # Errors
    ///
    /// Expected and found, for an argument that the tool does not have or cannot use.
    fn command(&self, request: &CallToolRequestParams) -> Result<(&'static str, Vec<String>), String> {
        let Some((name, _, known)) = TOOLS.iter().find(|(name, ..)| *name == request.name) else {
            return Err(format!("expected check, show, explain or rules, found the tool {}", request.name));
        };
        let given = request.arguments.clone().unwrap_or_default();
        if let Some(other) = given.keys().find(|given| !known.iter().any(|(name, ..)| name == given)) {
            let names: Vec<&str> = known.iter().map(|(name, ..)| *name).collect();
            return Err(format!("expected {}, found the argument {other}", names.join(", ")));
        }
        let mut line = Vec::new();
        let mut places = Vec::new();
        for (name, kind, _) in *known {
            let value = given.get(*name);
            let texts = || texts(name, value);
            match kind {
                Kind::Paths => {
                    let paths = texts()?;
                    places = paths.into_iter().map(|path| self.inside(path)).collect::<Result<_, _>>()?;
                    if places.is_empty() {
                        places.push(self.folder.display().to_string());
                    }
                }
                Kind::Text | Kind::Texts => line.extend(texts()?.into_iter().map(|text| format!("--{name}={text}"))),
                Kind::Place => places.extend(texts()?.into_iter().map(str::to_owned)),
                Kind::Flag => match value {
                    None | Some(Value::Null | Value::Bool(false)) => {}
                    Some(Value::Bool(true)) => line.push(format!("--{name}")),
                    Some(other) => return Err(format!("expected true or false for {name}, found {other}")),
                },
            }
        }
        if *name == "check" {
            line.push(CHECKING.to_owned());
        }
        // What begins with a dash is a name here, and no option.
        line.push("--".to_owned());
        line.append(&mut places);
        Ok((name, line))
    }

    /// A path inside the folder.
    fn inside(&self, path: &str) -> Result<String, String> {
        let whole = self.folder.join(path).canonicalize();
        let inside = whole.ok().filter(|whole| whole.starts_with(&self.folder));
        inside.map(|path| path.display().to_string()).ok_or_else(|| {
            format!("expected a file or folder inside the served folder, found {path}: it is not there, or outside")
        })
    }

    /// Runs the command. Returns whether it gave a report, and what it wrote.
    async fn run(&self, name: &str, arguments: &[String]) -> std::io::Result<(bool, String)> {
        let mut child = Command::new(&self.program)
            .arg(name)
            .args(arguments)
            .current_dir(&self.folder)
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (out, err) = tokio::try_join!(limited(out), limited(err))?;
        let status = child.wait().await?;
        Ok(match status.code() {
            Some(0 | 1 | 3) => (true, out),
            _ => (false, if err.is_empty() { format!("the command ended with {status}") } else { err }),
        })
    }
}

/// The texts of an argument.
fn texts<'v>(name: &str, value: Option<&'v Value>) -> Result<Vec<&'v str>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(values)) => values
            .iter()
            .map(|value| value.as_str().ok_or_else(|| format!("expected texts for {name}, found {value}")))
            .collect(),
        Some(other) => Err(format!("expected a text for {name}, found {other}")),
    }
}

/// Reads all of a stream and keeps its beginning.
async fn limited(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let (mut kept, mut all) = (Vec::new(), 0);
    let mut part = vec![0; 16 << 10];
    loop {
        let length = stream.read(&mut part).await?;
        if length == 0 {
            break;
        }
        all += length;
        let room = LONGEST_ANSWER - kept.len();
        kept.extend_from_slice(&part[..length.min(room)]);
    }
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if all > kept.len() {
        // A character that was cut.
        text.truncate(text.trim_end_matches('\u{fffd}').len());
        text += &format!(
            "\n[cut: {} of {all} bytes are here. Ask for less: by client, key, namespace, time or rule.]\n",
            kept.len()
        );
    }
    Ok(text)
}
