//! Protocol files in TOML, read and checked. Input: the text of a file, and the name of a fix. Output: a [`Protocol`], or every
//! mistake.

use super::error::ProtocolError;
use super::expression::Expression;
use super::protocol::{
    Act, Ask, Client, Key, Limits, Preconditions, Property, PropertyKind, Protocol, Resource, Resume, STOP, Server,
    Step, Variable, VariableKind, Watch,
};
use super::state::PREMISES;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    server: Server,
    #[serde(default)]
    object: Vec<WrittenObject>,
    client: Vec<WrittenClient>,
    /// Names of rules.
    #[serde(default)]
    properties: Vec<String>,
    /// A rules file: allocations for double-allocation, and invariants, each of which is a property.
    #[serde(default)]
    rules: String,
    #[serde(default)]
    fix: BTreeMap<String, WrittenFix>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenObject {
    key: String,
    #[serde(default)]
    fields: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenClient {
    name: String,
    user: Option<String>,
    #[serde(default)]
    crashes: bool,
    #[serde(default)]
    keeps: Vec<String>,
    /// One program, or several that share variables.
    #[serde(default)]
    steps: Vec<WrittenStep>,
    #[serde(default)]
    programs: Vec<Vec<WrittenStep>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenStep {
    name: Option<String>,
    /// The step exists only with one of these fixes.
    #[serde(default)]
    only_with: Vec<String>,
    /// The step is left out with any of these fixes.
    #[serde(default)]
    only_without: Vec<String>,
    list: Option<String>,
    get: Option<String>,
    watch: Option<String>,
    create: Option<String>,
    patch: Option<String>,
    apply: Option<String>,
    #[serde(default)]
    force: bool,
    delete: Option<String>,
    decide: Option<String>,
    #[serde(rename = "await")]
    wait: Option<String>,
    goto: Option<String>,
    when: Option<String>,
    /// The variable in which the client's own writes have to show first.
    barrier: Option<String>,
    #[serde(default)]
    switch: bool,
    #[serde(default)]
    stop: bool,
    into: Option<String>,
    resource_version: Option<String>,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    initial_events: bool,
    #[serde(default)]
    bookmarks: bool,
    #[serde(default)]
    resume: Resume,
    fields: Option<String>,
    /// The variable with the object that a write is based on.
    from: Option<String>,
    #[serde(default)]
    if_version: bool,
    #[serde(default)]
    if_uid: bool,
    /// What a write's decision rests on: variables and keys.
    #[serde(default)]
    because: BTreeMap<String, String>,
    #[serde(rename = "else")]
    otherwise: Option<String>,
    on_conflict: Option<String>,
    on_missing: Option<String>,
    on_expired: Option<String>,
    on_timeout: Option<String>,
    on_event: Option<String>,
}

/// What the explorer reads of a rules file.
#[derive(Debug, Default, Deserialize)]
struct Rules {
    #[serde(default)]
    allocation: Vec<WrittenAllocation>,
    #[serde(default)]
    invariant: Vec<WrittenInvariant>,
}

#[derive(Debug, Deserialize)]
struct WrittenAllocation {
    resource: String,
    value: Vec<String>,
    #[serde(flatten)]
    rest: toml::Table,
}

#[derive(Debug, Deserialize)]
struct WrittenInvariant {
    name: String,
    resource: String,
    expression: String,
    #[serde(default)]
    scope: String,
    #[serde(flatten)]
    rest: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenFix {
    about: String,
    /// What changes: for each step (`CLIENT.STEP`) and for `server` and `limits`, the members that are set.
    #[serde(default)]
    change: BTreeMap<String, toml::Table>,
}

/// A fix of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The name.
    pub name: String,
    /// The summary.
    pub about: String,
}

/// The fixes that a file declares, in the order of their names.
///
/// # Errors
/// If the file is no protocol.
pub fn fixes(text: &str) -> Result<Vec<Fix>, ProtocolError> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(file.fix.into_iter().map(|(name, fix)| Fix { name, about: fix.about }).collect())
}

/// Reads a protocol, with a fix applied or none.
///
/// # Errors
/// All mistakes in the file, or the first one if it is not TOML of the right shape; and a fix that it does not declare.
pub fn read(text: &str, fix: Option<&str>) -> Result<Protocol, ProtocolError> {
    let mut file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Some(name) = fix {
        let names = file.fix.keys().cloned().collect::<Vec<_>>().join(", ");
        let fix = file.fix.remove(name).ok_or_else(|| format!("there is no fix `{name}`; the fixes are: {names}"))?;
        file = changed(text, name, &fix).map_err(|error| format!("fix `{name}`: {error}"))?;
    }
    let mut reader = Reader { fix, ..Reader::default() };
    let protocol = reader.protocol(file);
    if reader.mistakes.is_empty() { Ok(protocol) } else { Err(reader.mistakes.join("\n").into()) }
}

/// The file with the changes of a fix.
fn changed(text: &str, name: &str, fix: &WrittenFix) -> Result<File, String> {
    let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    for (place, members) in &fix.change {
        if members.keys().any(|member| matches!(member.as_str(), "name" | "only-with" | "only-without")) {
            return Err(format!("`{place}`: a fix cannot change `name`, `only-with` or `only-without` of a step"));
        }
        let targets = match place.split_once('.') {
            None if matches!(place.as_str(), "server" | "limits") => {
                let section = table.entry(place.clone()).or_insert_with(|| toml::Table::new().into());
                section.as_table_mut().into_iter().collect()
            }
            Some((client, step)) => steps_of(&mut table, client, step).unwrap_or_default(),
            None => Vec::new(),
        };
        targets.into_iter().for_each(|target| target.extend(members.clone()));
    }
    let file: File = table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let has = |place: &str| match place.split_once('.') {
        Some((client, step)) => {
            let mut steps = file.client.iter().filter(|known| known.name == client).flat_map(WrittenClient::all_steps);
            steps.any(|known| known.name.as_deref() == Some(step) && known.is_in(Some(name)))
        }
        None => matches!(place, "server" | "limits"),
    };
    match fix.change.keys().find(|place| !has(place)) {
        Some(place) => Err(format!("`{place}` names no step that this fix has: write CLIENT.STEP, server or limits")),
        None => Ok(file),
    }
}

/// The steps of a name that a client has in any variant.
fn steps_of<'t>(table: &'t mut toml::Table, client: &str, step: &str) -> Option<Vec<&'t mut toml::Table>> {
    let is_named = |table: &&mut toml::Table, name: &str| table.get("name").and_then(toml::Value::as_str) == Some(name);
    let clients = table.get_mut("client")?.as_array_mut()?;
    let client = clients.iter_mut().filter_map(toml::Value::as_table_mut).find(|table| is_named(table, client))?;
    let mut steps = Vec::new();
    for (member, value) in client.iter_mut() {
        match (member.as_str(), value.as_array_mut()) {
            ("steps", Some(list)) => steps.extend(list.iter_mut()),
            ("programs", Some(programs)) => {
                steps.extend(programs.iter_mut().filter_map(toml::Value::as_array_mut).flatten());
            }
            _ => {}
        }
    }
    let named = steps.into_iter().filter_map(toml::Value::as_table_mut).filter(|table| is_named(table, step));
    Some(named.collect())
}

