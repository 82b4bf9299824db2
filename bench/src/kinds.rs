//! What each way to run a server costs: one server as a program, in a container on the host's network and behind a
//! bridge, in a virtual machine, and running already, measured in turn in one experiment.

use std::{
    fmt::Write,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use brewbench::{
    compare::{metric::Metric, view::Comparison},
    experiments::model::ExperimentWithRuns,
    runs::model::Run,
};
use brewbench_io::client::Client;
use brewbench_testing::{Guest, Podman};
use reqwest::Method;
use serde_json::json;

use crate::{
    agent,
    figures::Figure,
    manifests,
    site::{Site, experiment},
};

/// A guest has whole vCPUs.
const SIZE: &str = "1/256MiB";
/// Iterations per second, which even an emulated guest serves.
const RATE: u32 = 200;
const DURATION_S: f64 = 8.0;
const WARM_UP_S: f64 = 3.0;
/// The baseline.
const PROGRAM: &str = "program";
const KINDS: [&str; 5] = [PROGRAM, "container-host", "container-bridge", "vm", "already-running"];
const METRICS: [Metric; 4] = [Metric::P50Ms, Metric::P99Ms, Metric::CpuMs, Metric::Memory];
/// How long the server that runs already may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures, prints tables and writes the report into a folder.
pub async fn measure(manifests: &Path, reports: &Path, repetitions: u32) -> anyhow::Result<Vec<Figure>> {
    let program = manifests.join("bin/rust-hyper").canonicalize().context("the bundled program")?;
    let podman = Podman::start().context("no Podman: make podman")?;
    let guest = Guest::of(&program).context("no QEMU, or no kernel: make guest")?;
    let folder = tempfile::tempdir()?;
    let running = Running::start(&program)?;
    let targets = folder.path().join("targets");
    manifests::load_image(&podman, &program);
    offer(&targets, &program, &guest, running.at)?;

    let site = Site::start(&folder.path().join("site")).await?;
    let state = folder.path().join("agent");
    let agent = agent::start(&site, &state, &targets, Some(&podman.socket())).await?;
    let measured = run_all(&site.client, repetitions).await?;
    let comparison = save_reports(&site.client, &measured, reports).await?;
    agent.stop().await?;
    site.process.stop().await?;
    println!("\n{}", table(&comparison));
    Ok(added(&measured.runs))
}

/// Writes the manifests of all kinds.
fn offer(folder: &Path, program: &Path, guest: &Guest, running: SocketAddr) -> anyhow::Result<()> {
    fs::create_dir(folder)?;
    let provided = [
        manifests::process(program),
        manifests::container("host"),
        manifests::container("bridge"),
        manifests::vm(guest),
        format!("[url]\nbase = \"http://{running}\"\n"),
    ];
    KINDS.iter().zip(provided).try_for_each(|(name, provided)| manifests::write(folder, name, &provided))?;
    Ok(())
}

async fn run_all(client: &Client, repetitions: u32) -> anyhow::Result<ExperimentWithRuns> {
    let plan = json!({
        "name": "rust-hyper, five ways to run it", "targets": KINDS, "sizes": [SIZE], "scenario": "hash",
        "loads": [{"kind": "rate", "rate": RATE, "duration_s": DURATION_S}],
        "warm_up_s": WARM_UP_S, "repetitions": repetitions, "retries": 1,
    });
    eprintln!("{repetitions} runs of each kind at {SIZE}, {RATE} iterations/s");
    let finished = experiment(client, &plan).await?;
    for run in &finished.runs {
        let flags: Vec<_> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
        eprintln!("  {} {}: {} {}", run.spec.target, run.repetition, run.phase.as_str(), flags.join(", "));
    }
    ensure!(finished.runs.iter().all(|run| run.error.is_none()), "a run failed");
    Ok(finished)
}

/// Writes the report in both formats and returns the comparison.
async fn save_reports(client: &Client, measured: &ExperimentWithRuns, folder: &Path) -> anyhow::Result<Comparison> {
    // Kinds differ in more than the target, which is what is compared here.
    let id = measured.experiment.id.as_str();
    let query = [("experiments", id), ("baseline", PROGRAM), ("allow_confounders", "true")];
    let request = |path: &str| client.request(Method::GET, path).query(&query);
    fs::create_dir_all(folder)?;
    for (format, file) in [("markdown", "kinds.md"), ("html", "kinds.html")] {
        let request = request("api/v1/report").query(&[("format", format)]);
        fs::write(folder.join(file), client.send(request).await?.text().await?)?;
    }
    Ok(client.json(request("api/v1/compare")).await?)
}

/// Returns what each kind costs, as a table.
fn table(comparison: &Comparison) -> String {
    let heads = METRICS.map(|metric| format!(" {} | difference, 95 % |", metric.head()));
    let mut text = format!("| target |{}\n|---|{}\n", heads.concat(), "--:|".repeat(METRICS.len() * 2));
    for cell in comparison.rows.iter().flat_map(|row| &row.cells) {
        let name = comparison.subjects.get(cell.subject).map_or("", |subject| subject.label.as_str());
        let figures = METRICS.map(|metric| {
            let stat = cell.stat(metric);
            let interval = stat.interval();
            let interval = if interval.is_empty() { "–" } else { &interval };
            format!(" {} | {interval} |", stat.figure().text())
        });
        let _ = writeln!(text, "| {name} |{}", figures.concat());
    }
    text
}

/// Returns the time that runs of each kind add to warm-up and measurement.
fn added(runs: &[Run]) -> Vec<Figure> {
    let added = |kind: &str| -> Vec<f64> {
        let took = runs.iter().filter(|run| run.spec.target == kind).filter_map(|run| {
            let (started, finished) = (run.started_at_ms?, run.finished_at_ms?);
            Some((finished - started) as f64 / 1000.0 - WARM_UP_S - DURATION_S)
        });
        took.collect()
    };
    let bare = added(PROGRAM);
    let [_, others @ ..] = KINDS;
    let mut figures = vec![Figure::from_values(format!("time that a run of {PROGRAM} adds"), "s", &bare)];
    figures.extend(others.map(|kind| {
        // Each is measured in turn with the program, so that the machine is as busy for both.
        let differences: Vec<f64> = added(kind).iter().zip(&bare).map(|(this, bare)| this - bare).collect();
        let figure = Figure::from_values(format!("more than that: {kind}"), "s", &differences);
        if kind.contains("container") { figure.at_most(1.5) } else { figure }
    }));
    figures
}

/// A server that the agent does not start.
pub struct Running {
    pub at: SocketAddr,
    process: Child,
}

impl Running {
    fn start(program: &Path) -> anyhow::Result<Self> {
        Self::spawn(Command::new(program), program)
    }

    /// Starts a server on some cores, as `taskset` names them.
    pub fn start_on(program: &Path, cores: &str) -> anyhow::Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", cores]).arg(program);
        Self::spawn(command, program)
    }

    fn spawn(mut command: Command, program: &Path) -> anyhow::Result<Self> {
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let process = command.args(["--listen", &at.to_string()]).stdout(Stdio::null()).spawn()?;
        let running = Self { at, process };
        let started = Instant::now();
        while TcpStream::connect(at).is_err() {
            ensure!(started.elapsed() < START_TIMEOUT, "{} does not listen on {at}", program.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
