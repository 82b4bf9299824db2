//! A scenario on disk: the archives of its rounds, and k6's arguments for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::job::Job;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::{Scenario, addresses, imports};
use brewbench_wire::variables::missing_in_options;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde_json::{Map, Value, json};

use super::exports::{Exports, json_of};
use super::options::{Traits, options};
use super::{Round, archive, tags, waits};
use crate::sandbox::ProgramRole;
use crate::sandbox::cage::user;
use crate::series::collector::Scope;

/// Replaces the configuration in the user's home.
const CONFIG: &str = "k6.json";

/// k6's timeout of `setup()` and of `teardown()`, unless the script sets another.
const USUAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The rest of a larger summary is not read, so it counts as damaged.
const SUMMARY_BYTES: u64 = 64 << 20;

/// The environment variable with the target's URL; not allowed as a parameter.
pub(super) const BASE_URL: &str = "BASE_URL";

/// What k6 executes, each in an archive of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// The report of what the script exports.
    Exports,
    /// A round of the load.
    Round(Round),
}

/// A job's scenario, written to the folder of a run.
#[derive(Debug)]
pub struct Script {
    run_folder: PathBuf,
    scenario: Scenario,
    /// With the scenario's defaults.
    parameters: BTreeMap<String, String>,
    spec: RunSpec,
    system_tags: String,
    may_wait: bool,
    traits: Traits,
    /// Known once k6 has read it.
    exports: Exports,
    /// Variables without a value that the script's options need.
    missing: BTreeSet<String>,
}

impl Script {
    /// Writes a job's scenario below `run_folder`. Fails with a sentence if a name is invalid or the disk is full.
    pub fn from_job(job: &Job, run_folder: &Path) -> Result<Self, String> {
        Self::write(job.scenario.clone(), job.spec.clone(), run_folder)
    }

    /// Writes a scenario to be inspected, with its own load.
    pub fn for_inspection(scenario: &Scenario, run_folder: &Path) -> Result<Self, String> {
        Self::write(scenario.clone(), RunSpec::default(), run_folder)
    }

    fn write(scenario: Scenario, spec: RunSpec, run_folder: &Path) -> Result<Self, String> {
        let mut parameters = scenario.defaults.clone();
        parameters.retain(|name, _| !addresses::is_origin(name));
        parameters.extend(spec.parameters.clone());
        parameters.keys().try_for_each(|name| check_parameter(name))?;
        scenario.fault().or_else(|| imports::refusal(&scenario)).map_or(Ok(()), Err)?;
        let texts: Vec<&str> = scenario.texts().chain(parameters.values().map(String::as_str)).collect();
        let system_tags = tags::system_tags(&texts);
        let may_wait = waits::may_wait(&texts);
        let imports = |module: &str| texts.iter().any(|text| text.contains(module));
        let traits = Traits { reads_names: imports("k6/execution"), calls_grpc: imports("k6/net/grpc") };
        let missing = missing_in_options(&scenario, &parameters.keys().cloned().collect());
        let (run_folder, exports) = (run_folder.to_owned(), Exports::default());
        let script = Self { run_folder, scenario, parameters, spec, system_tags, may_wait, traits, exports, missing };
        script.create().map_err(|error| script.not_written(&error))?;
        Ok(script)
    }

    /// Creates the folders.
    fn create(&self) -> io::Result<()> {
        for folder in [self.folder(), self.files_folder(), self.results_folder()] {
            fs::create_dir(folder)?;
        }
        // Keeps k6 from using a configuration in the agent's home.
        fs::write(self.config_file(), "{}")?;
        self.hand_over()
    }

    /// Keeps what k6 has read of the script.
    pub(super) fn set_exports(&mut self, exports: Exports) {
        self.exports = exports;
    }

