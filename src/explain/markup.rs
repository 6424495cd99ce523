//! Text of the evidence, made safe for each output format: in the document it is neither markup, nor a link, nor a mention, and
//! the document stays well formed. Every sink must take its texts from here or, for a terminal, from `terminal_text`.

use super::terminal_text::{acts, shorten, visible};
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};
use std::io::{self, Write};

/// Width of a name in Markdown, in columns.
const NAME: usize = 80;

/// Running text in Markdown without markup, links or mentions.
///
/// Renderers look for links and mentions after they resolve escapes, so escapes do not help. They never look into code, so a word
/// that may be a link becomes code.
pub fn markdown(text: &str) -> String {
    let words = visible(text);
    let words = words.split(' ').map(|word| if may_link(word) { code(word) } else { escaped(word) });
    words.collect::<Vec<_>>().join(" ")
}

/// A name as code in Markdown, cut in the middle if it is long.
pub fn markdown_code(name: &str) -> String {
    if name.is_empty() { String::new() } else { code(&shorten(&visible(name), NAME)) }
}

/// A text for HTML inside a line of Markdown.
pub fn markdown_html(text: &str) -> String {
    // Renderers look for mentions and links here too, but not in code.
    format!("<code>{}</code>", html(&visible(text)))
}

/// A literal block of Markdown. `passage` is visible lines, each with a line end.
pub fn markdown_block(passage: &str) -> String {
    // A fence that is longer than any run of backticks inside cannot be closed by a name.
    let fence = "`".repeat(longest_run(passage).max(2) + 1);
    format!("{fence}text\n{passage}{fence}\n")
}

/// Whether a renderer may make a link, mention or reference out of a word: `https://a`, `www.a`, `a@b`, `@team`, `#7`.
fn may_link(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let number = |mark: &str| {
        lower.match_indices(mark).any(|(at, _)| lower.as_bytes().get(at + mark.len()).is_some_and(u8::is_ascii_digit))
    };
    lower.contains("//")
        || lower.contains("www.")
        || lower.contains('@')
        || ["mailto:", "xmpp:"].iter().any(|scheme| lower.contains(scheme))
        // References to issues, and those of GitLab to merge requests, snippets, epics and milestones.
        || ["#", "gh-", "!", "$", "&", "%", "~"].into_iter().any(number)
}

fn code(visible: &str) -> String {
    let name = visible.replace('|', "\\|");
    let fence = "`".repeat(longest_run(&name) + 1);
    let pad = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{name}{pad}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn escaped(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            '<' | '>' | '&' => out += &html(c.encode_utf8(&mut [0; 4])),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Lines for XML with only the characters of XML 1.0 (its production `Char`). The writer of the document must escape markup.
pub fn xml(text: &str) -> String {
    lines(text)
}

/// The inside of a quoted string of DOT. A visible line may get a `\l` at its end afterwards.
pub fn dot(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// Text with its line ends, each line visible.
fn lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// How JSON writes characters that a terminal, an editor or a browser would act upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Json {
    /// For programs: texts keep their value, with JSON escapes.
    Exact,
    /// For viewers that show texts to people: texts become visible, except line ends.
    Visible,
    /// Like `Visible`, and safe inside an HTML element, which no text can close.
    Html,
}

/// Writes a value as JSON.
///
/// # Errors
/// If the writer fails.
pub fn json<T: Serialize>(value: &T, kind: Json, out: &mut dyn Write) -> io::Result<()> {
    let layout = (kind != Json::Html).then(PrettyFormatter::new);
    let mut serializer = serde_json::Serializer::with_formatter(out, Escapes { kind, layout });
    Ok(value.serialize(&mut serializer)?)
}

/// A layout of JSON, indented or compact, with other escapes.
struct Escapes<'l> {
    kind: Json,
    layout: Option<PrettyFormatter<'l>>,
}

/// Forwards methods to the layout.
macro_rules! as_laid_out {
    ($($method:ident($($argument:ident: $type:ty),*)),* $(,)?) => {
        $(fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, $($argument: $type),*) -> io::Result<()> {
            match &mut self.layout {
                Some(layout) => layout.$method(writer, $($argument),*),
                None => serde_json::ser::CompactFormatter.$method(writer, $($argument),*),
            }
        })*
    };
}

