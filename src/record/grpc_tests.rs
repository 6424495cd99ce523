//! EtcdLayer over HTTP bodies and a channel without a network.

use super::etcd::EtcdRecorder;
use super::grpc::EtcdLayer;
use super::specimen::{Boxed, Pieces, read, run};
use crate::check::Verdict;
use crate::history::etcd::{Outcome, Recording, Request as Asked};
use crate::ingest::etcd::fixture::Message;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tower_layer::Layer;
use tower_service::Service;

fn framed(message: &Message) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.0.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&message.0);
    bytes
}

fn trailers(status: &str, message: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    trailers.insert("grpc-message", message.parse().unwrap());
    trailers
}

/// A body in pieces of `size` bytes, with trailers.
fn pieces(messages: &[Message], size: usize, end: Option<HeaderMap>) -> Boxed {
    let bytes: Vec<u8> = messages.iter().flat_map(framed).collect();
    let mut pieces: VecDeque<_> =
        bytes.chunks(size).map(|piece| Some(Frame::data(Bytes::copy_from_slice(piece)))).collect();
    pieces.push_back(end.map(Frame::trailers));
    Boxed(Box::pin(Pieces(pieces)))
}

/// etcd's reaction to one request.
enum Answer {
    Whole(Vec<Message>, usize),
    Cut(Vec<Message>),
    Refused(&'static str, &'static str),
    InHeaders(&'static str, &'static str),
    NoConnection,
    Never,
}

/// A channel with prepared answers. It keeps the requests.
#[derive(Clone)]
struct Channel {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Service<Request<Boxed>> for Channel {
    type Response = Response<Boxed>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Boxed>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Boxed>) -> Self::Future {
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer");
        let asked = Arc::clone(&self.asked);
        Box::pin(async move {
            if matches!(answer, Answer::NoConnection) {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            }
            let (bytes, _) = read(request.into_body()).await;
            asked.lock().unwrap().push(bytes);
            let (head, body) = match answer {
                Answer::Whole(messages, size) => (HeaderMap::new(), pieces(&messages, size, Some(trailers("0", "")))),
                Answer::Cut(messages) => (HeaderMap::new(), pieces(&messages, 1000, None)),
                Answer::Refused(status, text) => (HeaderMap::new(), pieces(&[], 1000, Some(trailers(status, text)))),
                Answer::InHeaders(status, text) => (trailers(status, text), Boxed(Box::pin(Pieces(VecDeque::new())))),
                Answer::NoConnection | Answer::Never => std::future::pending::<(HeaderMap, Boxed)>().await,
            };
            let mut response = Response::new(body);
            *response.headers_mut() = head;
            Ok(response)
        })
    }
}

/// Sends a request and reads the answer.
fn ask(recorder: &EtcdRecorder, path: &str, message: &[Message], answer: Answer) -> Option<Vec<u8>> {
    let channel = Channel { answers: Arc::new(Mutex::new([answer].into())), asked: Arc::default() };
    let mut service = EtcdLayer::new(recorder.client("a"), Boxed::tapped).layer(channel.clone());
    let request =
        Request::builder().uri(format!("http://etcd{path}")).body(pieces(message, 3, Some(HeaderMap::new()))).unwrap();
    let sent: Vec<u8> = message.iter().flat_map(framed).collect();
    let mut future = pin!(service.call(request));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => None,
        Poll::Ready(Err(_)) => None,
        Poll::Ready(Ok(response)) => {
            assert_eq!(*channel.asked.lock().unwrap(), [sent], "the request must pass unchanged");
            Some(run(read(response.into_body())).0)
        }
    }
}

fn message() -> Message {
    Message::default()
}

fn header(revision: u64) -> Message {
    message().number(2, 7).number(3, revision)
}

fn put(key: &[u8], value: &[u8]) -> Message {
    message().bytes(1, key).bytes(2, value)
}

fn pair(key: &[u8], value: &[u8], created: u64, revision: u64, version: u64) -> Message {
    message().bytes(1, key).number(2, created).number(3, revision).number(4, version).bytes(5, value)
}

fn event(pair: Message) -> Message {
    message().message(2, pair)
}

const PUT: &str = "/etcdserverpb.KV/Put";
const RANGE: &str = "/etcdserverpb.KV/Range";
const RANGE_STREAM: &str = "/etcdserverpb.KV/RangeStream";
const WATCH: &str = "/etcdserverpb.Watch/Watch";

