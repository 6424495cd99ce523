//! A run of a protocol as a sketch: for people, and for `check`.

use super::machine::{Actor, Event, Machine, Outcome};
use super::protocol::{Act, Ask, Watch};
use super::state::{Change, NO_SERVER, State, revision, uid_name};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// A run, as its transitions.
pub struct Run<'m> {
    machine: &'m Machine,
    lines: Vec<String>,
    /// The name of each server of a state.
    servers: Vec<u8>,
    /// For each client, its life, and the stream that each of its programs has open.
    lives: Vec<u32>,
    streams: Vec<Vec<Option<u32>>>,
    next_stream: u32,
    next_decision: u32,
    /// For each variable that a GET has filled: the GET's line, until a decision takes it.
    gets: Vec<((u8, u8), usize)>,
}

/// The sketch of a run, whose steps are numbers of successors. `None` if there is no such run.
pub fn sketch(machine: &Machine, path: &[u32]) -> Option<String> {
    let protocol = machine.protocol();
    let mut run = Run {
        machine,
        lines: Vec::new(),
        servers: (0..protocol.limits.servers).collect(),
        lives: vec![1; protocol.clients.len()],
        streams: protocol.clients.iter().map(|client| vec![None; client.programs.len()]).collect(),
        next_stream: 1,
        next_decision: 1,
        gets: Vec::new(),
    };
    let mut state = super::system::TransitionSystem::initial(machine);
    run.objects(&state);
    for &successor in path {
        let mut number = 0;
        let mut taken = None;
        machine.transitions(&state, &mut |after, _, event, order| {
            if number == successor {
                taken = Some((after, event, *order));
            }
            number += 1;
        });
        let (after, event, order) = taken?;
        run.event(&state, &after, event);
        let names: Vec<u8> =
            run.servers.iter().enumerate().map(|(at, _)| run.servers[usize::from(order[at])]).collect();
        run.servers = names;
        state = after;
    }
    run.ends(&state);
    Some(run.text())
}

