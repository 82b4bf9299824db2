//! Reads CPU time and memory of a server from its metrics in the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brewbench_io::client::innermost;
use brewbench_wire::manifest::{Metrics, Preset};
use brewbench_wire::series::Consumption;
use reqwest::{Client, Url};

use super::exposition::{Labels, Series, series};
use super::hosts::Hosts;
use crate::host::process_snapshot::Snapshot;
use crate::target::ready::body;

/// Timeout of a reading: the next one is due after a second.
const TIMEOUT: Duration = Duration::from_millis(900);
/// Timeout of the first reading.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
/// A start time is calculated from the time since the boot, so it moves a little as the machine's clock is corrected.
const CLOCK_JITTER_MS: u64 = 2_000;
/// Maximum bytes of a response.
const MAX_BYTES: usize = 16 << 20;

/// Reads metrics.
#[derive(Debug)]
pub struct Scraper {
    client: Client,
    url: Url,
    labels: BTreeMap<String, String>,
    preset: Preset,
    /// When the server started, as last read, unix milliseconds; 0 if unknown.
    started_ms: AtomicU64,
}

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    usage: Consumption,
    /// Unix milliseconds.
    started_ms: Option<u64>,
}

impl Scraper {
    /// Reads the metrics once, to find their preset. The error is a sentence.
    pub async fn open(metrics: &Metrics) -> Result<Self, String> {
        let Metrics { scrape, preset, labels } = metrics;
        let hosts = Hosts::resolve(scrape, &[]).await?;
        let client = hosts.client()?;
        let text = fetch(&client, scrape, FIRST_TIMEOUT).await?;
        let presets = preset.map_or_else(|| Preset::ALL.to_vec(), |preset| vec![preset]);
        let page = Page { text: &text, wanted: labels };
        let mut tried = presets.iter().map(|preset| (*preset, page.read(*preset)));
        let found = tried.find(|(_, read)| *read != Err(Fault::Missing));
        let (preset, first) = match found {
            Some((preset, Ok(first))) => (preset, first),
            Some((_, Err(Fault::Several(name)))) => {
                return Err(format!("{scrape} has {name} of several servers: choose one in metrics.labels"));
            }
            Some((_, Err(Fault::Missing))) | None => {
                let names: Vec<_> = presets.iter().map(|preset| format!("{} ({preset})", cpu_name(*preset))).collect();
                return Err(format!("{scrape} has none of these metrics with the given labels: {}", names.join(", ")));
            }
        };
        let started_ms = AtomicU64::new(first.started_ms.unwrap_or(0));
        Ok(Self { client, url: scrape.clone(), labels: labels.clone(), preset, started_ms })
    }

    /// Reads the metrics; what is unknown or came too late is absent.
    pub async fn read(&self) -> Consumption {
        let reading = match fetch(&self.client, &self.url, TIMEOUT).await {
            Ok(text) => Page { text: &text, wanted: &self.labels }.read(self.preset).ok(),
            Err(fault) => {
                tracing::debug!(url = %self.url, %fault, "no metrics of the target");
                None
            }
        };
        let Reading { usage, started_ms } = reading.unwrap_or_default();
        let last = self.started_ms.load(Ordering::Relaxed);
        if let Some(started_ms) = started_ms.filter(|now| now.abs_diff(last) > CLOCK_JITTER_MS) {
            self.started_ms.store(started_ms, Ordering::Relaxed);
        }
        usage
    }

    /// Returns the server as one process that started when its metrics say; empty if they do not say it.
    pub fn processes(&self) -> Snapshot {
        match self.started_ms.load(Ordering::Relaxed) {
            0 => Snapshot::default(),
            started_ms => Snapshot::of_one(started_ms),
        }
    }

    /// Describes what the metrics are of, for facts about the run.
    pub fn describe(&self) -> String {
        let of = match self.preset {
            Preset::Process => "the process",
            Preset::Cadvisor => "the container",
            Preset::NodeExporter => "the whole machine",
        };
        format!("{} of {of} from {}", self.preset, self.url)
    }
}

