//! Declarations: what the fields of objects mean, as data. They name the fields that refer to other objects, the fields that
//! claim what only one object may hold, and what must be true of every object. Output: [`Declarations`], or every mistake with
//! its place.
//!
//! A file of declarations is TOML; `docs/rules-file.md` describes it. The packs in `src/model/packs/` are such files, compiled
//! in; `--rules FILE` adds the user's own. No rule knows a resource by name from any other source.
//!
//! A name of a resource without a group fits any group: see [`ResourceName`].

mod allocation;
mod child;
mod condition;
mod group;
mod invariant;
mod leadership;
mod mistake;
mod pack;
mod presumption;
mod reader;
mod reference;
mod unchecked;

pub use allocation::{Allocation, Compare};
pub use child::Child;
pub use condition::Condition;
pub use group::{Group, Part};
pub use invariant::{Invariant, Scope, Severity};
pub use leadership::Leadership;
pub use mistake::Mistake;
pub use presumption::Presumption;
pub use reference::Reference;

pub use crate::ingest::fields::{Fields, Path, ResourceName, Step};

use crate::model::expression::deep;
use reader::Reader;
pub(in crate::model) use reader::nearest;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::sync::Arc;

/// The meaning of fields of objects: the shipped packs, and rules files of a user ([`crate::rules_files`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// Which fields refer to other objects.
    #[doc(hidden)]
    pub references: Vec<Reference>,
    /// Which fields claim something that only one object may hold.
    #[doc(hidden)]
    pub allocations: Vec<Allocation>,
    /// How many children controllers keep for their owners.
    #[doc(hidden)]
    pub children: Vec<Child>,
    /// What must be true of objects.
    #[doc(hidden)]
    pub invariants: Vec<Invariant>,
    /// Which writes belong together.
    #[doc(hidden)]
    pub groups: Vec<Group>,
    /// What the writer of certain requests presumes.
    #[doc(hidden)]
    pub presumptions: Vec<Presumption>,
    /// Which objects name a leader.
    #[doc(hidden)]
    pub leaderships: Vec<Leadership>,
}

/// TOML with the fields that this schema describes. `docs/rules-file.md` explains them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "A rules file of retrograde"))]
struct File {
    /// The subject of the file, for its readers.
    #[serde(rename = "about")]
    _about: String,
    /// Fields by which one object names another.
    reference: Vec<reference::Written>,
    /// Fields by which an object holds a value that only one object may hold at a time.
    allocation: Vec<allocation::Written>,
    /// How many objects a controller keeps for one owner.
    child: Vec<child::Written>,
    /// Expressions in CEL that must be true.
    invariant: Vec<invariant::Written>,
    /// Writes to several objects that belong together.
    group: Vec<group::Written>,
    /// What a client presumes when it deletes an object.
    presumption: Vec<presumption::Written>,
    /// Objects that name the leader among replicas.
    leadership: Vec<leadership::Written>,
}

