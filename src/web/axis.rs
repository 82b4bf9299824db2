//! The scale of a chart's vertical axis: linear or logarithmic. Pure.

use serde_json::{Value, json};

/// A logarithmic axis whose ends may move. Plotly chooses its ticks, which are few even within one power of ten.
pub fn logarithmic() -> Value {
    json!({"type": "log", "rangemode": "normal"})
}

/// Largest ratio of values on a linear axis; beyond it, small values can't be read.
const LINEAR_UP_TO: f64 = 20.0;

/// The scale of a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Starts at zero.
    Linear,
    /// Spans from the first value to the second, both above zero.
    Logarithmic(f64, f64),
}

impl Scale {
    /// Chooses the scale for values within these ranges.
    pub fn choose(spreads: impl Iterator<Item = (f64, f64)>) -> Self {
        let (least, most) =
            spreads.fold((f64::INFINITY, 0.0_f64), |(least, most), (from, to)| (least.min(from), most.max(to)));
        if least > 0.0 && most / least > LINEAR_UP_TO { Self::Logarithmic(least, most) } else { Self::Linear }
    }

    /// The note for the chart's heading.
    pub fn note(&self) -> &'static str {
        match self {
            Self::Linear => "",
            Self::Logarithmic(..) => " · logarithmic axis",
        }
    }

    /// The axis as Plotly layout.
    pub fn axis(&self) -> Value {
        match self {
            Self::Linear => json!({"nticks": 6}),
            Self::Logarithmic(least, most) => {
                let (ticks, names): (Vec<f64>, Vec<String>) = round_steps(*least, *most).map(labelled).unzip();
                let range = [least.log10() - 0.15, most.log10() + 0.1];
                json!({"type": "log", "range": range, "tickvals": ticks, "ticktext": names})
            }
        }
    }
}

/// A digit and its power of ten.
type Step = (u8, i32);

/// Ticks 1, 2, 5, 10, … between two values.
fn round_steps(least: f64, most: f64) -> impl Iterator<Item = Step> {
    #[expect(clippy::cast_possible_truncation, reason = "no float is beyond 10^308")]
    let [from, to] = [least, most].map(|figure| figure.log10().floor() as i32);
    let within = move |step: &Step| (least..=most).contains(&labelled(*step).0);
    let all = (from..=to).flat_map(|power| [1, 2, 5].map(|digit| (digit, power))).filter(within);
    // Too many to fit: keep only whole powers.
    let too_many = all.clone().count() > 8;
    all.filter(move |(digit, _)| !too_many || *digit == 1)
}

/// The value of a tick and its exact label; powers of floats would print as 9.999….
fn labelled((digit, power): Step) -> (f64, String) {
    let value = format!("{digit}e{power}").parse().unwrap_or_default();
    let zeros = usize::try_from(power.unsigned_abs()).unwrap_or_default();
    if power < 0 {
        return (value, format!("0.{}{digit}", "0".repeat(zeros - 1)));
    }
    let digits = format!("{digit}{}", "0".repeat(zeros));
    let groups: Vec<String> =
        digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned()).collect();
    (value, groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(least: f64, most: f64) -> Vec<String> {
        round_steps(least, most).map(|step| labelled(step).1).collect()
    }

    #[test]
    fn logarithmic_ticks_are_round() {
        assert_eq!(names(0.4, 30.0), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(names(0.01, 2000.0).len(), 6);
    }

    #[test]
    fn the_smallest_and_the_largest_ticks_are_written_exactly() {
        assert_eq!(names(0.000_001, 0.000_003), ["0.000001", "0.000002"]);
        assert_eq!(
            names(90_000.0, 2_000_000_000.0),
            ["100,000", "1,000,000", "10,000,000", "100,000,000", "1,000,000,000"]
        );
        assert_eq!(labelled((1, -5)).0.to_string(), "0.00001");
    }
}
