//! Packs the series of a run into a few kilobytes.
//!
//! A version byte, then a deflate stream of numbers: for warm-up and measurement whether it is present, its start, its
//! gaps, the number of seconds and of samples, then column by column.

use std::io::{Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use super::columns::{Reader, Writer};
use super::{Consumption, Gaps, Host, Second, Series, Usage, Window};
use crate::histogram::Histogram;

const VERSION: u8 = 2;

/// Before protocol 26: without held memory and file cache.
const WORKING_SET_ONLY: u8 = 1;

/// A second takes a few hundred bytes unpacked, and an agent sends a few thousand points at most.
const MAX_UNPACKED: u64 = 16 << 20;

/// A packed series: bytes for the disk, base64 in JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Packed(Vec<u8>);

/// Invalid bytes, or an unknown version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the series is damaged or has an unknown version")]
pub struct DecodeError;

impl Packed {
    /// Packs a series.
    #[expect(clippy::missing_panics_doc, reason = "writing into memory does not fail")]
    pub fn pack(series: &Series) -> Self {
        let mut writer = Writer::default();
        for window in [&series.warm_up, &series.measured] {
            writer.number(u64::from(window.is_some()));
            if let Some(window) = window {
                write_stretch(&mut writer, window);
            }
        }
        let mut encoder = DeflateEncoder::new(vec![VERSION], Compression::default());
        let packed = encoder.write_all(&writer.into_bytes()).and_then(|()| encoder.finish());
        Self(packed.expect("writing into memory does not fail"))
    }

    /// Unpacks the series. Uses limited memory and does not panic, whatever the bytes are.
    pub fn unpack(&self) -> Result<Series, DecodeError> {
        self.unpack_within(MAX_UNPACKED)
    }

    /// Unpacks the series if its unpacked size is at most `most` bytes.
    pub fn unpack_within(&self, most: u64) -> Result<Series, DecodeError> {
        let (&version, deflated) = self.0.split_first().ok_or(DecodeError)?;
        if ![WORKING_SET_ONLY, VERSION].contains(&version) {
            return Err(DecodeError);
        }
        let mut bytes = Vec::new();
        DeflateDecoder::new(deflated).take(most).read_to_end(&mut bytes).map_err(|_| DecodeError)?;
        let mut reader = Reader::new(&bytes);
        let mut read = || read_stretch(&mut reader, version);
        let series = Series { warm_up: read()?, measured: read()? };
        if reader.is_done() { Ok(series) } else { Err(DecodeError) }
    }

    /// Wraps stored bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} bytes)", self.0.len())
    }
}

impl TryFrom<String> for Packed {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        BASE64_STANDARD.decode(text).map(Self)
    }
}

impl From<Packed> for String {
    fn from(packed: Packed) -> Self {
        BASE64_STANDARD.encode(packed.0)
    }
}

fn write_stretch(writer: &mut Writer, window: &Window) {
    let Window { start_ms, seconds, usage, gaps } = window;
    writer.signed(*start_ms);
    for number in gaps_as_numbers(gaps) {
        writer.number(number);
    }
    writer.number(seconds.len() as u64);
    write_seconds(writer, seconds);
    writer.number(usage.len() as u64);
    write_usage(writer, usage);
}

fn read_stretch(reader: &mut Reader, version: u8) -> Result<Option<Window>, DecodeError> {
    match reader.number()? {
        0 => return Ok(None),
        1 => {}
        _ => return Err(DecodeError),
    }
    let start_ms = reader.signed()?;
    let gaps = read_lacks(reader)?;
    let rows = reader.length()?;
    let seconds = read_seconds(reader, rows)?;
    let rows = reader.length()?;
    let usage = read_usage(reader, rows, version)?;
    Ok(Some(Window { start_ms, seconds, usage, gaps }))
}

fn gaps_as_numbers(gaps: &Gaps) -> [u64; 6] {
    let Gaps { missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished } = *gaps;
    [missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished]
}

fn read_lacks(reader: &mut Reader) -> Result<Gaps, DecodeError> {
    Ok(Gaps {
        missing_seconds: reader.number()?,
        doubled_seconds: reader.number()?,
        restarts: reader.number()?,
        damaged: reader.number()?,
        dropped_values: reader.number()?,
        unfinished: reader.number()?,
    })
}

fn write_seconds(writer: &mut Writer, seconds: &[Second]) {
    writer.column(seconds.iter().map(|second| u64::from(second.until_ms)));
    writer.optional(seconds.iter().map(|second| second.vus));
    writer.column(seconds.iter().map(|second| second.iterations));
    writer.column(seconds.iter().map(|second| second.dropped_iterations));
    writer.column(seconds.iter().map(|second| second.received_bytes));
    writer.column(seconds.iter().map(|second| second.sent_bytes));
    for second in seconds {
        write_histogram(writer, &second.succeeded);
    }
    for second in seconds {
        write_histogram(writer, &second.failed);
    }
}

