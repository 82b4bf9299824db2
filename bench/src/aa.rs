//! The statistics on real runs: a target against itself, where every difference is a false alarm, and against a slower
//! one, where every silence is a miss. One experiment makes all runs; its repetitions are then compared in groups, as so
//! many experiments with fewer repetitions.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use brewbench::{
    compare::{
        Comparison,
        metric::Metric,
        statistics::{self, Standing},
    },
    experiments::{ExperimentWithRuns, Plan},
    runs::{Run, load::LoadBody},
    web::mark::Marks,
};
use brewbench_agent::client::Client;

use crate::{
    agent,
    site::{ROOMY, Site},
};

/// Runs of each target.
const REPETITIONS: u32 = 30;

const TARGET: &str = "rust-hyper";
const AGAIN: &str = "rust-hyper-again";
const SLOW: &str = "rust-hyper-slow";

/// Sizes of the groups that are compared.
const GROUPS: [usize; 3] = [3, 5, 10];

/// Measures, and prints the tables.
async fn measure(manifests: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let twice = with_a_twin(manifests, &folder.path().join("targets"))?;
    let agent = agent::start(&site, &folder.path().join("agent"), &twice).await?;
    let runs = made(&site.client).await?;
    agent.stop().await?;
    site.process.stop().await?;
    tell_noise(&runs);
    println!("| what | repetitions | comparisons | told throughput | told anything |");
    println!("|---|---|---|---|---|");
    for (what, other) in [("A/A: differences told", AGAIN), ("A/B: differences told", SLOW)] {
        for size in GROUPS {
            tell_group(what, other, size, &runs);
        }
    }
    let whole: Vec<Run> = runs.iter().filter(|run| run.target != AGAIN).cloned().collect();
    let comparison = compare(whole);
    for cell in comparison.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.runs[0].target == SLOW) {
        let stat = cell.stat(Metric::Rps);
        println!("\n{SLOW} against {TARGET}, all runs: throughput {} ({})", stat.change().text(), stat.interval());
    }
    Ok(())
}

/// The manifests, and one that starts the same program under another name.
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

async fn made(client: &Client) -> anyhow::Result<Vec<Run>> {
    let plan = Plan {
        name: None,
        targets: [TARGET, AGAIN, SLOW].map(str::to_owned).to_vec(),
        against: None,
        sizes: vec![ROOMY.to_owned()],
        scenario: "hash".to_owned(),
        parameters: BTreeMap::new(),
        loads: vec![LoadBody::Vus { vus: 10, duration_s: 3.0 }.try_into()?],
        knee: None,
        warm_up_s: 1.0,
        repetitions: REPETITIONS,
        until: None,
        retries: 0,
        seed: None,
        agent: None,
        agent_label: None,
        spread: false,
        generators: Vec::new(),
    };
    let made: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    let path = format!("api/v1/experiments/{}", made.experiment.id);
    // The stream of its events ends with the experiment.
    let request = client.request(reqwest::Method::GET, &format!("{path}/events"));
    client.send(request).await?.text().await?;
    let done: ExperimentWithRuns = client.get(&path).await?;
    ensure!(done.progress.ended == done.progress.total, "the experiment has not ended");
    Ok(done.runs)
}

/// How far the repetitions of each target scatter.
fn tell_noise(runs: &[Run]) {
    println!("| target | valid, suspect, invalid | noise of throughput, % | of p50 | of p99 | of CPU time a request |");
    println!("|---|---|---|---|---|---|");
    let comparison = compare(runs.to_vec());
    for cell in comparison.rows.iter().flat_map(|row| &row.cells) {
        let noise = |metric: Metric| {
            let deviation = cell.stat(metric).spread.as_ref().and_then(|spread| spread.deviation);
            deviation.map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0))
        };
        let [rps, p50, p99, cpu] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs].map(noise);
        let tally = cell.tally;
        println!(
            "| {} | {}, {}, {} | {rps} | {p50} | {p99} | {cpu} |",
            cell.runs[0].target, tally.valid, tally.suspect, tally.invalid
        );
    }
    println!();
}

/// Compares the first so many repetitions, the next so many, and so on.
fn tell_group(what: &str, other: &str, size: usize, runs: &[Run]) {
    let of = |target: &str| -> Vec<Run> { runs.iter().filter(|run| run.target == target).cloned().collect() };
    let (base, challenger) = (of(TARGET), of(other));
    let (mut all, mut throughput, mut anything) = (0, 0, 0);
    for (one, two) in base.chunks_exact(size).zip(challenger.chunks_exact(size)) {
        let comparison = compare([one, two].concat());
        let told = |metric: Metric| {
            let stats = comparison.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.stat(metric));
            stats.filter_map(|stat| stat.standing).any(|stands| matches!(stands, Standing::Better | Standing::Worse))
        };
        all += 1;
        throughput += usize::from(told(Metric::Rps));
        anything += usize::from(Metric::JUDGED.into_iter().any(told));
    }
    println!("| {what} | {size} | {all} | {throughput} | {anything} |");
}

fn compare(runs: Vec<Run>) -> Comparison {
    Comparison::new(runs, &Marks::default(), Some(TARGET))
}

/// The word that makes this program do so.
pub const ASKED: &str = "aa";

/// How many repetitions can say anything at all, for the reader of the tables.
fn explain() -> String {
    let enough = statistics::enough(Metric::JUDGED.len());
    format!(
        "{} questions a comparison: {enough} repetitions a side are the least that can tell a difference",
        Metric::JUDGED.len()
    )
}

/// Runs it by its word: the folder of the manifests follows.
pub async fn asked(mut rest: impl Iterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let manifests = rest.next().map(PathBuf::from).context("name the folder of the manifests")?;
    eprintln!("A/A and A/B: {REPETITIONS} runs each of {TARGET}, itself again and {SLOW}; {}", explain());
    measure(&manifests).await
}
