//! A load in JSON, in words and as people type it. Pure.

use std::time::Duration;

use brewbench_agent::wire::load::{Closed, Fault, Form, Load, Open, Part, Shape, Stage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::format;

/// A load as JSON. Durations are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadBody {
    /// As the script's own options say.
    Script,
    /// A constant number of virtual users: each begins its next iteration when its last one has ended.
    Vus {
        /// 1 to 100,000.
        vus: u32,
        /// 1 s to a day.
        duration_s: f64,
    },
    /// Virtual users in stages, from zero.
    VusStages {
        /// At most 100, together 1 s to a day.
        stages: Vec<StageBody>,
    },
    /// A constant rate: so many iterations are begun per second, whether or not earlier ones have ended.
    Rate {
        /// Iterations per second, 1 to 1,000,000.
        rate: u32,
        /// 1 s to a day.
        duration_s: f64,
        /// Virtual users that keep the rate up; a tenth of it, 10 to 1,000, if absent.
        #[serde(default)]
        max_vus: Option<u32>,
    },
    /// A rate in stages, from zero.
    RateStages {
        /// At most 100, together 1 s to a day.
        stages: Vec<StageBody>,
        /// Virtual users that keep the rate up; a tenth of its highest level, 10 to 1,000, if absent.
        #[serde(default)]
        max_vus: Option<u32>,
    },
}

/// A way from the level before in a straight line; at once where it takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StageBody {
    /// How long it takes, seconds.
    pub duration_s: f64,
    /// Where it ends: virtual users, or iterations per second.
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

/// A constant level for so many seconds.
pub fn constant(level: u32, duration_s: f64) -> Result<Form, Fault> {
    Ok(Form::Constant { level, duration_ms: milliseconds(duration_s, Part::Duration)? })
}

fn milliseconds(seconds: f64, part: Part) -> Result<u64, Fault> {
    let fault = |_| Fault { part, text: format!("{seconds} is no number of seconds") };
    let duration = Duration::try_from_secs_f64(seconds).map_err(fault)?;
    Ok(u64::try_from((duration + Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX))
}

/// For `#[serde(with = …)]`: a load as [`LoadBody`].
pub mod json {
    use brewbench_agent::wire::load::Load;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::LoadBody;

    /// Writes it.
    pub fn serialize<S: Serializer>(load: &Load, serializer: S) -> Result<S::Ok, S::Error> {
        LoadBody::from(load).serialize(serializer)
    }

    /// Reads it; fails where it makes no sense.
    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Load, D::Error> {
        let body = LoadBody::deserialize(deserializer)?;
        body.try_into().map_err(|fault| D::Error::custom(format!("load: {fault}")))
    }
}

/// The same for one that may be absent.
pub mod json_if_any {
    use brewbench_agent::wire::load::Load;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::LoadBody;

    /// Writes it.
    pub fn serialize<S: Serializer>(load: &Option<Load>, serializer: S) -> Result<S::Ok, S::Error> {
        load.as_ref().map(LoadBody::from).serialize(serializer)
    }

    /// Reads it; fails where it makes no sense.
    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Load>, D::Error> {
        let body = Option::<LoadBody>::deserialize(deserializer)?;
        let load = body.map(Load::try_from).transpose();
        load.map_err(|fault| D::Error::custom(format!("load: {fault}")))
    }
}

/// As a column of the database keeps it.
pub fn written(load: &Load) -> String {
    serde_json::to_string(&LoadBody::from(load)).unwrap_or_default()
}

/// What [`written`] wrote.
pub fn read(text: &str) -> Result<Load, Box<dyn std::error::Error + Send + Sync>> {
    Ok(serde_json::from_str::<LoadBody>(text)?.try_into()?)
}

/// The number of virtual users, where it is constant.
pub fn constant_vus(load: &Load) -> Option<u32> {
    match load {
        Load::Closed(closed) => match closed.vus().form() {
            Form::Constant { level, .. } => Some(*level),
            Form::Stages(_) => None,
        },
        Load::Script | Load::Open(_) => None,
    }
}

/// How long it lasts, in milliseconds; unknown for a script's own.
pub fn duration_ms(load: &Load) -> Option<i64> {
    load.duration().and_then(|duration| i64::try_from(duration.as_millis()).ok())
}

/// How hard, in words: `50 VUs`, `2,000 iterations/s`, `0 → 100 VUs in 3 stages`.
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
            let levels: Vec<String> = turns(shape).into_iter().map(count).collect();
            format!("{}\u{a0}{unit} in {}", levels.join(" → "), format::plural(stages.len(), "stage"))
        }
    }
}

