//! The minimum effect: from where on a difference matters, by metric. Pure.

use std::{collections::BTreeMap, str::FromStr};

use super::{metric::Metric, statistics::MIN_EFFECT};

/// Failures differ by points of their share, for a ratio to none says nothing: one request in a thousand.
const MIN_POINTS: f64 = 0.001;

/// The smallest difference that matters, where it is not the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinEffect(BTreeMap<Metric, f64>);

impl MinEffect {
    /// Of a metric, as a share of the baseline's median; of failures, points of their share.
    pub fn of(&self, metric: Metric) -> f64 {
        let default = if metric.is_share() { MIN_POINTS } else { MIN_EFFECT };
        self.0.get(&metric).copied().unwrap_or(default)
    }

    /// Those that differ from the default, in percent: `rps:2,p99_ms:5`; empty if none does.
    pub fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(metric, share)| format!("{}:{}", metric.key(), share * 100.0)).collect();
        parts.join(",")
    }
}

impl FromStr for MinEffect {
    type Err = String;

    /// Reads `rps:2,p99_ms:5%`. The error is a sentence that names the part.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut by_metric = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, percent) =
                part.split_once([':', '=']).ok_or_else(|| format!("{part:?} is not METRIC:PERCENT"))?;
            let metric = Metric::judged(name.trim())?;
            let percent: f64 = percent
                .trim()
                .trim_end_matches('%')
                .trim_end()
                .parse()
                .map_err(|_| format!("{part:?} has no percentage"))?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("{part:?}: a percentage from 0 to 100"));
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
    fn what_matters_is_a_percent_unless_somebody_says_otherwise() {
        let parsed: MinEffect = "rps:2, p99_ms=5 %".parse().expect("two");
        assert!((parsed.of(Metric::Rps) - 0.02).abs() < 1e-12 && (parsed.of(Metric::P99Ms) - 0.05).abs() < 1e-12);
        assert!(
            (parsed.of(Metric::P50Ms) - 0.01).abs() < 1e-12 && (parsed.of(Metric::ErrorRate) - 0.001).abs() < 1e-12
        );
        assert_eq!(parsed.text(), "rps:2,p99_ms:5");
        assert_eq!(parsed.text().parse::<MinEffect>(), Ok(parsed));
        assert_eq!("".parse::<MinEffect>(), Ok(MinEffect::default()));
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (text, fault) in [
            ("rps", r#""rps" is not METRIC:PERCENT"#),
            ("rps:x", r#""rps:x" has no percentage"#),
            ("rps:-1", r#""rps:-1": a percentage from 0 to 100"#),
            ("rps:NaN", r#""rps:NaN": a percentage from 0 to 100"#),
        ] {
            assert_eq!(text.parse::<MinEffect>(), Err(fault.to_owned()));
        }
        assert!("max_ms:1".parse::<MinEffect>().expect_err("not judged").contains("there are rps"));
    }
}
