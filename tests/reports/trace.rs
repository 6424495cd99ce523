//! A trace reader that shares no code with the writer. It checks the properties that a viewer needs.

use std::collections::{HashMap, HashSet};

/// The content of a trace.
#[derive(Debug, Default)]
pub struct Trace {
    pub slices: usize,
    pub flows: usize,
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads a trace and checks that it is complete.
pub fn read(bytes: &[u8]) -> Result<Trace, String> {
    let mut trace = Trace::default();
    let mut tracks = HashSet::new();
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    for (field, packet) in fields(bytes)? {
        let (1, Value::Bytes(packet)) = (field, packet) else { return Err(format!("field {field} is no packet")) };
        let mut time = 0;
        for (field, value) in fields(packet)? {
            match (field, value) {
                (8, Value::Number(at)) => time = at,
                (60, Value::Bytes(track)) => {
                    let (mut uuid, mut named) = (0, false);
                    for (field, value) in fields(track)? {
                        match (field, value) {
                            (1, Value::Number(n)) => uuid = n,
                            (2, Value::Bytes(name)) => named = std::str::from_utf8(name).is_ok_and(|n| !n.is_empty()),
                            (5, Value::Number(n)) if !tracks.contains(&n) => return Err(format!("no parent {n}")),
                            _ => {}
                        }
                    }
                    if !named || !tracks.insert(uuid) {
                        return Err(format!("track {uuid} has no name, or is there twice"));
                    }
                }
                (11, Value::Bytes(event)) => event_of(event, time, &tracks, &mut open, &mut trace)?,
                _ => {}
            }
        }
    }
    match open.values().all(Vec::is_empty) {
        true => Ok(trace),
        false => Err("a slice has no end".to_owned()),
    }
}

fn event_of(
    event: &[u8],
    time: u64,
    tracks: &HashSet<u64>,
    open: &mut HashMap<u64, Vec<u64>>,
    trace: &mut Trace,
) -> Result<(), String> {
    let (mut kind, mut track) = (0, 0);
    for (field, value) in fields(event)? {
        match (field, value) {
            (9, Value::Number(n)) => kind = n,
            (11, Value::Number(n)) => track = n,
            (47, Value::Number(_)) => trace.flows += 1,
            _ => {}
        }
    }
    if !tracks.contains(&track) {
        return Err(format!("an event on track {track}, which does not exist"));
    }
    let stack = open.entry(track).or_default();
    match kind {
        1 => {
            trace.slices += 1;
            stack.push(time);
            Ok(())
        }
        2 => match stack.pop() {
            Some(begin) if begin <= time => Ok(()),
            begin => Err(format!("a slice of {begin:?} ends at {time}")),
        },
        _ => Ok(()),
    }
}

fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Value<'_>)>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>().ok_or("eight bytes are cut")?;
                bytes = rest;
                Value::Number(u64::from_le_bytes(*value))
            }
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (value, rest) = bytes.split_at_checked(length).ok_or("a length beyond the end")?;
                bytes = rest;
                Value::Bytes(value)
            }
            wire => return Err(format!("wire type {wire}")),
        };
        found.push((tag >> 3, value));
    }
    Ok(found)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("a number is cut")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of more than ten bytes".to_owned())
}
