//! The provided models as subjects.

use crate::linearizability::subject::{Subject, Word};
use retrograde::model::{
    CasRegister, Counter, Datum, Keyed, Kv, ListAppend, MultiRegister, Mutex, On, Pool, Queue, Register, Set, Spec,
    UnorderedQueue, cas_register, counter, kv, list_append, multi_register, mutex, pool, queue, register, set,
    unordered_queue,
};

/// A specification with its operations and answers.
struct Small<S: Spec> {
    spec: S,
    operations: Vec<S::Operation>,
    answers: Vec<S::Answer>,
}

/// All subjects.
pub fn all() -> Vec<Subject> {
    vec![
        register(None, &[1, 2]).named("register"),
        register(Some("a"), &["a", "b", "c"]).named("register of texts"),
        register(None, &['a', 'b']).named("register without forms"),
        cas_register(None, &[1, 2, 3]).named("cas register"),
        cas_register(Some(1), &[1, 2]).named("cas register of two values"),
        by_key(cas_register(None, &[1, 2]), &['x', 'y']).named("cas registers by key, without forms"),
        by_key(cas_register(None, &[1, 2]), &[1, 2]).named("cas registers by key"),
        kv(false).named("kv"),
        kv(true).named("kv of a lab"),
        multi_register().named("multi register"),
        list_append().named("list append"),
        mutex().named("mutex"),
        queue().named("queue"),
        unordered_queue().named("unordered queue"),
        set().named("set"),
        counter().named("counter"),
        pool().named("pool"),
    ]
}

impl<S> Small<S>
where
    S: Spec + Send + 'static,
    S::State: 'static,
    S::Operation: 'static,
    S::Answer: 'static,
{
    fn named(self, name: &'static str) -> Subject {
        Subject::new(name, self.spec, self.operations, self.answers)
    }
}

fn register<V: Datum>(initial: Option<V>, values: &[V]) -> Small<Register<V>> {
    use register::{Answer, Operation};
    let mut operations: Vec<_> = values.iter().map(|value| Operation::Write(value.clone())).collect();
    operations.extend(vec![Operation::Read; values.len() + 1]);
    let mut answers: Vec<_> = values.iter().map(|value| Answer::Value(Some(value.clone()))).collect();
    answers.extend([Answer::Value(None), Answer::Value(initial.clone()), Answer::Done]);
    Small { spec: Register { initial }, operations, answers }
}

fn cas_register<V: Datum>(initial: Option<V>, values: &[V]) -> Small<CasRegister<V>> {
    use cas_register::{Answer, Operation};
    let mut operations = vec![Operation::Read; values.len() + 1];
    for (at, value) in values.iter().enumerate() {
        operations.push(Operation::Write(value.clone()));
        // Chains, a step back, and a compare-and-set without a change.
        operations.push(Operation::Cas(Some(value.clone()), values[(at + 1) % values.len()].clone()));
    }
    operations.push(Operation::Cas(Some(values[1].clone()), values[0].clone()));
    operations.push(Operation::Cas(Some(values[0].clone()), values[0].clone()));
    operations.push(Operation::Cas(None, values[0].clone()));
    let mut answers: Vec<_> = values.iter().map(|value| Answer::Value(Some(value.clone()))).collect();
    answers.extend([Answer::Value(initial.clone()), Answer::Done, Answer::Swapped(true), Answer::Swapped(false)]);
    Small { spec: CasRegister { initial }, operations, answers }
}

fn by_key<S: Spec, K: Datum>(object: Small<S>, keys: &[K]) -> Small<Keyed<S, K>> {
    let on = |key: &K, operation: &S::Operation| On { key: key.clone(), operation: operation.clone() };
    let operations = object.operations.iter().flat_map(|operation| keys.iter().map(move |key| on(key, operation)));
    Small { operations: operations.collect(), spec: Keyed::new(object.spec), answers: object.answers }
}

fn kv(absent_reads_empty: bool) -> Small<Kv<u32>> {
    use kv::{Answer, Operation};
    let texts = ["", "a", "b", "aa", "ab", "ba", "aab", "aba", "aba", "baa", "abab"];
    let operation = [
        Operation::Get,
        Operation::Get,
        Operation::Get,
        Operation::Put("a".into()),
        Operation::Put(if absent_reads_empty { "".into() } else { "ab".into() }),
        Operation::Append("a".into()),
        Operation::Append("b".into()),
        Operation::Append("".into()),
        Operation::Delete,
    ];
    let mut answers: Vec<_> = texts.map(|text| Answer::Text(Some(text.into()))).into();
    answers.extend([Answer::Text(None), Answer::Done]);
    let entry = Small { spec: kv::Entry { absent_reads_empty }, operations: operation.into(), answers };
    by_key(entry, &[1, 2])
}

fn multi_register() -> Small<MultiRegister<char, u8>> {
    use multi_register::Access::{Read, Write};
    let operations = vec![
        vec![Write('x', 1)],
        vec![Write('y', 1)],
        vec![Write('x', 1), Write('y', 1)],
        vec![Write('x', 2), Write('y', 2)],
        vec![Read('x'), Write('y', 2)],
        vec![Write('x', 2), Read('x'), Read('y')],
        vec![Read('x')],
        vec![Read('y')],
        vec![Read('z')],
        vec![Write('z', 1), Read('y')],
        vec![Read('x'), Read('y')],
        vec![Read('y'), Read('x')],
    ];
    let values = [None, Some(1), Some(2)];
    let mut answers = vec![vec![]];
    answers.extend(values.map(|value| vec![value]));
    answers.extend(values.iter().flat_map(|a| values.map(|b| vec![*a, b])));
    Small { spec: MultiRegister::default(), operations, answers }
}

