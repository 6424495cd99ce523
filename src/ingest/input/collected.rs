//! Servers that the paths of collected logs name, where the tool that collects them makes the path.
//!
//! A path decides no format. It names a server only in trees that one tool lays out.

use super::source_rule::SourceRule;

/// Folders of `oc adm must-gather -- /usr/bin/gather_audit_logs`, one for each API server of a node.
const OF_MUST_GATHER: [&str; 4] = ["kube-apiserver", "openshift-apiserver", "oauth-apiserver", "oauth-server"];

/// Completes a source from the path of its file, if the user declares neither server nor clock.
pub(in crate::ingest) fn complete(source: &mut SourceRule, shown: &str) {
    if source.server.is_some() || source.clock.is_some() {
        return;
    }
    let mut names = shown.rsplit('/');
    let (file, folder, above) = (names.next().unwrap_or(""), names.next().unwrap_or(""), names.next().unwrap_or(""));
    // audit_logs/kube-apiserver/NODE-audit-2026-03-02T09-00-00.000.log.gz
    if above == "audit_logs" && OF_MUST_GATHER.contains(&folder) {
        let node = file.split_once("-audit").map_or("", |(node, _)| node);
        if !node.is_empty() {
            source.server = Some(format!("{node} {folder}"));
            source.clock = Some(node.to_owned());
        }
    }
    // An export of CloudWatch to S3 has a folder for each log stream: TASK/kube-apiserver-audit-HASH/000000.gz
    let is_part = file.trim_end_matches(".gz").bytes().all(|byte| byte.is_ascii_digit()) && !file.is_empty();
    if is_part && folder.starts_with("kube-apiserver-audit-") {
        source.server = Some(folder.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_collectors_name_servers_and_clocks() {
        let named = |path: &str| {
            let mut source = SourceRule::default();
            complete(&mut source, path);
            (source.server.unwrap_or_default(), source.clock.unwrap_or_default())
        };
        let gathered = "must-gather.local/x/audit_logs/kube-apiserver/node-1.x-audit-2026-03-02T09-00-00.000.log.gz";
        assert_eq!(named(gathered), ("node-1.x kube-apiserver".to_owned(), "node-1.x".to_owned()));
        let exported = "exports/task/kube-apiserver-audit-0a1b/000001.gz";
        assert_eq!(named(exported), ("kube-apiserver-audit-0a1b".to_owned(), String::new()));
        for path in ["audit.log", "kube-apiserver/node-audit.log", "audit_logs/etcd/node-audit.log", "a/000000.gz", ""]
        {
            assert_eq!(named(path), Default::default(), "{path}");
        }
        let mut declared = SourceRule { server: Some("s".to_owned()), ..SourceRule::default() };
        complete(&mut declared, gathered);
        assert_eq!((declared.server.as_deref(), declared.clock), (Some("s"), None));
    }
}