impl Run<'_> {
    fn text(&self) -> String {
        let protocol = self.machine.protocol();
        let mut text = String::new();
        for line in protocol.about.lines() {
            let _ = writeln!(text, "# {}", line.trim());
        }
        text.push_str("column   10ms\nrecorded both\n");
        for resource in protocol.resources.iter().filter(|resource| resource.name.contains('.')) {
            let _ = writeln!(text, "resource {}", resource.name);
        }
        for server in 0..protocol.limits.servers {
            let name = letter(server);
            let _ = writeln!(text, "server   {name} clock=apiserver-{}", name.to_ascii_lowercase());
        }
        for client in &protocol.clients {
            let user = client.user.clone().unwrap_or_else(|| format!("system:serviceaccount:default:{}", client.name));
            let _ = writeln!(text, "client   {} user={user} agent={}/v1", client.name, client.name);
        }
        text.push('\n');
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The creations of the objects that were there at the begin.
    fn objects(&mut self, state: &State) {
        let layout = &self.machine.layout;
        for number in 2..=layout.last(state) {
            let change = layout.change(state, number);
            if self.machine.protocol().objects.len() < usize::from(number) - 1 {
                break;
            }
            let key = self.key(change.key);
            let line = format!(
                "setup@A  CREATE {key}{} => {}",
                self.fields(change.content, state),
                self.object(state, number)
            );
            self.lines.push(line);
        }
    }

    /// The state at the end, which an auditor lists. Without it, no evidence shows that an object still stands.
    fn ends(&mut self, state: &State) {
        let last = self.machine.layout.last(state);
        for resource in 0..self.machine.protocol().resources.len() as u8 {
            let members = self.members(state, resource, last, "");
            self.lines.push(format!("auditor@A  LIST {} => {} {{{members}}}", self.resource(resource), revision(last)));
        }
    }

    fn act(&mut self, client: u8, server: u8, act: &str) {
        let name = &self.machine.protocol().clients[usize::from(client)].name;
        let server = if server == NO_SERVER { 0 } else { self.servers[usize::from(server)] };
        let line = format!("{name}/{}@{}  {act}", self.lives[usize::from(client)], letter(server));
        self.lines.push(line);
    }

    fn event(&mut self, before: &State, after: &State, event: Event) {
        match event {
            Event::Read { actor, server, revision } => self.read(before, after, actor, server, revision),
            Event::Delivered { actor, server, opened, revision } => {
                let event = self.delivery(after, revision);
                self.streamed(actor, server, opened, &event);
            }
            Event::Bookmark { actor, server, opened, revision: at } => {
                self.streamed(actor, server, opened, &format!("^{}", revision(at)));
            }
            Event::Wrote { actor, outcome } => self.wrote(before, after, actor, outcome),
            Event::Broke { actor } => self.more(actor, "broken", true),
            Event::Expired { actor } => self.more(actor, "!410", true),
            Event::Crashed { client } => {
                self.lives[usize::from(client)] += 1;
                self.gets.retain(|((of, _), _)| *of != client);
                self.streams[usize::from(client)].fill(None);
                let name = &self.machine.protocol().clients[usize::from(client)].name;
                self.lines.push(format!("# {name} crashes and starts again"));
            }
            Event::Late { actor, .. } => {
                let name = &self.machine.protocol().clients[usize::from(actor.client)].name;
                let verb = match self.machine.protocol().steps[usize::from(actor.step)].act {
                    Act::Create { .. } => "CREATE",
                    Act::Patch { .. } | Act::Apply { .. } => "PATCH",
                    _ => "DELETE",
                };
                let key = self.key(self.machine.target(actor.step));
                self.lines.push(format!("# the server commits the unanswered {verb} {key} of {name}"));
            }
            Event::Local { .. } | Event::Advanced => {}
        }
    }

    fn more(&mut self, actor: Actor, events: &str, ends: bool) {
        let stream = &mut self.streams[usize::from(actor.client)][usize::from(actor.program)];
        let Some(number) = *stream else { return };
        if ends {
            *stream = None;
        }
        let name = &self.machine.protocol().clients[usize::from(actor.client)].name;
        let line = format!("{name}/{}  ..s{number}  {events}", self.lives[usize::from(actor.client)]);
        self.lines.push(line);
    }

    fn ask(&self, before: &State, actor: Actor, ask: Ask) -> String {
        match ask {
            Ask::Unset => String::new(),
            Ask::Any => " rv=0".to_owned(),
            Ask::NotOlderThan(variable) => match self.machine.known_version(before, actor.client, variable) {
                0 => " rv=0".to_owned(),
                version => format!(" atleast={}", revision(version)),
            },
            Ask::Exact(variable) => {
                format!(" exact={}", revision(self.machine.layout.version(before, actor.client, variable)))
            }
        }
    }

    fn read(&mut self, before: &State, after: &State, actor: Actor, server: u8, at: u8) {
        let server = if server == NO_SERVER { self.machine.layout.server(before, actor.client) } else { server };
        let text = match self.machine.protocol().steps[usize::from(actor.step)].act {
            Act::Get { key, ask, .. } => {
                let version = self.machine.layout.version_at(after, key, at);
                let is_there = version > 0 && self.machine.layout.change(after, version).content > 0;
                let answer = if is_there { self.object(after, version) } else { "!404".to_owned() };
                let ask = self.ask(before, actor, ask).replace("atleast", "rv");
                format!("GET {}{ask} => {answer}", self.key(key))
            }
            Act::List { resource, ask, .. } => {
                let ask = self.ask(before, actor, ask);
                format!(
                    "LIST {}{ask} => {} {{{}}}",
                    self.resource(resource),
                    revision(at),
                    self.members(after, resource, at, "")
                )
            }
            Act::Watch(Watch { resource, initial, .. }) => {
                let number = self.next_stream;
                self.next_stream += 1;
                self.streams[usize::from(actor.client)][usize::from(actor.program)] = Some(number);
                let ask = self.ask(before, actor, initial.unwrap_or(Ask::Unset)).replace("atleast", "rv");
                let members = self.members(after, resource, at, "+");
                format!("WATCH {} initial{ask} as s{number}  {members} ^^{}", self.resource(resource), revision(at))
            }
            _ => return,
        };
        self.act(actor.client, server, &text);
        if let Act::Get { into, .. } = self.machine.protocol().steps[usize::from(actor.step)].act {
            self.gets.retain(|(variable, _)| *variable != (actor.client, into));
            self.gets.push(((actor.client, into), self.lines.len() - 1));
        }
    }

    /// The objects of a resource at a revision.
    fn members(&self, state: &State, resource: u8, at: u8, sign: &str) -> String {
        let layout = &self.machine.layout;
        let keys = &self.machine.protocol().resources[usize::from(resource)].keys;
        let versions = keys.iter().map(|key| layout.version_at(state, *key, at));
        let there = versions.filter(|version| *version > 0 && layout.change(state, *version).content > 0);
        there.map(|version| format!("{sign}{}", self.object(state, version))).collect::<Vec<_>>().join(" ")
    }

    /// The change at a revision as an event of a stream.
    fn delivery(&self, state: &State, at: u8) -> String {
        let layout = &self.machine.layout;
        let change = layout.change(state, at);
        let before = layout.version_at(state, change.key, at - 1);
        let was_there = before > 0 && layout.change(state, before).content > 0;
        match (change.content, was_there) {
            (0, _) => {
                let last = layout.change(state, before);
                let shown = if self.machine.protocol().server.old_version_in_deletions { before } else { at };
                format!(
                    "-{}:u{}@{}{}",
                    self.key(change.key),
                    last.uid,
                    revision(shown),
                    self.fields(last.content, state)
                )
            }
            (_, false) => format!("+{}", self.object(state, at)),
            (_, true) => format!("~{}", self.object(state, at)),
        }
    }

    /// An event of a stream, which was opened at a version if it was not open.
    fn streamed(&mut self, actor: Actor, server: u8, opened: Option<u8>, event: &str) {
        match opened {
            None => self.more(actor, event, false),
            Some(from) => {
                let Act::Watch(Watch { resource, bookmarks, .. }) =
                    self.machine.protocol().steps[usize::from(actor.step)].act
                else {
                    return;
                };
                let number = self.next_stream;
                self.next_stream += 1;
                self.streams[usize::from(actor.client)][usize::from(actor.program)] = Some(number);
                let asks = if bookmarks { " bookmarks" } else { "" };
                let (name, from) = (self.resource(resource), revision(from));
                let text = format!("WATCH {name} from {from}{asks} as s{number}  {event}");
                self.act(actor.client, server, &text);
            }
        }
    }

    fn wrote(&mut self, before: &State, after: &State, actor: Actor, outcome: Outcome) {
        let machine = self.machine;
        let step = &machine.protocol().steps[usize::from(actor.step)];
        let server = machine.layout.server(before, actor.client);
        let key = machine.target(actor.step);
        let (base, preconditions, fields) = match step.act {
            Act::Patch { base, preconditions, fields, .. } | Act::Apply { base, preconditions, fields, .. } => {
                (base, preconditions, fields)
            }
            Act::Delete { base, preconditions, .. } => (base, preconditions, None),
            Act::Create { fields, .. } => (None, Default::default(), fields),
            _ => return,
        };
        let rests = base.map(|variable| (variable, key)).into_iter().chain(step.because.iter().copied());
        let rests: Vec<(u8, u8)> = rests.collect();
        let decision = if rests.is_empty() {
            String::new()
        } else {
            self.next_decision += 1;
            format!(" for d{}", self.next_decision - 1)
        };
        for (variable, key) in rests {
            // The decision takes the GET itself, or else what the client remembers.
            if let Some(at) = self.gets.iter().position(|(of, _)| *of == (actor.client, variable)) {
                let (_, line) = self.gets.swap_remove(at);
                self.lines[line] = self.lines[line].replacen(" => ", &format!("{decision} => "), 1);
                continue;
            }
            let version = machine.entry(before, actor.client, variable, key);
            let is_there = version > 0 && machine.layout.change(before, version).content > 0;
            let object = if is_there { self.object(before, version) } else { "absent".to_owned() };
            self.act(actor.client, server, &format!("READ {}{decision} => {object}", self.key(key)));
        }
        let known = base.map_or(0, |variable| machine.entry(before, actor.client, variable, key));
        let uid = if preconditions.uid && known > 0 {
            format!(":u{}", machine.layout.change(before, known).uid)
        } else {
            String::new()
        };
        let answered = |at: u8| self.object(after, at);
        let current = machine.layout.current(before, key);
        let sent = fields.and_then(|expression| machine.fields_of(before, actor.client, expression));
        let is_gone = |at: u8| machine.layout.change(after, at).content == 0;
        let marked = |at: u8, uid: u8, content: &Json, mark: &str| {
            let mut fields = self.attributes(content, after);
            fields.push(mark.to_owned());
            format!("{}:u{uid}@{}{}", self.key(key), revision(at), bracketed(&fields))
        };
        let answer = match (outcome, current) {
            // The answer to a write that removes the last finalizer is the object with its former version.
            (Outcome::Committed(at), Some((version, change))) if is_gone(at) && sent.is_some() => {
                let mut last = (*machine.contents.value(change.content)).clone();
                if let Some(metadata) = last["metadata"].as_object_mut() {
                    metadata.remove("finalizers");
                    metadata.remove("deletionTimestamp");
                }
                marked(version, change.uid, &last, "gone")
            }
            (Outcome::Committed(at), Some((_, change))) if is_gone(at) && machine.shows_revision(after, at) => {
                marked(at, change.uid, &machine.contents.value(change.content), "gone")
            }
            (Outcome::Committed(at), _) if is_gone(at) => format!("ok:u{}", machine.layout.change(after, at).uid),
            (Outcome::Committed(at), None) if !matches!(step.act, Act::Create { .. }) => {
                let change = machine.layout.change(after, at);
                marked(at, change.uid, &machine.contents.value(change.content), "created")
            }
            (Outcome::Committed(at), _) => answered(at),
            (Outcome::Unchanged, current) => current.map_or_else(|| "?".to_owned(), |(version, _)| answered(version)),
            (Outcome::Conflict, _) => "!409".to_owned(),
            (Outcome::Invalid, _) => "!422".to_owned(),
            (Outcome::Missing, _) => "!404".to_owned(),
            (Outcome::Unanswered(_), _) => "?".to_owned(),
        };
        let sent = sent.map(|fields| bracketed(&self.attributes(&fields, before))).unwrap_or_default();
        let name = self.key(key);
        let text = match step.act {
            Act::Create { .. } => format!("CREATE {name}{sent}{decision} => {answer}"),
            Act::Patch { .. } => {
                let test = if preconditions.version && known > 0 {
                    format!(" test(@{})", revision(known))
                } else {
                    String::new()
                };
                format!("PATCH {name}{uid}{sent}{test}{decision} => {answer}")
            }
            Act::Apply { .. } => {
                let at =
                    if preconditions.version && known > 0 { format!("@{}", revision(known)) } else { String::new() };
                format!("PATCH {name}{uid}{at}{sent} apply{decision} => {answer}")
            }
            _ => {
                let at =
                    if preconditions.version && known > 0 { format!("@{}", revision(known)) } else { String::new() };
                format!("DELETE {name}{uid}{at}{decision} => {answer}")
            }
        };
        self.act(actor.client, server, &text);
    }

    /// The plural of a resource. Sketches name its group once, at their begin.
    fn resource(&self, resource: u8) -> &str {
        let name = &self.machine.protocol().resources[usize::from(resource)].name;
        name.split('.').next().unwrap_or(name)
    }

    fn key(&self, key: u8) -> String {
        let key = &self.machine.protocol().keys[usize::from(key)];
        format!("{}/{}", self.resource(key.resource), key.name)
    }

    /// The object with a version.
    fn object(&self, state: &State, version: u8) -> String {
        let Change { key, content, uid, .. } = self.machine.layout.change(state, version);
        format!("{}:u{uid}@{}{}", self.key(key), revision(version), self.fields(content, state))
    }

    fn fields(&self, content: super::content::ContentId, state: &State) -> String {
        if content == 0 {
            return String::new();
        }
        bracketed(&self.attributes(&self.machine.contents.value(content), state))
    }

    /// Fields as attributes of a sketch.
    fn attributes(&self, fields: &Json, state: &State) -> Vec<String> {
        let mut found = Vec::new();
        flatten(fields, "", &mut |path, value| match path {
            ".owner" => found.extend(value.as_str().map(|uid| self.owner(uid, state))),
            ".metadata.deletionTimestamp" => found.push("deleting".to_owned()),
            ".metadata.finalizers" => {
                let finalizers = value.as_array().into_iter().flatten().filter_map(Json::as_str);
                found.extend(finalizers.map(|finalizer| format!("finalizer={finalizer}")));
            }
            _ if path.starts_with(".metadata.managedFields") => {}
            _ => found.push(format!("{path}={value}")),
        });
        found
    }

    /// An owner reference.
    fn owner(&self, uid: &str, state: &State) -> String {
        let layout = &self.machine.layout;
        let of = (1..=layout.last(state)).map(|at| layout.change(state, at)).find(|change| uid_name(change.uid) == uid);
        let Some(change) = of.filter(|change| usize::from(change.key) < self.machine.protocol().keys.len()) else {
            return format!(".owner={uid}");
        };
        let key = &self.machine.protocol().keys[usize::from(change.key)];
        let kind = self.resource(key.resource).trim_end_matches('s');
        let kind: String =
            kind.chars().enumerate().map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c }).collect();
        format!("owner={kind}/{}:{uid}", key.name)
    }
}

/// Attributes as a sketch has them behind an object.
fn bracketed(attributes: &[String]) -> String {
    format!("[{}]", attributes.join(" "))
}

/// Visits every field that is not a map, with its path.
fn flatten(value: &Json, path: &str, visit: &mut dyn FnMut(&str, &Json)) {
    match value {
        Json::Object(fields) => {
            for (name, value) in fields {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let step = match !name.is_empty() && name.chars().all(is_plain) {
                    true => format!(".{name}"),
                    false => format!("[{}]", Json::from(name.as_str())),
                };
                flatten(value, &format!("{path}{step}"), visit);
            }
        }
        value => visit(path, value),
    }
}

/// The name of a server.
fn letter(server: u8) -> char {
    char::from(b'A' + server)
}
