//! What a script exports, as k6 sees it: its options may depend on parameters, and its functions may come from other
//! files. Pure.

use std::collections::BTreeSet;

use brewbench_wire::messages::ScriptReport;
use brewbench_wire::sanitize::unquoted;
use brewbench_wire::scenario::Scenario;
use serde::Deserialize;
use serde_json::{Map, Value};

/// How the line begins by which a script is reported.
const MARK: &str = "brewbench-exports ";

/// Hints that are reported.
const MAX_HINTS: usize = 10;

/// What a script exports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Exports {
    /// Its options; none if it exports none.
    pub options: Option<Map<String, Value>>,
    /// The names of its scenarios, in its order.
    pub scenarios: Vec<String>,
    /// The names of its functions.
    pub functions: BTreeSet<String>,
    /// The names of all that it exports.
    pub names: BTreeSet<String>,
}

/// Options that set a load, without which k6 runs one iteration.
pub const LOAD: [&str; 5] = ["scenarios", "stages", "vus", "duration", "iterations"];

/// Names by which scripts export options that k6 does not read.
const WRONG_NAMES: [&str; 5] = ["option", "Options", "opts", "config", "k6options"];

/// Options that change what a load does, or what is known of it.
const NOTABLE: [&str; 14] = [
    "rps",
    "batch",
    "batchPerHost",
    "discardResponseBodies",
    "noConnectionReuse",
    "noVUConnectionReuse",
    "noCookiesReset",
    "minIterationDuration",
    "maxRedirects",
    "hosts",
    "blockHostnames",
    "userAgent",
    "insecureSkipTLSVerify",
    "systemTags",
];

/// Letters of a value that are kept.
const MAX_VALUE: usize = 200;

/// An option that k6 shows only if it is set.
const HIDDEN: &str = "cloud";

impl Exports {
    /// Returns a script that reports the exports of the scenario's script when k6 inspects it.
    pub fn reporter(scenario: &Scenario) -> String {
        let own = super::archive::around(scenario);
        format!(
            "{own}console.log({MARK:?} + JSON.stringify({{\n  \
               options: own.options ?? null,\n  \
               scenarios: Object.keys(own.options?.scenarios ?? {{}}),\n  \
               names: Object.keys(own),\n  \
               functions: Object.keys(own).filter((name) => typeof own[name] === 'function'),\n\
             }}));\n\
             export default function () {{}}\n"
        )
    }

    /// Reads the log of k6. The script itself may write before the report. The error is a sentence.
    pub fn read(log: &str) -> Result<Self, String> {
        let line = log.lines().rev().find_map(|line| line.split_once(" msg=").filter(|(_, text)| text.contains(MARK)));
        let text = line.and_then(|(_, text)| unquoted(text)).ok_or_else(|| {
            "the script's options could not be read: they are longer than 64 KiB, or k6 does not show messages"
                .to_owned()
        })?;
        serde_json::from_str(text.strip_prefix(MARK).unwrap_or_default())
            .map_err(|error| format!("the script's options are not an object: {error}"))
    }

    /// Reports on the script; k6's output of the inspection lists the options that it knows.
    pub fn report(&self, output: &str) -> ScriptReport {
        let is_set = |option: &&str| {
            self.options.as_ref().is_some_and(|all| all.get(*option).is_some_and(|value| !value.is_null()))
        };
        let known = json_of(output).and_then(|json| serde_json::from_str::<Map<String, Value>>(json).ok());
        let unknown = self
            .options
            .iter()
            .flat_map(Map::keys)
            .filter(|name| *name != HIDDEN && known.as_ref().is_some_and(|known| !known.contains_key(*name)));
        let unknown = unknown.map(|name| format!("{name:?} is not an option of k6: it has no effect"));
        let wrong = WRONG_NAMES.iter().filter(|name| self.options.is_none() && self.names.contains(**name));
        let wrong = wrong.map(|name| format!("the script exports {name:?}; k6 reads its options from \"options\""));
        ScriptReport {
            scenarios: self.scenarios.clone(),
            sets_load: LOAD.iter().any(is_set),
            hints: unknown.chain(wrong).take(MAX_HINTS).collect(),
        }
    }

    /// Returns the options that change what the load does, with their values.
    pub fn notable(&self) -> impl Iterator<Item = (String, String)> {
        let options = self.options.iter().flat_map(|options| {
            NOTABLE
                .iter()
                .filter_map(|name| options.get(*name).filter(|value| !value.is_null()).map(|value| (name, value)))
        });
        options.map(|(name, value)| (format!("script.{name}"), value.to_string().chars().take(MAX_VALUE).collect()))
    }

    /// Whether requests may belong to `setup()` or `teardown()`.
    pub fn has_setup(&self) -> bool {
        ["setup", "teardown"].iter().any(|name| self.functions.contains(*name))
    }
}

/// Returns the JSON object in k6's output, without the lines around it.
pub fn json_of(output: &str) -> Option<&str> {
    let start = if output.starts_with('{') { 0 } else { output.find("\n{")? + 1 };
    let end = output[start..].find("\n}").map_or(output.len(), |end| start + end + 2);
    Some(&output[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_counts() {
        let log = "time=\"x\" level=info msg=\"brewbench-exports {}\" source=console\n\
            time=\"x\" level=info msg=\"brewbench-exports {\\\"options\\\":{\\\"vus\\\":2},\\\"scenarios\\\":[],\\\"names\\\":[\\\"opts\\\"],\
            \\\"functions\\\":[\\\"default\\\",\\\"setup\\\"]}\" source=console\n{\n  \"paused\": null\n}\n";
        let exports = Exports::read(log).expect("exports");
        assert_eq!(exports.options.as_ref().and_then(|options| options["vus"].as_u64()), Some(2));
        assert!(exports.has_setup());
        let options = serde_json::json!({"rps": 5, "vus": 2, "userAgent": "x", "hosts": null});
        let notable = Exports { options: options.as_object().cloned(), ..exports.clone() };
        let notable: Vec<_> = notable.notable().collect();
        assert_eq!(
            notable,
            [("script.rps".to_owned(), "5".to_owned()), ("script.userAgent".to_owned(), "\"x\"".to_owned())]
        );
        let output = log.replace("\"paused\": null", "\"vus\": null");
        let report = exports.report(&output);
        assert!(report.sets_load && report.hints.is_empty(), "{report:?}");
        assert_eq!(exports.report(log).hints, ["\"vus\" is not an option of k6: it has no effect"]);
        let wrong = Exports { options: None, ..exports }.report(log);
        assert_eq!(wrong.hints, ["the script exports \"opts\"; k6 reads its options from \"options\""]);
        assert!(Exports::read("{}").is_err_and(|why| why.contains("could not be read")));
        let wrong = log.replace("{\\\"vus\\\":2}", "3");
        assert!(Exports::read(&wrong).is_err_and(|why| why.contains("not an object")));
    }
}