async fn fetch(client: &Client, url: &Url, limit: Duration) -> Result<String, String> {
    let fetched = async {
        let mut response = client.get(url.clone()).send().await.map_err(|error| innermost(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("status {}", status.as_u16()));
        }
        let bytes = body(&mut response, MAX_BYTES).await.map_err(|error| innermost(&error))?;
        if bytes.len() >= MAX_BYTES {
            return Err(format!("more than {} MiB", MAX_BYTES >> 20));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let late = |_| Err(format!("no response within {} ms", limit.as_millis()));
    let fetched = tokio::time::timeout(limit, fetched).await.unwrap_or_else(late);
    fetched.map_err(|fault| format!("GET {url}: {fault}"))
}

/// Why metrics can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    /// The preset's CPU time is missing.
    Missing,
    /// Several servers have this metric.
    Several(&'static str),
}

/// The metrics of one server.
struct Page<'a> {
    text: &'a str,
    /// Only series with these labels count.
    wanted: &'a BTreeMap<String, String>,
}

impl Page<'_> {
    /// Adds up a metric over the values of some labels. Fails if series differ in other labels, because then they are
    /// of several servers. Values that are negative or no numbers are unknown.
    fn total(&self, name: &'static str, over: &[&str], counts: fn(&Labels) -> bool) -> Result<Option<u64>, Fault> {
        let is_wanted = |labels: &Labels| self.wanted.iter().all(|(name, value)| labels.get(name) == Some(value));
        let found: Vec<Series> = series(self.text, name).filter(|one| is_wanted(&one.labels)).collect();
        let others = found.iter().map(|one| {
            let mut labels = one.labels.clone();
            labels.retain(|name, _| !over.contains(&name.as_str()));
            labels
        });
        if others.collect::<BTreeSet<_>>().len() > 1 {
            return Err(Fault::Several(name));
        }
        let sum = found.iter().filter(|one| counts(&one.labels)).map(|one| one.value).reduce(|sum, one| sum + one);
        Ok(sum.and_then(|sum| whole(sum * scale(name))))
    }

    fn unlabelled_total(&self, name: &'static str) -> Result<Option<u64>, Fault> {
        self.total(name, &[], |_| true)
    }

    /// Reads the metrics of a preset.
    fn read(&self, preset: Preset) -> Result<Reading, Fault> {
        let cpu = cpu_name(preset);
        let mut usage = Consumption::default();
        let started_ms = match preset {
            Preset::Process => {
                usage.cpu_us = self.unlabelled_total(cpu)?;
                // The files that it has mapped are part of it, so it says nothing of the memory that is held.
                usage.memory_bytes = self.unlabelled_total("process_resident_memory_bytes")?;
                usage.open_files = self.unlabelled_total("process_open_fds")?;
                usage.threads = self.unlabelled_total("process_threads")?.or(self.unlabelled_total("go_threads")?);
                self.unlabelled_total("process_start_time_seconds")?
            }
            Preset::Cadvisor => {
                // Per core, or as one series, or as both.
                let is_total = |labels: &Labels| labels.get("cpu").is_some_and(|cpu| cpu == "total");
                let total = self.total(cpu, &["cpu"], is_total)?;
                usage.cpu_us = total.or(self.total(cpu, &["cpu"], |_| true)?);
                usage.memory_bytes = self.unlabelled_total("container_memory_working_set_bytes")?;
                let all = self.unlabelled_total("container_memory_usage_bytes")?;
                let active = self.unlabelled_total("container_memory_total_active_file_bytes")?;
                let inactive = self.unlabelled_total("container_memory_total_inactive_file_bytes")?;
                usage.file_cache_bytes = active.zip(inactive).map(|(active, inactive)| active + inactive);
                usage.held_memory_bytes = difference(all, usage.file_cache_bytes);
                self.unlabelled_total("container_start_time_seconds")?
            }
            Preset::NodeExporter => {
                let is_busy = |labels: &Labels| {
                    labels.get("mode").is_some_and(|mode| !["idle", "iowait", "steal"].contains(&mode.as_str()))
                };
                usage.cpu_us = self.total(cpu, &["cpu", "mode"], is_busy)?;
                let all = self.unlabelled_total("node_memory_MemTotal_bytes")?;
                let free = self.unlabelled_total("node_memory_MemAvailable_bytes")?;
                usage.held_memory_bytes = difference(all, free);
                usage.memory_bytes = usage.held_memory_bytes;
                let shared = self.unlabelled_total("node_memory_Shmem_bytes")?;
                usage.file_cache_bytes = difference(self.unlabelled_total("node_memory_Cached_bytes")?, shared);
                self.unlabelled_total("node_boot_time_seconds")?
            }
        };
        usage.cpu_us.ok_or(Fault::Missing)?;
        Ok(Reading { usage, started_ms })
    }
}

fn difference(all: Option<u64>, part: Option<u64>) -> Option<u64> {
    all?.checked_sub(part?)
}

fn cpu_name(preset: Preset) -> &'static str {
    match preset {
        Preset::Process => "process_cpu_seconds_total",
        Preset::Cadvisor => "container_cpu_usage_seconds_total",
        Preset::NodeExporter => "node_cpu_seconds_total",
    }
}

