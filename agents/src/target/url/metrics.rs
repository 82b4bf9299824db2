//! Reads CPU time and memory of a server from its metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_parse::{Sample, Scrape, Value};
use reqwest::{Client, Url};

use super::{addresses, client};
use crate::connection::client::innermost;
use crate::host::process_snapshot::Snapshot;
use crate::target::manifest::{Metrics, Preset};
use crate::target::ready::body;
use crate::wire::series::Consumption;

/// Timeout of a reading: the next one is due after a second.
const TIMEOUT: Duration = Duration::from_millis(900);
/// Timeout of the first reading.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
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
    consumption: Consumption,
    /// Unix milliseconds.
    started_ms: Option<u64>,
}

impl Scraper {
    /// Reads the metrics once, to find their preset. The error is a sentence.
    pub async fn open(metrics: &Metrics) -> Result<Self, String> {
        let Metrics { scrape, preset, labels } = metrics;
        let addresses = addresses(scrape).await?;
        let client = client(scrape, &addresses, reqwest::redirect::Policy::none())?;
        let text = fetch(&client, scrape, FIRST_TIMEOUT).await?;
        let presets = preset.map_or_else(|| Preset::ALL.to_vec(), |preset| vec![preset]);
        let samples = parse(&text, labels);
        let found = presets.iter().find_map(|preset| Some((*preset, read(*preset, &samples)?)));
        let (preset, first) = found.ok_or_else(|| {
            let names: Vec<_> = presets.iter().map(|preset| format!("{} ({preset})", cpu_name(*preset))).collect();
            format!("{scrape} has none of these metrics with the given labels: {}", names.join(", "))
        })?;
        let started_ms = AtomicU64::new(first.started_ms.unwrap_or(0));
        Ok(Self { client, url: scrape.clone(), labels: labels.clone(), preset, started_ms })
    }

