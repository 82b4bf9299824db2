//! Profiles survive a round trip; foreign and damaged ones are errors, never panics.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use prost::Message;

use super::messages::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use super::*;
use crate::profile::stacks::{Builder, Frame, MAX_FRAMES, Stacks, UNKNOWN};

fn stacks(of: &[(&[(&str, &str)], u64)]) -> Stacks {
    let mut builder = Builder::default();
    for (stack, value) in of {
        let frames = stack.iter().map(|(function, module)| builder.frame(Frame::new(function, "", module)));
        let stack: Vec<u32> = frames.collect::<Result<_, _>>().expect("room");
        builder.add(&stack, *value).expect("room");
    }
    builder.build()
}

fn facts() -> Facts {
    Facts {
        began_ms: Some(1_700_000_000_000),
        duration_ms: Some(6_000),
        rate_hz: Some(100.0),
        samples: None,
        build_ids: BTreeMap::from([("/bin/server".to_owned(), "abcdef".to_owned())]),
        comments: vec!["by a test".to_owned()],
    }
}

/// A profile as Go writes it, with one function inlined into another.
fn go() -> Profile {
    let texts = ["", "samples", "count", "cpu", "nanoseconds", "main.main", "main.inner", "main.outer", "main.go"];
    let value_type = |r#type, unit| ValueType { r#type, unit };
    let function = |id, name| Function { id, name, system_name: name, filename: 8 };
    let lines = |ids: &[u64]| ids.iter().map(|&function_id| Line { function_id }).collect();
    Profile {
        sample_type: vec![value_type(1, 2), value_type(3, 4)],
        sample: vec![
            Sample { location_id: vec![2, 1], value: vec![2, 20_000_000] },
            Sample { location_id: vec![1], value: vec![1, 10_000_000] },
            Sample { location_id: vec![2, 9, 1], value: vec![1, 10_000_000] },
        ],
        mapping: vec![Mapping { id: 1, filename: 8, build_id: 0, has_functions: true }],
        location: vec![
            Location { id: 1, mapping_id: 1, line: lines(&[1]) },
            Location { id: 2, mapping_id: 1, line: lines(&[2, 3]) },
            Location { id: 3, mapping_id: 1, line: Vec::new() },
        ],
        function: vec![function(1, 5), function(2, 6), function(3, 7)],
        string_table: texts.map(str::to_owned).to_vec(),
        period_type: Some(value_type(3, 4)),
        period: 10_000_000,
        ..Profile::default()
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

fn named(stacks: &Stacks) -> Vec<(String, u64)> {
    let name = |sample| stacks.stack(sample).map(|frame| frame.function.as_str()).collect::<Vec<_>>().join(";");
    stacks.samples.iter().map(|sample| (name(sample), sample.value)).collect()
}

#[test]
fn what_is_encoded_is_decoded_as_it_was() {
    let server = "/bin/server";
    let original = stacks(&[
        (&[("main", server), ("write", server), ("do_syscall_64", "[kernel.kallsyms]")], 5_000_000),
        (&[("main", server), ("nft_do_chain", "[nf_tables]")], 1),
        (&[("main", server)], u64::MAX >> 1),
        (&[("", "")], 3),
    ]);
    for kind in ProfileKind::ALL {
        let data = encode(&original, kind, &facts());
        let (decoded, about) = decode_with_facts(data.as_bytes(), kind).expect("a profile");
        assert_eq!(decoded, original);
        let rate_hz = facts().rate_hz.filter(|_| kind == ProfileKind::Cpu);
        assert_eq!(about, Facts { rate_hz, ..facts() });
    }
    assert!(original.frames[2].kernel && original.frames[3].kernel && !original.frames[0].kernel);
}

#[test]
fn inlined_functions_become_frames() {
    let bytes = go().encode_to_vec();
    for bytes in [packed(&bytes), bytes] {
        let (stacks, facts) = decode_with_facts(&bytes, ProfileKind::Cpu).expect("a profile");
        let expected =
            [("main.main;main.outer;main.inner".to_owned(), 30_000_000), ("main.main".to_owned(), 10_000_000)];
        assert_eq!(named(&stacks), expected, "a place that is not in the file is left out");
        assert_eq!(stacks.frames[0].file, "main.go");
        assert_eq!((facts.samples, facts.rate_hz), (Some(4), Some(100.0)));
    }
}

#[test]
fn without_cpu_time_samples_count_by_their_period() {
    let mut profile = go();
    profile.sample_type[1].r#type = 5;
    let stacks = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect("a profile");
    assert_eq!(stacks.total(), 40_000_000);
    profile.period = 0;
    let fault = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect_err("no period");
    let words =
        "it counts samples in count, main.main in nanoseconds, but a profile of kind cpu needs cpu in nanoseconds";
    assert_eq!(fault.to_string(), words);
}

#[test]
fn another_sample_type_is_named() {
    let fault = decode(&go().encode_to_vec(), ProfileKind::Heap).expect_err("no memory");
    let words = "it counts samples in count, cpu in nanoseconds, but a profile of kind heap needs inuse_space in bytes";
    assert_eq!(fault.to_string(), words);
}

#[test]
fn garbage_is_an_error() {
    let fault = |bytes: &[u8]| decode(bytes, ProfileKind::Cpu).expect_err("garbage").to_string();
    assert!(fault(b"").starts_with("it counts nothing"));
    assert!(fault(b"<html>not found</html>").starts_with("it is not in the pprof format"), "{}", fault(b"<html>"));
    assert!(fault(&packed(b"404 page not found")).starts_with("it is not in the pprof format"));
    assert!(fault(&[0x1f, 0x8b, 1, 2, 3]).starts_with("it is not in the pprof format: gzip"));
    assert_eq!(fault(&vec![0; (16 << 20) + 1]), "it is larger than 16 MiB");
    assert_eq!(fault(&packed(&vec![0; 17 << 20])), "it is larger than 16 MiB");
    let written = decode_with_facts(&packed(&vec![0; 65 << 20]), ProfileKind::Cpu).expect_err("too long");
    assert_eq!(written.to_string(), "it is larger than 64 MiB");
}

/// 16 MiB of the smallest parts would need gigabytes.
#[test]
fn a_file_of_many_parts_is_an_error() {
    let many = |part: &[u8]| {
        let bytes = packed(&part.repeat((8 << 20) / part.len()));
        decode(&bytes, ProfileKind::Cpu).expect_err("too much").to_string()
    };
    assert!(many(&[0x32, 0]).contains("too many parts"), "empty texts");
    assert!(many(&[0x0a, 0]).contains("too many parts"), "sample types");
    let long = Sample { location_id: vec![1; 2 << 20], value: vec![1, 1] };
    let profile = Profile { sample: vec![long], ..go() };
    let fault = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect_err("too long").to_string();
    assert!(fault.contains("too many parts"), "{fault}");
    // Few places of many functions, used often.
    let line = vec![Line { function_id: 1 }; 10_000];
    let wide = Location { id: 4, mapping_id: 0, line };
    let often = Sample { location_id: vec![4; 400], value: vec![1, 1] };
    let profile = Profile { sample: vec![often; 1_000], location: vec![wide], ..go() };
    let fault = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect_err("too much").to_string();
    assert!(fault.contains("too many parts"), "{fault}");
}

#[test]
fn a_recursion_5000_deep_is_shortened() {
    let profile = Profile { sample: vec![Sample { location_id: vec![1; 5_000], value: vec![1, 7] }], ..go() };
    let stacks = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect("a profile");
    assert_eq!((stacks.samples[0].stack.len(), stacks.total()), (MAX_FRAMES, 7));
    let data = encode(&stacks, ProfileKind::Cpu, &Facts::default());
    assert_eq!(decode(data.as_bytes(), ProfileKind::Cpu), Ok(stacks));
}

#[test]
fn a_place_without_a_function_is_unknown_in_its_module() {
    let profile = Profile { sample: vec![Sample { location_id: vec![3], value: vec![1, 7] }], ..go() };
    let stacks = decode(&profile.encode_to_vec(), ProfileKind::Cpu).expect("a profile");
    assert_eq!((stacks.frames[0].function.as_str(), stacks.frames[0].module.as_str()), (UNKNOWN, "main.go"));
}

fn any_stacks() -> impl Strategy<Value = Stacks> {
    let frame = (any::<String>(), any::<String>(), "[\\[\\]a-z/]{0,8}");
    let samples = prop::collection::vec((prop::collection::vec(0_usize..20, 0..12), 0..1_u64 << 40), 0..20);
    (prop::collection::vec(frame, 20), samples).prop_map(|(frames, samples)| {
        let mut builder = Builder::default();
        for (stack, value) in samples {
            let frame = |&index: &usize| {
                let (function, file, module): &(String, String, String) = &frames[index];
                Frame::new(function, file, module)
            };
            let stack: Vec<u32> = stack.iter().map(|index| builder.frame(frame(index)).expect("room")).collect();
            builder.add(&stack, value).expect("room");
        }
        builder.build()
    })
}

proptest! {
    #[test]
    fn any_stacks_survive_a_round_trip(stacks in any_stacks()) {
        let data = encode(&stacks, ProfileKind::Allocs, &Facts::default());
        prop_assert_eq!(decode(data.as_bytes(), ProfileKind::Allocs), Ok(stacks));
    }

    #[test]
    fn any_bytes_are_decoded_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, ProfileKind::Cpu);
    }

    #[test]
    fn a_damaged_profile_is_decoded_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = go().encode_to_vec();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        bytes.truncate(length.index(bytes.len()) + 1);
        for kind in ProfileKind::ALL {
            let _ = decode(&bytes, kind);
        }
    }
}
