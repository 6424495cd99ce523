//! The paths that an expression reads, and whether two versions of an object agree on them. If they agree, the sweep reuses
//! the last outcome.

use crate::history::{Declared, History, Part, PartId, Parts, Symbol};
use crate::ingest::fields::Path;
use crate::model::declaration::Invariant;

/// The paths that an invariant's expression reads, as symbols of a history.
#[derive(Clone, Debug)]
pub struct Reads {
    /// Names along each path, up to the first that the evidence does not contain.
    paths: Vec<Vec<Symbol>>,
    /// Whether it reads the version itself, which always differs.
    version: bool,
}

impl Reads {
    /// Collects the paths of an invariant.
    pub fn of(history: &History, invariant: &Invariant) -> Reads {
        let expression = &invariant.expression;
        let names = |path: &Path| {
            let names = path.literal();
            let mut symbols: Vec<Symbol> = names.iter().map_while(|name| history.names.find(name)).collect();
            if symbols.len() < names.len() {
                // No object has a member of that name.
                symbols.push(Symbol::NONE);
            }
            symbols
        };
        Reads { paths: expression.paths().iter().map(names).collect(), version: expression.reads_version() }
    }

    /// Whether two versions of one life show the same to the expression, so that its outcome is the same.
    pub fn agree(&self, history: &History, a: &Declared<'_>, b: &Declared<'_>) -> bool {
        if self.version {
            return false;
        }
        let (a, b) = (a.root(), b.root());
        a == b || self.paths.iter().all(|path| is_same(&history.parts, path, a, b))
    }
}

/// Whether a path leads to the same part in two values, or ends at the same place in both.
fn is_same(parts: &Parts, path: &[Symbol], mut a: PartId, mut b: PartId) -> bool {
    for &name in path {
        // Equal values are one part.
        if a == b {
            return true;
        }
        let (Part::Map(_), Part::Map(_)) = (parts.get(a), parts.get(b)) else { return false };
        match (parts.member(a, name), parts.member(b, name)) {
            (Some(below_a), Some(below_b)) => (a, b) = (below_a, below_b),
            (None, None) => return true,
            _ => return false,
        }
    }
    a == b
}
