//! Statistics on real runs: a target compared with itself, where each reported difference is a false alarm, and with a
//! slower one, where each missing difference is a miss.
//!
//! One experiment makes all runs. Its repetitions are compared in groups, like separate experiments with fewer
//! repetitions. Then one target is measured in several experiments, every second one under a background load that
//! simulates another day, and the gate compares each experiment with the previous one.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::ensure;
use brewbench::{
    compare::{
        metric::Metric,
        statistics::{Decision, Stratum, rank_test},
        view::Comparison,
    },
    experiments::model::ExperimentWithRuns,
    gate::model::{Gate, RuleCheck},
    runs::model::Run,
    web::series_style::Marks,
};
use brewbench_io::client::Client;

use crate::{
    agent,
    site::{ROOMY, Site, experiment},
};

/// Repetitions of each target.
const REPETITIONS: u32 = 30;

/// Simulated days, with one experiment each.
const DAYS: usize = 7;

/// Repetitions per day.
const REPETITIONS_PER_DAY: u32 = 5;

const TARGET: &str = "rust-hyper";
const AGAIN: &str = "rust-hyper-again";
const SLOW: &str = "rust-hyper-slow";

/// Sizes of the compared groups.
const GROUPS: [usize; 3] = [3, 5, 10];

/// Measures and prints the tables.
pub async fn measure(manifests: &Path) -> anyhow::Result<()> {
    eprintln!("A/A and A/B: {REPETITIONS} runs each of {TARGET}, the same again, and {SLOW}");
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let targets = with_a_twin(manifests, &folder.path().join("targets"))?;
    let agent = agent::start(&site, &folder.path().join("agent"), &targets, None).await?;
    let runs = measure_runs(&site.client, &[TARGET, AGAIN, SLOW], REPETITIONS).await?.runs;
    let days = days(&site.client).await?;
    let gate_table = gates(&site.client, &days).await?;
    agent.stop().await?;
    site.process.stop().await?;
    print_noise(&runs);
    println!("| what | repetitions | comparisons | difference in throughput | any difference |");
    println!("|---|---|---|---|---|");
    for (what, other) in [("A/A: differences", AGAIN), ("A/B: differences", SLOW)] {
        for size in GROUPS {
            print_groups(what, other, size, &runs);
        }
    }
    let all: Vec<Run> = runs.iter().filter(|run| run.spec.target != AGAIN).cloned().collect();
    let comparison = compare(all);
    for cell in comparison.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.runs[0].spec.target == SLOW) {
        let stat = cell.stat(Metric::Rps);
        println!("\n{SLOW} against {TARGET}, all runs: throughput {} ({})", stat.change().text(), stat.interval());
    }
    println!("\n{gate_table}");
    Ok(())
}

/// Copies the manifests and adds one that starts the same program under another name.
fn with_a_twin(manifests: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir(folder)?;
    std::os::unix::fs::symlink(manifests.canonicalize()?.join("bin"), folder.join("bin"))?;
    for name in [TARGET, SLOW] {
        std::fs::copy(manifests.join(format!("{name}.toml")), folder.join(format!("{name}.toml")))?;
    }
    let text = std::fs::read_to_string(manifests.join(format!("{TARGET}.toml")))?;
    let twin = text.replace(&format!("name = \"{TARGET}\""), &format!("name = \"{AGAIN}\""));
    ensure!(twin != text, "the manifest of {TARGET} has another form than expected");
    std::fs::write(folder.join(format!("{AGAIN}.toml")), twin)?;
    Ok(folder.to_owned())
}

async fn measure_runs(client: &Client, targets: &[&str], repetitions: u32) -> anyhow::Result<ExperimentWithRuns> {
    let plan = serde_json::json!({
        "targets": targets, "sizes": [ROOMY], "scenario": "hash",
        "loads": [{"kind": "vus", "vus": 10, "duration_s": 3.0}],
        "warm_up_s": 1.0, "repetitions": repetitions, "retries": 0,
    });
    experiment(client, &plan).await
}

