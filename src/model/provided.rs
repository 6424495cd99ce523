//! The provided models by name, and which of them fits a log. Input: `--model`, or the functions and answers of the log. Output:
//! the model, or a sentence that lists the candidates.

use super::recorded::{Log, Recorded, TypedLog, keyed, whole};
use super::{
    CasRegister, Counter, ListAppend, MultiRegister, Mutex, Pool, Queue, Register, Set, Spec, UnorderedQueue, kv,
};
use crate::history::ValueId;
use crate::history::calls::Value;

/// A provided model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// [`Register`].
    Register,
    /// [`CasRegister`].
    CasRegister,
    /// [`MultiRegister`].
    MultiRegister,
    /// [`kv::Entry`].
    Kv,
    /// [`ListAppend`].
    ListAppend,
    /// [`Mutex`].
    Mutex,
    /// [`Queue`].
    Queue,
    /// [`UnorderedQueue`].
    UnorderedQueue,
    /// [`Set`].
    Set,
    /// [`Counter`].
    Counter,
    /// [`Pool`].
    Pool,
}

/// Receives a log as operations of a model.
pub trait Visitor {
    /// The result.
    type Output;

    /// Looks at the log.
    fn visit<S: Spec>(self, log: TypedLog<S>) -> Self::Output;
}

impl Model {
    /// All models, in the order of the documentation.
    pub const ALL: [Model; 11] = [
        Model::Register,
        Model::CasRegister,
        Model::MultiRegister,
        Model::Kv,
        Model::ListAppend,
        Model::Mutex,
        Model::Queue,
        Model::UnorderedQueue,
        Model::Set,
        Model::Counter,
        Model::Pool,
    ];

    /// The name in `--model` and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Register => "register",
            Model::CasRegister => "cas-register",
            Model::MultiRegister => "multi-register",
            Model::Kv => "kv",
            Model::ListAppend => "list-append",
            Model::Mutex => "mutex",
            Model::Queue => "queue",
            Model::UnorderedQueue => "unordered-queue",
            Model::Set => "set",
            Model::Counter => "counter",
            Model::Pool => "pool",
        }
    }

    /// The model of a name.
    pub fn named(name: &str) -> Option<Model> {
        Model::ALL.into_iter().find(|model| model.name() == name)
    }

    /// All names, for messages.
    pub fn names() -> String {
        Model::ALL.map(Model::name).join(", ")
    }

    /// Its functions.
    pub fn functions(self) -> &'static [&'static str] {
        match self {
            Model::Register => &["read", "write"],
            Model::CasRegister => &["read", "write", "cas"],
            Model::MultiRegister => &["txn", "read", "write"],
            Model::Kv => &["get", "put", "append", "delete"],
            Model::ListAppend => &["txn"],
            Model::Mutex => &["acquire", "release", "lock", "unlock"],
            Model::Queue | Model::UnorderedQueue => &["enqueue", "dequeue", "drain"],
            Model::Set => &["add", "remove", "read"],
            Model::Counter => &["add", "read", "add-and-get"],
            Model::Pool => &["allocate", "release"],
        }
    }

    /// Passes a log to a visitor, as operations of this model.
    pub fn visit<V: Visitor>(self, log: Log<'_>, visitor: V) -> V::Output {
        fn objects<S: Recorded, V: Visitor>(log: Log<'_>, visitor: V) -> V::Output {
            visitor.visit(keyed::<S>(log))
        }
        match self {
            Model::Register => objects::<Register<ValueId>, V>(log, visitor),
            Model::CasRegister => objects::<CasRegister<ValueId>, V>(log, visitor),
            Model::MultiRegister => visitor.visit(whole::<MultiRegister<ValueId, ValueId>>(log)),
            Model::Kv => objects::<kv::Entry, V>(log, visitor),
            Model::ListAppend => visitor.visit(whole::<ListAppend<ValueId, ValueId>>(log)),
            Model::Mutex => objects::<Mutex<ValueId>, V>(log, visitor),
            Model::Queue => objects::<Queue<ValueId>, V>(log, visitor),
            Model::UnorderedQueue => objects::<UnorderedQueue<ValueId>, V>(log, visitor),
            Model::Set => objects::<Set<ValueId>, V>(log, visitor),
            Model::Counter => objects::<Counter, V>(log, visitor),
            Model::Pool => objects::<Pool<ValueId>, V>(log, visitor),
        }
    }

    /// The model of a log: the one that the user or the log names, else the only one that fits its functions and answers.
    ///
    /// # Errors
    /// A sentence for the user, if none or more than one fits.
    pub fn of(log: Log<'_>) -> Result<Model, String> {
        if let Some(name) = &log.calls.model {
            return Model::named(name)
                .ok_or_else(|| format!("expected a model, found `{name}`; models: {}", Model::names()));
        }
        let used: Vec<&str> = log.calls.functions.iter().map(|function| log.names.get(function.name)).collect();
        if used.is_empty() {
            return Err("expected operations, found none".to_owned());
        }
        let fits = |model: &Model| used.iter().all(|name| model.functions().contains(name)) && answers_fit(log, *model);
        let fitting: Vec<Model> = Model::ALL.into_iter().filter(fits).collect();
        match fitting.as_slice() {
            [model] => Ok(*model),
            // Without a compare-and-set both registers are the same.
            [Model::Register, Model::CasRegister] => Ok(Model::Register),
            [] => Err(format!(
                "its functions ({}) and answers fit no provided model; models: {} (choose one with --model)",
                used.join(", "),
                Model::names()
            )),
            several => Err(format!(
                "its functions ({}) and answers fit more than one model: {} (choose one with --model)",
                used.join(", "),
                several.iter().map(|model| model.name()).collect::<Vec<_>>().join(", ")
            )),
        }
    }
}

