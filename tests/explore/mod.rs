//! The explorer: its reductions lose no violation, `check` convicts each counterexample and no server in any run, and the
//! shipped protocols give the published table.

mod environment;
mod recording;

use crate::support::dice::Dice;
use crate::support::draws::seeds;
use retrograde::check::{BrokenBy, Kind};
use retrograde::explore::{
    Bounds, End, Limits, Machine, PROTOCOLS, TransitionSystem, explore, fixes, read, sketch, variant,
};
use retrograde::history::sketch::sketch_with;
use retrograde::model::Declarations;
use std::collections::HashSet;
use std::sync::Arc;

/// Each shipped protocol without a fix and with each of its fixes.
fn variants() -> impl Iterator<Item = (&'static str, &'static str, Option<String>)> {
    PROTOCOLS.iter().flat_map(|&(name, text)| {
        let fixes = fixes(text).unwrap().into_iter().map(|fix| Some(fix.name));
        std::iter::once(None).chain(fixes).map(move |fix| (name, text, fix))
    })
}

/// The steps in which each property is broken; 0: in no run. One line for each variant.
const TABLE: &str = "\
kubelet-restart: monotonic-reads 4, name-reuse 5
kubelet-restart compare-later-lists: monotonic-reads 5, name-reuse 5
kubelet-restart live-get: monotonic-reads 4, name-reuse 8
kubelet-restart not-older-than: monotonic-reads 0, name-reuse 5
kubelet-restart quorum-lists: monotonic-reads 0, name-reuse 5
kubelet-restart uid-in-the-patch: monotonic-reads 4, name-reuse 0
kubelet-restart watch-list: monotonic-reads 0, name-reuse 5
node-name-reuse: name-reuse 9, dangling-reference 9
node-name-reuse owner-check: name-reuse 0, dangling-reference 0
node-name-reuse owner-check-of-a-stale-node: name-reuse 10, dangling-reference 10
node-name-reuse uid-in-the-patch: name-reuse 0, dangling-reference 0
ip-reconciler: double-allocation 13
ip-reconciler name-check: double-allocation 14
ip-reconciler pools-first: double-allocation 13
ip-reconciler read-again: double-allocation 14
ip-reconciler skip-pending: double-allocation 13
ip-reconciler uid-in-the-allocation: double-allocation 0
reflector-resume: monotonic-reads 8, stale-premise 7
reflector-resume client-keeps-the-highest: monotonic-reads 0, stale-premise 7
reflector-resume server-fix: monotonic-reads 0, stale-premise 7
reflector: monotonic-reads 4
reflector fresh-first-list: monotonic-reads 0
reflector relist-from-the-last-version: monotonic-reads 4
reflector watch-list: monotonic-reads 0
expectations: one-child 4
expectations expectations: one-child 6
expectations expectations-and-a-fresh-list: one-child 0
expectations fresh-list: one-child 4
consistency-barrier: one-pod-stays 9
consistency-barrier barrier: one-pod-stays 10
consistency-barrier barrier-and-fresh-list: one-pod-stays 0
optimistic-locking: one-pod-on-the-node 6
optimistic-locking fresh-reads: one-pod-on-the-node 6
optimistic-locking if-version: one-pod-on-the-node 0
server-side-apply: has-image 4
server-side-apply live-get: has-image 4
server-side-apply merge-patch: has-image 0
server-side-apply uid-in-the-apply: has-image 0
server-side-apply version-in-the-apply: has-image 4
leader-election: one-leader-writes 7
leader-election fencing-token: one-leader-writes 0
leader-election if-version: one-leader-writes 7
leader-election if-version-and-lock-last: one-leader-writes 0
leader-election lock-again: one-leader-writes 8
finalizer: own-volume 9
finalizer finalizer: own-volume 0
finalizer finalizer-and-cached-reads: own-volume 13
finalizer finalizer-removed-first: own-volume 13
finalizer owner-check: own-volume 0
";

