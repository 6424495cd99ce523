//! Rows of CSV, as the console of Logs Insights exports the results of a query. Each row is a line, since an audit event
//! has no line end. The columns are told by what they hold, so a part of a file needs no header.

use super::quoted::{self, unescaped};
use super::{Cursor, Envelope, Origin, cloudwatch};
use std::borrow::Cow;

/// One row. It is in no table, since it is no JSON.
pub static ROW: Envelope =
    Envelope { name: "csv", lacks: cloudwatch::LACKS, keys: &[], read: |_: &mut Cursor<'_>, _| false };

/// Longest text in front of an event.
const LONGEST_PREFIX: usize = 4096;

/// An event in a row.
pub struct Row<'l> {
    /// Offset of the field with its quote.
    pub at: usize,
    /// The event.
    pub event: Cow<'l, str>,
    /// The writer that other fields name.
    pub origin: Origin<'l>,
}

/// The event of a row; `None` if no field holds one, or the field is cut off.
pub fn row(line: &str) -> Option<Row<'_>> {
    let begin = &line.as_bytes()[..line.len().min(LONGEST_PREFIX)];
    let at = memchr::memmem::find(begin, b"\"{\"\"")?;
    let (event, length) = quoted::field(&line[at..])?;
    let mut origin = Origin::default();
    let others = [&line[..at], &line[at + length..]].into_iter().flat_map(|part| part.split(','));
    for field in others.map(|field| field.trim().trim_matches('"')) {
        if field.starts_with("kube-apiserver-audit-") {
            origin.server = unescaped(field);
        } else if let Some((account, group)) = field.split_once(':').filter(|(_, group)| group.starts_with("/aws/eks/"))
        {
            origin.cluster = cloudwatch::cluster(account, group);
        }
    }
    Some(Row { at, event, origin })
}

/// Whether a line is the header of an export of Logs Insights.
pub fn is_header(line: &str) -> bool {
    let line = line.trim_start_matches('"');
    line.starts_with('@') && line.contains("@message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_its_event_and_its_writer() {
        let line = r#"2026-03-02 09:00:00.000,"{""a"":""b,c""}",kube-apiserver-audit-1,1:/aws/eks/prod/cluster"#;
        let row = row(line).unwrap();
        assert_eq!((row.at, &*row.event), (24, r#"{"a":"b,c"}"#));
        assert_eq!((&*row.origin.server, &*row.origin.cluster), ("kube-apiserver-audit-1", "1/prod"));
        for line in ["", "@timestamp,@message", r#"2026,"{""a"#, r#"2026,{"a":1}"#] {
            assert!(super::row(line).is_none(), "{line}");
        }
        assert!(is_header("@timestamp,@message,@logStream") && !is_header("a,b") && !is_header("@timestamp"));
    }
}
