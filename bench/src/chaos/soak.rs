//! Soak test: thousands of short runs must not grow the resources of server and agent. For speed, k6 is replaced by a
//! script that only writes a summary, except in every [`REAL`]th run or so.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use brewbench::{app::ids::ExperimentId, experiments::model::ExperimentWithRuns};
use brewbench_wire::Phase;

use super::{
    left::Marked,
    world::{Half, Place, Programs, World},
};

/// Default number of runs.
pub const RUNS: u32 = 3_000;
/// Runs per submission; resources are read after each.
const BATCH: u32 = 250;
/// About one run in this many uses the real k6.
const REAL: u32 = 50;
/// Allowed growth of memory, because caches and allocators settle slowly.
const MORE_MEMORY: f64 = 1.25;
const MORE_MEMORY_MIB: f64 = 8.0;
/// Allowed growth of open files and threads, because connections vary.
const MORE_FILES: usize = 4;

/// Resources of a process.
#[derive(Clone, Copy, Debug)]
struct Resources {
    memory_mib: f64,
    files: usize,
    threads: usize,
}

/// Resources of both processes after a number of runs.
#[derive(Clone, Copy, Debug)]
struct Sample {
    runs: u32,
    server: Resources,
    agent: Resources,
    /// Leftovers of runs, among them files in the agent's state folder.
    left: usize,
}

/// Performs the runs. The program is in the parent folder of the manifests.
pub async fn measure(manifests: &Path, runs: u32) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let programs = Programs::beside(manifests)?.with_k6(quick_k6(folder.path())?);
    let world = World::start(&programs, Place::Here).await?;
    let started = Instant::now();
    let (mut samples, mut done, mut valid) = (Vec::new(), 0, 0);
    while done < runs {
        let experiment = world.submit(BATCH.min(runs - done), 0.0, 1.0).await?;
        let finished = wait_for_end(&world, &experiment).await?;
        valid += finished.runs.iter().filter(|run| run.phase == Phase::Finished).count();
        done += BATCH.min(runs - done);
        let sample = sample(&world, done)?;
        eprintln!("  {done} runs in {:.0} s: {sample:?}", started.elapsed().as_secs_f64());
        samples.push(sample);
    }
    let (first, last) = samples.first().zip(samples.last()).context("no runs")?;
    println!("| {valid} of {done} short runs finished | after {} | after {} |", first.runs, last.runs);
    println!("|---|---|---|");
    for (name, part) in [("server", (|sample| sample.server) as fn(&Sample) -> Resources), ("agent", |it| it.agent)] {
        let (before, after) = (part(first), part(last));
        println!("| memory of the {name}, MiB | {:.1} | {:.1} |", before.memory_mib, after.memory_mib);
        println!("| its open files | {} | {} |", before.files, after.files);
        println!("| its threads | {} | {} |", before.threads, after.threads);
    }
    println!("| files that runs left | {} | {} |", first.left, last.left);
    ensure!(u32::try_from(valid).is_ok_and(|valid| valid == done), "{} runs have not finished", done as usize - valid);
    check(first, last)
}

/// Fails if a resource has grown.
fn check(first: &Sample, last: &Sample) -> anyhow::Result<()> {
    for (name, before, after) in [("server", first.server, last.server), ("agent", first.agent, last.agent)] {
        let limit = before.memory_mib * MORE_MEMORY + MORE_MEMORY_MIB;
        ensure!(after.memory_mib <= limit, "the {name}'s memory grows: {:.1} MiB", after.memory_mib);
        ensure!(after.files <= before.files + MORE_FILES, "the {name} leaves files open: {}", after.files);
        ensure!(after.threads <= before.threads + MORE_FILES, "the {name} leaves threads: {}", after.threads);
    }
    ensure!(last.left <= first.left, "files are left: {}", last.left);
    Ok(())
}

async fn wait_for_end(world: &World, experiment: &ExperimentId) -> anyhow::Result<ExperimentWithRuns> {
    let started = Instant::now();
    loop {
        let current = world.experiment_with_runs(experiment).await?;
        if current.progress.ended == current.progress.total {
            return Ok(current);
        }
        ensure!(started.elapsed() < Duration::from_mins(30), "experiment {experiment} does not end");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn sample(world: &World, runs: u32) -> anyhow::Result<Sample> {
    let left = Marked::new(&world.state())?.left().len()
        + files_below(&world.state().join("work"))
        + files_below(&world.state().join("spool"));
    Ok(Sample { runs, server: resources(world.pid(Half::Server)?)?, agent: resources(world.pid(Half::Agent)?)?, left })
}

fn resources(pid: u32) -> anyhow::Result<Resources> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let number = |name: &str| -> Option<f64> {
        status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?.count();
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    Ok(Resources { memory_mib: number("VmRSS:").context("no memory")? / 1024.0, files, threads })
}

fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

/// Writes a script that replaces k6 without making load; now and then it runs k6.
fn quick_k6(folder: &Path) -> anyhow::Result<PathBuf> {
    let k6 = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("k6")).find(|file| file.is_file()));
    let k6 = k6.context("k6 in PATH")?;
    let summary = serde_json::json!({"metrics": {
        "http_reqs": {"count": 1000, "rate": 1000.0},
        "iterations": {"count": 1000, "rate": 1000.0},
        "http_req_failed": {"passes": 0, "fails": 1000, "value": 0},
        "http_req_duration": {"avg": 1.0, "min": 0.5, "med": 0.9, "max": 3.0, "p(90)": 1.5, "p(95)": 1.8, "p(99)": 2.5,
            "p(99.9)": 2.9, "count": 1000},
    }});
    let (path, real) = (folder.join("k6"), folder.join("real-k6"));
    fs::copy(&k6, &real)?;
    // The script cannot keep a counter in the agent's sandbox, so its process id decides.
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$1\" != run ] || [ $(($$ % {REAL})) = 0 ]; then exec {real} \"$@\"; fi\n\
         while [ $# -gt 0 ]; do\n\
         \x20 if [ \"$1\" = --summary-export ]; then echo '{summary}' > \"$2\"; fi\n\
         \x20 shift\n\
         done\n",
        real = real.display(),
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
