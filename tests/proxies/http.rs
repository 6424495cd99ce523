//! A client of HTTP/1.1 that shows each byte as it arrives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of one read.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// An answer that is being read.
pub struct Stream {
    pub status: u16,
    reader: BufReader<TcpStream>,
    chunked: bool,
    /// The length of a body that is not chunked.
    length: Option<u64>,
}

/// Sends a request and reads the head of the answer.
pub fn open(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Stream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if !has("host") {
        text += &format!("Host: {address}\r\n");
    }
    if !has("connection") {
        text += "Connection: close\r\n";
    }
    if !body.is_empty() {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).expect("it is sent");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a status");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    let (mut chunked, mut length) = (false, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let line = line.trim().to_ascii_lowercase();
        chunked |= line == "transfer-encoding: chunked";
        length = line.strip_prefix("content-length: ").and_then(|number| number.parse().ok()).or(length);
        if line.is_empty() {
            return Stream { status, reader, chunked, length };
        }
    }
}

impl Stream {
    /// The next chunk, or everything; `None` at the end.
    pub fn next(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        if self.chunked {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a length");
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            bytes.resize(length, 0);
            self.reader.read_exact(&mut bytes).expect("a chunk");
            self.reader.read_line(&mut line).expect("its end");
        } else {
            let length = self.length.take().unwrap_or(u64::MAX);
            self.reader.by_ref().take(length).read_to_end(&mut bytes).expect("a body");
            self.length = Some(0);
        }
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Sends a request and reads the whole answer.
pub fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = open(address, method, path, headers, body);
    let mut body = String::new();
    while let Some(part) = stream.next() {
        body += &part;
    }
    Answer { status: stream.status, body }
}
