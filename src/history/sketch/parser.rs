//! Parses a sketch: lines become acts with times.
//!
//! Times come from columns. Adjacent drawn lines form a band, whose columns share one origin; a step is a band of its own.

use super::error::SketchError;
use super::phrase::{carried, is_filler, phrase};
use super::settings::{WORDS, duration};
use super::syntax::{Act, Carried, Event, Place, Settings, Sketch, Timed, Verb};
use super::text::Piece;

/// Parses a sketch.
pub fn parse(text: &str) -> Result<Sketch, SketchError> {
    let mut parser = Parser {
        sketch: Sketch { settings: Settings::default(), acts: Vec::new(), witness: Vec::new() },
        band: None,
        clock: 0,
        streams: Vec::new(),
    };
    for (index, line) in text.lines().enumerate() {
        let whole = Piece::line(line, index as u32 + 1);
        parser.line(whole).map_err(|error| error.with_text(text))?;
    }
    parser.end_band();
    Ok(parser.sketch)
}

/// Bound on the duration of a sketch: ten years in nanoseconds.
const LATEST: i64 = 315_360_000_000_000_000;

struct Parser {
    sketch: Sketch,
    /// Begin of the present band, and the last time drawn in it.
    band: Option<(i64, i64)>,
    /// Begin of the next band.
    clock: i64,
    /// Open streams: client, life, name, index of the act.
    streams: Vec<(usize, String, String, usize)>,
}

/// The end mark of an interval.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    /// `|`
    Bar(u32),
    /// `?`
    Unknown,
    /// `..`
    GoesOn,
}

impl Parser {
    fn line(&mut self, whole: Piece<'_>) -> Result<(), SketchError> {
        let comment = whole
            .text
            .char_indices()
            .find(|&(at, c)| c == '#' && whole.text[..at].chars().next_back().is_none_or(char::is_whitespace));
        let content = comment.map_or(whole, |(at, _)| whole.part(0, at));
        let content = content.part(0, content.text.trim_end().len());
        if content.text.trim().is_empty() {
            return Ok(());
        }
        if content.text.contains('\t') {
            let at = content.text.find('\t').unwrap_or(0);
            return Err(content.part(at, at + 1).unexpected("spaces (columns are times, and a tab has no width)"));
        }
        if let Some(rest) = content.strip("---") {
            return self.pause(rest);
        }
        if content.text.starts_with(' ') {
            return Err(content.part(0, 1).unexpected("a client, `etcd`, a setting, `#` or `---` at the line's begin"));
        }
        let (label, rest) = content.split(' ');
        let rest = rest.unwrap_or(content.after(content.text.len()));
        if WORDS.contains(&label.text) {
            return self.sketch.settings.set(label.text, &rest.words(false)?, content);
        }
        if label.text == "etcd" {
            return self.witness(rest);
        }
        let (label, rest) = match rest.trimmed().strip("@") {
            Some(server) if !label.text.contains('@') => {
                let (server, rest) = server.split(' ');
                let rest = rest.unwrap_or(content.after(content.text.len()));
                return self.timeline(label, Some(server), rest);
            }
            _ => (label, rest),
        };
        let (who, server) = label.split('@');
        self.timeline(who, server, rest)
    }

    fn pause(&mut self, rest: Piece<'_>) -> Result<(), SketchError> {
        self.end_band();
        let word = rest.trimmed();
        if !word.text.trim_matches('-').is_empty() {
            let words = word.words(false)?;
            let first = words.iter().find(|w| !is_filler(w.text)).copied().unwrap_or(word);
            self.clock = self.clock.saturating_add(duration(first)?);
            if self.clock > LATEST {
                return Err(first.unexpected("a sketch that ends within ten years"));
            }
        }
        Ok(())
    }

    fn end_band(&mut self) {
        if let Some((_, last)) = self.band.take() {
            self.clock = last + 5 * self.sketch.settings.column;
        }
    }

