//! Turns a judged history into the data of its picture.

mod calls;
mod cluster;

use self::calls::Places;
use super::excerpt;
use super::picture::{Band, Domain, Events, Fact, Finding, Lane, Line, Operations, Page, Picture};
use crate::check::{self, Certificate, Effect, RULES};
use crate::explain::terminal_text::{clip, visible};
use crate::explain::{before, facts, names, words};
use crate::history::calls::Call;
use crate::history::{
    Asked, DeliveryKind, DomainId, History, IncarnationId, KeyId, Marks, Operation, OperationId, Revision, ScopeId,
    Verb,
};
use crate::ingest::{Position, Time};
use crate::report::nearby::{Neighbourhood, span};
use crate::report::{Part, Report};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Operations and watch events per page. A larger history is cut to the surroundings of its findings.
pub(super) const EMBEDDED: usize = 250_000;
/// Points that stay of each line that is thinned.
const OVERVIEW: usize = 2_000;
/// Columns for the words of a request or an answer.
const WORDS: usize = 160;
/// Recorders' notes per page.
const MARKS: usize = 1_000;
/// Findings per page, a limit for the browser.
const FINDINGS: usize = 1_000;
/// Integers that a browser represents exactly are below this bound.
const EXACT: i64 = 1 << 53;

/// The progress of a watcher: time, number in its sequence, revision.
type Points = Vec<(Time, u32, Revision)>;

/// The page of a report.
pub(super) fn page(report: &Report<'_>) -> Page {
    Page {
        version: env!("CARGO_PKG_VERSION"),
        verdict: report.verdict().word(),
        histories: report.histories.iter().map(|part| Drawing::of(part).picture).collect(),
    }
}

struct Drawing<'a> {
    history: &'a History,
    picture: Picture,
    /// Nanoseconds of time 0, and of a unit.
    base: i64,
    unit: i64,
    /// Revision of offset 0 in each domain.
    bases: Vec<Revision>,
    lane_of: FxHashMap<IncarnationId, usize>,
    /// Keys on the page.
    key_of: FxHashMap<KeyId, i64>,
    /// Words on the page.
    word_of: FxHashMap<String, usize>,
    /// Operations by lane.
    rows: Vec<Vec<Row>>,
    /// Positions for a log without times.
    places: Places,
    /// The part of the history to embed.
    near: Neighbourhood,
}

