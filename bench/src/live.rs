//! Cost of live viewers and delay of live charts: requests/s of a run with many open pages ÷ the same run with none,
//! alternating, and the time from the end of a second on the agent until a browser on the same machine draws it.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, ensure};
use brewbench::{
    app::ids::RunId,
    experiments::{model::ExperimentWithRuns, plan::Plan},
    results::series::model::SeriesBody,
    runs::{load::LoadBody, model::RunList},
};
use brewbench_io::client::Client;
use chromiumoxide::{
    Browser, BrowserConfig, Page,
    cdp::browser_protocol::network::{EnableParams, Headers, SetExtraHttpHeadersParams},
};
use futures_util::StreamExt;
use reqwest::Method;
use tokio::task::JoinSet;

use crate::{
    agent,
    figures::Figure,
    site::{ROOMY, Site},
};

/// Measured pairs.
const PAIRS: usize = 9;

/// Open pages.
const PAGES: usize = 200;

/// Runs watched in the browser.
const WATCHED_RUNS: usize = 3;

const MEASURED_S: f64 = 4.0;
const WATCHED_S: f64 = 20.0;

/// Measures cost and delay.
pub async fn measure(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    eprintln!(
        "live: {PAIRS} pairs of a run with {PAGES} open pages and one with none, and {WATCHED_RUNS} runs in a browser"
    );
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let agent = agent::start(&site, &folder.path().join("agent"), manifests, None).await?;
    let (mut ratios, mut server_cores, mut to_screen_s) = (Vec::new(), Vec::new(), Vec::new());
    // The first pair warms up.
    for pair in 0..=PAIRS {
        let counts = if pair % 2 == 0 { [0, PAGES] } else { [PAGES, 0] };
        let mut rates = [run(&site, counts[0]).await?, run(&site, counts[1]).await?];
        if pair % 2 == 1 {
            rates.reverse();
        }
        let [(alone, _), (open, cores)] = rates;
        eprintln!("  {open:.0} ÷ {alone:.0} requests/s = {:.3}, server {cores:.2} cores", open / alone);
        if pair > 0 {
            ratios.push(open / alone);
            server_cores.push(cores);
        }
    }
    let browser = Chromium::start(&folder.path().join("profile"), &site).await?;
    for run in 1..=WATCHED_RUNS {
        let delays = browser.watch(&site).await?;
        eprintln!("  {} seconds drawn in run {run}", delays.len());
        to_screen_s.extend(delays);
    }
    browser.end().await?;
    agent.stop().await?;
    site.process.stop().await?;
    to_screen_s.sort_by(f64::total_cmp);
    let at = |percent: usize| to_screen_s[(to_screen_s.len() - 1) * percent / 100];
    Ok(vec![
        Figure::from_values(format!("requests/s of a run with {PAGES} open pages ÷ with none"), "ratio", &ratios)
            .at_least(0.99),
        Figure::from_values("CPU of the server during that run", "cores", &server_cores).at_most(0.2),
        Figure::from_values("from the end of a second to the screen", "s", &to_screen_s),
        Figure::new("the same: p95", "s", at(95)).at_most(1.5),
    ])
}

/// Submits a run and returns its id.
async fn submit(client: &Client, duration_s: f64) -> anyhow::Result<RunId> {
    let plan = Plan {
        targets: vec!["rust-hyper".to_owned()],
        sizes: vec![ROOMY.to_owned()],
        scenario: "hash".to_owned(),
        loads: vec![LoadBody::Vus { vus: 10, duration_s }.try_into()?],
        warm_up_s: Some(1.0),
        repetitions: 1,
        ..Plan::default()
    };
    let created: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    Ok(created.runs.first().context("one run")?.id.clone())
}

