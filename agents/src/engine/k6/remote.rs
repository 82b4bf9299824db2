//! A k6 on another machine: its files, environment and arguments. It starts paused, pushes its series to the agent and
//! sends its summary there. Pure.

use std::collections::BTreeMap;

use brewbench_wire::job::{Job, Segment};
use serde_json::json;

use super::script::{BASE_URL, SCRIPT};
use super::wrapper::Traits;
use super::{NO_USAGE_REPORT, RUNTIME, Round, SERIES_OUTPUT, TREND_STATS, modules, protocol, push_settings, wrapper};
use crate::run::address_policy::Limits;

/// The file to start k6 with.
pub const ENTRY: &str = "brewbench-entry.js";

/// The port of the interface by which k6 is resumed.
pub const PORT: u16 = 6565;

/// The variable with the URL that receives series and summary.
const PUSH_URL: &str = "BREWBENCH_PUSH_URL";

/// What runs on another machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Script, wrapper and data files by name.
    pub files: BTreeMap<String, String>,
    /// Environment variables, in this order: later ones refer to earlier ones.
    pub environment: Vec<(String, String)>,
}

/// What a round of a job loads, and within which limits.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Base URL of the target.
    pub base_url: &'a str,
    /// What the script may load.
    pub limits: &'a Limits,
    /// System tags that k6 shall set.
    pub system_tags: &'a str,
    /// What is known about the script.
    pub traits: Traits,
    /// Where k6 sends its series and its summary; may refer to variables of its machine, like `$(NAME)`.
    pub push_url: &'a str,
    /// CPU cores of its machine.
    pub vcpus: f64,
}

impl Remote {
    /// Builds a round of a job. The error is a sentence.
    pub fn new(job: &Job, round: Round, subject: &Subject<'_>) -> Result<Self, String> {
        let mut parameters = job.scenario.defaults.clone();
        parameters.extend(job.spec.parameters.clone());
        parameters.keys().try_for_each(|name| check_parameter(name))?;
        job.scenario.files.keys().try_for_each(|name| check_file(name))?;
        let mut files = job.scenario.files.clone();
        files.insert(SCRIPT.to_owned(), job.scenario.script.clone());
        files.insert(ENTRY.to_owned(), entry(job, round, subject));
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut environment: Vec<(String, String)> = parameters.into_iter().collect();
        environment.extend([
            own(BASE_URL, subject.base_url),
            own(PUSH_URL, subject.push_url),
            own("K6_OUT", SERIES_OUTPUT),
            own(NO_USAGE_REPORT, "true"),
            own("K6_AUTO_EXTENSION_RESOLUTION", "false"),
            // The name of the feature in later versions; earlier ones ignore it.
            own("K6_FEATURES", "native-histograms"),
            own("GOMAXPROCS", &format!("{:.0}", subject.vcpus.ceil().max(1.0))),
        ]);
        environment.extend(modules::environment(subject.base_url, None));
        environment.extend(push_settings(&format!("$({PUSH_URL})"), true));
        environment.extend(RUNTIME.into_iter().filter_map(|(name, value)| Some(own(name, value?))));
        environment.extend(protocol(&job.spec));
        Ok(Self { files, environment })
    }
}

/// Returns the arguments of k6 in the folder of its files.
pub fn command(folder: &str, segment: Segment) -> Vec<String> {
    let mut words = vec!["k6".to_owned(), "run".to_owned(), "--quiet".to_owned()];
    if segment.of > 1 {
        words.push(format!("--execution-segment={}", segment.segment()));
        words.push(format!("--execution-segment-sequence={}", segment.sequence()));
    }
    words.push(format!("{folder}/{ENTRY}"));
    words.extend([format!("--address=:{PORT}"), "--paused".to_owned()]);
    words
}

/// Returns the script around the scenario's: with the load of the round, the limits, and a summary that is sent.
fn entry(job: &Job, round: Round, subject: &Subject<'_>) -> String {
    let warm_up = job.spec.warm_up();
    let blocked: Vec<String> = subject.limits.blocked.iter().map(ToString::to_string).collect();
    let stats: Vec<&str> = TREND_STATS.split(',').collect();
    let mut more = json!({"blacklistIPs": blocked, "summaryTrendStats": stats});
    if !subject.limits.redirects {
        more["maxRedirects"] = json!(0);
    }
    more["systemTags"] = subject.system_tags.split(',').collect();
    let scenario = wrapper::scenario((job.spec.load(), warm_up), round);
    format!(
        "import http from 'k6/http';\n\
         {}{}\
         export function handleSummary(data) {{\n  \
           const response = http.post(`${{__ENV.{PUSH_URL}}}/summary`, JSON.stringify(data));\n  \
           if (response.status !== 204) throw new Error(`can't send the summary: status ${{response.status}}`);\n  \
           return own.handleSummary ? own.handleSummary(data) : {{}};\n\
         }}\n",
        wrapper::exports(SCRIPT),
        wrapper::options(scenario.as_ref(), round, subject.traits, &more),
    )
}

