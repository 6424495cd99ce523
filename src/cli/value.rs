//! Parses values of options: durations, sizes, and pairs.

use crate::ingest::{Format, Time};
use crate::isolation::Level;
use crate::model::Model;
use crate::report;
use std::path::PathBuf;
use std::time::Duration;

/// Parses a duration such as `60s`, `500ms`, `1.5m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) = number_and_unit(text);
    let seconds = UNITS.iter().find(|(name, _)| *name == unit).zip(number).map(|((_, unit), number)| number * unit);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "a number with a unit is expected, such as 500ms, 60s, 2m or 1h".to_owned())
}

/// Parses the name of an isolation level.
pub fn level(text: &str) -> Result<Level, String> {
    Level::named(text).ok_or_else(|| {
        let names: Vec<String> = Level::all().map(|level| level.to_string()).collect();
        format!("one of {} is expected", names.join(", "))
    })
}

/// Parses a size such as `4GiB`, `500MB`.
pub fn memory(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 9] = [
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ];
    let (number, unit) = number_and_unit(text);
    let size = UNITS.iter().find(|(name, _)| *name == unit).zip(number).map(|((_, unit), number)| number * unit);
    match size {
        Some(size) if (1.0..1e18).contains(&size) => Ok(size as u64),
        _ => Err("a size with its unit is expected, such as 500MB or 4GiB".to_owned()),
    }
}

/// Parses a time, RFC 3339.
pub fn time(text: &str) -> Result<Time, String> {
    crate::ingest::timestamp::parse(text).ok_or_else(|| "a time is expected, such as 2026-03-02T09:00:05Z".to_owned())
}

fn number_and_unit(text: &str) -> (Option<f64>, &str) {
    let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    (text[..digits].parse().ok(), &text[digits..])
}

/// Parses `GLOB:NAME`, with the name of a format of evidence.
pub fn format(text: &str) -> Result<(String, Format), String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    let (glob, name) = text.rsplit_once(':').ok_or_else(|| format!("GLOB:NAME is expected; names: {}", names()))?;
    let format = Format::ALL
        .into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(|| format!("no format is called '{name}'; formats: {}", names()))?;
    if glob.is_empty() { Err("GLOB is empty".to_owned()) } else { Ok((glob.to_owned(), format)) }
}

/// Parses `KIND=FILE`, with a kind of report; `-` is standard output.
pub fn report(text: &str) -> Result<(report::Format, PathBuf), String> {
    let kinds = || report::Format::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
    let (kind, file) = text.split_once('=').ok_or_else(|| format!("KIND=FILE is expected; kinds: {}", kinds()))?;
    let format =
        report::Format::named(kind).ok_or_else(|| format!("no report is called '{kind}'; kinds: {}", kinds()))?;
    if file.is_empty() { Err("FILE is empty".to_owned()) } else { Ok((format, PathBuf::from(file))) }
}

/// Parses `GROUP/RESOURCE=NAME`. Without a group it is a resource of the core group; `*` is every resource of the group.
pub fn domain(text: &str) -> Result<(String, String, String), String> {
    let parts = text.split_once('=').map(|(resource, name)| {
        let (group, plural) = resource.rsplit_once('/').unwrap_or(("", resource));
        (group.to_owned(), plural.to_owned(), name.to_owned())
    });
    match parts {
        Some((group, plural, name)) if !plural.is_empty() && !name.is_empty() => Ok((group, plural, name)),
        _ => Err("GROUP/RESOURCE=NAME is expected, such as apps/deployments=main or events=events".to_owned()),
    }
}

/// Parses `NAME=FUNCTION`, with a function of a provided model.
pub fn function(text: &str) -> Result<(String, String), String> {
    let functions = Model::ALL.into_iter().flat_map(Model::functions);
    let is_known = |function: &&str| functions.clone().any(|known| known == function);
    match text.split_once('=') {
        Some((name, function)) if !name.is_empty() && is_known(&function) => Ok((name.to_owned(), function.to_owned())),
        Some((_, function)) => {
            let mut names: Vec<&str> = functions.copied().collect();
            names.sort_unstable();
            names.dedup();
            Err(format!("no model has the function '{function}'; functions: {}", names.join(", ")))
        }
        None => Err("NAME=FUNCTION is expected, such as write-set=add".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_and_sizes_need_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for text in ["", "60", "s", "-1s", "1 s", "1d", "1e9s", "999999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(memory("4GiB"), Ok(4 << 30));
        assert_eq!(memory("500MB"), Ok(500_000_000));
        for text in ["", "4", "GiB", "0B", "4G", "1.2.3MB", "inf"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_name_what_they_accept_when_they_refuse() {
        assert_eq!(format("a:b*.log:audit"), Ok(("a:b*.log".to_owned(), Format::Audit)));
        assert!(format("*.log:yaml").unwrap_err().contains("etcd-watch"));
        assert_eq!(report("json=a=b"), Ok((report::Format::Json, PathBuf::from("a=b"))));
        assert!(report("pdf=x").unwrap_err().contains("human, json, html, markdown, junit, sarif, dot, perfetto"));
        assert_eq!(domain("apps/deployments=main").unwrap().1, "deployments");
        assert_eq!(domain("events=e").unwrap(), (String::new(), "events".to_owned(), "e".to_owned()));
        for text in ["", "apps/=x", "apps/deployments", "apps/deployments="] {
            assert!(domain(text).is_err(), "{text}");
        }
    }
}
