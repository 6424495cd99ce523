//! Builder of small etcd stores for tests, in bbolt's format.

use std::collections::BTreeMap;

/// Buckets by name, with their keys and values.
pub(crate) type Buckets = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

const PAGE: usize = 512;

/// A bbolt file with these buckets and at most `keys_in_a_leaf` keys in a leaf.
pub(crate) fn store(buckets: &Buckets, keys_in_a_leaf: usize) -> Vec<u8> {
    let mut pages: Vec<Vec<u8>> = vec![Vec::new(); 3];
    let mut roots = BTreeMap::new();
    for (name, pairs) in buckets {
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = pairs.clone().into_iter().collect();
        let value = if pairs.len() <= 1 {
            // A small bucket is inline in its value.
            [&[0; 16][..], &leaf(0, &pairs, 0)].concat()
        } else {
            let root = tree(&mut pages, &pairs, keys_in_a_leaf);
            [&root.to_le_bytes()[..], &[0; 8]].concat()
        };
        roots.insert(name.as_bytes().to_vec(), value);
    }
    let root = pages.len() as u64;
    let names: Vec<(Vec<u8>, Vec<u8>)> = roots.into_iter().collect();
    add(&mut pages, |id| leaf(id, &names, 1));
    pages[2] = [&2u64.to_le_bytes()[..], &0x10u16.to_le_bytes(), &[0; PAGE - 10]].concat();
    let unused = pages.len() as u64;
    for at in [0, 1] {
        pages[at as usize] = meta(at, root, unused);
    }
    pages.concat()
}

/// Adds a page, which may span several page sizes; returns its number.
fn add(pages: &mut Vec<Vec<u8>>, page: impl FnOnce(u64) -> Vec<u8>) -> u64 {
    let id = pages.len() as u64;
    let mut bytes = page(id);
    let count = bytes.len().div_ceil(PAGE);
    bytes[12..16].copy_from_slice(&(count as u32 - 1).to_le_bytes());
    bytes.resize(count * PAGE, 0);
    pages.extend(bytes.chunks(PAGE).map(<[u8]>::to_vec));
    id
}

fn tree(pages: &mut Vec<Vec<u8>>, pairs: &[(Vec<u8>, Vec<u8>)], keys_in_a_leaf: usize) -> u64 {
    let mut level: Vec<(Vec<u8>, u64)> =
        pairs.chunks(keys_in_a_leaf).map(|pairs| (pairs[0].0.clone(), add(pages, |id| leaf(id, pairs, 0)))).collect();
    while level.len() > 1 {
        let above = level.chunks(3);
        let above: Vec<(Vec<u8>, u64)> =
            above.map(|children| (children[0].0.clone(), add(pages, |id| branch(id, children)))).collect();
        level = above;
    }
    level[0].1
}

fn header(id: u64, flags: u16, count: usize) -> Vec<u8> {
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &(count as u16).to_le_bytes(), &[0; 4]].concat()
}

fn leaf(id: u64, pairs: &[(Vec<u8>, Vec<u8>)], flags: u32) -> Vec<u8> {
    let mut page = header(id, 2, pairs.len());
    let mut content = Vec::new();
    for (at, (key, value)) in pairs.iter().enumerate() {
        let position = (pairs.len() - at) * 16 + content.len();
        for word in [flags, position as u32, key.len() as u32, value.len() as u32] {
            page.extend(word.to_le_bytes());
        }
        content.extend_from_slice(key);
        content.extend_from_slice(value);
    }
    page.extend(content);
    page
}

fn branch(id: u64, children: &[(Vec<u8>, u64)]) -> Vec<u8> {
    let mut page = header(id, 1, children.len());
    let mut content = Vec::new();
    for (at, (key, child)) in children.iter().enumerate() {
        let position = (children.len() - at) * 16 + content.len();
        page.extend((position as u32).to_le_bytes());
        page.extend((key.len() as u32).to_le_bytes());
        page.extend(child.to_le_bytes());
        content.extend_from_slice(key);
    }
    page.extend(content);
    page
}

fn meta(id: u64, root: u64, unused: u64) -> Vec<u8> {
    let mut page = header(id, 4, 0);
    let mut body = Vec::new();
    for word in [0xed0c_daed, 2, PAGE as u32, 0] {
        body.extend(u32::to_le_bytes(word));
    }
    // Root page, its sequence, free list, end, transaction.
    for word in [root, 0, 2, unused, 10 + id] {
        body.extend(word.to_le_bytes());
    }
    body.extend(super::bbolt::fnv(&body).to_le_bytes());
    page.extend(body);
    page.resize(PAGE, 0);
    page
}

/// A key of the bucket `key`.
pub(crate) fn revision(main: u64, sub: u64, tombstone: bool) -> Vec<u8> {
    let mark: &[u8] = if tombstone { b"t" } else { b"" };
    [&main.to_be_bytes()[..], b"_", &sub.to_be_bytes(), mark].concat()
}
