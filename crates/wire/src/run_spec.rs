//! What a run measures: the one description that plan, queue, placement, job, stored run and JSON embed.
//!
//! What belongs to one run but not to what is measured stays outside: its ids, repetition, block, and the agent that
//! may do it. So does what is known only after a run, such as the version of its load generator.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::engine::{Capability, EngineKind};
use super::job::{MAX_GENERATORS, Size};
use super::load::{Load, MAX_DURATION};
use super::target::TargetKind;

/// Maximum length of an automatic warm-up, as a multiple of its minimum.
pub const WARM_UP_FACTOR: u32 = 10;

/// Maximum cores of a machine size, far more than machines have.
const MAX_VCPUS: f64 = 100_000.0;

/// What one run measures. Of an import, only what its files and its user say is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunSpec {
    /// Name of the target.
    pub target: String,
    /// Machine size of the target.
    #[serde(default)]
    #[schema(value_type = Option<Size>)]
    pub size: Option<Size>,
    /// Name of the scenario.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Hash of the scenario's revision.
    #[serde(default)]
    pub scenario_sha256: Option<String>,
    /// Parameters of the scenario that were set in the submission; they override the scenario's defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The load; null for an import.
    #[serde(default)]
    #[schema(value_type = Option<super::load::LoadBody>)]
    pub load: Option<Load>,
    /// Number of virtual users, if constant.
    #[serde(default)]
    pub vus: Option<u32>,
    /// Duration of the load, seconds; null if the script's own options set it.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Warm-up before the measurement, seconds; the minimum if the warm-up is automatic.
    #[serde(default)]
    pub warm_up_s: Option<f64>,
    /// Whether the warm-up is automatic: it lasts until the target is steady.
    #[serde(default)]
    pub warm_up_auto: bool,
    /// Whether the target was profiled. Such a run is no measurement: it enters no comparison, trend or gate.
    #[serde(default)]
    pub profiled: bool,
    /// Agents that generate the load of a distributed run. Percentiles then come from their merged histograms.
    #[serde(default)]
    pub generators: Vec<String>,
    /// Number of load generators in the cluster of the agent; 0 if the load comes from agents.
    #[serde(default)]
    pub cluster_generators: u32,
    /// HTTP version of the requests.
    #[serde(default)]
    pub http_version: HttpVersion,
    /// The load generator that was asked for; null for k6, and for an import.
    #[serde(default)]
    pub requested_engine: Option<EngineKind>,
    /// The only one of the script's scenarios (k6's word for a function with a load) that runs; null for all.
    #[serde(default)]
    pub script_scenario: Option<String>,
    /// Factor on the virtual users and rates of the script's own load; null for 1.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Whether two targets ran at the same time and were loaded in turns. Such a run is compared with its partner: the
    /// run of the other target with the same experiment and repetition.
    #[serde(default)]
    pub duet: bool,
}

/// Why a duet needs a size without a fraction of a vCPU.
pub const WHOLE_VCPUS: &str =
    "a duet needs whole vCPUs: in its turn, a target could use the CPU time that it saved before";

/// Factors on the script's own load.
pub const SCALES: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// The HTTP version of a run's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub enum HttpVersion {
    /// What the load generator and the target agree on: k6 uses HTTP/2 if the target offers it with TLS.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1 only.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2 only, which needs a load generator that can force it.
    #[serde(rename = "2")]
    Http2,
}

impl HttpVersion {
    /// The names, in the order of the variants.
    pub const NAMES: [&str; 3] = ["auto", "1.1", "2"];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl std::str::FromStr for HttpVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Http1, Self::Http2];
        let found = all.into_iter().find(|version| version.as_str() == text);
        found.ok_or_else(|| format!("must be one of {}", Self::NAMES.join(", ")))
    }
}

impl RunSpec {
    /// Sets the load.
    #[must_use]
    pub fn under(self, load: Load) -> Self {
        let duration_s = load.duration().map(|duration| duration.as_secs_f64());
        Self { vus: load.constant_vus(), duration_s, load: Some(load), ..self }
    }

    /// Returns the load; the script's own if no other is requested.
    pub fn load(&self) -> &Load {
        const OWN: &Load = &Load::Script;
        self.load.as_ref().unwrap_or(OWN)
    }

    /// Returns the length of the warm-up; the minimum if it is automatic.
    pub fn warm_up(&self) -> Duration {
        let seconds = self.warm_up_s.unwrap_or_default();
        Duration::try_from_secs_f64(seconds).unwrap_or(if seconds > 0.0 { Duration::MAX } else { Duration::ZERO })
    }

    /// Returns the maximum length of the warm-up.
    pub fn longest_warm_up(&self) -> Duration {
        self.warm_up().saturating_mul(if self.warm_up_auto { WARM_UP_FACTOR } else { 1 })
    }

