//! Standard error and standard output. The result of a run does not depend on whether their readers still exist.

use crate::explain::terminal_text::visible;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes to standard error and ignores errors. Names from file systems or evidence are escaped.
pub fn tell(text: impl Display) {
    // Lines are escaped one by one, since mistakes in rules files are shown with their lines.
    let lines: Vec<_> = text.to_string().lines().map(|line| visible(line).to_string()).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// Standard output, or another pipe. After the reader has gone (`retrograde check … | head`) further output is discarded, and the
/// exit code still gives the verdict.
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
