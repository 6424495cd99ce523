//! Parses one act: `LIST pods rv=0 => 12 {a:u1@12}`.

use super::error::SketchError;
use super::naming::{key, named};
use super::syntax::{Act, Answer, Ask, Carried, Named, Request, Settings, Token, Verb};
use super::text::Piece;

/// A parsed act, and the events on its line with their places.
pub struct Phrase<'t> {
    /// The act, without the events of a watch.
    pub act: Act,
    /// The name by which later lines continue a watch.
    pub stream: Option<&'t str>,
    /// The words of events.
    pub events: Vec<Piece<'t>>,
    /// Whether the text states that no answer was seen.
    pub unanswered: bool,
}

const VERBS: [(&str, Verb); 8] = [
    ("GET", Verb::Get),
    ("LIST", Verb::List),
    ("WATCH", Verb::Watch),
    ("CREATE", Verb::Create),
    ("PUT", Verb::Put),
    ("PATCH", Verb::Patch),
    ("DELETE", Verb::Delete),
    ("DELETEALL", Verb::DeleteAll),
];

const OPERANDS: &str = "an object, a resource, an option (`rv=`, `exact=`, `atleast=`, `limit=`, `continue=`, `labels(...)`, \
                        `fields(...)`, `in NAMESPACE`, `from N`, `initial`, `apply`, `dry-run`, `for DECISION`) or `=>`";

/// Parses an act.
pub fn phrase<'t>(piece: Piece<'t>, settings: &Settings) -> Result<Phrase<'t>, SketchError> {
    let words: Vec<Piece<'t>> = piece.words(false)?.into_iter().filter(|w| !is_filler(w.text)).collect();
    let Some(first) = words.first().copied() else {
        return Err(piece.unexpected("an act, as `GET`, `LIST`, `WATCH`, `CREATE`, `PUT`, `PATCH`, `DELETE`, `READ`"));
    };
    let rest = &words[1..];
    let plain = |act| Phrase { act, stream: None, events: Vec::new(), unanswered: false };
    match first.text {
        "READ" => read(first, rest, settings).map(plain),
        "DECIDE" => {
            let name = rest.first().ok_or_else(|| after(first, "the decision's name"))?;
            Ok(plain(Act::Decide(name.text.to_owned())))
        }
        "MARK" => {
            let text: Vec<&str> = rest.iter().map(|w| w.text).collect();
            Ok(plain(Act::Mark(text.join(" "))))
        }
        _ => request(first, rest, settings),
    }
}

/// Whether a word only draws a line.
pub fn is_filler(word: &str) -> bool {
    word.bytes().all(|b| b == b'-')
}

fn after(piece: Piece<'_>, expected: &str) -> SketchError {
    SketchError::at(piece.end(), expected, "the end")
}

fn request<'t>(first: Piece<'t>, rest: &[Piece<'t>], settings: &Settings) -> Result<Phrase<'t>, SketchError> {
    let Some((_, verb)) = VERBS.iter().find(|(word, _)| *word == first.text).copied() else {
        let known = "GET, LIST, WATCH, CREATE, PUT, PATCH, DELETE, DELETEALL, READ, DECIDE or MARK";
        return Err(first.unexpected(known));
    };
    let one = !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteAll);
    let mut request = Request {
        verb,
        kind: settings.default_kind,
        namespace: String::new(),
        target: Named { at: first.at, ..Named::default() },
        ask: Ask::default(),
        subresource: String::new(),
        dry_run: false,
        apply: false,
        test: None,
        body: true,
        decision: String::new(),
        answer: Answer::None,
        events: Vec::new(),
    };
    let (mut stream, mut events, mut unanswered, mut answered) = (None, Vec::new(), false, false);
    let mut at = 0;
    while at < rest.len() {
        let word = rest[at];
        at += 1;
        let argument = |what: &str| rest.get(at).copied().ok_or_else(|| after(word, what));
        match word.text {
            "=>" => {
                if rest.get(at).is_some_and(|w| w.text == "?") {
                    unanswered = true;
                    at += 1;
                } else {
                    let taken;
                    (request.answer, taken) = answer(word, &rest[at..], &request, settings)?;
                    at += taken;
                    answered = true;
                }
            }
            "in" => {
                request.namespace = argument("a namespace")?.text.to_owned();
                at += 1;
            }
            "for" => {
                request.decision = argument("the name of a decision")?.text.to_owned();
                at += 1;
            }
            "from" if verb == Verb::Watch => {
                request.ask.version = Some(argument("a revision")?.number("a revision")?);
                at += 1;
            }
            "as" if verb == Verb::Watch => {
                stream = Some(argument("a name for the stream")?.text);
                at += 1;
            }
            "dry-run" => request.dry_run = true,
            "apply" if verb == Verb::Patch => request.apply = true,
            "no-body" => request.body = false,
            "status" | "scale" | "binding" | "eviction" | "finalize" if one => {
                request.subresource = word.text.to_owned();
            }
            text if verb == Verb::Watch && is_event(text) => {
                events.extend_from_slice(&rest[at - 1..]);
                break;
            }
            _ => {
                if !option(word, &mut request, settings)? {
                    operand(word, &mut request, settings, one)?;
                }
            }
        }
    }
    if one && request.target.key.is_none() {
        return Err(after(first, "the object of the request"));
    }
    let carries = events.iter().any(|e| e.text.starts_with('^'));
    request.ask.bookmarks |= carries || request.ask.initial == Some(true);
    if verb != Verb::Watch && !answered && !unanswered {
        unanswered = true;
    }
    if let Some(target) = &request.target.key {
        request.kind = target.kind;
    }
    Ok(Phrase { act: Act::Request(Box::new(request)), stream, events, unanswered })
}

