//! What watching costs: the same script at the same target in the same sandbox, once as a run of brewbench with server
//! and agent and somebody who watches it live, once by a bare `k6 run`, in turn.

use std::{
    collections::BTreeMap,
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
    experiments::{
        model::ExperimentWithRuns,
        plan::{Plan, default_retries},
    },
    runs::{load::LoadBody, model::RunList},
};
use brewbench_agent::{
    connection::{client::Client, daemon::CGROUPS},
    reports::read,
    sandbox::{
        Group, Sandbox, Side,
        cores::{self, Beside},
    },
    scenarios,
    target::{Fingerprints, Manifest, manifest},
    wire::{self, job::Size},
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

/// How many pairs are made.
const PAIRS: usize = 9;

const TARGET: &str = "rust-hyper";
const VUS: u32 = 10;

/// What the target gets.
#[derive(Clone, Copy, Debug)]
enum Room {
    /// So little that k6 has room, as in every ordinary run.
    Roomy,
    /// So much that k6, where it has but one core, is the bottleneck: nothing that it does besides is free then.
    Tight,
}

impl Room {
    fn size(self) -> Size {
        let (name, vcpus) = match self {
            Self::Roomy => (ROOMY, 0.25),
            Self::Tight => ("1 vCPU / 256 MiB", 1.0),
        };
        Size { name: name.to_owned(), vcpus, memory_bytes: MEMORY }
    }
}

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
const MEMORY: u64 = 256 * 1024 * 1024;

/// What came of it.
struct Observed {
    /// Requests/s of a brewbench run ÷ of the bare run beside it.
    pub ratios: Vec<f64>,
    /// What a brewbench run took beyond warm-up and measurement, s.
    pub added_s: Vec<f64>,
    /// Requests/s of the brewbench runs.
    pub rps: Vec<f64>,
    /// CPU time of the agent in such a run, cores.
    pub agent_cores: Vec<f64>,
    /// The most memory that the agent held, MiB.
    pub agent_mib: f64,
}

/// Measures both.
pub async fn measure(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    eprintln!("observer effect: twice {PAIRS} pairs of a brewbench run and a bare k6 run");
    let roomy = pairs(manifests.to_owned(), Room::Roomy).await?;
    let tight = pairs(manifests.to_owned(), Room::Tight).await?;
    let percent: Vec<f64> = tight.agent_cores.iter().map(|cores| cores * 100.0).collect();
    let ratio = "requests/s of a brewbench run, watched live ÷ bare `k6 run`";
    Ok(vec![
        Figure::of(ratio, "ratio", &roomy.ratios).at_least(0.99),
        Figure::of("the same where k6 is the bottleneck", "ratio", &tight.ratios),
        Figure::of("time that a run adds to warm-up and measurement", "s", &roomy.added_s).at_most(0.6),
        Figure::of("CPU of the agent at the most requests that k6 makes", "% of a core", &percent).at_most(2.0),
        Figure::new("most memory of the agent then", "MiB", tight.agent_mib).at_most(30.0),
        Figure::of("requests/s then", "1/s", &tight.rps).at_least(10_000.0),
    ])
}

/// Makes the pairs; every other one begins with the bare run.
async fn pairs(manifests: PathBuf, room: Room) -> anyhow::Result<Observed> {
    let limits = room.size();
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let agent = agent::start(&site, &folder.path().join("agent"), &manifests).await?;
    let bare = Bare::new(manifests, folder.path().join("bare"))?;
    let mut pairs = Vec::new();
    // The first pair warms up: the agent hashes the target's program once.
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
    let of = |figure: fn(&(Brewed, f64)) -> f64| pairs.iter().skip(1).map(figure).collect();
    Ok(Observed {
        ratios: of(|(brewed, plain)| brewed.rps / plain),
        added_s: of(|(brewed, _)| brewed.added_s),
        rps: of(|(brewed, _)| brewed.rps),
        agent_cores: of(|(brewed, _)| brewed.agent_cores),
        agent_mib,
    })
}

/// One run through everything.
struct Brewed {
    rps: f64,
    /// What it took beyond warm-up and measurement, s.
    added_s: f64,
    /// CPU time of the agent.
    agent_cores: f64,
    /// How many seconds of it were read while it went on.
    seconds: usize,
}

async fn brewed(client: &Client, agent: &Apart, size: &Size) -> anyhow::Result<Brewed> {
    let plan = Plan {
        name: None,
        targets: vec![TARGET.to_owned()],
        against: None,
        sizes: vec![size.name.clone()],
        scenario: "hash".to_owned(),
        parameters: BTreeMap::new(),
        loads: vec![LoadBody::Vus { vus: VUS, duration_s: MEASURED.as_secs_f64() }.try_into()?],
        knee: None,
        warm_up_s: WARM_UP.as_secs_f64(),
        warm_up_auto: false,
        repetitions: 1,
        until: None,
        retries: default_retries(),
        seed: None,
        agent: None,
        agent_label: None,
        spread: false,
        generators: Vec::new(),
    };
    let (before, begun) = (agent.cpu_s()?, Instant::now());
    let made: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    let id = made.runs.first().context("one run")?.id.clone();
    let seconds = read_live(client, &id).await?;
    let agent_cores = (agent.cpu_s()? - before) / begun.elapsed().as_secs_f64();
    let list: RunList = client.get(&format!("api/v1/runs/{id}")).await?;
    let run = list.runs.first().context("one run")?;
    // What this machine's neighbours do makes a run suspect; both of a pair have the same neighbours.
    ensure!(run.counts(), "the run does not count: {:?} {:?}", run.reasons, run.error);
    let (Some(rps), Some(started), Some(finished)) = (run.figures.rps, run.started_at_ms, run.finished_at_ms) else {
        bail!("the run has no figures");
    };
    let took = Duration::from_millis(u64::try_from(finished - started)?);
    Ok(Brewed { rps, added_s: took.as_secs_f64() - (WARM_UP + MEASURED).as_secs_f64(), agent_cores, seconds })
}

/// Reads a run's live stream to its end, as a page does; gives how many seconds came.
async fn read_live(client: &Client, id: &RunId) -> anyhow::Result<usize> {
    let request = client.request(Method::GET, &format!("api/v1/runs/{id}/series/live"));
    let text = client.send(request).await?.text().await?;
    Ok(text.matches("\"length_s\"").count())
}

/// The same without brewbench: the target in the same kind of control group on the same cores, k6 as anybody would call it,
/// neither in a cage.
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

    async fn run(&self, size: &Size) -> anyhow::Result<f64> {
        let (known, _) = manifest::load(&self.manifests);
        let target = known.into_iter().find(|manifest| manifest.name == TARGET).context("the target's manifest")?;
        target.fingerprint(&self.fingerprints).map_err(anyhow::Error::msg)?;
        let group = self.sandbox.open(wire::RunId::now(), Side::Target)?;
        group.limit(size);
        let (cores, _) = cores::deal(&cores::physical(), size.vcpus, Beside::Generator);
        let (mut process, base_url) = uncaged(&target, &group, &cores.target).await?;
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

/// Starts a target in its group and on its cores, and nothing else around it; returns where it serves.
async fn uncaged(target: &Manifest, group: &Group, cores: &[usize]) -> anyhow::Result<(Child, String)> {
    let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let fill =
        |word: &String| word.replace(manifest::PORT, &at.port().to_string()).replace(manifest::HOST, "127.0.0.1");
    let program = target.program().map_err(anyhow::Error::msg)?;
    // It waits until it is in its group.
    let mut process = Command::new("sh")
        .args(["-c", "read -r _ && exec \"$@\"", "sh", "taskset", "--cpu-list", &list(cores)])
        .arg(program)
        .args(target.command.iter().skip(1).map(fill))
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = process.id().context("the target ended at once")?.to_string();
    group.entrances()?.iter_mut().try_for_each(|entrance| entrance.write_all(pid.as_bytes()))?;
    process.stdin.take().context("no input")?.write_all(b"\n").await?;
    let (url, begun) = (format!("http://{at}"), Instant::now());
    while reqwest::get(format!("{url}{}", target.ready.path)).await.is_err() {
        ensure!(begun.elapsed() < target.ready.timeout(), "the target is not ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((process, url))
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}