impl Declarations {
    /// The packs that are compiled in: the built-in resources of Kubernetes.
    pub fn shipped() -> &'static Declarations {
        pack::all()
    }

    /// Reads a file that is used beside the packs. Returns the first hundred mistakes in it, or one if the file is not TOML.
    #[doc(hidden)]
    pub fn read(file: &str, text: &str) -> Result<Declarations, Vec<Mistake>> {
        Declarations::read_after(file, text, Declarations::shipped())
    }

    /// The same for a file after others: it may name what they declare.
    #[doc(hidden)]
    pub fn read_after(file: &str, text: &str, others: &Declarations) -> Result<Declarations, Vec<Mistake>> {
        // One deep stack for all expressions of the file.
        deep(|| Declarations::read_here(file, text, others))
    }

    fn read_here(file: &str, text: &str, others: &Declarations) -> Result<Declarations, Vec<Mistake>> {
        let mut reader = Reader::new(file, text);
        let written: File = match toml::from_str(text) {
            Ok(written) => written,
            Err(error) => {
                reader.mistake(error.span().unwrap_or(0..0), &with_hint(error.message()));
                return Err(reader.mistakes());
            }
        };
        let declarations = Declarations {
            references: written.reference.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            allocations: written.allocation.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            children: written.child.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            invariants: written.invariant.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            groups: written.group.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            presumptions: written.presumption.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
            leaderships: written.leadership.into_iter().filter_map(|w| w.checked(&mut reader)).collect(),
        };
        reader.check_records(others.allocations.iter().map(|allocation| allocation.name.as_str()));
        let mistakes = reader.mistakes();
        if mistakes.is_empty() { Ok(declarations) } else { Err(mistakes) }
    }

    /// The fields that must be kept when evidence is read, so that every declaration can be evaluated.
    #[doc(hidden)]
    pub fn fields(&self) -> Arc<Fields> {
        let references = self.references.iter().flat_map(|r| r.paths().map(|path| (&r.from, path)));
        let allocations = self.allocations.iter().flat_map(|a| a.paths().map(|path| (&a.resource, path)));
        let reporting = if self.allocations.iter().any(|a| a.node.is_some()) { &READINESS[..] } else { &[] };
        let reporting = reporting
            .iter()
            .filter_map(|text| Some((ResourceName::parse("nodes.core").ok()?, Path::parse(text).ok()?)));
        let children = self.children.iter().flat_map(|c| c.paths());
        // Every object is asked for its end and for its owners.
        let every = ["metadata.deletionTimestamp", "metadata.ownerReferences"];
        let every = every.iter().filter_map(|text| Some((ResourceName::parse("*").ok()?, Path::parse(text).ok()?)));
        let parts = self.groups.iter().flat_map(|group| &group.parts);
        let parts = parts.flat_map(|part| part.paths().map(|path| (&part.resource, path)));
        let presumptions = self.presumptions.iter().flat_map(|p| p.paths().map(|path| (&p.deletes, path)));
        let leaderships = self.leaderships.iter().flat_map(|l| l.paths().map(|path| (&l.resource, path)));
        let all = references.chain(allocations).chain(children).chain(parts).chain(presumptions).chain(leaderships);
        let all = all.chain(self.invariants.iter().flat_map(|i| i.choosing().map(|path| (&i.resource, path))));
        let read = self.invariants.iter().flat_map(|i| i.read().map(|path| (i.resource.clone(), path.clone())));
        Arc::new(
            Fields::of(all.map(|(resource, path)| (resource.clone(), path.clone())).chain(every).chain(reporting))
                .with_shape(read),
        )
    }

    /// Adds the declarations of another file. A declaration replaces one of the same kind and name, so a user's file can override
    /// a pack.
    #[doc(hidden)]
    pub fn add(&mut self, other: Declarations) {
        fn put<T>(all: &mut Vec<T>, more: Vec<T>, name: impl Fn(&T) -> &str) {
            let mut places: FxHashMap<String, usize> = FxHashMap::default();
            for (at, known) in all.iter().enumerate() {
                places.entry(name(known).to_owned()).or_insert(at);
            }
            for one in more {
                let at = *places.entry(name(&one).to_owned()).or_insert(all.len());
                match all.get_mut(at) {
                    Some(known) => *known = one,
                    None => all.push(one),
                }
            }
        }
        put(&mut self.references, other.references, |r| &r.name);
        put(&mut self.allocations, other.allocations, |a| &a.name);
        put(&mut self.children, other.children, |c| &c.name);
        put(&mut self.invariants, other.invariants, |i| &i.name);
        put(&mut self.groups, other.groups, |g| &g.name);
        put(&mut self.presumptions, other.presumptions, |p| &p.name);
        put(&mut self.leaderships, other.leaderships, |l| &l.name);
    }
}

/// The fields that show whether a node is ready: type and status of its conditions.
pub const READINESS: [&str; 2] = ["status.conditions[*].type", "status.conditions[*].status"];

