//! k6, the load generator: an ordinary program on this machine.

mod exit;
pub mod inspection;
mod paused;
pub mod receiver;
pub mod remote_write;
mod script;
mod tags;
pub mod version;
mod waits;
mod wrapper;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

pub use exit::judge;
pub use paused::Paused;
pub use script::Script;
use version::{SUPPORTED, Version};

use crate::run::address_policy::Reach;
use crate::sandbox::Group;
use crate::sandbox::cage::{Cage, environment};
use crate::sandbox::process::{Plan, Process, find_program, last_lines};
use crate::series::recording::Recording;
use crate::wire::engine::{Capability, EngineOffer};
use crate::wire::job::Segment;
use crate::wire::load::Load;

/// What servers call this load generator.
const NAME: &str = "k6";

/// What it can do.
const CAPABILITIES: [Capability; 5] =
    [Capability::Scripts, Capability::Segments, Capability::Pausing, Capability::Series, Capability::Percentiles];

/// How to get k6, for messages.
const GET_IT: &str = "get it by `go install go.k6.io/k6@v1.8.1`, then put it in PATH or name it with --k6 PATH";

/// The statistics of every trend in a summary.
const TREND_STATS: &str = "avg,min,med,max,p(90),p(95),p(99),p(99.9),count";

/// The output that the series comes from.
const SERIES_OUTPUT: &str = "experimental-prometheus-rw";

/// Settings of the Go runtime that an agent's owner may give to k6, and their values where that is not done. `GOGC` says by
/// how much, in percent, the heap may grow before it is collected.
const RUNTIME: [(&str, Option<&str>); 3] = [("GOGC", Some("200")), ("GOMAXPROCS", None), ("GOMEMLIMIT", None)];

/// `--address`: k6's REST interface stays closed.
const NO_INTERFACE: &str = "";

/// k6 lets iterations that run at the end of the load finish for so long.
const GRACEFUL_STOP: Duration = Duration::from_secs(30);

/// What may come on top of the load: setup and teardown, 60 s each by default, and k6's own start and end.
const MARGIN: Duration = Duration::from_secs(125);

/// A k6 that can be used.
#[derive(Clone, Debug)]
pub struct K6 {
    path: PathBuf,
    version: Version,
    /// Where the programs lie that it starts, if it is a script.
    beside: Option<PathBuf>,
    /// Where it keeps files of its own.
    also: Vec<PathBuf>,
}

/// There is no k6 that can be used.
#[derive(Debug, thiserror::Error)]
pub enum NoK6 {
    /// Nowhere to be found.
    #[error("there is no k6 {0}; {GET_IT}")]
    Missing(String),
    /// Of a version that is not [`SUPPORTED`].
    #[error("{} is k6 {version}; supported is {SUPPORTED}; {GET_IT}", path.display())]
    Unsupported {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
    /// It does not behave like k6.
    #[error("{} is no k6 that works: {reason}; {GET_IT}", path.display())]
    Broken {
        /// The program.
        path: PathBuf,
        /// What it did.
        reason: String,
    },
}

impl NoK6 {
    /// What there is instead, for the server; none where nothing is there.
    pub fn offer(&self) -> Option<EngineOffer> {
        let Self::Unsupported { path, version } = self else { return None };
        Some(offer(path, version.as_str(), Some(self.to_string())))
    }
}

/// What servers hear of a k6.
pub fn offer(path: &Path, version: &str, fault: Option<String>) -> EngineOffer {
    EngineOffer {
        name: NAME.to_owned(),
        version: version.to_owned(),
        path: path.display().to_string(),
        supported: SUPPORTED.to_string(),
        fault,
        capabilities: CAPABILITIES.to_vec(),
    }
}

/// What k6 is started for.
#[derive(Clone, Copy, Debug)]
pub enum Round {
    /// Its figures are thrown away.
    WarmUp,
    /// Its figures count.
    Measure,
}

/// The load on a target that serves.
#[derive(Clone, Copy, Debug)]
pub struct LoadOn<'a> {
    /// Where.
    pub base_url: &'a str,
    /// Which part of the load, if others make the rest.
    pub segment: Option<Segment>,
    /// The processors that k6 may use.
    pub cores: &'a [usize],
    /// Which addresses the script may load.
    pub reach: Reach,
}

