//! A watch on machines of a custom resource, with their bodies: from an empty list on, every change.

use super::Dice;
use std::fmt::Write as _;

/// Machines of one host, and also its slots.
const SLOTS: usize = 10;

/// Draws `changes` changes of `machines` machines. Every machine has a slot of its own, its disk grows, and its
/// memory fits. `wrong` times a machine has the slot of its neighbour until its next change.
pub fn capture(seed: u64, machines: usize, changes: usize, wrong: usize) -> String {
    let mut dice = Dice::new(seed);
    let mut text = String::from(
        "{\"kind\":\"capture\",\"version\":1,\"client\":\"recorder\",\"server\":\"a\",\"clock\":\"c\"}\n\
         {\"kind\":\"request\",\"id\":1,\"at\":1000,\"method\":\"GET\",\"uri\":\"/apis/cloud.example.com/v1/machines\"}\n\
         {\"kind\":\"response\",\"id\":1,\"at\":2000,\"status\":200,\"body\":{\"apiVersion\":\"cloud.example.com/v1\",\"kind\":\"MachineList\",\
         \"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}}\n\
         {\"kind\":\"request\",\"id\":2,\"at\":3000,\"method\":\"GET\",\"uri\":\"/apis/cloud.example.com/v1/machines?watch=1&resourceVersion=9\"}\n",
    );
    let mut disks = vec![0_u32; machines];
    for nth in 0..changes {
        let (revision, at) = (nth + 10, nth * 1_000_000 + 10_000);
        let machine = if nth < machines { nth } else { dice.index(machines) };
        disks[machine] += 1;
        let is_wrong =
            wrong > 0 && nth >= machines && (nth - machines).is_multiple_of((changes - machines) / wrong + 1);
        let slot = if is_wrong { (machine + 1) % SLOTS } else { machine % SLOTS };
        let kind = if nth < machines { "ADDED" } else { "MODIFIED" };
        writeln!(
            text,
            "{{\"kind\":\"event\",\"id\":2,\"at\":{at},\"event\":{{\"type\":\"{kind}\",\"object\":{{\"apiVersion\":\"cloud.example.com/v1\",\"kind\":\"Machine\",\
             \"metadata\":{{\"name\":\"m{machine}\",\"namespace\":\"n{}\",\"uid\":\"u{machine}\",\"resourceVersion\":\"{revision}\",\
             \"creationTimestamp\":\"2026-03-02T09:00:00Z\",\"labels\":{{\"tier\":\"{}\"}}}},\
             \"spec\":{{\"disk\":{},\"memory\":{},\"memoryLimit\":16,\"image\":\"db\",\"ports\":[80,443]}},\
             \"status\":{{\"host\":\"h{}\",\"slot\":{slot},\"phase\":\"Running\",\"address\":\"10.{}.{}.{}\"}}}}}}}}",
            machine % 20,
            if machine % 2 == 0 { "gold" } else { "silver" },
            disks[machine],
            1 + dice.roll(16),
            machine / SLOTS,
            machine >> 16,
            machine >> 8 & 255,
            machine & 255,
        )
        .expect("a text takes everything");
    }
    text
}
