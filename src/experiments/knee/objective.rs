//! What must hold at a rate: `p99<50ms, failures<0.1%`. Pure.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    metrics::{METRICS, Metric, definition::Role},
    runs::model::Run,
};

/// The most conditions of an objective.
const MOST_CONDITIONS: usize = 10;

/// Conditions all of which must hold. As text it is read and written as people type it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective(Vec<Condition>);

/// One figure and its limit.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    metric: Metric,
    bound: Bound,
    /// Milliseconds, or a share.
    limit: f64,
    /// The limit as it was typed.
    text: String,
}

/// On which side of its limit a figure is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Below,
    AtMost,
}

/// The metrics that an objective may ask for, by the names that it uses.
fn metrics() -> impl Iterator<Item = (&'static str, Metric)> {
    let latencies = METRICS.iter().filter(|def| def.role >= Role::Compared && def.is_latency);
    latencies.map(|def| (def.name, def.metric)).chain([("failures", Metric::ErrorRate)])
}

fn name(metric: Metric) -> &'static str {
    metrics().find(|(_, own)| *own == metric).map_or(metric.key(), |(name, _)| name)
}

impl Objective {
    /// Whether a run fulfils it; none where it lacks a figure that is asked for.
    pub fn holds(&self, run: &Run) -> Option<bool> {
        let mut all = true;
        for Condition { metric, bound, limit, .. } in &self.0 {
            let seen = (metric.def().get)(&run.figures)?;
            all &= match bound {
                Bound::Below => seen < *limit,
                Bound::AtMost => seen <= *limit,
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
        if parts.len() > MOST_CONDITIONS {
            return Err(format!("it has {} conditions; at most {MOST_CONDITIONS}", parts.len()));
        }
        let told = |place: usize, part: &str, why: String| format!("condition {} is {part:?}: {why}", place + 1);
        let read = |(place, part): (usize, &&str)| condition(part).map_err(|why| told(place, part, why));
        Ok(Self(parts.iter().enumerate().map(read).collect::<Result<_, _>>()?))
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
        format!("there is no metric {name:?}; there are {}", names.join(", "))
    })?;
    let limit = if metric == Metric::ErrorRate { share(text) } else { milliseconds(text) }?;
    if limit < 0.0 || limit == 0.0 && bound == Bound::Below {
        return Err("nothing is below that".to_owned());
    }
    Ok(Condition { metric, bound, limit, text: text.to_owned() })
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let percent = number.filter(|percent| percent.is_finite()).ok_or("failures are a share, such as 0.1%")?;
    if percent > 100.0 { Err("failures are never above 100%".to_owned()) } else { Ok(percent / 100.0) }
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let units = [("ms", 1.0), ("µs", 0.001), ("us", 0.001), ("s", 1_000.0)];
    let read = units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim().parse::<f64>().ok()?;
        number.is_finite().then_some(number * factor)
    });
    read.ok_or_else(|| "a latency is a time, such as 50ms or 1.5s".to_owned())
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
    fn it_holds_where_all_of_its_conditions_do() {
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
    fn it_is_written_as_it_is_read() {
        for text in ["p99<50ms, failures<0.1%", "p99.9<=1.5s", "avg<200µs"] {
            assert_eq!(objective(text).to_string(), text);
            let json = serde_json::to_string(&objective(text)).expect("JSON");
            assert_eq!(serde_json::from_str::<Objective>(&json).expect("an objective"), objective(text));
        }
        assert_eq!(objective("p99<50ms,failures < 1 %").to_string(), "p99<50ms, failures<1 %");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (text, sentence) in [
            ("", "write it as p99<50ms, failures<0.1%"),
            ("p99<50ms,", "condition 2 is \"\": write it as p99<50ms or failures<0.1%"),
            ("p99>50ms", "condition 1 is \"p99>50ms\": write it as p99<50ms or failures<0.1%"),
            (
                "p97<50ms",
                "condition 1 is \"p97<50ms\": there is no metric \"p97\"; there are avg, p50, p90, p95, p99, p99.9, max, failures",
            ),
            ("p99<50", "condition 1 is \"p99<50\": a latency is a time, such as 50ms or 1.5s"),
            ("p99<NaNms", "condition 1 is \"p99<NaNms\": a latency is a time, such as 50ms or 1.5s"),
            ("p99<50ms, failures<0.1", "condition 2 is \"failures<0.1\": failures are a share, such as 0.1%"),
            ("failures<101%", "condition 1 is \"failures<101%\": failures are never above 100%"),
            ("failures<0%", "condition 1 is \"failures<0%\": nothing is below that"),
            ("p99<=-1ms", "condition 1 is \"p99<=-1ms\": nothing is below that"),
        ] {
            assert_eq!(text.parse::<Objective>(), Err(sentence.to_owned()), "{text}");
        }
        assert!(
            ["p99<1s"; 11].join(",").parse::<Objective>().expect_err("too many").starts_with("it has 11 conditions")
        );
    }
}
