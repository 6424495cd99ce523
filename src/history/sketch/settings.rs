//! Setting lines and their defaults.

use super::error::SketchError;
use super::syntax::{Client, Kind, Level, Recorded, Settings};
use super::text::Piece;

/// Words that begin a setting line.
pub const WORDS: [&str; 9] =
    ["column", "clock", "server", "client", "resource", "default", "recorded", "level", "uids"];

/// The clock of clients and servers without a declared one.
pub const CLOCK: &str = "wall";

const KINDS: [(&str, &str, &str, &str, bool); 26] = [
    ("pods", "", "v1", "Pod", true),
    ("nodes", "", "v1", "Node", false),
    ("services", "", "v1", "Service", true),
    ("endpoints", "", "v1", "Endpoints", true),
    ("configmaps", "", "v1", "ConfigMap", true),
    ("secrets", "", "v1", "Secret", true),
    ("events", "", "v1", "Event", true),
    ("namespaces", "", "v1", "Namespace", false),
    ("persistentvolumes", "", "v1", "PersistentVolume", false),
    ("persistentvolumeclaims", "", "v1", "PersistentVolumeClaim", true),
    ("replicationcontrollers", "", "v1", "ReplicationController", true),
    ("serviceaccounts", "", "v1", "ServiceAccount", true),
    ("deployments", "apps", "v1", "Deployment", true),
    ("replicasets", "apps", "v1", "ReplicaSet", true),
    ("statefulsets", "apps", "v1", "StatefulSet", true),
    ("daemonsets", "apps", "v1", "DaemonSet", true),
    ("jobs", "batch", "v1", "Job", true),
    ("leases", "coordination.k8s.io", "v1", "Lease", true),
    ("endpointslices", "discovery.k8s.io", "v1", "EndpointSlice", true),
    ("ingresses", "networking.k8s.io", "v1", "Ingress", true),
    ("poddisruptionbudgets", "policy", "v1", "PodDisruptionBudget", true),
    ("ippools", "whereabouts.cni.cncf.io", "v1alpha1", "IPPool", true),
    ("nodenetworkconfigs", "acn.azure.com", "v1alpha", "NodeNetworkConfig", true),
    ("overlappingrangeipreservations", "whereabouts.cni.cncf.io", "v1alpha1", "OverlappingRangeIPReservation", true),
    ("ciliumnodes", "cilium.io", "v2", "CiliumNode", false),
    ("widgets", "example.com", "v1", "Widget", true),
];

impl Default for Settings {
    fn default() -> Self {
        let kinds = KINDS.iter().map(|&(plural, group, version, kind, namespaced)| Kind {
            plural: plural.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespaced,
        });
        Settings {
            column: 1_000_000,
            clocks: Vec::new(),
            servers: Vec::new(),
            clients: Vec::new(),
            kinds: kinds.collect(),
            default_kind: 0,
            namespace: "default".to_owned(),
            uuids: false,
            recorded: Recorded::default(),
            level: Level::default(),
        }
    }
}