fn is_event(word: &str) -> bool {
    word.starts_with(['+', '~', '-', '^', '!']) || matches!(word, "eof" | "closed" | "broken")
}

fn option(word: Piece<'_>, request: &mut Request, settings: &Settings) -> Result<bool, SketchError> {
    let ask = &mut request.ask;
    if let Some(selector) = word.strip("labels") {
        let inside = selector.enclosed('(', ')').ok_or_else(|| selector.unexpected("a selector in `(...)`"))?;
        ask.labels = inside.text.to_owned();
        return Ok(true);
    }
    if let Some(selector) = word.strip("fields") {
        let inside = selector.enclosed('(', ')').ok_or_else(|| selector.unexpected("a selector in `(...)`"))?;
        ask.fields = inside.text.to_owned();
        return Ok(true);
    }
    if let Some(selector) = word.strip("shards") {
        let inside = selector.enclosed('(', ')').ok_or_else(|| selector.unexpected("a selector in `(...)`"))?;
        ask.shards = inside.text.to_owned();
        return Ok(true);
    }
    if let Some(test) = word.strip("test") {
        let inside =
            test.enclosed('(', ')').ok_or_else(|| test.unexpected("the tested uid and version, as `(:uid@12)`"))?;
        request.test = Some(named(inside, settings, request.kind)?);
        return Ok(true);
    }
    if word.text.contains('[') {
        return Ok(false);
    }
    let (name, value) = word.split('=');
    let Some(value) = value else {
        match word.text {
            "initial" => {
                ask.initial = Some(true);
                ask.matching = Some("NotOlderThan");
            }
            "no-initial" => {
                ask.initial = Some(false);
                ask.matching = Some("NotOlderThan");
            }
            "bookmarks" => ask.bookmarks = true,
            _ => return Ok(false),
        }
        return Ok(true);
    };
    let number = || value.number("a number");
    match name.text {
        "rv" => ask.version = Some(number()?),
        "exact" => (ask.version, ask.matching) = (Some(number()?), Some("Exact")),
        "atleast" => (ask.version, ask.matching) = (Some(number()?), Some("NotOlderThan")),
        "limit" => ask.limit = Some(number()?),
        "continue" if value.text == "inconsistent" => ask.token = Some(Token::Inconsistent),
        "continue" => ask.token = Some(Token::At(value.number("a revision, or `inconsistent`")?)),
        _ => return Err(name.unexpected(OPERANDS)),
    }
    Ok(true)
}

fn operand(word: Piece<'_>, request: &mut Request, settings: &Settings, one: bool) -> Result<(), SketchError> {
    if one && request.target.key.is_none() {
        request.target = named(word, settings, request.kind)?;
        if request.target.key.is_none() {
            return Err(word.unexpected("an object's name"));
        }
        return Ok(());
    }
    match settings.find_kind(word.text) {
        Some(kind) if !one => {
            request.kind = kind;
            Ok(())
        }
        _ => Err(word.unexpected(OPERANDS)),
    }
}

