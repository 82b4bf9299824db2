//! Observer effect: the same script against the same target in the same sandbox, alternately as a brewbench run that is
//! watched live and as a bare `k6 run`.

use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use brewbench::{
    app::ids::RunId,
    experiments::{model::ExperimentWithRuns, plan::Plan},
    runs::{load::LoadBody, model::RunList},
};
use brewbench_agent::{
    connection::daemon::CGROUPS,
    sandbox::{
        Group, ProgramRole, Sandbox,
        cores::{self, SharesWith},
    },
    target::{
        Fingerprints, Provided,
        manifest::{self, Program},
    },
};
use brewbench_io::client::Client;
use brewbench_wire::{
    job::Size,
    manifest::{HOST, PORT, Ready},
    reports::read,
    scenarios,
};
use reqwest::Method;
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::Instant,
};

use crate::{
    agent,
    apart::Apart,
    figures::Figure,
    site::{ROOMY, Site},
};

/// Number of pairs.
const PAIRS: usize = 9;

const TARGET: &str = "rust-hyper";
const VUS: u32 = 10;

/// The machine size of the target.
#[derive(Clone, Copy, Debug)]
enum Bottleneck {
    /// So small that the target is the bottleneck, as in ordinary runs.
    Target,
    /// So large that k6, with one core, is the bottleneck, which makes any overhead visible.
    K6,
}

impl Bottleneck {
    fn size(self) -> Size {
        let (name, vcpus) = match self {
            Self::Target => (ROOMY, 0.25),
            Self::K6 => ("1 vCPU / 256 MiB", 1.0),
        };
        Size { name: name.to_owned(), vcpus, memory_bytes: MEMORY, replicas: 1 }
    }
}

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
const MEMORY: u64 = 256 * 1024 * 1024;

/// Figures of all pairs.
struct Pairs {
    /// Requests/s of a brewbench run ÷ of its bare run.
    pub ratios: Vec<f64>,
    /// Time of a brewbench run beyond warm-up and measurement, s.
    pub added_s: Vec<f64>,
    /// Requests/s of the brewbench runs.
    pub rps: Vec<f64>,
    /// CPU use of the agent during such a run, cores.
    pub agent_cores: Vec<f64>,
    /// Peak memory of the agent, MiB.
    pub agent_mib: f64,
}

/// Measures both bottlenecks.
pub async fn measure(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    eprintln!("observer effect: 2 × {PAIRS} pairs of a brewbench run and a bare k6 run");
    let roomy = pairs(manifests.to_owned(), Bottleneck::Target).await?;
    let tight = pairs(manifests.to_owned(), Bottleneck::K6).await?;
    let percent: Vec<f64> = tight.agent_cores.iter().map(|cores| cores * 100.0).collect();
    let ratio = "requests/s of a brewbench run, watched live ÷ bare `k6 run`";
    Ok(vec![
        Figure::from_values(ratio, "ratio", &roomy.ratios).at_least(0.99),
        Figure::from_values("the same where k6 is the bottleneck", "ratio", &tight.ratios),
        Figure::from_values("time that a run adds to warm-up and measurement", "s", &roomy.added_s).at_most(0.6),
        Figure::from_values("CPU of the agent at the most requests that k6 makes", "% of a core", &percent)
            .at_most(2.0),
        Figure::new("most memory of the agent then", "MiB", tight.agent_mib).at_most(30.0),
        Figure::from_values("requests/s then", "1/s", &tight.rps).at_least(10_000.0),
    ])
}

/// Measures the pairs; every second one begins with the bare run.
async fn pairs(manifests: PathBuf, bottleneck: Bottleneck) -> anyhow::Result<Pairs> {
    let limits = bottleneck.size();
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let agent = agent::start(&site, &folder.path().join("agent"), &manifests, None).await?;
    let bare = Bare::new(manifests, folder.path().join("bare"))?;
    let mut pairs = Vec::new();
    // The first pair is a warm-up: the agent hashes the target's program once.
    for pair in 0..=PAIRS {
        let (brewed, plain) = if pair % 2 == 0 {
            let brewed = brewed(&site.client, &agent, &limits).await?;
            (brewed, bare.run(&limits).await?)
        } else {
            let plain = bare.run(&limits).await?;
            (brewed(&site.client, &agent, &limits).await?, plain)
        };
        let Brewed { rps, added_s, agent_cores, seconds } = &brewed;
        eprintln!(
            "  {rps:.0} ÷ {plain:.0} requests/s = {:.3}, {added_s:.2} s added, {seconds} seconds read live, agent {:.2} %",
            rps / plain,
            agent_cores * 100.0
        );
        pairs.push((brewed, plain));
    }
    let agent_mib = agent.peak_mib()?;
    agent.stop().await?;
    site.process.stop().await?;
    let values = |figure: fn(&(Brewed, f64)) -> f64| pairs.iter().skip(1).map(figure).collect();
    Ok(Pairs {
        ratios: values(|(brewed, plain)| brewed.rps / plain),
        added_s: values(|(brewed, _)| brewed.added_s),
        rps: values(|(brewed, _)| brewed.rps),
        agent_cores: values(|(brewed, _)| brewed.agent_cores),
        agent_mib,
    })
}

/// A brewbench run.
struct Brewed {
    rps: f64,
    /// Time beyond warm-up and measurement, s.
    added_s: f64,
    /// CPU use of the agent, cores.
    agent_cores: f64,
    /// Seconds of its series that were read live.
    seconds: usize,
}

