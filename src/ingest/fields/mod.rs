//! Declared fields: members of objects that are kept beside identity and versions.
//!
//! A rule declares paths before evidence is read; ingest keeps the values at those paths, so that no rule reads a
//! body again. Nothing else enters memory. The content of a Secret is never kept, whatever is declared.

pub(crate) mod field_capture;
pub(crate) mod path;
pub(crate) mod resource;
pub(crate) mod tree;

pub use field_capture::{Found, Seen};
pub use path::{Path, Step};
pub use resource::ResourceName;
pub use tree::{Cut, Own, Place, Tree};

use resource::EVERY;
use std::sync::Arc;

/// The fields of objects that reading keeps: paths by resource. [`crate::read_options_for`] makes those of declarations.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Every declared path with its resource, sorted.
    declared: Vec<(ResourceName, Path)>,
    /// The member prefixes of all paths, for the parser.
    tree: Arc<Tree>,
}

impl Fields {
    /// Fields of these paths. For Secrets only paths below identifying members of `metadata` count ([`IDENTITY`]).
    #[doc(hidden)]
    pub fn of(declared: impl IntoIterator<Item = (ResourceName, Path)>) -> Fields {
        let mut declared: Vec<_> = declared.into_iter().collect();
        declared.sort();
        declared.dedup();
        let mut tree = Tree::default();
        for (_, path) in &declared {
            tree.look_out_for(&path.literal(), false);
        }
        tree.settle();
        Fields { declared, tree: Arc::new(tree) }
    }

    /// Adds paths for which the objects around the value are noted too: `a.b.c` then distinguishes an object without
    /// `c` from one without `b`.
    #[doc(hidden)]
    pub fn with_shape(self, declared: impl IntoIterator<Item = (ResourceName, Path)>) -> Fields {
        let mut tree = Arc::unwrap_or_clone(self.tree);
        let mut all = self.declared;
        for (resource, path) in declared {
            tree.look_out_for(&path.literal(), true);
            all.push((resource, path));
        }
        tree.settle();
        all.sort();
        all.dedup();
        Fields { declared: all, tree: Arc::new(tree) }
    }

    /// A checksum of the fields. Evidence that was read with other fields has another content.
    #[doc(hidden)]
    pub fn fingerprint(&self) -> u64 {
        let kept = format!("{:?} {:?}", self.declared, self.tree.noted().collect::<Vec<_>>());
        u64::from(crc32c::crc32c(kept.as_bytes())) << 32 | kept.len() as u64
    }

    /// Every declared path with its resource.
    #[cfg(test)]
    pub(crate) fn declared(&self) -> &[(ResourceName, Path)] {
        &self.declared
    }

    /// The tree for the parser.
    #[doc(hidden)]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The paths kept of a resource as a tree; `None` if there are none.
    #[doc(hidden)]
    pub fn cut(&self, plural: &str, group: &str) -> Option<Cut> {
        let mut cut = None;
        for path in self.paths(plural, group) {
            cut.get_or_insert_with(Cut::default).keep(&path.steps);
        }
        cut
    }

    /// The paths kept of a resource, sorted and separated by spaces. A recorder that cuts objects down writes them
    /// into each.
    #[doc(hidden)]
    pub fn named(&self, plural: &str, group: &str) -> String {
        let mut named: Vec<String> = self.paths(plural, group).map(ToString::to_string).collect();
        named.sort();
        named.dedup();
        named.join(" ")
    }

    fn paths(&self, plural: &str, group: &str) -> impl Iterator<Item = &Path> {
        let secret = plural == "secrets" && group.is_empty();
        let member = |step: Option<&Step>, name: &str| matches!(step, Some(Step::Member(member)) if member == name);
        // `kubectl apply` copies the whole object into an annotation, and other tools write arbitrary text, so
        // annotations of Secrets are not kept.
        let harmless = move |path: &Path| {
            let mut steps = path.steps.iter();
            let (first, second) = (steps.next(), steps.next());
            let identity = |step| IDENTITY.iter().any(|name| member(step, name));
            member(first, "metadata") && identity(second)
        };
        let meant =
            move |(resource, path): &&(ResourceName, Path)| resource.is(plural, group) && (!secret || harmless(path));
        // Both are intervals of `declared`, which is sorted by plural.
        let of = |name: &str| {
            let first = self.declared.partition_point(|(resource, _)| resource.plural.as_str() < name);
            let stretch = &self.declared[first..];
            &stretch[..stretch.partition_point(|(resource, _)| resource.plural == name)]
        };
        let (every, own) = (of(EVERY), if plural == EVERY { &[] } else { of(plural) });
        // `*` sorts before every letter.
        every.iter().chain(own).filter(meant).map(|(_, path)| path)
    }
}