    /// Writes an archive for the target's address; returns its path. The error is a sentence.
    fn write_archive(&self, archive: Archive, base_url: &str) -> Result<PathBuf, String> {
        let scenario = addresses::replaced(&self.scenario, base_url);
        let (name, packed) = match archive {
            Archive::Exports => {
                ("exports.tar", archive::pack(&scenario, Some(&Exports::reporter(&scenario)), &json!({})))
            }
            Archive::Round(round) => {
                let name = if round == Round::WarmUp { "warm-up.tar" } else { "measured.tar" };
                (name, archive::pack(&scenario, None, &self.options(round)?.into()))
            }
        };
        let path = self.folder().join(name);
        let written = packed.and_then(|bytes| fs::write(&path, bytes));
        written.and_then(|()| user::show(&path, ProgramRole::Generator)).map_err(|error| self.not_written(&error))?;
        Ok(path)
    }

    /// Returns the options of a round. The error is a sentence.
    pub(super) fn options(&self, round: Round) -> Result<Map<String, Value>, String> {
        options(&self.exports, &self.spec, round, self.traits)
    }

    fn not_written(&self, error: &io::Error) -> String {
        format!("can't write the scenario below {}: {error}", self.run_folder.display())
    }

    /// Lets k6 read the scenario, and write to the other folders.
    fn hand_over(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.folder())? {
            user::show(&entry?.path(), ProgramRole::Generator)?;
        }
        user::show(&self.folder(), ProgramRole::Generator)?;
        [self.files_folder(), self.results_folder()]
            .iter()
            .try_for_each(|folder| user::give(folder, ProgramRole::Generator))
    }

    /// Returns the folder of the archives, read-only for k6.
    pub fn folder(&self) -> PathBuf {
        self.run_folder.join("scenario")
    }

    /// Returns k6's working directory, for files written by `handleSummary`.
    pub fn files_folder(&self) -> PathBuf {
        self.run_folder.join("files")
    }

    /// Returns the folder of k6's results.
    pub fn results_folder(&self) -> PathBuf {
        self.run_folder.join("results")
    }

    /// Returns the path of k6's summary.
    pub fn summary_file(&self) -> PathBuf {
        self.results_folder().join("summary.json")
    }

    fn config_file(&self) -> PathBuf {
        self.folder().join(CONFIG)
    }

    /// Returns what the run measures.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Returns the system tags that k6 shall set.
    pub fn system_tags(&self) -> &str {
        &self.system_tags
    }

    /// Whether the script may wait between its requests.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Returns the script's options that change what the load does.
    pub fn notable_options(&self) -> impl Iterator<Item = (String, String)> {
        self.exports.notable()
    }

    /// Returns the scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the parameters of the run, with the scenario's defaults, for the target's address.
    pub fn parameters(&self, base_url: &str) -> BTreeMap<String, String> {
        let filled = self.parameters.iter().map(|(name, value)| (name.clone(), addresses::fill(value, base_url)));
        filled.collect()
    }

    /// Returns the duration of its load, if it is not the script's own.
    pub fn duration(&self) -> Option<Duration> {
        self.spec.load().duration()
    }

    /// What of k6's series belongs to the load.
    pub fn scope(&self) -> Scope {
        if self.exports.has_setup() { Scope::Tagged } else { Scope::All }
    }

    /// Replaces k6's message if the script imports what is missing, or adds which parameters its options lack.
    pub fn explain(&self, fault: &str) -> String {
        if let Some(import) = imports::explain(&self.scenario, fault) {
            return import;
        }
        let names: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        match names.as_slice() {
            [] => fault.to_owned(),
            [one] => format!("{fault}; set {one}: the script reads it in its options"),
            several => format!("{fault}; set {}: the script reads them in its options", several.join(", ")),
        }
    }

    /// Writes an archive, and returns the arguments of every k6 command: the archive, its parameters, the address of the
    /// REST interface (empty: disabled), and nothing else from this machine. The error is a sentence.
    pub(super) fn arguments(&self, base_url: &str, archive: Archive, interface: &str) -> Result<Vec<String>, String> {
        let config = self.config_file().display().to_string();
        let mut arguments = ["--address", interface, "--config", &config, "--include-system-env-vars=false"]
            .map(str::to_owned)
            .to_vec();
        let base_url_variable = (BASE_URL.to_owned(), base_url.to_owned());
        for (name, value) in self.parameters(base_url).into_iter().chain([base_url_variable]) {
            arguments.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        arguments.push(self.write_archive(archive, base_url)?.display().to_string());
        Ok(arguments)
    }

    /// Reads k6's summary. Fails with a sentence if there is none.
    pub fn summary(&self) -> Result<String, String> {
        let read = || {
            // The script can write here, too, so this may be any kind of file.
            let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(self.summary_file())?;
            let mut text = String::new();
            file.take(SUMMARY_BYTES).read_to_string(&mut text)?;
            Ok::<_, io::Error>(text)
        };
        read().map_err(|error| format!("can't read k6's summary: {error}"))
    }
}

