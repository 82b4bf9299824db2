//! What watching costs: the same script at the same target in the same sandbox, once as a run of brewbench with server
//! and agent, once by a bare `k6 run`, in turn.

use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use brewbench::{
    cli::{progress, serve::with_agent},
    experiments::{ExperimentWithRuns, Plan},
    owner,
    runs::{Verdict, load::LoadBody},
    state::AppState,
};
use brewbench_agent::{
    client::Client,
    daemon::{CGROUPS, Options},
    sandbox::{Sandbox, Side, cores},
    scenarios,
    session::Accepts,
    target::{self, Fingerprints, manifest},
    wire::{RunId, job::Size, summary},
};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::site;

/// How many pairs are made.
pub const PAIRS: usize = 9;

const TARGET: &str = "rust-hyper";
const VUS: u32 = 10;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
const MEMORY: u64 = 256 * 1024 * 1024;

/// What came of it.
pub struct Observed {
    /// Requests/s of a brewbench run ÷ of the bare run beside it.
    pub ratios: Vec<f64>,
    /// What a brewbench run took beyond warm-up and measurement, s.
    pub added_s: Vec<f64>,
}

/// Makes the pairs; every other one begins with the bare run.
pub async fn measure(manifests: PathBuf) -> anyhow::Result<Observed> {
    let folder = tempfile::tempdir()?;
    let (server, client) = site::start(&folder.path().join("site")).await?;
    let key = owner::local_agent_key(&server.state.db, "bench").await?;
    let options = Options {
        server: server.local_url(),
        key,
        state: folder.path().join("agent"),
        targets: manifests.clone(),
        k6: None,
        accepts: Accepts::BundledScenarios,
        cgroups: CGROUPS.into(),
    };
    let (state, end) = (server.state.clone(), CancellationToken::new());
    let serving = tokio::spawn(with_agent(server, options, end.clone()));
    await_agent(&state).await?;
    let bare = Bare::new(manifests, folder.path().join("bare"))?;
    let mut observed = Observed { ratios: Vec::new(), added_s: Vec::new() };
    // The first pair warms up: the agent hashes the target's program once.
    for pair in 0..=PAIRS {
        let ((brewed, added), plain) = if pair % 2 == 0 {
            let brewed = brewed(&client).await?;
            (brewed, bare.run().await?)
        } else {
            let plain = bare.run().await?;
            (brewed(&client).await?, plain)
        };
        if pair > 0 {
            eprintln!("  {brewed:.0} ÷ {plain:.0} requests/s = {:.3}, {added:.2} s added", brewed / plain);
            observed.ratios.push(brewed / plain);
            observed.added_s.push(added);
        }
    }
    end.cancel();
    serving.await??;
    Ok(observed)
}

async fn await_agent(state: &AppState) -> anyhow::Result<()> {
    let mut agents = state.events.agents();
    tokio::time::timeout(Duration::from_secs(30), agents.changed()).await.context("the agent did not dial in")??;
    Ok(())
}

/// One run through everything: its requests/s, and what it took beyond warm-up and measurement.
async fn brewed(client: &Client) -> anyhow::Result<(f64, f64)> {
    let plan = Plan {
        name: None,
        targets: vec![TARGET.to_owned()],
        sizes: vec!["1/256MiB".to_owned()],
        scenario: "hash".to_owned(),
        parameters: BTreeMap::new(),
        load: LoadBody::Vus { vus: VUS, duration_s: MEASURED.as_secs_f64() }.try_into()?,
        warm_up_s: WARM_UP.as_secs_f64(),
        repetitions: 1,
        agent: None,
    };
    let made: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    let ended = progress::wait(client, &made.experiment.id).await?;
    let run = ended.runs.first().context("one run")?;
    ensure!(run.verdict == Some(Verdict::Valid), "the run is not valid: {:?} {:?}", run.reasons, run.error);
    let (Some(rps), Some(started), Some(finished)) = (run.rps, run.started_at_ms, run.finished_at_ms) else {
        bail!("the run has no figures");
    };
    let took = Duration::from_millis(u64::try_from(finished - started)?);
    Ok((rps, took.as_secs_f64() - (WARM_UP + MEASURED).as_secs_f64()))
}

/// The same without brewbench: the target in the same kind of sandbox on the same cores, k6 as anybody would call it.
struct Bare {
    sandbox: Sandbox,
    manifests: PathBuf,
    fingerprints: Arc<Fingerprints>,
    folder: PathBuf,
}

impl Bare {
    fn new(manifests: PathBuf, folder: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir(&folder)?;
        let scenario = scenarios::bundled().into_iter().find(|scenario| scenario.name == "hash");
        std::fs::write(folder.join("script.js"), scenario.context("the scenario hash")?.script)?;
        let sandbox = Sandbox::detect(CGROUPS.as_ref(), &format!("bench-{}", std::process::id()));
        Ok(Self { sandbox, manifests, fingerprints: Arc::default(), folder })
    }

    async fn run(&self) -> anyhow::Result<f64> {
        let (known, _) = manifest::load(&self.manifests);
        let target = known.into_iter().find(|manifest| manifest.name == TARGET).context("the target's manifest")?;
        target.fingerprint(&self.fingerprints).map_err(anyhow::Error::msg)?;
        let size = Size { name: "1/256MiB".to_owned(), vcpus: 1.0, memory_bytes: MEMORY };
        let group = self.sandbox.open(RunId::now(), Side::Target)?;
        group.limit(&size);
        let cores = cores::deal(&cores::allowed(), size.vcpus);
        let mut process = None;
        let base_url = target::start(&target, &group, &cores.target, &mut process).await.map_err(anyhow::Error::msg)?;
        self.k6(&base_url, WARM_UP, &cores.generator).await?;
        let rps = self.k6(&base_url, MEASURED, &cores.generator).await?;
        if let Some(mut process) = process {
            process.stop(Duration::from_millis(500), &group).await?;
        }
        group.clear().await?;
        Ok(rps)
    }

    async fn k6(&self, base_url: &str, length: Duration, cores: &[usize]) -> anyhow::Result<f64> {
        let list: Vec<_> = cores.iter().map(usize::to_string).collect();
        let status = Command::new("taskset")
            .args(["--cpu-list", &list.join(","), "k6", "run", "--quiet", "--no-usage-report"])
            .args(["--vus", &VUS.to_string(), "--duration", &format!("{}s", length.as_secs())])
            .args(["--summary-export", "summary.json", "--env", &format!("BASE_URL={base_url}"), "script.js"])
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await
            .context("taskset and k6")?;
        ensure!(status.success(), "k6 ended with {status}");
        let figures = summary::parse(&std::fs::read(self.folder.join("summary.json"))?)?.figures();
        ensure!(figures.failed == Some(0), "requests failed");
        Ok(figures.rps)
    }
}
