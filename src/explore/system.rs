//! Transition systems: what can be explored. Input: a state. Output: its successors.

use std::hash::Hash;

/// A set of safety properties, one bit each, in the order of [`TransitionSystem::properties`].
pub type Broken = u32;

/// A system of states and transitions, of which every run is explored.
///
/// ```
/// use retrograde::explore::{explore, Bounds, Broken, TransitionSystem};
///
/// /// A client that reads a counter, and writes it plus one, without a precondition.
/// struct Increments;
///
/// impl TransitionSystem for Increments {
///     /// The counter, and what each of two clients has read.
///     type State = (u8, [Option<u8>; 2], u8);
///
///     fn properties(&self) -> Vec<String> {
///         vec!["no lost update".to_owned()]
///     }
///
///     fn initial(&self) -> Self::State {
///         (0, [None; 2], 0)
///     }
///
///     fn successors(&self, state: &Self::State, visit: &mut dyn FnMut(Self::State, Broken)) {
///         let (counter, read, writes) = *state;
///         for client in 0..2 {
///             let mut after = read;
///             match read[client] {
///                 None => {
///                     after[client] = Some(counter);
///                     visit((counter, after, writes), 0);
///                 }
///                 Some(value) => {
///                     after[client] = None;
///                     let lost = value != counter;
///                     visit((value + 1, after, writes + 1), u32::from(lost));
///                 }
///             }
///         }
///     }
/// }
///
/// let found = explore(&Increments, Bounds { steps: 6, ..Bounds::default() });
/// assert_eq!(found.counterexamples[0].as_ref().map(|path| path.len()), Some(4));
/// ```
pub trait TransitionSystem: Sync {
    /// A state. Two equal states have the same successors.
    type State: Clone + Eq + Hash + Send + Sync;

    /// The safety properties, at most 32.
    fn properties(&self) -> Vec<String>;

    /// The state in which every run begins.
    fn initial(&self) -> Self::State;

    /// Visits every successor of a state, always in the same order, with the properties that the transition breaks.
    fn successors(&self, state: &Self::State, visit: &mut dyn FnMut(Self::State, Broken));
}
