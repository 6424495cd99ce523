//! The shipped protocols.

/// Name and text of each shipped protocol, in the order in which they are listed.
pub const PROTOCOLS: &[(&str, &str)] = &[
    ("kubelet-restart", include_str!("protocols/kubelet-restart.toml")),
    ("node-name-reuse", include_str!("protocols/node-name-reuse.toml")),
    ("ip-reconciler", include_str!("protocols/ip-reconciler.toml")),
    ("reflector-resume", include_str!("protocols/reflector-resume.toml")),
    ("reflector", include_str!("protocols/reflector.toml")),
    ("expectations", include_str!("protocols/expectations.toml")),
    ("consistency-barrier", include_str!("protocols/consistency-barrier.toml")),
    ("optimistic-locking", include_str!("protocols/optimistic-locking.toml")),
    ("server-side-apply", include_str!("protocols/server-side-apply.toml")),
    ("leader-election", include_str!("protocols/leader-election.toml")),
    ("finalizer", include_str!("protocols/finalizer.toml")),
];

/// The text of a shipped protocol.
pub fn shipped(name: &str) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
