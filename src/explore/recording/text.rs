//! The text of a protocol that was taken from a recording.

use super::client::{Ask, Base, Client, OwnWrite, Reflector};
use super::{Scene, Write, WriteKind};
use crate::history::KeyId;
use std::fmt::Write as _;

/// The steps of one program.
type Program = Vec<String>;

/// A fix: its name and its summary.
type Fix = (&'static str, &'static str);

/// The fixes of a protocol, with the members that each changes.
#[derive(Default)]
struct Fixes(Vec<(Fix, Vec<String>)>);

impl Fixes {
    fn add(&mut self, fix: Fix) -> &mut Vec<String> {
        let at = self.0.iter().position(|(known, _)| *known == fix).unwrap_or_else(|| {
            self.0.push((fix, Vec::new()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn change(&mut self, fix: Fix, place: &str, members: &str) {
        self.add(fix).push(format!("change.{place} = {{ {members} }}"));
    }
}

const QUORUM: Fix = ("quorum-reads", "every read asks for the most recent state");
const NOT_OLDER: Fix =
    ("not-older-than", "the first list asks for the most recent state, and later ones for no older one than the last");
const WATCH_LIST: Fix =
    ("watch-list", "streams begin with the initial events of the most recent state, in place of lists");
const HIGHEST: Fix = ("highest-version", "a broken stream resumes from the highest version that was seen");
const SERVER: Fix = ("server-fix", "the event of a deletion has the revision of the deletion");
const UID: Fix = ("uid-in-the-write", "each write names the uid of the object that the client knows");
const VERSION: Fix = ("version-in-the-write", "each write names the version of the object that the client knows");
const LIVE_GET: Fix = ("live-get", "the client reads each object from etcd right before it writes it");
const LIVE_PREMISE: Fix = ("live-premise", "the client reads from etcd what its decision rests on");

/// The text.
pub fn protocol(scene: &Scene<'_>, client: &Client) -> String {
    let finding = scene.finding;
    let mut fixes = Fixes::default();
    let mut programs: Vec<Program> = Vec::new();
    for (nth, reflector) in client.reflectors.iter().enumerate() {
        programs.push(reflector_program(scene, nth, reflector, &mut fixes));
    }
    for (nth, (key, ask)) in client.gets.iter().enumerate() {
        let (name, into) = (format!("get-{nth}"), format!("got_{nth}"));
        let get =
            format!("name = \"{name}\", get = {}, into = \"{into}\"{}", quoted(&scene.keys[key]), asked(*ask, &into));
        programs.push(vec![get, format!("goto = \"{name}\"")]);
        if *ask != Ask::Fresh {
            fixes.change(QUORUM, &place(&name), UNSET);
        }
    }
    if client.switches {
        let switch = "name = \"switch\", switch = true".to_owned();
        programs.push(vec![switch, "goto = \"switch\"".to_owned()]);
    }
    for (nth, write) in client.writes.iter().enumerate() {
        programs.push(write_program(scene, client, nth, write, &mut fixes));
    }
    if scene.is_old {
        fixes.change(SERVER, "server", "old-version-in-deletions = false");
    }
    let mut text = String::new();
    let _ = writeln!(text, "# From the finding {} of {}.", finding.id, finding.rule);
    let _ = writeln!(
        text,
        "# The steps of `others` are in the recorded order. Each waits until the object is there, or gone."
    );
    let _ = writeln!(text, "name = \"from-{}\"", finding.rule);
    let _ = writeln!(text, "about = {}", quoted(&finding.summary));
    let _ = writeln!(text, "properties = [\"{}\"]", finding.rule);
    let _ = writeln!(
        text,
        "limits = {{ servers = {}, writes = {}, crashes = {}, breaks = {}, expirations = {}, timeouts = {} }}",
        client.servers,
        scene.writes.len() + 1,
        client.crashes.min(2),
        client.breaks.min(2),
        client.expirations,
        client.timeouts,
    );
    if scene.is_old {
        let _ = writeln!(text, "server = {{ old-version-in-deletions = true }}");
    }
    for key in &scene.present {
        let _ = writeln!(text, "\n[[object]]\nkey = {}", quoted(&scene.keys[key]));
    }
    let others: Vec<&Write> = scene.writes.iter().filter(|write| !write.is_own).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "\n[[client]]\nname = \"others\"\nsteps = [");
        for (nth, write) in others.iter().enumerate() {
            let _ = writeln!(text, "    {},{}", other_step(scene, nth + 1, write), note(scene, write));
        }
        let _ = writeln!(text, "]");
    }
    let _ = writeln!(text, "\n[[client]]\nname = \"client\"");
    if let Some(user) = &client.user {
        let _ = writeln!(text, "user = {}", quoted(user));
    }
    let _ = writeln!(text, "crashes = true");
    let _ = writeln!(text, "programs = [");
    for program in &programs {
        let _ = writeln!(text, "    [");
        for step in program {
            let _ = writeln!(text, "        {{ {step} }},");
        }
        let _ = writeln!(text, "    ],");
    }
    let _ = writeln!(text, "]");
    for ((name, about), changes) in &fixes.0 {
        let _ = writeln!(text, "\n[fix.{name}]\nabout = {}", quoted(about));
        for change in changes {
            let _ = writeln!(text, "{change}");
        }
    }
    text
}

/// The member that lets a read ask for the most recent state.
const UNSET: &str = "resource-version = \"unset\"";

/// The place of a step of the client, for a fix.
fn place(step: &str) -> String {
    format!("\"client.{step}\"")
}

/// A text of TOML: that of JSON, without the one control character that JSON may contain.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace('\u{7f}', "")).to_string()
}

/// The comment behind a step: who wrote it, and at which revision.
fn note(scene: &Scene<'_>, write: &Write) -> String {
    let who = match write.operation.is_some() {
        true => scene.history.client_name(scene.history.operation(write.operation).incarnation),
        false => "a client without a record",
    };
    let who: String = who.chars().filter(|c| !c.is_control()).collect();
    match write.revision {
        Some(revision) => format!(" # {who}, revision {revision}"),
        None => format!(" # {who}"),
    }
}

fn other_step(scene: &Scene<'_>, nth: usize, write: &Write) -> String {
    let (verb, key) = (write.kind.word(), quoted(&scene.keys[&write.key]));
    let rest = match write.kind {
        WriteKind::Create => format!(", on-conflict = \"w{nth}\""),
        WriteKind::Patch | WriteKind::Apply => {
            format!(", fields = \"{{'written': 'w{nth}'}}\", on-missing = \"w{nth}\"")
        }
        WriteKind::Delete => format!(", on-missing = \"w{nth}\""),
    };
    format!("{{ name = \"w{nth}\", {verb} = {key}{rest} }}")
}

/// The members of a read that say which version it asks for.
fn asked(ask: Ask, variable: &str) -> String {
    match ask {
        Ask::Any => ", resource-version = \"0\"".to_owned(),
        Ask::NotOlder => format!(", resource-version = {}", quoted(variable)),
        Ask::Fresh => String::new(),
    }
}

fn reflector_program(scene: &Scene<'_>, nth: usize, reflector: &Reflector, fixes: &mut Fixes) -> Program {
    let (resource, variable) = (quoted(&scene.resource(reflector.resource)), &reflector.variable);
    let into = format!("into = \"{variable}\"");
    let (first, again, watch) = (format!("list-{nth}"), format!("relist-{nth}"), format!("watch-{nth}"));
    let mut steps = Vec::new();
    let list = |name: &str, ask: Ask| format!("name = \"{name}\", list = {resource}, {into}{}", asked(ask, variable));
    if let Some(ask) = reflector.initial_events {
        let from_begin = format!("{into}, initial-events = true{}", asked(ask, variable));
        steps.push(format!("name = \"{watch}\", watch = {resource}, {from_begin}, on-expired = \"{again}\""));
        steps.push(format!("name = \"{again}\", watch = {resource}, {from_begin}"));
        steps.push(format!("goto = \"{watch}\""));
        if ask != Ask::Fresh {
            fixes.change(WATCH_LIST, &place(&watch), UNSET);
            fixes.change(WATCH_LIST, &place(&again), UNSET);
        }
        return steps;
    }
    let lists = if reflector.watches { ", only-without = [\"watch-list\"]" } else { "" };
    steps.push(list(&first, reflector.first) + lists);
    if reflector.watches {
        steps.push(format!("name = \"{watch}\", watch = {resource}, {into}, on-expired = \"{again}\""));
    }
    steps.push(list(&again, reflector.again) + lists);
    if reflector.watches {
        let only = "initial-events = true, only-with = [\"watch-list\"]";
        steps.push(format!("name = \"{again}\", watch = {resource}, {into}, {only}"));
        fixes.change(WATCH_LIST, &place(&watch), "initial-events = true");
        if scene.is_old {
            fixes.change(HIGHEST, &place(&watch), "resume = \"highest\"");
        }
    }
    steps.push(format!("goto = \"{}\"", if reflector.watches { &watch } else { &again }));
    if reflector.first != Ask::Fresh || reflector.again != Ask::Fresh {
        fixes.change(QUORUM, &place(&first), UNSET);
        fixes.change(QUORUM, &place(&again), UNSET);
        fixes.change(NOT_OLDER, &place(&first), UNSET);
        fixes.change(NOT_OLDER, &place(&again), &format!("resource-version = \"{variable}\""));
    }
    steps
}

fn write_program(scene: &Scene<'_>, client: &Client, nth: usize, write: &OwnWrite, fixes: &mut Fixes) -> Program {
    let mut steps = Vec::new();
    let name = format!("write-{nth}");
    let object = &scene.keys[&write.key];
    let short = |key: &KeyId| scene.keys[key].split_once('/').map_or("", |(_, name)| name).to_owned();
    let mut conditions = Vec::new();
    let mut because = Vec::new();
    for (key, is_there, reflector) in &write.premises {
        let variable = &client.reflectors[*reflector].variable;
        let not = if *is_there { "" } else { "!" };
        conditions.push(format!("{not}('{}' in {variable})", short(key)));
        because.push(format!("{variable} = {}", quoted(&scene.keys[key])));
    }
    let sent = |base: Option<&str>, because: &[String], conditions: &[String]| {
        let mut step = format!("{} = {}", write.kind.word(), quoted(object));
        if let Some(base) = base {
            let _ = write!(step, ", from = \"{base}\"");
        }
        if matches!(write.kind, WriteKind::Patch | WriteKind::Apply) {
            let _ = write!(step, ", fields = \"{{'written': '{name}'}}\"");
        }
        // The answers show that no other manager refused it.
        if write.kind == WriteKind::Apply {
            let _ = write!(step, ", force = true");
        }
        for (is_set, member) in [(write.if_uid, "if-uid"), (write.if_version, "if-version")] {
            if is_set && base.is_some() {
                let _ = write!(step, ", {member} = true");
            }
        }
        if !because.is_empty() {
            let _ = write!(step, ", because = {{ {} }}", because.join(", "));
        }
        if !conditions.is_empty() {
            let _ = write!(step, ", when = {}", quoted(&conditions.join(" && ")));
        }
        step
    };
    if write.base != Base::Nothing {
        for (is_set, fix, member) in [(write.if_uid, UID, "if-uid"), (write.if_version, VERSION, "if-version")] {
            if !is_set {
                fixes.change(fix, &place(&name), &format!("{member} = true"));
            }
        }
    }
    match write.base {
        Base::Get(ask) => {
            let into = format!("object_{nth}");
            steps.push(format!(
                "name = \"look-{nth}\", get = {}, into = \"{into}\"{}",
                quoted(object),
                asked(ask, &into)
            ));
            steps.push(format!("decide = \"{into} != null\", else = \"look-{nth}\""));
            let step = sent(Some(&into), &because, &conditions);
            steps.push(format!("name = \"{name}\", {step}, else = \"look-{nth}\""));
            if ask != Ask::Fresh {
                fixes.change(LIVE_GET, &place(&format!("look-{nth}")), UNSET);
            }
        }
        Base::Reflector(reflector) => {
            let variable = &client.reflectors[reflector].variable;
            conditions.push(format!("'{}' in {variable}", short(&write.key)));
            let step = sent(Some(variable), &because, &conditions);
            let live = format!("live_{nth}");
            let when = quoted(&conditions.join(" && "));
            steps.push(format!("name = \"wait-{nth}\", await = {when}, only-with = [\"live-get\"]"));
            steps.push(format!("get = {}, into = \"{live}\", only-with = [\"live-get\"]", quoted(object)));
            steps.push(format!("decide = \"{live} != null\", else = \"wait-{nth}\", only-with = [\"live-get\"]"));
            let from_live = sent(Some(&live), &because, &[]);
            steps.push(format!("{from_live}, else = \"wait-{nth}\", only-with = [\"live-get\"]"));
            steps.push(format!("name = \"{name}\", {step}, else = \"{name}\", only-without = [\"live-get\"]"));
            fixes.add(LIVE_GET);
        }
        Base::Nothing if write.premises.is_empty() => steps.push(sent(None, &because, &conditions)),
        Base::Nothing => {
            let when = quoted(&conditions.join(" && "));
            steps.push(format!("name = \"wait-{nth}\", await = {when}, only-with = [\"live-premise\"]"));
            let (mut truths, mut live) = (Vec::new(), Vec::new());
            for (at, (key, is_there, _)) in write.premises.iter().enumerate() {
                let into = format!("premise_{nth}_{at}");
                steps.push(format!(
                    "get = {}, into = \"{into}\", only-with = [\"live-premise\"]",
                    quoted(&scene.keys[key])
                ));
                truths.push(format!("{into} {} null", if *is_there { "!=" } else { "==" }));
                live.push(format!("{into} = {}", quoted(&scene.keys[key])));
            }
            let truth = quoted(&truths.join(" && "));
            steps.push(format!("decide = {truth}, else = \"wait-{nth}\", only-with = [\"live-premise\"]"));
            steps.push(format!("{}, else = \"wait-{nth}\", only-with = [\"live-premise\"]", sent(None, &live, &[])));
            let step = sent(None, &because, &conditions);
            steps.push(format!("name = \"{name}\", {step}, else = \"{name}\", only-without = [\"live-premise\"]"));
            fixes.add(LIVE_PREMISE);
        }
    }
    steps
}
