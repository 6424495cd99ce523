//! Declared allocations over the revision order. Input: the versions of one resource. Output: [`Holdings`]: which value each
//! object held, from which revision, through which revision for certain, and by which proof. Trap: `through` is a lower bound;
//! only [`Holdings::had_ended`] says that a hold had ended.

use crate::check::Evidence;
use crate::check::facts::cross_counter;
use crate::check::facts::version_validity::{Proof, VersionValidity};
use crate::history::{Declared, KeyId, OperationId, PartId, ResourceId, Revision, Symbol};
use crate::model::declaration::{Allocation, Compare, Condition};
use crate::order::{Change, Removal, Version};
use std::net::IpAddr;
use std::ops::Range;

/// All holds of one allocation by objects of one resource.
#[derive(Debug, Default)]
pub struct Holdings {
    /// The holds, grouped by object.
    pub holds: Vec<Hold>,
    /// Versions of the objects, grouped by object and in order.
    versions: Vec<HeldVersion>,
}

/// A value that an object holds for an interval of revisions.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The value.
    pub value: AllocatedValue,
    /// The holder: the object's uid, or the value of the declared field.
    pub holder: String,
    /// The object with the value.
    pub key: KeyId,
    /// The object's uid.
    pub uid: Symbol,
    /// Its end, if known.
    pub end: End,
    /// The versions with the value, as a range of `Holdings::versions`.
    versions: Range<usize>,
}

/// One version with the value, and the interval in which it was certainly current.
#[derive(Clone, Copy, Debug)]
pub struct HeldVersion {
    /// The version.
    pub version: Version,
    /// Inclusive upper bound.
    pub through: Revision,
    /// The proof of `through`.
    pub proof: Proof,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Nothing shows an end.
    Open,
    /// With this version at the latest: a change, the deletion, or another life of the name.
    By(Version),
    /// With a removal at an unknown revision.
    Removed(Removal),
}

impl Hold {
    /// Whether it had certainly ended before a request was sent, by the times of its end.
    pub fn ended_before(&self, evidence: &Evidence<'_>, id: OperationId) -> bool {
        match &self.end {
            End::Open => false,
            End::By(version) => cross_counter::was_before(evidence, version, id),
            End::Removed(removal) => {
                let records = evidence.order.timeline.removals_of(removal.key, removal.uid);
                cross_counter::removal_before(evidence, records, id).is_some()
            }
        }
    }
}

impl Holdings {
    /// The versions that show the hold.
    pub fn versions(&self, hold: &Hold) -> &[HeldVersion] {
        &self.versions[hold.versions.clone()]
    }

    /// The first revision of the hold.
    pub fn from(&self, hold: &Hold) -> Revision {
        self.versions[hold.versions.start].version.revision
    }

    /// The last revision at which the hold certainly existed.
    pub fn through(&self, hold: &Hold) -> Revision {
        self.versions[hold.versions.end - 1].through
    }

    /// The version that certainly showed the hold at a revision.
    pub fn at(&self, hold: &Hold, revision: Revision) -> Option<&HeldVersion> {
        let versions = self.versions(hold);
        let at = versions.partition_point(|v| v.version.revision <= revision).checked_sub(1)?;
        Some(&versions[at]).filter(|held| held.through >= revision)
    }

    /// Whether a hold had ended at a revision; `None` if that is open.
    pub fn had_ended(&self, hold: &Hold, revision: Revision) -> Option<bool> {
        if revision <= self.through(hold) {
            return Some(false);
        }
        match hold.end {
            End::By(version) if version.revision <= revision => Some(true),
            End::Removed(removal) if removal.before.is_some_and(|before| before <= revision) => Some(true),
            End::Removed(removal) if removal.after >= revision => Some(false),
            _ => None,
        }
    }
}

/// A value in comparable form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocatedValue {
    /// A text, or a single address in canonical form.
    Text(String),
    /// A range of addresses of one family: whether it is IPv6, first, last.
    Range(bool, u128, u128),
}

