//! What a finished run is worth, and why: a pure judgement of its figures, of what happened second by second, and of how
//! it was made.
//!
//! The limits are strict where a wrong winner could come of it: an implementation that answers errors quickly looks
//! fast, and a generator without room makes all targets equal. Everything else is as wide as ordinary runs need, for a
//! verdict that cries wolf is not read any more. Each theme has a file; [`limits`] has every limit with its reason.

mod drift;
mod generator;
pub mod generators;
mod host;
pub mod limits;
mod little;
mod load;
mod making;
mod network;
mod series;
mod steadiness;
mod target;
#[cfg(test)]
mod tests;
pub mod usage;

use brewbench_agent::wire::{
    load::Load,
    outcome::{Cause, Conditions, Cores, Enforced},
    series::Series,
    summary::Figures,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use limits::{Limit, Limits};
pub use making::clock_set;

use super::parts::seen::GeneratorSeen;
use usage::Side;

/// Which rules these are: a number that grows when a figure would be judged otherwise than before.
pub const RULES: u32 = 5;

/// What a finished run is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its figures mean what they say.
    Valid,
    /// They may; the reasons say what to look at.
    Suspect,
    /// They don't: it never wins and never enters a median.
    Invalid,
}

impl Verdict {
    /// The word for columns and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
        }
    }
}

impl std::str::FromStr for Verdict {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Valid, Self::Suspect, Self::Invalid]
            .into_iter()
            .find(|verdict| verdict.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no verdict"))
    }
}

/// One thing that speaks against a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// For scripts, e.g. `requests_failed`.
    pub code: String,
    /// How much it weighs: `valid` for a note, which changes nothing.
    pub verdict: Verdict,
    /// A sentence with the figure seen and the limit.
    pub text: String,
    /// The figure seen; null where there is none.
    #[serde(default)]
    pub seen: Option<f64>,
    /// Where it begins to speak against a run; null where there is none.
    #[serde(default)]
    pub limit: Option<f64>,
    /// What both count.
    #[serde(default)]
    pub unit: Option<Unit>,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Unit {
    /// 1 is all of it.
    #[serde(rename = "share")]
    Share,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Things.
    #[serde(rename = "count")]
    Count,
    /// CPU cores.
    #[serde(rename = "cores")]
    Cores,
}

impl Unit {
    /// What stands behind a number.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Share => "%",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Count => "",
            Self::Cores => "cores",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Share => "parts of the whole",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Count => "things",
            Self::Cores => "cores",
        }
    }

    /// A figure with its unit: `12.5 %`, `5 s`, `3`.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Share => format!("{} %", short(value * 100.0)),
            Self::Count => short(value),
            other => format!("{} {}", short(value), other.sign()),
        }
    }

    /// A figure and its limit, with as many digits as it takes to tell them apart: `90.004 %` and `90 %`.
    pub fn texts(self, seen: f64, limit: f64) -> (String, String) {
        let factor = if self == Self::Share { 100.0 } else { 1.0 };
        let (seen, limit) = (seen * factor, limit * factor);
        let alike = |decimals| rounded(seen, decimals) == rounded(limit, decimals);
        let decimals = (decimals(seen).max(decimals(limit))..MOST_DECIMALS).find(|decimals| !alike(*decimals));
        let decimals = decimals.unwrap_or(MOST_DECIMALS);
        (self.sentence(&rounded(seen, decimals)), self.sentence(&rounded(limit, decimals)))
    }

    fn sentence(self, number: &str) -> String {
        let sign = self.sign();
        if sign.is_empty() { number.to_owned() } else { format!("{number} {sign}") }
    }
}

/// Beyond these, digits say nothing.
const MOST_DECIMALS: usize = 12;

/// At most two decimals, and none that say nothing; of less than a hundredth two digits that are not zero.
fn short(value: f64) -> String {
    rounded(value, decimals(value))
}

fn decimals(value: f64) -> usize {
    let reaches = |decimals: &usize| value.abs() * 10_f64.powi(i32::try_from(*decimals).unwrap_or(0)) >= 10.0;
    if value.abs() >= 0.01 || value == 0.0 { 2 } else { (3..MOST_DECIMALS).find(reaches).unwrap_or(MOST_DECIMALS) }
}