/// Measures one experiment per day, every second one under a background load.
async fn days(client: &Client) -> anyhow::Result<Vec<ExperimentWithRuns>> {
    let mut days = Vec::new();
    for day in 0..DAYS {
        let background = (day % 2 == 1).then(Background::start);
        days.push(measure_runs(client, &[TARGET], REPETITIONS_PER_DAY).await?);
        drop(background);
    }
    Ok(days)
}

/// Returns a table of the gate's results for each day compared with the previous day, beside a plain rank test.
async fn gates(client: &Client, days: &[ExperimentWithRuns]) -> anyhow::Result<String> {
    let mut text =
        "| one target on two days, every second day under a background load | throughput | rank test of the \
        runs alone | gate, rps<-1% |\n|---|---|---|---|\n"
            .to_owned();
    for (day, pair) in days.windows(2).enumerate() {
        let [before, after] = [&pair[0], &pair[1]];
        let query = [
            ("baseline", before.experiment.id.as_str()),
            ("candidate", after.experiment.id.as_str()),
            ("fail_on", "rps<-1%"),
            ("accept_suspect", "true"),
        ];
        let gate: Gate = client.json(client.request(reqwest::Method::GET, "api/v1/compare/gate").query(&query)).await?;
        let values = |day: &ExperimentWithRuns| day.runs.iter().filter_map(|run| run.figures.rps).collect();
        let alone = rank_test(&[Stratum { base: values(before), other: values(after) }]);
        let change = gate.checks.first().map_or("–".to_owned(), RuleCheck::difference);
        let p = alone.map_or("–".to_owned(), |test| format!("p = {:.3}", test.p));
        let _ = writeln!(text, "| {} → {} | {change} | {p} | {} |", day + 1, day + 2, gate.headline);
    }
    Ok(text)
}

/// A background load that keeps every processor busy for a part of the time.
struct Background {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Background {
    fn start() -> Self {
        const IDLE: Duration = Duration::from_millis(46);
        const BUSY: Duration = Duration::from_millis(4);
        let stop = Arc::new(AtomicBool::new(false));
        let work = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    while started.elapsed() < BUSY {
                        std::hint::spin_loop();
                    }
                    thread::sleep(IDLE);
                }
            }
        };
        let count = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..count).map(|_| thread::spawn(work(stop.clone()))).collect();
        Self { stop, threads }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Prints the noise between the repetitions of each target.
fn print_noise(runs: &[Run]) {
    println!(
        "| target | valid, suspect, invalid | noise of throughput, % | of p50 | of p99 | of CPU time per request |"
    );
    println!("|---|---|---|---|---|---|");
    let comparison = compare(runs.to_vec());
    for cell in comparison.rows.iter().flat_map(|row| &row.cells) {
        let noise = |metric: Metric| {
            let deviation = cell.stat(metric).spread.as_ref().and_then(|spread| spread.deviation);
            deviation.map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0))
        };
        let [rps, p50, p99, cpu] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs].map(noise);
        let tally = cell.counts;
        println!(
            "| {} | {}, {}, {} | {rps} | {p50} | {p99} | {cpu} |",
            cell.runs[0].spec.target, tally.valid, tally.suspect, tally.invalid
        );
    }
    println!();
}

/// Compares consecutive groups of repetitions and prints how many comparisons report a difference.
fn print_groups(what: &str, other: &str, size: usize, runs: &[Run]) {
    let runs_of = |target: &str| -> Vec<Run> { runs.iter().filter(|run| run.spec.target == target).cloned().collect() };
    let (base, challenger) = (runs_of(TARGET), runs_of(other));
    let (mut all, mut throughput, mut anything) = (0, 0, 0);
    for (one, two) in base.chunks_exact(size).zip(challenger.chunks_exact(size)) {
        let comparison = compare([one, two].concat());
        let differs = |metric: Metric| {
            let stats = comparison.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.stat(metric));
            stats.filter_map(|stat| stat.decision).any(Decision::is_difference)
        };
        all += 1;
        throughput += usize::from(differs(Metric::Rps));
        anything += usize::from(brewbench::metrics::judged().any(differs));
    }
    println!("| {what} | {size} | {all} | {throughput} | {anything} |");
}

fn compare(runs: Vec<Run>) -> Comparison {
    Comparison::new(runs, &Marks::default(), Some(TARGET))
}
