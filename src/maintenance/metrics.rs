//! `/metrics`: how this server and its agents do, in the text format of Prometheus.
//!
//! Whoever may read may ask: a scraper needs a token of the scope read, as `authorization` in its configuration.

use std::fmt::{self, Display, Write};

use axum::{
    Extension,
    extract::State,
    http::{HeaderName, header},
};
use brewbench_agent::wire::now_ms;

use crate::{
    app::{
        db,
        error::Result,
        http_metrics::{EDGES, Meters},
        state::AppState,
        tls::InUse,
    },
    auth::caller::Read,
    fleet::{self, model::Agent, presence::Presence},
    maintenance,
};

/// The format, by the name that scrapers know it by.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`
pub async fn metrics(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<([(HeaderName, &'static str); 1], String)> {
    let mut page = Page::default();
    page.family("brewbench_info", Kind::Gauge, "Always 1; the version is a label.");
    page.point("brewbench_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(ending) = state.certificate.as_ref().and_then(InUse::ending) {
        const NAME: &str = "brewbench_certificate_expiry_timestamp_seconds";
        page.one(NAME, "When the certificate expires that this server shows.", seconds(ending.at_ms));
    }
    runs(&mut page, &state).await?;
    let agents = fleet::api::all(&state.db, &presence).await?;
    fleet(&mut page, &agents, &presence);
    store(&mut page, &state).await?;
    page.one("brewbench_connections", "Open connections of browsers, programs and agents.", state.connections.count());
    requests(&mut page, &state.meters);
    Ok(([(header::CONTENT_TYPE, FORMAT)], page.0))
}

async fn runs(page: &mut Page, state: &AppState) -> Result<()> {
    let phases = maintenance::store::phases(&state.db.read).await?;
    page.family("brewbench_runs", Kind::Gauge, "Stored runs, by phase.");
    for (phase, count) in &phases {
        page.point("brewbench_runs", &[("phase", phase.as_str())], count);
    }
    let queued = phases.iter().find(|(phase, _)| phase == "queued").map_or(0, |(_, count)| *count);
    page.one("brewbench_queue_length", "Runs that wait for an agent.", queued);
    let waited =
        maintenance::store::waiting_since(&state.db.read).await?.map_or(0.0, |since| seconds(now_ms() - since));
    page.one("brewbench_queue_oldest_seconds", "How long the run waits that waits longest; 0 where none does.", waited);
    if let Some(at) = maintenance::store::last_import(&state.db.read).await? {
        page.one("brewbench_last_import_timestamp_seconds", "When a run was last imported.", seconds(at));
    }
    Ok(())
}

/// What is known of agents: they dial in, nothing can be asked of them from outside.
fn fleet(page: &mut Page, agents: &[Agent], presence: &Presence) {
    let connected = presence.list();
    page.one("brewbench_agents_connected", "Agents that are connected.", connected.len());
    let there: Vec<_> = agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).collect();
    page.family("brewbench_agent_connected", Kind::Gauge, "1 where an agent is connected.");
    for agent in &there {
        page.point("brewbench_agent_connected", &[("agent", agent.name.as_str())], u8::from(agent.connected));
    }
    page.family("brewbench_agent_busy", Kind::Gauge, "1 where a connected agent works on a run.");
    for (name, agent) in &connected {
        page.point("brewbench_agent_busy", &[("agent", name.as_str())], u8::from(agent.busy.is_some()));
    }
    page.family("brewbench_agent_clock_offset_seconds", Kind::Gauge, "An agent's clock minus ours when it connected.");
    for (name, agent) in &connected {
        page.point("brewbench_agent_clock_offset_seconds", &[("agent", name.as_str())], seconds(agent.clock_offset_ms));
    }
    page.family("brewbench_agent_last_seen_timestamp_seconds", Kind::Gauge, "When an agent came or went last.");
    for agent in &there {
        if let Some(at) = agent.last_seen_at_ms {
            page.point("brewbench_agent_last_seen_timestamp_seconds", &[("agent", agent.name.as_str())], seconds(at));
        }
    }
}

async fn store(page: &mut Page, state: &AppState) -> Result<()> {
    page.family("brewbench_database_bytes", Kind::Gauge, "The database on disk: the file, and the log beside it.");
    for (part, name) in [("file", db::FILE.to_owned()), ("log", format!("{}-wal", db::FILE))] {
        let bytes = tokio::fs::metadata(state.config.data.join(name)).await.map_or(0, |about| about.len());
        page.point("brewbench_database_bytes", &[("part", part)], bytes);
    }
    if let Some(backup) = maintenance::store::last_backup(&state.db.read).await? {
        page.one("brewbench_last_backup_timestamp_seconds", "When a backup was last made.", seconds(backup.at_ms));
    }
    Ok(())
}

fn requests(page: &mut Page, meters: &Meters) {
    const NAME: &str = "brewbench_http_request_duration_seconds";
    page.family(NAME, Kind::Histogram, "From a request to the head of its answer, since the server was started.");
    for (kind, class, durations) in meters.all() {
        let labels = [("kind", kind), ("status", class)];
        let counts = durations.cumulative();
        let edges = EDGES.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (edge, count) in edges.zip(counts) {
            page.point(&format!("{NAME}_bucket"), &[labels[0], labels[1], ("le", edge.as_str())], count);
        }
        page.point(&format!("{NAME}_sum"), &labels, durations.sum());
        page.point(&format!("{NAME}_count"), &labels, counts[EDGES.len()]);
    }
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

/// What a family of figures is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Gauge,
    Histogram,
}

/// The page as it is written.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// A figure; it needs a family.
    fn point(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// A family of one.
    fn one(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.point(name, &[], value);
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_not_end_its_label() {
        let mut page = Page::default();
        page.one("a", "Of a kind.", 1.5);
        page.point("b", &[("agent", "a\"} 1\nb\\"), ("le", "+Inf")], 2);
        assert_eq!(page.0, "# HELP a Of a kind.\n# TYPE a gauge\na 1.5\nb{agent=\"a\\\"} 1\\nb\\\\\",le=\"+Inf\"} 2\n");
    }
}