fn with<T>(recorder: &EtcdRecorder, look: impl FnOnce(&Recording) -> T) -> T {
    let history = recorder.history();
    let recording = &history.cluster().expect("a report").recording;
    assert!(recording.problems.is_empty() && history.problems.is_empty(), "{:?}", history.problems);
    look(recording)
}

fn verdict(recorder: &EtcdRecorder) -> (Verdict, Vec<&'static str>) {
    let judgement = crate::judge(&recorder.history(), &crate::Options::default());
    (judgement.verdict.clone(), judgement.findings.iter().map(|finding| finding.rule).collect())
}

#[test]
fn answers_are_recorded_and_pass_unchanged_wherever_they_are_cut() {
    for size in 1..40 {
        let recorder = EtcdRecorder::new();
        let answer = message().message(1, header(2));
        let passed = ask(&recorder, PUT, &[put(b"k", b"7")], Answer::Whole(vec![answer.clone()], size));
        assert_eq!(passed, Some(framed(&answer)));
        let found = message().message(1, header(2)).message(2, pair(b"k", b"7", 2, 2, 1)).number(4, 1);
        ask(&recorder, RANGE, &[message().bytes(1, b"k")], Answer::Whole(vec![found], size));
        assert_eq!(verdict(&recorder), (Verdict::Holds, vec![]));
        let old = message().message(1, header(2)).number(4, 0);
        ask(&recorder, RANGE, &[message().bytes(1, b"k")], Answer::Whole(vec![old], size));
        assert_eq!(verdict(&recorder), (Verdict::Violated, vec!["linearizability"]));
    }
}

#[test]
fn a_read_in_parts_is_recorded_as_the_whole_that_it_equals() {
    let request = [message().bytes(1, b"k").bytes(2, b"l").number(3, 3)];
    let (first, second) = (pair(b"k", b"7", 2, 2, 1), pair(b"k1", b"8", 3, 3, 1));
    let whole = message().message(1, header(3)).message(2, first.clone()).message(2, second.clone()).number(4, 2);
    let parts =
        [message().message(2, first), message().message(2, second), message().message(1, header(3)).number(4, 2)]
            .map(|part| message().message(1, part));
    let recorded = |path, answer| {
        let recorder = EtcdRecorder::new();
        for (revision, (key, value)) in (2..).zip([(b"k".as_slice(), b"7"), (b"k1", b"8")]) {
            let done = Answer::Whole(vec![message().message(1, header(revision))], 1000);
            ask(&recorder, PUT, &[put(key, value)], done);
        }
        ask(&recorder, path, &request, answer);
        let last = with(&recorder, |recording| {
            let last = recording.operations.last().unwrap();
            (last.request, last.outcome, last.revision, format!("{:?}", recording.pairs))
        });
        (last, verdict(&recorder))
    };
    let expected = recorded(RANGE, Answer::Whole(vec![whole], 1000));
    assert_eq!((&expected.0.1, &expected.1), (&Outcome::Answered, &(Verdict::Holds, vec![])));
    for size in [1, 7, 1000] {
        assert_eq!(recorded(RANGE_STREAM, Answer::Whole(parts.to_vec(), size)), expected);
    }
    // A missing part is a wrong answer.
    let without = vec![parts[0].clone(), parts[2].clone()];
    assert_eq!(recorded(RANGE_STREAM, Answer::Whole(without, 1000)).1.0, Verdict::Violated);
    // A read that breaks off, or has a part that cannot be read, has no answer.
    let unread = vec![parts[0].clone(), message().number(1, 1), parts[1].clone()];
    for answer in [Answer::Cut(parts[..2].to_vec()), Answer::Refused("14", "no leader"), Answer::Whole(unread, 1000)] {
        let (last, (verdict, _)) = recorded(RANGE_STREAM, answer);
        assert_eq!((last.0, last.1, verdict), (expected.0.0, Outcome::Unknown, Verdict::Holds));
    }
}