    fn timeline(&mut self, who: Piece<'_>, server: Option<Piece<'_>>, rest: Piece<'_>) -> Result<(), SketchError> {
        let (alias, life) = who.split('/');
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '#');
        if alias.text.is_empty() || !alias.text.chars().all(fits) {
            return Err(alias.unexpected("a client's name"));
        }
        let life = life.map_or("1", |l| l.text).to_owned();
        let client = self.sketch.settings.client(alias.text);
        let server = server.map_or("", |s| s.text).to_owned();
        if !server.is_empty() && self.sketch.settings.servers.iter().all(|(name, _)| *name != server) {
            self.sketch.settings.servers.push((server.clone(), super::settings::CLOCK.to_owned()));
        }
        let actor = Actor { client, life, server };
        let drawn = rest.text.contains('|') || rest.text.trim_start().starts_with("..");
        if rest.text.trim().is_empty() {
            return Err(rest.unexpected("an act of the client"));
        }
        if drawn { self.drawn(&actor, rest) } else { self.step(&actor, rest.trimmed()) }
    }

    /// A drawn line: its columns are times.
    fn drawn(&mut self, actor: &Actor, rest: Piece<'_>) -> Result<(), SketchError> {
        let (begin, _) = *self.band.get_or_insert((self.clock, self.clock));
        let column = self.sketch.settings.column;
        let time = |place: Place| begin + i64::from(place.column) * column;
        let mut at = 0;
        while let Some(skip) = rest.text[at..].find(|c: char| !c.is_whitespace()) {
            at += skip;
            let here = rest.after(at);
            let goes_on = here.text.starts_with("..");
            if !goes_on && !here.text.starts_with('|') {
                let word = here.words(false)?.first().copied().unwrap_or(here);
                return Err(word.unexpected("`|` to begin an act, or `..` to continue a stream"));
            }
            let inside = here.after(if goes_on { 2 } else { 1 });
            let (length, close, taken) = closing(inside, goes_on, here)?;
            let phrase_text = inside.part(0, length);
            let end = match close {
                Close::Bar(bar) => Some(time(Place { column: bar, ..here.at })),
                Close::Unknown | Close::GoesOn => None,
            };
            let next = at + if goes_on { 2 } else { 1 } + taken;
            let last = rest.after(next).at;
            if goes_on {
                self.go_on(actor, phrase_text, end, &time)?;
            } else {
                let phrase_text = unfilled(phrase_text);
                self.act(actor, phrase_text, here.at, (time(here.at), end), close, &|place, _| time(place))?;
            }
            if let Some((_, latest)) = &mut self.band {
                *latest = (*latest).max(time(last));
            }
            at = next;
        }
        Ok(())
    }

    /// A line without bars: after everything above it, before everything below.
    fn step(&mut self, actor: &Actor, rest: Piece<'_>) -> Result<(), SketchError> {
        self.end_band();
        let column = self.sketch.settings.column;
        let begin = self.clock;
        let end = Some(begin + 4 * column);
        let index = self.sketch.acts.len();
        self.act(actor, rest, rest.at, (begin, end), Close::GoesOn, &|_, at| begin + (at as i64 + 2) * column)?;
        let events = match self.sketch.acts.get(index).map(|a| &a.act) {
            Some(Act::Request(request)) => request.events.len() as i64,
            _ => 0,
        };
        self.clock = begin + (events + 4).max(6) * column;
        Ok(())
    }

    fn act(
        &mut self,
        actor: &Actor,
        text: Piece<'_>,
        place: Place,
        (begin, end): (i64, Option<i64>),
        close: Close,
        time: &dyn Fn(Place, usize) -> i64,
    ) -> Result<(), SketchError> {
        let settings = &self.sketch.settings;
        let phrase = phrase(text, settings)?;
        let mut timed = Timed {
            at: place,
            client: actor.client,
            life: actor.life.clone(),
            server: actor.server.clone(),
            begin,
            end,
            act: phrase.act,
        };
        let index = self.sketch.acts.len();
        if let Act::Request(request) = &mut timed.act {
            let watch = request.verb == Verb::Watch;
            if watch {
                for (at, word) in phrase.events.iter().filter(|w| !is_filler(w.text)).enumerate() {
                    let carried = carried(*word, settings, request.kind)?;
                    request.events.push(Event { at: word.at, time: time(word.at, at), carried });
                }
                let refused = request.answer != super::syntax::Answer::None;
                if close == Close::GoesOn && !refused {
                    timed.end = None;
                }
                if close == Close::Unknown {
                    return Err(text.unexpected("`..` or `|` at the end of a watch"));
                }
                let name = phrase.stream.unwrap_or("").to_owned();
                self.streams.retain(|(c, l, n, _)| (*c, l, n) != (actor.client, &actor.life, &name));
                self.streams.push((actor.client, actor.life.clone(), name, index));
            } else if close == Close::Unknown || phrase.unanswered {
                let answered = request.answer != super::syntax::Answer::None;
                if close == Close::Unknown && answered {
                    return Err(text.unexpected("no answer (`=>`) in an act that ends with `?`"));
                }
                if close != Close::Unknown && phrase.unanswered && !text.text.contains("=>") {
                    let end = Piece { text: "", at: text.end() };
                    return Err(end.unexpected("`=>` with the answer (`=> ?` if none was seen)"));
                }
                timed.end = None;
            } else if matches!(close, Close::GoesOn) && timed.end.is_none() {
                return Err(text.unexpected("`|` or `?` at its end: only a watch continues"));
            }
        }
        if let Act::Request(request) = &mut timed.act
            && request.ask.token.is_some()
        {
            let before = self.sketch.acts.iter().rev().filter(|act| act.client == timed.client);
            let ends = before.filter_map(|act| if let Act::Request(page) = &act.act { page.page_end() } else { None });
            request.ask.after = ends.take(1).collect();
        }
        self.sketch.acts.push(timed);
        Ok(())
    }

    /// `.. +b@13 ^16 -|`: more events of a stream that an earlier line began.
    fn go_on(
        &mut self,
        actor: &Actor,
        text: Piece<'_>,
        end: Option<i64>,
        time: &dyn Fn(Place) -> i64,
    ) -> Result<(), SketchError> {
        let words: Vec<Piece<'_>> = unfilled(text).words(false)?.into_iter().filter(|w| !is_filler(w.text)).collect();
        let named = !text.text.starts_with([' ', '-', '+', '~', '^', '!']) && !text.text.is_empty();
        let (name, events) = match words.split_first() {
            Some((first, rest)) if named => (first.text, rest),
            _ => ("", words.as_slice()),
        };
        let found = self
            .streams
            .iter()
            .rev()
            .find(|(c, l, n, _)| *c == actor.client && *l == actor.life && (name.is_empty() || n == name));
        let Some(&(.., index)) = found else {
            return Err(text.unexpected("a stream that an earlier line of this client began"));
        };
        for word in events {
            let Act::Request(request) = &mut self.sketch.acts[index].act else { continue };
            let carried = carried(*word, &self.sketch.settings, request.kind)?;
            request.ask.bookmarks |= matches!(carried, Carried::Bookmark(_) | Carried::InitialEnd(_));
            request.events.push(Event { at: word.at, time: time(word.at), carried });
        }
        if end.is_some() {
            self.sketch.acts[index].end = end;
        }
        Ok(())
    }

    fn witness(&mut self, rest: Piece<'_>) -> Result<(), SketchError> {
        for word in rest.words(true)?.into_iter().filter(|w| !is_filler(w.text)) {
            let carried = carried(word, &self.sketch.settings, self.sketch.settings.default_kind)?;
            let fits =
                matches!(carried, Carried::Added(_) | Carried::Modified(_) | Carried::Deleted(_) | Carried::Error(_));
            if !fits {
                return Err(word.unexpected("`+a@12`, `~a@12`, `-a@12`, or `!N` for a watch that compaction ended"));
            }
            self.sketch.witness.push(Event { at: word.at, time: 0, carried });
        }
        Ok(())
    }
}

