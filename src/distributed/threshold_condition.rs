//! Parses conditions of k6 thresholds: `p(95)<500`. Pure.

use std::str::FromStr;

/// The statistic of a metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// `count`
    Count,
    /// `rate`: per second for counters, else a share.
    Rate,
    /// `value`
    Value,
    /// `avg`
    Mean,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `med` and `p(N)`, as the share of values below.
    Quantile(f64),
}

/// The operator of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

/// A condition: a statistic, an operator and a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// The statistic that is compared.
    pub statistic: Statistic,
    comparison: Comparison,
    limit: f64,
}

/// The operators, longer ones first.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("===", Comparison::Equal),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

/// The text is not a condition that k6 supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid threshold condition")]
pub struct InvalidCondition;

impl FromStr for Condition {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        let split = |(sign, comparison)| text.split_once(sign).map(|(left, right)| (left, comparison, right));
        let (left, comparison, right) = COMPARISONS.into_iter().find_map(split).ok_or(InvalidCondition)?;
        let limit: f64 = right.trim().parse().map_err(|_| InvalidCondition)?;
        if !limit.is_finite() {
            return Err(InvalidCondition);
        }
        Ok(Self { statistic: left.trim().parse()?, comparison, limit })
    }
}

impl FromStr for Statistic {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        Ok(match text {
            "count" => Self::Count,
            "rate" => Self::Rate,
            "value" => Self::Value,
            "avg" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "med" => Self::Quantile(0.5),
            _ => {
                let percent =
                    text.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')')).ok_or(InvalidCondition)?;
                let percent: f64 = percent.trim().parse().map_err(|_| InvalidCondition)?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(InvalidCondition);
                }
                Self::Quantile(percent / 100.0)
            }
        })
    }
}

impl Statistic {
    /// Returns the share of the values below a percentile.
    pub fn share(self) -> Option<f64> {
        if let Self::Quantile(share) = self { Some(share) } else { None }
    }
}

impl Condition {
    /// Whether a figure meets the condition.
    #[expect(clippy::float_cmp, reason = "k6 compares the same way")]
    pub fn holds(self, figure: f64) -> bool {
        match self.comparison {
            Comparison::Less => figure < self.limit,
            Comparison::AtMost => figure <= self.limit,
            Comparison::More => figure > self.limit,
            Comparison::AtLeast => figure >= self.limit,
            Comparison::Equal => figure == self.limit,
            Comparison::Unequal => figure != self.limit,
        }
    }

    /// Whether the condition has one boundary, so that figures between two equal results have the same result.
    pub fn is_one_sided(self) -> bool {
        !matches!(self.comparison, Comparison::Equal | Comparison::Unequal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_k6_reads_them() {
        let holds = |text: &str, figure: f64| text.parse::<Condition>().map(|condition| condition.holds(figure));
        for (text, yes, no) in [
            ("rate<0.01", 0.0, 0.01),
            ("p(95) <= 300", 300.0, 300.1),
            ("p(99.9)>1e3", 1_001.0, 1_000.0),
            ("count >=100", 100.0, 99.0),
            ("value===0", 0.0, 1.0),
            ("max == 2", 2.0, 3.0),
            ("avg!=2", 3.0, 2.0),
        ] {
            assert_eq!((holds(text, yes), holds(text, no)), (Ok(true), Ok(false)), "{text}");
        }
        assert_eq!("med<1".parse::<Condition>().map(|it| it.statistic.share()), Ok(Some(0.5)));
        for bad in ["", "rate", "rate<", "rate<x", "p(95<3", "p(101)<3", "p(x)<3", "mean<3", "rate<nan", "1<rate"] {
            assert_eq!(bad.parse::<Condition>(), Err(InvalidCondition), "{bad:?}");
        }
    }
}