/// Returns the version in k6's name for itself: `Grafana k6/1.8.1`.
pub fn version_of(user_agent: &str) -> Option<String> {
    let (_, rest) = user_agent.split_once("k6/")?;
    let version: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "._-+".contains(*c)).collect();
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

/// Refuses names that would change k6 or its machine: elsewhere, parameters are environment variables.
fn check_parameter(name: &str) -> Result<(), String> {
    let is_reserved = ["K6_", "GO", "BREWBENCH_"].into_iter().any(|start| name.starts_with(start))
        || ["PATH", "HOME", "HOSTNAME"].contains(&name)
        || modules::VARIABLES.contains(&name.to_uppercase().as_str());
    if is_reserved {
        return Err(format!("parameter {name:?} can't be used with load from a cluster: its name is reserved there"));
    }
    Ok(())
}

/// Refuses names that are no keys of a `ConfigMap`.
fn check_file(name: &str) -> Result<(), String> {
    let is_key = name.len() <= 253 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if is_key && name != ENTRY {
        return Ok(());
    }
    Err(format!(
        "file name {name:?} of the scenario can't be used with load from a cluster: use letters, digits, '-', '_' and '.'"
    ))
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::{Closed, Form, Load};
    use brewbench_wire::run_spec::RunSpec;
    use brewbench_wire::samples::a_job;

    use super::*;

    fn subject(limits: &Limits) -> Subject<'_> {
        let push_url = "http://10.0.0.5:1/secret/$(JOB)";
        let (system_tags, traits) = ("status,method", Traits::default());
        Subject { base_url: "http://10.0.0.9:80", limits, system_tags, traits, push_url, vcpus: 1.5 }
    }

    #[test]
    fn the_entry_sets_load_and_limits() {
        let limits = Limits { blocked: vec!["1.2.3.0/24".parse().expect("a network")], redirects: false };
        let form = Form::Constant { level: 10, duration_ms: 1_500 };
        let mut job = a_job();
        job.spec = RunSpec { warm_up_s: Some(2.0), ..job.spec }.under(Load::Closed(Closed::new(form).expect("a load")));
        let remote = Remote::new(&job, Round::Measure, &subject(&limits)).expect("files");
        let entry = &remote.files[ENTRY];
        assert!(entry.contains(r#""blacklistIPs":["1.2.3.0/24"]"#) && entry.contains(r#""maxRedirects":0"#), "{entry}");
        assert!(entry.contains(r#""vus":10"#) && entry.contains("thresholds: kept.thresholds"), "{entry}");
        assert!(remote.environment.contains(&("GOMAXPROCS".to_owned(), "2".to_owned())));
        let url = ("K6_PROMETHEUS_RW_SERVER_URL".to_owned(), "$(BREWBENCH_PUSH_URL)".to_owned());
        assert!(remote.environment.contains(&url), "{:?}", remote.environment);
        let warm = Remote::new(&job, Round::WarmUp, &subject(&limits)).expect("files");
        assert!(warm.files[ENTRY].contains("thresholds: {}"), "{}", warm.files[ENTRY]);
        job.spec.load = Some(Load::Script);
        let own = Remote::new(&job, Round::Measure, &subject(&limits)).expect("files");
        assert!(own.files[ENTRY].contains("const kept = own.options"), "{}", own.files[ENTRY]);
    }

    #[test]
    fn names_that_mean_something_elsewhere_are_refused() {
        let limits = Limits::default();
        let with = |parameter: &str, file: &str| {
            let mut job = a_job();
            job.spec.parameters.insert(parameter.to_owned(), "1".to_owned());
            job.scenario.files.insert(file.to_owned(), String::new());
            Remote::new(&job, Round::Measure, &subject(&limits)).err()
        };
        assert_eq!(with("PAYLOAD", "data_1.json"), None);
        assert!(with("https_proxy", "data.json").is_some_and(|why| why.contains("https_proxy")));
        assert!(with("K6_VUS", "data.json").is_some_and(|why| why.contains("K6_VUS")));
        assert!(with("PAYLOAD", "mes données.json").is_some_and(|why| why.contains("mes données.json")));
    }

    #[test]
    fn the_version_is_read_from_the_user_agent() {
        assert_eq!(version_of("Grafana k6/1.8.1").as_deref(), Some("1.8.1"));
        assert_eq!(version_of("k6/0.57.0 (https://k6.io/)").as_deref(), Some("0.57.0"));
        assert_eq!(version_of("Mozilla/5.0"), None);
    }

    #[test]
    fn segments_are_named_if_there_are_several() {
        let words = command("/test", Segment { index: 1, of: 2 });
        assert_eq!(words[3], "--execution-segment=1/2:1");
        assert!(!command("/test", Segment { index: 0, of: 1 }).concat().contains("segment"));
    }
}
