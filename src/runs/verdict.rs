//! The verdict on a finished run and its reasons. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::format::commas;

/// The verdict on a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The results can be trusted.
    Valid,
    /// The results may be wrong; the reasons say what to check.
    Suspect,
    /// The results are wrong: the run is excluded from comparisons.
    Invalid,
}

impl Verdict {
    /// The word in columns and on pages.
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
            .ok_or_else(|| format!("unknown verdict {text:?}"))
    }
}

/// A reason for a verdict, or a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// Machine-readable code, e.g. `requests_failed`.
    pub code: String,
    /// Severity; `valid` for a note, which does not affect the verdict.
    pub verdict: Verdict,
    /// A sentence with the observed value and the limit.
    pub text: String,
    /// The observed value; null if there is none.
    #[serde(default, alias = "seen")]
    pub observed: Option<f64>,
    /// The limit; null if there is none.
    #[serde(default)]
    pub limit: Option<f64>,
    /// Unit of both.
    #[serde(default)]
    pub unit: Option<Unit>,
}

/// The unit of a value and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Unit {
    /// A share: 1 is 100 %.
    #[serde(rename = "share")]
    Share,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// A count.
    #[serde(rename = "count")]
    Count,
    /// CPU cores.
    #[serde(rename = "cores")]
    Cores,
}

impl Unit {
    /// The sign after a number.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Share => "%",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Count => "",
            Self::Cores => "cores",
        }
    }

    pub(crate) fn unit_name(self) -> &'static str {
        match self {
            Self::Share => "shares",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Count => "items",
            Self::Cores => "cores",
        }
    }

    /// A value with its unit: `12.5 %`, `5 s`, `3`.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Share => format!("{} %", short(value * 100.0)),
            Self::Count => short(value),
            other => format!("{} {}", short(value), other.sign()),
        }
    }

    /// An observed value and its limit, with enough digits to distinguish them: `90.004 %` and `90 %`.
    pub fn texts(self, observed: f64, limit: f64) -> (String, String) {
        let factor = if self == Self::Share { 100.0 } else { 1.0 };
        let (observed, limit) = (observed * factor, limit * factor);
        let alike = |decimals| rounded(observed, decimals) == rounded(limit, decimals);
        let decimals = (decimals(observed).max(decimals(limit))..MAX_DECIMALS).find(|decimals| !alike(*decimals));
        let decimals = decimals.unwrap_or(MAX_DECIMALS);
        (self.with_sign(&rounded(observed, decimals)), self.with_sign(&rounded(limit, decimals)))
    }

    fn with_sign(self, number: &str) -> String {
        let sign = self.sign();
        if sign.is_empty() { number.to_owned() } else { format!("{number} {sign}") }
    }
}

/// Maximum number of decimals.
pub(crate) const MAX_DECIMALS: usize = 12;

/// At most two decimals, without trailing zeros; below 0.01, two non-zero digits.
pub(crate) fn short(value: f64) -> String {
    rounded(value, decimals(value))
}

pub(crate) fn decimals(value: f64) -> usize {
    let reaches = |decimals: &usize| value.abs() * 10_f64.powi(i32::try_from(*decimals).unwrap_or(0)) >= 10.0;
    if value.abs() >= 0.01 || value == 0.0 { 2 } else { (3..MAX_DECIMALS).find(reaches).unwrap_or(MAX_DECIMALS) }
}

/// Rounds without trailing zeros, and separates thousands.
pub(crate) fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{}{}", if value < 0.0 { "-" } else { "" }, commas(text))
}

impl Reason {
    pub(crate) fn new(code: &str, verdict: Verdict, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), verdict, text: text.into(), observed: None, limit: None, unit: None }
    }

    /// Creates a note, which does not affect the verdict.
    pub(crate) fn note(code: &str, text: impl Into<String>) -> Self {
        Self::new(code, Verdict::Valid, text)
    }

    /// Adds to the end of the sentence.
    pub(crate) fn and(self, more: &str) -> Self {
        Self { text: self.text + more, ..self }
    }

    /// Whether this is a note.
    pub fn is_note(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    pub(crate) fn with(self, observed: f64, limit: f64, unit: Unit) -> Self {
        Self { observed: Some(observed), limit: Some(limit), unit: Some(unit), ..self }
    }

    /// Observed value and limit, as far as the sentence lacks them: `97 %, limit 90 %`.
    pub fn figures(&self) -> Option<String> {
        let (observed, limit, unit) = (self.observed?, self.limit?, self.unit?);
        let (observed, limit) = unit.texts(observed, limit);
        match (self.text.contains(&observed), self.text.contains(&limit)) {
            (true, true) => None,
            (true, false) => Some(format!("limit {limit}")),
            (false, _) => Some(format!("{observed}, limit {limit}")),
        }
    }
}