fn check_parameter(name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("parameter {name:?} is invalid: use letters, digits and '_', and no digit at the start"));
    }
    if name == BASE_URL {
        return Err(format!("parameter {BASE_URL} can't be set: it is the target's address"));
    }
    Ok(())
}

/// How long parts of a script may take, from the JSON of `k6 inspect --execution-requirements`, which may be surrounded
/// by log lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requirements {
    /// Its load, with the wait for the last iterations.
    pub load: Duration,
    /// `setup()` and `teardown()` together.
    pub around: Duration,
    /// Its own limit of requests per second.
    pub rps_limit: Option<f64>,
}

impl Requirements {
    /// Reads the output of k6.
    pub fn read(output: &str) -> Option<Self> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Inspected {
            #[serde(alias = "maxDuration")]
            total_duration: String,
            setup_timeout: Option<String>,
            teardown_timeout: Option<String>,
            rps: Option<f64>,
        }
        let Inspected { total_duration, setup_timeout, teardown_timeout, rps } =
            serde_json::from_str(json_of(output)?).ok()?;
        let timeout = |text: Option<String>| text.as_deref().and_then(go_duration).unwrap_or(USUAL_TIMEOUT);
        let around = timeout(setup_timeout) + timeout(teardown_timeout);
        Some(Self { load: go_duration(&total_duration)?, around, rps_limit: rps.filter(|limit| *limit > 0.0) })
    }
}

/// Parses a Go duration: `1h2m3.5s`, `300ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..unit_at].parse().ok()?;
        rest = &rest[unit_at..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        seconds += number
            * match &rest[..unit_end] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 1e-3,
                "µs" | "us" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_must_be_identifiers_other_than_base_url() {
        assert_eq!(check_parameter("PAYLOAD_2"), Ok(()));
        for name in ["", "2X", "A=B", "A B", "BASE_URL"] {
            assert!(check_parameter(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn go_durations_are_parsed() {
        let table = [("31s", 31_000), ("1h2m3.5s", 3_723_500), ("300ms", 300), ("1m0s", 60_000), ("0s", 0)];
        for (text, milliseconds) in table {
            assert_eq!(go_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["5", "5x", "-1s", "s"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn the_duration_is_found_between_log_lines() {
        let read = |output| Requirements::read(output).map(|all| (all.load.as_secs(), all.around.as_secs()));
        let output = "time=\"x\" level=warning msg=\"{\"\n{\n \"maxVUs\": 2,\n \"totalDuration\": \"31s\"\n}\nbye\n";
        assert_eq!(read(output), Some((31, 120)));
        assert_eq!(read(r#"{"setupTimeout": "5m0s", "teardownTimeout": null, "totalDuration": "1s"}"#), Some((1, 360)));
        let limit = |output| Requirements::read(output).and_then(|all| all.rps_limit);
        assert_eq!(limit(r#"{"rps": 50, "totalDuration": "31s"}"#), Some(50.0));
        assert_eq!((limit(r#"{"rps": null, "totalDuration": "31s"}"#), limit(output)), (None, None));
        assert_eq!(read("{}"), None);
        assert_eq!(read("nothing"), None);
    }
}
