//! Tries the profiler of a target's manifest, under a light load.

use std::path::Path;
use std::time::{Duration, Instant};

use brewbench_wire::RunId;
use brewbench_wire::manifest::Profile;
use brewbench_wire::outcome::Cores;
use brewbench_wire::profile::{ProfileSource, Profiled, RunProfile};

use super::finding::Finding;
use crate::profile::attached::{Attached, Subject};
use crate::sandbox::{Sandbox, Watch};
use crate::series::sampler::Source;
use crate::target::{Running, Serving};

/// Seconds to observe.
const SECONDS: u64 = 2;

/// Profiles a target that serves. Returns a finding per profile.
pub async fn check(target: &Running, serving: &Serving, cgroups: &Path, agent: &str) -> Vec<Finding> {
    // Without a choice of its manifest a target has perf, which few runs use.
    let Some(profile) = target.profile().filter(|profile| **profile != Profile::by_perf()) else { return Vec::new() };
    let source = profile.source();
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return vec![missing(format!("{source}: {error}"))],
    };
    let sandbox = Sandbox::detect(cgroups, agent);
    let subject = Subject {
        profile: Some(profile),
        allowed: &ProfileSource::ALL,
        sandbox: &sandbox,
        run: RunId::now(),
        folder: folder.path(),
        cores: &Cores::default(),
        base_url: &serving.base_url,
        client: serving.known.client(),
        seconds: SECONDS,
    };
    let source_of_usage = target.source();
    let group = source_of_usage.as_ref().and_then(Source::group);
    let mut attached = Attached::begin(subject, || group.map(Watch::processes).unwrap_or_default()).await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(SECONDS) {
        // An idle target has no samples.
        serving.known.change().await;
    }
    let Profiled { profiles, faults } = attached.finish().await;
    let found = profiles.iter().map(|profile| Finding::good("profiler", describe(profile)));
    found.chain(faults.into_iter().map(|fault| missing(format!("{source}: {fault}")))).collect()
}

fn missing(fault: String) -> Finding {
    Finding::doubtful("profiler", fault, "correct [profile], or measure without --profile")
}

fn describe(RunProfile { kind, source, quality, .. }: &RunProfile) -> String {
    let observed = format!("{kind} by {source}: {} samples", quality.samples);
    [observed].into_iter().chain(quality.notes.iter().cloned()).collect::<Vec<_>>().join("; ")
}
