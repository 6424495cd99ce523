//! Operation logs whose events name no process: drawn logs of registers, each judged with its processes and without.

use fastrand::Rng;
use retrograde::check::Verdict;
use retrograde::history::{Domains, load_each};
use retrograde::ingest::{FileId, InputFile, ReadOptions};

fn verdict(log: &str) -> Verdict {
    let inputs = vec![InputFile::in_memory(FileId(0), "run.edn", log.as_bytes().to_vec())];
    let histories = load_each(inputs, &ReadOptions::default(), &Domains::default(), &());
    retrograde::judge(&histories[0], &retrograde::Options::default()).verdict
}

/// Transactions that read a register and write it. They write two values only, so many equal ones are open at once.
fn draw_transactions(random: &mut Rng) -> Vec<(usize, String)> {
    // The value to be written, and the value that was read once the transaction took effect.
    let mut open: [Option<(u8, Option<String>)>; 3] = Default::default();
    let (mut register, mut before) = ("nil".to_owned(), "nil".to_owned());
    let mut events = Vec::new();
    let asked = |read: &str, written: u8| format!(":f :txn, :value [[:r :x {read}] [:w :x {written}]]");
    for _ in 0..random.usize(4..14) {
        let process = random.usize(..open.len());
        let (written, read) = match open[process].take() {
            None => {
                let written = random.u8(..2);
                events.push((process, format!(":type :invoke, {}", asked("nil", written))));
                (written, None)
            }
            Some(taken) => taken,
        };
        match read {
            // It takes effect, perhaps much later than its invocation and long before its return.
            None if random.bool() => {
                before = std::mem::replace(&mut register, written.to_string());
                open[process] = Some((written, Some(before.clone())));
            }
            None => open[process] = Some((written, None)),
            Some(read) => {
                let read = if random.u8(..6) == 0 { before.clone() } else { read };
                let ending = ["ok", "ok", "ok", "info"][random.usize(..4)];
                events.push((process, format!(":type :{ending}, {}", asked(&read, written))));
            }
        }
    }
    events
}

/// The events of a few processes on a register, each with its process. Some answers are stale, and some never come.
fn draw(random: &mut Rng) -> Vec<(usize, String)> {
    let mut open: [Option<(String, String)>; 3] = Default::default();
    let (mut register, mut before) = ("nil".to_owned(), "nil".to_owned());
    let mut events = Vec::new();
    for written in 0..random.usize(4..14) {
        let process = random.usize(..open.len());
        match open[process].take() {
            None if random.bool() => {
                let value = written.to_string();
                events.push((process, format!(":type :invoke, :f :write, :value {value}")));
                // The write takes effect at once or when it returns.
                if random.bool() {
                    before = std::mem::replace(&mut register, value.clone());
                    open[process] = Some((":f :write".to_owned(), value));
                } else {
                    open[process] = Some((":f :write".to_owned(), format!("{value} late")));
                }
            }
            None => {
                events.push((process, ":type :invoke, :f :read, :value nil".to_owned()));
                open[process] = Some((":f :read".to_owned(), register.clone()));
            }
            Some((function, value)) => {
                let value = match value.strip_suffix(" late") {
                    Some(value) => {
                        before = std::mem::replace(&mut register, value.to_owned());
                        value.to_owned()
                    }
                    None if function == ":f :read" && random.u8(..3) == 0 => before.clone(),
                    None => value,
                };
                let ending = ["ok", "ok", "ok", "ok", "info"][random.usize(..5)];
                events.push((process, format!(":type :{ending}, {function}, :value {value}")));
            }
        }
    }
    events
}

#[test]
fn a_log_without_processes_is_violated_only_if_it_is_with_them() {
    let mut random = Rng::with_seed(0x6a09_e667_f3bc_c908);
    let (mut violated, mut both, mut hold) = (0, 0, 0);
    for round in 0..6_000 {
        let mut fresh = 10;
        let mut names = [0, 1, 2];
        let (mut named, mut unnamed) = (String::new(), String::new());
        let events = if round % 2 == 0 { draw(&mut random) } else { draw_transactions(&mut random) };
        for (process, event) in events {
            named += &format!("{{:process {}, {event}}}\n", names[process]);
            unnamed += &format!("{{{event}}}\n");
            if event.starts_with(":type :info") {
                // A process that got no answer goes on under a new name.
                names[process] = fresh;
                fresh += 1;
            }
        }
        match (verdict(&named), verdict(&unnamed)) {
            (Verdict::Violated, Verdict::Violated) => (violated, both) = (violated + 1, both + 1),
            (Verdict::Violated, _) => violated += 1,
            (Verdict::Holds, Verdict::Holds) => hold += 1,
            (Verdict::Holds, Verdict::Violated) => panic!("{named}"),
            _ => {}
        }
    }
    assert!(violated > 300 && both > 150 && hold > 2_000, "{violated} {both} {hold}");
}

#[test]
fn a_return_that_may_be_of_several_invocations_leaves_the_log_undecided() {
    let reads = "{:type :invoke, :f :get, :value 1}\n{:type :invoke, :f :get, :value 2}\n";
    let answer = "{:type :ok, :f :get, :value 9}\n";
    assert!(matches!(verdict(&format!("{reads}{answer}{answer}")), Verdict::Unknown(_)));
    // A log in which only some events have a process.
    let mixed = "{:process 1, :type :invoke, :f :read}\n{:type :ok, :f :read, :value nil}\n";
    assert!(matches!(verdict(mixed), Verdict::Unknown(_)));
}
