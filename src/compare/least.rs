//! From where on a difference matters, by metric. Pure.

use std::{collections::BTreeMap, str::FromStr};

use super::{metric::Metric, statistics::LEAST_DIFFERENCE};

/// Failures differ by points of their share, for a ratio to none says nothing: one request in a thousand.
const LEAST_POINTS: f64 = 0.001;

/// The least difference that matters, where it is not the usual one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Least(BTreeMap<Metric, f64>);

impl Least {
    /// As a share of the baseline's median; of failures, points of their share.
    pub fn of(&self, metric: Metric) -> f64 {
        let usual = if metric.is_share() { LEAST_POINTS } else { LEAST_DIFFERENCE };
        self.0.get(&metric).copied().unwrap_or(usual)
    }

    /// Those that are not as usual: `rps:2,p99_ms:5`, in percent; empty where all are.
    pub fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(metric, share)| format!("{}:{}", metric.key(), share * 100.0)).collect();
        parts.join(",")
    }
}

impl FromStr for Least {
    type Err = String;

    /// Reads `rps:2,p99_ms:5%`. The error is a sentence that names the part.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut least = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, percent) =
                part.split_once([':', '=']).ok_or_else(|| format!("{part:?} is not METRIC:PERCENT"))?;
            let metric = judged(name.trim())?;
            let percent: f64 = percent
                .trim()
                .trim_end_matches('%')
                .trim_end()
                .parse()
                .map_err(|_| format!("{part:?} has no percentage"))?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("{part:?}: a percentage from 0 to 100"));
            }
            least.insert(metric, percent / 100.0);
        }
        Ok(Self(least))
    }
}

fn judged(name: &str) -> Result<Metric, String> {
    Metric::JUDGED.into_iter().find(|metric| metric.key() == name).ok_or_else(|| {
        let known: Vec<_> = Metric::JUDGED.iter().map(|metric| metric.key()).collect();
        format!("{name:?} is no figure that is judged; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_a_percent_unless_somebody_says_otherwise() {
        let least: Least = "rps:2, p99_ms=5 %".parse().expect("two");
        assert!((least.of(Metric::Rps) - 0.02).abs() < 1e-12 && (least.of(Metric::P99Ms) - 0.05).abs() < 1e-12);
        assert!((least.of(Metric::P50Ms) - 0.01).abs() < 1e-12 && (least.of(Metric::ErrorRate) - 0.001).abs() < 1e-12);
        assert_eq!(least.text(), "rps:2,p99_ms:5");
        assert_eq!(least.text().parse::<Least>(), Ok(least));
        assert_eq!("".parse::<Least>(), Ok(Least::default()));
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (text, fault) in [
            ("rps", r#""rps" is not METRIC:PERCENT"#),
            ("rps:x", r#""rps:x" has no percentage"#),
            ("rps:-1", r#""rps:-1": a percentage from 0 to 100"#),
            ("rps:NaN", r#""rps:NaN": a percentage from 0 to 100"#),
        ] {
            assert_eq!(text.parse::<Least>(), Err(fault.to_owned()));
        }
        assert!("max_ms:1".parse::<Least>().expect_err("not judged").contains("there are rps"));
    }
}