fn list_append() -> Small<ListAppend<char, u8>> {
    use list_append::Access::{Append, Read};
    let operations = vec![
        vec![Append('x', 1)],
        vec![Append('x', 2)],
        vec![Append('y', 1)],
        vec![Append('x', 3), Append('y', 2)],
        vec![Read('x'), Append('y', 2)],
        vec![Append('x', 2), Read('x')],
        vec![Read('x')],
        vec![Read('x')],
        vec![Read('y')],
        vec![Read('x'), Read('y')],
    ];
    let lists: Vec<Vec<u8>> = [&[][..], &[1], &[2], &[1, 2], &[2, 1], &[1, 1], &[2, 2], &[1, 2, 3], &[3, 1], &[2, 3]]
        .map(<[u8]>::to_vec)
        .into();
    let mut answers: Vec<Vec<Vec<u8>>> = vec![vec![]];
    answers.extend(lists.iter().map(|list| vec![list.clone()]));
    answers.extend(lists.iter().flat_map(|a| lists.iter().map(|b| vec![a.clone(), b.clone()])));
    Small { spec: ListAppend::default(), operations, answers }
}

/// A lock with two owners, and calls without an owner.
fn mutex() -> Small<Mutex<u8>> {
    use mutex::Operation::{Acquire, Release};
    let owners = [None, Some(1), Some(1), Some(2), Some(2)];
    let operations = owners.into_iter().flat_map(|owner| [Acquire(owner), Release(owner)]).collect();
    Small { spec: Mutex::default(), operations, answers: vec![()] }
}

fn queue() -> Small<Queue<u8>> {
    use queue::{Answer, Operation};
    let mut operations: Vec<_> = [1, 2, 3, 3].map(Operation::Enqueue).into();
    operations.extend(vec![Operation::Dequeue; 4]);
    operations.extend([(0, false), (1, true)].map(|(place, last)| Operation::Drain { drain: 7, place, last }));
    let answers = vec![
        Answer::Done,
        Answer::Element(None),
        Answer::Element(Some(1)),
        Answer::Element(Some(2)),
        Answer::Element(Some(3)),
    ];
    Small { spec: Queue::default(), operations, answers }
}

fn unordered_queue() -> Small<UnorderedQueue<u8>> {
    use unordered_queue::Operation::{Dequeue, Enqueue, FindEmpty};
    let operations = vec![Enqueue(1), Enqueue(2), Enqueue(2), Dequeue(1), Dequeue(2), Dequeue(2), FindEmpty];
    Small { spec: UnorderedQueue::default(), operations, answers: vec![()] }
}

fn set() -> Small<Set<u8>> {
    use set::{Answer, Operation};
    let operations = vec![
        Operation::Add(1),
        Operation::Add(2),
        Operation::Add(3),
        Operation::Remove(1),
        Operation::Remove(2),
        Operation::Read,
        Operation::Read,
        Operation::Read,
    ];
    let mut answers: Vec<_> = [&[][..], &[1], &[2], &[3], &[1, 2], &[1, 3], &[2, 3], &[1, 2, 3]]
        .map(|elements| Answer::Elements(elements.to_vec()))
        .into();
    answers.push(Answer::Done);
    Small { spec: Set::default(), operations, answers }
}

fn counter() -> Small<Counter> {
    use counter::{Answer, Operation};
    let operations = vec![
        Operation::Add(1),
        Operation::Add(2),
        Operation::Add(-1),
        Operation::Add(0),
        Operation::Read,
        Operation::Read,
        Operation::AddAndGet(1),
        Operation::AddAndGet(-2),
    ];
    let mut answers: Vec<_> = (-4..=8).map(Answer::Value).collect();
    answers.push(Answer::Done);
    Small { spec: Counter, operations, answers }
}

fn pool() -> Small<Pool<u8>> {
    use pool::Operation::{Allocate, AllocateUnseen, Release};
    let operations = vec![Allocate(1), Allocate(1), Allocate(2), AllocateUnseen, Release(1), Release(1), Release(2)];
    Small { spec: Pool::default(), operations, answers: vec![()] }
}

/// A pool, and the meanings of an allocation without an answer.
pub struct UnseenAllocations {
    /// The pool.
    pub drawn: Subject,
    /// The same pool with more operations.
    pub meant: Subject,
}

impl UnseenAllocations {
    pub fn new() -> Self {
        let mut meant = pool();
        meant.operations.extend((10..30).map(pool::Operation::Allocate));
        UnseenAllocations { drawn: pool().named("pool"), meant: meant.named("pool") }
    }

    /// An item that other calls name, or one that no other call has.
    pub fn meanings(&self, operation: Word, call: usize) -> Vec<Word> {
        let words = &self.meant.operations;
        let is_unseen = format!("{operation:?}") == "AllocateUnseen";
        if is_unseen { vec![words[0], words[2], words[self.drawn.operations.len() + call]] } else { vec![operation] }
    }
}
