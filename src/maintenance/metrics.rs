//! `/metrics`: the state of the server and its agents as `OpenMetrics` text for Prometheus.
//!
//! A scraper needs a token with the scope read, as `authorization` in its configuration.

use std::sync::atomic::AtomicU64;

use axum::{
    Extension,
    extract::State,
    http::{HeaderName, header},
};
use brewbench_wire::now_ms;
use prometheus_client::{
    encoding::text::encode,
    metrics::{
        family::Family,
        gauge::{ConstGauge, Gauge},
        info::Info,
    },
    registry::Registry,
};
use tokio::task::spawn_blocking;

use crate::{
    app::{
        db,
        error::{Error, Result},
        state::AppState,
        tls::CurrentCertificate,
    },
    auth::caller::Read,
    fleet::{self, model::Agent, presence::Presence},
    maintenance::{self, health},
};

/// The content type of the format.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /metrics`
pub async fn metrics(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<([(HeaderName, &'static str); 1], String)> {
    let mut registry = Registry::with_prefix("brewbench");
    registry.register("build", "The version of this server", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
    if let Some(ending) = state.certificate.as_ref().and_then(CurrentCertificate::ending) {
        let help = "When the server's TLS certificate expires";
        register_gauge(&mut registry, "certificate_expiry_timestamp_seconds", help, seconds(ending.at_ms));
    }
    runs(&mut registry, &state).await?;
    let agents = fleet::api::all(&state.db, &presence).await?;
    fleet(&mut registry, &agents, &presence);
    store(&mut registry, &state).await?;
    let help = "Open connections of browsers, API clients and agents";
    register_gauge(&mut registry, "connections", help, state.connections.count() as f64);
    let help = "Time from a request to the response headers, since the server started";
    registry.register("http_request_duration_seconds", help, state.http_metrics.0.clone());
    let mut page = String::new();
    encode(&mut page, &registry).map_err(Error::internal)?;
    Ok(([(header::CONTENT_TYPE, FORMAT)], page))
}

async fn runs(registry: &mut Registry, state: &AppState) -> Result<()> {
    let phases = maintenance::store::phases(&state.db.read).await?;
    let counts = phases.iter().map(|(phase, count)| (phase.as_str(), *count as f64));
    family(registry, "runs", "Stored runs, by phase", "phase", counts);
    let queued = phases.iter().find(|(phase, _)| phase == "queued").map_or(0, |(_, count)| *count);
    register_gauge(registry, "queue_length", "Runs waiting for an agent", queued as f64);
    let waited =
        maintenance::store::waiting_since(&state.db.read).await?.map_or(0.0, |since| seconds(now_ms() - since));
    let help = "How long the longest-waiting run has been queued; 0 if the queue is empty";
    register_gauge(registry, "queue_oldest_seconds", help, waited);
    if let Some(at) = maintenance::store::last_import(&state.db.read).await? {
        register_gauge(registry, "last_import_timestamp_seconds", "When a run was last imported", seconds(at));
    }
    Ok(())
}

/// Metrics of agents. Agents connect to the server, so they cannot be scraped themselves.
fn fleet(registry: &mut Registry, agents: &[Agent], presence: &Presence) {
    let connected = presence.list();
    register_gauge(registry, "agents_connected", "Agents that are connected", connected.len() as f64);
    let registered: Vec<_> = agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).collect();
    let points = registered.iter().map(|agent| (agent.name.as_str(), f64::from(u8::from(agent.connected))));
    family(registry, "agent_connected", "1 if the agent is connected", "agent", points);
    let points = connected.iter().map(|(name, agent)| (name.as_str(), f64::from(u8::from(agent.busy.is_some()))));
    family(registry, "agent_busy", "1 if the connected agent is working on a run", "agent", points);
    let points = connected.iter().map(|(name, agent)| (name.as_str(), seconds(agent.clock_offset_ms)));
    let help = "The agent's clock minus the server's clock, measured when it connected";
    family(registry, "agent_clock_offset_seconds", help, "agent", points);
    let points = registered.iter().filter_map(|agent| Some((agent.name.as_str(), seconds(agent.last_seen_at_ms?))));
    let help = "When the agent last connected or disconnected";
    family(registry, "agent_last_seen_timestamp_seconds", help, "agent", points);
}

async fn store(registry: &mut Registry, state: &AppState) -> Result<()> {
    let mut sizes = Vec::new();
    for (part, name) in [("file", db::FILE.to_owned()), ("log", format!("{}-wal", db::FILE))] {
        let bytes = tokio::fs::metadata(state.config.data.join(name)).await.map_or(0, |about| about.len());
        sizes.push((part, bytes as f64));
    }
    family(registry, "database_bytes", "Size of the database on disk: the file and its write-ahead log", "part", sizes);
    let data = state.config.data.clone();
    if let Ok(Ok(free)) = spawn_blocking(move || health::free_bytes(&data)).await {
        register_gauge(registry, "disk_free_bytes", "Free space on the disk of the data folder", free as f64);
    }
    if let Some(backup) = maintenance::store::last_backup(&state.db.read).await? {
        register_gauge(registry, "last_backup_timestamp_seconds", "When a backup was last made", seconds(backup.at_ms));
    }
    Ok(())
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

fn register_gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    registry.register(name, help, ConstGauge::new(value));
}

/// Registers a gauge with one label.
fn family<'a>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    points: impl IntoIterator<Item = (&'a str, f64)>,
) {
    let gauges = Family::<[(&'static str, String); 1], Gauge<f64, AtomicU64>>::default();
    for (value, figure) in points {
        gauges.get_or_create(&[(label, value.to_owned())]).set(figure);
    }
    registry.register(name, help, gauges);
}
