//! Checkpoints: layers far back are dropped, and computed again if the search backtracks to them.
//!
//! Hardly any layer is visited twice, yet nearly every layer has an open node. In a long history these nodes were half of all
//! memory. While the search goes only forward, the layers after one follow from its active configurations. So an *interval* of
//! layers keeps only the active configurations of the layer before it, except for the newest intervals. If the search backtracks
//! into an interval, or reaches its first layer again, it recomputes the layers first. Everything that influences the choice of
//! nodes must be set aside in `recompute`, or the layers come out different.

use super::{Configuration, FrontierSearch, Layer, Node, Passed};
use crate::search::budget::BudgetGuard;
use crate::search::mask::Mask;
use crate::search::register::thresholds::Thresholds;
use crate::search::verdict::Limit;

/// The active configurations of a layer when it was first passed.
#[derive(Debug)]
struct IntervalStart<M> {
    event: u32,
    active: Vec<Configuration<M>>,
}

/// A checkpoint in place of layers.
#[derive(Debug)]
pub(super) struct Checkpoint<M> {
    /// The layer before them.
    begin: IntervalStart<M>,
    /// How many layers it replaces.
    layers: usize,
}

impl<M> Checkpoint<M> {
    /// The configurations that it keeps.
    pub(super) fn begins(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.begin.active.iter_mut()
    }
}

/// The intervals that have no checkpoint yet.
#[derive(Debug)]
pub(super) struct CheckpointLog<M> {
    /// The index of the layer at which each begins, and of the one before which it ends.
    whole: Vec<(usize, usize, IntervalStart<M>)>,
    /// The interval that has no end yet.
    growing: Option<(usize, IntervalStart<M>)>,
    /// The configurations that intervals keep, including those of checkpoints.
    kept: usize,
    /// Layers of an interval that are worth a checkpoint.
    least_layers: usize,
    /// Layers are being recomputed, and the others are set aside.
    pub(super) recomputing: bool,
}

impl<M> CheckpointLog<M> {
    /// No interval yet.
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        let least_layers = thresholds.checkpoint_layers;
        CheckpointLog { whole: Vec::new(), growing: None, kept: 0, least_layers, recomputing: false }
    }

    /// The configurations that they keep.
    pub(super) fn begins(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        let begins = self.whole.iter_mut().map(|whole| &mut whole.2);
        begins.chain(self.growing.iter_mut().map(|growing| &mut growing.1)).flat_map(|begin| begin.active.iter_mut())
    }

    /// The search backtracks to a layer: later layers no longer follow from the beginning of an interval.
    pub(super) fn touch(&mut self, layer: usize) {
        while let Some((.., begin)) = self.whole.pop_if(|whole| whole.1 > layer) {
            self.kept -= begin.active.len();
        }
        self.end(layer);
    }

    /// Ends the growing interval at a layer.
    fn end(&mut self, layer: usize) {
        match self.growing.take() {
            Some((at, begin)) if layer >= at + self.least_layers => self.whole.push((at, layer, begin)),
            Some((_, begin)) => self.kept -= begin.active.len(),
            None => {}
        }
    }

    /// The first layers are dropped.
    pub(super) fn forget(&mut self, layers: usize) {
        let forgotten = self.whole.iter().take_while(|whole| whole.0 < layers).count();
        self.kept -= self.whole.drain(..forgotten).map(|(.., begin)| begin.active.len()).sum::<usize>();
        if let Some((_, begin)) = self.growing.take_if(|growing| growing.0 < layers) {
            self.kept -= begin.active.len();
        }
        self.shift(layers);
    }

    /// A checkpoint was recomputed or dropped.
    pub(super) fn recomputed(&mut self, checkpoint: Option<Box<Checkpoint<M>>>) {
        self.kept -= checkpoint.map_or(0, |checkpoint| checkpoint.begin.active.len());
    }

    /// Renumbers the intervals after `layers` layers before all of them are gone.
    fn shift(&mut self, layers: usize) {
        for (begin, end, _) in &mut self.whole {
            (*begin, *end) = (*begin - layers, *end - layers);
        }
        if let Some((begin, _)) = &mut self.growing {
            *begin -= layers;
        }
    }

    /// Bytes held, where each configuration holds `each` beyond its own size.
    pub(super) fn bytes(&self, each: usize) -> usize {
        self.kept * (size_of::<Configuration<M>>() + each)
    }
}

