//! Level and duration of a load. Values of these types are always valid: an invalid one can't be created or
//! deserialized.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Maximum virtual users of a load.
pub const MAX_VUS: u32 = 100_000;
/// Maximum iterations per second of a load.
pub const MAX_RATE: u32 = 1_000_000;
/// Maximum stages of a load.
pub const MAX_STAGES: usize = 100;
/// Minimum duration, as required by k6.
pub const MIN_DURATION: Duration = Duration::from_secs(1);
/// Maximum duration.
pub const MAX_DURATION: Duration = Duration::from_hours(24);

/// The load on a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LoadBody", into = "LoadBody")]
pub enum Load {
    /// The load in the script's `options`.
    Script,
    /// Closed model: virtual users that start their next iteration when the previous one has ended; replaces the
    /// script's scenarios.
    Closed(Closed),
    /// Open model: iterations started per second, independent of earlier ones; replaces the script's scenarios.
    Open(Open),
}

/// Virtual users over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    vus: Shape,
}

/// Iterations started per second over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    rate: Shape,
    max_vus: u32,
}

/// A valid level over time, with a valid duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(Form);

/// The form of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A constant level.
    Constant {
        /// The level.
        level: u32,
        /// The duration.
        duration_ms: u64,
    },
    /// Consecutive stages, starting at zero.
    Stages(Vec<Stage>),
}

/// A linear ramp from the previous level; a step if its duration is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Duration.
    pub duration_ms: u64,
    /// Level at its end.
    pub target: u32,
}

/// Why a load is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {text}")]
pub struct Fault {
    /// The invalid part.
    pub part: LoadPart,
    /// What is allowed.
    pub text: String,
}

/// A part of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPart {
    /// Number of virtual users.
    Vus,
    /// Iterations per second.
    Rate,
    /// Duration of a constant load.
    Duration,
    /// Stages.
    Stages,
    /// Maximum virtual users for a rate.
    MaxVus,
}

impl std::fmt::Display for LoadPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Vus => "vus",
            Self::Rate => "rate",
            Self::Duration => "duration",
            Self::Stages => "stages",
            Self::MaxVus => "max_vus",
        })
    }
}

impl Load {
    /// Returns its duration; unknown for a script's own load.
    pub fn duration(&self) -> Option<Duration> {
        self.shape().map(Shape::duration)
    }

    /// Returns the load at its highest level for this long; a script's own load stays.
    #[must_use]
    pub fn at_peak(&self, lasts: Duration) -> Self {
        let duration_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let peak = |shape: &Shape| Shape(Form::Constant { level: shape.peak(), duration_ms });
        match self {
            Self::Script => Self::Script,
            Self::Closed(closed) => Self::Closed(Closed { vus: peak(&closed.vus) }),
            Self::Open(open) => Self::Open(Open { rate: peak(&open.rate), max_vus: open.max_vus }),
        }
    }

    /// Returns its level over time; unknown for a script's own load.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Self::Script => None,
            Self::Closed(closed) => Some(&closed.vus),
            Self::Open(open) => Some(&open.rate),
        }
    }

    /// Returns the number of virtual users, if constant.
    pub fn constant_vus(&self) -> Option<u32> {
        match self {
            Self::Closed(Closed { vus: Shape(Form::Constant { level, .. }) }) => Some(*level),
            Self::Closed(_) | Self::Script | Self::Open(_) => None,
        }
    }

    /// Returns it as JSON without the duration of a constant load.
    pub fn without_duration(&self) -> String {
        match LoadBody::from(self.clone()) {
            LoadBody::Vus { vus, .. } => format!(r#"{{"kind":"vus","vus":{vus}}}"#),
            LoadBody::Rate { rate, max_vus, .. } => {
                let max_vus = max_vus.map_or_else(|| "null".to_owned(), |vus| vus.to_string());
                format!(r#"{{"kind":"rate","rate":{rate},"max_vus":{max_vus}}}"#)
            }
            body => serde_json::to_string(&body).unwrap_or_default(),
        }
    }

    /// Returns the number of started iterations, if it does not depend on the target.
    pub fn iterations(&self) -> Option<f64> {
        match self {
            Self::Open(open) => Some(open.rate.area()),
            Self::Script | Self::Closed(_) => None,
        }
    }
}

impl Closed {
    /// Creates a closed load.
    pub fn new(form: Form) -> Result<Self, Fault> {
        Ok(Self { vus: Shape::new(form, LoadPart::Vus, MAX_VUS)? })
    }

    /// Returns the virtual users over time.
    pub fn vus(&self) -> &Shape {
        &self.vus
    }
}

impl Open {
    /// Creates an open load with at most `max_vus` virtual users, by default [`Open::default_vus`].
    pub fn new(form: Form, max_vus: Option<u32>) -> Result<Self, Fault> {
        let rate = Shape::new(form, LoadPart::Rate, MAX_RATE)?;
        let max_vus = max_vus.unwrap_or_else(|| Self::default_vus(&rate));
        check_level(max_vus, LoadPart::MaxVus, MAX_VUS)?;
        Ok(Self { rate, max_vus })
    }

    /// Returns the iterations started per second over time.
    pub fn rate(&self) -> &Shape {
        &self.rate
    }

    /// Returns the maximum virtual users. All are created before the start, because k6 needs time for each.
    pub fn max_vus(&self) -> u32 {
        self.max_vus
    }

    /// Returns enough virtual users for iterations of a tenth of a second, within the memory of a typical machine
    /// (1,000 take about 160 MB in k6).
    pub fn default_vus(rate: &Shape) -> u32 {
        rate.peak().div_ceil(10).clamp(10, 1_000)
    }
}

impl Shape {
    fn new(form: Form, part: LoadPart, most: u32) -> Result<Self, Fault> {
        let shape = Self(form);
        let lasts = match &shape.0 {
            Form::Constant { level, .. } => {
                check_level(*level, part, most)?;
                LoadPart::Duration
            }
            Form::Stages(stages) => {
                check_stages(stages, most)?;
                LoadPart::Stages
            }
        };
        if (MIN_DURATION..=MAX_DURATION).contains(&shape.duration()) {
            return Ok(shape);
        }
        let text = match lasts {
            LoadPart::Stages => "together between 1 and 86400 seconds",
            _ => "between 1 and 86400 seconds",
        };
        Err(Fault { part: lasts, text: text.to_owned() })
    }

    /// Returns its form.
    pub fn form(&self) -> &Form {
        &self.0
    }

    /// Returns its total duration.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(match &self.0 {
            Form::Constant { duration_ms, .. } => *duration_ms,
            Form::Stages(stages) => stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.duration_ms)),
        })
    }

    /// Returns its highest level.
    pub fn peak(&self) -> u32 {
        self.points().into_iter().map(|(_, level)| level).max().unwrap_or_default()
    }

    /// Returns its corners: milliseconds since the start, and the level there.
    pub fn points(&self) -> Vec<(u64, u32)> {
        match &self.0 {
            Form::Constant { level, duration_ms } => vec![(0, *level), (*duration_ms, *level)],
            Form::Stages(stages) => {
                let mut at = 0;
                let corner = |stage: &Stage| {
                    at += stage.duration_ms;
                    (at, stage.target)
                };
                // A first stage without duration sets the initial level.
                let begin = stages.first().is_none_or(|stage| stage.duration_ms > 0).then_some((0, 0));
                begin.into_iter().chain(stages.iter().map(corner)).collect()
            }
        }
    }

    /// Returns the integral of the level over time, in seconds.
    fn area(&self) -> f64 {
        let points = self.points();
        let part = |pair: &[(u64, u32)]| {
            let ((from, low), (to, high)) = (pair[0], pair[1]);
            (to - from) as f64 / 1_000.0 * (f64::from(low) + f64::from(high)) / 2.0
        };
        points.windows(2).map(part).sum()
    }
}