impl AllocatedValue {
    fn of(compare: Compare, text: &str) -> Option<AllocatedValue> {
        match compare {
            Compare::Text => Some(AllocatedValue::Text(text.to_owned())),
            Compare::Address => address(text).map(|address| AllocatedValue::Text(address.to_string())),
            Compare::Range => range(text),
        }
    }
}

/// Parses an address. Names of objects write the colons of IPv6 as hyphens.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.replace('-', ":").parse().ok())
}

fn range(text: &str) -> Option<AllocatedValue> {
    let (address, length) = text.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let (six, bits, first) = match address.parse().ok()? {
        IpAddr::V4(four) => (false, 32, u128::from(u32::from(four))),
        IpAddr::V6(six) => (true, 128, u128::from(six)),
    };
    let rest = u32::checked_sub(bits, length)?;
    let mask = if rest == 128 { u128::MAX } else { (1 << rest) - 1 };
    Some(AllocatedValue::Range(six, first & !mask, first | mask))
}

/// The holds of an allocation by objects of one resource.
pub fn holdings(
    evidence: &Evidence<'_>,
    validity: &VersionValidity<'_>,
    allocation: &Allocation,
    resource: ResourceId,
) -> Holdings {
    let mut all = Holdings::default();
    // No object has a value at a path with a name that is nowhere in the evidence.
    if !allocation.value.iter().chain(&allocation.holder).all(|path| evidence.history.has_names_of(path)) {
        return all;
    }
    for &key in evidence.keys_of(resource) {
        all.collect(evidence, validity, allocation, key);
    }
    all
}

impl Holdings {
    fn collect(
        &mut self,
        evidence: &Evidence<'_>,
        validity: &VersionValidity<'_>,
        allocation: &Allocation,
        key: KeyId,
    ) {
        let history = evidence.history;
        let first = self.holds.len();
        let mut open: Vec<Hold> = Vec::new();
        // Most versions have the same value as the one before.
        let mut last: Option<(PartId, Symbol, HeldValues)> = None;
        for version in evidence.order.timeline.versions(key).iter() {
            let declared = history.declared(key, version.uid, version.attributes);
            let declared = declared.filter(|_| version.change.lives() == Some(true));
            if version.change == Change::Deleted {
                self.holds.extend(open.drain(..).map(|hold| Hold { end: End::By(version), ..hold }));
                continue;
            }
            let known = last.take().filter(|(root, uid, _)| {
                declared.is_some_and(|declared| (*root, *uid) == (declared.root(), version.uid))
            });
            let values = known
                .map(|(_, _, values)| values)
                .or_else(|| values_of(allocation, &declared?, history.name(version.uid)));
            let Some((values, declared)) = values.zip(declared) else {
                // The evidence does not show the value in this version.
                self.holds.append(&mut open);
                continue;
            };
            let at = self.versions.len();
            if !values.is_empty() {
                let (through, proof) = validity.through(&version);
                self.versions.push(HeldVersion { version, through, proof });
            }
            open = self.continued(open, &values, version, at);
            last = Some((declared.root(), version.uid, values));
        }
        self.holds.append(&mut open);
        // The removal of the object, if only its request is known.
        for hold in &mut self.holds[first..] {
            let removal = evidence.order.timeline.removals_of(key, hold.uid).first().filter(|r| r.uid.is_some());
            let by_itself = matches!(hold.end, End::By(version) if version.uid == hold.uid);
            hold.end = removal.filter(|_| !by_itself).map_or(hold.end, |removal| End::Removed(*removal));
        }
    }

    /// The holds from one version on. `open` and `values` are both sorted by value and holder.
    fn continued(
        &mut self,
        open: Vec<Hold>,
        values: &[(AllocatedValue, String)],
        version: Version,
        at: usize,
    ) -> Vec<Hold> {
        let mut before = open.into_iter().peekable();
        let mut now = Vec::with_capacity(values.len());
        for (value, holder) in values {
            while let Some(hold) = before.next_if(|hold| (&hold.value, &hold.holder) < (value, holder)) {
                self.holds.push(Hold { end: End::By(version), ..hold });
            }
            // A hold continues within one life. Another life of the name starts a new hold.
            let same = before.next_if(|hold| (&hold.value, &hold.holder) == (value, holder));
            let (kept, ended) = same.map_or((None, None), |hold| match hold.uid == version.uid {
                true => (Some(hold), None),
                false => (None, Some(hold)),
            });
            self.holds.extend(ended.map(|hold| Hold { end: End::By(version), ..hold }));
            now.push(match kept {
                Some(hold) => Hold { versions: hold.versions.start..at + 1, ..hold },
                None => Hold {
                    value: value.clone(),
                    holder: holder.clone(),
                    key: version.key,
                    uid: version.uid,
                    end: End::Open,
                    versions: at..at + 1,
                },
            });
        }
        self.holds.extend(before.map(|hold| Hold { end: End::By(version), ..hold }));
        now
    }
}