/// Whether the values of the log fit a model whose functions it uses: models give functions of one name different meanings.
fn answers_fit(log: Log<'_>, model: Model) -> bool {
    let calls = || log.calls.calls.iter().map(|call| log.recording(call));
    let reads = |fits: &dyn Fn(&Value) -> bool| {
        let answers = calls().filter(|call| call.function() == "read").filter_map(|call| call.answer()?);
        answers.map(|answer| log.calls.values.get(answer)).all(fits)
    };
    let mut steps =
        calls().filter(|call| call.function() == "txn").filter_map(|call| call.steps(call.argument()?)).flatten();
    match model {
        Model::Set => reads(&|value| matches!(value, Value::Set(_) | Value::Sequence(_))),
        Model::Counter => reads(&|value| matches!(value, Value::Int(_))),
        Model::ListAppend => steps.any(|(word, ..)| word == "append"),
        Model::MultiRegister if log.function("txn").is_none() => maps(log),
        Model::MultiRegister => {
            let mut transactions = false;
            let plain = steps.all(|(word, ..)| {
                transactions = true;
                matches!(word, "r" | "w" | "read" | "write")
            });
            plain && transactions
        }
        _ => true,
    }
}

/// Whether everything written and read is a map from key to value.
fn maps(log: Log<'_>) -> bool {
    let mut some = false;
    let calls = || log.calls.calls.iter().map(|call| log.recording(call));
    let mut given = calls().filter_map(|call| match call.function() {
        "write" => call.argument(),
        _ => call.answer().flatten(),
    });
    let all = given.all(|value| {
        some = true;
        matches!(log.calls.values.get(value), Value::Map(_))
    });
    all && some
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, load};
    use crate::ingest::{FileId, InputFile, ReadOptions};

    fn history(events: &[(&str, &str, &str)]) -> History {
        let line = |(n, (kind, function, value)): (usize, &(&str, &str, &str))| {
            let process = if *kind == "ok" { n - 1 } else { n };
            format!("{{:process {process} :type :{kind} :f :{function} :value {value}}}\n")
        };
        let text: String = events.iter().enumerate().map(line).collect();
        load(
            vec![InputFile::in_memory(FileId(0), "run.edn", text.into_bytes())],
            &ReadOptions::default(),
            &Default::default(),
            &(),
        )
    }

    fn model(events: &[(&str, &str, &str)]) -> Result<Model, String> {
        let history = history(events);
        Model::of(Log { calls: history.calls(), names: &history.names })
    }

    #[test]
    fn functions_and_answers_tell_the_model_where_only_one_has_them() {
        let (invoke, ok) = ("invoke", "ok");
        for (events, expected) in [
            (vec![(invoke, "read", "nil"), (invoke, "write", "1")], Model::Register),
            (vec![(invoke, "write", "1"), (invoke, "cas", "[1 2]")], Model::CasRegister),
            (vec![(invoke, "get", "nil"), (invoke, "append", "\"x\"")], Model::Kv),
            (vec![(invoke, "txn", "[[:r 1 nil] [:append 1 2]]")], Model::ListAppend),
            (vec![(invoke, "txn", "[[:r 1 nil] [:w 1 2]]")], Model::MultiRegister),
            (vec![(invoke, "acquire", "nil"), (invoke, "release", "nil")], Model::Mutex),
            (vec![(invoke, "add", "1"), (invoke, "read", "nil"), (ok, "read", "#{1}")], Model::Set),
            (vec![(invoke, "add", "1"), (invoke, "read", "nil"), (ok, "read", "1")], Model::Counter),
            (vec![(invoke, "add", "1"), (invoke, "remove", "1")], Model::Set),
            (vec![(invoke, "allocate", "nil"), (invoke, "release", "1")], Model::Pool),
        ] {
            assert_eq!(model(&events), Ok(expected), "{events:?}");
        }
    }

    #[test]
    fn where_functions_do_not_decide_the_models_are_listed() {
        let queue = model(&[("invoke", "enqueue", "1"), ("invoke", "dequeue", "nil")]).unwrap_err();
        assert!(queue.contains("queue, unordered-queue"), "{queue}");
        let maps = model(&[("invoke", "write", "{:x 1}"), ("invoke", "read", "nil"), ("ok", "read", "{:x 1 :y 2}")]);
        assert!(maps.as_ref().is_err_and(|why| why.contains("register, cas-register, multi-register")), "{maps:?}");
        let one = [("invoke", "write", "{:x 1}"), ("invoke", "read", "nil"), ("ok", "read", "7")];
        assert_eq!(model(&one), Ok(Model::Register));
        let foreign = model(&[("invoke", "transfer", "1")]).unwrap_err();
        assert!(
            foreign.contains("transfer") && Model::ALL.iter().all(|model| foreign.contains(model.name())),
            "{foreign}"
        );
        let mut history = history(&[("invoke", "read", "nil")]);
        history.set_model("regsiter");
        let wrong = Model::of(Log { calls: history.calls(), names: &history.names }).unwrap_err();
        assert!(wrong.contains("`regsiter`") && wrong.contains("cas-register"), "{wrong}");
    }

    struct Mismatches;

    impl Visitor for Mismatches {
        type Output = Vec<String>;

        fn visit<S: Spec>(self, log: TypedLog<S>) -> Vec<String> {
            log.mismatches
                .into_iter()
                .map(|(_, mismatch)| format!("{} / {}", mismatch.expected, mismatch.found))
                .collect()
        }
    }

    #[test]
    fn a_call_that_is_none_of_its_model_says_why() {
        let (invoke, ok) = ("invoke", "ok");
        for (model, events, why) in [
            (Model::Register, vec![(invoke, "write", "nil")], "a value to write"),
            (Model::Register, vec![(invoke, "cas", "[1 2]")], "one of read, write / `cas`"),
            (Model::CasRegister, vec![(invoke, "cas", "[1 2 3]")], "cas [from to] / `cas [1 2 3]` was never answered"),
            (Model::CasRegister, vec![(invoke, "cas", "7")], "cas [from to]"),
            (
                Model::CasRegister,
                vec![(invoke, "cas", "[1 2]"), (ok, "cas", "nil")],
                "true, false, or the argument, as the answer to a cas",
            ),
            (
                Model::CasRegister,
                vec![(invoke, "cas", "[1 2]"), (ok, "cas", "0")],
                "true, false, or the argument, as the answer to a cas",
            ),
            (
                Model::CasRegister,
                vec![(invoke, "cas", "[1 2]"), (ok, "cas", "{:n 1}")],
                "true, false, or the argument, as the answer to a cas",
            ),
            (Model::MultiRegister, vec![(invoke, "txn", "[[:r 1 nil] [:append 1 2]]")], "[:w key value]"),
            (
                Model::MultiRegister,
                vec![(invoke, "txn", "[[:r 1 nil]]"), (ok, "txn", "[[:r 2 nil]]")],
                "an answer with the steps of the transaction",
            ),
            (Model::Kv, vec![(invoke, "append", "5")], "a text, since texts are appended to"),
            (Model::ListAppend, vec![(invoke, "txn", "[[:w 1 2]]")], "[:append key value]"),
            (
                Model::ListAppend,
                vec![(invoke, "txn", "[[:r 1 nil]]"), (ok, "txn", "[[:r 1 7]]")],
                "a list for each read",
            ),
            (Model::ListAppend, vec![(invoke, "read", "1")], "one of txn"),
            (Model::Mutex, vec![(invoke, "hold", "nil")], "one of acquire"),
            (Model::Queue, vec![(invoke, "drain", "nil")], "any number"),
            (Model::UnorderedQueue, vec![(invoke, "drain", "nil")], "any number"),
            (
                Model::UnorderedQueue,
                vec![(invoke, "dequeue", "nil"), (invoke, "dequeue", "nil"), (ok, "dequeue", "nil")],
                "other dequeues found the queue empty",
            ),
            (Model::Set, vec![(invoke, "read", "nil"), (ok, "read", "3")], "a set or a list"),
            (
                Model::Set,
                vec![(invoke, "read", "nil"), (ok, "read", "(1 2 1)")],
                "each element once / `read` answered [1 2 1]",
            ),
            (Model::Counter, vec![(invoke, "add", "1.5")], "an integer of 64 bits"),
            (
                Model::Counter,
                vec![(invoke, "read", "nil"), (ok, "read", "99999999999999999999")],
                "an integer of 64 bits",
            ),
            (Model::Pool, vec![(invoke, "release", "nil")], "an item to release"),
        ] {
            let history = history(&events);
            let found = model.visit(Log { calls: history.calls(), names: &history.names }, Mismatches);
            assert!(found.len() == 1 && found[0].contains(why), "{model:?} {events:?}: {found:?}");
        }
    }
}