fn check_level(level: u32, part: LoadPart, most: u32) -> Result<(), Fault> {
    if (1..=most).contains(&level) {
        return Ok(());
    }
    Err(Fault { part, text: format!("between 1 and {most}") })
}

fn check_stages(stages: &[Stage], most: u32) -> Result<(), Fault> {
    let fault = |text: String| Err(Fault { part: LoadPart::Stages, text });
    if stages.is_empty() {
        return fault("name at least one".to_owned());
    }
    if stages.len() > MAX_STAGES {
        return fault(format!("there are {}; at most {MAX_STAGES}", stages.len()));
    }
    if let Some((place, stage)) = stages.iter().enumerate().find(|(_, stage)| stage.target > most) {
        return fault(format!("stage {} goes to {}; at most {most}", place + 1, stage.target));
    }
    if stages.iter().all(|stage| stage.target == 0) {
        return fault("none of them goes above 0".to_owned());
    }
    Ok(())
}

/// A load. Durations are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
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
                Ok(Stage { duration_ms: milliseconds(duration_s, LoadPart::Stages)?, target })
            };
            stages.into_iter().map(stage).collect::<Result<_, Fault>>().map(Form::Stages)
        };
        Ok(match body {
            LoadBody::Script => Self::Script,
            LoadBody::Vus { vus, duration_s } => Self::Closed(Closed::new(Form::constant(vus, duration_s)?)?),
            LoadBody::VusStages { stages: given } => Self::Closed(Closed::new(stages(given)?)?),
            LoadBody::Rate { rate, duration_s, max_vus } => {
                Self::Open(Open::new(Form::constant(rate, duration_s)?, max_vus)?)
            }
            LoadBody::RateStages { stages: given, max_vus } => Self::Open(Open::new(stages(given)?, max_vus)?),
        })
    }
}

impl From<Load> for LoadBody {
    fn from(load: Load) -> Self {
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let stages = |stages: Vec<Stage>| {
            let body = |Stage { duration_ms, target }| StageBody { duration_s: seconds(duration_ms), target };
            stages.into_iter().map(body).collect()
        };
        match load {
            Load::Script => Self::Script,
            Load::Closed(Closed { vus: Shape(form) }) => match form {
                Form::Constant { level, duration_ms } => Self::Vus { vus: level, duration_s: seconds(duration_ms) },
                Form::Stages(given) => Self::VusStages { stages: stages(given) },
            },
            Load::Open(Open { rate: Shape(form), max_vus }) => match (form, Some(max_vus)) {
                (Form::Constant { level, duration_ms }, max_vus) => {
                    Self::Rate { rate: level, duration_s: seconds(duration_ms), max_vus }
                }
                (Form::Stages(given), max_vus) => Self::RateStages { stages: stages(given), max_vus },
            },
        }
    }
}

impl Form {
    /// Returns a constant level for a number of seconds.
    pub fn constant(level: u32, duration_s: f64) -> Result<Self, Fault> {
        Ok(Self::Constant { level, duration_ms: milliseconds(duration_s, LoadPart::Duration)? })
    }
}

fn milliseconds(seconds: f64, part: LoadPart) -> Result<u64, Fault> {
    let fault = |_| Fault { part, text: format!("{seconds} is not a valid number of seconds") };
    let duration = Duration::try_from_secs_f64(seconds).map_err(fault)?;
    Ok(u64::try_from(duration.saturating_add(Duration::from_micros(500)).as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