/// Parses the answer after `=>`; returns the number of words in it.
fn answer(
    arrow: Piece<'_>,
    words: &[Piece<'_>],
    request: &Request,
    settings: &Settings,
) -> Result<(Answer, usize), SketchError> {
    let expected = match request.verb {
        Verb::List | Verb::DeleteAll => "`12 {a@10 b@11}`, `!410` or `bare`",
        Verb::Watch => "`!429`",
        _ => "`12`, `a:uid@12`, `ok`, `!409`, `?` or `bare`",
    };
    let first = *words.first().ok_or_else(|| after(arrow, expected))?;
    if let Some(code) = first.strip("!") {
        let code = code.number("an HTTP status after '!'")?;
        let code = u16::try_from(code).ok().filter(|c| (300..600).contains(c));
        let code = code.ok_or_else(|| first.unexpected("an HTTP status from 300 to 599 after '!'"))?;
        let live = words.get(1).and_then(|w| w.strip("live=:")).map(|uid| uid.text.to_owned());
        let taken = 1 + usize::from(live.is_some());
        return Ok((Answer::Refused(code, live), taken));
    }
    if first.text == "bare" {
        return Ok((Answer::Bare, 1));
    }
    if let Some(rest) = first.strip("ok") {
        let uid = match rest.strip(":") {
            Some(uid) => Some(uid.text.to_owned()),
            None if rest.text.is_empty() => None,
            None => return Err(first.unexpected(expected)),
        };
        return Ok((Answer::Ok(uid), 1));
    }
    match request.verb {
        Verb::Watch => Err(first.unexpected(expected)),
        Verb::List | Verb::DeleteAll => {
            let number = first.strip("@").unwrap_or(first);
            let revision = number.number("the list's revision")?;
            let braces = words.get(1).copied().ok_or_else(|| after(first, "`{...}` with the listed objects"))?;
            let inside =
                braces.enclosed('{', '}').ok_or_else(|| braces.unexpected("`{...}` with the listed objects"))?;
            let more = words.get(2).is_some_and(|w| w.text == "more");
            let items = if inside.trimmed().text == "?" {
                None
            } else {
                let listed = inside.words(true)?.into_iter().map(|w| {
                    let item = named(w, settings, request.kind)?;
                    match (&item.key, item.revision) {
                        (Some(_), Some(_)) => Ok(item),
                        _ => Err(w.unexpected("a listed object with its version, as `a@12`")),
                    }
                });
                Some(listed.collect::<Result<_, _>>()?)
            };
            Ok((Answer::List(revision, items, more), 2 + usize::from(more)))
        }
        _ => {
            let mut object = named(first, settings, request.kind)?;
            if object.revision.is_none() && object.uid.is_none() {
                return Err(first.unexpected(expected));
            }
            let mut taken = 1;
            while let Some(word) = words.get(taken) {
                let attributes = object.attributes.get_or_insert_with(Default::default);
                match word.text {
                    "gone" => attributes.gone = true,
                    "created" => attributes.created = true,
                    "deleting" => attributes.deleting = true,
                    _ => break,
                }
                taken += 1;
            }
            if taken == 1 && object.attributes == Some(Default::default()) && !first.text.contains('[') {
                object.attributes = None;
            }
            Ok((Answer::Object(object), taken))
        }
    }
}

fn read(first: Piece<'_>, rest: &[Piece<'_>], settings: &Settings) -> Result<Act, SketchError> {
    let target = *rest.first().ok_or_else(|| after(first, "the object that was read"))?;
    let target = key(target, settings, settings.default_kind)?;
    let (mut seen, mut decision, mut at) = (None, String::new(), 1);
    while at < rest.len() {
        let value = rest.get(at + 1).copied();
        let value = value.ok_or_else(|| after(rest[at], "more"))?;
        match rest[at].text {
            "=>" if value.text == "absent" => seen = None,
            "=>" => seen = Some(named(value, settings, target.kind)?),
            "for" => decision = value.text.to_owned(),
            _ => return Err(rest[at].unexpected("`=> a:uid@12`, `=> absent` or `for DECISION`")),
        }
        at += 2;
    }
    Ok(Act::Read { key: target, seen, decision })
}

/// Parses one word of a stream.
pub fn carried(word: Piece<'_>, settings: &Settings, kind: usize) -> Result<Carried, SketchError> {
    let object = |piece: Piece<'_>| {
        let object = named(piece, settings, kind)?;
        match (&object.key, object.revision) {
            (Some(_), Some(_)) => Ok(object),
            _ => Err(piece.unexpected("an object with its version, as `a@12`")),
        }
    };
    match word.text {
        "eof" => return Ok(Carried::End("eof")),
        "closed" => return Ok(Carried::End("closed")),
        "broken" => return Ok(Carried::End("error")),
        _ => {}
    }
    if let Some(rest) = word.strip("^^") {
        Ok(Carried::InitialEnd(rest.number("a revision after '^^'")?))
    } else if let Some(rest) = word.strip("^") {
        Ok(Carried::Bookmark(rest.number("a revision after '^'")?))
    } else if let Some(rest) = word.strip("!") {
        let code = rest.number("a status after '!'")?;
        Ok(Carried::Error(u16::try_from(code).map_err(|_| rest.unexpected("a status after '!'"))?))
    } else if let Some(rest) = word.strip("+") {
        object(rest).map(Carried::Added)
    } else if let Some(rest) = word.strip("~") {
        object(rest).map(Carried::Modified)
    } else if let Some(rest) = word.strip("-") {
        object(rest).map(Carried::Deleted)
    } else {
        Err(word.unexpected("an event: `+a@12`, `~a@12`, `-a@12`, `^12`, `^^12`, `!410`, `eof`, `closed` or `broken`"))
    }
}
