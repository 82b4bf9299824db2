//! k6, the load generator, as a program on this machine.

mod archive;
mod exit;
mod exports;
mod find;
mod log;
mod modules;
mod options;
mod paused;
pub mod receiver;
pub mod remote;
pub mod remote_write;
mod scale;
mod script;
mod tags;
pub mod version;
mod waits;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use exit::{is_aborted, judge};
use exports::Exports;
use find::{folder_of_script, read_version};
pub use log::{Log, name_thresholds};
pub use paused::Paused;
use script::Archive;
pub use script::Script;
use version::{SUPPORTED, Version};

use brewbench_wire::engine::{EngineKind, EngineOffer};
use brewbench_wire::messages::ScriptReport;
use brewbench_wire::run_spec::{HttpVersion, RunSpec};

use super::round::{Bounds, LoadTarget, Round};
use crate::sandbox::Group;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{Plan, Process, find_program, last_lines};
use crate::series::clock::Clock;
use crate::series::recording::Recording;

/// How to install k6, for messages.
pub const GET_IT: &str =
    "install it with `go install go.k6.io/k6@v1.8.1`, then put it in PATH or name it with --k6 PATH";

/// Statistics of every trend in the summary.
const TREND_STATS: &str = "avg,min,med,max,p(90),p(95),p(99),p(99.9),count";

/// The output for the time series.
const SERIES_OUTPUT: &str = "experimental-prometheus-rw";

/// Settings of k6's Go runtime that can be set in the agent's environment, with their defaults. `GOGC` is the heap
/// growth in percent that triggers a garbage collection.
const RUNTIME: [(&str, Option<&str>); 3] = [("GOGC", Some("200")), ("GOMAXPROCS", None), ("GOMEMLIMIT", None)];

/// Value of `--address` that disables k6's REST interface.
const NO_INTERFACE: &str = "";

/// The variable that disables k6's usage report.
const NO_USAGE_REPORT: &str = "K6_NO_USAGE_REPORT";

/// How long k6 lets iterations finish at the end of a load that replaces the script's own: as long as k6 does by
/// itself, which also bounds a script that sleeps for longer.
const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// Time for k6's own start and exit.
const MARGIN: Duration = Duration::from_secs(5);

/// Timeout of the script's top-level code before a run.
pub const INSPECTION: Duration = Duration::from_mins(2);

/// A usable k6.
#[derive(Clone, Debug)]
pub struct K6 {
    path: PathBuf,
    version: Version,
    /// Folder of the programs that it starts, if it is a shell script.
    beside: Option<PathBuf>,
    /// Folders with its own files.
    also: Vec<PathBuf>,
}

/// No usable k6 was found.
#[derive(Debug, thiserror::Error)]
pub enum NoK6 {
    /// Not found.
    #[error("k6 not found {0}; {GET_IT}")]
    Missing(String),
    /// The version is not [`SUPPORTED`].
    #[error("{} is k6 {version}; supported is {SUPPORTED}; {GET_IT}", path.display())]
    Unsupported {
        /// Path of the program.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
    /// It does not work like k6.
    #[error("{} is not a working k6: {reason}; {GET_IT}", path.display())]
    Broken {
        /// Path of the program.
        path: PathBuf,
        /// The unexpected behaviour.
        reason: String,
    },
}

impl NoK6 {
    /// Describes an unsupported k6 for the server; `None` if there is no k6.
    pub fn offer(&self) -> Option<EngineOffer> {
        let Self::Unsupported { path, version } = self else { return None };
        Some(offer(path, version.as_str(), Some(self.to_string())))
    }
}

/// Describes a k6 for the server.
pub fn offer(path: &Path, version: &str, fault: Option<String>) -> EngineOffer {
    EngineOffer {
        name: EngineKind::K6.as_str().to_owned(),
        version: version.to_owned(),
        path: path.display().to_string(),
        supported: SUPPORTED.to_string(),
        fault,
        capabilities: EngineKind::K6.capabilities().to_vec(),
    }
}

/// A k6 process, and what it reports; `None` for a warm-up.
type Started = (Process, Option<Log>);

impl K6 {
    /// Finds k6: at the given path, else in `PATH`, else next to this program.
    pub async fn find(given: Option<&Path>) -> Result<Self, NoK6> {
        let beside = || std::env::current_exe().ok()?.parent().map(|folder| folder.join("k6"));
        let path = match given {
            Some(path) => find_program(path).ok_or_else(|| NoK6::Missing(format!("at {}", path.display())))?,
            None => find_program(Path::new("k6"))
                .or_else(|| beside().filter(|path| path.is_file()))
                .ok_or_else(|| NoK6::Missing("in PATH or next to this program".to_owned()))?,
        };
        let beside = folder_of_script(&path);
        let version = read_version(&path, beside.as_slice()).await;
        let version = version.map_err(|reason| NoK6::Broken { path: path.clone(), reason })?;
        if SUPPORTED.covers(&version) {
            Ok(Self { path, version, beside, also: Vec::new() })
        } else {
            Err(NoK6::Unsupported { path, version })
        }
    }