impl K6 {
    /// Finds k6: the given file, else in `PATH`, else beside this program.
    pub async fn find(given: Option<&Path>) -> Result<Self, NoK6> {
        let beside = || std::env::current_exe().ok()?.parent().map(|folder| folder.join("k6"));
        let path = match given {
            Some(path) => find_program(path).ok_or_else(|| NoK6::Missing(format!("at {}", path.display())))?,
            None => find_program(Path::new("k6"))
                .or_else(|| beside().filter(|path| path.is_file()))
                .ok_or_else(|| NoK6::Missing("in PATH or beside this program".to_owned()))?,
        };
        let version = ask_version(&path).await.map_err(|reason| NoK6::Broken { path: path.clone(), reason })?;
        if SUPPORTED.covers(&version) {
            let beside = folder_of_script(&path);
            Ok(Self { path, version, beside, also: Vec::new() })
        } else {
            Err(NoK6::Unsupported { path, version })
        }
    }

    /// The same for a program that keeps files in a folder of its own.
    #[must_use]
    pub fn with_folder(mut self, folder: &Path) -> Self {
        self.also.push(folder.to_owned());
        self
    }

    /// What it is, for the server.
    pub fn offer(&self) -> EngineOffer {
        offer(&self.path, self.version.as_str(), None)
    }

