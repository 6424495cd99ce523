//! A protocol and each of its fixes, explored and compared. Every counterexample is written out as evidence, and `check` has to
//! convict it.

use super::error::ProtocolError;
use super::file::{self, Fix};
use super::machine::{Cost, Machine};
use super::protocol::Limits;
use super::run;
use super::search::{Bounds, End, Exploration, explore};
use super::system::TransitionSystem;
use crate::check::{self, Kind};
use crate::history::sketch::sketch_with;
use crate::model::Declarations;
use crate::order::{Order, OrderOptions};
use std::sync::Arc;

/// A protocol with a fix applied or none, and what its runs showed.
#[derive(Debug)]
pub struct Variant {
    /// The fix.
    pub fix: Option<Fix>,
    /// The bounds of the protocol.
    pub limits: Limits,
    /// Size and end of the exploration.
    pub exploration: Exploration,
    /// What its runs cost.
    pub cost: Cost,
    /// Whether the limit of writes left runs out.
    pub has_more_writes: bool,
    /// Each safety property with its shortest counterexample.
    pub properties: Vec<(String, Option<Counterexample>)>,
}

/// A shortest run that breaks a property.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// Steps.
    pub steps: usize,
    /// The run as a sketch (`docs/sketch.md`), which becomes evidence by [`crate::history::sketch::evidence`].
    pub sketch: String,
    /// The rules file with which `check` judges it; empty without one.
    pub rules: String,
    /// The rules that `check` finds violated in it.
    pub violated: Vec<&'static str>,
}

impl Variant {
    /// Whether the explored runs break no property, and the exploration was not cut short.
    pub fn is_safe(&self) -> Option<bool> {
        if self.properties.iter().any(|(_, counterexample)| counterexample.is_some()) {
            return Some(false);
        }
        (self.exploration.end == End::Exhausted).then_some(true)
    }
}

/// Explores a protocol, with a fix applied or none. `limits` replaces those of the file.
///
/// # Errors
/// All mistakes in the file, or an expression that cannot be evaluated in a state that a run reached.
pub fn variant(
    text: &str,
    fix: Option<&str>,
    limits: Option<Limits>,
    bounds: Bounds,
) -> Result<Variant, ProtocolError> {
    let described = match fix {
        Some(name) => file::fixes(text)?.into_iter().find(|known| known.name == name),
        None => None,
    };
    let mut protocol = file::read(text, fix)?;
    protocol.limits = limits.unwrap_or(protocol.limits);
    let declarations = declarations(&protocol.rules)?;
    let machine = Machine::new(protocol)?;
    let exploration = explore(&machine, bounds);
    let cost = machine.cost();
    if let Some(failure) = machine.failure() {
        return Err(format!("an expression cannot be evaluated: {failure}").into());
    }
    let mut properties = Vec::new();
    for (name, path) in machine.properties().into_iter().zip(&exploration.counterexamples) {
        let counterexample = match path {
            Some(path) => Some(convicted(&machine, path, &declarations)?),
            None => None,
        };
        properties.push((name, counterexample));
    }
    let (limits, has_more_writes) = (machine.protocol().limits, machine.has_more_writes());
    Ok(Variant { fix: described, limits, exploration, cost, has_more_writes, properties })
}

/// The shipped declarations with those of a protocol.
fn declarations(rules: &str) -> Result<Arc<Declarations>, String> {
    let mut all = Declarations::shipped().clone();
    if !rules.is_empty() {
        let own = Declarations::read("rules", rules)
            .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        all.add(own);
    }
    Ok(Arc::new(all))
}

/// A run, and the verdict of `check` about it.
fn convicted(machine: &Machine, path: &[u32], declarations: &Arc<Declarations>) -> Result<Counterexample, String> {
    let sketch = run::sketch(machine, path).ok_or("the run cannot be repeated")?;
    let history = sketch_with(&sketch, &declarations.fields()).map_err(|error| format!("{error}\n{sketch}"))?;
    let options = check::Options { declarations: declarations.clone(), ..check::Options::default() };
    let order = Order::derive(&history, &OrderOptions::default());
    let judgement = check::judge(&history, &order, &options);
    let mut violated: Vec<&'static str> = judgement
        .findings
        .iter()
        .filter(|finding| finding.kind == Kind::Violation)
        .map(|finding| finding.rule)
        .collect();
    violated.dedup();
    Ok(Counterexample { steps: path.len(), sketch, rules: machine.protocol().rules.clone(), violated })
}

/// A limit, and the smallest number that it can have.
type Member = fn(&mut Limits) -> (&mut u8, u8);

/// The smallest limits at which a property of a variant is still broken, and its counterexample there. Each limit is lowered by
/// itself, in the order of the members of [`Limits`].
///
/// # Errors
/// As [`variant`].
pub fn minimise(
    text: &str,
    fix: Option<&str>,
    property: usize,
    bounds: Bounds,
) -> Result<(Limits, Counterexample), ProtocolError> {
    let first = variant(text, fix, None, bounds)?;
    let mut limits = first.limits;
    let mut found = first
        .properties
        .get(property)
        .and_then(|(_, found)| found.clone())
        .ok_or_else(|| "no run breaks it".to_owned())?;
    let members: [Member; 6] = [
        |limits| (&mut limits.servers, 1),
        |limits| (&mut limits.writes, 0),
        |limits| (&mut limits.crashes, 0),
        |limits| (&mut limits.breaks, 0),
        |limits| (&mut limits.expirations, 0),
        |limits| (&mut limits.timeouts, 0),
    ];
    for member in members {
        loop {
            let mut fewer = limits;
            let (count, least) = member(&mut fewer);
            if *count <= least {
                break;
            }
            *count -= 1;
            let smaller = variant(text, fix, Some(fewer), bounds)?;
            match smaller.properties.into_iter().nth(property) {
                Some((_, Some(counterexample))) => {
                    limits = fewer;
                    found = counterexample;
                }
                _ => break,
            }
        }
    }
    Ok((limits, found))
}