impl<'a> Drawing<'a> {
    fn of(part: &Part<'a>) -> Drawing<'a> {
        let history = part.history;
        let (base, last) = span(part);
        let unit = if last.saturating_sub(base) < EXACT { 1 } else { 1_000 };
        let mut drawing = Drawing {
            history,
            picture: Picture {
                name: part.name.to_owned(),
                kind: part.nature.name(),
                verdict: match &part.judgement.verdict {
                    check::Verdict::NotChecked(_) => "unknown",
                    decided => decided.word(),
                },
                reason: part.judgement.verdict.reason().to_owned(),
                base: base.to_string(),
                unit: unit as u64,
                clocks: history.clocks.iter().map(|&clock| shown(history.name(clock))).collect(),
                files: history.files.iter().map(|file| shown(&file.path)).collect(),
                undecided: part.undecided().unwrap_or_default(),
                unchecked: part.judgement.unchecked.iter().map(|text| shown(text)).collect(),
                problems: history.files.iter().map(|file| file.problems).sum(),
                ..Picture::default()
            },
            base,
            unit,
            bases: Vec::new(),
            lane_of: FxHashMap::default(),
            key_of: FxHashMap::default(),
            word_of: FxHashMap::default(),
            rows: Vec::new(),
            places: Places::of(&history.calls().calls),
            near: Neighbourhood::of(part, EMBEDDED, FINDINGS),
        };
        drawing.lanes();
        drawing.domains();
        drawing.picture.timed = !drawing.places.are_drawn();
        drawing.rows.resize_with(drawing.picture.lanes.len(), Vec::new);
        let cited = drawing.findings(part);
        drawing.operations();
        drawing.calls(&cited);
        drawing.events();
        drawing.cluster();
        drawing.columns();
        drawing.lines();
        drawing.picture.marks = drawing.marks();
        drawing
    }

    /// Units since the begin; -1 without a time.
    fn time(&self, time: Time) -> i64 {
        if time.is_known() { time.0.saturating_sub(self.base).max(0) / self.unit } else { -1 }
    }

    /// Thins a long line outside the surroundings of findings.
    fn thin(&self, points: Vec<i64>) -> Vec<i64> {
        thinned(points, |t| {
            let time = Time(t.saturating_mul(self.unit).saturating_add(self.base));
            self.near.covers(time, time)
        })
    }

    /// Offset of a revision; -1 for none, and for offsets beyond [`EXACT`].
    fn revision(&self, domain: usize, revision: Revision) -> i64 {
        let Some(base) = self.bases.get(domain).filter(|_| revision.is_some()) else { return -1 };
        let offset = revision.value().checked_sub(base.value()).and_then(|offset| i64::try_from(offset).ok());
        offset.filter(|offset| *offset < EXACT).unwrap_or(-1)
    }

    fn key(&mut self, key: KeyId) -> i64 {
        if !key.is_some() {
            return -1;
        }
        let (history, keys) = (self.history, &mut self.picture.keys);
        *self.key_of.entry(key).or_insert_with(|| {
            keys.push(shown(&history.key_name(key)));
            keys.len() as i64 - 1
        })
    }

    /// The revision counter of an operation's answers.
    fn domain_of(&self, operation: Operation) -> Option<usize> {
        let scope = operation.scope;
        let resource = scope.is_some().then(|| self.history.scopes[scope.index()].resource)?;
        (resource.is_some()).then(|| self.history.domain_of(resource).index())
    }

    fn lanes(&mut self) {
        let history = self.history;
        let mut lives: Vec<usize> = (0..history.incarnations.len()).collect();
        lives.sort_by_key(|&at| {
            let life = &history.incarnations[at];
            (counted(history.name(history.clients[life.client.index()])), life.span.0, counted(&life.label))
        });
        for at in lives {
            let id = IncarnationId(at as u32);
            self.lane_of.insert(id, self.picture.lanes.len());
            let client = names::client(history, history.incarnations[at].client);
            self.picture.lanes.push(Lane {
                short: names::short_user(&client).to_owned(),
                client,
                life: names::incarnation(history, id),
                ..Lane::default()
            });
        }
    }

    /// The base of each counter, and its watermark over time: the highest revision in any answer or event so far.
    fn domains(&mut self) {
        let history = self.history;
        let mut shown: Vec<Vec<(Time, Revision)>> = vec![Vec::new(); history.domains.len()];
        for operation in history.operations.iter() {
            if let Some(domain) = self.domain_of(operation)
                && operation.is_answered()
                && operation.answered.is_some()
                && operation.ret.is_known()
                && let Some(list) = shown.get_mut(domain)
            {
                list.push((operation.ret, operation.answered));
            }
        }
        for stream in &history.streams {
            let Some(domain) = self.domain_of(history.operation(stream.operation)) else { continue };
            let Some(list) = shown.get_mut(domain) else { continue };
            let seen = history.deliveries_of(stream).iter().filter(|d| d.at.is_known() && d.revision.is_some());
            list.extend(seen.map(|d| (d.at, d.revision)));
        }
        if let (Some(cluster), Some(list)) = (history.cluster(), shown.first_mut()) {
            list.extend(Self::heads(cluster));
        }
        for (index, mut list) in shown.into_iter().enumerate() {
            let base = list.iter().map(|(_, revision)| *revision).min().unwrap_or_default();
            self.bases.push(base);
            list.sort_unstable();
            let mut head: Vec<i64> = Vec::new();
            let mut high = -1;
            for (time, revision) in list {
                let offset = self.revision(index, revision);
                if offset > high {
                    high = offset;
                    head.extend([self.time(time), offset]);
                }
            }
            self.picture.domains.push(Domain {
                name: visible(&history.domains[index]).into_owned(),
                base: base.to_string(),
                head: self.thin(head),
            });
        }
    }

    fn operations(&mut self) {
        let history = self.history;
        let mut left = EMBEDDED;
        for operation in history.operations.iter() {
            let Some(&lane) = self.lane_of.get(&operation.incarnation) else { continue };
            let (t, u) = (self.time(operation.invoke), self.time(operation.ret));
            if t < 0 || operation.marks.has(Marks::SHADOW) {
                continue;
            }
            // A watch is drawn for its whole duration, but is near if its begin is.
            let end = if operation.verb == Verb::Watch { operation.invoke } else { operation.ret };
            if left == 0 || !self.near.covers(operation.invoke, end) {
                self.picture.omitted[0] += 1;
                continue;
            }
            left -= 1;
            let r = match self.domain_of(operation) {
                Some(domain) if operation.is_answered() => self.revision(domain, operation.answered),
                _ => -1,
            };
            let key = self.key(operation.key);
            let (verb, status, position) = (operation.verb, operation.status, operation.position);
            self.rows[lane].push(Row { t, u, r, verb, key, status, position, answer: position, word: None });
        }
    }

    /// Operations as columns, by begin. Returns the operation that each cited position belongs to.
    fn columns(&mut self) {
        let mut cited: FxHashMap<Position, (usize, usize)> = FxHashMap::default();
        for finding in &self.picture.findings {
            cited.extend(finding.facts.iter().map(|fact| (fact.position, (0, usize::MAX))));
        }
        for (lane, mut rows) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            rows.sort_by_key(|row| row.t);
            for (at, row) in rows.into_iter().enumerate() {
                for position in [row.position, row.answer] {
                    if let Some(place) = cited.get_mut(&position) {
                        *place = (lane, at);
                    }
                }
                self.picture.lanes[lane].operations.push(row);
            }
        }
        for fact in self.picture.findings.iter_mut().flat_map(|finding| &mut finding.facts) {
            if let Some((lane, at)) = cited.get(&fact.position).filter(|(_, at)| *at != usize::MAX) {
                fact.operation = if *lane as i64 == fact.lane { *at as i64 } else { -1 };
            }
        }
    }

