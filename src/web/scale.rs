//! How the vertical axis of a chart counts. Pure.

use serde_json::{Value, json};

/// How far apart figures may be before the axis becomes logarithmic: beyond that the small ones can't be read.
const LINEAR_UP_TO: f64 = 20.0;

/// How a vertical axis counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// From the first figure to the second, both above zero.
    Logarithmic(f64, f64),
}

impl Scale {
    /// The scale for figures that go from the least to the most.
    pub fn of(spreads: impl Iterator<Item = (f64, f64)>) -> Self {
        let (least, most) =
            spreads.fold((f64::INFINITY, 0.0_f64), |(least, most), (from, to)| (least.min(from), most.max(to)));
        if least > 0.0 && most / least > LINEAR_UP_TO { Self::Logarithmic(least, most) } else { Self::Linear }
    }

    /// What the chart's head says about it.
    pub fn said(&self) -> &'static str {
        match self {
            Self::Linear => "",
            Self::Logarithmic(..) => " · logarithmic axis",
        }
    }

    /// The axis for Plotly.
    pub fn axis(&self) -> Value {
        match self {
            Self::Linear => json!({"nticks": 6}),
            Self::Logarithmic(least, most) => {
                let ticks = round_steps(*least, *most);
                let names: Vec<String> = ticks.iter().map(f64::to_string).collect();
                let range = [least.log10() - 0.15, most.log10() + 0.1];
                json!({"type": "log", "range": range, "tickvals": ticks, "ticktext": names})
            }
        }
    }
}

/// 1, 2, 5, 10, … between two figures.
fn round_steps(least: f64, most: f64) -> Vec<f64> {
    let mut steps = Vec::new();
    let mut power = 10f64.powf(least.log10().floor());
    while power <= most {
        steps.extend([1.0, 2.0, 5.0].map(|step| step * power).into_iter().filter(|step| (least..=most).contains(step)));
        power *= 10.0;
    }
    // More than fit are too many: whole powers are enough then.
    if steps.len() > 8 {
        steps.into_iter().filter(|step| (step.log10() - step.log10().round()).abs() < 1e-9).collect()
    } else {
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_ticks_are_round() {
        assert_eq!(round_steps(0.4, 30.0), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(round_steps(0.01, 2000.0).len(), 6);
    }
}
