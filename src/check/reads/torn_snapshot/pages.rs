//! Input: the pages of lists. Output: findings for a page that repeats a key of an earlier page of the same list, and for a
//! page that shows a key at or before the last key that its continue token names. Pages join by scope, revision and that last
//! key.

use crate::check::facts::live_keys::path;
use crate::check::facts::state_check::unless_open;
use crate::check::reads::torn_snapshot::draft;
use crate::check::{Evidence, Fact, RuleResult};
use crate::history::{Asked, Item, KeyId, Marks, Operation, OperationId, Revision, ScopeId, Symbol, Verb};
use rustc_hash::FxHashMap;

/// The end of a page that has a next page: scope, revision, and the last key.
type End = (ScopeId, Revision, Symbol);

/// Per key of one list: the first page that showed it, and the count of pages before that page.
type Shown = FxHashMap<KeyId, (OperationId, u32)>;

pub(super) fn audit(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut lists: Vec<Shown> = Vec::new();
    // Per page end: the index of the list in `lists`, and its count of pages up to there.
    let mut ends: FxHashMap<End, (usize, u32)> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        let more = o.marks.has(Marks::MORE_PAGES) && o.page_end.is_some();
        let follows = o.asked == Asked::Continue && o.page_after.is_some();
        if !o.is_answered() || !o.answered.is_some() || !(more || follows) {
            continue;
        }
        let items = evidence.history.items_of(&o);
        let known = if follows { ends.get(&(o.scope, o.answered, o.page_after)).copied() } else { None };
        let before = known.map(|(list, pages)| (&lists[list], pages));
        if follows && !repeats(evidence, result, id, &o, before) {
            goes_back(evidence, result, id, &o);
        }
        let (list, pages) = known.unwrap_or_else(|| {
            lists.push(Shown::default());
            (lists.len() - 1, 0)
        });
        if more {
            for item in items {
                lists[list].entry(item.key).or_insert((id, pages));
            }
            ends.insert((o.scope, o.answered, o.page_end), (list, pages + 1));
        }
    }
}

/// Whether a page shows a key of an earlier page. States the finding if so.
fn repeats(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    id: OperationId,
    o: &Operation,
    before: Option<(&Shown, u32)>,
) -> bool {
    let Some((shown, pages)) = before else { return false };
    result.checked(o.incarnation);
    let items = evidence.history.items_of(o).iter();
    let again = |item: &&Item| shown.get(&item.key).is_some_and(|(_, page)| *page < pages);
    let Some(item) = items.clone().find(again) else { return false };
    let first = shown[&item.key].0;
    let name = evidence.history.key_name(item.key);
    let earlier = evidence.history.items_of(&evidence.history.operation(first)).iter().find(|i| i.key == item.key);
    let mut facts: Vec<Fact> = earlier
        .map(|i| evidence.item(first, i.key, i.uid, i.revision, format!("a page before it showed {name}")))
        .into_iter()
        .collect();
    facts.push(evidence.item(id, item.key, item.uid, item.revision, format!("it showed {name} again")));
    let reason = "The pages of a list are parts of one state, and one state holds one object per name.".to_owned();
    result.found(draft(evidence, o, item.key, &format!("shows {name} again"), facts, reason));
    true
}

/// Reports a page that shows a key at or before the last key of the pages before it.
fn goes_back(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    let namespace = evidence.history.name(evidence.history.scopes[o.scope.index()].namespace);
    let after = evidence.history.name(o.page_after);
    let after = if namespace.is_empty() { after.to_owned() } else { format!("{namespace}/{after}") };
    let items = evidence.history.items_of(o).iter();
    let Some((item, at)) = items.map(|item| (item, path(evidence, item.key))).find(|(_, at)| *at <= after) else {
        return;
    };
    let name = evidence.history.key_name(item.key);
    let facts = vec![
        evidence.request(id, o.asked_revision, format!("asked for what comes after {after}")),
        evidence.item(id, item.key, item.uid, item.revision, format!("the page showed {name}")),
    ];
    let reason = "A continue token names the last key of the pages before it, and the next page begins after that key."
        .to_owned();
    let says = format!("shows {name}, which lies before the page");
    let open = (!are_plain(&at, &after)).then_some("a store other than etcd may order such names differently");
    result.found(unless_open(draft(evidence, o, item.key, &says, facts, reason), open));
}

/// Whether every text order compares two paths alike: the first parts that differ hold only lower-case letters and digits.
fn are_plain(one: &str, other: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let mut parts = one.split('/').zip(other.split('/'));
    let differs = parts.find(|(one, other)| one != other);
    one == other || differs.is_some_and(|(one, other)| is_plain(one) && is_plain(other))
}