    /// Index of these words on the page.
    fn word(&mut self, words: String) -> usize {
        let known = &mut self.picture.words;
        *self.word_of.entry(words).or_insert_with_key(|words| {
            known.push(clip(words, WORDS));
            known.len() - 1
        })
    }

    fn events(&mut self) {
        let history = self.history;
        let mut left = EMBEDDED;
        let mut rows: Vec<Vec<(i64, u32, OperationId)>> = vec![Vec::new(); self.picture.lanes.len()];
        for stream in &history.streams {
            let watch = history.operation(stream.operation);
            let Some(&lane) = self.lane_of.get(&watch.incarnation) else { continue };
            for index in stream.deliveries() {
                let at = history.deliveries[index].at;
                let t = self.time(at);
                if t < 0 {
                    continue;
                }
                if left == 0 || !self.near.covers(at, at) {
                    self.picture.omitted[1] += 1;
                    continue;
                }
                left -= 1;
                rows[lane].push((t, index as u32, stream.operation));
            }
        }
        for (lane, mut rows) in rows.into_iter().enumerate() {
            rows.sort_unstable_by_key(|(t, index, _)| (*t, *index));
            let mut events = Events::default();
            for (t, index, watch) in rows {
                let delivery = &history.deliveries[index as usize];
                let domain = self.domain_of(history.operation(watch));
                events.t.push(t);
                events.r.push(domain.map_or(-1, |domain| self.revision(domain, delivery.revision)));
                events.k.push(self.key(delivery.key));
                events.y.push(letter(delivery.kind));
                events.f.push(delivery.position.file.0);
                events.l.push(delivery.position.line);
            }
            self.picture.lanes[lane].events = events;
        }
    }

    /// The progress of each watcher of a scope: the revision of its last list, event or bookmark. The version of a single object
    /// does not show its reader's progress, so reads of one object are left out. Streams that are open together belong to
    /// different watchers.
    fn lines(&mut self) {
        let history = self.history;
        let mut seen: BTreeMap<(usize, ScopeId, usize), Points> = BTreeMap::new();
        let mut count = 0;
        for operation in history.operations.iter() {
            let Some(&lane) = self.lane_of.get(&operation.incarnation) else { continue };
            // A request for an exact revision, or for further pages of one, shows the past on purpose.
            let current = matches!(operation.asked, Asked::Unset | Asked::Any | Asked::From);
            let list = operation.verb == Verb::List && operation.is_answered() && current;
            if list && operation.answered.is_some() && operation.ret.is_known() && !operation.marks.has(Marks::SHADOW) {
                count += 1;
                seen.entry((lane, operation.scope, 0)).or_default().push((operation.ret, count, operation.answered));
            }
        }
        let mut ends: FxHashMap<(usize, ScopeId), Vec<Time>> = FxHashMap::default();
        for stream in &history.streams {
            let watch = history.operation(stream.operation);
            let Some(&lane) = self.lane_of.get(&watch.incarnation) else { continue };
            let deliveries = history.deliveries_of(stream);
            let last = deliveries.iter().map(|d| d.at).filter(|at| at.is_known()).max().unwrap_or(watch.invoke);
            let open = ends.entry((lane, watch.scope)).or_default();
            let track = open.iter().position(|end| *end <= watch.invoke).unwrap_or_else(|| {
                open.push(last);
                open.len() - 1
            });
            open[track] = last;
            let points = seen.entry((lane, watch.scope, track)).or_default();
            // Initial events are in order of keys, not of versions, so their highest revision counts.
            let mut initial = !watch.asked_revision.is_some() || watch.marks.has(Marks::INITIAL_EVENTS);
            let mut high = Revision::default();
            for delivery in deliveries.iter().filter(|d| d.at.is_known() && d.revision.is_some()) {
                initial &= delivery.kind == DeliveryKind::Added;
                high = if initial { high.max(delivery.revision) } else { delivery.revision };
                count += 1;
                points.push((delivery.at, count, high));
            }
        }
        for ((lane, scope, _), mut points) in seen {
            if !scope.is_some() || points.is_empty() {
                continue;
            }
            points.sort_unstable();
            let domain: DomainId = history.domain_of(history.scopes[scope.index()].resource);
            let mut flat: Vec<i64> = Vec::with_capacity(points.len() * 2);
            for (time, _, revision) in points {
                let r = self.revision(domain.index(), revision);
                if r >= 0 {
                    flat.extend([self.time(time), r]);
                }
            }
            let points = self.thin(flat);
            let scope = shown(&history.scope_name(scope));
            self.picture.lines.push(Line { lane, scope, domain: domain.index(), points, end: -1 });
        }
    }

