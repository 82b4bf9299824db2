//! Profiles on real runs: two targets compared with themselves, where each reported function is a false alarm, and what
//! the profilers cost.
//!
//! The profiled repetitions of each experiment are compared in groups, like separate experiments with fewer of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use brewbench::{
    metrics::Metric,
    profiles::model::{Overhead, ProfileComparison, ProfileTable},
    runs::model::Run,
};
use brewbench_io::client::Client;
use reqwest::Method;
use serde_json::json;

use crate::{
    agent,
    figures::Figure,
    site::{ROOMY, Site, experiment},
};

/// Each target, profiled by `perf` and by its own endpoint, and the name of its twin.
const TARGETS: [(&str, &str); 2] = [("rust-hyper", "rust-hyper-again"), ("go-nethttp", "go-nethttp-again")];
const EXPERIMENTS: usize = 2;
/// Unprofiled repetitions per experiment.
const REPETITIONS: u32 = 10;
/// Profiled repetitions per experiment, the maximum.
const PROFILED: u32 = 20;
/// Profiled repetitions in a comparison, the default of an experiment.
const GROUP: usize = 4;

/// Measures both and prints a line per comparison.
pub async fn measure(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let targets = with_twins(manifests, &folder.path().join("targets"))?;
    let agent = agent::start(&site, &folder.path().join("agent"), &targets, None).await?;
    let (mut with_any, mut compared) = (0, 0);
    let mut overheads = Vec::new();
    for _ in 0..EXPERIMENTS {
        let runs = profiled(&site.client).await?;
        for (target, twin) in TARGETS {
            overheads.extend(overhead(&site.client, target, &runs).await?);
            let [one, other] = [target, twin].map(|name| ids(&runs, name));
            for (one, other) in one.chunks_exact(GROUP).zip(other.chunks_exact(GROUP)) {
                let comparison = compare(&site.client, one, other).await?;
                compared += 1;
                with_any += usize::from(describe(target, &comparison));
            }
        }
    }
    agent.stop().await?;
    site.process.stop().await?;
    let share = with_any as f64 / f64::from(compared) * 100.0;
    let what = format!("A/A comparisons of {GROUP} profiles a side with any coloured function, of {compared}");
    overheads.push(Figure::new(what, "%", share).at_most(5.0));
    Ok(overheads)
}

/// Copies the manifests and adds twins: the same program under another name.
fn with_twins(manifests: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir(folder)?;
    std::os::unix::fs::symlink(manifests.canonicalize()?.join("bin"), folder.join("bin"))?;
    for (target, twin) in TARGETS {
        let text = fs::read_to_string(manifests.join(format!("{target}.toml")))?;
        let renamed = text.replace(&format!("name = \"{target}\""), &format!("name = \"{twin}\""));
        ensure!(renamed != text, "the manifest of {target} has another form than expected");
        fs::write(folder.join(format!("{target}.toml")), text)?;
        fs::write(folder.join(format!("{twin}.toml")), renamed)?;
    }
    Ok(folder.to_owned())
}

async fn profiled(client: &Client) -> anyhow::Result<Vec<Run>> {
    let targets = TARGETS.map(|(target, twin)| [target, twin]).concat();
    let plan = json!({
        "targets": targets, "sizes": [ROOMY], "scenario": "hash",
        "loads": [{"kind": "vus", "vus": 10, "duration_s": 3.0}],
        "warm_up_s": 1.0, "repetitions": REPETITIONS, "profiled_repetitions": PROFILED, "retries": 1,
    });
    Ok(experiment(client, &plan).await?.runs)
}

/// Returns the profiled runs of a target, in the order of their repetitions.
fn ids(runs: &[Run], target: &str) -> Vec<String> {
    let profiled = runs.iter().filter(|run| run.spec.target == target && run.spec.profiled && run.error.is_none());
    profiled.map(|run| run.id.to_string()).collect()
}

async fn compare(client: &Client, one: &[String], other: &[String]) -> anyhow::Result<ProfileComparison> {
    let query = [("baseline", one.join(",")), ("candidate", other.join(","))];
    Ok(client.json(client.request(Method::GET, "api/v1/profiles/compare").query(&query)).await?)
}

/// Prints a comparison. Returns whether it colours any function.
fn describe(target: &str, comparison: &ProfileComparison) -> bool {
    let functions = &comparison.functions;
    let coloured = functions.iter().filter(|one| one.own.is_significant || one.total.is_significant).count();
    let p = comparison.difference.and_then(|delta| delta.p).map_or("–".to_owned(), |p| format!("{p:.3}"));
    eprintln!("  {target}: {coloured} of {} questions; total p = {p}", comparison.questions);
    coloured > 0
}

/// Returns how CPU time per request and throughput change under the profiler, in percent.
async fn overhead(client: &Client, target: &str, runs: &[Run]) -> anyhow::Result<[Figure; 2]> {
    let query = [("runs", ids(runs, target).join(","))];
    let table: ProfileTable = client.json(client.request(Method::GET, "api/v1/profiles").query(&query)).await?;
    let figure = |metric: Metric| {
        let found = table.overhead.iter().find(|one| one.metric == metric.def().key);
        let Overhead { change, low, high, .. } = found.with_context(|| format!("no {} of {target}", metric.head()))?;
        let values = [low.unwrap_or(f64::NAN), *change, high.unwrap_or(f64::NAN)].map(|share| share * 100.0);
        let what = format!("{target}, profiled: {} (95 % confidence interval)", metric.head());
        anyhow::Ok(Figure::from_values(what, "%", &values))
    };
    Ok([figure(Metric::CpuMs)?, figure(Metric::Rps)?])
}
