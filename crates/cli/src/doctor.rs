//! `brewbench doctor`

use std::process::ExitCode;

use brewbench::{
    alerts::model::AlertList,
    web::{format, time_ago::exact},
};
use brewbench_agent::doctor::{self, Finding, Rank};
use brewbench_io::client::{Client, Fault};
use brewbench_wire::now_ms;
use clap::Args;
use reqwest::Method;

use crate::{agent::format_findings, common::Common};

/// Check a server: readiness, certificate, clocks, disk, database, backups, agents and alerts.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes:\n  0  nothing needs attention\n  1  something does, or the server does not respond"
)]
pub struct Doctor {
    #[command(flatten)]
    common: Common,
}

/// Results are refused before the disk is full; this leaves time to act.
const LITTLE_DISK: f64 = (1_u64 << 30) as f64;

/// SQLite keeps the write-ahead log at a few megabytes, unless a reader never ends.
const LARGE_LOG: f64 = (256_u64 << 20) as f64;

/// A backup that is older protects little.
const OLD_BACKUP_MS: i64 = 7 * 24 * 3_600_000;

/// The server marks results of agents whose clocks differ more, seconds.
const CLOCK_TOLERANCE: f64 = 2.0;

impl Doctor {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.common.connect()?.client;
        let mut findings = reach(&client).await;
        if doctor::worst(&findings) != Rank::Bad {
            let metrics = client.send(client.request(Method::GET, "metrics")).await?.text().await?;
            findings.extend(inspect(&Metrics(&metrics), now_ms()));
            findings.push(alerts(&client.get("api/v1/alerts").await?));
        }
        self.common.print(&findings, |findings| format_findings(findings))?;
        let fine = doctor::worst(&findings) == Rank::Good;
        Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Checks what needs no token.
async fn reach(client: &Client) -> Vec<Finding> {
    let mut findings: Vec<Finding> = doctor::certificate(client).await.into_iter().collect();
    match doctor::clock_of(client, "readyz").await {
        Ok(clock) => {
            findings.insert(0, Finding::good("server", format!("{} can store results", client.base())));
            findings.extend(clock);
        }
        Err(fault) => {
            let remedy = match fault {
                Fault::Refused { .. } => "its log says more",
                _ => "start it, or fix the address, the network or the certificate",
            };
            findings.insert(0, Finding::bad("server", fault.to_string(), remedy));
        }
    }
    findings
}

/// The metrics for Prometheus.
struct Metrics<'a>(&'a str);

impl Metrics<'_> {
    /// The values of a metric, each with its labels.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.lines().filter_map(move |line| {
            let (series, value) = line.strip_prefix("brewbench_")?.strip_prefix(name)?.rsplit_once(' ')?;
            (series.is_empty() || series.starts_with('{')).then_some((series, value.parse().ok()?))
        })
    }

    fn one(&self, name: &str) -> Option<f64> {
        self.all(name).next().map(|(_, value)| value)
    }

    /// The value with a text in its labels.
    fn with(&self, name: &str, label: &str) -> f64 {
        self.all(name).find(|(labels, _)| labels.contains(label)).map_or(0.0, |(_, value)| value)
    }
}

fn inspect(metrics: &Metrics, now_ms: i64) -> Vec<Finding> {
    let mut findings: Vec<Finding> = metrics.one("disk_free_bytes").map(disk).into_iter().collect();
    findings.push(database(metrics.with("database_bytes", "file"), metrics.with("database_bytes", "log")));
    findings.push(backup(metrics.one("last_backup_timestamp_seconds"), now_ms));
    findings.push(agents(metrics));
    findings
}

fn bytes(amount: f64) -> String {
    format::bytes(Some(amount)).text().to_owned()
}

fn disk(free: f64) -> Finding {
    let observed = format!("{} free", bytes(free));
    if free < LITTLE_DISK {
        return Finding::doubtful(
            "disk",
            observed,
            "free space, or shorten how long time series are kept: `brewbench retention`",
        );
    }
    Finding::good("disk", observed)
}

