//! The environment of the explorer: what servers answer, and what a write rests on.

use retrograde::explore::{Bounds, variant};

/// Whether some run of a protocol breaks the first property; `Err` with the mistakes.
fn is_broken(head: &str, clients: &str) -> Result<bool, String> {
    let text = format!("name = \"x\"\n{head}\n{clients}");
    let found = variant(&text, None, None, Bounds::default()).map_err(|error| error.to_string())?;
    Ok(found.properties[0].1.is_some())
}

#[test]
fn a_stream_with_initial_events_begins_anew_after_410() {
    let head = r#"properties = ["monotonic-reads"]
        limits = { servers = 2, writes = 3, crashes = 0, breaks = 0, expirations = 1 }"#;
    let clients = |asked: &str| {
        format!(
            r#"
            [[client]]
            name = "user"
            steps = [{{ create = "pods/a" }}, {{ delete = "pods/a" }}]
            [[client]]
            name = "reflector"
            steps = [
                {{ name = "watch", watch = "pods", into = "pods", initial-events = true{asked}, on-expired = "watch" }},
            ]"#
        )
    };
    assert_eq!(is_broken(head, &clients(r#", resource-version = "0""#)), Ok(true));
    assert_eq!(is_broken(head, &clients("")), Ok(false));
}

#[test]
fn a_write_without_an_answer_keeps_the_premises_of_its_sending() {
    let head = r#"properties = ["stale-premise"]
        limits = { servers = 1, writes = 6, crashes = 0, breaks = 0, timeouts = 1 }"#;
    // The client reads again, into the same variable or another one, between the sending of its deletion and the effect.
    for into in ["service", "later"] {
        let clients = format!(
            r#"
            [[object]]
            key = "services/s"
            [[client]]
            name = "user"
            steps = [{{ delete = "services/s" }}, {{ create = "endpoints/e" }}]
            [[client]]
            name = "controller"
            steps = [
                {{ get = "services/s", into = "service" }},
                {{ name = "wait", get = "services/s", into = "wait" }},
                {{ delete = "endpoints/e", because = {{ service = "services/s" }}, on-timeout = "again", on-missing = "stop" }},
                {{ stop = true }},
                {{ name = "again", get = "services/s", into = "{into}" }},
            ]"#
        );
        assert_eq!(is_broken(head, &clients), Ok(true), "{into}");
    }
}

#[test]
fn a_404_has_no_version_for_a_later_read() {
    let head = r#"properties = ["monotonic-reads"]
        limits = { servers = 2, writes = 3, crashes = 0, breaks = 0 }"#;
    let clients = r#"
        [[object]]
        key = "pods/a"
        [[client]]
        name = "user"
        steps = [{ delete = "pods/a" }]
        [[client]]
        name = "reader"
        steps = [
            { get = "pods/a", into = "pod" },
            { switch = true },
            { get = "pods/a", resource-version = "pod", into = "again" },
        ]"#;
    assert_eq!(is_broken(head, clients), Ok(true));
    let changed = clients.replace(r#"delete = "pods/a""#, r#"patch = "pods/a", fields = "{'x': 1}""#);
    assert_eq!(is_broken(head, &changed), Ok(false));
}

#[test]
fn conditions_that_the_explorer_does_not_have_are_mistakes() {
    let rule = |table: &str, members: &str| {
        let rule = format!("[[{table}]]\nname = \"n\"\nresource = \"pods\"\n{members}");
        format!("properties = [\"double-allocation\"]\nrules = '''\n{rule}\n'''")
    };
    let clients = "[[client]]\nname = \"c\"\nsteps = [{ create = \"pods/a\" }]";
    let invariant = "scope = \"live\"\nexpression = \"size(objects) <= 1\"\n";
    for (head, expected) in [
        (rule("invariant", &format!("{invariant}per = [\"spec.node\"]")), "does not have `per`"),
        (rule("invariant", &format!("{invariant}unless = {{ \"spec.x\" = [\"1\"] }}")), "does not have `unless`"),
        (rule("allocation", "value = [\"spec.a\", \"spec.b\"]"), "needs one path of a field"),
        (rule("allocation", "value = [\"spec.ips[*]\"]"), "needs one path of a field"),
        (rule("invariant", &invariant.replace("<= 1", ">= 1")), "is false for the objects at the begin"),
    ] {
        let error = is_broken(&head, clients).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_barrier_waits_only_for_versions_that_an_answer_showed() {
    let head = r#"
        limits = { servers = 1, writes = 4, crashes = 0, breaks = 0 }
        rules = """
        [[invariant]]
        name = "no-end"
        title = "no run ends"
        resource = "RESOURCE"
        scope = "live"
        expression = "objects.all(o, o.metadata.name != 'end')"
        """
        [[object]]
        key = "RESOURCE/a"
    "#;
    // The client does not list again, so it never sees the version of the deletion.
    let clients = r#"
        [[client]]
        name = "c"
        steps = [
            { list = "RESOURCE", into = "all" },
            { delete = "RESOURCE/a" },
            { create = "RESOURCE/end", barrier = "all" },
        ]"#;
    let with = |resource: &str| is_broken(&head.replace("RESOURCE", resource), &clients.replace("RESOURCE", resource));
    assert_eq!((with("pods"), with("configmaps")), (Ok(false), Ok(true)));
}

#[test]
fn a_read_below_what_a_get_showed_goes_back_in_time() {
    let head = r#"properties = ["monotonic-reads"]
        limits = { servers = 2, writes = 3, crashes = 0, breaks = 0 }"#;
    let clients = |second: &str| {
        format!(
            r#"
            [[object]]
            key = "pods/a"
            [[client]]
            name = "user"
            steps = [{{ patch = "pods/a", fields = "{{'x': 1}}" }}]
            [[client]]
            name = "reader"
            steps = [{{ get = "pods/a", into = "pod" }}, {{ {second} }}]"#
        )
    };
    for (second, broken) in [
        (r#"get = "pods/a", resource-version = "0", into = "again""#, true),
        (r#"list = "pods", resource-version = "0", into = "all""#, true),
        (r#"watch = "pods", initial-events = true, resource-version = "0", into = "all""#, true),
        (r#"get = "pods/a", resource-version = "pod", into = "again""#, false),
        (r#"list = "pods", into = "all""#, false),
    ] {
        assert_eq!(is_broken(head, &clients(second)), Ok(broken), "{second}");
    }
}
