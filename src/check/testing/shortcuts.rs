//! Tests that the shortcuts for steady histories change no judgement.

use crate::check::{Judgement, Options, judge};
use crate::history::History;
use crate::history::sketch::sketch;
use crate::order::{Order, OrderOptions};
use std::path::Path;

/// The judgements with and without shortcuts; `None` if the history has none.
fn both(history: &History) -> Option<[Judgement; 2]> {
    let mut order = Order::derive(history, &OrderOptions::default());
    if !order.frontiers.are_steady() {
        return None;
    }
    let short = judge(history, &order, &Options::default());
    order.frontiers.take_no_shortcuts();
    Some([short, judge(history, &order, &Options::default())])
}

fn agree(text: &str) -> bool {
    let Ok(history) = sketch(text) else { return false };
    let Some(judged) = both(&history) else { return false };
    assert_eq!(judged[0], judged[1], "{text}");
    true
}

fn sketches(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sketches(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "sketch") {
            found.push(std::fs::read_to_string(entry).expect("a text"));
        }
    }
}

#[test]
fn the_histories_of_this_repository_are_judged_the_same_without_them() {
    let mut texts = Vec::new();
    sketches(&Path::new(env!("CARGO_MANIFEST_DIR")).join("histories"), &mut texts);
    let steady = texts.iter().filter(|text| agree(text)).count();
    assert!(steady > 20, "{steady}");
}

#[test]
fn histories_with_any_answers_are_judged_the_same_without_them() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut roll = move |sides: u64| random.u64(..sides);
    let (mut steady, mut found) = (0, 0);
    for _ in 0..3_000 {
        let mut text = "recorded audit\n".to_owned();
        let mut now = 10;
        for _ in 0..2 + roll(8) {
            let (client, key) = (["a", "b", "c"][roll(3) as usize], ["p", "q", "configmaps/r"][roll(3) as usize]);
            let object = |revision: u64| format!("{key}:{}1@{revision}", &key[key.len() - 1..]);
            // Mostly the current revision, else an earlier or a later one.
            let mut some = |now: u64| if roll(3) > 0 { now } else { (now + 1).saturating_sub(roll(6)).max(1) };
            let (seen, wrote) = (some(now), some(now + 1));
            let request = match roll(6) {
                0 => format!("GET {key} rv=0 => {}", object(seen)),
                1 => format!("GET {key} => {}", object(seen)),
                2 => format!("PUT {} => !409", object(seen)),
                3 => format!("LIST rv=0 => {seen} {{}}"),
                _ => format!("PUT {} => {}", object(seen), object(wrote)),
            };
            now = now.max(wrote);
            let apart = if roll(4) == 0 { format!("|-{request}-|") } else { request };
            text += &format!("{client}@A {apart}\n");
        }
        if agree(&text) {
            steady += 1;
            let history = sketch(&text).expect("it was read before");
            let order = Order::derive(&history, &OrderOptions::default());
            found += judge(&history, &order, &Options::default()).findings.len();
        }
    }
    assert!(steady > 200 && found > 50, "{steady} {found}");
}