impl<M: Mask> FrontierSearch<'_, M> {
    /// Notes the active configurations of the current layer if an interval is to begin there. Called after a return that no
    /// configuration had passed before.
    pub(super) fn mark(&mut self) {
        let begin = self.checkpoints.growing.as_ref().map_or(0, |growing| growing.0);
        if self.current_layer < begin + self.thresholds.interval_layers || self.active.is_empty() {
            return;
        }
        self.checkpoints.end(self.current_layer);
        if self.checkpoints.whole.len() > self.thresholds.whole_intervals {
            let first = self.checkpoints.whole.remove(0);
            self.drop_layers(first);
        }
        let active: Vec<Configuration<M>> = self.active.iter().map(|(_, at)| at.clone()).collect();
        self.checkpoints.kept += active.len();
        self.checkpoints.growing =
            Some((self.current_layer, IntervalStart { event: self.layers[self.current_layer].event, active }));
    }

    /// Replaces the layers of the first interval by a checkpoint.
    fn drop_layers(&mut self, (before, end, begin): (usize, usize, IntervalStart<M>)) {
        let layers = end - before - 1;
        let mut merged = Layer::new(self.layers[before + 1].event, Vec::new());
        merged.checkpoint = Some(Box::new(Checkpoint { begin, layers }));
        for layer in &self.layers[before + 1..end] {
            merged.open_count += layer.open_count;
            self.node_count -= layer.nodes.len();
            self.node_capacity -= layer.nodes.capacity();
        }
        self.layers.splice(before + 1..end, [merged]);
        self.checkpoints.shift(layers - 1);
        self.current_layer -= layers - 1;
    }

    /// Recomputes the layers of a checkpoint in its place. `false` if the layer is not a checkpoint.
    pub(super) fn recompute(&mut self, at: usize, guard: &BudgetGuard<'_>) -> Result<bool, Limit> {
        let Some(checkpoint) = self.layers[at].checkpoint.take() else { return Ok(false) };
        let Checkpoint { begin, layers } = *checkpoint;
        // No later layer is in an interval any more: the search continues here, or is about to.
        self.checkpoints.touch(at);
        self.checkpoints.kept -= begin.active.len();
        let saved =
            (self.current_layer, self.open_total, self.node_count, self.node_capacity, self.failures, self.open.at);
        let free_layers = std::mem::take(&mut self.free_layers);
        let suspicion = std::mem::take(&mut self.successors.suspicion);
        let active = std::mem::take(&mut self.active);
        let node = |at: &Configuration<M>| Node { at: at.clone(), optional: 0, is_open: false };
        let first = Layer::new(begin.event, begin.active.iter().map(node).collect());
        let mut others = std::mem::replace(&mut self.layers, vec![first]);
        self.checkpoints.recomputing = true;
        self.current_layer = 0;
        self.failures = 0;
        // The open nodes are set aside. With none of them counted, `pass` would drop layers.
        self.open_total += 1;
        self.open.go(begin.event);
        self.active = (0..).zip(begin.active).collect();
        // The open nodes of a layer are final when the next layer begins.
        while self.layers.len() <= layers + 1 {
            match self.open.forward() {
                Passed::Nothing => {}
                Passed::Invocation(slot) => self.invoke(slot),
                Passed::Return(slot) => {
                    self.pass(slot, usize::MAX, guard)?;
                    self.open.leave(slot);
                }
            }
        }
        self.checkpoints.recomputing = false;
        let event;
        (self.current_layer, self.open_total, self.node_count, self.node_capacity, self.failures, event) = saved;
        self.open.go(event);
        self.free_layers = free_layers;
        self.successors.suspicion = suspicion;
        self.active = active;
        if at < self.current_layer {
            self.current_layer += layers - 1;
        }
        let recomputed: Vec<Layer<M>> = std::mem::take(&mut self.layers).into_iter().skip(1).take(layers).collect();
        debug_assert_eq!(recomputed.iter().map(|layer| layer.open_count).sum::<u32>(), others[at].open_count);
        self.node_count += recomputed.iter().map(|layer| layer.nodes.len()).sum::<usize>();
        self.node_capacity += recomputed.iter().map(|layer| layer.nodes.capacity()).sum::<usize>();
        others.splice(at..=at, recomputed);
        self.layers = others;
        Ok(true)
    }

    /// The index of the layer `distance` layers before the current one, or of its checkpoint.
    pub(super) fn behind(&self, mut distance: usize) -> usize {
        let mut at = self.current_layer;
        while at > 0 && distance > 0 {
            at -= 1;
            distance =
                distance.saturating_sub(self.layers[at].checkpoint.as_ref().map_or(1, |checkpoint| checkpoint.layers));
        }
        at
    }
}
