//! A load as JSON, as text, and as typed by users. Pure.

use std::time::Duration;

use brewbench_agent::wire::load::{Closed, Fault, Form, Load, Open, Part, Shape, Stage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::format;

/// A load. Durations are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadBody {
    /// The script's own options.
    Script,
    /// A constant number of virtual users: each starts an iteration when its previous one has ended.
    Vus {
        /// 1 to 100,000.
        vus: u32,
        /// 1 s to a day.
        duration_s: f64,
    },
    /// Virtual users in stages, starting from zero.
    VusStages {
        /// At most 100 stages, 1 s to a day in total.
        stages: Vec<StageBody>,
    },
    /// A constant arrival rate: iterations start on schedule, whether or not earlier ones have ended.
    Rate {
        /// Iterations per second, 1 to 1,000,000.
        rate: u32,
        /// 1 s to a day.
        duration_s: f64,
        /// Maximum number of virtual users; default: a tenth of the rate, 10 to 1,000.
        #[serde(default)]
        max_vus: Option<u32>,
    },
    /// An arrival rate in stages, starting from zero.
    RateStages {
        /// At most 100 stages, 1 s to a day in total.
        stages: Vec<StageBody>,
        /// Maximum number of virtual users; default: a tenth of the highest rate, 10 to 1,000.
        #[serde(default)]
        max_vus: Option<u32>,
    },
}

/// A linear ramp from the previous level; a jump if it takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StageBody {
    /// Duration, seconds.
    pub duration_s: f64,
    /// Level at its end: virtual users, or iterations per second.
    pub target: u32,
}

impl TryFrom<LoadBody> for Load {
    type Error = Fault;

    fn try_from(body: LoadBody) -> Result<Self, Fault> {
        let stages = |stages: Vec<StageBody>| {
            let stage = |StageBody { duration_s, target }| {
                Ok(Stage { duration_ms: milliseconds(duration_s, Part::Stages)?, target })
            };
            stages.into_iter().map(stage).collect::<Result<_, Fault>>().map(Form::Stages)
        };
        Ok(match body {
            LoadBody::Script => Self::Script,
            LoadBody::Vus { vus, duration_s } => Self::Closed(Closed::new(constant(vus, duration_s)?)?),
            LoadBody::VusStages { stages: given } => Self::Closed(Closed::new(stages(given)?)?),
            LoadBody::Rate { rate, duration_s, max_vus } => {
                Self::Open(Open::new(constant(rate, duration_s)?, max_vus)?)
            }
            LoadBody::RateStages { stages: given, max_vus } => Self::Open(Open::new(stages(given)?, max_vus)?),
        })
    }
}

impl From<&Load> for LoadBody {
    fn from(load: &Load) -> Self {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let stages = |stages: &[Stage]| {
            stages
                .iter()
                .map(|stage| StageBody { duration_s: seconds(stage.duration_ms), target: stage.target })
                .collect()
        };
        match load {
            Load::Script => Self::Script,
            Load::Closed(closed) => match closed.vus().form() {
                Form::Constant { level, duration_ms } => Self::Vus { vus: *level, duration_s: seconds(*duration_ms) },
                Form::Stages(given) => Self::VusStages { stages: stages(given) },
            },
            Load::Open(open) => {
                let max_vus = Some(open.max_vus());
                match open.rate().form() {
                    Form::Constant { level, duration_ms } => {
                        Self::Rate { rate: *level, duration_s: seconds(*duration_ms), max_vus }
                    }
                    Form::Stages(given) => Self::RateStages { stages: stages(given), max_vus },
                }
            }
        }
    }
}

/// A constant level for a number of seconds.
pub fn constant(level: u32, duration_s: f64) -> Result<Form, Fault> {
    Ok(Form::Constant { level, duration_ms: milliseconds(duration_s, Part::Duration)? })
}

