//! Label and field selectors, decided on what the evidence kept of a version.

use std::collections::BTreeMap;

/// Labels as they are written in JSON; `None` where they are no texts by name.
pub fn labels(json: &str) -> Option<BTreeMap<String, String>> {
    serde_json::from_str::<Option<_>>(json).ok().map(Option::unwrap_or_default)
}

/// Whether a label selector matches a label map (raw JSON). `None` where the selector or the labels cannot be read.
///
/// Grammar: apimachinery `pkg/labels/selector.go`: `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, `k`, `!k`, joined by commas.
pub fn matches_labels(selector: &str, labels: &str) -> Option<bool> {
    let labels = self::labels(labels)?;
    for requirement in split_outside_parentheses(selector) {
        let requirement = requirement.trim();
        if requirement.is_empty() {
            continue;
        }
        let value = |key: &str| labels.get(key.trim()).map(String::as_str);
        let holds = if let Some((key, set)) = split_set(requirement, " notin ") {
            value(key).is_none_or(|v| !set.contains(&v))
        } else if let Some((key, set)) = split_set(requirement, " in ") {
            value(key).is_some_and(|v| set.contains(&v))
        } else if let Some((key, other)) = requirement.split_once("!=") {
            value(key) != Some(other.trim())
        } else if let Some((key, wanted)) = requirement.split_once('=') {
            value(key) == Some(wanted.trim_start_matches('=').trim())
        } else if let Some(key) = requirement.strip_prefix('!') {
            value(key).is_none()
        } else if requirement.contains(['(', ')', '<', '>']) {
            return None;
        } else {
            value(requirement).is_some()
        };
        if !holds {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether a field selector matches, given a look-up that knows some fields. `None` where a needed field is not known.
pub fn matches_fields<'f>(selector: &str, field: impl Fn(&str) -> Option<&'f str>) -> Option<bool> {
    let mut undecided = false;
    for requirement in selector.split(',').map(str::trim).filter(|r| !r.is_empty()) {
        let (name, wanted, equal) = if let Some((name, wanted)) = requirement.split_once("!=") {
            (name, wanted, false)
        } else {
            let (name, wanted) = requirement.split_once('=')?;
            (name, wanted.trim_start_matches('='), true)
        };
        match field(name) {
            Some(value) if (value == wanted) != equal => return Some(false),
            Some(_) => {}
            None => undecided = true,
        }
    }
    (!undecided).then_some(true)
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn split_set<'a>(requirement: &'a str, word: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let (key, set) = requirement.split_once(word)?;
    let set = set.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key, set.split(',').map(str::trim).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_follow_the_grammar() {
        let labels = r#"{"tier":"gold","app":"web"}"#;
        for (selector, expected) in [
            ("tier=gold", Some(true)),
            ("tier==gold,app=web", Some(true)),
            ("tier!=gold", Some(false)),
            ("zone!=a", Some(true)),
            ("tier in (gold,silver),app", Some(true)),
            ("tier notin (gold)", Some(false)),
            ("!zone", Some(true)),
            ("zone", Some(false)),
            ("", Some(true)),
            ("size>3", None),
        ] {
            assert_eq!(matches_labels(selector, labels), expected, "{selector}");
        }
        assert_eq!(matches_labels("tier=gold", "null"), Some(false));
        assert_eq!(matches_labels("tier=gold", "{\"tier\":3}"), None);
    }

    #[test]
    fn field_selectors_are_undecided_on_unknown_fields_unless_a_known_one_says_no() {
        let field = |name: &str| (name == "spec.nodeName").then_some("node-1");
        assert_eq!(matches_fields("spec.nodeName=node-1", field), Some(true));
        assert_eq!(matches_fields("spec.nodeName!=node-1,spec.x=1", field), Some(false));
        assert_eq!(matches_fields("spec.nodeName=node-1,spec.x=1", field), None);
    }
}
