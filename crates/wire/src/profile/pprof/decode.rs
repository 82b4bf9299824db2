//! Reads a pprof file of any program, within limits: it comes from a target or an agent, and may be hostile. Pure.
//!
//! The parts of the file may have any order, so it is passed three times: texts and functions, places, samples.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::messages::{Function, Location, Mapping, Sample, ValueType};
use super::{Facts, sample_type};
use crate::profile::ProfileKind;
use crate::profile::stacks::{Builder, Frame, Stacks, TooLarge};

/// How much is read of a file.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum bytes of an unpacked file.
    unpacked: u64,
    /// Maximum functions, places, mappings or texts, of each.
    items: usize,
    /// Maximum frames of all places: most have one.
    lines: usize,
    /// Maximum frames of all samples, before equal stacks are merged.
    work: usize,
}

/// What a profiler may write on an agent's machine.
const WRITTEN: Limits = Limits { unpacked: 64 << 20, items: 1 << 18, lines: 4 << 20, work: 128 << 20 };

/// What an agent may send: it is trimmed before. A server reads many of these.
const SENT: Limits = Limits { unpacked: 16 << 20, items: 1 << 18, lines: 1 << 18, work: 4 << 20 };

/// Maximum bytes of one message: a stack of 100,000 frames, or a place with 10,000 inlined functions.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Maximum bytes of a text that are read: far more than is kept of a name.
const MAX_TEXT_BYTES: usize = 2 << 10;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why a file is no profile of the kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It unpacks to more than is read.
    #[error("it is larger than {} MiB", .0 >> 20)]
    TooLong(u64),
    /// It has more parts than are read.
    #[error("it has too many parts: functions, places, texts or frames")]
    TooManyParts,
    /// It has more names or stacks than a profile may have.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// It is something else.
    #[error("it is not in the pprof format: {0}")]
    Malformed(String),
    /// It counts something else.
    #[error("it counts {found}, but a profile of kind {kind} needs {needed}")]
    WrongType {
        /// What was asked for.
        kind: ProfileKind,
        /// The sample types of the file.
        found: String,
        /// A suitable one.
        needed: String,
    },
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn malformed(what: impl ToString) -> DecodeError {
    DecodeError::Malformed(what.to_string())
}

/// Reads the stacks of a kind from a file that an agent has sent or a server has stored.
pub fn decode(bytes: &[u8], kind: ProfileKind) -> Result<Stacks, DecodeError> {
    decode_sent(bytes, kind).map(|(stacks, _)| stacks)
}

/// Reads a file that an agent has sent; also returns what it says about itself.
pub fn decode_sent(bytes: &[u8], kind: ProfileKind) -> Result<(Stacks, Facts), DecodeError> {
    decode_within(bytes, kind, SENT)
}

/// Reads a file of a profiler, which may be compressed with gzip; also returns what it says about itself.
pub fn decode_with_facts(bytes: &[u8], kind: ProfileKind) -> Result<(Stacks, Facts), DecodeError> {
    decode_within(bytes, kind, WRITTEN)
}

fn decode_within(bytes: &[u8], kind: ProfileKind, limits: Limits) -> Result<(Stacks, Facts), DecodeError> {
    let unpacked;
    let bytes = if bytes.starts_with(&GZIP) {
        unpacked = unpack(bytes, limits.unpacked)?;
        &unpacked
    } else if bytes.len() as u64 > limits.unpacked {
        return Err(DecodeError::TooLong(limits.unpacked));
    } else {
        bytes
    };
    let tables = Tables::read(bytes, limits)?;
    let measure = tables.measure(kind)?;
    let mut builder = Builder::default();
    let places = tables.places(bytes, &mut builder)?;
    let samples = add_samples(bytes, &measure, (&places, limits), &mut builder)?;
    Ok((builder.build(), tables.facts(kind, samples)))
}

fn unpack(bytes: &[u8], most: u64) -> Result<Vec<u8>, DecodeError> {
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut unpacked);
    read.map_err(|error| malformed(format!("gzip: {error}")))?;
    if unpacked.len() as u64 > most { Err(DecodeError::TooLong(most)) } else { Ok(unpacked) }
}

/// A field of the outermost message.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u32, i64),
    Bytes(u32, &'a [u8]),
}

/// Passes the fields of a message.
fn each_field<'a>(
    mut rest: &'a [u8],
    mut visit: impl FnMut(Field<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !rest.is_empty() {
        let (tag, kind) = decode_key(&mut rest).map_err(malformed)?;
        match kind {
            WireType::Varint => {
                let number = decode_varint(&mut rest).map_err(malformed)?;
                visit(Field::Number(tag, number.cast_signed()))?;
            }
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest).map_err(malformed)?;
                let length = usize::try_from(length).ok().filter(|&length| length <= rest.len());
                let (part, after) = rest.split_at(length.ok_or_else(|| malformed("a part is cut off"))?);
                rest = after;
                visit(Field::Bytes(tag, part))?;
            }
            WireType::SixtyFourBit | WireType::ThirtyTwoBit => {
                let length = if kind == WireType::SixtyFourBit { 8 } else { 4 };
                rest = rest.get(length..).ok_or_else(|| malformed("a part is cut off"))?;
            }
            WireType::StartGroup | WireType::EndGroup => return Err(malformed("it has groups")),
        }
    }
    Ok(())
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, DecodeError> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(DecodeError::TooManyParts);
    }
    M::decode(bytes).map_err(malformed)
}

