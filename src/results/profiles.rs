//! Profiles in the result of an agent: read once, and stored as the server writes them.

use std::collections::HashSet;

use brewbench_wire::{
    outcome::Outcome,
    profile::{MAX_BYTES, Profiled, RunProfile, pprof, trim},
};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::app::error::{Error, Result};

/// Reading a file takes far more memory than its bytes, so files are read one after another.
static READING: Semaphore = Semaphore::const_new(1);

/// Replaces the profiles of a result: each by a file of its own stacks that takes little memory. A fault says why one
/// is missing. Call it for results that may count: it is work.
pub async fn rewrite_all(outcome: &mut Outcome) -> Result<()> {
    if let Some(profiled) = outcome.profiled.take() {
        outcome.profiled = Some(one_of_a_kind(profiled).await?);
    }
    Ok(())
}

async fn one_of_a_kind(Profiled { profiles, mut faults }: Profiled) -> Result<Profiled> {
    let mut read = HashSet::new();
    let mut kept: Vec<RunProfile> = Vec::new();
    for profile in profiles {
        if !read.insert(profile.kind.as_str()) {
            faults.push(format!("the agent sent several {} profiles", profile.kind));
            break;
        }
        let _permit = READING.acquire().await.map_err(Error::internal)?;
        match spawn_blocking(move || rewrite(profile)).await.map_err(Error::internal)? {
            Ok(profile) => kept.push(profile),
            Err(fault) => faults.push(fault),
        }
    }
    Ok(Profiled { profiles: kept, faults })
}

/// Reads a profile and writes it again. The error is a sentence.
fn rewrite(profile: RunProfile) -> Result<RunProfile, String> {
    let kind = profile.kind;
    if profile.data.as_bytes().len() > MAX_BYTES {
        return Err(format!("the {kind} profile is larger than {} KiB", MAX_BYTES >> 10));
    }
    let unreadable = |fault: &dyn std::fmt::Display| format!("the {kind} profile can't be read: {fault}");
    let (stacks, facts) = pprof::decode_sent(profile.data.as_bytes(), kind).map_err(|fault| unreadable(&fault))?;
    let trimmed = trim::trim(&stacks, kind, &facts).map_err(|fault| unreadable(&fault))?;
    Ok(RunProfile { data: trimmed.data, ..profile })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_wire::profile::{
        ProfileData, ProfileKind, ProfileQuality, ProfileSource,
        pprof::{Facts, encode},
        stacks::{Builder, Frame, Stacks},
    };
    use proptest::prelude::*;

    use super::*;

    fn profile(data: ProfileData) -> RunProfile {
        RunProfile { kind: ProfileKind::Cpu, source: ProfileSource::Pprof, data, quality: ProfileQuality::default() }
    }

    /// Stacks that differ in one frame only, so that a file of them is small.
    fn alike(count: u32, depth: usize) -> Stacks {
        let mut builder = Builder::default();
        let frame = builder.frame(Frame::new("f", "", "")).expect("room");
        for number in 0..count {
            let leaf = builder.frame(Frame::new(&number.to_string(), "", "")).expect("room");
            let stack: Vec<u32> = std::iter::repeat_n(frame, depth).chain([leaf]).collect();
            builder.add(&stack, 1_000).expect("room");
        }
        builder.build()
    }

    /// Returns the samples in an order that does not depend on the file.
    fn by_name(stacks: &Stacks) -> BTreeMap<Vec<&str>, u64> {
        let names = |sample| stacks.stack(sample).map(|frame| frame.function.as_str()).collect();
        stacks.samples.iter().map(|sample| (names(sample), sample.value)).collect()
    }

    fn memory_and_size(stacks: &Stacks) -> Option<(usize, usize)> {
        let sent = profile(encode(stacks, ProfileKind::Cpu, &Facts::default()));
        let stored = rewrite(sent).ok()?.data;
        let read = pprof::decode(stored.as_bytes(), ProfileKind::Cpu).expect("its own file");
        Some((read.bytes(), stored.as_bytes().len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn what_is_stored_takes_little_memory(count in 1_u32..4_000, depth in 1_usize..900) {
            let sent = alike(count, depth);
            if let Some((memory, size)) = memory_and_size(&sent) {
                let most = trim::MIN_MEMORY + trim::MEMORY_PER_BYTE * size;
                prop_assert!(memory <= most.min(trim::MAX_MEMORY), "{memory} bytes from {size}");
            }
        }
    }

    #[test]
    fn a_bomb_is_refused_or_defused_and_an_ordinary_profile_is_kept() {
        let ordinary = alike(50, 20);
        let sent = profile(encode(&ordinary, ProfileKind::Cpu, &Facts::default()));
        let stored = rewrite(sent).expect("a profile");
        let read = pprof::decode(stored.data.as_bytes(), ProfileKind::Cpu).expect("its own file");
        assert_eq!(by_name(&read), by_name(&ordinary));
        // 3.6 million frames in a small file: 14 MiB of memory.
        let bomb = alike(4_000, 900);
        assert!(bomb.bytes() > trim::MAX_MEMORY);
        assert!(memory_and_size(&bomb).is_none_or(|(memory, _)| memory <= trim::MAX_MEMORY));
        // More frames than are read at all.
        let larger = profile(encode(&alike(8_000, 900), ProfileKind::Cpu, &Facts::default()));
        let fault = rewrite(larger).expect_err("refused");
        assert!(fault.starts_with("the cpu profile can't be read: it "), "{fault}");
    }

    #[tokio::test]
    async fn one_profile_of_a_kind_is_read() {
        let data = encode(&alike(5, 5), ProfileKind::Cpu, &Facts::default());
        let profiled = Profiled { profiles: vec![profile(data); 500], faults: Vec::new() };
        let Profiled { profiles, faults } = one_of_a_kind(profiled).await.expect("done");
        assert_eq!((profiles.len(), faults), (1, vec!["the agent sent several cpu profiles".to_owned()]));
    }
}
