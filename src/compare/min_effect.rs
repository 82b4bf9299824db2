//! The minimum effect, the smallest difference that matters, by metric. Pure.

use std::{collections::BTreeMap, str::FromStr};

use super::{metric::Metric, statistics::MIN_EFFECT};

/// Default for shares, which have no ratio to zero: 0.1 points, one request in a thousand.
const MIN_POINTS: f64 = 0.001;

/// Minimum effects by metric, where they differ from the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinEffect(BTreeMap<Metric, f64>);

impl MinEffect {
    /// Returns the minimum effect of a metric, as a share of the baseline's median; for shares in points.
    pub fn for_metric(&self, metric: Metric) -> f64 {
        let default = if metric.is_share() { MIN_POINTS } else { MIN_EFFECT };
        self.0.get(&metric).copied().unwrap_or(default)
    }

    /// Formats the values that differ from the default, in percent: `rps:2,p99_ms:5`.
    pub fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(metric, share)| format!("{}:{}", metric.key(), share * 100.0)).collect();
        parts.join(",")
    }
}

impl FromStr for MinEffect {
    type Err = String;

    /// Parses `rps:2,p99_ms:5%`. An error quotes the invalid part.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut by_metric = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, percent) =
                part.split_once([':', '=']).ok_or_else(|| format!("{part:?}: write METRIC:PERCENT"))?;
            let metric = Metric::judged(name.trim())?;
            let percent: f64 = percent
                .trim()
                .trim_end_matches('%')
                .trim_end()
                .parse()
                .map_err(|_| format!("{part:?}: the percentage is not a number"))?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("{part:?}: the percentage is not between 0 and 100"));
            }
            by_metric.insert(metric, percent / 100.0);
        }
        Ok(Self(by_metric))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_one_percent_and_0_1_points_for_shares() {
        let parsed: MinEffect = "rps:2, p99_ms=5 %".parse().expect("two");
        assert!(
            (parsed.for_metric(Metric::Rps) - 0.02).abs() < 1e-12
                && (parsed.for_metric(Metric::P99Ms) - 0.05).abs() < 1e-12
        );
        assert!(
            (parsed.for_metric(Metric::P50Ms) - 0.01).abs() < 1e-12
                && (parsed.for_metric(Metric::ErrorRate) - 0.001).abs() < 1e-12
        );
        assert_eq!(parsed.text(), "rps:2,p99_ms:5");
        assert_eq!(parsed.text().parse::<MinEffect>(), Ok(parsed));
        assert_eq!("".parse::<MinEffect>(), Ok(MinEffect::default()));
    }

    #[test]
    fn invalid_parts_are_rejected_and_quoted() {
        for (text, fault) in [
            ("rps", r#""rps": write METRIC:PERCENT"#),
            ("rps:x", r#""rps:x": the percentage is not a number"#),
            ("rps:-1", r#""rps:-1": the percentage is not between 0 and 100"#),
            ("rps:NaN", r#""rps:NaN": the percentage is not between 0 and 100"#),
        ] {
            assert_eq!(text.parse::<MinEffect>(), Err(fault.to_owned()));
        }
        assert!("max_ms:1".parse::<MinEffect>().expect_err("not judged").contains("use one of rps"));
    }
}
