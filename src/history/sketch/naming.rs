//! Parses objects as a sketch names them: `nodes/n1:uid@12[app=web]`.

use super::error::SketchError;
use super::syntax::{Attributes, Named, Settings, SketchKey};
use super::text::Piece;
use crate::ingest::fields::Path;

/// Parses an object. `kind` is used for a key without a resource.
pub fn named(piece: Piece<'_>, settings: &Settings, kind: usize) -> Result<Named, SketchError> {
    let mut named = Named { at: piece.at, ..Named::default() };
    let mut rest = piece;
    if let Some(open) = rest.text.find('[') {
        let brackets = rest.after(open);
        let inside = brackets.enclosed('[', ']').ok_or_else(|| brackets.unexpected("`[...]` at the object's end"))?;
        named.attributes = Some(attributes(inside)?);
        rest = rest.part(0, open);
    }
    let (before, version) = rest.split('@');
    if let Some(version) = version {
        named.revision = Some(version.number("a version (a number) after '@'")?);
    } else if !rest.text.is_empty() && rest.text.bytes().all(|b| b.is_ascii_digit()) {
        named.revision = Some(rest.number("a version")?);
        return Ok(named);
    }
    let (path, uid) = before.split(':');
    if let Some(uid) = uid {
        if uid.text.is_empty() {
            return Err(uid.unexpected("a uid after ':' (`-` for one that was not recorded)"));
        }
        named.uid = Some(if uid.text == "-" { String::new() } else { uid.text.to_owned() });
    }
    if !path.text.is_empty() {
        named.key = Some(key(path, settings, kind)?);
    }
    Ok(named)
}

/// Parses a key: `NAME`, `RESOURCE/NAME`, `NAMESPACE/NAME` or `RESOURCE/NAMESPACE/NAME`.
pub fn key(path: Piece<'_>, settings: &Settings, kind: usize) -> Result<SketchKey, SketchError> {
    let parts: Vec<&str> = path.text.split('/').collect();
    let (kind, namespace, name) = match parts.as_slice() {
        [name] => (kind, None, *name),
        [resource, name] if settings.find_kind(resource).is_some() => {
            (settings.find_kind(resource).unwrap_or(kind), None, *name)
        }
        [namespace, name] => (kind, Some(*namespace), *name),
        [resource, namespace, name] => {
            let kind =
                settings.find_kind(resource).ok_or_else(|| path.unexpected("a resource before the first '/'"))?;
            (kind, Some(*namespace), *name)
        }
        _ => return Err(path.unexpected("`NAME`, `RESOURCE/NAME`, `NAMESPACE/NAME` or `RESOURCE/NAMESPACE/NAME`")),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '*');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(path.unexpected("an object's name"));
    }
    let namespace = match namespace {
        _ if !settings.kinds[kind].namespaced => "",
        Some(namespace) => namespace,
        None => &settings.namespace,
    };
    Ok(SketchKey { kind, namespace: namespace.to_owned(), name: name.to_owned() })
}

fn attributes(inside: Piece<'_>) -> Result<Attributes, SketchError> {
    let mut attributes = Attributes::default();
    for word in inside.words(true)? {
        let (name, value) = word.split('=');
        match (name.text, value) {
            ("deleting", None) => attributes.deleting = true,
            ("gone", None) => attributes.gone = true,
            ("created", None) => attributes.created = true,
            ("?", None) => attributes.reduced = true,
            ("node", Some(value)) => attributes.node = value.text.to_owned(),
            ("phase", Some(value)) => attributes.phase = value.text.to_owned(),
            ("finalizer", Some(value)) => attributes.finalizers.push(value.text.to_owned()),
            ("owner", Some(value)) => {
                let expected = "`owner=Kind/name:uid`";
                let (object, uid) = value.split(':');
                let uid = uid.ok_or_else(|| value.unexpected(expected))?;
                let (kind, name) = object.split('/');
                let name = name.ok_or_else(|| value.unexpected(expected))?;
                attributes.owners.push((kind.text.to_owned(), name.text.to_owned(), uid.text.to_owned()));
            }
            (path, Some(value)) if path.starts_with('.') => attributes.fields.push((members(name)?, json(value))),
            (label, Some(value)) if !label.is_empty() => {
                attributes.labels.push((label.to_owned(), value.text.to_owned()));
            }
            _ => {
                return Err(word.unexpected(
                    "`label=value`, `.path=value`, `node=`, `phase=`, `owner=`, `finalizer=`, `deleting`, `gone`, `created` or `?`",
                ));
            }
        }
    }
    Ok(attributes)
}

/// The members in a path such as `.spec.a` or `.metadata.annotations["a.b/c"]`.
fn members(path: Piece<'_>) -> Result<Vec<String>, SketchError> {
    let expected = "a path of members, such as .spec.replicas or .metadata.annotations[\"a.b/c\"]";
    let read = Path::parse(&path.text[1..]).ok();
    let read = read.filter(|path| path.literal().len() == path.steps.len() && path.literal() != ["metadata"]);
    let read = read.ok_or_else(|| path.unexpected(expected))?;
    Ok(read.literal().into_iter().map(str::to_owned).collect())
}

/// Valid JSON as such, any other value as a text.
fn json(value: Piece<'_>) -> serde_json::Value {
    serde_json::from_str(value.text).unwrap_or_else(|_| value.text.into())
}