/// The message about an unknown field or word, with the nearest known name.
fn with_hint(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown ") => match nearest(unknown, known.iter().copied()) {
            Some(near) => format!("{message}; did you mean `{near}`?"),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::committed_schema::{Contract, committed_schema};

    #[test]
    fn the_committed_schema_of_rules_files_is_that_of_the_reader() {
        committed_schema::<File>("docs/rules-file.schema.json", Contract::Toml);
    }

    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Declarations::read("mine.toml", text).err().unwrap_or_default();
        mistakes.iter().map(|m| format!("{}:{} {}", m.line, m.column, m.message)).collect()
    }

    #[test]
    fn every_mistake_of_a_file_is_told_with_its_place() {
        let text = "[[reference]]\nname = \"a\"\nfrom = \"Pod\"\nto = \"nodes\"\ntarget = \"spec..x\"\n\
                    [[allocation]]\nname = \"B\"\nresource = \"pods\"\nvalue = []\n";
        let found = mistakes(text);
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(found[0].starts_with("3:8 a resource is expected"), "{}", found[0]);
        assert!(found[1].starts_with("5:16 no path: a name is expected"), "{}", found[1]);
        assert!(found[2].starts_with("7:8 a name of small letters"), "{}", found[2]);
        assert!(found[3].starts_with("9:9 a list of paths is expected"), "{}", found[3]);
    }

    #[test]
    fn unknown_fields_and_broken_toml_are_told_with_their_place() {
        let found = mistakes("[[reference]]\nname = \"a\"\nfrm = \"pods\"\n");
        assert!(found[0].starts_with("3:1 unknown field `frm`, expected one of"), "{}", found[0]);
        let found = mistakes("[[invariants]]\n");
        assert!(found[0].starts_with("1:3 unknown field `invariants`"), "{}", found[0]);
        let found = mistakes("a = = 1");
        assert!(found[0].starts_with("1:"), "{}", found[0]);
        let twice = "[[invariant]]\nname = \"a\"\nresource = \"pods\"\nexpression = \"true\"\n";
        let found = mistakes(&format!("{twice}{twice}"));
        assert_eq!(found, ["6:8 another invariant of this file has the name a"]);
    }

    #[test]
    fn a_part_of_a_group_is_of_one_resource() {
        let part = "[[group.part]]\nresource = \"*\"\nof = [\"metadata.namespace\"]\n";
        let found = mistakes(&format!("[[group]]\nname = \"all\"\n{part}{}", part.replace('*', "pods")));
        assert_eq!(found, ["4:12 one resource is expected, found `*`"]);
    }

    #[test]
    fn parts_that_can_never_join_are_a_mistake() {
        let group = |first: &str, second: &str| {
            mistakes(&format!(
                "[[group]]\nname = \"g\"\n[[group.part]]\nresource = \"ports.x\"\nof = [{first}]\n[[group.part]]\nresource = \"m.x\"\nof = [{second}]\n"
            ))
        };
        let (both, name) = ("\"metadata.namespace\", \"metadata.name\"", "\"metadata.name\"");
        let expected =
            "expected as many paths as another part has, 2: names and uids have no `/`, so fewer paths cannot match";
        assert_eq!(group(both, name), [format!("8:6 {expected}")]);
        assert_eq!(group(name, both), [format!("5:6 {expected}")]);
        // A field may name an object with its namespace in one text.
        assert!(group(both, "\"spec.podref\"").is_empty() && group(both, both).is_empty());
    }

    #[test]
    fn a_record_is_an_allocation_of_this_file_or_of_one_before() {
        let file = |name: &str, record: &str| {
            format!("[[allocation]]\nname = \"{name}\"\nresource = \"pods\"\nvalue = [\"spec.x\"]\n{record}\n")
        };
        let lags = |record: &str| file("lags", &format!("record = \"{record}\""));
        let found = mistakes(&lags("kept-by-al"));
        assert_eq!(found, ["5:10 there is no allocation `kept-by-al`, here or in a file before this one"]);
        let found = mistakes(&(lags("kept-by-al") + &file("kept-by-all", "")));
        assert!(found[0].ends_with("; did you mean `kept-by-all`?"), "{}", found[0]);
        assert!(mistakes(&(lags("kept") + &file("kept", ""))).is_empty());
        assert!(mistakes(&lags("whereabouts-reservation")).is_empty());
        let before = Declarations::read("first.toml", &file("kept", "")).unwrap_or_default();
        assert!(Declarations::read_after("second.toml", &lags("kept"), &before).is_ok());
    }

    #[test]
    fn of_many_mistakes_the_first_hundred_are_told_and_the_others_counted() {
        let found = mistakes(&"[[reference]]\nname = \"Bad\"\nfrom = \"pods\"\n".repeat(250));
        assert_eq!(found.len(), 100);
        assert!(found[99].ends_with(" more mistakes are not listed)"), "{}", found[99]);
        assert!(!found[98].contains("not listed"), "{}", found[98]);
    }

    #[test]
    fn a_declaration_says_its_line_wherever_it_stands() {
        let one =
            |nth: usize| format!("[[invariant]]\nname = \"i{nth}\"\nresource = \"pods\"\nexpression = \"true\"\n\n");
        let text: String = (0..50).map(one).collect();
        let read = Declarations::read("mine.toml", &text).unwrap_or_default();
        let places: Vec<String> = read.invariants.iter().map(|invariant| invariant.place.clone()).collect();
        let expected: Vec<String> = (0..50).map(|nth| format!("mine.toml:{}", 5 * nth + 4)).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn words_for_people_and_names_have_a_length() {
        let file = |title: &str, path: &str| {
            mistakes(&format!(
                "[[allocation]]\nname = \"a\"\nwhat = \"{title}\"\nresource = \"pods\"\nvalue = [\"{path}\"]\n"
            ))
        };
        let long = "x".repeat(1 << 20);
        assert_eq!(file(&long, "spec.x"), ["3:8 a text of 1000 bytes at most is expected"]);
        assert_eq!(file("the port", &long), ["5:11 no path: a path of 4096 bytes at most is expected"]);
    }

    #[test]
    fn a_later_file_replaces_what_has_its_name() {
        let read = |resource: &str| {
            let text = format!("[[invariant]]\nname = \"a\"\nresource = \"{resource}\"\nexpression = \"true\"\n");
            Declarations::read("mine.toml", &text).unwrap_or_default()
        };
        let mut all = read("pods");
        all.add(read("nodes"));
        assert_eq!(all.invariants.len(), 1);
        assert_eq!(all.invariants[0].resource.plural, "nodes");
    }
}