    /// Returns the spec without what sets the load.
    #[must_use]
    pub fn without_load(self) -> Self {
        Self { load: None, vus: None, requested_engine: None, http_version: HttpVersion::Auto, scale: None, ..self }
    }

    /// Returns the capabilities that each load generator must have, with the field of a plan that needs them.
    pub fn needs(&self) -> Vec<(&'static str, Capability)> {
        let script = (self.load == Some(Load::Script)).then_some(("loads", Capability::Scripts));
        let is_shaped = matches!(self.load(), Load::Closed(_) | Load::Open(_)) && self.load().constant_vus().is_none();
        let shape = is_shaped.then_some(("loads", Capability::RatesAndStages));
        // Whether the target is steady is decided by per-second data.
        let warm_up = self.warm_up_auto.then_some(("warm_up_auto", Capability::Series));
        let version = match self.http_version {
            HttpVersion::Auto => None,
            HttpVersion::Http1 => Some(("http_version", Capability::Http1)),
            HttpVersion::Http2 => Some(("http_version", Capability::Http2)),
        };
        let turns = self.duet.then_some(("duet", Capability::Turns));
        let pods = (self.cluster_generators > 0).then_some(("cluster_generators", Capability::Pods));
        script.into_iter().chain(shape).chain(warm_up).chain(version).chain(turns).chain(pods).collect()
    }

    /// Returns the load generator.
    pub fn engine(&self) -> EngineKind {
        self.requested_engine.unwrap_or_default()
    }

    /// Returns the number of instances of the target.
    pub fn replicas(&self) -> u32 {
        self.size.as_ref().map_or(1, |size| size.replicas)
    }

    /// Returns what identifies the runs that are repetitions of each other as far as it was requested.
    ///
    /// Runs store it, so the text of a spec must never change. What has its usual value adds nothing to it: with a new
    /// field, the runs before it keep their keys. The size's name, the length of a constant load, the warm-up and the
    /// names of generators make no other cell.
    pub fn plan_key(&self) -> String {
        let Self { target, size, scenario, scenario_sha256, parameters, load, vus, .. } = self;
        let mut parts = vec![
            json!(target).to_string(),
            json!(size.as_ref().map(|size| fifteen_digits(size.vcpus))).to_string(),
            json!(size.as_ref().map(|size| size.memory_bytes)).to_string(),
            json!(scenario).to_string(),
            json!(scenario_sha256).to_string(),
            json!(parameters).to_string(),
            load.as_ref().map_or_else(|| "null".to_owned(), Load::without_duration),
            json!(vus).to_string(),
        ];
        let unusual = [
            ("replicas", json!(self.replicas()), json!(1)),
            ("cluster_generators", json!(self.cluster_generators), json!(0)),
            ("http_version", json!(self.http_version), json!(HttpVersion::Auto)),
            ("engine", json!(self.requested_engine), json!(null)),
            ("script_scenario", json!(self.script_scenario), json!(null)),
            ("scale", json!(self.scale), json!(null)),
            ("duet", json!(self.duet), json!(false)),
        ];
        let unusual: Vec<String> = unusual
            .into_iter()
            .filter(|(_, value, usual)| value != usual)
            .map(|(name, value, _)| format!("{}:{value}", json!(name)))
            .collect();
        if !unusual.is_empty() {
            parts.push(format!("{{{}}}", unusual.join(",")));
        }
        format!("[{}]", parts.join(","))
    }

    /// Returns what identifies the runs that are repetitions of each other, the version of their target aside: the plan
    /// key, the load generator with its version, and the kind of the target. The agent is a column of its own.
    pub fn cell_key(&self, engine: Option<&str>, kind: Option<TargetKind>) -> String {
        let kind = kind.filter(|kind| *kind != TargetKind::Process).map(|kind| format!(" {kind}"));
        format!("{} {}{}", self.plan_key(), engine.unwrap_or_default(), kind.unwrap_or_default())
    }

    /// Explains why an agent must not execute it: a server is not trusted with more than a run may need.
    pub fn fault(&self) -> Option<String> {
        if self.longest_warm_up() > MAX_DURATION {
            return Some(format!("a warm-up of more than {} s is not possible", MAX_DURATION.as_secs()));
        }
        let Some(Size { vcpus, .. }) = self.size else {
            return Some("a run needs a machine size".to_owned());
        };
        if !(vcpus > 0.0 && vcpus <= MAX_VCPUS) {
            return Some(format!("a machine size has more than 0 and at most {MAX_VCPUS} vCPUs"));
        }
        if self.scale.is_some_and(|scale| !SCALES.contains(&scale)) {
            return Some(format!("a scale is between {} and {}", SCALES.start(), SCALES.end()));
        }
        if self.duet && (!self.generators.is_empty() || self.cluster_generators > 0) {
            return Some("a duet has one load generator: that of the agent".to_owned());
        }
        if self.duet && vcpus.fract() > 0.0 {
            return Some(WHOLE_VCPUS.to_owned());
        }
        (self.cluster_generators > MAX_GENERATORS)
            .then(|| format!("a run has at most {MAX_GENERATORS} load generators"))
    }
}

