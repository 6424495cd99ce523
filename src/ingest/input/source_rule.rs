//! `--source`: the server, client, clock or cluster of files that do not name it.

use serde::{Deserialize, Serialize};

/// One rule: `--source 'GLOB:server=b,client=x,clock=c,cluster=k'`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRule {
    /// Pattern for the last names of a path; `*` stays within one name.
    pub glob: String,
    /// Server that wrote the file, or that answered.
    pub server: Option<String>,
    /// Client that received the evidence.
    pub client: Option<String>,
    /// Name of the clock of its times.
    pub clock: Option<String>,
    /// Name of its cluster. A packed history has one already.
    #[serde(skip)]
    pub cluster: Option<String>,
}

const KEYS: [&str; 4] = ["server=", "client=", "clock=", "cluster="];

impl SourceRule {
    /// Parses `GLOB:server=b,client=x,clock=c,cluster=k`.
    ///
    /// The glob ends at the first colon in front of a key, and a value at the first comma in front of a key. Names of
    /// users contain both characters (`system:node:node-1`, `CN=admin,O=ops`).
    #[doc(hidden)]
    pub fn parse(text: &str) -> Result<SourceRule, String> {
        let starts_key = |rest: &str| KEYS.iter().any(|key| rest.starts_with(key));
        let colon = text
            .match_indices(':')
            .find(|(at, _)| starts_key(&text[at + 1..]))
            .ok_or_else(|| format!("expected GLOB:server=NAME,client=NAME,clock=NAME,cluster=NAME, found `{text}`"))?
            .0;
        let mut rule = SourceRule { glob: text[..colon].to_owned(), ..SourceRule::default() };
        if rule.glob.is_empty() {
            return Err(format!("expected a path in front of the colon, found none in `{text}`"));
        }
        let mut rest = &text[colon + 1..];
        while !rest.is_empty() {
            let end = rest.match_indices(',').find(|(at, _)| starts_key(&rest[at + 1..])).map_or(rest.len(), |m| m.0);
            let (key, value) = rest[..end].split_once('=').unwrap_or((&rest[..end], ""));
            let field = match key {
                "server" => &mut rule.server,
                "client" => &mut rule.client,
                "cluster" => &mut rule.cluster,
                _ => &mut rule.clock,
            };
            if value.is_empty() {
                return Err(format!("expected a value for `{key}`, found none in `{text}`"));
            }
            if field.replace(value.to_owned()).is_some() {
                return Err(format!("`{text}` gives `{key}` twice"));
            }
            rest = rest.get(end + 1..).unwrap_or("");
        }
        Ok(rule)
    }
}

/// Whether the last names of the path match the names of the glob, one by one. A glob that begins with `/` must match
/// the whole path.
pub(in crate::ingest) fn matches_end(glob: &str, path: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        text.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect()
    };
    let (glob_names, path_names) = (names(glob), names(path));
    let Some(skipped) = path_names.len().checked_sub(glob_names.len()) else { return false };
    if glob_names.is_empty() || (glob.starts_with('/') && (skipped > 0 || !path.starts_with('/'))) {
        return false;
    }
    glob_names.iter().zip(&path_names[skipped..]).all(|(glob, name)| matches_name(glob, name))
}

/// Whether a name matches; `*` stands for any text. The parts between stars must appear in order.
fn matches_name(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_rule_may_name_users_that_contain_colons_and_commas() {
        let rule = SourceRule::parse("logs/kubelet*.jsonl:client=system:node:node-1,clock=n1").unwrap();
        assert_eq!(rule.glob, "logs/kubelet*.jsonl");
        assert_eq!(rule.client.as_deref(), Some("system:node:node-1"));
        assert_eq!(rule.clock.as_deref(), Some("n1"));
        let rule = SourceRule::parse("a.log:cluster=staging,client=CN=admin,O=ops,server=b").unwrap();
        assert_eq!(rule.cluster.as_deref(), Some("staging"));
        assert_eq!(rule.client.as_deref(), Some("CN=admin,O=ops"));
        assert_eq!(rule.server.as_deref(), Some("b"));
    }

    #[test]
    fn a_source_rule_without_glob_key_or_value_is_refused() {
        for text in ["", "a.log", "a.log:", "a.log:host=b", ":server=b", "a.log:server=", "a:server=b,server=c"] {
            assert!(SourceRule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_glob_matches_whole_names_at_the_end_of_the_path() {
        for (glob, path, expected) in [
            ("audit-*.log", "/var/log/audit-b.log", true),
            ("audit-*.log", "/var/log/audit-b.log.gz", false),
            ("*.log", "a/b.log", true),
            ("b.log", "/x/ab.log", false),
            ("b/*", "a/b/c", true),
            ("a/*", "a/b/c", false),
            ("/a/*/c", "/a/b/c", true),
            ("/b/c", "/a/b/c", false),
            ("./b.log", "b.log", true),
            ("*", "x", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*a", "a", false),
            ("", "x", false),
        ] {
            assert_eq!(matches_end(glob, path), expected, "{glob} {path}");
        }
    }
}