/// Members of `metadata` that identify objects, lists and their incarnations. A recorder that cuts objects down
/// always keeps them.
pub const IDENTITY: [&str; 13] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "labels",
    "ownerReferences",
    "generation",
    "continue",
    "remainingItemCount",
];

/// Whether objects that were cut down to the paths `recorded` have all paths in `wanted`. Both are in the form of
/// [`Fields::named`].
pub fn covers(recorded: &str, wanted: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let under = |wanted: &str, recorded: &str| wanted.strip_prefix(recorded).is_some_and(ends);
    let identity = |wanted: &str| {
        wanted.strip_prefix("metadata.").is_some_and(|wanted| IDENTITY.iter().any(|recorded| under(wanted, recorded)))
    };
    let mut wanted = wanted.split(' ').filter(|wanted| !wanted.is_empty() && !identity(wanted));
    wanted.all(|wanted| recorded.split(' ').any(|recorded| under(wanted, recorded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(declared: &[(&str, &str)]) -> Fields {
        Fields::of(declared.iter().map(|(resource, path)| {
            (
                ResourceName::parse(resource).unwrap_or_else(|e| panic!("{e}")),
                Path::parse(path).unwrap_or_else(|e| panic!("{e}")),
            )
        }))
    }

    #[test]
    fn a_resource_gets_what_is_declared_for_it_and_for_all() {
        let fields = fields(&[("pods", "spec.nodeName"), ("*", "metadata.ownerReferences")]);
        assert!(fields.cut("pods", "").is_some_and(|cut| cut != fields.cut("nodes", "").unwrap_or_default()));
        assert!(fields.cut("nodes", "").is_some());
    }

    #[test]
    fn each_of_very_many_fields_is_kept() {
        let paths: Vec<String> = (0..2_000).map(|nth| format!("spec.f{nth}.x")).collect();
        let declared: Vec<(&str, &str)> = paths.iter().map(|path| ("pods", path.as_str())).collect();
        let fields = fields(&declared);
        let (tree, cut) = (fields.tree(), fields.cut("pods", "").unwrap_or_default());
        let spec = tree.member(Tree::ROOT, "spec").unwrap_or_default();
        for nth in 0..2_000 {
            let name = format!("f{nth}");
            let node = tree.member(spec, &name).unwrap_or_default();
            assert!(tree.name(node) == name && tree.member(node, "x").is_some());
            assert!(cut.member("spec").and_then(|spec| spec.member(&name)).is_some());
        }
        assert!(tree.member(spec, "f2000").is_none() && tree.member(spec, "g1").is_none());
    }

    #[test]
    fn what_was_recorded_covers_what_lies_inside_it_and_what_identifies_an_object() {
        let named = fields(&[("pods", "spec.nodeName"), ("*", "status.podIPs"), ("nodes", "spec")]).named("pods", "");
        assert_eq!(named, "spec.nodeName status.podIPs");
        let recorded = |wanted| covers(&named, wanted);
        assert!(recorded("status.podIPs[*].ip spec.nodeName") && recorded("metadata.labels.app") && recorded(""));
        assert!(!recorded("spec.node") && !recorded("spec.nodeName spec") && !recorded("metadata.annotations.labels"));
        assert!(covers("", "metadata.ownerReferences[*].uid") && !covers("", "status.podIPs"));
    }

    #[test]
    fn what_a_secret_holds_is_never_kept() {
        let fields = fields(&[("*", "data.password"), ("secrets", "data"), ("configmaps", "data.password")]);
        assert!(fields.cut("secrets", "").is_none());
        assert!(fields.cut("configmaps", "").is_some());
    }

    #[test]
    fn of_the_metadata_of_a_secret_only_what_identifies_it_is_kept() {
        for (path, kept) in [
            ("metadata", false),
            ("metadata.annotations", false),
            ("metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]", false),
            ("metadata.managedFields", false),
            ("metadata.ownerReferences", true),
            ("metadata.labels", true),
        ] {
            let fields = fields(&[("*", path)]);
            assert_eq!(
                (fields.cut("secrets", "").is_some(), fields.cut("configmaps", "").is_some()),
                (kept, true),
                "{path}"
            );
        }
    }
}
