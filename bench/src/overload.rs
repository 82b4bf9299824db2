//! What is left of a server that is asked for three times as much as it can do: as many answers as before, soon, in bounded
//! memory, and everything that is no page as if nothing were.

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
    history::{self, quantiles},
    site::Site,
};

/// The word that asks for this.
pub const ASKED: &str = "overload";

/// Visitors who each ask for the next page once they have the last: as many as it takes to keep a server busy.
const VISITORS: usize = 16;
const CAPACITY: Duration = Duration::from_secs(20);
/// So much more than it can do is asked for.
const FACTOR: f64 = 3.0;
const OVERLOAD: Duration = Duration::from_mins(1);
/// How often somebody looks whether the server is healthy.
const EVERY: Duration = Duration::from_millis(100);

/// What came of it.
pub struct Overload {
    /// Pages a second at which the server is busy and nobody asks for more.
    pub capacity: f64,
    /// Pages a second that were answered under overload.
    pub answered: f64,
    /// Refusals a second meanwhile.
    pub refused: f64,
    /// Neither.
    pub errors: usize,
    /// 99 of 100 of those answers came within this, ms.
    pub answered_p99_ms: f64,
    /// And of the refusals.
    pub refused_p99_ms: f64,
    /// And of the answers to `/healthz`.
    pub health_p99_ms: f64,
    /// Memory of the server's own before, and the most of it meanwhile, MiB.
    pub memory_mib: [f64; 2],
    /// From the end of it until a page came as fast as usual, s.
    pub recovered_s: f64,
}

#[derive(Default)]
struct Seen {
    answered_ms: Vec<f64>,
    refused_ms: Vec<f64>,
    errors: usize,
}

/// Asks for so much.
pub async fn measure() -> anyhow::Result<Overload> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let server = Site::start(&data).await?;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join("brewbench.db"))).await?;
    history::fill(&pool, history::RUNS).await?;
    let pages: Vec<String> = history::pages(&pool).await?.into_iter().map(|(_, path)| path).collect();
    pool.close().await;
    let visitor =
        Arc::new(Visitor { client: Client::new(), url: server.url.clone(), token: server.token.clone(), pages });
    let capacity = capacity(&visitor).await?;
    let idle_mib = server.process.anonymous_mib()?;
    let over = Arc::new(AtomicBool::new(false));
    let health = tokio::spawn(health(Arc::clone(&visitor), Arc::clone(&over)));
    let (seen, peak_mib) = overload(&server, &visitor, capacity * FACTOR).await?;
    let recovered_s = recovered(&visitor).await?;
    over.store(true, Ordering::Relaxed);
    let health_p99_ms = quantiles(health.await??)[1];
    server.process.stop().await?;
    let (answered, refused) = (seen.answered_ms.len() as f64, seen.refused_ms.len() as f64);
    let p99 = |times: Vec<f64>| if times.is_empty() { 0.0 } else { quantiles(times)[1] };
    Ok(Overload {
        capacity,
        answered: answered / OVERLOAD.as_secs_f64(),
        refused: refused / OVERLOAD.as_secs_f64(),
        errors: seen.errors,
        answered_p99_ms: p99(seen.answered_ms),
        refused_p99_ms: p99(seen.refused_ms),
        health_p99_ms,
        memory_mib: [idle_mib, peak_mib],
        recovered_s,
    })
}

/// Who asks for pages, comparisons among them that nobody has seen before.
struct Visitor {
    client: Client,
    url: reqwest::Url,
    token: String,
    pages: Vec<String>,
}

impl Visitor {
    async fn ask(&self, path: &str) -> anyhow::Result<StatusCode> {
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
                let status = visitor.ask(&visitor.page(done * VISITORS + place)).await?;
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

/// Asks by the clock, whatever becomes of it.
async fn overload(server: &Site, visitor: &Arc<Visitor>, rate: f64) -> anyhow::Result<(Seen, f64)> {
    let (seen, mut peak_mib) = (Arc::new(Mutex::new(Seen::default())), 0.0_f64);
    let mut clock = interval(Duration::from_secs_f64(1.0 / rate));
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut visitors, started) = (JoinSet::new(), Instant::now());
    let mut number = 1_000_000;
    while started.elapsed() < OVERLOAD {
        let due = clock.tick().await;
        number += 1;
        peak_mib = peak_mib.max(server.process.anonymous_mib()?);
        let (visitor, seen) = (Arc::clone(visitor), Arc::clone(&seen));
        visitors.spawn(async move {
            let answer = visitor.ask(&visitor.page(number)).await;
            let took_ms = due.elapsed().as_secs_f64() * 1_000.0;
            let mut seen = seen.lock().expect("no visitor panics");
            match answer {
                Ok(status) if status.is_success() => seen.answered_ms.push(took_ms),
                Ok(StatusCode::SERVICE_UNAVAILABLE) => seen.refused_ms.push(took_ms),
                _ => seen.errors += 1,
            }
        });
    }
    while visitors.join_next().await.is_some() {}
    let seen = Arc::into_inner(seen).context("a visitor is left")?.into_inner().expect("no visitor panics");
    Ok((seen, peak_mib))
}

/// Looks at the server's health until it is over; gives how long each answer took, ms.
async fn health(visitor: Arc<Visitor>, over: Arc<AtomicBool>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let started = Instant::now();
        ensure!(visitor.ask("healthz").await?.is_success(), "not healthy");
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
        sleep(EVERY).await;
    }
    Ok(times)
}

/// How long it takes until a page comes as fast as usual, s.
async fn recovered(visitor: &Visitor) -> anyhow::Result<f64> {
    const USUAL: Duration = Duration::from_millis(50);
    let over = Instant::now();
    loop {
        let started = Instant::now();
        if visitor.ask("runs").await?.is_success() && started.elapsed() < USUAL {
            return Ok(over.elapsed().as_secs_f64());
        }
    }
}