async fn brewed(client: &Client, agent: &Apart, size: &Size) -> anyhow::Result<Brewed> {
    let plan = Plan {
        targets: vec![TARGET.to_owned()],
        sizes: vec![size.name.clone()],
        scenario: "hash".to_owned(),
        loads: vec![LoadBody::Vus { vus: VUS, duration_s: MEASURED.as_secs_f64() }.try_into()?],
        warm_up_s: Some(WARM_UP.as_secs_f64()),
        repetitions: 1,
        ..Plan::default()
    };
    let (before, started) = (agent.cpu_s()?, Instant::now());
    let created: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    let id = created.runs.first().context("one run")?.id.clone();
    let seconds = read_live(client, &id).await?;
    let agent_cores = (agent.cpu_s()? - before) / started.elapsed().as_secs_f64();
    let list: RunList = client.get(&format!("api/v1/runs/{id}")).await?;
    let run = list.runs.first().context("one run")?;
    // Suspect runs are accepted: noisy neighbours affect both runs of a pair.
    ensure!(run.counts(), "the run does not count: {:?} {:?}", run.reasons, run.error);
    let (Some(rps), Some(started), Some(finished)) = (run.figures.rps, run.started_at_ms, run.finished_at_ms) else {
        bail!("the run has no figures");
    };
    let took = Duration::from_millis(u64::try_from(finished - started)?);
    Ok(Brewed { rps, added_s: took.as_secs_f64() - (WARM_UP + MEASURED).as_secs_f64(), agent_cores, seconds })
}

/// Reads a run's live stream to its end, as a page does, and returns the number of seconds.
async fn read_live(client: &Client, id: &RunId) -> anyhow::Result<usize> {
    let request = client.request(Method::GET, &format!("api/v1/runs/{id}/series/live"));
    let text = client.send(request).await?.text().await?;
    Ok(text.matches("\"length_s\"").count())
}

/// The same without brewbench: the target in the same kind of control group on the same cores, and a plain k6, both
/// without the cage.
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
        std::fs::write(folder.join("script.js"), scenario.context("the scenario hash")?.script())?;
        let sandbox = Sandbox::detect(CGROUPS.as_ref(), &format!("bench-{}", std::process::id()));
        Ok(Self { sandbox, manifests, fingerprints: Arc::default(), folder })
    }

    async fn run(&self, size: &Size) -> anyhow::Result<f64> {
        let (known, _) = manifest::load(&self.manifests);
        let target = known.into_iter().find(|manifest| manifest.name == TARGET).context("the target's manifest")?;
        let Provided::Process(program) = target.provided else { bail!("{TARGET} is not a program") };
        program.fingerprint(&self.fingerprints).map_err(anyhow::Error::msg)?;
        let group = self.sandbox.open(brewbench_wire::RunId::now(), ProgramRole::Target)?;
        group.limit(size);
        let (cores, _) = cores::assign(&cores::physical(), size.vcpus, SharesWith::Generator);
        let (mut process, base_url) = uncaged(&program, &target.ready, &group, &cores.target).await?;
        self.k6(&base_url, WARM_UP, &cores.generator).await?;
        let rps = self.k6(&base_url, MEASURED, &cores.generator).await?;
        group.kill().await?;
        process.wait().await?;
        group.clear().await?;
        Ok(rps)
    }

    async fn k6(&self, base_url: &str, length: Duration, cores: &[usize]) -> anyhow::Result<f64> {
        let status = Command::new("taskset")
            .args(["--cpu-list", &list(cores), "k6", "run", "--quiet", "--no-usage-report"])
            .args(["--vus", &VUS.to_string(), "--duration", &format!("{}s", length.as_secs())])
            .args(["--summary-export", "summary.json", "--env", &format!("BASE_URL={base_url}"), "script.js"])
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await
            .context("taskset and k6")?;
        ensure!(status.success(), "k6 ended with {status}");
        let figures = read::parse(&std::fs::read(self.folder.join("summary.json"))?)?.figures();
        ensure!(figures.failed == Some(0), "requests failed");
        Ok(figures.rps)
    }
}

/// Starts a target in its group and on its cores, without the cage; returns its process and URL.
async fn uncaged(program: &Program, ready: &Ready, group: &Group, cores: &[usize]) -> anyhow::Result<(Child, String)> {
    let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let fill = |word: &String| word.replace(PORT, &at.port().to_string()).replace(HOST, "127.0.0.1");
    let path = program.path().map_err(anyhow::Error::msg)?;
    // The shell waits for a line, so that the target starts inside its group.
    let mut process = Command::new("sh")
        .args(["-c", "read -r _ && exec \"$@\"", "sh", "taskset", "--cpu-list", &list(cores)])
        .arg(path)
        .args(program.command.iter().skip(1).map(fill))
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = process.id().context("the target ended at once")?.to_string();
    group.entrances()?.iter_mut().try_for_each(|entrance| entrance.write_all(pid.as_bytes()))?;
    process.stdin.take().context("no input")?.write_all(b"\n").await?;
    let (url, started) = (format!("http://{at}"), Instant::now());
    while reqwest::get(format!("{url}{}", ready.path)).await.is_err() {
        ensure!(started.elapsed() < ready.timeout(), "the target is not ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((process, url))
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}