impl Formatter for Escapes<'_> {
    as_laid_out!(
        begin_array(),
        end_array(),
        begin_array_value(first: bool),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first: bool),
        begin_object_value(),
        end_object_value(),
    );

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| acts(*c) || (self.kind == Json::Html && *c == '<'))
        {
            writer.write_all(&rest.as_bytes()[..at])?;
            match self.kind {
                Json::Html if c == '<' => writer.write_all(b"\\u003c")?,
                Json::Exact => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(writer, "\\u{unit:04x}")?;
                    }
                }
                // The backslash of a visible escape is a character of the text.
                _ => write!(writer, "\\{}", visible(c.encode_utf8(&mut [0; 4])))?,
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) if self.kind != Json::Exact => write!(writer, "\\\\u{{{byte:x}}}"),
            CharEscape::Backspace if self.kind != Json::Exact => writer.write_all(b"\\\\u{8}"),
            CharEscape::FormFeed if self.kind != Json::Exact => writer.write_all(b"\\\\u{c}"),
            escape => serde_json::ser::CompactFormatter.write_char_escape(writer, escape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{fffe}\u{ffff}\u{1fffe}\u{fdd0}\u{7f}\u{200b}<&>\"]]>|`@x";

    fn is_harmless(text: &str) {
        for c in text.chars() {
            assert!(c == '\n' || (!acts(c) && !c.is_control()), "{c:?} in {text:?}");
        }
    }

    #[test]
    fn every_kind_of_output_shows_what_would_act() {
        for shown in [markdown(HOSTILE), markdown_code(HOSTILE), markdown_html(HOSTILE), xml(HOSTILE), dot(HOSTILE)] {
            is_harmless(&shown);
            assert!(shown.contains("u{202e}") && shown.contains("u{fffe}"), "{shown}");
        }
        assert_eq!(xml("a\u{b}\nb\t"), "a\\u{b}\nb\\t");
        assert_eq!(dot("a\"\\\n"), "a\\\"\\\\\\\\n");
    }

    #[test]
    fn words_that_could_be_links_mentions_or_references_are_code() {
        for word in [
            "https://evil.example/a?b",
            "HTTP://evil.example",
            "x://y",
            "//evil.example",
            "www.evil.example",
            "WWW.evil.example",
            "(www.evil.example)",
            "eve@evil.example",
            "@team",
            "mailto:eve",
            "owner/repo#7",
            "GH-7",
            "!7",
        ] {
            assert_eq!(markdown(&format!("see {word} now")), format!("see `{word}` now"));
        }
        assert_eq!(markdown("pods default/web-0 *was* <b>"), "pods default/web-0 \\*was\\* &lt;b&gt;");
        assert_eq!(markdown("`@x`|"), "`` `@x`\\| ``");
        assert_eq!(markdown_html("<b>@team & \"x\""), "<code>&lt;b&gt;@team &amp; &quot;x&quot;</code>");
    }

    #[test]
    fn json_is_exact_for_programs_and_visible_for_viewers() {
        let value = serde_json::json!({ "a": [HOSTILE, "line\nline\ttab\\"], "empty": {}, "none": [] });
        let written = |kind| {
            let mut out = Vec::new();
            json(&value, kind, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let exact = written(Json::Exact);
        is_harmless(&exact);
        assert_eq!(serde_json::from_str::<Value>(&exact).unwrap(), value);
        for kind in [Json::Visible, Json::Html] {
            let text = written(kind);
            is_harmless(&text);
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read["a"][0], *visible(HOSTILE));
            assert_eq!(read["a"][1], "line\nline\ttab\\");
            assert_eq!(text.contains('<'), kind == Json::Visible);
        }
        assert_eq!(exact.lines().next(), Some("{"));
    }
}
