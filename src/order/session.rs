//! Sessions: the incarnations of one client at one place, so that what one of them saw binds the next. Input: [`History`] and
//! clock bounds. Output: [`Sessions`]. Two incarnations join only if the first certainly ended before the second began;
//! incarnations that overlap are replicas.

use super::clock::Clocks;
use crate::history::{ClockId, History, IdentifiedBy, Incarnation, IncarnationId};
use rustc_hash::FxHashMap;

/// Incarnations of one user, place and program that follow each other without overlap.
#[derive(Clone, Debug)]
pub struct Session {
    /// In order of time.
    pub incarnations: Vec<IncarnationId>,
    /// Whether only user, program, recorder and order of time join them, because no label names their place.
    pub is_guess: bool,
}

/// The sessions of a history.
#[derive(Debug, Default)]
pub struct Sessions {
    /// In order of their first incarnation.
    pub sessions: Vec<Session>,
    of_incarnation: Vec<u32>,
    /// The incarnations of each client: those that a pod uid identifies, and the others.
    of_client: Vec<[Vec<IncarnationId>; 2]>,
}

impl Sessions {
    /// Groups incarnations. `same` has substrings of client names whose incarnations the user declares to be one process.
    pub fn build(history: &History, clocks: &Clocks, same: &[String]) -> Sessions {
        let mut groups: FxHashMap<(u32, String, String, Option<ClockId>), Vec<IncarnationId>> = FxHashMap::default();
        let mut unjoined = Vec::new();
        for (index, incarnation) in history.incarnations.iter().enumerate() {
            let id = IncarnationId(index as u32);
            let name = history.client_name(id);
            if same.iter().any(|pattern| name.contains(pattern.as_str())) {
                groups.entry((incarnation.client.0, String::new(), String::new(), None)).or_default().push(id);
                continue;
            }
            // Command-line tools and saved files have no session. Incarnations without a place may be replicas.
            match (&incarnation.place, incarnation.identified_by) {
                (Some(place), IdentifiedBy::CaptureLabel | IdentifiedBy::PodUid | IdentifiedBy::Address)
                    if !name.is_empty() =>
                {
                    groups
                        .entry((incarnation.client.0, place.clone(), incarnation.program.clone(), None))
                        .or_default()
                        .push(id);
                }
                (None, IdentifiedBy::CaptureLabel) if !name.is_empty() => {
                    let guess =
                        (incarnation.client.0, String::new(), incarnation.program.clone(), Some(incarnation.clock));
                    groups.entry(guess).or_default().push(id);
                }
                _ => unjoined.push(id),
            }
        }
        let mut sessions: Vec<Session> =
            unjoined.into_iter().map(|id| Session { incarnations: vec![id], is_guess: false }).collect();
        for ((_, place, _, guess), mut incarnations) in groups {
            incarnations.sort_unstable_by_key(|l| (history.incarnations[l.index()].span.0, *l));
            let declared = place.is_empty() && guess.is_none();
            let session = |incarnations: Vec<IncarnationId>| Session {
                is_guess: guess.is_some() && incarnations.len() > 1,
                incarnations,
            };
            let mut current: Vec<IncarnationId> = Vec::new();
            for incarnation in incarnations {
                let follows =
                    current.last().is_none_or(|&last| declared || follows(history, clocks, last, incarnation));
                if !follows {
                    // Incarnations that overlap are replicas, each with a session of its own.
                    sessions.push(session(std::mem::take(&mut current)));
                }
                current.push(incarnation);
            }
            sessions.push(session(current));
        }
        sessions.sort_by_key(|s| s.incarnations[0]);
        let mut of_incarnation = vec![0; history.incarnations.len()];
        for (index, session) in sessions.iter().enumerate() {
            for incarnation in &session.incarnations {
                of_incarnation[incarnation.index()] = index as u32;
            }
        }
        let mut of_client = vec![[Vec::new(), Vec::new()]; history.clients.len()];
        for (index, incarnation) in history.incarnations.iter().enumerate() {
            if let Some(incarnations) = of_client.get_mut(incarnation.client.index()) {
                incarnations[usize::from(incarnation.identified_by != IdentifiedBy::PodUid)]
                    .push(IncarnationId(index as u32));
            }
        }
        Sessions { sessions, of_incarnation, of_client }
    }