/// The value and holder pairs of a version, sorted.
type HeldValues = Vec<(AllocatedValue, String)>;

/// The pairs of a version; `None` if the evidence does not show them.
fn values_of(allocation: &Allocation, declared: &Declared<'_>, uid: &str) -> Option<HeldValues> {
    let holds = |condition: &Condition| {
        let shown = declared.shows(&condition.path);
        shown.then(|| condition.admits(declared.text(&condition.path).as_deref()))
    };
    let mut known = true;
    for (conditions, wanted) in [(&allocation.when, true), (&allocation.unless, false)] {
        for condition in conditions {
            match holds(condition) {
                Some(met) if met != wanted => return Some(Vec::new()),
                Some(_) => {}
                None => known = false,
            }
        }
    }
    let paths: Vec<_> = allocation.value.iter().chain(&allocation.holder).collect();
    if !known || !paths.iter().all(|path| declared.shows(path)) {
        return None;
    }
    if paths.iter().any(|path| declared.lacks(path)) {
        return Some(Vec::new());
    }
    let mut held: HeldValues = declared
        .rows(&paths)?
        .into_iter()
        .filter_map(|row| {
            let parts: Vec<String> = row.into_iter().collect::<Option<_>>()?;
            let (parts, holder) = match allocation.holder {
                Some(_) => (&parts[..parts.len() - 1], parts[parts.len() - 1].clone()),
                None => (&parts[..], uid.to_owned()),
            };
            let none = holder.is_empty() || parts.iter().any(|part| allocation.except.contains(part));
            let value = AllocatedValue::of(allocation.compare, &parts.join("/")).filter(|_| !none)?;
            Some((value, holder))
        })
        .collect();
    held.sort_unstable();
    held.dedup();
    Some(held)
}

/// A value as the declaration's users write it.
pub fn words(value: &AllocatedValue) -> String {
    match value {
        AllocatedValue::Text(text) => text.clone(),
        AllocatedValue::Range(six, first, last) => {
            let size = last - first;
            let bits = if *six { 128 } else { 32 };
            let length = bits - (128 - size.leading_zeros());
            let address = match six {
                true => IpAddr::V6((*first).into()).to_string(),
                false => IpAddr::V4((*first as u32).into()).to_string(),
            };
            format!("{address}/{length}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_what_they_are() {
        let of = |compare, text| AllocatedValue::of(compare, text);
        assert_eq!(of(Compare::Address, "fd00::1"), of(Compare::Address, "fd00-0-0-0-0-0-0-1"));
        assert_ne!(of(Compare::Address, "10.0.0.1"), of(Compare::Address, "10.0.0.10"));
        assert_eq!(of(Compare::Address, "mynet-10.0.0.1"), None);
        assert_eq!(of(Compare::Range, "10.1.2.3/24"), Some(AllocatedValue::Range(false, 0x0a01_0200, 0x0a01_02ff)));
        assert_eq!(of(Compare::Range, "::/0"), Some(AllocatedValue::Range(true, 0, u128::MAX)));
        for text in ["10.0.0.0/33", "10.0.0.0", "x/8", "::/129", "10.0.0.0/-1"] {
            assert_eq!(of(Compare::Range, text), None, "{text}");
        }
        for text in ["10.1.2.0/24", "0.0.0.0/0", "10.1.2.3/32", "fd00::/64", "::/0"] {
            assert_eq!(of(Compare::Range, text).map(|held| words(&held)).as_deref(), Some(text));
        }
    }
}
