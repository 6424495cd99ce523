//! Sessions: the incarnations of one client at one place, so that what one of them saw binds the next. Input: [`History`] and
//! clock bounds. Output: [`Sessions`]. Two incarnations join only if the first certainly ended before the second began;
//! incarnations that overlap are replicas.

use super::clock::Clocks;
use crate::history::{ClockId, History, Incarnation, IncarnationId, ToldBy};
use rustc_hash::FxHashMap;

/// Incarnations of one user, place and program that follow each other without overlap.
#[derive(Clone, Debug)]
pub struct Session {
    /// In order of time.
    pub lives: Vec<IncarnationId>,
    /// Whether only user, program, recorder and order of time join them, because no label names their place.
    pub is_guess: bool,
}

/// The sessions of a history.
#[derive(Debug, Default)]
pub struct Sessions {
    /// In order of their first incarnation.
    pub sessions: Vec<Session>,
    of_life: Vec<u32>,
    /// The incarnations of each client: those that a pod uid identifies, and the others.
    of_client: Vec<[Vec<IncarnationId>; 2]>,
}

impl Sessions {
    /// Groups incarnations. `same` has substrings of client names whose incarnations the user declares to be one process.
    pub fn build(history: &History, clocks: &Clocks, same: &[String]) -> Sessions {
        let mut groups: FxHashMap<(u32, String, String, Option<ClockId>), Vec<IncarnationId>> = FxHashMap::default();
        let mut alone = Vec::new();
        for (index, life) in history.incarnations.iter().enumerate() {
            let id = IncarnationId(index as u32);
            let name = history.client_name(id);
            if same.iter().any(|pattern| name.contains(pattern.as_str())) {
                groups.entry((life.client.0, String::new(), String::new(), None)).or_default().push(id);
                continue;
            }
            // Command-line tools and saved files have no session. Incarnations without a place may be replicas.
            match (&life.place, life.told_by) {
                (Some(place), ToldBy::CaptureLabel | ToldBy::PodUid | ToldBy::Address) if !name.is_empty() => {
                    groups.entry((life.client.0, place.clone(), life.program.clone(), None)).or_default().push(id);
                }
                (None, ToldBy::CaptureLabel) if !name.is_empty() => {
                    let guess = (life.client.0, String::new(), life.program.clone(), Some(life.clock));
                    groups.entry(guess).or_default().push(id);
                }
                _ => alone.push(id),
            }
        }
        let mut sessions: Vec<Session> =
            alone.into_iter().map(|id| Session { lives: vec![id], is_guess: false }).collect();
        for ((_, place, _, guess), mut lives) in groups {
            lives.sort_unstable_by_key(|l| (history.incarnations[l.index()].span.0, *l));
            let declared = place.is_empty() && guess.is_none();
            let session = |lives: Vec<IncarnationId>| Session { is_guess: guess.is_some() && lives.len() > 1, lives };
            let mut current: Vec<IncarnationId> = Vec::new();
            for life in lives {
                let follows = current.last().is_none_or(|&last| declared || follows(history, clocks, last, life));
                if !follows {
                    // Incarnations that overlap are replicas, each with a session of its own.
                    sessions.push(session(std::mem::take(&mut current)));
                }
                current.push(life);
            }
            sessions.push(session(current));
        }
        sessions.sort_by_key(|s| s.lives[0]);
        let mut of_life = vec![0; history.incarnations.len()];
        for (index, session) in sessions.iter().enumerate() {
            for life in &session.lives {
                of_life[life.index()] = index as u32;
            }
        }
        let mut of_client = vec![[Vec::new(), Vec::new()]; history.clients.len()];
        for (index, life) in history.incarnations.iter().enumerate() {
            if let Some(lives) = of_client.get_mut(life.client.index()) {
                lives[usize::from(life.told_by != ToldBy::PodUid)].push(IncarnationId(index as u32));
            }
        }
        Sessions { sessions, of_life, of_client }
    }

    /// The index of the session of an incarnation; `u32::MAX` if it has none.
    pub fn index_of(&self, life: IncarnationId) -> u32 {
        self.of_life.get(life.index()).copied().unwrap_or(u32::MAX)
    }

    /// The session of an incarnation.
    pub fn of(&self, life: IncarnationId) -> Option<&Session> {
        self.of_life.get(life.index()).map(|&index| &self.sessions[index as usize])
    }

    /// Whether two incarnations are presumed to be one process although no label names their place.
    pub fn is_guess(&self, a: IncarnationId, b: IncarnationId) -> bool {
        a != b && self.index_of(a) == self.index_of(b) && self.of(a).is_some_and(|session| session.is_guess)
    }