    /// The index of the session of an incarnation; `u32::MAX` if it has none.
    pub fn index_of(&self, incarnation: IncarnationId) -> u32 {
        self.of_incarnation.get(incarnation.index()).copied().unwrap_or(u32::MAX)
    }

    /// The session of an incarnation.
    pub fn of(&self, incarnation: IncarnationId) -> Option<&Session> {
        self.of_incarnation.get(incarnation.index()).map(|&index| &self.sessions[index as usize])
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
        let incarnation = |id: IncarnationId| history.incarnations.get(id.index());
        let (Some(x), Some(y)) = (incarnation(a), incarnation(b)) else { return false };
        if a == b || self.index_of(a) == self.index_of(b) {
            return false;
        }
        match (is_recorded(x), is_recorded(y)) {
            (true, true) => true,
            (false, false) => x.client != y.client || are_apart(server_identity(x), server_identity(y)),
            _ if x.client != y.client => {
                ![a, b].into_iter().any(|incarnation| history.client_name(incarnation).is_empty())
            }
            (recorded, _) => {
                let (of_client, of_server) = if recorded { (x, server_identity(y)) } else { (y, server_identity(x)) };
                let mut served =
                    of_client.served.iter().map(|s| (s.identified_by, &*s.label, s.place.as_deref(), &*s.program));
                !of_client.served.is_empty() && served.all(|shown| are_apart(shown, of_server))
            }
        }
    }

    /// The incarnations outside its session that may belong to the same process, without evidence for or against it.
    pub fn possible_identities<'s>(
        &'s self,
        history: &'s History,
        incarnation: IncarnationId,
    ) -> impl Iterator<Item = IncarnationId> + 's {
        let known = history.incarnations.get(incarnation.index());
        let of_client = known.and_then(|incarnation| self.of_client.get(incarnation.client.index()));
        // Two pods are never one process.
        let first = usize::from(known.is_some_and(|incarnation| incarnation.identified_by == IdentifiedBy::PodUid));
        let of_client = of_client.map_or(&[][..], |incarnations| &incarnations[first..]).iter().flatten();
        let stranger = move |other: &IncarnationId| {
            self.index_of(*other) != self.index_of(incarnation) || self.is_guess(*other, incarnation)
        };
        of_client.copied().filter(stranger).filter(move |other| !self.are_two(history, incarnation, *other))
    }
}

/// Whether an incarnation is known from a client's record and not from a server's.
fn is_recorded(incarnation: &Incarnation) -> bool {
    matches!(incarnation.identified_by, IdentifiedBy::CaptureLabel | IdentifiedBy::File)
}

/// The fields by which servers distinguish incarnations.
type ServerIdentity<'l> = (IdentifiedBy, &'l str, Option<&'l str>, &'l str);

fn server_identity(incarnation: &Incarnation) -> ServerIdentity<'_> {
    (incarnation.identified_by, &incarnation.label, incarnation.place.as_deref(), &incarnation.program)
}

/// Whether the records of servers show two incarnations of one user to be two processes.
fn are_apart(x: ServerIdentity<'_>, y: ServerIdentity<'_>) -> bool {
    match (x, y) {
        ((IdentifiedBy::PodUid, a, _, at_a), (IdentifiedBy::PodUid, b, _, at_b)) => (a, at_a) != (b, at_b),
        ((IdentifiedBy::PodUid, ..), _) | (_, (IdentifiedBy::PodUid, ..)) => false,
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
        let name = |key: crate::history::KeyId| history.name(history.keys[key.index()].name);
        let maker = |of: &str| history.operations.but_shadows().find(|(_, o)| name(o.key) == of);
        let [a, b] = ["a", "b"].map(|of| maker(of).expect("a creation").1.incarnation);
        assert_ne!(a, b);
        let possible_identities: Vec<IncarnationId> = order.sessions.possible_identities(&history, a).collect();
        let two = order.sessions.are_two(&history, a, b);
        assert_eq!((possible_identities.contains(&b), order.sessions.are_two(&history, b, a)), (!two, two));
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
