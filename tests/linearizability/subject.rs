//! What histories are drawn of: a specification with a few operations and the answers they can have.

use retrograde::model::Spec;

/// A specification with its small world. What stands in a list twice is drawn twice as often.
pub trait Subject: Sync {
    /// The specification.
    type Spec: Spec;
    /// It.
    fn spec(&self) -> &Self::Spec;
    /// Operations.
    fn operations(&self) -> Vec<<Self::Spec as Spec>::Operation>;
    /// Answers; which of them an operation can have, the specification says.
    fn answers(&self) -> Vec<<Self::Spec as Spec>::Answer>;
}