fn insert<V>(map: &mut HashMap<u64, V>, id: u64, value: V, most: usize) -> Result<(), DecodeError> {
    map.insert(id, value);
    if map.len() > most { Err(DecodeError::TooManyParts) } else { Ok(()) }
}

/// Everything but places and samples.
struct Tables<'a> {
    texts: Vec<&'a [u8]>,
    types: Vec<ValueType>,
    functions: HashMap<u64, Function>,
    mappings: HashMap<u64, Mapping>,
    began_ns: i64,
    duration_ns: i64,
    period_type: ValueType,
    period: i64,
    comments: Vec<i64>,
    limits: Limits,
}

/// How the value of a sample is computed.
struct Measure {
    /// Index of the value.
    index: usize,
    /// What one is worth.
    factor: u64,
    /// Index of the number of samples.
    count: Option<usize>,
}

/// Maximum sample types and comments: more are an attack.
const MAX_TYPES: usize = 100;

impl<'a> Tables<'a> {
    fn read(bytes: &'a [u8], limits: Limits) -> Result<Self, DecodeError> {
        let (texts, types, comments) = (Vec::new(), Vec::new(), Vec::new());
        let (functions, mappings) = (HashMap::new(), HashMap::new());
        let (began_ns, duration_ns, period_type, period) = (0, 0, ValueType::default(), 0);
        let mut tables =
            Self { texts, types, functions, mappings, began_ns, duration_ns, period_type, period, comments, limits };
        each_field(bytes, |field| tables.take(field))?;
        Ok(tables)
    }

    fn take(&mut self, field: Field<'a>) -> Result<(), DecodeError> {
        match field {
            Field::Bytes(1, part) => self.types.push(message(part)?),
            Field::Bytes(3, part) => {
                let mapping: Mapping = message(part)?;
                insert(&mut self.mappings, mapping.id, mapping, self.limits.items)?;
            }
            Field::Bytes(5, part) => {
                let function: Function = message(part)?;
                insert(&mut self.functions, function.id, function, self.limits.items)?;
            }
            Field::Bytes(6, part) => self.texts.push(part),
            Field::Bytes(11, part) => self.period_type = message(part)?,
            Field::Bytes(13, mut part) => {
                while !part.is_empty() && self.comments.len() < MAX_TYPES {
                    self.comments.push(decode_varint(&mut part).map_err(malformed)?.cast_signed());
                }
            }
            Field::Number(9, number) => self.began_ns = number,
            Field::Number(10, number) => self.duration_ns = number,
            Field::Number(12, number) => self.period = number,
            Field::Number(13, number) if self.comments.len() < MAX_TYPES => self.comments.push(number),
            Field::Number(..) | Field::Bytes(..) => {}
        }
        if self.texts.len() > self.limits.items || self.types.len() > MAX_TYPES {
            return Err(DecodeError::TooManyParts);
        }
        Ok(())
    }