#[test]
fn each_fix_breaks_the_properties_of_the_table_and_check_convicts_each_counterexample() {
    let mut table = String::new();
    for (name, text, fix) in variants() {
        let found =
            variant(text, fix.as_deref(), None, Bounds::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(matches!(found.exploration.end, End::Exhausted | End::AllBroken), "{name} {fix:?}");
        let mut results = Vec::new();
        for (property, counterexample) in &found.properties {
            results.push(format!("{property} {}", counterexample.as_ref().map_or(0, |found| found.steps)));
            if let Some(found) = counterexample {
                let is_found = found.violated.iter().any(|rule| *rule == property || *rule == "invariant");
                assert!(is_found, "{name} {fix:?} {property}:\n{}", found.sketch);
            }
        }
        let fix = fix.map_or(String::new(), |fix| format!(" {fix}"));
        table += &format!("{name}{fix}: {}\n", results.join(", "));
    }
    assert_eq!(table, TABLE);
}

/// The properties that some run of a machine breaks, by enumeration; `None` if it has too many states.
fn broken_by_enumeration(machine: &Machine) -> Option<u32> {
    const MAX_STATES: usize = 15_000;
    let (mut known, mut open, mut all) = (HashSet::from([machine.initial()]), vec![machine.initial()], 0);
    while let Some(state) = open.pop() {
        machine.successors(&state, &mut |after, broken| {
            all |= broken;
            if known.insert(after.clone()) {
                open.push(after);
            }
        });
        if known.len() > MAX_STATES {
            return None;
        }
    }
    Some(all)
}

#[test]
fn the_reductions_lose_no_violation() {
    let (mut compared, mut broken_once) = (0, 0);
    for (name, text, fix) in variants() {
        // Small enough that every interleaving with every advance of every cache can be enumerated.
        let all =
            [(1, 3, 1, 0, 0), (2, 3, 0, 1, 0), (2, 2, 1, 0, 0), (1, 4, 0, 1, 0), (1, 3, 0, 0, 1), (1, 2, 0, 0, 1)];
        for (servers, writes, crashes, breaks, timeouts) in all {
            let small = || {
                let mut protocol = read(text, fix.as_deref()).unwrap();
                protocol.set_limits(Limits { servers, writes, crashes, breaks, expirations: 0, timeouts });
                protocol
            };
            let Some(whole) = broken_by_enumeration(&Machine::unreduced(small()).unwrap()) else { continue };
            let found = explore(&Machine::new(small()).unwrap(), Bounds::default());
            let broken = found.counterexamples.iter().enumerate().filter(|(_, path)| path.is_some());
            let broken: u32 = broken.map(|(at, _)| 1 << at).sum();
            assert_eq!(broken, whole, "{name} {fix:?} {servers} {writes} {crashes} {breaks} {timeouts}");
            compared += 1;
            broken_once += u32::from(whole != 0);
        }
    }
    assert!(compared >= 60 && broken_once >= 10, "{compared} compared, {broken_once} of them broken");
}

#[test]
fn no_run_of_the_environment_convicts_a_server() {
    let all: Vec<_> = variants().collect();
    for seed in seeds(400) {
        let (name, text, fix) = &all[seed as usize % all.len()];
        let mut protocol = read(text, fix.as_deref()).unwrap();
        protocol.set_limits(Limits { timeouts: 1, breaks: 2, expirations: 1, ..protocol.limits() });
        let rules = protocol.rules.clone();
        let machine = Machine::new(protocol).unwrap();
        let mut dice = Dice::new(seed);
        let (mut state, mut path, mut broken) = (machine.initial(), Vec::new(), 0);
        for _ in 0..24 {
            let mut successors = Vec::new();
            machine.successors(&state, &mut |after, broken| successors.push((after, broken)));
            if successors.is_empty() {
                break;
            }
            let taken = dice.roll(successors.len() as u64) as usize;
            path.push(taken as u32);
            broken |= successors[taken].1;
            state = successors.swap_remove(taken).0;
        }
        let text = sketch(&machine, &path).expect("the run");
        let mut declarations = Declarations::shipped().clone();
        if !rules.is_empty() {
            declarations.add(Declarations::read("rules", &rules).unwrap());
        }
        let history =
            sketch_with(&text, &declarations.fields()).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let mut options = retrograde::Options::default();
        options.check.declarations = Arc::new(declarations);
        let judgement = retrograde::judge(&history, &options);
        for finding in &judgement.findings {
            // Servers before 1.10 break this promise, and a protocol may say that its servers do.
            let is_declared = finding.rule == "delete-version" && *name == "reflector-resume";
            let is_servers = finding.broken_by == BrokenBy::Server && finding.kind != Kind::Hazard;
            assert!(!is_servers || is_declared, "{name} {fix:?} seed {seed}: {}\n{text}", finding.summary);
        }
        for (at, property) in machine.properties().iter().enumerate() {
            let mut violations = judgement.findings.iter().filter(|f| f.kind == Kind::Violation);
            let is_found = violations.any(|f| f.rule == property || f.rule == "invariant");
            let is_broken = broken >> at & 1 == 1;
            // A process may have several reflectors of a resource, and then no evidence shows which of them went back.
            // An answer that nobody saw shows no uid.
            let may_be_open = property == "monotonic-reads" || text.contains("=> ?");
            assert!(
                !is_broken || is_found || may_be_open,
                "{name} {fix:?} seed {seed}: {property} is broken, and check is silent\n{text}"
            );
        }
    }
}

#[test]
fn each_planted_fault_is_found() {
    // A fix that is safe for a property, what is changed in the file, and the property that is broken then.
    let faults = [
        (
            "kubelet-restart",
            "quorum-lists",
            r#""kubelet.relist" = { resource-version = "unset" }"#,
            "",
            "monotonic-reads",
        ),
        (
            "kubelet-restart",
            "quorum-lists",
            r#""kubelet.first-list" = { resource-version = "unset" }"#,
            "",
            "monotonic-reads",
        ),
        (
            "kubelet-restart",
            "not-older-than",
            r#"resource-version = "pods""#,
            r#"resource-version = "0""#,
            "monotonic-reads",
        ),
        ("kubelet-restart", "uid-in-the-patch", "if-uid = true", "if-uid = false", "name-reuse"),
        (
            "kubelet-restart",
            "watch-list",
            "initial-events = true",
            r#"initial-events = true, resource-version = "0""#,
            "monotonic-reads",
        ),
        ("node-name-reuse", "owner-check", "config.owner == node.metadata.uid", "true", "name-reuse"),
        ("node-name-reuse", "uid-in-the-patch", "if-uid = true }\n", "if-uid = false }\n", "name-reuse"),
        ("ip-reconciler", "uid-in-the-allocation", r#", "uid-in-the-allocation"] }"#, "] }", "double-allocation"),
        ("ip-reconciler", "uid-in-the-allocation", "if-version = true", "if-version = false", "double-allocation"),
        (
            "reflector-resume",
            "client-keeps-the-highest",
            r#"resume = "highest""#,
            r#"resume = "last-event""#,
            "monotonic-reads",
        ),
        ("expectations", "expectations-and-a-fresh-list", "size(pods) > 0", "true", "one-child"),
        ("consistency-barrier", "barrier-and-fresh-list", r#"barrier = "pods""#, "if-uid = false", "one-pod-stays"),
        (
            "consistency-barrier",
            "barrier-and-fresh-list",
            r#""controller.list" = { resource-version = "unset" }"#,
            "",
            "one-pod-stays",
        ),
        ("server-side-apply", "uid-in-the-apply", "if-uid = true", "if-version = true", "has-image"),
        ("server-side-apply", "merge-patch", r#"{ patch = "workloads"#, r#"{ apply = "workloads"#, "has-image"),
        ("optimistic-locking", "if-version", r#""second.take" = { if-version = true }"#, "", "one-pod-on-the-node"),
        ("leader-election", "fencing-token", "shared.term <= 1", "true", "one-leader-writes"),
        (
            "leader-election",
            "if-version-and-lock-last",
            "if-version = true }\n\n",
            "if-version = false }\n\n",
            "one-leader-writes",
        ),
        (
            "finalizer",
            "finalizer",
            r#"deletionTimestamp)", else = "gone""#,
            r#"deletionTimestamp)", else = "release""#,
            "own-volume",
        ),
        ("finalizer", "owner-check", "volume.claim == claim.metadata.uid", "true", "own-volume"),
    ];
    for (name, fix, from, to, property) in faults {
        let text = shipped(name);
        let broken = |text: &str| {
            let found =
                variant(text, Some(fix), None, Bounds::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
            found.properties.iter().any(|(known, found)| known == property && found.is_some())
        };
        // A line that is left out would leave `change.` behind.
        let changed =
            if to.is_empty() { text.replace(&format!("change.{from}\n"), "") } else { text.replace(from, to) };
        assert_ne!(changed, text, "{name} {fix}: {from}");
        assert!(!broken(text) && broken(&changed), "{name} {fix}: {from}");
    }
}

#[test]
fn no_number_of_threads_changes_a_result() {
    let (_, text) = PROTOCOLS[2];
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let machine = Machine::new(read(text, None).unwrap()).unwrap();
        let found = pool.install(|| explore(&machine, Bounds::default()));
        (found.counterexamples, found.states, found.transitions, found.depth)
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn the_protocol_of_the_page_gives_what_the_page_says() {
    let page = include_str!("../../docs/explorer.md");
    let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a protocol");
    let found = |fix| variant(text, fix, None, Bounds::default()).unwrap_or_else(|error| panic!("{error}"));
    let sold_twice = found(None);
    let counterexample = sold_twice.properties[0].1.as_ref().expect("a run");
    assert_eq!((counterexample.steps, &*counterexample.violated), (6, &["invariant"][..]), "{}", counterexample.sketch);
    assert_eq!(found(Some("optimistic-locking")).is_safe(), Some(true));
}

/// A protocol of the catalogue.
fn shipped(name: &str) -> &'static str {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).expect("a protocol")
}

#[test]
fn a_barrier_does_not_wait_for_a_write_without_an_answer() {
    let text = shipped("consistency-barrier");
    let limits = Limits { timeouts: 1, ..read(text, None).unwrap().limits() };
    let found = variant(text, Some("barrier-and-fresh-list"), Some(limits), Bounds::default()).unwrap();
    let counterexample = found.properties[0].1.as_ref().expect("a run");
    assert_eq!(
        (counterexample.steps, &*counterexample.violated),
        (10, &["invariant"][..]),
        "{}",
        counterexample.sketch
    );
}

#[test]
fn a_step_that_waits_is_not_taken_together_with_the_step_before_it() {
    for condition in [r#"when = "pod != null""#, r#"barrier = "pod""#] {
        let text = format!(
            r#"
            name = "waits"
            limits = {{ servers = 1, writes = 2, crashes = 0, breaks = 0 }}
            rules = """
            [[invariant]]
            name = "no-end"
            title = "no run ends"
            resource = "pods"
            scope = "live"
            expression = "objects.all(o, o.metadata.name != 'end')"
            """
            [[client]]
            name = "c"
            steps = [
                {{ create = "pods/a" }},
                {{ get = "pods/a", resource-version = "0", into = "pod" }},
                {{ decide = "true", {condition} }},
                {{ create = "pods/end" }},
            ]
            "#
        );
        let found = variant(&text, None, None, Bounds::default()).unwrap_or_else(|error| panic!("{error}"));
        let run = found.properties[0].1.as_ref().expect("a run");
        assert!(run.sketch.contains("GET pods/a rv=0 => pods/a:u1@102"), "{condition}:\n{}", run.sketch);
    }
}

/// The answers to the requests of a client `user` in the shortest run that breaks the property of a protocol.
fn answers(text: &str) -> Vec<String> {
    let found = variant(text, None, None, Bounds::default()).unwrap_or_else(|error| panic!("{error}"));
    let counterexample = found.properties[0].1.as_ref().expect("the run");
    assert_eq!(counterexample.violated, ["invariant"]);
    let lines = counterexample.sketch.lines().filter_map(|line| line.strip_prefix("user/1@A  "));
    let requests = lines.filter(|line| !line.starts_with("READ"));
    requests.filter_map(|line| line.split(" => ").nth(1)).map(str::to_owned).collect()
}

#[test]
fn applies_are_answered_as_a_real_server_answers_them() {
    // Each answer was seen from kube-apiserver 1.37.2 for a ConfigMap and the same requests.
    let text = r#"
        name = "applies"
        limits = { servers = 1, writes = 16, crashes = 0, breaks = 0 }
        rules = """
        [[invariant]]
        name = "no-end"
        title = "no run ends"
        resource = "widgets.example.com"
        scope = "live"
        expression = "objects.all(o, o.metadata.name != 'end')"
        """
        [[object]]
        key = "widgets.example.com/set-up"
        fields = { data = { x = 1 } }
        [[client]]
        name = "user"
        steps = [
            { apply = "widgets.example.com/web", fields = "{'data': {'x': 1, 'y': 1}}" },
            { apply = "widgets.example.com/web", fields = "{'data': {'x': 1, 'y': 1}}" },
            { apply = "widgets.example.com/set-up", fields = "{'data': {'x': 2}}", on-conflict = "next" },
            { apply = "widgets.example.com/set-up", fields = "{'data': {'x': 1}}" },
            { apply = "widgets.example.com/set-up", fields = "{'data': {'z': 1}}" },
            { apply = "widgets.example.com/set-up", fields = "{'data': {'x': 3}}", force = true },
            { patch = "widgets.example.com/web", fields = "{'data': {'x': 9}}" },
            { apply = "widgets.example.com/web", fields = "{'data': {'x': 7}}", on-conflict = "next" },
            { apply = "widgets.example.com/web", fields = "{'data': {'x': 9}}" },
            { get = "widgets.example.com/web", into = "web" },
            { delete = "widgets.example.com/web" },
            { apply = "widgets.example.com/web", from = "web", if-uid = true, on-conflict = "next" },
            { apply = "widgets.example.com/web", from = "web", if-version = true },
            { apply = "widgets.example.com/web", from = "web", if-version = true, on-conflict = "next" },
            { apply = "widgets.example.com/web", from = "web", if-uid = true, on-conflict = "next" },
            { create = "widgets.example.com/end" },
        ]
    "#;
    assert_eq!(
        answers(text),
        [
            "widgets/web:u2@103[.data.x=1 .data.y=1 created]",
            "widgets/web:u2@103[.data.x=1 .data.y=1]",
            "!409",
            "widgets/set-up:u1@104[.data.x=1]",
            "widgets/set-up:u1@105[.data.x=1 .data.z=1]",
            "widgets/set-up:u1@106[.data.x=3]",
            "widgets/web:u2@107[.data.x=9 .data.y=1]",
            "!409",
            "widgets/web:u2@108[.data.x=9]",
            "widgets/web:u2@108[.data.x=9]",
            "ok:u2",
            "!409",
            "widgets/web:u3@110[created]",
            "!409",
            "!422",
            "widgets/end:u4@111[]",
        ]
    );
}

#[test]
fn a_bookmark_raises_the_version_of_a_stream_while_other_resources_change() {
    let with = |bookmarks| {
        format!(
            r#"
            name = "bookmarks"
            properties = ["monotonic-reads"]
            limits = {{ servers = 2, writes = 2, crashes = 0, breaks = 1 }}
            [[object]]
            key = "pods/a"
            [[client]]
            name = "other"
            steps = [{{ create = "leases/l" }}, {{ create = "pods/b" }}]
            [[client]]
            name = "reflector"
            steps = [
                {{ list = "pods", into = "pods" }},
                {{ watch = "pods", into = "pods", bookmarks = {bookmarks}, on-event = "again" }},
                {{ name = "again", switch = true }},
                {{ list = "pods", resource-version = "0", into = "later" }},
            ]
            "#
        )
    };
    // A break ends the stream at the bookmark, and the new one begins there.
    let machine = Machine::new(read(&with(true), None).unwrap()).unwrap();
    let mut found = false;
    let (mut known, mut open) = (HashSet::from([machine.initial()]), vec![(machine.initial(), Vec::new())]);
    while let Some((state, path)) = open.pop() {
        let mut successors = Vec::new();
        machine.successors(&state, &mut |after, _| successors.push(after));
        for (nth, after) in (0..).zip(successors) {
            let path = [&path[..], &[nth]].concat();
            let text = sketch(&machine, &path).expect("the run");
            found |= text.contains("WATCH pods from 102 bookmarks as s1  ^103") && text.contains("WATCH pods from 103");
            if known.insert(after.clone()) {
                open.push((after, path));
            }
        }
    }
    assert!(found, "no stream is opened at a bookmark");
    let states =
        |bookmarks| explore(&Machine::new(read(&with(bookmarks), None).unwrap()).unwrap(), Bounds::default()).states;
    assert!(states(true) > states(false));
}

#[test]
fn finalizers_hold_an_object_until_the_last_one_is_removed() {
    let text = r#"
        name = "held"
        limits = { servers = 1, writes = 8, crashes = 0, breaks = 0 }
        rules = """
        [[invariant]]
        name = "no-end"
        title = "no run ends"
        resource = "claims.example.com"
        scope = "live"
        expression = "objects.all(o, o.metadata.name != 'end')"
        """
        [[client]]
        name = "user"
        steps = [
            { create = "claims.example.com/data", fields = "{'metadata': {'finalizers': ['a', 'b']}}" },
            { delete = "claims.example.com/data" },
            { delete = "claims.example.com/data" },
            { patch = "claims.example.com/data", fields = "{'metadata': {'finalizers': ['a', 'c']}}", on-conflict = "next" },
            { patch = "claims.example.com/data", fields = "{'metadata': {'finalizers': ['a']}}" },
            { create = "claims.example.com/data", on-conflict = "next" },
            { patch = "claims.example.com/data", fields = "{'metadata': {'finalizers': []}}" },
            { create = "claims.example.com/data" },
            { create = "claims.example.com/end" },
        ]
    "#;
    assert_eq!(
        answers(text),
        [
            "claims/data:u1@102[finalizer=a finalizer=b]",
            "claims/data:u1@103[deleting finalizer=a finalizer=b]",
            "claims/data:u1@103[deleting finalizer=a finalizer=b]",
            "!422",
            "claims/data:u1@104[deleting finalizer=a]",
            "!409",
            "claims/data:u1@104[gone]",
            "claims/data:u2@106[]",
            "claims/end:u3@107[]",
        ]
    );
}

#[test]
fn no_altered_protocol_panics() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in seeds(400) {
        let mut dice = Dice::new(seed);
        let (_, text) = PROTOCOLS[dice.roll(PROTOCOLS.len() as u64) as usize];
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for _ in 0..=dice.roll(3) {
            let (at, other) = (dice.roll(lines.len() as u64) as usize, dice.roll(lines.len() as u64) as usize);
            match dice.roll(6) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[other].clone()),
                2 => lines[at] = lines[at].replace(['1', '2', '3'], "255"),
                3 => lines[at] = lines[at].replace("into = ", "from = "),
                4 => lines[at] = lines[at].replace("pods", "nodes").replace("'web-0'", "'web-1'"),
                _ => {
                    let cut = dice.roll(lines[at].len() as u64 + 1) as usize;
                    let cut = (0..=cut).rev().find(|cut| lines[at].is_char_boundary(*cut)).unwrap_or(0);
                    lines[at].truncate(cut);
                }
            }
        }
        let altered = lines.join("\n");
        let all = fixes(&altered).map(|all| all.into_iter().map(|fix| Some(fix.name)).collect::<Vec<_>>());
        for fix in all.unwrap_or_default().into_iter().chain([None]) {
            let bounds = Bounds { steps: 8, states: 2_000, ..Bounds::default() };
            match variant(&altered, fix.as_deref(), None, bounds) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{altered}");
                    refused += 1;
                }
            }
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}

#[test]
fn too_much_of_anything_is_refused_with_its_limit() {
    let head = "name = \"x\"\nproperties = [\"monotonic-reads\"]\n[[object]]\nkey = \"pods/p\"\n";
    let client = |steps: &str| format!("{head}[[client]]\nname = \"c\"\nsteps = [{steps}]\n");
    let many = |step: &dyn Fn(u32) -> String, count| client(&(0..count).map(step).collect::<Vec<_>>().join(", "));
    let nested = format!("{{ decide = \"{}true{}\" }}", "(".repeat(200), ")".repeat(200));
    let cases = [
        (many(&|_| "{ stop = true }".to_owned(), 300), "at most 254 steps"),
        (many(&|at| format!("{{ delete = \"pods/p{at}\" }}"), 100), "at most 64 objects"),
        (many(&|at| format!("{{ list = \"r{at}\", into = \"v{at}\" }}"), 100), "at most 64 resources"),
        (client(&nested), "nested brackets"),
        (client(&format!("{{ decide = \"{}\" }}", "1 + ".repeat(400) + "1 > 0")), "at most 512 bytes"),
        (client("{ list = \"pods\", into = \"v\" }") + "[limits]\nwrites = 255\n", "lower limits.writes"),
    ];
    for (text, expected) in cases {
        let error = variant(&text, None, None, Bounds::default()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_name_that_nothing_has_is_a_mistake() {
    let text = shipped("finalizer");
    for (from, to, expected) in [
        (
            r#"only-with = ["owner-check"]"#,
            r#"only-with = ["owner-chekc"]"#,
            "no fix `owner-chekc`; the fixes are: finalizer,",
        ),
        (r#"into = "volume" }"#, r#"into = "volume", only-without = ["x"] }"#, "no fix `x`"),
        (r#"create = "volumes.example.com/data""#, r#"create = "volumes/data""#, "makes `volumes.example.com/data`"),
        (r#"resource = "claims.example.com""#, r#"resource = "claims""#, "makes an object of `claims`"),
        (
            r#"change."controller.volume""#,
            r#"change."controller.remove""#,
            "`controller.remove` names no step that this fix has",
        ),
        ("[[invariant]]", "[[transition]]", "a property is expected"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let fix = changed.contains("controller.remove").then_some("finalizer-and-cached-reads");
        let error = read(&changed, fix).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_fix_changes_neither_the_name_nor_the_fixes_of_a_step() {
    let text = shipped("finalizer");
    for member in [r#"name = "look""#, "only-with = []", r#"only-without = ["finalizer"]"#] {
        let from = r#"change."controller.volume" = { "#;
        let changed = text.replace(from, &format!("{from}{member}, "));
        assert_ne!(changed, text);
        let error = read(&changed, Some("finalizer-and-cached-reads")).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("`controller.volume`: a fix cannot change `name`, "), "{member}: {error}");
    }
}

#[test]
fn a_fix_changes_a_step_behind_one_of_the_same_name_that_it_does_not_have() {
    let text = shipped("finalizer");
    let step = r#"    { name = "claim", get"#;
    let other = r#"    { name = "volume", await = "claim == null", only-with = ["owner-check"] },"#;
    let changed = text.replace(step, &format!("{other}\n{step}"));
    assert_ne!(changed, text);
    let found = variant(&changed, Some("finalizer-and-cached-reads"), None, Bounds::default());
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.properties[0].1.as_ref().map(|counterexample| counterexample.steps), Some(13));
}

#[test]
fn a_limit_that_leaves_runs_out_is_reported() {
    let text = shipped("finalizer");
    let with = |writes| {
        let limits = Limits { writes, ..read(text, None).unwrap().limits() };
        variant(text, Some("owner-check"), Some(limits), Bounds::default()).unwrap().has_more_writes
    };
    assert_eq!((with(3), with(12)), (true, false));
}

#[test]
fn mistakes_in_a_protocol_are_all_named() {
    let text = r#"
        name = "wrong"
        properties = ["monotonic"]
        [[client]]
        name = "c"
        steps = [
            { list = "pods" },
            { delete = "web-0" },
            { decide = "1 +", else = "nowhere" },
            { get = "pods/a", put = "x" },
        ]
    "#;
    let error = read(text, None).unwrap_err().to_string();
    assert!(error.contains("unknown field `put`"), "{error}");
    let error = read(&text.replace(", put = \"x\"", ""), None).unwrap_err().to_string();
    for expected in [
        "found `monotonic`",
        "needs `into`",
        "RESOURCE/NAME is expected, found `web-0`",
        "`1 +`: this is not an expression",
        "no step `nowhere`",
    ] {
        assert!(error.contains(expected), "{expected}:\n{error}");
    }
    let (_, kubelet) = PROTOCOLS[0];
    let error = read(kubelet, Some("quorum")).unwrap_err().to_string();
    assert!(error.contains("no fix `quorum`") && error.contains("quorum-lists"), "{error}");
}