    /// The program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts k6 on a script, and lets it push its figures to a [recording](crate::series::recording), if there is one.
    /// Fails when it can't be executed.
    pub fn start(
        &self,
        script: &Script,
        load: &LoadOn<'_>,
        round: Round,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Process> {
        let arguments = self.round_arguments(script, load, round, recording);
        self.run(script, load, (arguments, round, NO_INTERFACE), recording, group)
    }

    /// The same for the measured load, which begins only when it is told to.
    pub fn start_paused(
        &self,
        script: &Script,
        load: &LoadOn<'_>,
        paused: &Paused,
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Process> {
        let mut arguments = self.round_arguments(script, load, Round::Measure, recording);
        arguments.push("--paused".to_owned());
        self.run(script, load, (arguments, Round::Measure, &paused.address()), recording, group)
    }

    fn run(
        &self,
        script: &Script,
        load: &LoadOn<'_>,
        (mut arguments, round, interface): (Vec<String>, Round, &str),
        recording: Option<&Recording>,
        group: &Group,
    ) -> io::Result<Process> {
        arguments.extend(load.reach.arguments());
        arguments.extend(script.arguments(load.base_url, round, interface));
        let mut plan = self.plan(script, arguments, load.cores);
        plan.environment.extend(recording.into_iter().flat_map(|recording| push_to(recording, &self.version)));
        Process::start(&plan, group)
    }

    /// The longest time that k6 may take for a load; more is a fault. For a script's own load k6 itself is asked, which
    /// runs the script's outermost code. The error is a sentence.
    pub async fn longest(
        &self,
        script: &Script,
        load: &Load,
        group: &Group,
        cores: &[usize],
    ) -> Result<Duration, String> {
        if let Some(duration) = load.duration() {
            return Ok(duration + GRACEFUL_STOP + MARGIN);
        }
        let log = self.inspect(script, group, cores, MARGIN).await?;
        let total = script::total_duration(&log);
        total
            .map(|total| total + MARGIN)
            .ok_or_else(|| format!("k6 inspect does not say how long the script runs at most: {}", last_lines(&log)))
    }

    /// Lets k6 look at a script, which runs its outermost code and nothing else; gives what it printed. The error is a
    /// sentence with k6's own message.
    pub async fn inspect(
        &self,
        script: &Script,
        group: &Group,
        cores: &[usize],
        limit: Duration,
    ) -> Result<String, String> {
        let mut arguments = words(&["inspect", "--execution-requirements", "--no-color"]);
        arguments.extend(script.arguments("http://127.0.0.1", Round::Measure, NO_INTERFACE));
        let plan = self.plan(script, arguments, cores);
        let started = Process::start(&Plan { cage: plan.cage.clone().without_network(), ..plan }, group);
        let mut process = started.map_err(|error| format!("can't start {}: {error}", self.path.display()))?;
        let status = match tokio::time::timeout(limit, process.wait()).await {
            Ok(status) => status.map_err(|error| format!("k6 inspect was lost: {error}"))?,
            Err(_) => return Err(format!("k6 inspect did not end within {} s", limit.as_secs())),
        };
        let log = process.log().await;
        judge(status, &log)?;
        Ok(log)
    }

    fn round_arguments(
        &self,
        script: &Script,
        load: &LoadOn<'_>,
        round: Round,
        recording: Option<&Recording>,
    ) -> Vec<String> {
        let mut arguments = words(&["run", "--no-usage-report", "--quiet", "--no-color"]);
        match round {
            Round::WarmUp => arguments.extend(words(&["--summary-mode=disabled", "--no-thresholds"])),
            Round::Measure => {
                arguments.extend(words(&["--summary-trend-stats", TREND_STATS, "--summary-export"]));
                arguments.push(script.summary_file().display().to_string());
            }
        }
        if let Some(segment) = load.segment {
            let (own, all) = (segment.segment(), segment.sequence());
            arguments.extend(words(&["--execution-segment", &own, "--execution-segment-sequence", &all]));
        }
        if recording.is_some() {
            arguments.extend(words(&["--out", SERIES_OUTPUT]));
            // A flag goes before whatever a scenario's parameters say.
            if self.version.has_feature_flags() {
                arguments.extend(words(&["--features", "native-histograms"]));
            }
            arguments.extend(script.system_tags().iter().flat_map(|tags| words(&["--system-tags", tags])));
        }
        arguments
    }

    fn plan(&self, script: &Script, arguments: Vec<String>, cores: &[usize]) -> Plan {
        // A script may name extensions; k6 would fetch a program that has them and run that one instead.
        let mut environment = BTreeMap::from([("K6_AUTO_EXTENSION_RESOLUTION".to_owned(), "false".to_owned())]);
        // What the series costs a k6 that is short of CPU is a tenth of its requests. Collecting its garbage half as
        // often gives back more than that, for twice its memory; who sets it for the agent knows better.
        for (name, usual) in RUNTIME {
            let value = std::env::var(name).ok().or_else(|| usual.map(str::to_owned));
            environment.extend(value.map(|value| (name.to_owned(), value)));
        }
        let (scenario, files, results) = (script.folder(), script.files_folder(), script.results_folder());
        let cage = Cage::generator(&self.path, &scenario, &files, &results).widened(self.beside.as_slice(), &self.also);
        Plan { program: self.path.clone(), arguments, environment, folder: files, cores: cores.to_vec(), cage }
    }
}

/// Sets up the output of the series. Stale markers make k6 push its histograms once more at its end: the last requests may
/// be in no push before.
fn push_to(recording: &Recording, version: &Version) -> Vec<(String, String)> {
    // Later versions have a flag for it, and warn of this.
    let histograms = (!version.has_feature_flags()).then_some(("TREND_AS_NATIVE_HISTOGRAM", "true"));
    let settings = [("SERVER_URL", recording.url()), ("PUSH_INTERVAL", "1s"), ("STALE_MARKERS", "true")];
    let named = |(name, value): (&str, &str)| (format!("K6_PROMETHEUS_RW_{name}"), value.to_owned());
    settings.into_iter().chain(histograms).map(named).collect()
}

/// A script in place of k6 starts the real one, which may lie beside it.
fn folder_of_script(path: &Path) -> Option<PathBuf> {
    let mut start = [0; 2];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).ok()?;
    (start == *b"#!").then(|| path.canonicalize().ok()?.parent().map(Path::to_owned)).flatten()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

async fn ask_version(path: &Path) -> Result<Version, String> {
    let mut command = Command::new(path);
    command.arg("version").kill_on_drop(true).env_clear().envs(environment::passed_on());
    let output = tokio::time::timeout(Duration::from_secs(10), command.output()).await;
    let output = output.map_err(|_| "`k6 version` did not end".to_owned())?.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Version::from_output(&text)
        .ok_or_else(|| format!("`k6 version` says {:?}", text.chars().take(100).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("k6");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        (folder, path)
    }

    #[tokio::test]
    async fn a_k6_outside_the_supported_range_is_refused_with_version_path_and_range() {
        for version in ["0.57.0", "3.0.0-rc1"] {
            let (_folder, path) = program(&format!("echo 'k6 v{version} (go1.27, linux/amd64)'"));
            let message = K6::find(Some(&path)).await.expect_err("not supported").to_string();
            let expected = format!("{} is k6 {version}; supported is 1.x … 2.x; get it by", path.display());
            assert!(message.starts_with(&expected), "{message}");
            assert!(message.contains("go install go.k6.io/k6@v1.8.1"), "{message}");
        }
        for version in ["1.0.0", "2.2.0"] {
            let (_folder, path) = program(&format!("echo 'k6 v{version} (go1.27, linux/amd64)'"));
            assert_eq!(K6::find(Some(&path)).await.expect("supported").offer().version, version);
        }
    }

    #[tokio::test]
    async fn a_missing_k6_is_a_sentence_with_the_way_to_it() {
        let message = K6::find(Some(Path::new("/nowhere/k6"))).await.expect_err("missing").to_string();
        assert!(message.starts_with("there is no k6 at /nowhere/k6; get it by `go install"), "{message}");
        assert!(message.ends_with("put it in PATH or name it with --k6 PATH"), "{message}");
    }

    #[tokio::test]
    async fn another_program_is_no_k6() {
        let (_folder, path) = program("echo hello");
        let message = K6::find(Some(&path)).await.expect_err("no k6").to_string();
        assert!(message.contains("`k6 version` says \"hello"), "{message}");
    }
}
