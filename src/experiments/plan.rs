//! The plan of an experiment, as requested by a user. Pure.

use std::{collections::BTreeMap, fmt};

use brewbench_wire::{engine::EngineKind, load::Load, run_spec::HttpVersion};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use utoipa::ToSchema;

use crate::{
    experiments::{knee::model::Knee, stopping_rule::StoppingRule},
    runs::{
        load::LoadBody,
        model::{Run, RunSize, RunSpec, WARM_UP_FACTOR},
    },
};

/// The plan of an experiment. Durations are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name of the experiment. Default: derived from scenario and targets.
    #[serde(default)]
    pub name: Option<String>,
    /// Names of targets.
    pub targets: Vec<String>,
    /// A baseline (by name), experiment or run (by id) to measure again, interleaved with the targets.
    ///
    /// It is measured with its own target versions, sizes, scenario, parameters and loads. These can be omitted; those
    /// that are given must be part of the baseline, and restrict it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Names of machine sizes, or the short form `2/4GiB`. Default with `against`: those of the baseline.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// Name of a scenario; its newest revision is used. Default with `against`: that of the baseline.
    #[serde(default)]
    pub scenario: String,
    /// Scenario parameters that differ from the defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// One load, or several constant loads that differ only in their level. Default: the script's own options.
    ///
    /// A single load may also be given as `load`.
    #[serde(default, alias = "load", deserialize_with = "read_loads")]
    #[schema(value_type = Vec<LoadBody>)]
    pub loads: Vec<Load>,
    /// Instead of loads: a search for the highest rate at which an objective holds.
    #[serde(default)]
    pub knee: Option<Knee>,
    /// Warm-up before each run, at the highest level of the load. Default: 2, and `warm_up_auto` if one of the targets
    /// compiles while it runs, as Java and Node.js do.
    #[serde(default)]
    pub warm_up_s: Option<f64>,
    /// Whether the warm-up continues until the target is steady, for at most ten times `warm_up_s`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warm_up_auto: bool,
    /// Runs of each target at each size under each load; in a knee search, half of the runs that
    /// must be near the knee.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Profiled runs of each cell, 0 to 20, after all measured ones; they are no measurements.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub profiled_repetitions: u32,
    /// Stopping rule for adaptive repetitions beyond `repetitions`.
    #[serde(default)]
    #[serde(alias = "until")]
    pub stopping_rule: Option<StoppingRule>,
    /// Maximum number of retries of a run that failed, was lost or is invalid, 0 to 10.
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// Seed of the run order. Default: random.
    #[serde(default)]
    pub seed: Option<u32>,
    /// The only agent that may do it. Default: any able agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Instead of `agent`: only agents with this label. Label changes do not move an experiment that has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_label: Option<String>,
    /// Whether several machines may share it. Default: all runs stay on one machine.
    ///
    /// All cells of a repetition stay on one machine, so each machine measures every cell equally often.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
    /// Agents that generate the load, each an equal part. Default: the target's own agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<String>,
    /// Number of load generators in the cluster of the target's agent, 0 to 100, each for an equal part of the load.
    /// Default: 0, the agent itself generates it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cluster_generators: u32,
    /// HTTP version of the requests: `auto`, `1.1` or `2`. Default: `auto`, with which k6 uses HTTP/2 if the target
    /// offers it with TLS. k6 can't force `2`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub http_version: HttpVersion,
    /// Load generator: `k6` for scripts, `native` for request lists. Default: k6, unless the scenario has no script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// The only one of the script's scenarios that runs. Default: all of them with the script's own load; with another
    /// load they must be alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_scenario: Option<String>,
    /// Factor on the virtual users and rates of the script's own load, 0.001 to 1,000. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Whether both targets run at the same time and are loaded in turns of 0.1 s, so that noise of the machine affects
    /// them alike. Needs two targets, one size with whole vCPUs, one load and the native load generator. Each repetition
    /// restarts both targets; six or more decide. Such runs are not retried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duet: bool,
}