/// Returns the factor from a metric's unit to microseconds of CPU, Unix milliseconds, or itself.
fn scale(name: &str) -> f64 {
    match name {
        _ if name.ends_with("_seconds_total") => 1e6,
        _ if name.ends_with("_seconds") => 1e3,
        _ => 1.0,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far below 2^64")]
fn whole(value: f64) -> Option<u64> {
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(preset: Preset, text: &str, labels: &[(&str, &str)]) -> Result<Reading, Fault> {
        let wanted = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Page { text, wanted: &wanted }.read(preset)
    }

    #[test]
    fn a_process_is_read() {
        let text = "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n\
            # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 12.25\n\
            # TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 2.5e+07\n\
            process_start_time_seconds 1.7636e+09\nprocess_open_fds 9\ngo_threads 7\n";
        let usage = Consumption {
            cpu_us: Some(12_250_000),
            memory_bytes: Some(25_000_000),
            threads: Some(7),
            open_files: Some(9),
            ..Consumption::default()
        };
        let expected = Reading { usage, started_ms: Some(1_763_600_000_000) };
        assert_eq!(reading(Preset::Process, text, &[]), Ok(expected));
        assert_eq!(reading(Preset::Cadvisor, text, &[]), Err(Fault::Missing));
    }

    #[test]
    fn a_container_is_chosen_by_its_labels_and_never_added_to_another() {
        let text = "container_cpu_usage_seconds_total{id=\"/a\",name=\"shop\",cpu=\"cpu00\"} 1\n\
            container_cpu_usage_seconds_total{id=\"/a\",name=\"shop\",cpu=\"cpu01\"} 2\n\
            container_cpu_usage_seconds_total{id=\"/\",cpu=\"total\"} 40\n\
            container_memory_working_set_bytes{id=\"/a\",name=\"shop\"} 100\n";
        let found = reading(Preset::Cadvisor, text, &[("name", "shop")]).expect("a reading");
        assert_eq!((found.usage.cpu_us, found.usage.memory_bytes), (Some(3_000_000), Some(100)));
        assert_eq!((found.usage.held_memory_bytes, found.usage.file_cache_bytes), (None, None));
        let files = "container_memory_usage_bytes{name=\"shop\"} 120\n\
            container_memory_total_active_file_bytes{name=\"shop\"} 70\n\
            container_memory_total_inactive_file_bytes{name=\"shop\"} 20\n";
        let whole = reading(Preset::Cadvisor, &format!("{text}{files}"), &[("name", "shop")]).expect("a reading").usage;
        assert_eq!(
            (whole.memory_bytes, whole.held_memory_bytes, whole.file_cache_bytes),
            (Some(100), Some(30), Some(90))
        );
        assert_eq!(reading(Preset::Cadvisor, text, &[("name", "other")]), Err(Fault::Missing));
        assert_eq!(reading(Preset::Cadvisor, text, &[]), Err(Fault::Several("container_cpu_usage_seconds_total")));
        let both = format!("{text}container_cpu_usage_seconds_total{{id=\"/a\",name=\"shop\",cpu=\"total\"}} 3.5\n");
        let found = reading(Preset::Cadvisor, &both, &[("name", "shop")]).expect("a reading");
        assert_eq!(found.usage.cpu_us, Some(3_500_000), "the total is not added to its parts");
    }

    #[test]
    fn a_machine_is_busy_when_it_is_not_idle() {
        let text = "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1000\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 3\n\
            node_cpu_seconds_total{cpu=\"1\",mode=\"iowait\"} 50\nnode_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 4\n\
            node_cpu_seconds_total{cpu=\"1\",mode=\"steal\"} 90\n\
            node_memory_MemTotal_bytes 1000\nnode_memory_MemAvailable_bytes 300\nnode_memory_Cached_bytes 250\n\
            node_memory_Shmem_bytes 50\nnode_boot_time_seconds 5\n";
        let Reading { usage, started_ms } = reading(Preset::NodeExporter, text, &[]).expect("a reading");
        assert_eq!((usage.cpu_us, usage.memory_bytes, started_ms), (Some(7_000_000), Some(700), Some(5_000)));
        assert_eq!((usage.held_memory_bytes, usage.file_cache_bytes), (Some(700), Some(200)));
    }

    #[test]
    fn odd_numbers_are_unknown() {
        for value in ["NaN", "-1", "+Inf", "1e300", "x"] {
            let text = format!("process_cpu_seconds_total 1\nprocess_resident_memory_bytes {value}\n");
            let found = reading(Preset::Process, &text, &[]).expect("a reading");
            assert_eq!((found.usage.cpu_us, found.usage.memory_bytes), (Some(1_000_000), None), "{value}");
        }
    }
}