    /// Whether two incarnations are certainly two processes.
    ///
    /// Different users are different processes, and so are different recorders, different pods, and one user's programs at two
    /// addresses. A recording does not show pods and addresses, and an audit log does not show recorders. So for one user, a
    /// recorded incarnation may be one of an audit log, unless requests that both recorded show another pod or address. Two user
    /// agents of one program at one address may be clients inside one process.
    pub fn are_two(&self, history: &History, a: IncarnationId, b: IncarnationId) -> bool {
        let life = |id: IncarnationId| history.incarnations.get(id.index());
        let (Some(x), Some(y)) = (life(a), life(b)) else { return false };
        if a == b || self.index_of(a) == self.index_of(b) {
            return false;
        }
        match (is_recorded(x), is_recorded(y)) {
            (true, true) => true,
            (false, false) => x.client != y.client || are_apart(told(x), told(y)),
            _ if x.client != y.client => ![a, b].into_iter().any(|life| history.client_name(life).is_empty()),
            (recorded, _) => {
                let (of_client, of_server) = if recorded { (x, told(y)) } else { (y, told(x)) };
                let mut served =
                    of_client.served.iter().map(|s| (s.told_by, &*s.label, s.place.as_deref(), &*s.program));
                !of_client.served.is_empty() && served.all(|shown| are_apart(shown, of_server))
            }
        }
    }

    /// The incarnations outside its session that may belong to the same process, without evidence for or against it.
    pub fn kin<'s>(&'s self, history: &'s History, life: IncarnationId) -> impl Iterator<Item = IncarnationId> + 's {
        let known = history.incarnations.get(life.index());
        let of_client = known.and_then(|life| self.of_client.get(life.client.index()));
        // Two pods are never one process.
        let first = usize::from(known.is_some_and(|life| life.told_by == ToldBy::PodUid));
        let of_client = of_client.map_or(&[][..], |lives| &lives[first..]).iter().flatten();
        let stranger =
            move |other: &IncarnationId| self.index_of(*other) != self.index_of(life) || self.is_guess(*other, life);
        of_client.copied().filter(stranger).filter(move |other| !self.are_two(history, life, *other))
    }
}

/// Whether an incarnation is known from a client's record and not from a server's.
fn is_recorded(life: &Incarnation) -> bool {
    matches!(life.told_by, ToldBy::CaptureLabel | ToldBy::File)
}

/// The fields by which servers distinguish incarnations.
type Told<'l> = (ToldBy, &'l str, Option<&'l str>, &'l str);

fn told(life: &Incarnation) -> Told<'_> {
    (life.told_by, &life.label, life.place.as_deref(), &life.program)
}

/// Whether the records of servers show two incarnations of one user to be two processes.
fn are_apart(x: Told<'_>, y: Told<'_>) -> bool {
    match (x, y) {
        ((ToldBy::PodUid, a, _, at_a), (ToldBy::PodUid, b, _, at_b)) => (a, at_a) != (b, at_b),
        ((ToldBy::PodUid, ..), _) | (_, (ToldBy::PodUid, ..)) => false,
        ((_, _, a, _), (_, _, b, _)) => a != b,
    }
}

fn follows(history: &History, clocks: &Clocks, a: IncarnationId, b: IncarnationId) -> bool {
    let (a, b) = (&history.incarnations[a.index()], &history.incarnations[b.index()]);
    clocks.before((a.span.1, a.clock), (b.span.0, b.clock))
}

#[cfg(test)]
mod tests {
    use super::super::{Order, OrderOptions};
    use crate::history::IncarnationId;
    use crate::history::sketch::sketch;

    /// Whether the incarnations of two clients of one user are certainly two, given the evidence of each.
    fn are_two(one: &str, other: &str) -> bool {
        let text = format!(
            "client c user=u {one}\nclient s user=u {other}\nc@A CREATE a => a:u1@5\ns@A CREATE b => b:u2@7\nc@A CREATE d => d:u3@9\n"
        );
        let history = sketch(&text).unwrap_or_else(|error| panic!("{error}"));
        let order = Order::derive(&history, &OrderOptions::default());
        let [a, b] = [0, 1].map(|at| history.operations.incarnation(at));
        assert_ne!(a, b);
        let kin: Vec<IncarnationId> = order.sessions.kin(&history, a).collect();
        let two = order.sessions.are_two(&history, a, b);
        assert_eq!((kin.contains(&b), order.sessions.are_two(&history, b, a)), (!two, two));
        two
    }

    #[test]
    fn what_tells_two_processes_of_one_user_apart() {
        assert!(are_two("recorded=capture", "recorded=capture"));
        assert!(are_two("recorded=audit", "recorded=audit"), "two addresses");
        assert!(are_two("recorded=audit pod=a", "recorded=audit pod=b"));
        assert!(are_two("recorded=both", "recorded=audit"), "the address is known from what both recorded");
    }

    #[test]
    fn what_leaves_it_open() {
        assert!(!are_two("recorded=capture", "recorded=audit"));
        assert!(!are_two("recorded=audit", "recorded=capture"));
        assert!(!are_two("recorded=both address=10.1.1.1 agent=x/1", "recorded=audit address=10.1.1.1 agent=x/2"));
        assert!(!are_two("recorded=audit address=10.1.1.1 agent=x/1", "recorded=audit address=10.1.1.1 agent=x/2"));
        assert!(!are_two("recorded=audit pod=a", "recorded=audit"));
    }
}
