//! Label and field selectors, decided from the recorded attributes of a version.

use std::collections::BTreeMap;

/// Parses labels from JSON. `None` if they are not a map of texts.
pub fn labels(json: &str) -> Option<BTreeMap<String, String>> {
    serde_json::from_str::<Option<_>>(json).ok().map(Option::unwrap_or_default)
}

/// Whether a label selector matches a label map (raw JSON). `None` if the selector or the labels cannot be parsed.
///
/// Grammar: apimachinery `pkg/labels/selector.go`: `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, `k>3`, `k<3`, `k`, `!k`,
/// separated by commas.
pub fn matches_labels(selector: &str, labels: &str) -> Option<bool> {
    let labels = self::labels(labels)?;
    let mut all = true;
    for requirement in split_outside_parentheses(selector).map(str::trim).filter(|r| !r.is_empty()) {
        // One invalid requirement makes the whole selector invalid.
        all &= Requirement::read(requirement)?.holds(&labels);
    }
    Some(all)
}

/// One requirement of a label selector.
enum Requirement<'s> {
    Has(&'s str),
    HasNot(&'s str),
    In(&'s str, Vec<&'s str>),
    NotIn(&'s str, Vec<&'s str>),
    Above(&'s str, i64),
    Below(&'s str, i64),
}

impl<'s> Requirement<'s> {
    fn read(text: &'s str) -> Option<Requirement<'s>> {
        if let Some(key) = text.strip_prefix('!') {
            return name(key).map(Requirement::HasNot);
        }
        let end = text.find(|c: char| c.is_whitespace() || "=!<>(),".contains(c)).unwrap_or(text.len());
        let (key, rest) = (name(&text[..end])?, text[end..].trim());
        if rest.is_empty() {
            return Some(Requirement::Has(key));
        }
        let value = |text: &'s str| {
            let text = text.trim();
            text.find(|c: char| c.is_whitespace() || "=!<>(),".contains(c)).is_none().then_some(text)
        };
        if let Some(other) = rest.strip_prefix("!=") {
            return Some(Requirement::NotIn(key, vec![value(other)?]));
        }
        if let Some(wanted) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
            return Some(Requirement::In(key, vec![value(wanted)?]));
        }
        if let Some(bound) = rest.strip_prefix('>') {
            return Some(Requirement::Above(key, value(bound)?.parse().ok()?));
        }
        if let Some(bound) = rest.strip_prefix('<') {
            return Some(Requirement::Below(key, value(bound)?.parse().ok()?));
        }
        let set = |word| {
            let set: &'s str = rest.strip_prefix(word)?;
            let set = set.trim().strip_prefix('(')?.strip_suffix(')')?;
            set.split(',').map(value).collect::<Option<Vec<_>>>()
        };
        if let Some(values) = set("notin") {
            return Some(Requirement::NotIn(key, values));
        }
        set("in").map(|values| Requirement::In(key, values))
    }

    /// Whether the labels meet the requirement.
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = |key: &str| labels.get(key).map(String::as_str);
        // A value that is no number is neither greater nor less.
        let number = |key: &str| value(key).and_then(|value| value.parse::<i64>().ok());
        match self {
            Requirement::Has(key) => value(key).is_some(),
            Requirement::HasNot(key) => value(key).is_none(),
            Requirement::In(key, set) => value(key).is_some_and(|value| set.contains(&value)),
            Requirement::NotIn(key, set) => value(key).is_none_or(|value| !set.contains(&value)),
            Requirement::Above(key, bound) => number(key).is_some_and(|number| number > *bound),
            Requirement::Below(key, bound) => number(key).is_some_and(|number| number < *bound),
        }
    }
}

/// A label's name without surrounding blanks.
fn name(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "=!<>(),".contains(c))).then_some(text)
}

/// Whether a field selector matches, given a look-up of known fields. `None` if a needed field is unknown.
pub fn matches_fields<'f>(selector: &str, field: impl Fn(&str) -> Option<&'f str>) -> Option<bool> {
    let mut undecided = false;
    for requirement in requirements(selector) {
        let (name, wanted, equal) = requirement?;
        match field(name) {
            Some(value) if (value == wanted) != equal => return Some(false),
            Some(_) => {}
            None => undecided = true,
        }
    }
    (!undecided).then_some(true)
}

/// The first `in` or `=` requirement of a label selector: its label and values. `None` also for an invalid selector.
pub fn wanted_label(selector: &str) -> Option<(&str, Vec<&str>)> {
    let requirements = split_outside_parentheses(selector).map(str::trim).filter(|r| !r.is_empty());
    let requirements: Vec<Requirement<'_>> = requirements.map(Requirement::read).collect::<Option<_>>()?;
    requirements.into_iter().find_map(|requirement| match requirement {
        Requirement::In(key, values) => Some((key, values)),
        _ => None,
    })
}

/// The fields that a field selector requires to equal a value.
pub fn wanted_fields(selector: &str) -> impl Iterator<Item = (&str, &str)> {
    requirements(selector).flatten().filter_map(|(name, value, equal)| equal.then_some((name, value)))
}

/// The fields in a field selector.
pub fn fields_of(selector: &str) -> impl Iterator<Item = &str> {
    requirements(selector).map(|requirement| requirement.map_or("", |(name, ..)| name))
}

/// The requirements of a field selector: field, value, and whether they must be equal. `None` for an invalid requirement.
fn requirements(selector: &str) -> impl Iterator<Item = Option<(&str, &str, bool)>> {
    selector.split(',').map(str::trim).filter(|r| !r.is_empty()).map(|requirement| {
        if let Some((name, wanted)) = requirement.split_once("!=") {
            return Some((name, wanted, false));
        }
        let (name, wanted) = requirement.split_once('=')?;
        Some((name, wanted.strip_prefix('=').unwrap_or(wanted), true))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_follow_the_grammar() {
        let labels = r#"{"tier":"gold","app":"web","num":"4"}"#;
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
            ("size>3", Some(false)),
            ("tier>3", Some(false)),
            ("num>3", Some(true)),
            ("num > 4", Some(false)),
            ("num<5,app", Some(true)),
            ("num<x", None),
            ("tier in(gold),tier notin(iron)", Some(true)),
            ("! zone", Some(true)),
            ("tier in gold", None),
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
