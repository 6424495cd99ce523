//! Traps that a sketch cannot draw: one version with different bytes, and audit ids that clients choose.

use retrograde::check::{Judgement, Kind};
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{FileId, InputFile};

fn load(files: &[(&str, String)]) -> History {
    let inputs = files.iter().enumerate().map(|(index, (name, text))| {
        let mut input = InputFile::in_memory(FileId(index as u32), name, text.clone().into_bytes());
        input.source.clock = Some("lab".to_owned());
        input.source.server = Some("a".to_owned());
        input
    });
    history::load(inputs.collect(), &retrograde::read_options(), &Domains::default(), &())
}

fn judge(history: &History) -> Judgement {
    let judgement = retrograde::judge(history, &retrograde::Options::default());
    let alarms: Vec<_> = judgement.findings.iter().filter(|f| f.kind != Kind::Hazard).map(|f| &f.summary).collect();
    assert!(alarms.is_empty(), "{alarms:?}");
    judgement
}

fn exchange(id: u32, at: u32, method: &str, uri: &str, status: u16, audit_id: &str, body: &str) -> String {
    format!(
        "{{\"kind\":\"request\",\"id\":{id},\"at\":\"2026-01-01T00:00:{at:02}.000000Z\",\"method\":\"{method}\",\"uri\":\"{uri}\"}}\n\
         {{\"kind\":\"response\",\"id\":{id},\"at\":\"2026-01-01T00:00:{at:02}.500000Z\",\"status\":{status},\"audit_id\":\"{audit_id}\",\"body\":{body}}}\n"
    )
}

fn object(api_version: &str, version: u32, extra: &str) -> String {
    format!(
        "{{\"kind\":\"Deployment\",\"apiVersion\":\"{api_version}\",\"metadata\":{{\"name\":\"web\",\"namespace\":\"prod\",\"uid\":\"u1\",\
         \"resourceVersion\":\"{version}\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"{extra}}},\"spec\":{{\"replicas\":1}}}}"
    )
}

#[test]
fn one_version_read_through_two_api_versions_and_two_groups_is_one_version() {
    let head = "{\"kind\":\"capture\",\"version\":1,\"client\":\"reader\",\"incarnation\":\"r#1\",\"server\":\"a\",\"clock\":\"lab\"}\n";
    let managed = ",\"managedFields\":[{\"manager\":\"x\",\"operation\":\"Update\"}]";
    let text = head.to_owned()
        + &exchange(
            1,
            1,
            "GET",
            "/apis/apps/v1/namespaces/prod/deployments/web",
            200,
            "",
            &object("apps/v1", 40, managed),
        )
        + &exchange(
            2,
            2,
            "GET",
            "/apis/apps/v1beta2/namespaces/prod/deployments/web",
            200,
            "",
            &object("apps/v1beta2", 40, ""),
        )
        + &exchange(
            3,
            3,
            "GET",
            "/apis/extensions/v1beta1/namespaces/prod/deployments/web",
            200,
            "",
            &object("extensions/v1beta1", 40, ""),
        );
    let history = load(&[("reader.jsonl", text)]);
    judge(&history);
    assert_eq!(history.resources.len(), 1, "served twice, stored once");
}

#[test]
fn an_audit_id_that_a_client_made_up_joins_no_two_requests() {
    let id = "00000000-dead-4bee-8f00-000000000001";
    let head = "{\"kind\":\"capture\",\"version\":1,\"client\":\"reader\",\"incarnation\":\"r#1\",\"server\":\"a\",\"clock\":\"lab\"}\n";
    let uri = "/apis/apps/v1/namespaces/prod/deployments/web";
    let capture = head.to_owned()
        + &exchange(1, 1, "GET", uri, 200, id, &object("apps/v1", 40, ""))
        + &exchange(2, 2, "GET", uri, 200, id, &object("apps/v1", 40, ""));
    let event = |at: u32| {
        format!(
            "{{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Metadata\",\"auditID\":\"{id}\",\"stage\":\"ResponseComplete\",\
             \"requestURI\":\"{uri}\",\"verb\":\"get\",\"user\":{{\"username\":\"reader\"}},\"sourceIPs\":[\"10.0.0.1\"],\"userAgent\":\"r/1\",\
             \"objectRef\":{{\"resource\":\"deployments\",\"namespace\":\"prod\",\"name\":\"web\",\"apiGroup\":\"apps\"}},\"responseStatus\":{{\"code\":200}},\
             \"requestReceivedTimestamp\":\"2026-01-01T00:00:{at:02}.100000Z\",\"stageTimestamp\":\"2026-01-01T00:00:{at:02}.400000Z\"}}\n"
        )
    };
    // Each request has its own record; the third record under the same id belongs to no request of the capture.
    let history = load(&[("reader.jsonl", capture), ("audit.log", event(1) + &event(2) + &event(5))]);
    judge(&history);
    assert_eq!(history.operations.but_shadows().count(), 3);
}

#[test]
fn a_witness_that_lost_a_line_does_not_cover_the_hole() {
    use base64::Engine as _;
    let key = base64::engine::general_purpose::STANDARD.encode("/registry/pods/prod/web-0");
    let event = |kind: u8, created: u32, revision: u32, count: u32| {
        format!(
            "{{\"Header\":{{\"revision\":{revision}}},\"Events\":[{{\"type\":{kind},\"kv\":{{\"key\":\"{key}\",\"create_revision\":{created},\"mod_revision\":{revision},\"version\":{count}}}}}]}}\n"
        )
    };
    let whole = [event(0, 5, 5, 1), event(0, 5, 7, 2), event(0, 5, 9, 3), event(1, 0, 11, 0), event(0, 12, 12, 1)];
    let covered = |lines: &[String]| -> Vec<(u128, u128)> {
        let history = load(&[("etcd.json", lines.concat())]);
        history.witness_spans.iter().map(|s| (s.after.value(), s.through.value())).collect()
    };
    assert_eq!(covered(&whole), [(4, 12)]);
    let without = |at: usize| {
        let mut lines = whole.to_vec();
        lines.remove(at);
        lines
    };
    assert_eq!(covered(&without(1)), [(4, 5), (8, 12)], "an update is missing");
    assert_eq!(covered(&without(3)), [(4, 9), (11, 12)], "a deletion is missing");
    assert_eq!(covered(&without(4)), [(4, 11)]);
}
