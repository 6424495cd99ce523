//! `traffic.json` of a robustness report: properties of its traffic that the checker may rely on.

use serde::Deserialize;

/// Properties of the traffic.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// No transaction changes more than one key, so each revision is one event.
    #[serde(rename = "expectuniquerevision")]
    pub unique_revisions: bool,
}
