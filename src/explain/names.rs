//! Short names for clients: what tells them apart in one table, and no more.

use super::visible::visible;
use crate::history::{ClientId, History, IncarnationId};
use rustc_hash::FxHashMap;

/// A user name without the part that every user of its kind shares: `node-1` of `system:node:node-1`,
/// `statefulset-controller` of `system:serviceaccount:kube-system:statefulset-controller`.
pub fn short_user(user: &str) -> &str {
    if let Some(account) = user.strip_prefix("system:serviceaccount:") {
        return account.split_once(':').map_or(account, |(_, name)| name);
    }
    user.strip_prefix("system:node:").or_else(|| user.strip_prefix("system:")).unwrap_or(user)
}

/// A user name, `nobody known` where the evidence has none.
pub fn client(history: &History, client: ClientId) -> String {
    let name = if client.is_some() { history.name(history.clients[client.index()]) } else { "" };
    if name.is_empty() { "unnamed client".to_owned() } else { visible(name).into_owned() }
}

/// The label of a process life; empty where none is known.
pub fn incarnation(history: &History, id: IncarnationId) -> String {
    if !id.is_some() {
        return String::new();
    }
    visible(&history.incarnations[id.index()].label).into_owned()
}

/// The names of the processes in one table: the shortest that tell them apart. Two users whose short names agree keep
/// their full ones, and two lives of one user get their labels.
pub fn processes(history: &History, ids: &[IncarnationId]) -> FxHashMap<IncarnationId, String> {
    let mut distinct: Vec<IncarnationId> = ids.iter().copied().filter(|id| id.is_some()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let user = |id: IncarnationId| history.client_name(id);
    distinct
        .iter()
        .map(|&id| {
            let others = || distinct.iter().copied().filter(|&other| other != id);
            let full = user(id);
            let taken = others().any(|other| user(other) != full && short_user(user(other)) == short_user(full));
            let mut name = if taken { full.to_owned() } else { short_user(full).to_owned() };
            if others().any(|other| user(other) == full) {
                let label = &history.incarnations[id.index()].label;
                name = if label.is_empty() || name.is_empty() { name + label } else { format!("{name} ({label})") };
            }
            (id, visible(&name).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_drop_only_what_every_user_of_the_kind_has() {
        for (user, short) in [
            ("system:node:node-1", "node-1"),
            ("system:serviceaccount:kube-system:statefulset-controller", "statefulset-controller"),
            ("system:kube-scheduler", "kube-scheduler"),
            ("alice@example.com", "alice@example.com"),
            ("", ""),
        ] {
            assert_eq!(short_user(user), short);
        }
    }
}