    fn marks(&self) -> Vec<Band> {
        let noted = self.history.annotations.iter().take(MARKS);
        let bands = noted.map(|note| {
            let t = self.time(note.at);
            let u = if note.until.is_known() { self.time(note.until).max(t) } else { t };
            Band { t, u, name: shown(self.history.name(note.name)) }
        });
        bands.filter(|band| band.t >= 0).collect()
    }

    /// Adds the findings. Returns the positions of their facts.
    fn findings(&mut self, part: &Part<'_>) -> FxHashSet<Position> {
        let drawn = &part.judgement.findings[..part.judgement.findings.len().min(FINDINGS)];
        let mut wanted: Vec<Position> = drawn.iter().flat_map(|f| &f.certificate.facts).map(|f| f.position).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let raw = excerpt::read(self.history, &wanted);
        let ids: FxHashSet<&str> = drawn.iter().map(|finding| finding.id.as_str()).collect();
        let cited: FxHashSet<Position> = wanted.into_iter().collect();
        let log = self.history.calls().calls.iter().flat_map(|c| [(c.invoke.position, c), (c.ret.position, c)]);
        let calls: FxHashMap<Position, Call> = log.filter(|(position, _)| cited.contains(position)).collect();
        for finding in drawn {
            let certificate = facts::in_order_of_time(&finding.certificate);
            let positions: Vec<Position> = certificate.facts.iter().map(|fact| fact.position).collect();
            let mut drawn = self.finding(finding, &certificate, &ids, &raw);
            self.core(&mut drawn, &positions, &calls);
            self.picture.findings.push(drawn);
        }
        cited
    }

    fn finding(
        &self,
        finding: &check::Finding,
        certificate: &Certificate,
        ids: &FxHashSet<&str>,
        raw: &FxHashMap<Position, String>,
    ) -> Finding {
        let history = self.history;
        let rule = RULES.iter().find(|rule| rule.slug == finding.rule);
        let rows = facts::rows(history, certificate);
        let drawn = certificate.facts.iter().zip(rows).map(|(fact, row)| {
            let domain = fact.key.is_some().then(|| history.resource_of(fact.key)).filter(|r| r.is_some());
            let domain = domain.map_or(0, |resource| history.domain_of(resource).index());
            Fact {
                t: self.time(fact.time),
                r: self.revision(domain, fact.revision),
                domain,
                operation: -1,
                lane: self.lane_of.get(&fact.incarnation).map_or(-1, |lane| *lane as i64),
                says: row.says,
                time: row.time,
                clock: row.clock,
                revision: row.revision,
                who: row.client,
                server: row.server,
                position: fact.position,
                file: if row.place.is_empty() { -1 } else { i64::from(fact.position.file.0) },
                line: fact.position.line,
                audit: shown(&history.audit_id(fact.audit_id)),
                raw: raw.get(&fact.position).cloned().unwrap_or_default(),
            }
        });
        let facts: Vec<Fact> = drawn.collect();
        Finding {
            id: finding.id.clone(),
            rule: finding.rule,
            proves: rule.map_or("", |rule| rule.title),
            kind: match finding.kind {
                check::Kind::Violation => "violation",
                check::Kind::Suspect => "suspect",
                check::Kind::Hazard => "hazard",
            },
            promise: words::promise(finding).to_owned(),
            short: names::short_user(&names::client(history, finding.client)).to_owned(),
            client: names::client(history, finding.client),
            life: names::incarnation(history, finding.incarnation),
            summary: shown(&finding.summary),
            why: shown(&certificate.reason),
            consequence: shown(&finding.consequence),
            refuted_by: shown(&finding.refuted_by),
            prevention: finding
                .prevention
                .iter()
                .map(|way| {
                    let effect = match way.effect {
                        Effect::Impossible => "impossible",
                        Effect::Narrowed => "narrowed",
                        Effect::None => "none",
                    };
                    [shown(&way.request), effect.to_owned(), shown(&way.because)]
                })
                .collect(),
            exploration: words::exploration(finding),
            cause: finding.consequence_of.clone().filter(|id| ids.contains(id.as_str())),
            repeats: finding.occurrences.len().saturating_sub(1),
            edges: before::edges(&certificate.facts),
            facts,
        }
    }
}

