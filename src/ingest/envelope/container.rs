//! Lines of Docker's driver `json-file`: `{"log":"...\n","stream":"stdout","time":"..."}`.

use super::cursor::{Cursor, unquoted};
use super::line::PARTS;
use super::runtime_line::is_part_of_docker;
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
    let is_part = is_docker && log.starts_with('"') && is_part_of_docker(unquoted(log).as_bytes());
    if is_part {
        out.other(log, PARTS);
    } else {
        out.payload(log, &Origin::default());
    }
    true
}