fn read_seconds(reader: &mut Reader, rows: usize) -> Result<Vec<Second>, DecodeError> {
    let until = reader.column(rows)?;
    let vus = reader.optional(rows)?;
    let iterations = reader.column(rows)?;
    let dropped = reader.column(rows)?;
    let received = reader.column(rows)?;
    let sent = reader.column(rows)?;
    let mut seconds = Vec::with_capacity(rows);
    for row in 0..rows {
        seconds.push(Second {
            until_ms: u32::try_from(until[row]).map_err(|_| DecodeError)?,
            vus: vus[row],
            iterations: iterations[row],
            dropped_iterations: dropped[row],
            received_bytes: received[row],
            sent_bytes: sent[row],
            succeeded: read_histogram(reader)?,
            failed: Histogram::default(),
        });
    }
    for second in &mut seconds {
        second.failed = read_histogram(reader)?;
    }
    Ok(seconds)
}

fn write_histogram(writer: &mut Writer, histogram: &Histogram) {
    writer.signed(i64::from(histogram.schema()));
    writer.number(histogram.zero());
    writer.number(histogram.sum_ns());
    writer.number(histogram.buckets().len() as u64);
    let mut before = 0;
    for (index, count) in histogram.buckets() {
        writer.signed(i64::from(index) - before);
        writer.number(count);
        before = i64::from(index);
    }
}

fn read_histogram(reader: &mut Reader) -> Result<Histogram, DecodeError> {
    let schema = i8::try_from(reader.signed()?).map_err(|_| DecodeError)?;
    let (zero, sum_ns, rows) = (reader.number()?, reader.number()?, reader.length()?);
    let mut buckets = Vec::with_capacity(rows);
    let mut index = 0_i64;
    for _ in 0..rows {
        index = index.checked_add(reader.signed()?).ok_or(DecodeError)?;
        buckets.push((i32::try_from(index).map_err(|_| DecodeError)?, reader.number()?));
    }
    Histogram::new(schema, zero, sum_ns, buckets).ok_or(DecodeError)
}

fn write_usage(writer: &mut Writer, usage: &[Usage]) {
    writer.column(usage.iter().map(|sample| i64::from(sample.at_ms).cast_unsigned()));
    write_consumption(writer, usage.iter().map(|sample| sample.target));
    write_consumption(writer, usage.iter().map(|sample| sample.generator));
    let hosts = usage.iter().map(|sample| sample.host);
    writer.column(hosts.clone().map(|host| host.user_us));
    writer.column(hosts.clone().map(|host| host.system_us));
    writer.column(hosts.clone().map(|host| host.steal_us));
    writer.column(hosts.clone().map(|host| host.iowait_us));
    writer.column(hosts.clone().map(|host| host.load_milli));
    writer.column(hosts.clone().map(|host| host.received_bytes));
    writer.column(hosts.map(|host| host.sent_bytes));
}

fn read_usage(reader: &mut Reader, rows: usize, version: u8) -> Result<Vec<Usage>, DecodeError> {
    let at = reader.column(rows)?;
    let target = read_consumption(reader, rows, version)?;
    let generator = read_consumption(reader, rows, version)?;
    let [user, system, steal, iowait, load, received, sent] = columns(reader, rows)?;
    let sample = |row: usize| {
        let host = Host {
            user_us: user[row],
            system_us: system[row],
            steal_us: steal[row],
            iowait_us: iowait[row],
            load_milli: load[row],
            received_bytes: received[row],
            sent_bytes: sent[row],
        };
        let at_ms = i32::try_from(at[row].cast_signed()).map_err(|_| DecodeError)?;
        Ok(Usage { at_ms, target: target[row], generator: generator[row], host })
    };
    (0..rows).map(sample).collect()
}

fn write_consumption(writer: &mut Writer, side: impl Iterator<Item = Consumption> + Clone) {
    writer.optional(side.clone().map(|used| used.cpu_us));
    writer.optional(side.clone().map(|used| used.throttled_us));
    writer.optional(side.clone().map(|used| used.memory_bytes));
    writer.optional(side.clone().map(|used| used.peak_memory_bytes));
    writer.optional(side.clone().map(|used| used.threads));
    writer.optional(side.clone().map(|used| used.open_files));
    writer.optional(side.clone().map(|used| used.held_memory_bytes));
    writer.optional(side.map(|used| used.file_cache_bytes));
}

fn read_consumption(reader: &mut Reader, rows: usize, version: u8) -> Result<Vec<Consumption>, DecodeError> {
    let cpu = reader.optional(rows)?;
    let throttled = reader.optional(rows)?;
    let memory = reader.optional(rows)?;
    let peak = reader.optional(rows)?;
    let threads = reader.optional(rows)?;
    let files = reader.optional(rows)?;
    let mut since_2 = || if version == WORKING_SET_ONLY { Ok(vec![None; rows]) } else { reader.optional(rows) };
    let (held, cached) = (since_2()?, since_2()?);
    let used = |row: usize| Consumption {
        cpu_us: cpu[row],
        throttled_us: throttled[row],
        memory_bytes: memory[row],
        held_memory_bytes: held[row],
        file_cache_bytes: cached[row],
        peak_memory_bytes: peak[row],
        threads: threads[row],
        open_files: files[row],
    };
    Ok((0..rows).map(used).collect())
}

fn columns<const N: usize>(reader: &mut Reader, rows: usize) -> Result<[Vec<u64>; N], DecodeError> {
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        *column = reader.column(rows)?;
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
