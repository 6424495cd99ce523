//! The packs that are compiled in: files of declarations like a user's own. A pack that cannot be read is left out, and a test
//! fails.

use super::Declarations;
use std::sync::OnceLock;

/// Name and text of every pack.
pub(super) const PACKS: [(&str, &str); 8] = [
    ("kubelet-and-pods", include_str!("../packs/kubelet-and-pods.toml")),
    ("garbage-collection", include_str!("../packs/garbage-collection.toml")),
    ("volumes", include_str!("../packs/volumes.toml")),
    ("controllers-and-children", include_str!("../packs/controllers-and-children.toml")),
    ("addresses", include_str!("../packs/addresses.toml")),
    ("endpoints", include_str!("../packs/endpoints.toml")),
    ("groups", include_str!("../packs/groups.toml")),
    ("leaders", include_str!("../packs/leaders.toml")),
];

/// The declarations of all packs, read once.
pub(super) fn all() -> &'static Declarations {
    static ALL: OnceLock<Declarations> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Declarations::default();
        for (name, text) in PACKS {
            // A pack with mistakes is a broken build, which the test below reports.
            if let Ok(pack) = Declarations::read_after(name, text, &all) {
                all.add(pack);
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(d: &Declarations) -> usize {
        d.references.len() + d.allocations.len() + d.children.len() + d.invariants.len()
    }

    #[test]
    fn every_pack_reads_and_no_two_share_a_name() {
        let mut count = 0;
        for (name, text) in PACKS {
            let pack = Declarations::read(name, text).unwrap_or_else(|mistakes| {
                panic!("{}", mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            });
            count += size(&pack);
        }
        assert_eq!(size(all()), count);
    }
}
