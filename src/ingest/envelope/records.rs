//! Lists of records, as event hubs and streams hand them over. Each record is an envelope or an event.

use super::cursor::Cursor;
use super::{Envelope, Opening, Origin};

/// `{"records":[...]}`: a message of an Event Hub, or a request of Firehose to an endpoint.
pub static LIST: Envelope = Envelope { name: "records", lacks: "", keys: &["records"], read: list };

/// `{"Records":[{"kinesis":{"data":...}}]}`: the event of a Lambda function that reads a Kinesis stream.
pub static STREAM_RECORDS: Envelope = Envelope { name: "kinesis", lacks: "", keys: &["Records"], read: stream };

/// One record of Firehose.
pub static DATA: Envelope = Envelope { name: "firehose", lacks: "", keys: &["data"], read: data };

fn list<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut found, mut hint) = (false, None);
    cursor.object(|cursor, key| {
        if key == "records" {
            cursor.list(|cursor| {
                found = true;
                out.element(cursor.value(), &mut hint);
            });
        }
    });
    found
}

fn stream<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "Records" {
            cursor.list(|cursor| {
                cursor.object(|cursor, key| {
                    if key == "kinesis" {
                        cursor.object(|cursor, key| found |= key == "data" && payload(cursor, out));
                    }
                });
            });
        }
    });
    found
}

fn data<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| found |= key == "data" && payload(cursor, out));
    found
}

/// Hands over a text; an object under the same name is something else.
fn payload<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let value = cursor.value();
    let is_text = value.starts_with('"');
    if is_text {
        out.payload(value, &Origin::default());
    }
    is_text
}