fn milliseconds(seconds: f64, part: Part) -> Result<u64, Fault> {
    let fault = |_| Fault { part, text: format!("{seconds} is not a valid number of seconds") };
    let duration = Duration::try_from_secs_f64(seconds).map_err(fault)?;
    Ok(u64::try_from((duration + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX))
}

/// For `#[serde(with = …)]`: serializes a load as [`LoadBody`].
pub mod json {
    use brewbench_agent::wire::load::Load;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::LoadBody;

    /// Serializes a load.
    pub fn serialize<S: Serializer>(load: &Load, serializer: S) -> Result<S::Ok, S::Error> {
        LoadBody::from(load).serialize(serializer)
    }

    /// Deserializes and validates a load.
    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Load, D::Error> {
        let body = LoadBody::deserialize(deserializer)?;
        body.try_into().map_err(|fault| D::Error::custom(format!("load: {fault}")))
    }
}

/// For `#[serde(with = …)]`: serializes an optional load.
pub mod json_if_any {
    use brewbench_agent::wire::load::Load;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::LoadBody;

    /// Serializes a load.
    pub fn serialize<S: Serializer>(load: &Option<Load>, serializer: S) -> Result<S::Ok, S::Error> {
        load.as_ref().map(LoadBody::from).serialize(serializer)
    }

    /// Deserializes and validates a load.
    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Load>, D::Error> {
        let body = Option::<LoadBody>::deserialize(deserializer)?;
        let load = body.map(Load::try_from).transpose();
        load.map_err(|fault| D::Error::custom(format!("load: {fault}")))
    }
}

/// Serializes a load for the database.
pub fn to_json(load: &Load) -> String {
    serde_json::to_string(&LoadBody::from(load)).unwrap_or_default()
}

/// Reads a load from the database, as written by [`to_json`].
pub fn read(text: &str) -> Result<Load, Box<dyn std::error::Error + Send + Sync>> {
    Ok(serde_json::from_str::<LoadBody>(text)?.try_into()?)
}

/// The number of virtual users, if constant.
pub fn constant_vus(load: &Load) -> Option<u32> {
    match load {
        Load::Closed(closed) => match closed.vus().form() {
            Form::Constant { level, .. } => Some(*level),
            Form::Stages(_) => None,
        },
        Load::Script | Load::Open(_) => None,
    }
}

/// Duration in milliseconds; none if the script's own options set it.
pub fn duration_ms(load: &Load) -> Option<i64> {
    load.duration().and_then(|duration| i64::try_from(duration.as_millis()).ok())
}

/// The load in words: `50 VUs`, `2,000 iterations/s`, `0 → 100 VUs in 3 stages`.
pub fn words(load: &Load) -> String {
    let Some(shape) = load.shape() else { return "load of the script".to_owned() };
    let count = |level: u32| format::count(Some(u64::from(level))).text().to_owned();
    let unit = match load {
        Load::Open(_) if shape.peak() == 1 => "iteration/s",
        Load::Open(_) => "iterations/s",
        _ if shape.peak() == 1 => "VU",
        _ => "VUs",
    };
    match shape.form() {
        Form::Constant { level, .. } => format!("{}\u{a0}{unit}", count(*level)),
        Form::Stages(stages) => {
            let levels: Vec<String> = key_levels(shape).into_iter().map(count).collect();
            format!("{}\u{a0}{unit} in {}", levels.join(" → "), format::plural(stages.len(), "stage"))
        }
    }
}

/// The load in words with all stages: different loads have different texts, except for the duration of a constant load.
pub fn exact(load: &Load) -> String {
    match load.shape().map(Shape::form) {
        Some(Form::Stages(given)) => format!("{} ({})", words(load), stages_text(given)),
        _ => words(load),
    }
}

/// Like [`exact`], with the maximum of virtual users unless it is the default: fewer of them drop iterations earlier.
pub fn with_unusual_max_vus(load: &Load) -> String {
    let is_default = |open: &Open| Open::new(open.rate().form().clone(), None).is_ok_and(|default| default == *open);
    match load {
        Load::Open(open) if !is_default(open) => with_max_vus(load),
        _ => exact(load),
    }
}

/// Like [`exact`], always with the maximum of virtual users.
pub fn with_max_vus(load: &Load) -> String {
    match load {
        Load::Open(open) => {
            let vus = usize::try_from(open.max_vus()).unwrap_or(usize::MAX);
            format!("{}, at most {}", exact(load), format::plural(vus, "VU"))
        }
        Load::Script | Load::Closed(_) => exact(load),
    }
}

/// The first level, the peak and the last level of a shape, without repetitions.
fn key_levels(shape: &Shape) -> Vec<u32> {
    let points = shape.points();
    let mut levels: Vec<u32> = points.first().into_iter().map(|(_, level)| *level).collect();
    levels.push(shape.peak());
    levels.extend(points.last().map(|(_, level)| *level));
    levels.dedup();
    levels
}

/// Parses stages in k6's notation, durations with targets: `5s:10,10s:50`.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, String> {
    let parts = text.split([',', ' ', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let stages: Vec<Stage> = parts.enumerate().map(|(place, part)| stage(place, part)).collect::<Result<_, _>>()?;
    if stages.is_empty() { Err("write stages as 5s:10,10s:50".to_owned()) } else { Ok(stages) }
}

fn stage(place: usize, part: &str) -> Result<Stage, String> {
    let fault = |why: &str| format!("stage {} ({part:?}): {why}", place + 1);
    let (duration, target) = part.split_once(':').ok_or_else(|| fault("write it as 10s:50"))?;
    let duration =
        duration.parse::<jiff::SignedDuration>().ok().and_then(|given| u64::try_from(given.as_millis()).ok());
    let duration_ms = duration.ok_or_else(|| fault("the duration before ':' must look like 10s, 500ms or 1m30s"))?;
    let target = target.parse().map_err(|_| fault("the target after ':' must be an integer"))?;
    Ok(Stage { duration_ms, target })
}

/// Writes stages in the notation of [`parse_stages`].
pub fn stages_text(stages: &[Stage]) -> String {
    let part = |stage: &Stage| match stage.duration_ms {
        ms if ms.is_multiple_of(1_000) => format!("{}s:{}", ms / 1_000, stage.target),
        ms => format!("{ms}ms:{}", stage.target),
    };
    stages.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A constant number of virtual users.
    pub fn vus(vus: u32, duration_s: f64) -> Load {
        LoadBody::Vus { vus, duration_s }.try_into().expect("a load")
    }

    /// A constant rate.
    pub fn rate(rate: u32, duration_s: f64) -> Load {
        LoadBody::Rate { rate, duration_s, max_vus: None }.try_into().expect("a load")
    }

    /// Virtual users in stages.
    pub fn vus_stages(text: &str) -> Load {
        Load::Closed(Closed::new(Form::Stages(parse_stages(text).expect("stages"))).expect("a load"))
    }

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_load_has_a_short_and_an_exact_text() {
        assert_eq!(plain(&words(&vus(1, 1.0))), "1 VU");
        assert_eq!(plain(&words(&rate(2_000, 10.0))), "2,000 iterations/s");
        let ramp = vus_stages("10s:50,20s:100,10s:100");
        assert_eq!(plain(&words(&ramp)), "0 → 100 VUs in 3 stages");
        assert_eq!(plain(&words(&vus_stages("0s:5,1s:10,1500ms:0"))), "5 → 10 → 0 VUs in 3 stages");
        assert_eq!(plain(&exact(&ramp)), "0 → 100 VUs in 3 stages (10s:50,20s:100,10s:100)");
        assert_eq!(exact(&vus(5, 1.0)), exact(&vus(5, 9.0)));
        assert_eq!(words(&Load::Script), "load of the script");
    }

    #[test]
    fn loads_round_trip_through_json() {
        let stages = LoadBody::RateStages { stages: vec![StageBody { duration_s: 1.5, target: 7 }], max_vus: None };
        for load in
            [Load::Script, vus(3, 1.25), rate(9, 2.0), vus_stages("1s:5,0s:1"), stages.try_into().expect("a load")]
        {
            assert_eq!(read(&to_json(&load)).expect("a load"), load);
        }
        assert_eq!(to_json(&vus(3, 1.0)), r#"{"kind":"vus","vus":3,"duration_s":1.0}"#);
        for (text, why) in [
            (r#"{"kind":"vus","vus":3}"#, "duration_s"),
            (r#"{"kind":"vus","vus":3,"duration_s":-1}"#, "duration: -1 is not a valid number of seconds"),
            (r#"{"kind":"vus","vus":3,"duration_s":1,"rate":5}"#, "rate"),
            (r#"{"kind":"loud"}"#, "loud"),
        ] {
            let fault = read(text).expect_err(text).to_string();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn stages_use_the_notation_of_k6_and_an_error_names_its_stage() {
        let stages = parse_stages(" 5s:10, 1m30s:50,500ms:0 ").expect("stages");
        assert_eq!(stages_text(&stages), "5s:10,90s:50,500ms:0");
        for (text, why) in [
            ("", "write stages as 5s:10,10s:50"),
            ("5s:10,10s", "stage 2 (\"10s\"): write it as 10s:50"),
            ("soon:10", "stage 1 (\"soon:10\"): the duration before ':' must look like 10s, 500ms or 1m30s"),
            ("-1s:10", "stage 1 (\"-1s:10\"): the duration before ':'"),
            ("5s:many", "stage 1 (\"5s:many\"): the target after ':' must be an integer"),
        ] {
            let fault = parse_stages(text).expect_err(text);
            assert!(fault.starts_with(why), "{fault}");
        }
    }
}
