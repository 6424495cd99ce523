//! Short names of clients, servers and clocks: as much as distinguishes them within one table.

use super::terminal_text::visible;
use crate::history::{ClientId, ClockId, History, IdentifiedBy, IncarnationId, ServerId};
use rustc_hash::FxHashMap;

/// A user name without the prefix of its kind: `node-1` of `system:node:node-1`, `statefulset-controller` of
/// `system:serviceaccount:kube-system:statefulset-controller`.
pub fn short_user(user: &str) -> &str {
    if let Some(account) = user.strip_prefix("system:serviceaccount:") {
        return account.split_once(':').map_or(account, |(_, name)| name);
    }
    user.strip_prefix("system:node:").or_else(|| user.strip_prefix("system:")).unwrap_or(user)
}

/// A user name; `unnamed client` if the evidence has none, `the cluster` for actions of its members.
pub fn client(history: &History, client: ClientId) -> String {
    if !client.is_some() {
        return "the cluster".to_owned();
    }
    let name = history.name(history.clients[client.index()]);
    if name.is_empty() { "unnamed client".to_owned() } else { visible(name).into_owned() }
}

/// The label of an incarnation, with a shortened user agent; empty if unknown.
pub fn incarnation(history: &History, id: IncarnationId) -> String {
    if !id.is_some() {
        return String::new();
    }
    let life = &history.incarnations[id.index()];
    let agent_told = matches!(life.identified_by, IdentifiedBy::Address | IdentifiedBy::CommandLine);
    match life.label.rsplit_once(" from ") {
        Some((agent, address)) if agent_told => {
            let agent = short_agent(agent, history.client_name(id));
            visible(&format!("{agent} from {address}")).into_owned()
        }
        _ => visible(&life.label).into_owned(),
    }
}

/// A user agent without the platform, the commit, a placeholder version, and the user's own name. Source: client-go writes
/// `program/version (os/arch) kubernetes/commit/component`.
fn short_agent(agent: &str, user: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let bare = match (agent.find(" ("), agent.find(") ")) {
        (Some(begin), Some(end)) if begin < end => [&agent[..begin], &agent[end + 2..]],
        (Some(begin), _) if agent.ends_with(')') => [&agent[..begin], ""],
        _ => [agent, ""],
    };
    for word in bare.iter().flat_map(|part| part.split(' ')) {
        match word.strip_prefix("kubernetes/") {
            Some(commit) => parts.extend(commit.split_once('/').map(|(_, component)| component)),
            None => parts.push(word),
        }
    }
    if let Some(program) = parts.first_mut() {
        *program = program.split_once("/v0.0.0").map_or(*program, |(program, _)| program);
    }
    parts.retain(|part| !part.is_empty() && *part != user);
    parts.join(" ")
}

/// The name of a server. If it is the path of a file, the name is the shortest end of the path that distinguishes the servers.
pub fn server(history: &History, id: ServerId) -> String {
    let others = history.servers.iter().map(|&server| history.name(server));
    visible(shortest_end(history.server_name(id), others)).into_owned()
}

/// The name of a clock, shortened like that of a [`server`].
pub fn clock(history: &History, id: ClockId) -> String {
    let others = history.clocks.iter().map(|&clock| history.name(clock));
    visible(shortest_end(history.clock_name(id), others)).into_owned()
}

/// The shortest end of a path, in whole segments, that no other name has.
fn shortest_end<'n>(name: &'n str, others: impl Iterator<Item = &'n str> + Clone) -> &'n str {
    let steps = name.rmatch_indices('/').map(|(at, _)| &name[at + 1..]).filter(|end| !end.is_empty());
    let is_alone = |end: &str| {
        let mut others = others.clone().filter(|other| *other != name);
        !others.any(|other| other.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
    };
    steps.into_iter().find(|end| is_alone(end)).unwrap_or(name)
}

/// The shortest names that distinguish the processes of one table. Two users whose short names are equal keep their full names,
/// and two incarnations of one user get their labels.
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
                let label = incarnation(history, id);
                name = if label.is_empty() || name.is_empty() { name + &label } else { format!("{name} ({label})") };
            }
            (id, visible(&name).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_keeps_what_tells_its_process_apart() {
        let account = "system:serviceaccount:kube-system:deployment-controller";
        for (agent, user, short) in [
            (
                "kube-controller-manager/v0.0.0 (linux/amd64) kubernetes/$Format/system:serviceaccount:kube-system:deployment-controller",
                account,
                "kube-controller-manager",
            ),
            (
                "kube-controller-manager/v1.37.2 (linux/amd64) kubernetes/1f0e5a5/leader-election",
                "system:kube-controller-manager",
                "kube-controller-manager/v1.37.2 leader-election",
            ),
            ("kubelet/v1.36.0 (linux/arm64) kubernetes/abc", "system:node:n", "kubelet/v1.36.0"),
            ("workload/v1 (linux/amd64)", "u", "workload/v1"),
            ("curl/8.1.2", "u", "curl/8.1.2"),
            ("odd (agent", "u", "odd (agent"),
            ("", "u", ""),
        ] {
            assert_eq!(short_agent(agent, user), short, "{agent}");
        }
    }

    #[test]
    fn a_server_is_named_by_as_much_of_its_path_as_tells_it_apart() {
        let names = ["logs/a/audit.log", "logs/b/audit.log", "b.log", "A"];
        let short = |name| shortest_end(name, names.iter().copied());
        assert_eq!(names.map(short), ["a/audit.log", "b/audit.log", "b.log", "A"]);
    }

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
