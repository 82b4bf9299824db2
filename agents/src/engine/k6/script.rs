//! A scenario on disk: the script with its files, and the words by which k6 is told of it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use super::{Round, tags, waits, wrapper};
use crate::wire::job::{Job, Scenario};
use crate::wire::load::Load;

const SCRIPT: &str = "script.js";
/// Around the script, where a load is given: see [`super::wrapper`].
const WARM_UP: &str = "brewbench-warm-up.js";
const MEASURED: &str = "brewbench-measured.js";
/// Instead of one in somebody's home.
const CONFIG: &str = "brewbench-k6.json";

/// Files that are not a scenario's to bring.
const OURS: [&str; 4] = [SCRIPT, WARM_UP, MEASURED, CONFIG];

/// Of a larger summary the rest is not read, which makes it damaged.
const SUMMARY_BYTES: u64 = 64 << 20;

/// The name under which every script finds its target; no parameter may be called so.
const BASE_URL: &str = "BASE_URL";

/// A job's scenario, written into a run's folder.
#[derive(Debug)]
pub struct Script {
    run_folder: PathBuf,
    parameters: BTreeMap<String, String>,
    load: Load,
    system_tags: Option<String>,
    may_wait: bool,
}

impl Script {
    /// Writes a job's scenario below `run_folder`. Fails with a sentence when a name is not acceptable or the disk is
    /// full.
    pub fn of(job: &Job, run_folder: &Path) -> Result<Self, String> {
        let warm_up = Duration::from_millis(job.warm_up_max_ms.unwrap_or(job.warm_up_ms));
        Self::write(&job.scenario, &job.parameters, (&job.load, warm_up), run_folder)
    }

    /// The same for a scenario that is only looked at, as it is.
    pub fn alone(scenario: &Scenario, run_folder: &Path) -> Result<Self, String> {
        Self::write(scenario, &BTreeMap::new(), (&Load::Script, Duration::ZERO), run_folder)
    }

    fn write(
        scenario: &Scenario,
        given: &BTreeMap<String, String>,
        (load, warm_up): (&Load, Duration),
        run_folder: &Path,
    ) -> Result<Self, String> {
        let mut parameters = scenario.defaults.clone();
        parameters.extend(given.clone());
        parameters.keys().try_for_each(|name| check_parameter(name))?;
        scenario.files.keys().try_for_each(|name| check_file(name))?;
        let wrappers =
            [(WARM_UP, wrapper::warm_up(load, warm_up, SCRIPT)), (MEASURED, wrapper::measured(load, SCRIPT))];
        let others = scenario.files.values().chain(parameters.values());
        let texts: Vec<&str> = [&scenario.script].into_iter().chain(others).map(String::as_str).collect();
        let system_tags = tags::system_tags(&texts);
        let may_wait = waits::may_wait(&texts);
        let script = Self { run_folder: run_folder.to_owned(), parameters, load: load.clone(), system_tags, may_wait };
        let write = || -> io::Result<()> {
            for folder in [script.folder(), script.files_folder(), script.results_folder()] {
                fs::create_dir(folder)?;
            }
            // Of a configuration in the agent's home k6 shall know nothing.
            fs::write(script.config_file(), "{}")?;
            fs::write(script.folder().join(SCRIPT), &scenario.script)?;
            for (name, text) in wrappers {
                text.map_or(Ok(()), |text| fs::write(script.folder().join(name), text))?;
            }
            scenario.files.iter().try_for_each(|(name, text)| fs::write(script.folder().join(name), text))
        };
        match write() {
            Ok(()) => Ok(script),
            Err(error) => Err(format!("can't write the scenario below {}: {error}", run_folder.display())),
        }
    }

    /// The folder of the script and its files, which k6 reads and can't change.
    pub fn folder(&self) -> PathBuf {
        self.run_folder.join("scenario")
    }

    /// Where k6 is started: the folder of what the script's `handleSummary` writes.
    pub fn files_folder(&self) -> PathBuf {
        self.run_folder.join("files")
    }

    /// The folder of k6's own results.
    pub fn results_folder(&self) -> PathBuf {
        self.run_folder.join("results")
    }

    /// Where k6 puts its summary.
    pub fn summary_file(&self) -> PathBuf {
        self.results_folder().join("summary.json")
    }