struct Actor {
    client: usize,
    life: String,
    server: String,
}

/// Finds the end of an act that begins at `here`: length of its text, its end mark, and the number of bytes consumed.
fn closing(inside: Piece<'_>, goes_on: bool, here: Piece<'_>) -> Result<(usize, Close, usize), SketchError> {
    let text = inside.text;
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '|' => return Ok((at, Close::Bar(inside.after(at).at.column), at + 1)),
            '?' if depth == 0 => {
                let alone = text[at + 1..].chars().next().is_none_or(char::is_whitespace);
                let drawn = text[..at].ends_with('-');
                if alone && drawn {
                    return Ok((at, Close::Unknown, at + 1));
                }
            }
            '.' if depth == 0 && text[at..].starts_with("..") => {
                let alone = text[at + 2..].chars().next().is_none_or(char::is_whitespace);
                let apart = text[..at].ends_with([' ', '-']);
                if alone && apart {
                    return Ok((at, Close::GoesOn, at + 2));
                }
            }
            _ => {}
        }
    }
    if goes_on {
        return Ok((text.len(), Close::GoesOn, text.len()));
    }
    Err(here.part(0, 1).unexpected("an act that ends with `|`, `-?` (no answer seen) or `..` (continues)"))
}

/// Removes the dashes that only draw the line.
fn unfilled(piece: Piece<'_>) -> Piece<'_> {
    let trimmed = piece.trimmed();
    let from = trimmed.text.len() - trimmed.text.trim_start_matches('-').len();
    // `-a@15` after a bar may be the first event of a continued stream; then the dash belongs to it.
    let from = if from > 0 && trimmed.text[from..].contains('@') && is_deletion(&trimmed.text[from - 1..]) {
        from - 1
    } else {
        from
    };
    let to = trimmed.text.trim_end_matches('-').len().max(from);
    trimmed.part(from, to).trimmed()
}

fn is_deletion(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("");
    word.starts_with('-') && word.contains('@')
}