    /// Reads the metrics; what is unknown or came too late is absent.
    pub async fn read(&self) -> Consumption {
        let reading = match fetch(&self.client, &self.url, TIMEOUT).await {
            Ok(text) => read(self.preset, &parse(&text, &self.labels)),
            Err(fault) => {
                tracing::debug!(url = %self.url, %fault, "no metrics of the target");
                None
            }
        };
        let Reading { consumption, started_ms } = reading.unwrap_or_default();
        if let Some(started_ms) = started_ms {
            self.started_ms.store(started_ms, Ordering::Relaxed);
        }
        consumption
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

/// Parses the samples that have these labels.
fn parse(text: &str, labels: &BTreeMap<String, String>) -> Vec<Sample> {
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    let samples = Scrape::parse(lines).map(|scrape| scrape.samples).unwrap_or_default();
    let has_labels = |sample: &Sample| labels.iter().all(|(name, value)| sample.labels.get(name) == Some(value));
    samples.into_iter().filter(has_labels).collect()
}

fn cpu_name(preset: Preset) -> &'static str {
    match preset {
        Preset::Process => "process_cpu_seconds_total",
        Preset::Cadvisor => "container_cpu_usage_seconds_total",
        Preset::NodeExporter => "node_cpu_seconds_total",
    }
}

/// Reads the metrics of a preset; `None` without its CPU time.
fn read(preset: Preset, samples: &[Sample]) -> Option<Reading> {
    let values = |name: &'static str| samples.iter().filter(move |sample| sample.metric == name);
    let one = |name| values(name).find_map(number);
    let total = |name| values(name).filter_map(number).reduce(|all, one| all + one);
    let idle = |sample: &&Sample| matches!(sample.labels.get("mode"), Some("idle" | "iowait"));
    let busy =
        || values(cpu_name(preset)).filter(|sample| !idle(sample)).filter_map(number).reduce(|all, one| all + one);
    let (cpu_s, memory, started_s) = match preset {
        Preset::Process => {
            let memory = one("process_resident_memory_bytes");
            (one(cpu_name(preset))?, memory, one("process_start_time_seconds"))
        }
        // A reading with several containers is their sum: labels choose one.
        Preset::Cadvisor => {
            let memory = total("container_memory_working_set_bytes");
            (total(cpu_name(preset))?, memory, one("container_start_time_seconds"))
        }
        Preset::NodeExporter => {
            let used = Some((one("node_memory_MemTotal_bytes"), one("node_memory_MemAvailable_bytes")));
            let used = used.and_then(|(all, free)| Some(all? - free?));
            (busy()?, used, one("node_boot_time_seconds"))
        }
    };
    let consumption =
        Consumption { cpu_us: whole(cpu_s * 1e6), memory_bytes: memory.and_then(whole), ..Consumption::default() };
    let threads_and_files = match preset {
        Preset::Process => (one("process_threads").or_else(|| one("go_threads")), one("process_open_fds")),
        Preset::Cadvisor | Preset::NodeExporter => (None, None),
    };
    let (threads, open_files) = threads_and_files;
    let consumption =
        Consumption { threads: threads.and_then(whole), open_files: open_files.and_then(whole), ..consumption };
    Some(Reading { consumption, started_ms: started_s.and_then(|seconds| whole(seconds * 1e3)) })
}

fn number(sample: &Sample) -> Option<f64> {
    match sample.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => {
            Some(value).filter(|value| value.is_finite())
        }
        Value::Histogram(_) | Value::Summary(_) => None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far below 2^64")]
fn whole(value: f64) -> Option<u64> {
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(preset: Preset, text: &str, labels: &[(&str, &str)]) -> Option<Reading> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read(preset, &parse(text, &labels))
    }

    #[test]
    fn a_process_is_read() {
        let text = "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n\
            # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 12.25\n\
            # TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 2.5e+07\n\
            process_start_time_seconds 1.7636e+09\nprocess_open_fds 9\ngo_threads 7\n";
        let Reading { consumption, started_ms } = reading(Preset::Process, text, &[]).expect("a reading");
        let expected = Consumption {
            cpu_us: Some(12_250_000),
            memory_bytes: Some(25_000_000),
            threads: Some(7),
            open_files: Some(9),
            ..Consumption::default()
        };
        assert_eq!((consumption, started_ms), (expected, Some(1_763_600_000_000)));
        assert_eq!(reading(Preset::Cadvisor, text, &[]), None);
    }

    #[test]
    fn a_container_is_chosen_by_its_labels() {
        let text = "container_cpu_usage_seconds_total{name=\"shop\",cpu=\"cpu00\"} 1\n\
            container_cpu_usage_seconds_total{name=\"shop\",cpu=\"cpu01\"} 2\n\
            container_cpu_usage_seconds_total{name=\"db\",cpu=\"cpu00\"} 40\n\
            container_memory_working_set_bytes{name=\"shop\"} 100\n";
        let Reading { consumption, started_ms } =
            reading(Preset::Cadvisor, text, &[("name", "shop")]).expect("a reading");
        assert_eq!((consumption.cpu_us, consumption.memory_bytes, started_ms), (Some(3_000_000), Some(100), None));
        assert_eq!(reading(Preset::Cadvisor, text, &[("name", "other")]), None);
    }

    #[test]
    fn a_machine_is_busy_when_it_is_not_idle() {
        let text = "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1000\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 3\n\
            node_cpu_seconds_total{cpu=\"1\",mode=\"iowait\"} 50\nnode_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 4\n\
            node_memory_MemTotal_bytes 1000\nnode_memory_MemAvailable_bytes 300\nnode_boot_time_seconds 5\n";
        let Reading { consumption, started_ms } = reading(Preset::NodeExporter, text, &[]).expect("a reading");
        assert_eq!(
            (consumption.cpu_us, consumption.memory_bytes, started_ms),
            (Some(7_000_000), Some(700), Some(5_000))
        );
    }

    #[test]
    fn odd_numbers_are_unknown() {
        for value in ["NaN", "-1", "+Inf", "1e300", "x"] {
            let text = format!("process_cpu_seconds_total 1\nprocess_resident_memory_bytes {value}\n");
            let memory = reading(Preset::Process, &text, &[]).and_then(|reading| reading.consumption.memory_bytes);
            assert_eq!(memory, None, "{value}");
        }
    }
}