#[test]
fn an_outcome_is_known_only_where_etcd_or_the_connection_said_so() {
    let recorder = EtcdRecorder::new();
    let answered = message().message(1, header(2));
    for (answer, expected) in [
        (Answer::Whole(vec![answered.clone()], 1000), Outcome::Answered),
        (Answer::Cut(vec![answered]), Outcome::Unknown),
        (Answer::Cut(vec![]), Outcome::Unknown),
        (Answer::Never, Outcome::Unknown),
        (Answer::Refused("14", "etcdserver: request timed out"), Outcome::Unknown),
        (Answer::Refused("5", "etcdserver: requested lease not found"), Outcome::Refused),
        (Answer::InHeaders("8", "etcdserver: mvcc: database space exceeded"), Outcome::Refused),
        (Answer::InHeaders("14", "etcdserver%3A no leader"), Outcome::Unknown),
        (Answer::Whole(vec![], 1000), Outcome::Unknown),
    ] {
        ask(&recorder, PUT, &[put(b"k", b"7")], answer);
        with(&recorder, |recording| assert_eq!(recording.operations.last().unwrap().outcome, expected));
    }
    with(&recorder, |recording| {
        assert_eq!(recording.operations.len(), 9);
        assert!(recording.operations.iter().any(|o| recording.texts.get(o.error).contains("no leader")));
    });
    // Without a connection nothing of the request was sent, so nothing is recorded.
    ask(&recorder, PUT, &[put(b"k", b"7")], Answer::NoConnection);
    with(&recorder, |recording| assert_eq!(recording.operations.len(), 9));
    let call = recorder.client("a").call(PUT, &put(b"k", b"8").0);
    call.never_sent("tcp connect error");
    with(&recorder, |recording| assert_eq!(recording.operations.last().unwrap().outcome, Outcome::Refused));
}

#[test]
fn what_no_report_tells_is_something_else_and_never_a_wrong_request() {
    let recorder = EtcdRecorder::new();
    let newest = message().bytes(1, b"k").bytes(2, b"l").number(3, 1).number(5, 2);
    let keeps = put(b"k", b"").number(5, 1);
    let inner = message().message(2, message().message(4, message().message(2, message().message(2, put(b"k", b"1")))));
    for (path, message) in [
        (RANGE, newest),
        (PUT, keeps),
        ("/etcdserverpb.KV/Txn", inner),
        ("/v3lockpb.Lock/Lock", message().bytes(1, b"l")),
    ] {
        ask(&recorder, path, &[message], Answer::Whole(vec![self::message().message(1, header(2))], 1000));
    }
    with(&recorder, |recording| {
        assert_eq!(recording.operations.len(), 4);
        assert!(recording.operations.iter().all(|operation| operation.request == Asked::Other));
    });
    ask(&recorder, "/etcdserverpb.Cluster/MemberList", &[message()], Answer::Whole(vec![message()], 9));
    with(&recorder, |recording| assert_eq!(recording.operations.len(), 4));
}

#[test]
fn watches_of_one_stream_are_told_apart_and_fragments_put_together() {
    let recorder = EtcdRecorder::new();
    let create =
        |key: &[u8], end: &[u8]| message().message(1, message().bytes(1, key).bytes(2, end).number(3, 1).number(6, 1));
    let response = |watch: u64, revision: u64| message().message(1, header(revision)).number(2, watch);
    let answer = Answer::Whole(
        vec![
            response(4, 1).number(3, 1),
            response(9, 1).number(3, 1),
            response(9, 2).message(11, event(pair(b"b", b"1", 2, 2, 1))),
            response(4, 2).number(7, 1).message(11, event(pair(b"a", b"1", 2, 2, 1))),
            response(4, 2).message(11, event(pair(b"b", b"1", 2, 2, 1))),
            response(u64::MAX, 3),
            response(4, 9).number(4, 1).number(5, 8),
        ],
        7,
    );
    ask(&recorder, WATCH, &[create(b"\0", b"\0"), create(b"b", b"")], answer);
    with(&recorder, |recording| {
        let [all, one] = &recording.watches[..] else { panic!("{:?}", recording.watches) };
        assert!(all.prefix && all.previous && !one.prefix);
        assert_eq!((recording.texts.get(all.key), recording.texts.get(one.key)), ("", "b"));
        let of = |watch: &crate::history::etcd::Watch| watch.responses.of(&recording.responses).to_vec();
        let (all, one) = (of(all), of(one));
        assert_eq!(
            all.iter().map(|r| (r.events.len, r.progress)).collect::<Vec<_>>(),
            [(2, false), (0, true), (0, false)]
        );
        assert!(recording.texts.get(all[2].error).contains("compacted"));
        assert_eq!(one.iter().map(|r| (r.events.len, r.progress)).collect::<Vec<_>>(), [(1, false), (0, true)]);
        assert!(recording.events.iter().all(|event| event.create));
    });
}