/// Measures one run with this many open pages: its requests/s and the CPU use of the server in cores.
async fn run(site: &Site, pages: usize) -> anyhow::Result<(f64, f64)> {
    let (before, started) = (site.process.cpu_s()?, SystemTime::now());
    let id = submit(&site.client, MEASURED_S).await?;
    let mut open = JoinSet::new();
    for _ in 0..pages {
        open.spawn(read(site.client.clone(), format!("runs/{id}/live")));
    }
    // This stream ends with the run.
    read(site.client.clone(), format!("api/v1/runs/{id}/series/live")).await?;
    let cores = (site.process.cpu_s()? - before) / started.elapsed()?.as_secs_f64();
    while let Some(page) = open.join_next().await {
        ensure!(page?? > 0, "a page received nothing");
    }
    let list: RunList = site.client.get(&format!("api/v1/runs/{id}")).await?;
    let run = list.runs.first().context("one run")?;
    ensure!(run.counts(), "the run does not count: {:?} {:?}", run.reasons, run.error);
    Ok((run.figures.rps.context("a rate")?, cores))
}

/// Reads a stream to its end and returns its length in bytes.
async fn read(client: Client, path: String) -> anyhow::Result<usize> {
    let mut chunks = client.send(client.request(Method::GET, &path)).await?.bytes_stream();
    let mut bytes = 0;
    while let Some(chunk) = chunks.next().await {
        bytes += chunk?.len();
    }
    Ok(bytes)
}

/// A browser that sends an administrator's token.
struct Chromium {
    browser: Browser,
    handler_task: tokio::task::JoinHandle<()>,
    page: Page,
}

/// Records when each second of the first curve was first ready to be painted.
const NOTE: &str = "(() => { window.seen = []; const known = new Set();
    const look = () => { const trace = document.querySelector('#run-rate .plot')?.data?.[0];
      trace?.x.forEach((at, place) => { if (trace.y[place] === null || known.has(at)) return;
        known.add(at); window.seen.push([at, Date.now()]); });
      requestAnimationFrame(look); };
    look(); return true; })()";

/// Returns the path of Chromium.
fn chromium() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file());
    found.context("chromium is not in PATH; install it with `make chromium`")
}

impl Chromium {
    async fn start(profile: &Path, site: &Site) -> anyhow::Result<Self> {
        let config = BrowserConfig::builder()
            .chrome_executable(chromium()?)
            .no_sandbox()
            .new_headless_mode()
            .user_data_dir(profile)
            .args(["disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync"]);
        let (browser, mut handler) = Browser::launch(config.build().map_err(anyhow::Error::msg)?).await?;
        let handler_task = tokio::spawn(async move { while handler.next().await.is_some() {} });
        let page = browser.new_page("about:blank").await?;
        page.execute(EnableParams::default()).await?;
        let authorization = serde_json::json!({"Authorization": format!("Bearer {}", site.token)});
        page.execute(SetExtraHttpHeadersParams::new(Headers::new(authorization))).await?;
        Ok(Self { browser, handler_task, page })
    }

    /// Watches one run on its page and returns the delay of each second until it was on the screen, s.
    async fn watch(&self, site: &Site) -> anyhow::Result<Vec<f64>> {
        let id = submit(&site.client, WATCHED_S).await?;
        self.page.goto(site.url.join(&format!("runs/{id}"))?.as_str()).await?;
        let opened_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64() * 1e3;
        self.page.evaluate(NOTE).await?;
        read(site.client.clone(), format!("api/v1/runs/{id}/series/live")).await?;
        // Waits until the last seconds are drawn.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let seen: Vec<(f64, f64)> = self.page.evaluate("window.seen").await?.into_value()?;
        let series: SeriesBody = site.client.get(&format!("api/v1/runs/{id}/series")).await?;
        let start_ms = series.start_ms.context("a beginning")? as f64;
        // Excludes seconds from before the page was opened and the last one, which k6 reports when it ends.
        let last_s = series.windows().flat_map(|window| &window.seconds).map(|second| second.at_s).fold(0.0, f64::max);
        let live = seen.iter().filter(|(at_s, _)| start_ms + at_s * 1e3 > opened_ms && *at_s < last_s);
        let took: Vec<f64> = live.map(|(at_s, seen_ms)| (seen_ms - start_ms - at_s * 1e3) / 1e3).collect();
        ensure!(took.len() as f64 >= WATCHED_S * 0.8, "only {} seconds were drawn", took.len());
        Ok(took)
    }

    async fn end(mut self) -> anyhow::Result<()> {
        self.browser.close().await?;
        self.browser.wait().await?;
        self.handler_task.abort();
        Ok(())
    }
}