fn database(file: f64, log: f64) -> Finding {
    let observed = format!("{}, write-ahead log {}", bytes(file), bytes(log));
    if log > LARGE_LOG {
        return Finding::doubtful("database", observed, "restart the server: a reader that never ends keeps the log");
    }
    Finding::good("database", observed)
}

fn backup(made: Option<f64>, now_ms: i64) -> Finding {
    const REMEDY: &str = "run `brewbench backup FILE` every day";
    let Some(made) = made else { return Finding::doubtful("backup", "none was made yet", REMEDY) };
    #[expect(clippy::cast_possible_truncation, reason = "a time in milliseconds")]
    let made_ms = (made * 1000.0) as i64;
    let observed = format!("last made {}", exact(Some(made_ms)));
    if now_ms - made_ms > OLD_BACKUP_MS {
        return Finding::doubtful("backup", observed, REMEDY);
    }
    Finding::good("backup", observed)
}

fn agents(metrics: &Metrics) -> Finding {
    let observed = format!("{} connected", metrics.one("agents_connected").unwrap_or(0.0));
    let wrong: Vec<String> = metrics
        .all("agent_clock_offset_seconds")
        .filter(|(_, offset)| offset.abs() > CLOCK_TOLERANCE)
        .map(|(labels, offset)| format!("{} by {offset:.0} s", labels.trim_matches(['{', '}']).replace("agent=", "")))
        .collect();
    if wrong.is_empty() {
        return Finding::good("agents", observed);
    }
    let observed = format!("{observed}; clocks differ from the server's: {}", wrong.join(", "));
    Finding::doubtful("agents", observed, "synchronize them with NTP (systemd: timedatectl set-ntp true)")
}

fn alerts(list: &AlertList) -> Finding {
    if list.alerts.is_empty() {
        return Finding::good("alerts", "none");
    }
    let sentences: Vec<&str> = list.alerts.iter().map(|alert| alert.sentence.as_str()).collect();
    Finding::doubtful("alerts", sentences.join("; "), "see `brewbench alert`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn ranks(text: &str) -> Vec<(&'static str, Rank)> {
        inspect(&Metrics(text), NOW_MS).iter().map(|finding| (finding.check, finding.rank)).collect()
    }

    #[test]
    fn a_server_in_order_needs_no_attention() {
        let text = "# HELP brewbench_disk_free_bytes Free space\nbrewbench_disk_free_bytes 5000000000.0\n\
            brewbench_database_bytes{part=\"file\"} 100.0\nbrewbench_database_bytes{part=\"log\"} 4000000.0\n\
            brewbench_last_backup_timestamp_seconds 1799990000.0\nbrewbench_agents_connected 2.0\n\
            brewbench_agent_clock_offset_seconds{agent=\"a\"} 0.02\n";
        let good = ["disk", "database", "backup", "agents"].map(|check| (check, Rank::Good));
        assert_eq!(ranks(text), good);
    }

    #[test]
    fn little_space_a_large_log_an_old_backup_and_a_wrong_clock_need_attention() {
        let text = "brewbench_disk_free_bytes 900000000.0\nbrewbench_database_bytes{part=\"file\"} 100.0\n\
            brewbench_database_bytes{part=\"log\"} 300000000.0\nbrewbench_last_backup_timestamp_seconds 1799000000.0\n\
            brewbench_agents_connected 1.0\nbrewbench_agent_clock_offset_seconds{agent=\"b\"} -31.0\n";
        let doubtful = ["disk", "database", "backup", "agents"].map(|check| (check, Rank::Doubtful));
        assert_eq!(ranks(text), doubtful);
        assert!(inspect(&Metrics(text), NOW_MS)[3].observed.ends_with("\"b\" by -31 s"));
        assert_eq!(inspect(&Metrics(""), NOW_MS)[1].observed, "none was made yet");
    }
}
