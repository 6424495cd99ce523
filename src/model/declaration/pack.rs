//! The packs that are compiled in: files of declarations like a user's own.

use super::Declarations;
use std::sync::OnceLock;

/// Name and text of every pack.
pub(super) const PACKS: [(&str, &str); 5] = [
    ("kubelet-and-pods", include_str!("../packs/kubelet-and-pods.toml")),
    ("garbage-collection", include_str!("../packs/garbage-collection.toml")),
    ("scheduler-binding", include_str!("../packs/scheduler-binding.toml")),
    ("addresses", include_str!("../packs/addresses.toml")),
    ("endpoints", include_str!("../packs/endpoints.toml")),
];

/// All of them, read once.
pub(super) fn all() -> &'static Declarations {
    static ALL: OnceLock<Declarations> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Declarations::default();
        for (name, text) in PACKS {
            // A pack that does not read is a broken build, which the test below shows.
            if let Ok(pack) = Declarations::read(name, text) {
                all.add(pack);
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_reads_and_no_two_share_a_name() {
        let mut count = 0;
        for (name, text) in PACKS {
            let pack = Declarations::read(name, text).unwrap_or_else(|mistakes| {
                panic!("{}", mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            });
            count += pack.references.len() + pack.allocations.len() + pack.invariants.len();
        }
        let all = all();
        assert_eq!(all.references.len() + all.allocations.len() + all.invariants.len(), count);
    }
}
