//! A k6 on another machine: its files, environment and arguments. It starts paused, pushes its series to the agent and
//! sends its summary there. Pure.

use brewbench_wire::job::Segment;
use brewbench_wire::scenario::{Scenario, addresses};
use serde_json::json;

use super::script::{BASE_URL, Script};
use super::{NO_USAGE_REPORT, RUNTIME, Round, SERIES_OUTPUT, TREND_STATS, archive, modules, protocol, push_settings};
use crate::run::address_policy::Limits;

/// The file to start k6 with.
pub const ARCHIVE: &str = "brewbench.tar";

/// The port of the interface by which k6 is resumed.
pub const PORT: u16 = 6565;

/// The variable with the URL that receives series and summary.
const PUSH_URL: &str = "BREWBENCH_PUSH_URL";

/// What runs on another machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// The archive that k6 runs.
    pub archive: Vec<u8>,
    /// Environment variables, in this order: later ones refer to earlier ones.
    pub environment: Vec<(String, String)>,
}

/// What a round loads, and within which limits.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Base URL of the target.
    pub base_url: &'a str,
    /// What the script may load.
    pub limits: &'a Limits,
    /// Where k6 sends its series and its summary; may refer to variables of its machine, like `$(NAME)`.
    pub push_url: &'a str,
    /// CPU cores of its machine.
    pub vcpus: f64,
}

impl Remote {
    /// Builds a round of a script. The error is a sentence.
    pub fn new(script: &Script, round: Round, subject: &Subject<'_>) -> Result<Self, String> {
        script.parameters(subject.base_url).keys().try_for_each(|name| check_parameter(name))?;
        let archive = archive(script, round, subject)?;
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut environment: Vec<(String, String)> = script.parameters(subject.base_url).into_iter().collect();
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
        environment.extend(protocol(script.spec()));
        Ok(Self { archive, environment })
    }
}

/// Returns the arguments of k6 in the folder of its files.
pub fn command(folder: &str, segment: Segment) -> Vec<String> {
    let mut words = vec!["k6".to_owned(), "run".to_owned(), "--quiet".to_owned()];
    if segment.of > 1 {
        words.push(format!("--execution-segment={}", segment.segment()));
        words.push(format!("--execution-segment-sequence={}", segment.sequence()));
    }
    words.push(format!("{folder}/{ARCHIVE}"));
    words.extend([format!("--address=:{PORT}"), "--paused".to_owned()]);
    words
}

/// Packs the scenario with the load of the round, the limits, and a script around it that sends the summary.
fn archive(script: &Script, round: Round, subject: &Subject<'_>) -> Result<Vec<u8>, String> {
    let blocked: Vec<String> = subject.limits.blocked.iter().map(ToString::to_string).collect();
    let stats: Vec<&str> = TREND_STATS.split(',').collect();
    let tags: Vec<&str> = script.system_tags().split(',').collect();
    let mut options = script.options(round)?;
    let limits = [("blacklistIPs", json!(blocked)), ("summaryTrendStats", json!(stats)), ("systemTags", json!(tags))];
    options.extend(limits.map(|(name, value)| (name.to_owned(), value)));
    if !subject.limits.redirects {
        options.insert("maxRedirects".to_owned(), 0.into());
    }
    let scenario = addresses::replaced(script.scenario(), subject.base_url);
    let packed = archive::pack(&scenario, Some(&reporter(&scenario)), &options.into());
    packed.map_err(|error| format!("can't pack the scenario: {error}"))
}

/// Returns the script that sends the summary.
fn reporter(scenario: &Scenario) -> String {
    format!(
        "import http from 'k6/http';\n{}\
         export default own.default;\n\
         export function handleSummary(data) {{\n  \
           const response = http.post(`${{__ENV.{PUSH_URL}}}/summary`, JSON.stringify(data));\n  \
           if (response.status !== 204) throw new Error(`can't send the summary: status ${{response.status}}`);\n  \
           return own.handleSummary ? own.handleSummary(data) : {{}};\n\
         }}\n",
        archive::around(scenario),
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

#[cfg(test)]
mod tests {
    use brewbench_wire::load::{Closed, Form, Load};
    use brewbench_wire::run_spec::RunSpec;
    use brewbench_wire::samples::a_job;

    use super::super::exports::Exports;
    use super::*;

    fn remote(limits: &Limits, round: Round, load: Load, parameter: &str) -> Result<Remote, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut job = a_job();
        job.spec = RunSpec { warm_up_s: Some(2.0), ..job.spec }.under(load);
        job.spec.parameters.insert(parameter.to_owned(), "1".to_owned());
        let mut script = Script::from_job(&job, folder.path()).expect("written");
        let options = json!({"thresholds": {"checks": ["rate>0.9"]}});
        script.set_exports(Exports { options: options.as_object().cloned(), ..Exports::default() });
        let push_url = "http://10.0.0.5:1/secret/$(JOB)";
        Remote::new(&script, round, &Subject { base_url: "http://10.0.0.9:80", limits, push_url, vcpus: 1.5 })
    }

    #[test]
    fn the_archive_has_load_and_limits() {
        let limits = Limits { blocked: vec!["1.2.3.0/24".parse().expect("a network")], redirects: false };
        let load = || {
            let form = Form::Constant { level: 10, duration_ms: 1_500 };
            Load::Closed(Closed::new(form).expect("a load"))
        };
        let remote = |round| remote(&limits, round, load(), "PAYLOAD").expect("an archive");
        let measured = remote(Round::Measure);
        let text = String::from_utf8_lossy(&measured.archive).into_owned();
        assert!(text.contains(r#""blacklistIPs":["1.2.3.0/24"]"#) && text.contains(r#""maxRedirects":0"#), "{text}");
        assert!(text.contains(r#""vus":10"#) && text.contains("rate>0.9"), "{text}");
        assert!(measured.environment.contains(&("GOMAXPROCS".to_owned(), "2".to_owned())));
        let url = ("K6_PROMETHEUS_RW_SERVER_URL".to_owned(), "$(BREWBENCH_PUSH_URL)".to_owned());
        assert!(measured.environment.contains(&url), "{:?}", measured.environment);
        let warm = String::from_utf8_lossy(&remote(Round::WarmUp).archive).into_owned();
        assert!(!warm.contains("rate>0.9"), "{warm}");
    }

    #[test]
    fn names_that_mean_something_elsewhere_are_refused() {
        let limits = Limits::default();
        let with = |parameter: &str| remote(&limits, Round::Measure, Load::Script, parameter).err();
        assert_eq!(with("PAYLOAD"), None);
        assert!(with("https_proxy").is_some_and(|why| why.contains("https_proxy")));
        assert!(with("K6_VUS").is_some_and(|why| why.contains("K6_VUS")));
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