/// The same so that two that differ have different words; how long a constant one lasts does not make it another.
pub fn exact(load: &Load) -> String {
    match load.shape().map(Shape::form) {
        Some(Form::Stages(given)) => format!("{} ({})", words(load), stages_text(given)),
        _ => words(load),
    }
}

/// The same, with the virtual users that keep a rate up where they are not as many as usual: with fewer, late answers are
/// dropped and not waited for.
pub fn telling(load: &Load) -> String {
    let usual = |open: &Open| Open::new(open.rate().form().clone(), None).is_ok_and(|usual| usual == *open);
    match load {
        Load::Open(open) if !usual(open) => whole(load),
        _ => exact(load),
    }
}

/// The same with the virtual users that keep a rate up, however many.
pub fn whole(load: &Load) -> String {
    match load {
        Load::Open(open) => {
            let vus = usize::try_from(open.max_vus()).unwrap_or(usize::MAX);
            format!("{}, kept up by {} at most", exact(load), format::plural(vus, "VU"))
        }
        Load::Script | Load::Closed(_) => exact(load),
    }
}

/// Where a shape begins, its peak and where it ends, each told once.
fn turns(shape: &Shape) -> Vec<u32> {
    let points = shape.points();
    let mut levels: Vec<u32> = points.first().into_iter().map(|(_, level)| *level).collect();
    levels.push(shape.peak());
    levels.extend(points.last().map(|(_, level)| *level));
    levels.dedup();
    levels
}

/// Stages from text such as `5s:10,10s:50`, k6's own way to write them: a duration and where it leads.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, String> {
    let parts = text.split([',', ' ', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let stages: Vec<Stage> = parts.enumerate().map(|(place, part)| stage(place, part)).collect::<Result<_, _>>()?;
    if stages.is_empty() { Err("write them as 5s:10,10s:50".to_owned()) } else { Ok(stages) }
}

fn stage(place: usize, part: &str) -> Result<Stage, String> {
    let fault = |why: &str| format!("stage {} is {part:?}: {why}", place + 1);
    let (duration, target) = part.split_once(':').ok_or_else(|| fault("write it as 10s:50"))?;
    let duration =
        duration.parse::<jiff::SignedDuration>().ok().and_then(|given| u64::try_from(given.as_millis()).ok());
    let duration_ms = duration.ok_or_else(|| fault("the time before ':' is written as 10s, 500ms or 1m30s"))?;
    let target = target.parse().map_err(|_| fault("what follows ':' is a whole number"))?;
    Ok(Stage { duration_ms, target })
}

/// What [`parse_stages`] reads.
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
    fn a_load_is_told_in_few_words_and_exactly_where_it_must_be() {
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
    fn json_and_columns_give_back_what_went_in() {
        let stages = LoadBody::RateStages { stages: vec![StageBody { duration_s: 1.5, target: 7 }], max_vus: None };
        for load in
            [Load::Script, vus(3, 1.25), rate(9, 2.0), vus_stages("1s:5,0s:1"), stages.try_into().expect("a load")]
        {
            assert_eq!(read(&written(&load)).expect("a load"), load);
        }
        assert_eq!(written(&vus(3, 1.0)), r#"{"kind":"vus","vus":3,"duration_s":1.0}"#);
        for (text, why) in [
            (r#"{"kind":"vus","vus":3}"#, "duration_s"),
            (r#"{"kind":"vus","vus":3,"duration_s":-1}"#, "duration: -1 is no number of seconds"),
            (r#"{"kind":"vus","vus":3,"duration_s":1,"rate":5}"#, "rate"),
            (r#"{"kind":"loud"}"#, "loud"),
        ] {
            let fault = read(text).expect_err(text).to_string();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn stages_are_read_and_written_as_k6_does_and_a_fault_names_its_stage() {
        let stages = parse_stages(" 5s:10, 1m30s:50,500ms:0 ").expect("stages");
        assert_eq!(stages_text(&stages), "5s:10,90s:50,500ms:0");
        for (text, why) in [
            ("", "write them as 5s:10,10s:50"),
            ("5s:10,10s", "stage 2 is \"10s\": write it as 10s:50"),
            ("soon:10", "stage 1 is \"soon:10\": the time before ':' is written as 10s, 500ms or 1m30s"),
            ("-1s:10", "stage 1 is \"-1s:10\": the time before ':'"),
            ("5s:many", "stage 1 is \"5s:many\": what follows ':' is a whole number"),
        ] {
            let fault = parse_stages(text).expect_err(text);
            assert!(fault.starts_with(why), "{fault}");
        }
    }
}
