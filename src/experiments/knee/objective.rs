//! Objectives of a knee search, such as `p99<50ms, failures<0.1%`. Pure.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    metrics::{METRICS, Metric, definition::Role},
    runs::model::Run,
};

const MAX_CONDITIONS: usize = 10;

/// Conditions that must all hold. Serialized as the text that users type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective(Vec<Condition>);

/// One metric and its limit.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    metric: Metric,
    bound: Bound,
    /// Milliseconds or a share.
    limit: f64,
    /// The limit as typed.
    text: String,
}

/// How a value is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Below,
    AtMost,
}

/// Returns the metrics that an objective may use, by name.
fn metrics() -> impl Iterator<Item = (&'static str, Metric)> {
    let latencies = METRICS.iter().filter(|def| def.role >= Role::Compared && def.is_latency);
    latencies.map(|def| (def.name, def.metric)).chain([("failures", Metric::ErrorRate)])
}

fn name(metric: Metric) -> &'static str {
    metrics().find(|(_, own)| *own == metric).map_or(metric.key(), |(name, _)| name)
}

impl Objective {
    /// Whether a run meets the objective; `None` if the run lacks one of the metrics.
    pub fn holds(&self, run: &Run) -> Option<bool> {
        let mut all = true;
        for Condition { metric, bound, limit, .. } in &self.0 {
            let value = (metric.def().get)(&run.figures)?;
            all &= match bound {
                Bound::Below => value < *limit,
                Bound::AtMost => value <= *limit,
            };
        }
        Some(all)
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts == [""] {
            return Err("write it as p99<50ms, failures<0.1%".to_owned());
        }
        if parts.len() > MAX_CONDITIONS {
            return Err(format!("{} conditions; at most {MAX_CONDITIONS} are allowed", parts.len()));
        }
        let fault = |place: usize, part: &str, why: String| format!("condition {} ({part:?}): {why}", place + 1);
        let parse = |(place, part): (usize, &&str)| condition(part).map_err(|why| fault(place, part, why));
        Ok(Self(parts.iter().enumerate().map(parse).collect::<Result<_, _>>()?))
    }
}

fn condition(part: &str) -> Result<Condition, String> {
    let usage = || "write it as p99<50ms or failures<0.1%".to_owned();
    let (name, rest) = part.split_once('<').ok_or_else(usage)?;
    let (bound, text) = rest.strip_prefix('=').map_or((Bound::Below, rest), |rest| (Bound::AtMost, rest));
    let (name, text) = (name.trim(), text.trim());
    let metric = metrics().find(|(own, _)| *own == name).map(|(_, metric)| metric);
    let metric = metric.ok_or_else(|| {
        let names: Vec<_> = metrics().map(|(name, _)| name).collect();
        format!("unknown metric {name:?}; use one of {}", names.join(", "))
    })?;
    let limit = if metric == Metric::ErrorRate { share(text) } else { milliseconds(text) }?;
    if limit < 0.0 || limit == 0.0 && bound == Bound::Below {
        return Err("no value is below that limit".to_owned());
    }
    Ok(Condition { metric, bound, limit, text: text.to_owned() })
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let percent = number.filter(|percent| percent.is_finite()).ok_or("write failures as a share, such as 0.1%")?;
    if percent > 100.0 { Err("failures can't exceed 100%".to_owned()) } else { Ok(percent / 100.0) }
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let units = [("ms", 1.0), ("µs", 0.001), ("us", 0.001), ("s", 1_000.0)];
    let read = units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        number.is_finite().then_some(number * factor)
    });
    read.ok_or_else(|| "write a latency as a time, such as 50ms or 1.5s".to_owned())
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Condition { metric, bound, text, .. }) in self.0.iter().enumerate() {
            let between = if place > 0 { ", " } else { "" };
            let sign = if *bound == Bound::Below { "<" } else { "<=" };
            write!(f, "{between}{}{sign}{text}", name(*metric))?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Objective {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::{figured, finished};

    fn objective(text: &str) -> Objective {
        text.parse().expect("an objective")
    }

    #[test]
    fn an_objective_holds_if_all_conditions_do() {
        // p50 4 ms, p99 16 ms, p99.9 20 ms, no failures.
        let run = finished("servy", 1);
        for (text, holds) in [
            ("p99<50ms", true),
            ("p99 < 16ms", false),
            ("p99<=16ms", true),
            ("p99<0.02s, failures<0.1%", true),
            ("p50<50ms, p99.9<19ms", false),
            ("max<=30000µs", true),
            ("failures<=0%", true),
        ] {
            assert_eq!(objective(text).holds(&run), Some(holds), "{text}");
        }
        let without = figured(run, |figures| figures.p99_ms = None);
        assert_eq!(objective("p99<50ms, failures<0.1%").holds(&without), None);
    }

    #[test]
    fn an_objective_is_written_as_it_was_read() {
        for text in ["p99<50ms, failures<0.1%", "p99.9<=1.5s", "avg<200µs"] {
            assert_eq!(objective(text).to_string(), text);
            let json = serde_json::to_string(&objective(text)).expect("JSON");
            assert_eq!(serde_json::from_str::<Objective>(&json).expect("an objective"), objective(text));
        }
        assert_eq!(objective("p99<50ms,failures < 1 %").to_string(), "p99<50ms, failures<1 %");
    }

    #[test]
    fn invalid_conditions_are_refused_with_their_position() {
        for (text, sentence) in [
            ("", "write it as p99<50ms, failures<0.1%"),
            ("p99<50ms,", "condition 2 (\"\"): write it as p99<50ms or failures<0.1%"),
            ("p99>50ms", "condition 1 (\"p99>50ms\"): write it as p99<50ms or failures<0.1%"),
            (
                "p97<50ms",
                "condition 1 (\"p97<50ms\"): unknown metric \"p97\"; use one of avg, p50, p90, p95, p99, p99.9, max, \
                 failures",
            ),
            ("p99<50", "condition 1 (\"p99<50\"): write a latency as a time, such as 50ms or 1.5s"),
            ("p99<NaNms", "condition 1 (\"p99<NaNms\"): write a latency as a time, such as 50ms or 1.5s"),
            ("p99<50ms, failures<0.1", "condition 2 (\"failures<0.1\"): write failures as a share, such as 0.1%"),
            ("failures<101%", "condition 1 (\"failures<101%\"): failures can't exceed 100%"),
            ("failures<0%", "condition 1 (\"failures<0%\"): no value is below that limit"),
            ("p99<=-1ms", "condition 1 (\"p99<=-1ms\"): no value is below that limit"),
        ] {
            assert_eq!(text.parse::<Objective>(), Err(sentence.to_owned()), "{text}");
        }
        assert!(["p99<1s"; 11].join(",").parse::<Objective>().expect_err("too many").starts_with("11 conditions"));
    }
}