/// Rounds a number to the digits that SQLite writes, which wrote the keys of older runs.
fn fifteen_digits(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Closed, Form, Open};

    fn spec() -> RunSpec {
        let size = Size { name: "small".to_owned(), vcpus: 0.5, memory_bytes: 1 << 20, replicas: 1 };
        let spec = RunSpec {
            target: "servy".to_owned(),
            size: Some(size),
            scenario: Some("hash".to_owned()),
            scenario_sha256: Some("00aa".to_owned()),
            parameters: [("N".to_owned(), "5".to_owned())].into(),
            ..RunSpec::default()
        };
        let form = Form::constant(10, 2.0).expect("a form");
        spec.under(Load::Closed(Closed::new(form).expect("a load")))
    }

    #[test]
    fn the_keys_of_a_spec_never_change() {
        let key = r#"["servy",0.5,1048576,"hash","00aa",{"N":"5"},{"kind":"vus","vus":10},10]"#;
        assert_eq!(spec().plan_key(), key);
        assert_eq!(spec().cell_key(None, None), format!("{key} "));
        assert_eq!(spec().cell_key(Some("k6 1.8.1"), Some(TargetKind::Process)), format!("{key} k6 1.8.1"));
        assert_eq!(spec().cell_key(Some("k6 1.8.1"), Some(TargetKind::Url)), format!("{key} k6 1.8.1 url"));
        let size = spec().size.map(|size| Size { replicas: 3, ..size });
        let many = RunSpec { size, cluster_generators: 2, ..spec() };
        let end = r#",10,{"replicas":3,"cluster_generators":2}]"#;
        assert!(many.plan_key().ends_with(end), "{}", many.plan_key());
        let plain = RunSpec { http_version: HttpVersion::Http1, ..spec() };
        assert!(plain.plan_key().ends_with(r#",10,{"http_version":"1.1"}]"#), "{}", plain.plan_key());
        let open = Open::new(Form::constant(100, 2.0).expect("a form"), None).expect("a load");
        let rate = r#",{"kind":"rate","rate":100,"max_vus":10},null]"#;
        assert!(spec().under(Load::Open(open)).plan_key().ends_with(rate));
        assert_eq!(RunSpec::default().plan_key(), r#"["",null,null,null,null,{},null,null]"#);
    }

    #[test]
    fn what_makes_no_other_cell_is_not_part_of_the_key() {
        let form = Form::constant(10, 60.0).expect("a form");
        let longer = spec().under(Load::Closed(Closed::new(form).expect("a load")));
        let size = spec().size.map(|size| Size { name: "half".to_owned(), ..size });
        let warmer = RunSpec { size, warm_up_s: Some(9.0), warm_up_auto: true, profiled: true, ..spec() };
        let elsewhere = RunSpec { generators: vec!["one".to_owned()], ..spec() };
        for other in [longer, warmer, elsewhere] {
            assert_eq!(other.plan_key(), spec().plan_key());
        }
    }

    #[test]
    fn an_http_version_has_the_same_name_everywhere() {
        for (version, name) in
            [HttpVersion::Auto, HttpVersion::Http1, HttpVersion::Http2].iter().zip(HttpVersion::NAMES)
        {
            assert_eq!((json!(version), version.as_str(), name.parse()), (json!(name), name, Ok(*version)));
        }
        assert!("3".parse::<HttpVersion>().is_err());
    }

    #[test]
    fn a_warm_up_is_never_longer_than_a_load() {
        let warm_up = |warm_up_s, warm_up_auto| RunSpec { warm_up_s, warm_up_auto, ..spec() };
        assert_eq!(warm_up(Some(2.5), true).longest_warm_up(), Duration::from_secs(25));
        assert_eq!(warm_up(None, true).longest_warm_up(), Duration::ZERO);
        assert_eq!(warm_up(Some(f64::NAN), false).warm_up(), Duration::ZERO);
        for (seconds, auto, is_fine) in [(86_400.0, false, true), (8_641.0, true, false), (1e300, false, false)] {
            assert_eq!(warm_up(Some(seconds), auto).fault().is_none(), is_fine, "{seconds}");
        }
        assert!(RunSpec { size: None, ..spec() }.fault().is_some_and(|why| why.contains("size")));
    }
}
