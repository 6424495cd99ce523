//! Standard error and standard output, whose readers may be gone: what a run comes to does not depend on who listens.

use crate::explain::terminal_text::visible;
use std::fmt::Display;
use std::io::{self, Write};

/// Says something on standard error, where anybody can hear it. What it names may come from a file system or out of the evidence.
pub fn tell(text: impl Display) {
    // Mistakes in rules files are shown in their lines.
    let lines: Vec<_> = text.to_string().lines().map(|line| visible(line).to_string()).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// Standard output, or another pipe. Once its reader is gone (`retrograde check … | head`), what is written is thrown away: the reader
/// has read enough, and the exit code still tells the verdict.
#[derive(Debug)]
pub struct UntilClosed<W>(pub W);

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(buffer), buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

fn unless_closed<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(done),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_a_reader_that_is_gone_is_no_error() {
        let mut closed = UntilClosed(Failing(io::ErrorKind::BrokenPipe));
        assert!(closed.write_all(b"x").is_ok() && closed.flush().is_ok());
        let mut full = UntilClosed(Failing(io::ErrorKind::StorageFull));
        assert!(full.write_all(b"x").is_err() && full.flush().is_err());
    }
}
