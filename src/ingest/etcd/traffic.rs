//! `traffic.json` of a robustness report: what the traffic promised.

use serde::Deserialize;

/// What the traffic promised.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// That no transaction changes more than one key, so that each revision is one event.
    #[serde(rename = "expectuniquerevision")]
    pub unique_revisions: bool,
}
