use super::{evidence, sketch};
use crate::history::{Asked, DeliveryKind, History, Marks, Outcome, StreamEnd};

/// A history in short: one operation per line, followed by the deliveries of its stream.
fn shown(text: &str) -> String {
    let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    history.operations.iter().enumerate().map(|(index, _)| operation(&history, index) + "\n").collect()
}

fn operation(history: &History, index: usize) -> String {
    let o = history.operations.get(index);
    let begin = super::lowered::BEGIN;
    let time = |t: crate::ingest::Time| {
        if t.is_known() { format!("{}", (t.0 - begin) as f64 / 1e6) } else { "open".to_owned() }
    };
    let life = &history.incarnations[o.incarnation.index()];
    let server = history.server_name(o.server);
    let mut text = format!(
        "{}@{server} [{}, {}] {} -> {}",
        life.label,
        time(o.invoke),
        time(o.ret),
        history.request_name(&o),
        o.status
    );
    if o.answered.is_some() {
        text += &format!(" @{}", o.answered);
    }
    if o.answer_uid.is_some() {
        text += &format!(" :{}", history.name(o.answer_uid));
    }
    let name = |key, uid, revision: crate::history::Revision| {
        let key = history.key_name(key);
        let key = key.rsplit('/').next().unwrap_or("").rsplit(' ').next().unwrap_or("").to_owned();
        format!(" {key}:{}@{revision}", history.name(uid))
    };
    for item in history.items_of(&o) {
        text += &name(item.key, item.uid, item.revision);
    }
    if let Some(stream) = history.stream_of(crate::history::OperationId(index as u32)) {
        for d in history.deliveries_of(stream) {
            text += &match d.kind {
                DeliveryKind::Added => format!(" +{}", name(d.key, d.uid, d.revision).trim()),
                DeliveryKind::Modified => format!(" ~{}", name(d.key, d.uid, d.revision).trim()),
                DeliveryKind::Deleted => format!(" -{}", name(d.key, d.uid, d.revision).trim()),
                DeliveryKind::Bookmark => format!(" ^{}", d.revision),
                DeliveryKind::InitialEventsEnd => format!(" ^^{}", d.revision),
                DeliveryKind::Error => format!(" !{}", d.code),
                DeliveryKind::Unidentified => " ?".to_owned(),
            };
        }
        text += &format!(" {:?}", stream.end);
    }
    text
}