    fn text(&self, index: i64) -> std::borrow::Cow<'a, str> {
        let bytes = usize::try_from(index).ok().and_then(|index| self.texts.get(index).copied()).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT_BYTES)])
    }

    fn describe(&self, ValueType { r#type, unit }: ValueType) -> (String, String) {
        let plain = |index| crate::sanitize::plain(&self.text(index)).chars().take(60).collect();
        (plain(r#type), plain(unit))
    }

    /// Chooses the values of a kind.
    fn measure(&self, kind: ProfileKind) -> Result<Measure, DecodeError> {
        let types: Vec<_> = self.types.iter().map(|&each| self.describe(each)).collect();
        let find = |name: &str| types.iter().position(|(each, _)| each == name);
        let (name, unit) = sample_type(kind);
        let count = find("samples").or_else(|| find("sample"));
        let measured = |index: usize| {
            let factor = factor(&types[index].1, unit)?;
            Some(Measure { index, factor, count })
        };
        let by_period = || {
            let (_, of_period) = self.describe(self.period_type);
            let period = u64::try_from(self.period).ok().filter(|period| *period > 0)?;
            let factor = period.saturating_mul(factor(&of_period, unit)?);
            Some(Measure { index: find("samples")?, factor, count })
        };
        let measure = find(name).and_then(measured);
        let measure = measure.or_else(|| if kind == ProfileKind::Cpu { by_period() } else { None });
        measure.ok_or_else(|| {
            let shown = types.iter().take(10).map(|(name, unit)| format!("{name} in {unit}"));
            let found = match shown.collect::<Vec<_>>().join(", ") {
                nothing if nothing.is_empty() => "nothing".to_owned(),
                found => found,
            };
            DecodeError::WrongType { kind, found, needed: format!("{name} in {unit}") }
        })
    }

    /// Returns the frames of each place, root first.
    fn places(&self, bytes: &[u8], builder: &mut Builder) -> Result<Places, DecodeError> {
        let mut places = Places::default();
        // Many places are in the same function.
        let mut frames: HashMap<(u64, u64), u32> = HashMap::new();
        each_field(bytes, |field| {
            let Field::Bytes(4, part) = field else { return Ok(()) };
            let Location { id, mapping_id, line } = message(part)?;
            let begin = places.frames.len();
            let mut functions: Vec<u64> = line.iter().rev().map(|line| line.function_id).collect();
            if functions.is_empty() {
                functions.push(0);
            }
            for function in functions {
                let frame = if let Some(&known) = frames.get(&(mapping_id, function)) {
                    known
                } else {
                    let frame = builder.frame(self.frame(mapping_id, function))?;
                    frames.insert((mapping_id, function), frame);
                    frame
                };
                places.frames.push(frame);
            }
            if places.frames.len() > self.limits.lines || frames.len() > self.limits.items {
                return Err(DecodeError::TooManyParts);
            }
            insert(&mut places.ranges, id, (begin, places.frames.len()), self.limits.items)
        })?;
        Ok(places)
    }

    fn frame(&self, mapping: u64, function: u64) -> Frame {
        let module = self.mappings.get(&mapping).map(|mapping| self.text(mapping.filename)).unwrap_or_default();
        let Some(function) = self.functions.get(&function) else { return Frame::new("", "", &module) };
        let name = match self.text(function.name) {
            empty if empty.is_empty() => self.text(function.system_name),
            name => name,
        };
        Frame::new(&name, &self.text(function.filename), &module)
    }

    fn facts(&self, kind: ProfileKind, samples: Option<u64>) -> Facts {
        let (_, unit) = self.describe(self.period_type);
        let period_ns = u64::try_from(self.period).ok().zip(factor(&unit, "nanoseconds"));
        let period_ns = period_ns.map(|(period, factor)| period.saturating_mul(factor)).filter(|ns| *ns > 0);
        let ids = self.mappings.values().filter_map(|mapping| {
            let module = Frame::new("", "", &self.text(mapping.filename)).module;
            let id = Frame::new("", &self.text(mapping.build_id), "").file;
            (!module.is_empty() && !id.is_empty()).then_some((module, id))
        });
        Facts {
            began_ms: (self.began_ns > 0).then_some(self.began_ns / 1_000_000),
            duration_ms: u64::try_from(self.duration_ns).ok().filter(|ns| *ns > 0).map(|ns| ns / 1_000_000),
            rate_hz: period_ns.filter(|_| kind == ProfileKind::Cpu).map(|ns| 1e9 / ns as f64),
            samples,
            build_ids: ids.take(MAX_TYPES).collect(),
            comments: self.comments.iter().map(|&text| crate::sanitize::plain(&self.text(text))).collect(),
        }
    }
}

/// Returns how many of the wanted unit one of a unit is.
fn factor(unit: &str, wanted: &str) -> Option<u64> {
    let nanoseconds = match unit {
        "nanoseconds" | "ns" => 1,
        "microseconds" | "us" => 1_000,
        "milliseconds" | "ms" => 1_000_000,
        "seconds" | "s" => 1_000_000_000,
        _ => 0,
    };
    let bytes = match unit {
        "bytes" | "byte" => 1,
        "kilobytes" => 1 << 10,
        "megabytes" => 1 << 20,
        _ => 0,
    };
    let factor = if wanted == "bytes" { bytes } else { nanoseconds };
    (factor > 0).then_some(factor)
}

/// The frames of all places.
#[derive(Default)]
struct Places {
    frames: Vec<u32>,
    ranges: HashMap<u64, (usize, usize)>,
}

/// Adds all samples; returns how many they count.
fn add_samples(
    bytes: &[u8],
    measure: &Measure,
    (places, limits): (&Places, Limits),
    builder: &mut Builder,
) -> Result<Option<u64>, DecodeError> {
    let mut counted = measure.count.map(|_| 0_u64);
    let (mut stack, mut work) = (Vec::new(), 0_usize);
    each_field(bytes, |field| {
        let Field::Bytes(2, part) = field else { return Ok(()) };
        let Sample { location_id, value } = message(part)?;
        let get = |index: usize| value.get(index).and_then(|&value| u64::try_from(value).ok()).unwrap_or_default();
        if let Some((sum, index)) = counted.as_mut().zip(measure.count) {
            *sum = sum.saturating_add(get(index));
        }
        let value = get(measure.index).saturating_mul(measure.factor);
        stack.clear();
        for id in location_id.iter().rev() {
            let (begin, end) = places.ranges.get(id).copied().unwrap_or_default();
            stack.extend_from_slice(&places.frames[begin..end]);
            work += end - begin;
            if stack.len() > limits.lines || work > limits.work {
                return Err(DecodeError::TooManyParts);
            }
        }
        Ok(builder.add(&stack, value)?)
    })?;
    Ok(counted)
}