/// An operation on the page.
struct Row {
    t: i64,
    u: i64,
    r: i64,
    verb: Verb,
    key: i64,
    status: u16,
    position: Position,
    /// Position of the answer, if it differs.
    answer: Position,
    /// Index into the words of the page.
    word: Option<usize>,
}

impl Operations {
    fn push(&mut self, row: Row) {
        self.t.push(row.t);
        self.u.push(row.u);
        self.r.push(row.r);
        self.v.push(row.verb as u8);
        self.k.push(row.key);
        self.s.push(row.status);
        self.f.push(row.position.file.0);
        self.l.push(row.position.line);
        self.w.extend(row.word);
    }
}

/// Thins a line. The first and last point, every fall (an anomaly) and everything near a finding stay.
fn thinned(points: Vec<i64>, near: impl Fn(i64) -> bool) -> Vec<i64> {
    let count = points.len() / 2;
    if count <= OVERVIEW {
        return points;
    }
    let stride = count.div_ceil(OVERVIEW);
    let falls = |at: usize| at > 0 && points[2 * at + 1] < points[2 * at - 1];
    let mut left = EMBEDDED;
    let mut close = |at: usize| {
        let close = left > 0 && near(points[2 * at]);
        left -= usize::from(close);
        close
    };
    let kept = (0..count).filter(|&at| {
        at % stride == 0 || at + 1 == count || falls(at) || (at + 1 < count && falls(at + 1)) || close(at)
    });
    kept.flat_map(|at| [points[2 * at], points[2 * at + 1]]).collect()
}

/// Sort key by which `node-2` precedes `node-10`.
fn counted(name: &str) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let end = rest[digits..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        parts.push((&rest[..digits], rest[digits..end].parse().unwrap_or(0)));
        rest = &rest[end..];
    }
    parts
}

fn letter(kind: DeliveryKind) -> char {
    match kind {
        DeliveryKind::Added => 'A',
        DeliveryKind::Modified => 'M',
        DeliveryKind::Deleted => 'D',
        DeliveryKind::Bookmark => 'B',
        DeliveryKind::InitialEventsEnd => 'E',
        DeliveryKind::Error => 'R',
        DeliveryKind::Unidentified => 'U',
    }
}

fn shown(text: &str) -> String {
    visible(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_the_order_in_which_people_count() {
        let mut names = ["node-10", "node-2", "api", "node-2b", "node-2a", "node", "99999999999999999999999"];
        names.sort_by_key(|name| counted(name));
        assert_eq!(names, ["99999999999999999999999", "api", "node", "node-2", "node-2a", "node-2b", "node-10"]);
    }

    #[test]
    fn a_thinned_line_keeps_its_ends_and_every_step_down() {
        let mut points: Vec<i64> = (0..100_000).flat_map(|n| [n, n]).collect();
        points[2 * 77_777 + 1] = 5;
        let whole = thinned(points.clone(), |_| true);
        let near = thinned(points.clone(), |t| (40_000..40_100).contains(&t));
        let thin = thinned(points, |_| false);
        assert!(thin.len() < 3 * 2 * OVERVIEW, "{}", thin.len());
        assert_eq!((&thin[..2], &thin[thin.len() - 2..]), (&[0, 0][..], &[99_999, 99_999][..]));
        let at = thin.chunks(2).position(|p| p == [77_777, 5]).expect("the step down");
        assert_eq!(thin[2 * at - 2..2 * at], [77_776, 77_776]);
        assert_eq!(whole.len(), 200_000);
        let close = near.chunks(2).filter(|p| (40_000..40_100).contains(&p[0])).count();
        assert_eq!((close, near.len() > thin.len()), (100, true));
    }
}