    /// Adds a folder with files that k6 may read and write.
    #[must_use]
    pub fn with_folder(mut self, folder: &Path) -> Self {
        self.also.push(folder.to_owned());
        self
    }

    /// Describes this k6 for the server.
    pub fn offer(&self) -> EngineOffer {
        offer(&self.path, self.version.as_str(), None)
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts k6, which pushes its metrics to a [recording](crate::series::recording), if there is one. Fails if it
    /// can't be executed.
    pub fn start(
        &self,
        script: &Script,
        load: &LoadTarget<'_>,
        round: Round,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Started> {
        let arguments = self.round_arguments(script, load, round, recording);
        self.run(script, load, (arguments, round, NO_INTERFACE), recording, group)
    }

    /// Starts k6 for the measured load, paused until resumed.
    pub fn start_paused(
        &self,
        script: &Script,
        load: &LoadTarget<'_>,
        paused: &Paused,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Started> {
        let mut arguments = self.round_arguments(script, load, Round::Measure, recording);
        arguments.push("--paused".to_owned());
        self.run(script, load, (arguments, Round::Measure, &paused.address()), recording, group)
    }

    fn run(
        &self,
        script: &Script,
        load: &LoadTarget<'_>,
        (mut arguments, round, interface): (Vec<String>, Round, &str),
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Started> {
        arguments.extend(load.reach.arguments(load.own));
        let own = script.arguments(load.base_url, Archive::Round(round), interface);
        arguments.extend(own.map_err(io::Error::other)?);
        let mut plan = self.plan(script, arguments, load.cores);
        plan.environment.extend(modules::environment(load.base_url, load.own));
        plan.environment.extend(recording.into_iter().flat_map(|recording| push_to(recording, &self.version)));
        Ok(match round {
            Round::WarmUp => (Process::start(&plan, group)?, None),
            Round::Measure => {
                let log = Log::new(recording.map_or_else(Clock::new, Recording::clock));
                let log = match recording {
                    Some(recording) => log.notifying(recording.edges()),
                    None => log,
                };
                (Process::start_observed(&plan, group, log.observer())?, Some(log))
            }
        })
    }

    /// Has k6 read a script, and checks that k6 can run the measured round; returns the bounds of its load, and a report.
    /// `k6 inspect` executes the script's top-level code twice, for at most `limit`. The error is a sentence.
    pub async fn prepare(
        &self,
        script: &mut Script,
        group: &Group,
        cores: &[usize],
        limit: Duration,
    ) -> Result<(Bounds, ScriptReport), String> {
        let begun = Instant::now();
        let log = self.inspect(script, Archive::Exports, (group, cores), limit).await?;
        let exports = Exports::read(&log)?;
        let report = exports.report(&log);
        script.set_exports(exports);
        let rest = limit.saturating_sub(begun.elapsed());
        let output = self.inspect(script, Archive::Round(Round::Measure), (group, cores), rest).await?;
        let required = script::Requirements::read(&output)
            .ok_or_else(|| format!("k6 inspect does not report the duration of the script: {}", last_lines(&output)))?;
        let longest = required.load + required.around + MARGIN;
        Ok((Bounds { longest, rps_limit: required.rps_limit }, report))
    }

    /// Runs `k6 inspect`; returns its output. The error is a sentence with k6's message.
    async fn inspect(
        &self,
        script: &Script,
        archive: Archive,
        (group, cores): (&Group, &[usize]),
        limit: Duration,
    ) -> Result<String, String> {
        let mut arguments = to_strings(&["inspect", "--execution-requirements", "--no-color"]);
        // Like that of a run, so that a script can't tell the check from a run by it.
        let target = Paused::choose().map_or_else(|_| "127.0.0.1".to_owned(), |free| free.address());
        arguments.extend(script.arguments(&format!("http://{target}"), archive, NO_INTERFACE)?);
        let plan = self.plan(script, arguments, cores);
        let started = Process::start(&Plan { cage: plan.cage.clone().without_network(), ..plan }, group);
        let mut process = started.map_err(|error| format!("can't start {}: {error}", self.path.display()))?;
        let status = match tokio::time::timeout(limit, process.wait()).await {
            Ok(status) => status.map_err(|error| format!("failed to wait for k6 inspect: {error}"))?,
            Err(_) => return Err("k6 inspect timed out: the script's top-level code takes too long".to_owned()),
        };
        let log = process.log().await;
        judge(status, &log).map_err(|fault| script.explain(&fault))?;
        Ok(log)
    }

    fn round_arguments(
        &self,
        script: &Script,
        load: &LoadTarget<'_>,
        round: Round,
        recording: Option<&Recording>,
    ) -> Vec<String> {
        let mut arguments = to_strings(&["run", "--no-usage-report", "--no-color"]);
        match round {
            Round::WarmUp => arguments.extend(to_strings(&["--quiet", "--summary-mode=disabled", "--no-thresholds"])),
            Round::Measure => {
                // Scenarios, interrupted iterations and the end of a load are in debug messages and progress only.
                arguments.extend(to_strings(&["--verbose", "--summary-trend-stats", TREND_STATS, "--summary-export"]));
                arguments.push(script.summary_file().display().to_string());
            }
        }
        if let Some(segment) = load.segment {
            let (own, all) = (segment.segment(), segment.sequence());
            arguments.extend(to_strings(&["--execution-segment", &own, "--execution-segment-sequence", &all]));
        }
        if recording.is_some() {
            arguments.extend(to_strings(&["--out", SERIES_OUTPUT]));
            // A flag overrides the scenario's parameters.
            if self.version.has_feature_flags() {
                arguments.extend(to_strings(&["--features", "native-histograms"]));
            }
            arguments.extend(to_strings(&["--system-tags", script.system_tags()]));
        }
        arguments
    }

    fn plan(&self, script: &Script, arguments: Vec<String>, cores: &[usize]) -> Plan {
        // A script may name extensions; k6 would download a binary with them and run that instead.
        let mut environment = BTreeMap::from([("K6_AUTO_EXTENSION_RESOLUTION".to_owned(), "false".to_owned())]);
        // The series output costs a k6 short of CPU a tenth of its requests. Half as many garbage collections save more
        // than that, for twice the memory; settings in the agent's environment take precedence.
        for (name, usual) in RUNTIME {
            let value = std::env::var(name).ok().or_else(|| usual.map(str::to_owned));
            environment.extend(value.map(|value| (name.to_owned(), value)));
        }
        environment.extend(protocol(script.spec()));
        let (scenario, files, results) = (script.folder(), script.files_folder(), script.results_folder());
        let cage = Cage::generator(&self.path, &scenario, &files, &results).widened(self.beside.as_slice(), &self.also);
        Plan { program: self.path.clone(), arguments, environment, folder: files, cores: cores.to_vec(), cage }
    }
}

/// Returns the setting with which k6 sends requests with HTTP/1.1 only. There is none for HTTP/2 only.
fn protocol(spec: &RunSpec) -> Option<(String, String)> {
    (spec.http_version == HttpVersion::Http1).then(|| ("GODEBUG".to_owned(), "http2client=0".to_owned()))
}

/// Returns the settings of the series output. Stale markers make k6 push its histograms again at its end, as the last
/// requests may be in no push before.
fn push_to(recording: &Recording, version: &Version) -> Vec<(String, String)> {
    // Later versions have a flag instead, and warn about this setting.
    push_settings(recording.url(), !version.has_feature_flags())
}

fn push_settings(url: &str, sets_histograms: bool) -> Vec<(String, String)> {
    let histograms = sets_histograms.then_some(("TREND_AS_NATIVE_HISTOGRAM", "true"));
    let settings = [("SERVER_URL", url), ("PUSH_INTERVAL", "1s"), ("STALE_MARKERS", "true")];
    let named = |(name, value): (&str, &str)| (format!("K6_PROMETHEUS_RW_{name}"), value.to_owned());
    settings.into_iter().chain(histograms).map(named).collect()
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::find::tests::program;
    use super::*;

    #[tokio::test]
    async fn an_unsupported_version_is_refused_with_path_and_range() {
        for version in ["0.57.0", "3.0.0-rc1"] {
            let (_folder, path) = program(&format!("echo 'k6 v{version} (go1.27, linux/amd64)'"));
            let message = K6::find(Some(&path)).await.expect_err("not supported").to_string();
            let expected = format!("{} is k6 {version}; supported is 1.x … 2.x; install it with", path.display());
            assert!(message.starts_with(&expected), "{message}");
            assert!(message.contains("go install go.k6.io/k6@v1.8.1"), "{message}");
        }
        for version in ["1.0.0", "2.2.0"] {
            let (_folder, path) = program(&format!("echo 'k6 v{version} (go1.27, linux/amd64)'"));
            assert_eq!(K6::find(Some(&path)).await.expect("supported").offer().version, version);
        }
    }

    #[tokio::test]
    async fn a_missing_k6_is_reported_with_instructions() {
        let message = K6::find(Some(Path::new("/nowhere/k6"))).await.expect_err("missing").to_string();
        assert!(message.starts_with("k6 not found at /nowhere/k6; install it with `go install"), "{message}");
        assert!(message.ends_with("put it in PATH or name it with --k6 PATH"), "{message}");
    }

    #[tokio::test]
    async fn another_program_is_not_accepted_as_k6() {
        let (_folder, path) = program("echo hello");
        let message = K6::find(Some(&path)).await.expect_err("refused").to_string();
        assert!(message.contains("`k6 version` prints \"hello"), "{message}");
    }
}