impl Settings {
    /// Applies a setting line.
    pub fn set(&mut self, word: &str, words: &[Piece<'_>], line: Piece<'_>) -> Result<(), SketchError> {
        let missing = |what: &str| SketchError::at(line.end(), what, "the end of the line");
        let first = *words.first().ok_or_else(|| missing(&format!("a name or value for {word:?}")))?;
        match word {
            "column" => {
                self.column = duration(first)?;
                if !(10_000..=60_000_000_000).contains(&self.column) {
                    return Err(first.unexpected("between 10us and 60s for a column"));
                }
            }
            "clock" => {
                let ahead = *words.get(1).ok_or_else(|| missing("an offset of the clock, as `+40ms`"))?;
                let ahead = match (ahead.strip("+"), ahead.strip("-")) {
                    (Some(rest), _) => duration(rest)?,
                    (_, Some(rest)) => -duration(rest)?,
                    _ => return Err(ahead.unexpected("an offset of the clock, as `+40ms` or `-2s`")),
                };
                self.clocks.retain(|(name, _)| name != first.text);
                self.clocks.push((first.text.to_owned(), ahead));
            }
            "server" => {
                let mut clock = CLOCK.to_owned();
                for option in &words[1..] {
                    match option.strip("clock=") {
                        Some(name) => clock = name.text.to_owned(),
                        None => return Err(option.unexpected("`clock=NAME`")),
                    }
                }
                self.servers.retain(|(name, _)| name != first.text);
                self.servers.push((first.text.to_owned(), clock));
            }
            "client" => {
                let index = self.client(first.text);
                for option in &words[1..] {
                    self.client_option(index, *option)?;
                }
            }
            "resource" => self.declare(first, &words[1..])?,
            "default" => match words {
                [kind] => self.default_kind = self.kind_of(*kind)?,
                [kind, word, namespace] if word.text == "in" => {
                    self.default_kind = self.kind_of(*kind)?;
                    self.namespace = namespace.text.to_owned();
                }
                _ => return Err(first.unexpected("`default RESOURCE` or `default RESOURCE in NAMESPACE`")),
            },
            "recorded" => self.recorded = recorded(first)?,
            "level" => self.level = level(first)?,
            _ => {
                self.uuids = match first.text {
                    "uuid" => true,
                    "verbatim" => false,
                    _ => return Err(first.unexpected("`uuid` or `verbatim`")),
                }
            }
        }
        Ok(())
    }

    /// Index of the client with this name. A new client gets the defaults.
    pub fn client(&mut self, alias: &str) -> usize {
        if let Some(index) = self.clients.iter().position(|c| c.alias == alias) {
            return index;
        }
        self.clients.push(Client {
            alias: alias.to_owned(),
            user: alias.to_owned(),
            agent: format!("{alias}/v1.34.1 (linux/amd64) kubernetes/93248f9"),
            clock: CLOCK.to_owned(),
            address: format!("10.0.0.{}", 10 + self.clients.len() % 240),
            pod: String::new(),
            recorded: self.recorded,
            level: self.level,
        });
        self.clients.len() - 1
    }

    fn client_option(&mut self, index: usize, option: Piece<'_>) -> Result<(), SketchError> {
        let (name, value) = option.split('=');
        let value =
            value.ok_or_else(|| option.unexpected("`user=`, `agent=`, `clock=`, `recorded=`, `level=`, ..."))?;
        let client = &mut self.clients[index];
        let text = value.text.to_owned();
        match name.text {
            "user" => client.user = text,
            "agent" => client.agent = text,
            "clock" => client.clock = text,
            "address" => client.address = text,
            "pod" => client.pod = text,
            "recorded" => client.recorded = recorded(value)?,
            "level" => client.level = level(value)?,
            _ => {
                return Err(name.unexpected("`user`, `agent`, `clock`, `address`, `pod`, `recorded` or `level`"));
            }
        }
        Ok(())
    }

    fn declare(&mut self, name: Piece<'_>, options: &[Piece<'_>]) -> Result<(), SketchError> {
        let (plural, group) = name.split('.');
        let group = group.map_or("", |g| g.text);
        if plural.text.len() < 2 || !plural.text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return Err(plural.unexpected("a plural in small letters, as `things.example.com`"));
        }
        let singular = plural.text.strip_suffix('s').unwrap_or(plural.text);
        let mut kind = Kind {
            plural: plural.text.to_owned(),
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: singular[..1].to_uppercase() + &singular[1..],
            namespaced: true,
        };
        for option in options {
            if let Some(word) = option.strip("kind=") {
                kind.kind = word.text.to_owned();
            } else if let Some(word) = option.strip("version=") {
                kind.version = word.text.to_owned();
            } else if option.text == "cluster" {
                kind.namespaced = false;
            } else {
                return Err(option.unexpected("`kind=`, `version=` or `cluster`"));
            }
        }
        self.kinds.retain(|k| (&k.plural, &k.group) != (&kind.plural, &kind.group));
        self.kinds.push(kind);
        Ok(())
    }

    /// Index of a kind by its plural, or by `plural.group`.
    pub fn find_kind(&self, name: &str) -> Option<usize> {
        let (plural, group) = match name.split_once('.') {
            Some((plural, group)) => (plural, Some(group)),
            None => (name, None),
        };
        self.kinds.iter().position(|k| k.plural == plural && group.is_none_or(|group| k.group == group))
    }

    fn kind_of(&self, name: Piece<'_>) -> Result<usize, SketchError> {
        self.find_kind(name.text)
            .ok_or_else(|| name.unexpected("a resource (others are declared: `resource things.example.com`)"))
    }

    /// Offset of a clock, in nanoseconds.
    pub fn ahead(&self, clock: &str) -> i64 {
        self.clocks.iter().find(|(name, _)| name == clock).map_or(0, |(_, ahead)| *ahead)
    }

    /// The clock of a server's audit log.
    pub fn server_clock(&self, server: &str) -> &str {
        self.servers.iter().find(|(name, _)| name == server).map_or(CLOCK, |(_, clock)| clock)
    }
}

fn recorded(word: Piece<'_>) -> Result<Recorded, SketchError> {
    match word.text {
        "capture" => Ok(Recorded::Capture),
        "audit" => Ok(Recorded::Audit),
        "both" => Ok(Recorded::Both),
        _ => Err(word.unexpected("`capture`, `audit` or `both`")),
    }
}

fn level(word: Piece<'_>) -> Result<Level, SketchError> {
    match word.text {
        "metadata" => Ok(Level::Metadata),
        "request" => Ok(Level::Request),
        "response" => Ok(Level::RequestResponse),
        _ => Err(word.unexpected("`metadata`, `request` or `response`")),
    }
}

/// Limit on durations: one day, so that sums of times cannot overflow.
const MAX_DURATION: i64 = 86_400_000_000_000;

/// Parses `40ms`, `2s` or `10us`, in nanoseconds.
pub fn duration(word: Piece<'_>) -> Result<i64, SketchError> {
    let expected = "a duration, as `40ms`, `2s` or `10us`";
    let digits = word.text.len() - word.text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit = match &word.text[digits..] {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(word.unexpected(expected)),
    };
    let number: i64 = word.text[..digits].parse().map_err(|_| word.unexpected(expected))?;
    let nanoseconds = number.checked_mul(unit).filter(|n| *n <= MAX_DURATION);
    nanoseconds.ok_or_else(|| word.unexpected("a duration of at most a day"))
}
