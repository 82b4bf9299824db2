//! What a finished run is worth, and each reason for it. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

    pub(crate) fn words(self) -> &'static str {
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
pub(crate) const MOST_DECIMALS: usize = 12;

/// At most two decimals, and none that say nothing; of less than a hundredth two digits that are not zero.
pub(crate) fn short(value: f64) -> String {
    rounded(value, decimals(value))
}

pub(crate) fn decimals(value: f64) -> usize {
    let reaches = |decimals: &usize| value.abs() * 10_f64.powi(i32::try_from(*decimals).unwrap_or(0)) >= 10.0;
    if value.abs() >= 0.01 || value == 0.0 { 2 } else { (3..MOST_DECIMALS).find(reaches).unwrap_or(MOST_DECIMALS) }
}

/// Without zeros at the end.
pub(crate) fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Reason {
    pub(crate) fn new(code: &str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), verdict, text: text.into(), seen: None, limit: None, unit: None }
    }

    /// Something worth knowing that does not change what a run is worth.
    pub(crate) fn note(code: &str, text: impl Into<String>) -> Self {
        Self::new(code, Verdict::Valid, text)
    }

    /// Whether it changes nothing.
    pub fn is_note(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    pub(crate) fn with(self, seen: f64, limit: f64, unit: Unit) -> Self {
        Self { seen: Some(seen), limit: Some(limit), unit: Some(unit), ..self }
    }

    /// Figure and limit as they stand beside the sentence: `97 %, limit 90 %`; none where there are none.
    pub fn figures(&self) -> Option<String> {
        let (seen, limit, unit) = (self.seen?, self.limit?, self.unit?);
        let (seen, limit) = unit.texts(seen, limit);
        Some(format!("{seen}, limit {limit}"))
    }
}
