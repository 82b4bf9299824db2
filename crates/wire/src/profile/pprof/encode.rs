//! Writes stacks as a pprof file that `go tool pprof` reads. Pure.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::messages::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use super::{Facts, sample_type};
use crate::profile::stacks::{KERNEL, Stacks, is_kernel};
use crate::profile::{ProfileData, ProfileKind};

/// Writes a profile of a kind, compressed with gzip.
pub fn encode(stacks: &Stacks, kind: ProfileKind, facts: &Facts) -> ProfileData {
    let bytes = profile(stacks, kind, facts).encode_to_vec();
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let written = packed.write_all(&bytes).and_then(|()| packed.finish());
    // Writing to memory does not fail.
    ProfileData::new(written.unwrap_or_default())
}

fn profile(stacks: &Stacks, kind: ProfileKind, facts: &Facts) -> Profile {
    let Facts { began_ms, duration_ms, rate_hz, samples: _, build_ids, comments } = facts;
    let mut texts = Texts::default();
    let (name, unit) = sample_type(kind);
    let value_type = ValueType { r#type: texts.index(name), unit: texts.index(unit) };
    let mut modules: HashMap<&str, u64> = HashMap::new();
    let mut profile = Profile { sample_type: vec![value_type], ..Profile::default() };
    for (id, frame) in (1..).zip(&stacks.frames) {
        // Its name tells whether a module belongs to the kernel.
        let module = match (frame.kernel, is_kernel(&frame.module)) {
            (true, false) => KERNEL,
            (false, true) => frame.module.trim_matches(['[', ']']),
            _ => &frame.module,
        };
        let mapping_id = if module.is_empty() {
            0
        } else {
            *modules.entry(module).or_insert_with(|| {
                let id = profile.mapping.len() as u64 + 1;
                let build_id = build_ids.get(module).map_or(0, |id| texts.index(id));
                let filename = texts.index(module);
                profile.mapping.push(Mapping { id, filename, build_id, has_functions: true });
                id
            })
        };
        let name = texts.index(&frame.function);
        profile.function.push(Function { id, name, system_name: name, filename: texts.index(&frame.file) });
        profile.location.push(Location { id, mapping_id, line: vec![Line { function_id: id }] });
    }
    let sample = stacks.samples.iter().map(|sample| Sample {
        location_id: sample.stack.iter().rev().map(|&frame| u64::from(frame) + 1).collect(),
        value: vec![i64::try_from(sample.value).unwrap_or(i64::MAX)],
    });
    profile.sample = sample.collect();
    profile.time_nanos = began_ms.unwrap_or_default().saturating_mul(1_000_000);
    let duration_ns = duration_ms.unwrap_or_default().saturating_mul(1_000_000);
    profile.duration_nanos = i64::try_from(duration_ns).unwrap_or(i64::MAX);
    if let Some(rate_hz) = rate_hz.filter(|rate_hz| *rate_hz > 0.0 && kind == ProfileKind::Cpu) {
        profile.period_type = Some(value_type);
        profile.period = period_ns(rate_hz);
    }
    profile.comment = comments.iter().map(|comment| texts.index(comment)).collect();
    profile.default_sample_type = value_type.r#type;
    profile.string_table = texts.list;
    profile
}

#[expect(clippy::cast_possible_truncation, reason = "a float that is too large becomes the largest integer")]
fn period_ns(rate_hz: f64) -> i64 {
    (1e9 / rate_hz).round() as i64
}

/// The table of texts; the first is empty.
struct Texts {
    list: Vec<String>,
    known: HashMap<String, i64>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { list: vec![String::new()], known: HashMap::from([(String::new(), 0)]) }
    }
}

impl Texts {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let index = i64::try_from(self.list.len()).unwrap_or(i64::MAX);
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}
