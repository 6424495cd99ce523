//! One line per client: is what it saw consistent with one order of writes?

use crate::check::{ClientReport, Verdict};
use crate::explain::names;
use crate::explain::words::{count, saw, thousands};
use crate::report::Part;
use crate::report::page::{Page, Tone};
use std::io;

/// Clients in order are listed singly up to this number.
const MAX_LISTED: usize = 12;
/// Unknown clients with one reason are listed singly up to this number.
const ALIKE: usize = 2;
/// Clients to name on a line for several.
const MAX_NAMED: usize = 8;
/// Columns for the verdict.
const LABEL: usize = 16;

/// Writes the lines, worst first.
pub(super) fn write(page: &mut Page<'_>, part: &Part<'_>) -> io::Result<()> {
    let clients = &part.judgement.clients;
    if clients.is_empty() {
        return Ok(());
    }
    page.title("Is what each client saw consistent with one order of writes?")?;
    let grave = |wanted: fn(&Verdict) -> bool| clients.iter().filter(move |c| wanted(&c.verdict)).collect::<Vec<_>>();
    for client in grave(|v| matches!(v, Verdict::Violated)) {
        line(page, part, client)?;
    }
    for group in by_reason(grave(|v| matches!(v, Verdict::Unknown(_)))) {
        fold(page, part, &group, ALIKE)?;
    }
    fold(page, part, &grave(|v| matches!(v, Verdict::Holds)), MAX_LISTED)?;
    for group in by_reason(grave(|v| matches!(v, Verdict::NotChecked(_)))) {
        fold(page, part, &group, ALIKE)?;
    }
    Ok(())
}

/// Groups clients by reason, in the order in which reasons appear.
fn by_reason(clients: Vec<&ClientReport>) -> Vec<Vec<&ClientReport>> {
    let mut groups: Vec<Vec<&ClientReport>> = Vec::new();
    for client in clients {
        match groups.iter_mut().find(|group| group[0].verdict == client.verdict) {
            Some(group) => group.push(client),
            None => groups.push(vec![client]),
        }
    }
    groups
}

fn fold(page: &mut Page<'_>, part: &Part<'_>, clients: &[&ClientReport], listed: usize) -> io::Result<()> {
    if clients.len() <= listed || page.look().verbose {
        return clients.iter().try_for_each(|client| line(page, part, client));
    }
    let named: Vec<String> = clients.iter().take(MAX_NAMED).map(|c| names::client(part.history, c.client)).collect();
    let mut text = format!("{}: {}", count(clients.len() as u64, "client"), named.join(", "));
    if clients.len() > MAX_NAMED {
        text += &format!(" and {} more", thousands((clients.len() - MAX_NAMED) as u64));
    }
    let verdict = &clients[0].verdict;
    if !verdict.reason().is_empty() {
        text += &format!("; {}", verdict.reason());
    }
    page.labelled(2, LABEL, (tone(verdict), saw(verdict)), &text)
}

fn line(page: &mut Page<'_>, part: &Part<'_>, client: &ClientReport) -> io::Result<()> {
    let mut text = names::client(part.history, client.client);
    if client.incarnations.len() > 1 {
        text += &format!(", {} incarnations", thousands(client.incarnations.len() as u64));
        // Incarnations that are not compared must not look consistent.
        match client.processes {
            0 | 1 => {}
            all if all == client.incarnations.len() => text += ", not compared with each other",
            some => text += &format!(", compared within {} processes", thousands(some as u64)),
        }
    }
    let broken: Vec<&str> =
        client.guarantees.iter().filter(|(_, v)| *v == Verdict::Violated).map(|(rule, _)| *rule).collect();
    if !broken.is_empty() {
        text += &format!(": {}", broken.join(", "));
    } else if !client.verdict.reason().is_empty() {
        text += &format!(": {}", client.verdict.reason());
    }
    page.labelled(2, LABEL, (tone(&client.verdict), saw(&client.verdict)), &text)
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Violated => Tone::Bad,
        Verdict::Unknown(_) => Tone::Doubt,
        Verdict::Holds => Tone::Good,
        Verdict::NotChecked(_) => Tone::Faint,
    }
}
