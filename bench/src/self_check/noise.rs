//! Models of noise on real machines, within an experiment and between experiments. Values are logarithms: 0.02 is 2 %.

use std::f64::consts::TAU;

use rand::{Rng, rngs::StdRng};

/// Standard deviation of the noise, as measured for the bundled targets on an idle machine.
pub const SIGMA: f64 = 0.02;

/// Noise within an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Log-normal factors.
    LogNormal,
    /// Student's t with three degrees of freedom: occasional outliers.
    HeavyTails,
    /// Two modes 4 % apart, as caused by memory layout.
    Bimodal,
    /// Autocorrelation of 0.9, as caused by a noisy neighbour.
    Autocorrelated,
    /// The machine gets warm: 6 % slower, most of it within the first runs.
    Thermal,
    /// 5 % slower from the first run to the last.
    LinearDrift,
    /// 5 % slower from a random run on.
    Step,
    /// A disturbance of 3 % with a period of four runs.
    PeriodOfFour,
}

impl Within {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::LogNormal,
        Self::HeavyTails,
        Self::Bimodal,
        Self::Autocorrelated,
        Self::Thermal,
        Self::LinearDrift,
        Self::Step,
        Self::PeriodOfFour,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogNormal => "log-normal 2 %",
            Self::HeavyTails => "t₃",
            Self::Bimodal => "bimodal by run",
            Self::Autocorrelated => "AR(1) 0.9",
            Self::Thermal => "thermal drift",
            Self::LinearDrift => "linear drift",
            Self::Step => "step",
            Self::PeriodOfFour => "period of four runs",
        }
    }

    /// Draws the noise of `runs` runs in chronological order.
    pub fn draw(self, runs: usize, random: &mut StdRng) -> Vec<f64> {
        let (phase, step) = (random.random_range(0..4), random.random_range(0..runs.max(1)));
        let mut before = normal(random);
        let one = |place: usize| {
            let now = normal(random);
            before = 0.9 * before + (1.0 - 0.9_f64 * 0.9).sqrt() * now;
            match self {
                Self::LogNormal => SIGMA * now,
                Self::HeavyTails => SIGMA * now * (3.0 / chi_squared(random)).sqrt() / 3.0_f64.sqrt(),
                Self::Bimodal => 0.5 * SIGMA * now + if random.random::<bool>() { 0.04 } else { 0.0 },
                Self::Autocorrelated => SIGMA * before,
                Self::Thermal => 0.5 * SIGMA * now - 0.06 * (1.0 - (-(place as f64) / 6.0).exp()),
                Self::LinearDrift => SIGMA * now - 0.05 * place as f64 / runs as f64,
                Self::Step => SIGMA * now - if place >= step { 0.05 } else { 0.0 },
                Self::PeriodOfFour => 0.5 * SIGMA * now + if (place + phase) % 4 < 2 { 0.03 } else { 0.0 },
            }
        };
        (0..runs).map(one).collect()
    }
}

/// Noise between experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Between {
    /// Independent nights, with this deviation.
    Nights(f64),
    /// Each night differs from the previous one with this deviation.
    RandomWalk(f64),
    /// Each night is on one of two levels with this distance.
    TwoLevels(f64),
    /// Independent nights with Student's t of three degrees of freedom and this scale.
    HeavyTails(f64),
    /// Nights that differ by 1 %, and one in ten is slower by this.
    BadNights(f64),
}

impl Between {
    /// Returns the name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Nights(deviation) => format!("nights independent, {} %", deviation * 100.0),
            Self::RandomWalk(deviation) => format!("random walk, {} % a night", deviation * 100.0),
            Self::TwoLevels(apart) => format!("two levels, {} % apart", apart * 100.0),
            Self::HeavyTails(scale) => format!("nights with t₃, {} %", scale * 100.0),
            Self::BadNights(slower) => format!("one night in ten {} % slower, others 1 %", slower * 100.0),
        }
    }

    /// Draws the offsets of experiments, one per night.
    pub fn draw(self, nights: usize, random: &mut StdRng) -> Vec<f64> {
        let mut walk = 0.0;
        let night = |_| match self {
            Self::Nights(deviation) => deviation * normal(random),
            Self::RandomWalk(deviation) => {
                walk += deviation * normal(random);
                walk
            }
            Self::TwoLevels(apart) => {
                if random.random::<bool>() {
                    apart
                } else {
                    0.0
                }
            }
            Self::HeavyTails(scale) => scale * normal(random) * (3.0 / chi_squared(random)).sqrt() / 3.0_f64.sqrt(),
            Self::BadNights(slower) => {
                0.01 * normal(random) + if random.random_bool(0.1) { (1.0 - slower).ln() } else { 0.0 }
            }
        };
        (0..nights).map(night).collect()
    }
}

/// Draws a standard normal number with the Box-Muller transform.
pub fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

/// Draws a chi-squared number with three degrees of freedom.
fn chi_squared(random: &mut StdRng) -> f64 {
    (0..3).map(|_| normal(random).powi(2)).sum()
}