impl Default for Plan {
    /// Returns the plan that names nothing; what is omitted from JSON has the same values.
    fn default() -> Self {
        Self {
            name: None,
            targets: Vec::new(),
            against: None,
            sizes: Vec::new(),
            scenario: String::new(),
            parameters: BTreeMap::new(),
            loads: Vec::new(),
            knee: None,
            warm_up_s: None,
            warm_up_auto: false,
            repetitions: default_repetitions(),
            profiled_repetitions: 0,
            stopping_rule: None,
            retries: default_retries(),
            seed: None,
            agent: None,
            agent_label: None,
            spread: false,
            generators: Vec::new(),
            cluster_generators: 0,
            http_version: HttpVersion::Auto,
            engine: None,
            script_scenario: None,
            scale: None,
            duet: false,
        }
    }
}

/// Returns the default warm-up: enough for the caches and the allocator of a small server.
pub fn default_warm_up_s() -> f64 {
    2.0
}

/// Returns the fewest repetitions with which all tested metrics of two targets at one size can differ significantly.
pub fn default_repetitions() -> u32 {
    5
}

/// The number of repetitions of a duet if none is named. Short ones are enough: restarts tell more than seconds.
pub const DUET_REPETITIONS: u32 = 12;

/// Returns the default number of retries: a run that fails twice would usually fail again.
pub fn default_retries() -> u32 {
    1
}

/// The number of profiled repetitions if none is named: the fewest with which a difference can be shown at 5 %, because
/// 2 of the 70 ways to assign four and four runs to two sides separate them.
pub const PROFILED_REPETITIONS: u32 = 4;

/// The most profiled repetitions of a cell.
pub const MAX_PROFILED: u32 = 20;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default(version: &HttpVersion) -> bool {
    *version == HttpVersion::Auto
}

impl Plan {
    /// Returns the duration of the warm-up of a run, in seconds; the minimum if it lasts until the target is steady.
    pub fn warm_up_s(&self) -> f64 {
        self.warm_up_s.unwrap_or_else(default_warm_up_s)
    }

    /// Sets the warm-up if the plan does not: until steady if one of the targets compiles while it runs.
    ///
    /// All targets are warmed up alike then, each until it is steady. With one length for all, either the compiling
    /// ones would still be warming up when they are measured, or the comparison would be one of different warm-ups.
    #[must_use]
    pub fn with_warm_up(self, compiles: bool) -> Self {
        // Several generators must end their warm-ups together.
        let is_possible = self.generators.is_empty() && self.cluster_generators == 0;
        let warm_up_auto = self.warm_up_auto || (self.warm_up_s.is_none() && compiles && is_possible);
        Self { warm_up_s: Some(self.warm_up_s()), warm_up_auto, ..self }
    }

    /// Returns what its runs measure, without target, size and load, of which it has several.
    pub fn spec(&self, scenario_sha256: &str) -> RunSpec {
        RunSpec {
            scenario: Some(self.scenario.clone()),
            scenario_sha256: Some(scenario_sha256.to_owned()),
            parameters: self.parameters.clone(),
            warm_up_s: Some(self.warm_up_s()),
            warm_up_auto: self.warm_up_auto,
            generators: self.generators.clone(),
            cluster_generators: self.cluster_generators,
            http_version: self.http_version,
            requested_engine: self.engine,
            script_scenario: self.script_scenario.clone(),
            scale: self.scale,
            duet: self.duet,
            ..RunSpec::default()
        }
    }

    /// Returns the maximum duration of the warm-up of a run, in seconds.
    pub fn longest_warm_up_s(&self) -> f64 {
        let shortest_s = self.warm_up_s();
        if self.warm_up_auto { shortest_s * f64::from(WARM_UP_FACTOR) } else { shortest_s }
    }
}