impl WrittenClient {
    /// The steps of all programs, in any variant.
    fn all_steps(&self) -> impl Iterator<Item = &WrittenStep> {
        self.steps.iter().chain(self.programs.iter().flatten())
    }
}

impl WrittenStep {
    /// Whether the step exists with a fix, or without any.
    fn is_in(&self, fix: Option<&str>) -> bool {
        let names_fix = |names: &[String]| fix.is_some_and(|fix| names.iter().any(|name| name == fix));
        (self.only_with.is_empty() || names_fix(&self.only_with)) && !names_fix(&self.only_without)
    }
}

/// Keys of a protocol, at most; resources and expressions as well.
const MAX_KEYS: usize = 64;

/// Steps of a protocol, at most: [`STOP`] is none of them.
const MAX_STEPS: usize = STOP as usize - 1;

#[derive(Default)]
struct Reader<'f> {
    fix: Option<&'f str>,
    mistakes: Vec<String>,
    /// The keys of all objects that some run has.
    made: Vec<String>,
    resources: Vec<Resource>,
    keys: Vec<Key>,
    expressions: Vec<Expression>,
    steps: Vec<Step>,
}

/// The place of a step, for messages.
struct Place<'p> {
    client: &'p str,
    number: usize,
}

impl Reader<'_> {
    fn protocol(&mut self, file: File) -> Protocol {
        let steps = file.client.iter().flat_map(WrittenClient::all_steps).count();
        if steps > MAX_STEPS || file.client.len() > MAX_KEYS {
            self.mistakes.push(format!("at most {MAX_STEPS} steps and {MAX_KEYS} clients are expected"));
            return Protocol::default();
        }
        let mut objects = Vec::new();
        for object in &file.object {
            let fields = serde_json::to_value(&object.fields).unwrap_or_default();
            if let Some(key) = self.key(&object.key, "an object") {
                objects.push((key, fields));
            }
        }
        // All keys are numbered before any variable has a place for each.
        for client in &file.client {
            for step in client.all_steps() {
                for key in [&step.get, &step.create, &step.patch, &step.delete].into_iter().flatten() {
                    self.key(key, &client.name);
                }
                for resource in [&step.list, &step.watch].into_iter().flatten() {
                    self.resource(resource);
                }
            }
        }
        self.check_names(&file);
        let clients = file.client.iter().map(|client| self.client(client)).collect();
        let properties = self.properties(&file.properties, &file.rules);
        if properties.is_empty() && self.mistakes.is_empty() {
            self.mistakes.push("a property is expected: `properties`, or an invariant in `rules`".to_owned());
        }
        Protocol {
            name: file.name,
            about: file.about,
            rules: file.rules,
            resources: std::mem::take(&mut self.resources),
            keys: std::mem::take(&mut self.keys),
            clients,
            steps: std::mem::take(&mut self.steps),
            properties,
            expressions: std::mem::take(&mut self.expressions),
            objects,
            limits: file.limits,
            server: file.server,
        }
    }

    /// Finds names that nothing has: fixes, and objects that no run has. A step with such a name would be in no run, and
    /// the protocol would look safe.
    fn check_names(&mut self, file: &File) {
        let steps = || file.client.iter().flat_map(WrittenClient::all_steps);
        self.made = file.object.iter().map(|object| object.key.clone()).collect();
        self.made.extend(steps().flat_map(|step| [step.create.clone(), step.apply.clone()]).flatten());
        let fixes: Vec<&str> = file.fix.keys().map(String::as_str).collect();
        for step in steps() {
            for name in step.only_with.iter().chain(&step.only_without).filter(|name| !fixes.contains(&name.as_str())) {
                self.mistakes.push(format!("there is no fix `{name}`; the fixes are: {}", fixes.join(", ")));
            }
            for key in [&step.get, &step.patch, &step.delete].into_iter().flatten() {
                if !self.made.contains(key) {
                    self.mistakes.push(format!("no `[[object]]`, `create` or `apply` makes `{key}`"));
                }
            }
            for resource in [&step.list, &step.watch].into_iter().flatten() {
                self.check_resource(resource);
            }
        }
        self.mistakes.dedup();
    }

    fn check_resource(&mut self, name: &str) {
        let is_of = |key: &String| key.split_once('/').is_some_and(|(resource, _)| resource == name);
        if !self.made.iter().any(is_of) {
            self.mistakes.push(format!("no `[[object]]`, `create` or `apply` makes an object of `{name}`"));
        }
    }

    fn resource(&mut self, name: &str) -> u8 {
        let known = self.resources.iter().position(|resource| resource.name == name);
        if known.is_none() && self.resources.len() == MAX_KEYS {
            self.mistakes.push(format!("at most {MAX_KEYS} resources are expected, found also `{name}`"));
            return 0;
        }
        known.unwrap_or_else(|| {
            self.resources.push(Resource { name: name.to_owned(), keys: Vec::new() });
            self.resources.len() - 1
        }) as u8
    }

    /// The number of a key such as `pods/web-0`.
    fn key(&mut self, text: &str, of: &str) -> Option<u8> {
        let Some((resource, name)) =
            text.split_once('/').filter(|(resource, name)| !resource.is_empty() && !name.is_empty())
        else {
            self.mistakes.push(format!("{of}: RESOURCE/NAME is expected, found `{text}`"));
            return None;
        };
        let resource = self.resource(resource);
        let known = self.keys.iter().position(|key| key.resource == resource && key.name == name);
        if known.is_none() && self.keys.len() == MAX_KEYS {
            self.mistakes.push(format!("at most {MAX_KEYS} objects are expected, found also `{text}`"));
            return None;
        }
        Some(known.unwrap_or_else(|| {
            self.keys.push(Key { resource, name: name.to_owned() });
            self.resources[usize::from(resource)].keys.push(self.keys.len() as u8 - 1);
            self.keys.len() - 1
        }) as u8)
    }

    fn client(&mut self, written: &WrittenClient) -> Client {
        let mut programs: Vec<Vec<&WrittenStep>> = Vec::new();
        for steps in std::iter::once(&written.steps).chain(&written.programs).filter(|steps| !steps.is_empty()) {
            programs.push(steps.iter().filter(|step| step.is_in(self.fix)).collect());
        }
        if programs.is_empty() {
            self.mistakes.push(format!("client `{}`: steps or programs are expected", written.name));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if written.name.is_empty() || !written.name.chars().all(is_plain) {
            self.mistakes
                .push(format!("a name of letters, digits, `.`, `-` and `_` is expected, found `{}`", written.name));
        }
        let variables = self.variables(written, &programs);
        let mut ranges = Vec::new();
        for program in &programs {
            let first = self.steps.len();
            ranges.push(first.min(254) as u8..(first + program.len()).min(254) as u8);
            for (number, step) in program.iter().enumerate() {
                let place = Place { client: &written.name, number: number + 1 };
                let step = self.step(step, &place, program, first, &variables);
                self.steps.push(step);
            }
        }
        Client {
            name: written.name.clone(),
            user: written.user.clone(),
            crashes: written.crashes,
            programs: ranges,
            variables,
        }
    }

    /// The variables of a client, by the steps that set them.
    fn variables(&mut self, written: &WrittenClient, programs: &[Vec<&WrittenStep>]) -> Vec<Variable> {
        let mut variables: Vec<Variable> = Vec::new();
        for program in programs {
            for step in program {
                let kind = match (&step.list, &step.watch, &step.get) {
                    (Some(resource), ..) | (_, Some(resource), _) => VariableKind::Resource(self.resource(resource)),
                    (.., Some(key)) => VariableKind::Object(self.key(key, &written.name).unwrap_or_default()),
                    _ => continue,
                };
                let Some(name) = &step.into else {
                    self.mistakes.push(format!("client `{}`: a read needs `into`, a variable", written.name));
                    continue;
                };
                match variables.iter().position(|variable| variable.name == *name) {
                    Some(at) if variables[at].kind == kind => {}
                    Some(_) => self.mistakes.push(format!(
                        "client `{}`: `{name}` holds one resource or one object, and steps set it from two",
                        written.name
                    )),
                    None => {
                        let kept = written.keeps.contains(name);
                        variables.push(Variable { name: name.clone(), kind, kept, shared: programs.len() > 1 });
                    }
                }
            }
        }
        variables
    }

    fn step(
        &mut self,
        written: &WrittenStep,
        place: &Place<'_>,
        program: &[&WrittenStep],
        first: usize,
        variables: &[Variable],
    ) -> Step {
        let next = if place.number == program.len() { STOP } else { (first + place.number) as u8 };
        let target = |reader: &mut Self, name: &Option<String>, default: u8| match name.as_deref() {
            None => default,
            Some("stop") => STOP,
            Some("next") => next,
            Some(name) => match program.iter().position(|step| step.name.as_deref() == Some(name)) {
                Some(at) => (first + at) as u8,
                None => {
                    reader.mistake(place, format!("there is no step `{name}` in this program"));
                    default
                }
            },
        };
        let own = (first + place.number - 1) as u8;
        let otherwise = target(self, &written.otherwise, STOP);
        let when = written.when.as_ref().and_then(|text| self.expression(place, text));
        let barrier = self.variable(place, written.barrier.as_ref(), variables);
        let step = Step {
            when,
            barrier,
            next,
            otherwise,
            on_conflict: target(self, &written.on_conflict, otherwise),
            on_missing: target(self, &written.on_missing, otherwise),
            on_expired: target(self, &written.on_expired, first as u8),
            on_timeout: target(self, &written.on_timeout, own),
            on_event: target(self, &written.on_event, own),
            because: Vec::new(),
            act: Act::Stop,
        };
        let goto = written.goto.as_ref().map(|_| target(self, &written.goto, STOP));
        let act = self.act(written, place, variables, goto);
        let because = written.because.iter().filter_map(|(name, key)| {
            Some((self.variable(place, Some(name), variables)?, self.key(key, place.client)?))
        });
        let because: Vec<(u8, u8)> = because.collect();
        if because.len() > PREMISES {
            self.mistake(
                place,
                format!("at most {PREMISES} premises in `because` are expected, found {}", because.len()),
            );
        }
        Step { act, because, ..step }
    }

    fn act(&mut self, written: &WrittenStep, place: &Place<'_>, variables: &[Variable], goto: Option<u8>) -> Act {
        let kinds = [
            written.list.is_some(),
            written.get.is_some(),
            written.watch.is_some(),
            written.create.is_some(),
            written.patch.is_some(),
            written.apply.is_some(),
            written.delete.is_some(),
            written.decide.is_some(),
            written.wait.is_some(),
            goto.is_some(),
            written.switch,
            written.stop,
        ];
        if kinds.iter().filter(|is| **is).count() != 1 {
            self.mistake(
                place,
                "exactly one of list, get, watch, create, patch, apply, delete, decide, await, goto, switch and stop is \
                 expected"
                    .to_owned(),
            );
            return Act::Stop;
        }
        let ask = self.ask(written, place, variables);
        let into = self.variable(place, written.into.as_ref(), variables).unwrap_or_default();
        let base = self.variable(place, written.from.as_ref(), variables);
        let preconditions = Preconditions { version: written.if_version, uid: written.if_uid };
        if base.is_none() && preconditions != Preconditions::default() {
            self.mistake(place, "a precondition needs `from`, the variable with the object".to_owned());
        }
        let fields = written.fields.as_ref().and_then(|text| self.expression(place, text));
        if let Some(resource) = &written.list {
            return Act::List { resource: self.resource(resource), ask, into };
        }
        if let Some(resource) = &written.watch {
            let initial = written.initial_events.then_some(ask);
            let (resource, resume, bookmarks) = (self.resource(resource), written.resume, written.bookmarks);
            return Act::Watch(Watch { resource, into, resume, initial, bookmarks });
        }
        if let Some(key) = &written.get {
            return Act::Get { key: self.key(key, place.client).unwrap_or_default(), ask, into };
        }
        if let Some(key) = &written.create {
            return Act::Create { key: self.key(key, place.client).unwrap_or_default(), fields };
        }
        if let Some(key) = &written.patch {
            return Act::Patch { key: self.key(key, place.client).unwrap_or_default(), fields, base, preconditions };
        }
        if let Some(key) = &written.apply {
            let (key, force) = (self.key(key, place.client).unwrap_or_default(), written.force);
            return Act::Apply { key, fields, base, preconditions, force };
        }
        if let Some(key) = &written.delete {
            return Act::Delete { key: self.key(key, place.client).unwrap_or_default(), base, preconditions };
        }
        if let Some(text) = &written.decide {
            return self.expression(place, text).map_or(Act::Stop, Act::Decide);
        }
        if let Some(text) = &written.wait {
            return self.expression(place, text).map_or(Act::Stop, Act::Await);
        }
        match goto {
            Some(target) => Act::Goto(target),
            None if written.switch => Act::Switch,
            None => Act::Stop,
        }
    }

    fn ask(&mut self, written: &WrittenStep, place: &Place<'_>, variables: &[Variable]) -> Ask {
        let names_version = !matches!(written.resource_version.as_deref(), None | Some("unset" | "0"));
        if written.exact && !(names_version && written.list.is_some()) {
            self.mistake(place, "`exact` needs a list whose resource-version is a variable".to_owned());
        }
        match written.resource_version.as_deref() {
            None | Some("unset") => Ask::Unset,
            Some("0") => Ask::Any,
            Some(name) => match variables.iter().position(|variable| variable.name == name) {
                Some(at) if written.exact => Ask::Exact(at as u8),
                Some(at) => Ask::NotOlderThan(at as u8),
                None => {
                    let message = format!("resource-version is \"unset\", \"0\" or a variable, found `{name}`");
                    self.mistake(place, message);
                    Ask::Unset
                }
            },
        }
    }

    fn variable(&mut self, place: &Place<'_>, name: Option<&String>, variables: &[Variable]) -> Option<u8> {
        let name = name?;
        let at = variables.iter().position(|variable| variable.name == *name);
        if at.is_none() {
            self.mistake(place, format!("no step of this client reads into `{name}`"));
        }
        at.map(|at| at as u8)
    }

    fn expression(&mut self, place: &Place<'_>, text: &str) -> Option<u16> {
        match Expression::read(text) {
            Ok(expression) => {
                self.expressions.push(expression);
                Some(self.expressions.len() as u16 - 1)
            }
            Err(message) => {
                self.mistake(place, format!("`{text}`: {message}"));
                None
            }
        }
    }

    fn properties(&mut self, names: &[String], rules: &str) -> Vec<Property> {
        let place = Place { client: "rules", number: 0 };
        let rules: Rules = toml::from_str(rules).unwrap_or_else(|error| {
            self.mistake(&place, error.to_string());
            Rules::default()
        });
        let mut properties = Vec::new();
        for name in names {
            let kind = match name.as_str() {
                "monotonic-reads" => PropertyKind::MonotonicReads,
                "read-your-writes" => PropertyKind::ReadYourWrites,
                "name-reuse" => PropertyKind::NameReuse,
                "dangling-reference" => PropertyKind::DanglingReference,
                "stale-premise" => PropertyKind::StalePremise,
                "double-allocation" => {
                    for WrittenAllocation { resource, value, rest } in &rules.allocation {
                        self.check_resource(resource);
                        self.refuse(&place, rest, &["name", "what", "title"]);
                        if value.len() != 1 || value.iter().any(|path| path.contains('[')) {
                            self.mistake(&place, "an allocation needs one path of a field as its `value`".to_owned());
                        }
                        let kind = PropertyKind::DoubleAllocation {
                            resource: self.resource(resource),
                            field: value.first().cloned().unwrap_or_default(),
                        };
                        properties.push(Property { name: name.clone(), kind });
                    }
                    continue;
                }
                _ => {
                    self.mistakes.push(format!(
                        "properties: monotonic-reads, read-your-writes, name-reuse, dangling-reference, stale-premise or \
                         double-allocation is expected, found `{name}`; invariants stand in `rules`"
                    ));
                    continue;
                }
            };
            properties.push(Property { name: name.clone(), kind });
        }
        for WrittenInvariant { name, resource, expression, scope, rest } in &rules.invariant {
            self.refuse(&place, rest, &["title", "message", "message-expression", "severity"]);
            if scope != "live" {
                self.mistake(&place, format!("invariant `{name}`: the scope `live` is expected"));
                continue;
            }
            self.check_resource(resource);
            let resource = self.resource(resource);
            if let Some(expression) = self.expression(&place, expression) {
                properties
                    .push(Property { name: name.clone(), kind: PropertyKind::Invariant { resource, expression } });
            }
        }
        properties
    }

    /// Refuses members of a rules file that would narrow a condition: without them it would be another one.
    fn refuse(&mut self, place: &Place<'_>, members: &toml::Table, known: &[&str]) {
        for member in members.keys().filter(|member| !known.contains(&member.as_str())) {
            self.mistake(place, format!("the explorer does not have `{member}`; write it into the expression"));
        }
    }

    fn mistake(&mut self, place: &Place<'_>, message: String) {
        self.mistakes.push(match place.number {
            0 => format!("{}: {message}", place.client),
            number => format!("client `{}`, step {number}: {message}", place.client),
        });
    }
}
