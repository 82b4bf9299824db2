//! Behaviour under overload: at three times the rate that the server can handle, throughput, latency and memory stay
//! bounded, and health checks respond as usual.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::{Client, StatusCode};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    figures::{Figure, quantiles},
    history,
    site::Site,
};

/// The title of the table.
pub const TITLE: &str = "three times as many pages as the server can answer";

/// Closed-loop visitors that measure the capacity: enough to keep the server busy.
const VISITORS: usize = 16;
const CAPACITY: Duration = Duration::from_secs(20);
/// Rate of the overload ÷ the measured capacity.
const FACTOR: f64 = 3.0;
const OVERLOAD: Duration = Duration::from_mins(1);
/// Interval of health checks.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Responses {
    answered_ms: Vec<f64>,
    refused_ms: Vec<f64>,
    errors: usize,
}

/// Measures how many pages a second the server can answer, then requests [`FACTOR`] times as many.
pub async fn measure(runs: u32) -> anyhow::Result<Vec<Figure>> {
    eprintln!(
        "overload: {FACTOR} times as many pages as the server can answer, for {OVERLOAD:?}, with {runs} stored runs"
    );
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let server = Site::start(&data).await?;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join("brewbench.db"))).await?;
    history::fill(&pool, runs).await?;
    let pages: Vec<String> = history::pages(&pool).await?.into_iter().map(|request| request.path).collect();
    pool.close().await;
    let visitor =
        Arc::new(Visitor { client: Client::new(), url: server.url.clone(), token: server.token.clone(), pages });
    let capacity = capacity(&visitor).await?;
    let idle_mib = server.process.anonymous_mib()?;
    let over = Arc::new(AtomicBool::new(false));
    let health = tokio::spawn(health(Arc::clone(&visitor), Arc::clone(&over)));
    let (responses, peak_mib) = overload(&server, &visitor, capacity * FACTOR).await?;
    let recovered_s = recovered(&visitor).await?;
    over.store(true, Ordering::Relaxed);
    let health_ms = health.await??;
    server.process.stop().await?;
    let per_second = |answers: &[f64]| answers.len() as f64 / OVERLOAD.as_secs_f64();
    let p99 = |times: &[f64]| quantiles(times)[1];
    Ok(vec![
        Figure::new("pages that the server can answer", "1/s", capacity),
        Figure::new("pages answered ÷ that", "ratio", per_second(&responses.answered_ms) / capacity).at_least(0.9),
        Figure::new("refused with 503", "1/s", per_second(&responses.refused_ms)),
        Figure::new("errors", "", responses.errors as f64).at_most(0.0),
        Figure::new("answered pages: p99", "ms", p99(&responses.answered_ms)).at_most(2_000.0),
        Figure::new("refusals: p99", "ms", p99(&responses.refused_ms)).at_most(1_000.0),
        Figure::new("`/healthz`: p99", "ms", p99(&health_ms)),
        Figure::new("most anonymous memory of the server", "MiB", peak_mib),
        Figure::new("most anonymous memory ÷ before", "ratio", peak_mib / idle_mib).at_most(1.5),
        Figure::new("until a page takes less than 50 ms again", "s", recovered_s).at_most(5.0),
    ])
}

/// Requests pages, among them comparisons that are not cached yet.
struct Visitor {
    client: Client,
    url: reqwest::Url,
    token: String,
    pages: Vec<String>,
}

impl Visitor {
    async fn request(&self, path: &str) -> anyhow::Result<StatusCode> {
        let url = self.url.join(path)?;
        let answer = self.client.get(url).bearer_auth(&self.token).header("accept", "text/html").send().await?;
        let status = answer.status();
        answer.bytes().await?;
        Ok(status)
    }

    fn page(&self, number: usize) -> String {
        self.pages[number % self.pages.len()].replace(history::ROUND, &number.to_string())
    }
}

async fn capacity(visitor: &Arc<Visitor>) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut visitors = JoinSet::new();
    for place in 0..VISITORS {
        let visitor = Arc::clone(visitor);
        visitors.spawn(async move {
            let mut done = 0_usize;
            while started.elapsed() < CAPACITY {
                let status = visitor.request(&visitor.page(done * VISITORS + place)).await?;
                ensure!(status.is_success(), "{status}");
                done += 1;
            }
            Ok(done)
        });
    }
    let mut all = 0;
    while let Some(done) = visitors.join_next().await {
        all += done??;
    }
    Ok(all as f64 / started.elapsed().as_secs_f64())
}

/// Sends requests at a constant rate (open loop).
async fn overload(server: &Site, visitor: &Arc<Visitor>, rate: f64) -> anyhow::Result<(Responses, f64)> {
    let (responses, mut peak_mib) = (Arc::new(Mutex::new(Responses::default())), 0.0_f64);
    let mut clock = interval(Duration::from_secs_f64(1.0 / rate));
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut visitors, started) = (JoinSet::new(), Instant::now());
    let mut number = 1_000_000;
    while started.elapsed() < OVERLOAD {
        let due = clock.tick().await;
        number += 1;
        peak_mib = peak_mib.max(server.process.anonymous_mib()?);
        let (visitor, responses) = (Arc::clone(visitor), Arc::clone(&responses));
        visitors.spawn(async move {
            let answer = visitor.request(&visitor.page(number)).await;
            let took_ms = due.elapsed().as_secs_f64() * 1_000.0;
            let mut responses = responses.lock().expect("no visitor panics");
            match answer {
                Ok(status) if status.is_success() => responses.answered_ms.push(took_ms),
                Ok(StatusCode::SERVICE_UNAVAILABLE) => responses.refused_ms.push(took_ms),
                _ => responses.errors += 1,
            }
        });
    }
    while visitors.join_next().await.is_some() {}
    let responses = Arc::into_inner(responses).context("a visitor is left")?.into_inner().expect("no visitor panics");
    Ok((responses, peak_mib))
}

/// Checks the server's health until the overload ends and returns the response times, ms.
async fn health(visitor: Arc<Visitor>, over: Arc<AtomicBool>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let started = Instant::now();
        ensure!(visitor.request("healthz").await?.is_success(), "not healthy");
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
        sleep(EVERY).await;
    }
    Ok(times)
}

/// Returns the time until a page is as fast as usual again, s.
async fn recovered(visitor: &Visitor) -> anyhow::Result<f64> {
    const USUAL: Duration = Duration::from_millis(50);
    let over = Instant::now();
    loop {
        let started = Instant::now();
        if visitor.request("runs").await?.is_success() && started.elapsed() < USUAL {
            return Ok(over.elapsed().as_secs_f64());
        }
    }
}
