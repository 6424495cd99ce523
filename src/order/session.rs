//! Sessions: which process lives are one identity at one place, so that what one saw binds the next.

use super::clock::Clocks;
use crate::history::{History, IncarnationId, ToldBy};
use rustc_hash::FxHashMap;

/// Process lives of one user, place and program that follow each other without overlap.
#[derive(Clone, Debug)]
pub struct Session {
    /// In order of time.
    pub lives: Vec<IncarnationId>,
}

/// Sessions of a history.
#[derive(Debug, Default)]
pub struct Sessions {
    /// In order of their first life.
    pub sessions: Vec<Session>,
    of_life: Vec<u32>,
}

impl Sessions {
    /// Groups lives. `same` are substrings of client names whose lives the user declares to be one process.
    pub fn build(history: &History, clocks: &Clocks, same: &[String]) -> Sessions {
        let mut groups: FxHashMap<(u32, String, String), Vec<IncarnationId>> = FxHashMap::default();
        let mut alone = Vec::new();
        for (index, life) in history.incarnations.iter().enumerate() {
            let id = IncarnationId(index as u32);
            let name = history.client_name(id);
            if same.iter().any(|pattern| name.contains(pattern.as_str())) {
                groups.entry((life.client.0, String::new(), String::new())).or_default().push(id);
                continue;
            }
            // Command-line tools and saved files have no session; lives without place may be replicas.
            match (&life.place, life.told_by) {
                (Some(place), ToldBy::CaptureLabel | ToldBy::PodUid | ToldBy::Address) if !name.is_empty() => {
                    groups.entry((life.client.0, place.clone(), life.program.clone())).or_default().push(id);
                }
                _ => alone.push(id),
            }
        }
        let mut sessions: Vec<Session> = alone.into_iter().map(|id| Session { lives: vec![id] }).collect();
        for ((_, place, _), mut lives) in groups {
            lives.sort_unstable_by_key(|l| (history.incarnations[l.index()].span.0, *l));
            let declared = place.is_empty();
            let mut current: Vec<IncarnationId> = Vec::new();
            for life in lives {
                let follows = current.last().is_none_or(|&last| declared || follows(history, clocks, last, life));
                if !follows {
                    // Overlapping lives are replicas: each on its own.
                    sessions.push(Session { lives: std::mem::take(&mut current) });
                }
                current.push(life);
            }
            sessions.push(Session { lives: current });
        }
        sessions.sort_by_key(|s| s.lives[0]);
        let mut of_life = vec![0; history.incarnations.len()];
        for (index, session) in sessions.iter().enumerate() {
            for life in &session.lives {
                of_life[life.index()] = index as u32;
            }
        }
        Sessions { sessions, of_life }
    }

    /// The number of the session of a process life.
    pub fn index_of(&self, life: IncarnationId) -> u32 {
        self.of_life.get(life.index()).copied().unwrap_or(u32::MAX)
    }

    /// The session of a process life.
    pub fn of(&self, life: IncarnationId) -> Option<&Session> {
        self.of_life.get(life.index()).map(|&index| &self.sessions[index as usize])
    }
}

fn follows(history: &History, clocks: &Clocks, a: IncarnationId, b: IncarnationId) -> bool {
    let (a, b) = (&history.incarnations[a.index()], &history.incarnations[b.index()]);
    a.clock == b.clock && a.span.1 < b.span.0 || clocks.before((a.span.1, a.clock), (b.span.0, b.clock))
}
