use super::*;

const HIDDEN: [&str; 4] = ["hidden", "aGlkZGVu", "68696464656e", "773377"];

/// The excerpt of a line with `hidden` at every place that must not be shown.
fn shown(format: Format, line: &str) -> String {
    let shown = excerpt(format, line).unwrap_or_default();
    for hidden in HIDDEN {
        assert!(!shown.contains(hidden), "{shown}");
    }
    shown
}

#[test]
fn an_audit_event_shows_who_asked_what_and_was_told_which_version() {
    let text = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"hidden","auditID":"a-1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/d/secrets/s?resourceVersion=7&pretty=hidden&token=hidden&limit=hidden","verb":"update","user":{"username":"eve","groups":["hidden"],"extra":{"authentication.kubernetes.io/pod-uid":["u-7"],"hidden":["hidden"]}},"sourceIPs":["10.0.0.1","hidden"],"userAgent":"kubectl/v1","objectRef":{"resource":"secrets","namespace":"d","name":"s","resourceVersion":"6","hidden":"hidden"},"responseStatus":{"metadata":{"hidden":1},"code":409,"reason":"Conflict","message":"hidden"},"requestObject":{"kind":"Secret","metadata":{"name":"s","resourceVersion":"7","labels":{"hidden":"hidden"},"annotations":{"x":"hidden"},"managedFields":["hidden"],"ownerReferences":[{"name":"o","uid":"u-8","hidden":"hidden"}]},"data":{"password":"aGlkZGVu"}},"responseObject":{"kind":"SecretList","items":[{"metadata":{"name":"t"},"data":{"p":"hidden"}}]},"requestReceivedTimestamp":"2026-03-02T00:00:00.000000Z","stageTimestamp":"hidden","annotations":{"patch.webhook.admission.k8s.io/round_0_index_0":"hidden"}}"#;
    let shown = shown(Format::Audit, text);
    for part in [
        "\"auditID\": \"a-1\"",
        "\"username\": \"eve\"",
        "\"requestURI\": \"/api/v1/namespaces/d/secrets/s?resourceVersion=7&…&…&limit=…\"",
        "\"verb\": \"update\"",
        "u-7",
        "10.0.0.1",
        "\"resourceVersion\": \"6\"",
        "\"resourceVersion\": \"7\"",
        "\"code\": 409",
        "\"reason\": \"Conflict\"",
        "\"uid\": \"u-8\"",
        "\"name\": \"t\"",
        "2026-03-02T00:00:00.000000Z",
        "\"stageTimestamp\": \"…\"",
    ] {
        assert!(shown.contains(part), "{part} {shown}");
    }
}

