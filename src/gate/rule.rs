//! Rules such as `rps<-5%`: a metric, a direction and a limit. Pure.

use std::{fmt, str::FromStr};

use crate::{
    compare::{metric::Metric, statistics::Better},
    metrics,
};

/// A rule of the gate: differences beyond its limit fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The metric.
    pub metric: Metric,
    direction: Direction,
    /// A relative difference, -0.05 is 5 % less; for metrics that are shares an absolute difference.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Below,
    Above,
}

impl Rule {
    /// Whether a difference lies beyond the limit.
    pub fn is_crossed_by(&self, change: f64) -> bool {
        match self.direction {
            Direction::Below => change < self.limit,
            Direction::Above => change > self.limit,
        }
    }

    /// Whether a difference is in the direction of the limit.
    pub fn is_worse(&self, change: f64) -> bool {
        match self.direction {
            Direction::Below => change < 0.0,
            Direction::Above => change > 0.0,
        }
    }

    /// Returns the distance of a difference from the limit.
    pub fn room(&self, change: f64) -> f64 {
        (change - self.limit).abs()
    }

    /// Returns the limit as a share, or in points for a metric that is a share.
    pub fn share(&self) -> f64 {
        self.limit
    }

    /// Formats the limit.
    pub fn limit(&self) -> String {
        self.metric.difference(Some(self.limit)).text().to_owned()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.direction {
            Direction::Below => '<',
            Direction::Above => '>',
        };
        // Dividing by 100 and multiplying again may leave a rounding error.
        let percent = (self.limit * 1e8).round() / 1e6;
        write!(f, "{}{way}{percent}%", self.metric.short_key())
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Fails with a message that names the error and its position, in characters from 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let fault = |at: usize, what: String| format!("{text:?}: at {}: {what}", text[..at].chars().count() + 1);
        let Some(place) = text.find(['<', '>']) else {
            return Err(fault(text.len(), "< or > is missing, as in rps<-5%".to_owned()));
        };
        let metric = metric(text[..place].trim()).map_err(|what| fault(0, what))?;
        let way = if text[place..].starts_with('<') { Direction::Below } else { Direction::Above };
        let rest = &text[place + 1..];
        let at = place + 1 + (rest.len() - rest.trim_start().len());
        let Some(number) = rest.trim().strip_suffix('%') else {
            return Err(fault(text.len(), "% is missing, as in rps<-5%".to_owned()));
        };
        let percent: f64 = number.trim().parse().ok().filter(|percent: &f64| percent.is_finite()).ok_or_else(|| {
            let hint = if number.starts_with('=') { ": write < or > without =" } else { "" };
            fault(at, format!("{:?} is not a number{hint}", number.trim()))
        })?;
        let rule = Self { metric, direction: way, limit: percent / 100.0 };
        rule.check().map_err(|what| fault(at, what)).map(|()| rule)
    }
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        let name = self.metric.short_key();
        match (self.direction, self.metric.better()) {
            (Direction::Below, Some(Better::Lower)) => Err(format!("lower {name} is better; write {name}>5%")),
            (Direction::Above, Some(Better::Higher)) => Err(format!("higher {name} is better; write {name}<-5%")),
            (Direction::Below, _) if self.limit > 0.0 => {
                Err(format!("the limit after < must not be positive, as in {name}<-5%"))
            }
            (Direction::Above, _) if self.limit < 0.0 => {
                Err(format!("the limit after > must not be negative, as in {name}>5%"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the metric with this name in rules, with or without its unit.
pub fn metric(name: &str) -> Result<Metric, String> {
    let is_it = |metric: &Metric| metric.short_key() == name.strip_suffix("_ms").unwrap_or(name);
    metrics::compared().find(is_it).ok_or_else(|| {
        let all: Vec<&str> = metrics::compared().map(Metric::short_key).collect();
        format!("unknown metric {name:?}; use one of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn a_rule_has_a_metric_a_direction_and_a_limit() {
        for (text, written, crossed, held) in [
            ("rps<-5%", "rps<-5%", -0.0501, -0.05),
            (" p99_ms > 10 % ", "p99>10%", 0.11, 0.1),
            ("error_rate>0.1%", "error_rate>0.1%", 0.0011, 0.001),
            ("rps<0%", "rps<0%", -0.000_1, 0.0),
            ("received_per_s>2.5e0%", "received_per_s>2.5%", 0.03, 0.025),
        ] {
            let rule = rule(text);
            assert_eq!(rule.to_string(), written);
            assert!(rule.is_crossed_by(crossed) && !rule.is_crossed_by(held), "{text}");
        }
    }

    #[test]
    fn every_metric_has_a_rule_that_round_trips() {
        for metric in metrics::compared() {
            let way = if metric.better() == Some(Better::Higher) { "<-1.1%" } else { ">1.1%" };
            let text = format!("{}{way}", metric.short_key());
            assert_eq!((rule(&text).metric, rule(&text).to_string()), (metric, text));
        }
    }

    #[test]
    fn a_limit_is_formatted_in_the_unit_of_its_metric() {
        assert_eq!(rule("rps<-5%").limit().replace('\u{a0}', " "), "−5.0 %");
        assert_eq!(rule("error_rate>0.1%").limit().replace('\u{a0}', " "), "+0.10 points");
    }

    #[test]
    fn an_invalid_rule_is_rejected_with_error_and_position() {
        for (text, message) in [
            ("", "\"\": at 1: < or > is missing, as in rps<-5%"),
            ("rps", "\"rps\": at 4: < or > is missing, as in rps<-5%"),
            ("rsp<-5%", "\"rsp<-5%\": at 1: unknown metric \"rsp\"; use one of rps, "),
            ("rps<-5", "\"rps<-5\": at 7: % is missing, as in rps<-5%"),
            ("rps<x%", "\"rps<x%\": at 5: \"x\" is not a number"),
            ("rps<%", "\"rps<%\": at 5: \"\" is not a number"),
            ("rps<NaN%", "\"rps<NaN%\": at 5: \"NaN\" is not a number"),
            ("rps<=-5%", "\"rps<=-5%\": at 5: \"=-5\" is not a number: write < or > without ="),
            ("rps<5%", "\"rps<5%\": at 5: the limit after < must not be positive, as in rps<-5%"),
            ("rps>5%", "\"rps>5%\": at 5: higher rps is better; write rps<-5%"),
            ("p99<-10%", "\"p99<-10%\": at 5: lower p99 is better; write p99>5%"),
            ("p99>-10%", "\"p99>-10%\": at 5: the limit after > must not be negative, as in p99>5%"),
            ("é<5%", "\"é<5%\": at 1: unknown metric \"é\""),
        ] {
            let fault = text.parse::<Rule>().expect_err(text);
            assert!(fault.starts_with(message), "{fault}");
        }
    }
}
