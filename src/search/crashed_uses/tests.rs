//! Sets compared with maps.

use super::*;
use std::collections::BTreeMap;

#[test]
fn equal_sets_have_one_number_however_they_came_about_and_others_have_others() {
    type Shown = BTreeMap<u32, (u32, u32)>;
    let mut uses = CrashedUseSets::new();
    let mut numbers: BTreeMap<Vec<(u32, u32, u32)>, u32> = BTreeMap::new();
    let mut random = 1u32;
    for _ in 0..300 {
        let (mut set, mut shown) = (UNUSED, Shown::new());
        for _ in 0..8 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (class, recent) = (random >> 16 & 3, random >> 20 & 1);
            if random >> 28 == 0 {
                set = uses.seal(set);
                shown.values_mut().for_each(|of| of.1 = 0);
            } else {
                set = uses.add(set, class, recent == 1);
                let of = shown.entry(class).or_default();
                *of = (of.0 + 1, of.1 + recent);
            }
            let list = shown.iter().map(|(&class, &(count, recent))| (class, count, recent)).collect();
            assert_eq!(*numbers.entry(list).or_insert(set), set, "{shown:?}");
            assert_eq!(uses.total(set), shown.values().map(|of| of.0).sum::<u32>());
            assert!(shown.iter().all(|(&class, of)| (uses.count(set, class), uses.recent(set, class)) == *of));
        }
    }
    let mut kept: Vec<u32> = numbers.values().copied().collect();
    assert_eq!(kept.iter().collect::<std::collections::BTreeSet<_>>().len(), numbers.len());
    uses.retain(kept.iter_mut());
    let counts = |set: u32| (0..4).map(|class| uses.count(set, class)).sum::<u32>();
    assert!(kept.iter().all(|&set| uses.total(set) == counts(set)));
}

/// Sets of many classes against maps of them, with every operation.
#[test]
fn sets_of_many_classes_are_those_that_maps_are() {
    type Shown = BTreeMap<u32, (u32, u32)>;
    type List = Vec<(u32, (u32, u32))>;
    let list = |shown: &Shown| shown.iter().map(|(&class, &of)| (class, of)).collect::<Vec<_>>();
    let within = |less: &Shown, more: &Shown| {
        less.iter().all(|(class, u)| more.get(class).is_some_and(|v| u.0 <= v.0 && u.0 - u.1 <= v.0 - v.1))
    };
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..60 {
        let most = [3, 17, 300, 5_000, 70_000, u32::MAX][round % 6];
        let (mut uses, mut others) = (CrashedUseSets::new(), CrashedUseSets::new());
        let mut sets: Vec<(u32, Shown)> = vec![(UNUSED, Shown::new())];
        let mut numbers: BTreeMap<List, u32> = BTreeMap::new();
        for _ in 0..300 {
            let (set, shown) = sets[random.usize(..sets.len())].clone();
            let (set, shown) = match random.u32(..12) {
                0 => (uses.seal(set), shown.into_iter().map(|(class, (count, _))| (class, (count, 0))).collect()),
                1 | 2 => {
                    let mut dropped: Vec<u32> = shown.keys().copied().filter(|_| random.bool()).collect();
                    dropped.extend((0..3).map(|_| random.u32(..most)));
                    dropped.sort_unstable();
                    let left = shown.into_iter().filter(|(class, _)| dropped.binary_search(class).is_err());
                    (uses.without(set, &dropped), left.collect())
                }
                3 if most <= 300 => {
                    let counts: Vec<u32> = (0..most).map(|_| random.u32(..3)).collect();
                    let shown = (0..).zip(&counts).filter(|(_, count)| **count > 0);
                    (uses.first(&counts), shown.map(|(class, &count)| (class, (count, 0))).collect())
                }
                4 => {
                    let adopted = others.adopt(&uses, set);
                    assert!(others.is_within_of(adopted, &uses, set) && uses.is_within_of(set, &others, adopted));
                    (uses.adopt(&others, adopted), shown)
                }
                _ => {
                    let mut shown = shown;
                    let known: Vec<u32> = shown.keys().copied().collect();
                    let again = !known.is_empty() && random.bool();
                    let class = if again { known[random.usize(..known.len())] } else { random.u32(..most) };
                    let recent = random.bool();
                    let of = shown.entry(class).or_default();
                    *of = (of.0 + 1, of.1 + u32::from(recent));
                    (uses.add(set, class, recent), shown)
                }
            };
            assert_eq!(*numbers.entry(list(&shown)).or_insert(set), set, "{shown:?}");
            assert!(uses.classes(set).eq(shown.keys().copied()) && uses.width(set) as usize == shown.len());
            assert_eq!(uses.total(set), shown.values().map(|of| of.0).sum::<u32>());
            assert!(shown.iter().all(|(&class, of)| (uses.count(set, class), uses.recent(set, class)) == *of));
            assert_eq!(uses.count(set, most), 0);
            let (other, of_other) = &sets[random.usize(..sets.len())];
            assert_eq!(uses.is_within(set, *other), within(&shown, of_other));
            assert_eq!(uses.is_within(*other, set), within(of_other, &shown));
            sets.push((set, shown));
            if random.u32(..100) == 0 {
                uses.retain(sets.iter_mut().map(|(set, _)| set));
                numbers = sets.iter().map(|(set, shown)| (list(shown), *set)).collect();
            }
        }
        assert_eq!(numbers.values().collect::<std::collections::BTreeSet<_>>().len(), numbers.len());
    }
}

#[test]
fn a_chain_of_sets_takes_far_less_than_the_square_of_its_length() {
    let mut uses = CrashedUseSets::new();
    let mut set = UNUSED;
    for class in 0..20_000 {
        set = uses.add(set, class, true);
    }
    assert!(uses.bytes() < 40_000_000, "{}", uses.bytes());
}