    fn config_file(&self) -> PathBuf {
        self.folder().join(CONFIG)
    }

    /// The tags that k6 shall set by itself, if it is not for the script to say.
    pub fn system_tags(&self) -> Option<&str> {
        self.system_tags.as_deref()
    }

    /// Whether it may let time pass between its requests.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// The file that k6 is started on.
    fn entry(&self, round: Round) -> PathBuf {
        self.folder().join(match (&self.load, round) {
            (Load::Script, _) => SCRIPT,
            (_, Round::WarmUp) => WARM_UP,
            (_, Round::Measure) => MEASURED,
        })
    }

    /// What every command of k6 is given: a script, its parameters, where its REST interface listens (empty: nowhere), and
    /// nothing else of this machine.
    pub fn arguments(&self, base_url: &str, round: Round, interface: &str) -> Vec<String> {
        let config = self.config_file().display().to_string();
        let mut arguments = ["--address", interface, "--config", &config, "--include-system-env-vars=false"]
            .map(str::to_owned)
            .to_vec();
        let base_url = (BASE_URL.to_owned(), base_url.to_owned());
        for (name, value) in self.parameters.clone().into_iter().chain([base_url]) {
            arguments.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        arguments.push(self.entry(round).display().to_string());
        arguments
    }

    /// k6's summary. Fails with a sentence when there is none.
    pub fn summary(&self) -> Result<String, String> {
        let read = || {
            // The script may write here, too, so the file may be anything.
            let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(self.summary_file())?;
            let mut text = String::new();
            file.take(SUMMARY_BYTES).read_to_string(&mut text)?;
            Ok::<_, io::Error>(text)
        };
        read().map_err(|error| format!("k6 left no summary: {error}"))
    }
}

fn check_file(name: &str) -> Result<(), String> {
    let mut parts = Path::new(name).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if plain && !name.contains(['\\', '\0']) && name.len() <= 255 && !OURS.contains(&name) {
        return Ok(());
    }
    Err(format!("the scenario has a file called {name:?}: only plain names are allowed, and not {}", OURS.join(", ")))
}

fn check_parameter(name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("the parameter {name:?} is not made of letters, digits and '_'"));
    }
    if name == BASE_URL {
        return Err(format!("the parameter {BASE_URL} can't be given: it is the target's address"));
    }
    Ok(())
}

/// How long a script's load takes at most, from the JSON of `k6 inspect --execution-requirements`, before or behind
/// which there may be lines of log.
pub fn total_duration(output: &str) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    struct Requirements {
        #[serde(rename = "totalDuration", alias = "maxDuration")]
        total: String,
    }
    let start = if output.starts_with('{') { 0 } else { output.find("\n{")? + 1 };
    let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Requirements>();
    go_duration(&values.next()?.ok()?.total)
}

/// A duration as Go writes it: `1h2m3.5s`, `300ms`.
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
    fn only_plain_file_names_are_allowed() {
        for name in ["list.json", "a b", ".hidden", "-x"] {
            assert_eq!(check_file(name), Ok(()), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "a/b",
            "a/",
            "./a",
            "../a",
            "a\\b",
            "script.js",
            "brewbench-measured.js",
            "a\0b",
        ] {
            assert!(check_file(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn parameters_are_names_and_never_the_target_s_address() {
        assert_eq!(check_parameter("PAYLOAD_2"), Ok(()));
        for name in ["", "2X", "A=B", "A B", "BASE_URL"] {
            assert!(check_parameter(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn go_s_durations_are_read() {
        let table = [("31s", 31_000), ("1h2m3.5s", 3_723_500), ("300ms", 300), ("1m0s", 60_000), ("0s", 0)];
        for (text, milliseconds) in table {
            assert_eq!(go_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["5", "5x", "-1s", "s"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_time_is_found_between_lines_of_log() {
        let output = "time=\"x\" level=warning msg=\"{\"\n{\n \"maxVUs\": 2,\n \"totalDuration\": \"31s\"\n}\nbye\n";
        assert_eq!(total_duration(output), Some(Duration::from_secs(31)));
        assert_eq!(total_duration("{}"), None);
        assert_eq!(total_duration("nothing"), None);
    }
}
