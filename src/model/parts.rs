//! A state that consists of parts by key. Equal states must be equal values, so a part in its initial state is left out.

use std::hash::Hash;

/// Parts by key, ordered by key, without parts in their initial state. The first part needs no allocation: a history that was
/// split by key has only one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parts<K, P> {
    first: Option<(K, P)>,
    rest: Vec<(K, P)>,
}

impl<K, P> Default for Parts<K, P> {
    fn default() -> Self {
        Parts { first: None, rest: Vec::new() }
    }
}

impl<K: Ord + Clone, P: Clone> Parts<K, P> {
    /// The part of a key, unless it is in its initial state.
    pub fn get(&self, key: &K) -> Option<&P> {
        let (first, part) = self.first.as_ref()?;
        if first == key {
            return Some(part);
        }
        self.rest.binary_search_by(|(other, _)| other.cmp(key)).ok().map(|at| &self.rest[at].1)
    }

    /// Replaces the part of a key; `None`: its initial state.
    pub fn set(&mut self, key: &K, part: Option<P>) {
        let Some((first, held)) = &mut self.first else {
            self.first = part.map(|part| (key.clone(), part));
            return;
        };
        if first == key {
            match part {
                Some(part) => *held = part,
                None if self.rest.is_empty() => self.first = None,
                None => self.first = Some(self.rest.remove(0)),
            }
            return;
        }
        match (self.rest.binary_search_by(|(other, _)| other.cmp(key)), part) {
            (Ok(at), Some(part)) => self.rest[at].1 = part,
            (Ok(at), None) => drop(self.rest.remove(at)),
            (Err(_), None) => {}
            (Err(_), Some(part)) if key < first => {
                let second = self.first.replace((key.clone(), part));
                self.rest.splice(..0, second);
            }
            (Err(at), Some(part)) => self.rest.insert(at, (key.clone(), part)),
        }
    }

    /// All parts, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = &(K, P)> {
        self.first.iter().chain(&self.rest)
    }

    /// Bytes beyond the size of the value, without those that the parts hold.
    pub fn heap_bytes(&self) -> usize {
        self.rest.capacity() * size_of::<(K, P)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn parts_are_a_map_whose_equal_contents_are_equal_values() {
        let mut random = 1u32;
        let mut parts = Parts::default();
        let mut map = BTreeMap::new();
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (key, part) = (random >> 29, (random >> 26) & 3);
            let part = (part > 0).then_some(part);
            parts.set(&key, part);
            match part {
                Some(part) => drop(map.insert(key, part)),
                None => drop(map.remove(&key)),
            }
            assert!(parts.iter().map(|(key, part)| (key, part)).eq(map.iter()));
            assert_eq!(parts.get(&key), map.get(&key));
            let mut again = Parts::default();
            map.iter().rev().for_each(|(key, part)| again.set(key, Some(*part)));
            assert_eq!(parts, again);
        }
    }
}