#[test]
fn keys_that_are_no_text_keep_their_order_and_stay_apart() {
    let keys: [&[u8]; 7] = [b"a", b"a\x7f", b"a\x80", b"a\xc3", b"a\xc3\xa9", b"a\xff", b"b"];
    let recorder = EtcdRecorder::new();
    for (revision, key) in (2..).zip(keys) {
        ask(&recorder, PUT, &[put(key, b"1")], Answer::Whole(vec![message().message(1, header(revision))], 1000));
    }
    let mut all = message().message(1, header(8)).number(4, 5);
    for (revision, key) in (2..).zip(keys).skip(1).take(5) {
        all = all.message(2, pair(key, b"1", revision, revision, 1));
    }
    ask(&recorder, RANGE, &[message().bytes(1, b"a\x01").bytes(2, b"b")], Answer::Whole(vec![all], 1000));
    assert_eq!(verdict(&recorder), (Verdict::Holds, vec![]));
}

#[test]
fn what_is_not_the_wire_format_leaves_less_known_and_never_panics() {
    for length in 0..40 {
        let recorder = EtcdRecorder::new();
        let noise = Message((0..length).map(|n| (n * 37 + 11) as u8).collect());
        for path in [
            PUT,
            RANGE,
            WATCH,
            "/etcdserverpb.KV/Txn",
            "/etcdserverpb.KV/DeleteRange",
            "/etcdserverpb.Lease/LeaseGrant",
        ] {
            ask(&recorder, path, std::slice::from_ref(&noise), Answer::Whole(vec![noise.clone()], 5));
        }
        assert_ne!(verdict(&recorder).0, Verdict::Violated, "{length}");
    }
}

#[test]
fn conditions_are_held_against_the_state_whatever_they_compare() {
    // Relations: 0 equal, 1 greater, 2 less, 3 not equal. Targets: 0 version, 1 create, 2 mod, 3 value. Fields: 4 to 7.
    for (target, relation, compared, holds) in [
        (0, 0, message().number(4, 2), true),
        (0, 1, message().number(4, 1), true),
        (0, 2, message().number(4, 2), false),
        (2, 0, message().number(6, 3), true),
        (2, 3, message().number(6, 3), false),
        (3, 0, message().bytes(7, b"9"), true),
        (3, 3, message().bytes(7, b"9"), false),
        (3, 0, message().bytes(7, b"8"), false),
    ] {
        for answered in [true, false] {
            let recorder = EtcdRecorder::new();
            for (revision, value) in [(2, b"8"), (3, b"9")] {
                let done = Answer::Whole(vec![message().message(1, header(revision))], 1000);
                ask(&recorder, PUT, &[put(b"k", value)], done);
            }
            let mut compare = message().number(1, relation).number(2, target).bytes(3, b"k");
            compare.0.extend_from_slice(&compared.0);
            let txn = message().message(1, compare).message(2, message().message(1, message().bytes(1, b"other")));
            let found = message().message(1, message().message(1, header(3)));
            let mut answer = message().message(1, header(3));
            if answered {
                answer = answer.number(2, 1).message(3, found);
            }
            ask(&recorder, "/etcdserverpb.KV/Txn", &[txn], Answer::Whole(vec![answer], 1000));
            let expected =
                if answered == holds { (Verdict::Holds, vec![]) } else { (Verdict::Violated, vec!["linearizability"]) };
            assert_eq!(verdict(&recorder), expected, "target {target}, relation {relation}, answered {answered}");
        }
    }
}

#[test]
fn a_member_that_answers_for_itself_may_be_behind_but_not_wrong() {
    for (value, expected) in [(b"1", Verdict::Holds), (b"3", Verdict::Violated)] {
        let recorder = EtcdRecorder::new();
        for (revision, value) in [(2, b"1"), (3, b"2")] {
            let done = Answer::Whole(vec![message().message(1, header(revision))], 1000);
            ask(&recorder, PUT, &[put(b"k", value)], done);
        }
        let found = message().message(1, header(2)).message(2, pair(b"k", value, 2, 2, 1)).number(4, 1);
        let local = message().bytes(1, b"k").number(7, 1);
        ask(&recorder, RANGE, &[local], Answer::Whole(vec![found.clone()], 1000));
        assert_eq!(verdict(&recorder).0, expected);
        let count = message().message(1, header(3)).number(4, 1);
        ask(
            &recorder,
            RANGE,
            &[message().bytes(1, b"a").bytes(2, b"z").number(9, 1)],
            Answer::Whole(vec![count], 1000),
        );
        assert_eq!(verdict(&recorder).0, expected);
        ask(&recorder, RANGE, &[message().bytes(1, b"k")], Answer::Whole(vec![found], 1000));
        assert_eq!(verdict(&recorder).0, Verdict::Violated);
        assert!(verdict(&recorder).1.contains(&"stale-consistent-read"));
    }
}