/// Without zeros at the end.
fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Reason {
    fn new(code: &str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), verdict, text: text.into(), seen: None, limit: None, unit: None }
    }

    /// Something worth knowing that does not change what a run is worth.
    fn note(code: &str, text: impl Into<String>) -> Self {
        Self::new(code, Verdict::Valid, text)
    }

    /// Whether it changes nothing.
    pub fn is_note(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    fn with(self, seen: f64, limit: f64, unit: Unit) -> Self {
        Self { seen: Some(seen), limit: Some(limit), unit: Some(unit), ..self }
    }

    /// Figure and limit as they stand beside the sentence: `97 %, limit 90 %`; none where there are none.
    pub fn figures(&self) -> Option<String> {
        let (seen, limit, unit) = (self.seen?, self.limit?, self.unit?);
        let (seen, limit) = unit.texts(seen, limit);
        Some(format!("{seen}, limit {limit}"))
    }
}

/// What a run is worth, and why it is not simply valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// As bad as its worst reason.
    pub verdict: Verdict,
    /// In the order of the themes.
    pub reasons: Vec<Reason>,
}

impl From<Vec<Reason>> for Judgement {
    fn from(reasons: Vec<Reason>) -> Self {
        let verdict = reasons.iter().map(|reason| reason.verdict).max().unwrap_or(Verdict::Valid);
        Self { verdict, reasons }
    }
}

/// How a run was made, where one of our agents made it.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// What held the target to its size.
    pub enforced: Enforced,
    /// Where both sides ran.
    pub cores: &'a Cores,
    /// How many processors the machine has for all of this, if known.
    pub machine_cores: Option<f64>,
    /// The CPU share of the target's size, cores.
    pub vcpus: Option<f64>,
    /// How hard it was loaded.
    pub load: Option<&'a Load>,
    /// Processes of the target that ran out of memory.
    pub oom_kills: u64,
    /// What only its agent could see.
    pub conditions: &'a Conditions,
    /// Those who made the load, where it was not the target's agent.
    pub generators: &'a [GeneratorSeen],
    /// What happened second by second.
    pub recorded: Recorded<'a>,
}

impl Making<'_> {
    /// How many whole cores the target ran on.
    fn target_cores(&self) -> f64 {
        match self.cores.target.len() {
            0 => self.vcpus.unwrap_or(1.0).ceil(),
            cores => cores as f64,
        }
    }

    /// Whose CPU time the samples of the target's machine tell.
    fn side(&self) -> Side {
        if self.generators.is_empty() { Side::Both } else { Side::Target }
    }
}

/// What is there of what happened second by second.
#[derive(Clone, Copy, Debug)]
pub enum Recorded<'a> {
    /// It, whole or not.
    Series(&'a Series),
    /// Nothing that can be read.
    Nothing,
    /// Nothing, because nobody recorded anything when the run was made.
    NotYet,
}

/// Judges a whole summary; `making` is absent for an import, of which nothing else is known.
pub fn judge(figures: &Figures, making: Option<&Making<'_>>, limits: &Limits) -> Judgement {
    let mut reasons = Vec::new();
    if let Some(making) = making {
        target::judge(making, &mut reasons);
    }
    load::judge(figures, making.and_then(|making| making.load), limits, &mut reasons);
    if let Some(making) = making {
        generator::judge(making, limits, &mut reasons);
        generators::judge(making, limits, &mut reasons);
    }
    generator::judge_connections(figures, limits, &mut reasons);
    if let Some(making) = making {
        little::judge(figures, making, limits, &mut reasons);
        host::judge(figures, making, limits, &mut reasons);
        reasons.extend(network::judge(making.conditions, limits));
        steadiness::judge(making, limits, &mut reasons);
        making::judge(making, limits, &mut reasons);
        series::judge(figures, making, limits, &mut reasons);
    }
    reasons.into()
}

/// Judges a run that has no figures; only what its target did is a verdict on it. `why` is the agent's sentence.
pub fn judge_failure(cause: Cause, why: &str) -> Option<Judgement> {
    target::failure(cause, why).map(|reason| vec![reason].into())
}
