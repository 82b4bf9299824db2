//! Rules such as `rps<-5%`: a metric, which way, and from where on. Pure.

use std::{fmt, str::FromStr};

use crate::{
    compare::{metric::Metric, statistics::Better},
    metrics,
};

/// From where on a difference is one that the gate closes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What it is about.
    pub metric: Metric,
    way: Way,
    /// As a share: -0.05 is 5 % less; of a metric that is a share itself, its points.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Below,
    Above,
}

impl Rule {
    /// Whether a difference lies beyond the limit.
    pub fn is_crossed_by(&self, change: f64) -> bool {
        match self.way {
            Way::Below => change < self.limit,
            Way::Above => change > self.limit,
        }
    }

    /// How far a difference lies from the limit.
    pub fn room(&self, change: f64) -> f64 {
        (change - self.limit).abs()
    }

    /// The limit, in words.
    pub fn limit(&self) -> String {
        self.metric.difference(Some(self.limit)).text().to_owned()
    }
}

/// What rules call a metric: as JSON does, without the unit.
pub fn key(metric: Metric) -> &'static str {
    metric.key().strip_suffix("_ms").unwrap_or(metric.key())
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            Way::Below => '<',
            Way::Above => '>',
        };
        // Dividing by 100 and multiplying again may leave a trace far behind the point.
        let percent = (self.limit * 1e8).round() / 1e6;
        write!(f, "{}{way}{percent}%", key(self.metric))
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Fails with a sentence that names fault and place, by characters from 1.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let fault = |at: usize, what: String| format!("{text:?}: at {}: {what}", text[..at].chars().count() + 1);
        let Some(place) = text.find(['<', '>']) else {
            return Err(fault(text.len(), "here < or > is missing, as in rps<-5%".to_owned()));
        };
        let metric = metric(text[..place].trim()).map_err(|what| fault(0, what))?;
        let way = if text[place..].starts_with('<') { Way::Below } else { Way::Above };
        let rest = &text[place + 1..];
        let at = place + 1 + (rest.len() - rest.trim_start().len());
        let Some(number) = rest.trim().strip_suffix('%') else {
            return Err(fault(text.len(), "here % is missing, as in rps<-5%".to_owned()));
        };
        let percent: f64 = number.trim().parse().ok().filter(|percent: &f64| percent.is_finite()).ok_or_else(|| {
            let hint = if number.starts_with('=') { ": write < or > alone" } else { "" };
            fault(at, format!("{:?} is no number{hint}", number.trim()))
        })?;
        let rule = Self { metric, way, limit: percent / 100.0 };
        rule.makes_sense().map_err(|what| fault(at, what)).map(|()| rule)
    }
}

impl Rule {
    fn makes_sense(&self) -> Result<(), String> {
        let name = key(self.metric);
        match (self.way, self.metric.better()) {
            (Way::Below, Some(Better::Lower)) => Err(format!("less {name} is better; write {name}>5%")),
            (Way::Above, Some(Better::Higher)) => Err(format!("more {name} is better; write {name}<-5%")),
            (Way::Below, _) if self.limit > 0.0 => Err(format!("after < comes 0 or less, as in {name}<-5%")),
            (Way::Above, _) if self.limit < 0.0 => Err(format!("after > comes 0 or more, as in {name}>5%")),
            _ => Ok(()),
        }
    }
}

/// The metric that a rule calls this, with or without its unit.
pub fn metric(name: &str) -> Result<Metric, String> {
    let is_it = |metric: &Metric| key(*metric) == name.strip_suffix("_ms").unwrap_or(name);
    metrics::compared().find(is_it).ok_or_else(|| {
        let all: Vec<&str> = metrics::compared().map(key).collect();
        format!("{name:?} is no metric; there are {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn a_rule_is_a_metric_a_way_and_a_limit() {
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
    fn every_metric_has_a_rule_and_is_written_as_it_is_read() {
        for metric in metrics::compared() {
            let way = if metric.better() == Some(Better::Higher) { "<-1.1%" } else { ">1.1%" };
            let text = format!("{}{way}", key(metric));
            assert_eq!((rule(&text).metric, rule(&text).to_string()), (metric, text));
        }
    }

    #[test]
    fn a_limit_is_told_in_the_unit_of_its_metric() {
        assert_eq!(rule("rps<-5%").limit().replace('\u{a0}', " "), "−5.0 %");
        assert_eq!(rule("error_rate>0.1%").limit().replace('\u{a0}', " "), "+0.10 points");
    }

    #[test]
    fn what_is_no_rule_is_told_with_fault_and_place() {
        for (text, told) in [
            ("", "\"\": at 1: here < or > is missing, as in rps<-5%"),
            ("rps", "\"rps\": at 4: here < or > is missing, as in rps<-5%"),
            ("rsp<-5%", "\"rsp<-5%\": at 1: \"rsp\" is no metric; there are rps, "),
            ("rps<-5", "\"rps<-5\": at 7: here % is missing, as in rps<-5%"),
            ("rps<x%", "\"rps<x%\": at 5: \"x\" is no number"),
            ("rps<%", "\"rps<%\": at 5: \"\" is no number"),
            ("rps<NaN%", "\"rps<NaN%\": at 5: \"NaN\" is no number"),
            ("rps<=-5%", "\"rps<=-5%\": at 5: \"=-5\" is no number: write < or > alone"),
            ("rps<5%", "\"rps<5%\": at 5: after < comes 0 or less, as in rps<-5%"),
            ("rps>5%", "\"rps>5%\": at 5: more rps is better; write rps<-5%"),
            ("p99<-10%", "\"p99<-10%\": at 5: less p99 is better; write p99>5%"),
            ("p99>-10%", "\"p99>-10%\": at 5: after > comes 0 or more, as in p99>5%"),
            ("é<5%", "\"é<5%\": at 1: \"é\" is no metric"),
        ] {
            let fault = text.parse::<Rule>().expect_err(text);
            assert!(fault.starts_with(told), "{fault}");
        }
    }
}
