//! Doubts whether one process knew an earlier answer when it sent a later request. Output: a reason, which turns a violation
//! of a session rule into a suspect; `None` if the process certainly knew it.

use crate::check::Evidence;
use crate::history::{IdentifiedBy, IncarnationId, Marks, Operation};
use crate::ingest::Time;
use crate::order::EvidenceRef;

/// The latency of an answer, in nanoseconds. A client may send a request before it receives an answer that a server's log
/// already has.
const LATENCY: i64 = 10_000_000;

/// The reason why a process life may be several concurrent processes; `None` if evidence shows that it is one.
///
/// Replicas behind one address have one user, address and agent, and an audit event names no process
/// (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/>). A node's own identity is one process of a
/// program. So is a client that watches: replicas would watch one scope twice at a time. A client that only lists and
/// gets may be many machines, unless its address is that of the server's own host. No machine between them can have put
/// that address there.
pub fn several(evidence: &Evidence<'_>, incarnation: IncarnationId) -> Option<&'static str> {
    let (history, chains) = (evidence.history, &evidence.order.chains);
    let life =
        history.incarnations.get(incarnation.index()).filter(|life| life.identified_by == IdentifiedBy::Address)?;
    if history.client_name(incarnation).starts_with("system:node:") {
        return None;
    }
    if chains.are_crowded(incarnation) {
        return Some(
            "only user, address and agent identify the process, and it watched one scope twice at a time, so it may \
            be several processes",
        );
    }
    (!life.is_local() && !chains.has_watches(incarnation)).then_some(
        "only user, address and agent identify the process, several processes behind one address may share them, and \
        it never watched",
    )
}

/// The reason why the sender of a request may not have known an earlier observation; `None` if it knew.
pub fn doubt(evidence: &Evidence<'_>, (showing, at): (EvidenceRef, Time), later: &Operation) -> Option<&'static str> {
    let (history, order) = (evidence.history, evidence.order);
    if let Some(several) = several(evidence, later.incarnation) {
        return Some(several);
    }
    let (EvidenceRef::Answer(earlier) | EvidenceRef::Delivery(_, earlier)) = showing;
    let before = history.operation(earlier).incarnation;
    if order.sessions.is_guess(before, later.incarnation) {
        return Some(
            "the labels of the two incarnations name no place, so they may belong to two processes (--same-process)",
        );
    }
    let of_client = |o: &Operation| o.marks.has(Marks::CLIENT_SIDE);
    let earlier = history.operation(earlier);
    let surely = Time(at.0.saturating_add(LATENCY));
    let apart = order.clocks.before((surely, earlier.clock), (later.invoke, later.clock));
    (!of_client(&earlier) && !of_client(later) && !apart).then_some(
        "only servers recorded the two requests, and the second may have been sent before the client \
                   received the first answer",
    )
}

#[cfg(test)]
mod tests {
    use crate::check::Kind;
    use crate::check::sessions::{monotonic_reads, read_your_writes};
    use crate::check::testing::trial::{judged, kinds, read};

    const NEAR: &str = "ctl@A  |-CREATE b => b:u2@10-|\nctl@A                              |-LIST rv=0 => 9 {}-|\n";

    #[test]
    fn what_only_servers_recorded_must_lie_apart_further_than_an_answer_may_travel() {
        let apart = NEAR.replace("\nctl", "\n--- 1s\nctl");
        let of = |text: &str| kinds(&read_your_writes::RULE, text);
        let watches = "recorded audit\nctl@A  WATCH services from 1\n";
        assert_eq!(of(&format!("{watches}{NEAR}")), [Kind::Suspect]);
        assert_eq!(of(&format!("{watches}{apart}")), [Kind::Violation]);
        assert_eq!(of(&format!("recorded audit\n{apart}")), [Kind::Suspect], "nothing shows that it is one process");
        let local = format!("client ctl address=127.0.0.1\nrecorded audit\n{apart}");
        assert_eq!(of(&local), [Kind::Violation], "no other machine has that address");
        assert_eq!(of(NEAR), [Kind::Violation], "the client itself recorded the time of the answer");
    }

    /// The findings if one life of a user listed pods at 100 and the next one, five seconds later, at 80.
    fn of_two_lives(user: &str, labels: [&str; 2]) -> Vec<Kind> {
        let life = |label: &str, second: u32, ask: &str, revision: u32| {
            format!(
                "{{\"kind\":\"capture\",\"version\":1,\"client\":\"{user}\",\"incarnation\":\"{label}\",\"clock\":\"lab\"}}\n\
                 {{\"kind\":\"request\",\"id\":{second},\"at\":\"2026-03-02T09:00:0{second}Z\",\"method\":\"GET\",\"uri\":\"/api/v1/pods{ask}\",\"user_agent\":\"ctrl/v1\"}}\n\
                 {{\"kind\":\"response\",\"id\":{second},\"at\":\"2026-03-02T09:00:0{second}.5Z\",\"status\":200,\"body\":{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"items\":[]}}}}\n"
            )
        };
        let text = life(labels[0], 0, "", 100) + &life(labels[1], 5, "?resourceVersion=0", 80);
        judged(&monotonic_reads::RULE, &read([("c.jsonl", text.as_str())].into_iter(), &[])).kinds()
    }

    #[test]
    fn what_only_the_times_of_two_clocks_put_before_a_list_is_a_suspect() {
        let servers = "recorded audit\nserver A clock=one\nserver B clock=two\n";
        let seen = "k@A GET b => b:u2@12[?]\n--- 1s\n";
        let of = |list: &str| {
            kinds(&monotonic_reads::RULE, &format!("{servers}{seen}k@B LIST fields(spec.nodeName=n1) rv=0 => {list}\n"))
        };
        assert_eq!(of("9 {b:u2@8[node=n1]}"), [Kind::Suspect], "it lists an object that the process had seen");
        assert_eq!(of("14 {b:u2@12[node=n1]}"), []);
    }

    #[test]
    fn a_list_on_another_server_does_not_make_two_processes_of_one() {
        let before = "recorded audit\nlevel metadata\nserver A clock=wall\nserver B clock=wall\nctl@B LIST rv=0 => bare\nctl@B WATCH from 10 eof\n\
                      o@A PUT b:u2@80 => b:u2@85\n";
        let after = "--- 1s\nctl@B WATCH from 90 eof\n--- 1s\nctl@B LIST rv=0 => bare\nctl@B WATCH from 27 eof\n";
        let of = |text: String| kinds(&monotonic_reads::RULE, &text);
        assert_eq!(of(format!("{before}{after}")), [Kind::Violation]);
        assert_eq!(of(format!("{before}ctl@A LIST => bare\n{after}")), [Kind::Violation]);
    }

    #[test]
    fn labels_that_say_nothing_about_a_place_leave_it_open() {
        let uuids = ["3f2b1c9e-5d4a-4b6c-8e7f-0123456789ab", "77777777-5d4a-4b6c-8e7f-0123456789ab"];
        for labels in [["1", "2"], uuids, ["2026-03-02", "2026-03-05"]] {
            assert_eq!(of_two_lives("system:node:n1", labels), [Kind::Violation], "the place of a node is the node");
            assert_eq!(of_two_lives("ctrl", labels), [Kind::Suspect], "{labels:?}");
        }
        assert_eq!(of_two_lives("ctrl", ["ctrl-0#1", "ctrl-0#2"]), [Kind::Violation]);
        assert_eq!(of_two_lives("ctrl", ["ctrl-0#1", "ctrl-1#1"]), [], "two places");
    }

    #[test]
    fn a_process_told_by_its_address_that_watches_a_scope_twice_at_a_time_may_be_several() {
        let reads = "--- 1s\nctl@A  LIST => 10 {b:u2@10}\n--- 1s\nctl@A  LIST rv=0 => 9 {}\n";
        let text = format!("recorded audit\nctl@A  WATCH services from 1\no@A  CREATE b => b:u2@10\n{reads}");
        assert_eq!(kinds(&monotonic_reads::RULE, &text), [Kind::Violation]);
        let watch = "ctl@A  |-LIST => 10 {b:u2@10}-|\nctl@A                              |-WATCH from 10 .. ..\n";
        let two = format!("{watch}--- 1s\n{watch}");
        assert_eq!(kinds(&monotonic_reads::RULE, &format!("{text}{two}")), [Kind::Suspect]);
    }
}
