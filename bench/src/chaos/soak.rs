//! Thousands of short runs, one after the other: what server and agent hold must not grow with them. The generator is a
//! script that writes a summary and ends, for the number of them, and the real k6 once in so many runs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use brewbench::{app::ids::ExperimentId, experiments::model::ExperimentWithRuns};
use brewbench_agent::wire::Phase;

use super::{
    left::Marked,
    world::{Half, Place, Programs, World},
};

/// Runs unless another number is asked for.
pub const RUNS: u32 = 3_000;
/// So many are submitted at once, and then looked at.
const BATCH: u32 = 250;
/// One of so many runs is done by the real k6.
const REAL: u32 = 50;
/// Memory may grow by what caches and allocators take their time for.
const MORE_MEMORY: f64 = 1.25;
const MORE_MEMORY_MIB: f64 = 8.0;
/// Connections come and go.
const MORE_FILES: usize = 4;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Holds {
    memory_mib: f64,
    files: usize,
    threads: usize,
}

/// What both hold, and what lies about.
#[derive(Clone, Copy, Debug)]
struct Look {
    runs: u32,
    server: Holds,
    agent: Holds,
    /// In the agent's state folder and among the temporary files of both.
    left: usize,
}

/// Does so many runs: the program lies beside the folder of the manifests.
pub async fn measure(manifests: &Path, runs: u32) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let programs = Programs::beside(manifests)?.with_k6(quick_k6(folder.path())?);
    let world = World::start(&programs, Place::Here).await?;
    let begun = Instant::now();
    let (mut looks, mut done, mut valid) = (Vec::new(), 0, 0);
    while done < runs {
        let experiment = world.submit(BATCH.min(runs - done), 0.0, 1.0).await?;
        let whole = ended(&world, &experiment).await?;
        valid += whole.runs.iter().filter(|run| run.phase == Phase::Finished).count();
        done += BATCH.min(runs - done);
        let look = look(&world, done)?;
        eprintln!("  {done} runs in {:.0} s: {look:?}", begun.elapsed().as_secs_f64());
        looks.push(look);
    }
    let (first, last) = looks.first().zip(looks.last()).context("no runs")?;
    println!("| {valid} of {done} short runs finished | after {} | after {} |", first.runs, last.runs);
    println!("|---|---|---|");
    for (name, of) in [("server", (|look| look.server) as fn(&Look) -> Holds), ("agent", |look| look.agent)] {
        let (before, after) = (of(first), of(last));
        println!("| memory of the {name}, MiB | {:.1} | {:.1} |", before.memory_mib, after.memory_mib);
        println!("| its open files | {} | {} |", before.files, after.files);
        println!("| its threads | {} | {} |", before.threads, after.threads);
    }
    println!("| files that runs left | {} | {} |", first.left, last.left);
    ensure!(u32::try_from(valid).is_ok_and(|valid| valid == done), "{} runs have not finished", done as usize - valid);
    check(first, last)
}

/// Whether something has grown.
fn check(first: &Look, last: &Look) -> anyhow::Result<()> {
    for (name, before, after) in [("server", first.server, last.server), ("agent", first.agent, last.agent)] {
        let most = before.memory_mib * MORE_MEMORY + MORE_MEMORY_MIB;
        ensure!(after.memory_mib <= most, "the {name}'s memory grows: {:.1} MiB", after.memory_mib);
        ensure!(after.files <= before.files + MORE_FILES, "the {name} leaves files open: {}", after.files);
        ensure!(after.threads <= before.threads + MORE_FILES, "the {name} leaves threads: {}", after.threads);
    }
    ensure!(last.left <= first.left, "files are left: {}", last.left);
    Ok(())
}

async fn ended(world: &World, experiment: &ExperimentId) -> anyhow::Result<ExperimentWithRuns> {
    let begun = Instant::now();
    loop {
        let whole = world.look(experiment).await?;
        if whole.progress.ended == whole.progress.total {
            return Ok(whole);
        }
        ensure!(begun.elapsed() < Duration::from_mins(30), "experiment {experiment} does not end");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn look(world: &World, runs: u32) -> anyhow::Result<Look> {
    let left = Marked::of(&world.state())?.left().len()
        + files_below(&world.state().join("work"))
        + files_below(&world.state().join("spool"));
    Ok(Look { runs, server: holds(world.pid(Half::Server)?)?, agent: holds(world.pid(Half::Agent)?)?, left })
}

fn holds(pid: u32) -> anyhow::Result<Holds> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let number = |name: &str| -> Option<f64> {
        status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?.count();
    let files = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    Ok(Holds { memory_mib: number("VmRSS:").context("no memory")? / 1024.0, files, threads })
}

fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

/// A program that does as k6 does, but for the load; once in a while it is k6.
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
    // It may write nothing but what k6 writes, so the number of its process decides.
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
