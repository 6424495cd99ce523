//! Lines of Docker's driver `json-file`: `{"log":"...\n","stream":"stdout","time":"..."}`.

use super::cursor::Cursor;
use super::line::PARTS;
use super::{Envelope, Opening, Origin};

/// One line of a container.
pub static DOCKER: Envelope = Envelope { name: "docker", lacks: "", keys: &["log"], read: line };

fn line<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut log, mut is_docker) = ("", false);
    cursor.object(|cursor, key| match key {
        "log" => log = cursor.value(),
        "stream" | "time" => is_docker = true,
        _ => {}
    });
    if log.is_empty() {
        return false;
    }
    // Docker cuts lines of more than 16 KiB; only the last part has the line end. Log agents remove line ends.
    let is_part = is_docker && log.starts_with('"') && log.len() >= 16 << 10 && !log.ends_with("\\n\"");
    if is_part {
        out.other(log, PARTS);
    } else {
        out.payload(log, &Origin::default());
    }
    true
}
