//! Paths into objects, in the syntax of declarations.
//!
//! ```text
//! spec.nodeName                                            a member of a member
//! spec.ports[*].nodePort                                   of every element (of a list, or of a map's values)
//! spec.allocations[*].key()                                the keys of a map
//! metadata.annotations["example.com/a.b"]                  a name that has dots
//! metadata.annotations["example.com/list"].json()[*].ip    inside a text that is JSON
//! ```

use std::fmt;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The member with this name.
    Member(String),
    /// Every element of a list, or every value of a map.
    Each,
    /// The key of the value in its map.
    Key,
    /// The value of a text that is JSON.
    Json,
}

/// A path: at least one step, the first a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The steps from the object inward.
    pub steps: Vec<Step>,
}

/// Most steps of a path. Objects of the API are much less deep.
const MAX_STEPS: usize = 32;

/// Longest path in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Error of a text that is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// Offset at which the text stops being a path.
    pub at: usize,
    /// Description of valid text at that offset.
    pub expected: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no path: {} is expected", self.expected)
    }
}

impl Path {
    /// Parses a path.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let mut steps = Vec::new();
        let mut at = 0;
        let wrong = |at, expected| Err(PathError { at, expected });
        if text.len() > MAX_BYTES {
            return wrong(0, "a path of 4096 bytes at most");
        }
        while at < text.len() {
            if steps.len() == MAX_STEPS {
                return wrong(at, "the end (a path has 32 steps at most)");
            }
            let rest = &text[at..];
            if rest.starts_with("[*]") {
                steps.push(Step::Each);
                at += 3;
            } else if rest.starts_with(".json()") {
                steps.push(Step::Json);
                at += 7;
            } else if rest.starts_with(".key()") {
                if steps.last() != Some(&Step::Each) {
                    return wrong(at, "[*] before .key()");
                }
                steps.push(Step::Key);
                at += 6;
                if at < text.len() {
                    return wrong(at, "the end after .key()");
                }
            } else if let Some(quoted) = rest.strip_prefix("[\"") {
                let Some(end) = quoted.find("\"]") else { return wrong(at, "\"] at the end of a quoted name") };
                if end == 0 {
                    return wrong(at + 2, "a name");
                }
                steps.push(Step::Member(quoted[..end].to_owned()));
                at += 2 + end + 2;
            } else {
                let dot = usize::from(!steps.is_empty());
                if dot == 1 && !rest.starts_with('.') {
                    return wrong(at, "a dot, [*] or [\"name\"]");
                }
                let name: &str = rest[dot..].split(['.', '[']).next().unwrap_or("");
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
                if let Some(odd) = name.find(|c: char| !plain(c)) {
                    return wrong(at + dot + odd, "a dot, [*] or [\"name\"] after a name of letters and digits");
                }
                if name.is_empty() {
                    return wrong(at + dot, "a name");
                }
                steps.push(Step::Member(name.to_owned()));
                at += dot + name.len();
            }
        }
        match steps.first() {
            Some(Step::Member(_)) => Ok(Path { steps }),
            Some(_) => wrong(0, "a name first"),
            None => wrong(0, "a name"),
        }
    }

    /// The leading members up to the first other step: what the parser must keep of an object so that the path can be
    /// followed.
    pub fn literal(&self) -> Vec<&str> {
        self.leading_names().collect()
    }

    /// As [`Path::literal`], one by one.
    pub fn leading_names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map_while(|step| if let Step::Member(name) = step { Some(name.as_str()) } else { None })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.steps.iter().enumerate() {
            match step {
                Step::Member(name) if name.contains(['.', '[', '"', ' ']) => write!(f, "[\"{name}\"]")?,
                Step::Member(name) if nth == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Each => f.write_str("[*]")?,
                Step::Key => f.write_str(".key()")?,
                Step::Json => f.write_str(".json()")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_it_was_read() {
        for text in [
            "spec",
            "spec.nodeName",
            "spec.ports[*].nodePort",
            "spec.allocations[*].key()",
            "spec.matrix[*][*]",
            "metadata.annotations[\"k8s.v1.cni.cncf.io/network-status\"].json()[*].ips[*]",
        ] {
            assert_eq!(Path::parse(text).map(|path| path.to_string()).as_deref(), Ok(text));
        }
        let path = Path::parse("metadata.annotations[\"a.b/c\"].json()[*]").unwrap();
        assert_eq!(path.literal(), ["metadata", "annotations", "a.b/c"]);
    }

    #[test]
    fn what_is_no_path_says_where_it_stops_being_one() {
        for (text, at) in [
            ("", 0),
            ("[*].a", 0),
            ("spec..a", 5),
            ("spec.", 5),
            ("spec ports", 4),
            ("a[\"b", 1),
            ("a[\"\"]", 3),
            ("a.key()", 1),
            ("a[*].key().b", 10),
            ("a[0]", 1),
            (&vec!["a"; 40].join("."), 63),
            (&"a".repeat(5_000), 0),
        ] {
            assert_eq!(Path::parse(text).map_err(|error| error.at), Err(at), "{text}");
        }
    }
}