#[test]
fn what_a_parser_of_json_refuses_hides_nothing_else_and_shows_nothing_more() {
    let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    for odd in [r#""\ud83d""#, "1e999", "-1e400", &*deep, r#"{"hidden":"\udc00"}"#] {
        let body = format!(
            r#"{{"kind":"Secret","metadata":{{"name":"s","resourceVersion":"5"}},"data":{{"p":"hidden"}},"x":{odd}}}"#
        );
        let line = format!(r#"{{"kind":"response","id":1,"at":1,"status":200,"body":{body},"headers":{odd}}}"#);
        let whole = shown(Format::Capture, &line);
        assert!(whole.contains("\"resourceVersion\": \"5\"") && whole.contains("\"status\": 200"), "{whole}");
        // The same at a place that would be shown.
        let line = format!(r#"{{"kind":"response","id":1,"status":{odd},"body":{odd}}}"#);
        assert!(shown(Format::Capture, &line).contains("\"status\": \"…\""));
    }
    for broken in ["{\"kind\":\"response\",\"id\":\"hidden", "hidden", "[\"hidden\"]", "{\"x\":\"hidden\"}", "{}"] {
        for format in Format::ALL {
            assert_eq!(excerpt(format, broken), None, "{broken}");
        }
    }
}

#[test]
fn bodies_of_every_shape_show_identity_alone() {
    for body in [
        r#"{"data":{"p":"hidden"}}"#,
        r#"[{"op":"add","path":"/data/p","value":"hidden"}]"#,
        r#""hidden""#,
        "773377",
        r#"{"kind":"Table","rows":[{"cells":["hidden"],"object":{"metadata":{"name":"n"},"data":{"p":"hidden"}}}]}"#,
        r#"{"kind":"Status","status":"hidden","message":"hidden","reason":"hidden","details":{"causes":[{"message":"hidden"}]}}"#,
        r#"{"kind":"Secret","metadata":{"name":{"x":"hidden"},"uid":["hidden"],"continue":"hidden"},"items":"hidden"}"#,
        r#"{"kind":"Secret","metadata":"hidden","data":{},"stringData":{"metadata":{"name":"hidden"}}}"#,
    ] {
        shown(Format::Capture, &format!(r#"{{"kind":"request","id":1,"uri":"/api","body":{body}}}"#));
        shown(Format::Capture, &format!(r#"{{"kind":"event","id":1,"event":{{"type":"ADDED","object":{body}}}}}"#));
        shown(Format::Audit, &format!(r#"{{"auditID":"a","requestObject":{body},"responseObject":{body}}}"#));
        shown(Format::Watch, &format!(r#"{{"type":"ADDED","object":{body}}}"#));
        shown(Format::List, body);
    }
}

#[test]
fn what_etcd_stores_is_not_shown_and_its_keys_and_revisions_are() {
    let line = r#"{"Header":{"revision":101,"hidden":1},"Events":[{"type":1,"kv":{"key":"L3JlZ2lzdHJ5L3NlY3JldHMvZC9z","create_revision":100,"mod_revision":101,"value":"aGlkZGVu"},"prev_kv":{"value":"aGlkZGVu"}}]}"#;
    let shown_line = shown(Format::EtcdWatch, line);
    assert!(shown_line.contains("101") && shown_line.contains("L3JlZ2lzdHJ5L3NlY3JldHMvZC9z"), "{shown_line}");
    let line = r#"{"ClientId":1,"Input":{"Type":"txn","Txn":{"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"k","Value":{"Value":"hidden"}}},{"Type":"put-operation","Put":{"Key":"k","Value":{"Value":"12"}}}]}},"Call":10,"Output":{"Error":"hidden","Revision":7},"Return":20}"#;
    let shown_line = shown(Format::EtcdOperations, line);
    assert!(shown_line.contains("\"Value\": \"12\"") && shown_line.contains("\"Revision\": 7"), "{shown_line}");
}

#[test]
fn the_path_of_a_request_is_shown_as_far_as_it_names_a_resource() {
    let of = |uri: &str| {
        let line = format!(r#"{{"kind":"request","id":1,"uri":"{uri}"}}"#);
        let shown = excerpt(Format::Capture, &line).unwrap();
        let (_, rest) = shown.split_once("\"uri\": \"").unwrap();
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    for (uri, shown) in [
        ("/api/v1/namespaces/d/pods/p", "/api/v1/namespaces/d/pods/p"),
        ("/apis/apps/v1/namespaces/d/deployments/x/scale", "/apis/apps/v1/namespaces/d/deployments/x/scale"),
        ("/api/v1/namespaces/d/pods/p/proxy/a/hidden", "/api/v1/namespaces/d/pods/p/proxy/…"),
        ("/api/v1/nodes/n/proxy/hidden?hidden", "/api/v1/nodes/n/proxy/…?…"),
        ("/api/v1/watch/namespaces/d/pods?watch=1", "/api/v1/watch/namespaces/d/pods?watch=1"),
        ("/oauth/token/hidden", "…"),
        ("/api/v1/pods?labelSelector=app%3Dweb&command=hidden", "/api/v1/pods?labelSelector=app%3Dweb&…"),
        ("/api/v1/pods?continue=aGlkZGVu&resourceVersion=hidden", "/api/v1/pods?continue=…&resourceVersion=…"),
    ] {
        assert_eq!(of(uri), shown, "{uri}");
    }
}

#[test]
fn an_operation_of_a_log_is_shown_as_it_stands_and_no_longer_than_a_screen() {
    let line = "{:process 0, :type :ok, :f :read, :value 7}\n";
    assert_eq!(excerpt(Format::Edn, line).as_deref(), Some(line.trim_end()));
    assert_eq!(excerpt(Format::Audit, line), None);
    assert_eq!(excerpt(Format::Edn, "{:password \"hidden\"}"), None);
    let long = format!("{{:process 0, :type :ok, :f :read, :value \"{}\"}}", "x".repeat(100_000));
    assert_eq!(excerpt(Format::Edn, &long).unwrap().chars().count(), MAX_CHARACTERS + 1);
}