fn error(text: &str) -> String {
    match sketch(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn steps_follow_each_other() {
    let text = shown(
        "kubelet/1@A  LIST rv=0 => 12 {a:u1@12 b@11}\n\
         kubelet/1@A  DELETE a:u1 => ok\n\
         kubelet/2@B  GET a rv=0 => a@12\n",
    );
    assert_eq!(
        text,
        "kubelet#1@A [0, 4] LIST pods resourceVersion=0 -> 200 @12 a:u1@12 b:b-uid@11\n\
         kubelet#1@A [6, 10] DELETE pods default/a -> 200 :u1\n\
         kubelet#2@B [12, 16] GET pods default/a resourceVersion=0 -> 200 @12 :u1\n"
    );
}

#[test]
fn columns_are_times_and_bars_are_ends() {
    let text = shown(
        "a@A  |--CREATE x => x:u1@5--|    |-GET x => 5-|\n\
         b@B        |--PUT x:u1@5 --?\n\
         ---\n\
         b@B  |-LIST in prod => 9 {prod/y@8} more-|\n",
    );
    assert_eq!(
        text,
        "a#1@A [5, 28] CREATE pods default/x -> 201 @5 :u1\n\
         b#1@B [11, open] UPDATE pods default/x based on 5 -> 0\n\
         a#1@A [33, 46] GET pods default/x -> 200 @5 :u1\n\
         b#1@B [57, 93] LIST pods in prod -> 200 @9 y:y-uid@8\n"
    );
}

#[test]
fn a_stream_goes_on_until_it_ends() {
    let history = sketch(
        "ctrl@A |--WATCH from 12  +b@13 ~a@14 ^16 ..\n\
         ctrl@A    |-WATCH nodes rv=0 as n +nodes/n1:n@3 ^^9 ..\n\
         ---\n\
         ctrl@A ..  -a@17 !410 --|\n\
         ctrl@A ..n ~nodes/n1@10 --- closed\n",
    );
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    // The second line names no stream, so it continues the latest one.
    let shown: Vec<String> = (0..2).map(|index| operation(&history, index)).collect();
    assert!(shown[0].ends_with("+b:b-uid@13 ~a:a-uid@14 ^16 Open"), "{}", shown[0]);
    assert!(shown[1].contains("^^9 -a:a-uid@17 ~n1:n@10 !410 Closed"), "{}", shown[1]);
}

#[test]
fn a_named_stream_is_the_one_that_goes_on() {
    let text = shown(
        "ctrl@A  WATCH from 12 as w +b@13\n\
         ctrl@A  WATCH nodes from 12 as n\n\
         ctrl@A  ..w  ^14  eof\n\
         ctrl@A  ..n  +n1@15  broken\n",
    );
    assert!(text.contains("WATCH pods resourceVersion=12 -> 200 +b:b-uid@13 ^14 Eof"), "{text}");
    assert!(text.contains("WATCH nodes resourceVersion=12 -> 200 +n1:n1-uid@15 Broken"), "{text}");
}

#[test]
fn every_way_of_asking_is_understood() {
    for (request, asked, revision) in [
        ("LIST => 9 {}", Asked::Unset, 0),
        ("LIST rv=0 limit=5 => 9 {}", Asked::Any, 0),
        ("LIST rv=7 => 9 {}", Asked::From, 7),
        ("LIST atleast=7 limit=5 => 9 {}", Asked::From, 7),
        ("LIST exact=7 => 7 {}", Asked::Exact, 7),
        ("LIST rv=7 limit=5 => 7 {}", Asked::LegacyExact, 7),
        ("LIST continue=7 limit=5 => 7 {}", Asked::Continue, 7),
        ("LIST continue=inconsistent limit=5 => 9 {}", Asked::ContinueInconsistent, 0),
        ("GET a rv=7 => 7", Asked::From, 7),
        ("WATCH", Asked::Unset, 0),
        ("WATCH rv=0 bookmarks", Asked::Any, 0),
        ("WATCH from 7", Asked::From, 7),
        ("WATCH initial", Asked::Unset, 0),
        ("WATCH initial from 7", Asked::From, 7),
        ("WATCH no-initial", Asked::Unset, 0),
    ] {
        let history = sketch(&format!("c@A {request}")).unwrap_or_else(|error| panic!("{error}"));
        let o = history.operations.get(0);
        assert_eq!((o.asked, o.asked_revision.value()), (asked, revision), "{request}");
    }
    let history = sketch("c@A WATCH initial from 7").unwrap_or_else(|error| panic!("{error}"));
    assert!(history.operations.get(0).marks.has(Marks(Marks::INITIAL_EVENTS.0 | Marks::BOOKMARKS.0)));
}

#[test]
fn selectors_see_what_brackets_say() {
    let history = sketch(
        "default pods in prod\n\
         etcd  +a:u1@10[app=web,node=n1]  ~a@11[app=db,node=n1]\n\
         c@A  LIST in prod labels(app in (web,db)) fields(spec.nodeName=n1) => 10 {a@10}\n",
    );
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    let list = history.operations.get(0);
    assert_eq!(history.scope_name(list.scope), "pods in prod where app in (web,db) where spec.nodeName=n1");
    let item = history.items_of(&list)[0];
    assert_eq!(history.selects(list.scope, item.key, item.attributes), Some(true));
    assert_eq!(history.selects(list.scope, history.witness[1].key, history.witness[1].attributes), Some(true));
    assert_eq!(history.witness.len(), 2);
}

#[test]
fn writes_name_what_they_rest_on() {
    let history = sketch(
        "c@A  PUT a:u1@11[app=web] => a:u1@12\n\
         c@A  PUT a => 13\n\
         c@A  PATCH status a:u1 => 14\n\
         c@A  PATCH a test(:u1@14) => !422\n\
         c@A  DELETE a:u1@14 => a:u1@15 deleting\n\
         c@A  PUT a:u1@15 => a:u1@15 gone\n\
         c@A  DELETE a dry-run => ok\n\
         c@A  CREATE * => b:u2@17\n\
         c@A  DELETE a => ?\n\
         c@A  PUT a:u1@15 => !504\n",
    );
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<_> = history
        .operations
        .iter()
        .map(|o| {
            let named = if o.request_uid.is_some() { history.name(o.request_uid) } else { "" };
            let marks: Vec<&str> = [
                (Marks::UNCONDITIONED, "unconditioned"),
                (Marks::TERMINATING, "terminating"),
                (Marks::REMOVES, "removes"),
                (Marks::DRY_RUN, "dry-run"),
            ]
            .iter()
            .filter(|(mark, _)| o.marks.has(*mark))
            .map(|(_, word)| *word)
            .collect();
            let outcome = match o.outcome() {
                Outcome::Answered => "answered",
                Outcome::Rejected => "rejected",
                Outcome::Unknown => "unknown",
            };
            format!(
                "{:?} {} {named}@{} {outcome} {} {}",
                o.verb,
                history.key_name(o.key),
                o.asked_revision,
                o.answered,
                marks.join(",")
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            "Update pods default/a u1@11 answered 12 ",
            "Update pods default/a @0 answered 13 unconditioned",
            "Patch pods default/a u1@0 answered 14 ",
            "Patch pods default/a u1@14 rejected 0 ",
            "Delete pods default/a u1@14 answered 15 terminating",
            "Update pods default/a u1@15 answered 15 terminating,removes",
            "Delete pods default/a @0 answered 0 unconditioned,dry-run",
            "Create pods default/b @0 answered 17 ",
            "Delete pods default/a @0 unknown 0 unconditioned",
            "Update pods default/a u1@15 unknown 0 ",
        ]
    );
}

#[test]
fn caches_and_decisions_are_recorded() {
    let history = sketch(
        "ctrl@A  READ pods/web:u1 => :u1@12 for d1\n\
         ctrl@A  READ nodes/n1 => absent for d1\n\
         ctrl@A  DELETE web:u1 for d1 => ok\n",
    );
    assert!(history.is_err(), "a read names a key; the value follows the arrow");
    let history = sketch(
        "ctrl@A  READ web => :u1@12 for d1\n\
         ctrl@A  READ nodes/n1 => absent for d1\n\
         ctrl@A  DELETE web:u1 for d1 => ok\n",
    );
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    let reads: Vec<String> = history
        .cache_reads
        .iter()
        .map(|r| format!("{} {} {}", history.key_name(r.key), r.revision, r.uid.is_some()))
        .collect();
    assert_eq!(reads, ["pods default/web 12 true", "nodes n1 0 false"]);
    assert_eq!(history.name(history.operations.get(0).decision), "d1");
    assert!(history.cache_reads[0].incarnation.is_some());
}

#[test]
fn clocks_run_apart_where_the_sketch_says_so() {
    let history = sketch(
        "clock node-1 +40ms\n\
         client kubelet clock=node-1 user=system:node:node-1\n\
         kubelet@A  GET a => 12\n\
         other@A    GET a => 12\n",
    );
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    let of = |user: &str| {
        let o = history
            .operations
            .iter()
            .find(|o| history.client_name(o.incarnation) == user)
            .map(|o| ((o.invoke.0 - super::lowered::BEGIN) / 1_000_000, history.clock_name(o.clock).to_owned()));
        o.unwrap_or_default()
    };
    assert_eq!(of("system:node:node-1"), (40, "node-1".to_owned()));
    assert_eq!(of("other"), (6, "wall".to_owned()));
}

#[test]
fn servers_and_clients_may_both_record() {
    let text = "recorded both\n\
                server A clock=a\n\
                clock a -3ms\n\
                web@A  PUT x:u1@5 => x:u1@6\n\
                web@A  WATCH from 6 +y@7\n";
    let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    let shadows = history.operations.iter().filter(|o| o.marks.has(Marks::SHADOW)).count();
    assert_eq!((history.operations.len(), shadows), (4, 2));
    let history = sketch(&text.replace("clock=a", "")).unwrap_or_else(|error| panic!("{error}"));
    let write = history.operations.get(0);
    let of_client = sketch(&text.replace("recorded both\n", "").replace("clock=a", "")).unwrap().operations.get(0);
    assert_eq!((write.invoke, write.ret), (of_client.invoke, of_client.ret), "the times are those of the client");
    assert!(history.operations.iter().all(|o| o.marks.has(Marks::BOTH_SIDES)));
}

#[test]
fn audit_levels_hide_bodies() {
    let text = "recorded audit\nlevel metadata\n\
                web@A  LIST => 9 {a@8}\nweb@A  PUT a:u1@8 => 9\nweb@A  PATCH a:u1@9 => 10\n";
    let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(history.operations.iter().all(|o| !o.answered.is_some()));
    assert_eq!(history.operations.get(1).asked_revision.value(), 8, "objectRef has a PUT's base at every level");
    assert_eq!(history.operations.get(2).asked_revision.value(), 0);
}

#[test]
fn positions_are_those_of_the_sketch() {
    let text = "# story\n\nweb@A  GET a => 12\n";
    let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    let position = history.operations.get(0).position;
    assert_eq!((position.line, position.offset), (3, 9));
    assert_eq!(history.file_name(position.file), "sketch");
}

#[test]
fn etcd_shows_lives_without_holes() {
    let history = sketch("etcd +a:u1@10 ~a@12 -a@15 !15 +a:u2@20\nc@A GET a => 20\n");
    let history = history.unwrap_or_else(|error| panic!("{error}"));
    let rows: Vec<String> = history
        .witness
        .iter()
        .map(|w| {
            let uid = if w.uid.is_some() { history.name(w.uid) } else { "" };
            format!("{} {} {} {uid}", w.revision, w.created, w.tombstone)
        })
        .collect();
    assert_eq!(rows, ["10 10 false u1", "12 10 false u1", "15 0 true ", "20 20 false u2"]);
    assert_eq!(history.witness_spans.len(), 2, "compaction may hide changes");
}

#[test]
fn evidence_is_what_the_sketch_was_read_from() {
    let text = "recorded both\nuids uuid\nserver A clock=wall\nserver B clock=wall\n\
                etcd +a:u1@10 ~a@12\n\
                kubelet/1@A  LIST fields(spec.nodeName=n1) => 12 {a@12[node=n1]}\n\
                kubelet/2@B  WATCH from 12 ^13 eof\n";
    let made = evidence(text).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = made.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["kubelet.jsonl", "audit-A.log", "audit-B.log", "etcd-watch.json"]);
    assert_eq!(made.sources, ["audit-A.log:server=A,clock=wall", "audit-B.log:server=B,clock=wall"]);
    let rules: Vec<_> = made.sources.iter().map(|s| crate::ingest::SourceRule::parse(s)).collect();
    let mut inputs = Vec::new();
    for (index, (name, content)) in made.files.iter().enumerate() {
        let id = crate::ingest::FileId(index as u32);
        let mut input = crate::ingest::InputFile::in_memory(id, name, content.as_bytes());
        if let Some(Ok(rule)) = rules.iter().find(|r| r.as_ref().is_ok_and(|r| r.glob == *name)) {
            input.source = rule.clone();
        }
        inputs.push(input);
    }
    let options = crate::ingest::ReadOptions::default();
    let read = crate::history::load(inputs, &options, &Default::default(), &());
    let drawn = sketch(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.problems, []);
    let rows = |h: &History| (0..h.operations.len()).map(|i| operation(h, i)).collect::<Vec<_>>();
    assert_eq!(rows(&read), rows(&drawn));
    assert_eq!(read.witness.len(), drawn.witness.len());
}

#[test]
fn streams_keep_their_events_in_time() {
    let history = sketch("c@A  WATCH from 5 +a@6 closed\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(history.streams[0].end, StreamEnd::Closed);
    let watch = history.operations.get(0);
    assert!(history.deliveries[0].at > watch.invoke && watch.ret > history.deliveries[0].at);
}

#[test]
fn errors_point_at_the_word() {
    for (text, expected) in [
        (
            "c@A  LIST rv=x => 12 {}",
            "line 1, column 14: expected a number, found \"x\"\n  |\n1 | c@A  LIST rv=x => 12 {}\n  |              ^",
        ),
        (
            "# one\nc@A  FETCH a",
            "line 2, column 6: expected GET, LIST, WATCH, CREATE, PUT, PATCH, DELETE, DELETEALL, READ, DECIDE or MARK, \
             found \"FETCH\"\n  |\n2 | c@A  FETCH a\n  |      ^",
        ),
        (
            "c@A  |--GET a => 12",
            "line 1, column 6: expected an act that ends with `|`, `-?` (no answer seen) or `..` (continues), found \"|\"\n  \
             |\n1 | c@A  |--GET a => 12\n  |      ^",
        ),
        (
            "c@A  LIST => 12",
            "line 1, column 16: expected `{...}` with the listed objects, found the end\n  |\n1 | c@A  LIST => 12\n  \
             |                ^",
        ),
        (
            "c@A  LIST => 12 {a b@3}",
            "line 1, column 18: expected a listed object with its version, as `a@12`, found \"a\"\n  |\n1 | c@A  LIST => \
             12 {a b@3}\n  |                  ^",
        ),
        ("c@A  GET a", "line 1, column 11: expected `=>` with the answer (`=> ?` if none was seen), found nothing\n"),
    ] {
        let found = error(text);
        assert!(
            found.starts_with(expected.trim_end()) || found.contains(expected.trim_end()),
            "{found}\n-- {expected}"
        );
    }
}

#[test]
fn errors_name_what_stood_to_reason() {
    for (text, place, expected) in [
        ("c@A  GET a => @x", (1, 16), "a version"),
        ("c@A  WATCH from 5 +a", (1, 20), "with its version"),
        ("c@A  WATCH from 5 => 7", (1, 22), "`!429`"),
        ("c@A  LIST => 12 {a@1", (1, 17), "\"}\""),
        ("c@A  LIST => 12 a@1}", (1, 20), "no closing bracket"),
        ("c@A  PUT a => !99", (1, 15), "an HTTP status"),
        ("c@A  PUT => 12", (1, 9), "the object"),
        ("c@A  LIST frobnicate => 1 {}", (1, 11), "an object, a resource"),
        ("c@A  .. +a@5", (1, 8), "a stream that an earlier line"),
        ("\tc@A GET a => 1", (1, 1), "spaces"),
        (" c@A GET a => 1", (1, 1), "at the line's begin"),
        ("c@A", (1, 4), "an act of the client"),
        ("resource é.x", (1, 10), "small letters"),
        ("--- 90000s", (1, 5), "at most a day"),
        ("clock x 5ms", (1, 9), "an offset of the clock"),
        ("column 1us", (1, 8), "between 10us and 60s"),
        ("client c colour=red", (1, 10), "`user`"),
        ("default gizmos", (1, 9), "a resource"),
        ("etcd ^5", (1, 6), "`+a@12`"),
        ("c@A GET a[x => 1", (1, 10), "\"]\""),
        ("c@A LIST a[x=1] => 1 {}", (1, 10), "an object, a resource"),
        ("c@A GET a => 340282366920938463463374607431768211456", (1, 14), ""),
        ("c@A |-GET a => 5-?", (1, 7), "no answer"),
        ("c@A |-GET a ..", (1, 7), ""),
        ("c@A |-GET a-| b", (1, 7), ""),
    ] {
        match sketch(text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(e) => {
                assert!(e.to_string().contains(expected), "{text}: {e}");
                assert!((e.line(), e.column()) == place || expected.is_empty(), "{text}: {e}");
            }
        }
    }
}

#[test]
fn no_text_makes_it_panic() {
    let alphabet: Vec<&str> =
        "c@A |- |--GET LIST WATCH PUT a:u1@12 {a@1 } => ? .. -| -? !410 ^^3 ^ + - ~a@3 [ ] ( ) labels( rv=0 from \
                               resource default server recorded=both user= level both a.b éé.x 86400s 99999999999999999999s +5s in for etcd --- # client column clock 5ms é . / : @ | READ ok more gone"
            .split(' ')
            .collect();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..40_000 {
        let mut text = String::new();
        for _ in 0..random.u8(1..=9) {
            text += alphabet[random.usize(..alphabet.len())];
            text += ["", " ", " ", "\n"][random.usize(..4)];
        }
        let _ = sketch(&text);
        let _ = sketch(&format!("c@A {text}"));
    }
}

#[test]
fn a_mark_is_kept_for_pictures_and_is_no_operation() {
    let history = sketch("ctrl@A  |-GET a => a:u1@10-|  |-MARK server A paused-|\n").unwrap();
    let notes: Vec<&str> = history.annotations.iter().map(|note| history.name(note.name)).collect();
    assert_eq!((notes, history.operations.len()), (vec!["server A paused"], 1));
    assert!(history.annotations[0].at.is_known());
}