/// Deserializes one load or a list of loads.
fn read_loads<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Vec<Load>, D::Error> {
    struct Loads;

    impl<'a> Visitor<'a> for Loads {
        type Value = Vec<Load>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a load or a list of loads")
        }

        fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<Vec<Load>, A::Error> {
            let body = LoadBody::deserialize(MapAccessDeserializer::new(map))?;
            let load = body.try_into().map_err(|fault| A::Error::custom(format!("load: {fault}")))?;
            Ok(vec![load])
        }

        fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Vec<Load>, A::Error> {
            let mut loads = Vec::new();
            while let Some(body) = list.next_element::<LoadBody>()? {
                let place = loads.len() + 1;
                let load = body.try_into().map_err(|fault| A::Error::custom(format!("load {place}: {fault}")))?;
                loads.push(load);
            }
            Ok(loads)
        }
    }

    deserializer.deserialize_any(Loads)
}

/// Parses a share such as `2%` or `0.5 %`, above 0% and below 100%.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        Some(_) => Err("must be more than 0% and less than 100%".to_owned()),
        None => Err("must be a share, such as 2%".to_owned()),
    }
}

/// Formats a share so that [`share`] can parse it.
pub fn share_text(share: f64) -> String {
    // Rounding removes the error of the division by 100.
    let text = format!("{:.4}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the machine sizes of runs, smallest first.
pub fn sizes(runs: &[Run]) -> Vec<RunSize> {
    let mut sizes: Vec<RunSize> = Vec::new();
    for size in runs.iter().filter_map(|run| run.spec.size.as_ref()) {
        if !sizes.contains(size) {
            sizes.push(size.clone());
        }
    }
    let rest = |size: &RunSize| (size.total_memory_bytes(), size.replicas);
    sizes.sort_by(|a, b| a.total_vcpus().total_cmp(&b.total_vcpus()).then(rest(a).cmp(&rest(b))));
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::load::tests::{rate, vus};

    fn read(changes: &str) -> Result<Plan, String> {
        let text = format!(r#"{{"targets": ["a"], "sizes": ["2/4GiB"], "scenario": "hash"{changes}}}"#);
        serde_json::from_str(&text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_plan_has_one_load_or_several() {
        let body = r#"{"kind": "vus", "vus": 3, "duration_s": 1}"#;
        assert_eq!(read(&format!(r#", "load": {body}"#)).expect("a plan").loads, [vus(3, 1.0)]);
        let rates = r#", "loads": [{"kind": "rate", "rate": 5, "duration_s": 1}, {"kind": "rate", "rate": 9, "duration_s": 1}]"#;
        assert_eq!(read(rates).expect("a plan").loads, [rate(5, 1.0), rate(9, 1.0)]);
        let named = |plan| Plan { targets: vec!["a".to_owned()], sizes: vec!["2/4GiB".to_owned()], ..plan };
        assert_eq!(read("").expect("a plan"), Plan { scenario: "hash".to_owned(), ..named(Plan::default()) });
        for (changes, why) in [
            (r#", "load": {"kind": "vus", "vus": 0, "duration_s": 1}"#.to_owned(), "load: vus: between 1 and 100000"),
            (
                format!(r#", "loads": [{body}, {{"kind": "vus", "vus": 0, "duration_s": 1}}]"#),
                "load 2: vus: between 1 and 100000",
            ),
            (format!(r#", "load": {body}, "loads": []"#), "duplicate field"),
            (r#", "load": 3"#.to_owned(), "a load or a list of loads"),
        ] {
            let fault = read(&changes).expect_err(why);
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn a_plan_survives_serialization() {
        let plan = read(r#", "loads": [{"kind": "vus", "vus": 3, "duration_s": 1}], "seed": 7, "retries": 0"#);
        let plan = plan.expect("a plan");
        let text = serde_json::to_string(&plan).expect("JSON");
        assert_eq!(serde_json::from_str::<Plan>(&text).expect("a plan"), plan);
    }

    #[test]
    fn a_share_is_written_with_a_percent_sign() {
        for (text, value) in [("2%", 0.02), (" 0.5 %", 0.005), ("33.3%", 0.333)] {
            let read = share(text).expect("a share");
            assert!((read - value).abs() < 1e-12, "{read}");
            assert_eq!(share_text(read), text.replace(' ', ""));
        }
        for text in ["2", "", "%", "x%", "0%", "100%", "-1%", "NaN%", "inf%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
