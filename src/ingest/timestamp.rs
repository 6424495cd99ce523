//! RFC 3339 texts to nanoseconds since 1970.

use super::position::Time;

/// Length of a time with six digits of a second and `Z`.
const WITH_MICROS: usize = 27;

/// Parses an RFC 3339 time (any offset, up to nine digits of a second).
///
/// The two forms of API servers have a fast path: six digits of a second (`metav1.MicroTime`) or none (`metav1.Time`),
/// and `Z`. Everything else goes through jiff. `None`: the text is no such time, or lies outside the years 1678 to 2261.
pub fn parse(text: &str) -> Option<Time> {
    fixed(text.as_bytes()).or_else(|| {
        let t: jiff::Timestamp = text.parse().ok()?;
        i64::try_from(t.as_nanosecond()).ok().map(Time)
    })
}

/// A time as stores of logs print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The time.
    pub time: Time,
    /// Whether the text names no zone. It is then read as UTC.
    pub without_zone: bool,
    /// Nanoseconds that the true time may lie behind, since the text has fewer digits than the servers write.
    pub cut: i64,
}

/// Parses a time as [`parse`] does, and as databases print it: with a space for the `T`, and without a zone.
pub fn printed(text: &str) -> Option<Printed> {
    if text.len() == WITH_MICROS
        && let Some(time) = fixed(text.as_bytes())
    {
        return Some(Printed { time, without_zone: false, cut: 0 });
    }
    let cut = cut_of(text);
    if let Some(time) = parse(text) {
        return Some(Printed { time, without_zone: false, cut });
    }
    let (text, named) = match text.strip_suffix("UTC") {
        Some(rest) => (rest.trim_end(), true),
        None => (text, false),
    };
    if !has_seconds(text) {
        return None;
    }
    let time = parse(&format!("{}Z", text.replacen(' ', "T", 1)))?;
    Some(Printed { time, without_zone: !named, cut })
}

/// The unit of the last digit of a second, if a store may have cut others off. Stores leave out zeros at the end, so a
/// text with one digit may have had three.
fn cut_of(text: &str) -> i64 {
    if !has_seconds(text) {
        return 59_999_999_999;
    }
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    match fraction[..digits].trim_end_matches('0').len() {
        _ if digits == 0 => 999_999_999,
        // A store may print the zeros of what it cut off.
        0..=3 => 999_999,
        _ => 0,
    }
}

/// Whether a time has seconds: `2022-11-29 00:09:04`.
fn has_seconds(text: &str) -> bool {
    text.as_bytes().get(16) == Some(&b':')
}

/// The fast path: `2026-11-20T20:26:58.666053Z` and `2026-11-20T20:26:58Z`.
fn fixed(text: &[u8]) -> Option<Time> {
    #[rustfmt::skip]
    let &[c0, c1, y0, y1, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', i0, i1, b':', s0, s1, ref rest @ ..] = text
    else {
        return None;
    };
    let [u0, u1, u2, u3, u4, u5] = match *rest {
        [b'Z'] => [b'0'; 6],
        [b'.', u0, u1, u2, u3, u4, u5, b'Z'] => [u0, u1, u2, u3, u4, u5],
        _ => return None,
    };
    let mut highest = 0;
    let mut two = |tens: u8, ones: u8| {
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        highest = highest.max(tens).max(ones);
        i64::from(tens) * 10 + i64::from(ones)
    };
    let (year, month, day) = (two(c0, c1) * 100 + two(y0, y1), two(m0, m1), two(d0, d1));
    let (hour, minute, second) = (two(h0, h1), two(i0, i1), two(s0, s1));
    let micros = (two(u0, u1) * 100 + two(u2, u3)) * 100 + two(u4, u5);
    if highest > 9 {
        return None;
    }
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days_in_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > days_in_month || hour > 23 || minute > 59 || second > 59 || !(1900..2200).contains(&year) {
        return None;
    }
    // Days since 1970 by the civil calendar with a year that begins in March, so that the leap day comes last.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719_468;
    Some(Time((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + micros * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_path_agrees_with_jiff() {
        for day in 0..80_000i64 {
            let nanos = (day - 20_000) * 86_400_000_000_000 + (day * 7_919 % 86_400) * 1_000_000_000 + day * 1_000;
            for (digits, nanos) in [(6, nanos), (0, nanos - nanos.rem_euclid(1_000_000_000))] {
                let time = jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap();
                let text = format!("{time:.digits$}");
                assert!(matches!(text.len(), 20 | WITH_MICROS));
                if let Some(time) = fixed(text.as_bytes()) {
                    assert_eq!(time, Time(nanos), "{text}");
                }
                assert_eq!(parse(&text), Some(Time(nanos)), "{text}");
            }
        }
    }

    #[test]
    fn times_are_read_as_stores_print_them() {
        let zone = |text: &str| printed(text).map(|printed| (printed.time, printed.without_zone, printed.cut));
        let time = parse("2022-11-29T00:09:04.380000Z").unwrap();
        for (text, without_zone, cut) in [
            ("2022-11-29T00:09:04.380000Z", false, 0),
            ("2022-11-29T00:09:04.38Z", false, 999_999),
            ("2022-11-29 00:09:04.38", true, 999_999),
            ("2022-11-29 00:09:04.3800", true, 999_999),
            ("2022-11-29T00:09:04.380", true, 999_999),
            ("2022-11-29 00:09:04.380 UTC", false, 999_999),
            ("2022-11-29 01:09:04.380000+01:00", false, 999_999),
        ] {
            assert_eq!(zone(text), Some((time, without_zone, cut)), "{text}");
        }
        assert_eq!(zone("2022-11-29 00:09:04").map(|(_, _, cut)| cut), Some(999_999_999));
        for text in ["", "Z", "UTC", "2022-11-29", "2022-11-29 00:09", "yesterday", "1669680544"] {
            assert_eq!(zone(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2026-02-30T00:00:00.000000Z",
            "2026-02-30T00:00:00Z",
            "2026-11-20T24:00:00.000000Z",
            "2026-11-20T2:000:00Z",
            "2026-11-20T00:00:00ZZ",
            "2026-11-20T00:00:0aZ",
            "2026-11-20",
            "yesterday",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
