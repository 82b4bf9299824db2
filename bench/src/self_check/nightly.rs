//! Trends that are searched each night: how often a flat history shows a change at some time, and how many nights after
//! a true change it is confirmed.

use brewbench::{
    compare::metric::Metric,
    runs::model::Run,
    trends::{
        history::{changes, points},
        model::{Change, Support},
    },
};
use rand::rngs::StdRng;

use super::{
    change_points::fixture,
    noise::{Between, normal},
    tally::{Share, rounds},
};

/// Experiments of a history.
const NIGHTS: usize = 60;

/// The first night after which the history is searched.
const FIRST: usize = 10;

/// Night of a true change.
const STEP: usize = 30;

/// A finding this far from a true change is it.
const TOLERANCE: usize = 3;

/// A kind of history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum World {
    /// Nights differ like this, and nothing changes.
    Flat(Between),
    /// Independent nights with Student's t noise with three degrees of freedom, 3 %.
    HeavyTails,
    /// Nights that differ by 3 % and resemble the one before: an autocorrelation of this.
    Autocorrelated(f64),
    /// Nights that differ by 2 %, and a fall by this share.
    Step(f64),
}

impl World {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Flat(Between::Nights(0.03)),
        Self::HeavyTails,
        Self::Flat(Between::TwoLevels(0.04)),
        Self::Autocorrelated(0.3),
        Self::Autocorrelated(0.5),
        Self::Step(0.03),
        Self::Step(0.05),
        Self::Step(0.1),
    ];

    /// Returns the name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Flat(between) => format!("flat, {}", between.name()),
            Self::HeavyTails => "flat, t₃ nights".to_owned(),
            Self::Autocorrelated(rho) => format!("flat, nights 3 %, autocorrelation {rho}"),
            Self::Step(share) => format!("−{:.0} % after {STEP} nights, nights 2 %", share * 100.0),
        }
    }

    fn offsets(self, random: &mut StdRng) -> Vec<f64> {
        match self {
            Self::Flat(between @ Between::TwoLevels(_)) => {
                between.draw(NIGHTS, random).into_iter().map(|offset| offset + 0.005 * normal(random)).collect()
            }
            Self::Flat(between) => between.draw(NIGHTS, random),
            Self::HeavyTails => (0..NIGHTS).map(|_| 0.03 * heavy(random)).collect(),
            Self::Autocorrelated(rho) => {
                let mut before = normal(random);
                let mut next = || {
                    before = rho * before + (1.0 - rho * rho).sqrt() * normal(random);
                    0.03 * before
                };
                (0..NIGHTS).map(|_| next()).collect()
            }
            Self::Step(share) => {
                let step = |night: usize| if night >= STEP { (-share).ln_1p() } else { 0.0 };
                (0..NIGHTS).map(|night| step(night) + 0.02 * normal(random)).collect()
            }
        }
    }
}

/// Draws from Student's t with three degrees of freedom, scaled to a standard deviation of 1.
fn heavy(random: &mut StdRng) -> f64 {
    let chi_squared: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / chi_squared.sqrt()
}

/// Results of simulated histories.
#[derive(Clone, Debug, Default)]
pub struct Nightly {
    /// Histories that show a change in some night.
    pub shown: Share,
    /// Histories that show a confirmed change in some night.
    pub confirmed: Share,
    /// Nights from the true change until it is shown.
    pub until_shown: Vec<usize>,
    /// Nights until it is confirmed.
    pub until_confirmed: Vec<usize>,
}

impl Nightly {
    fn add(mut self, other: Self) -> Self {
        self.shown = self.shown.plus(other.shown);
        self.confirmed = self.confirmed.plus(other.confirmed);
        self.until_shown.extend(other.until_shown);
        self.until_confirmed.extend(other.until_confirmed);
        self
    }
}

/// Returns a quantile of some nights; none without any.
pub fn quantile(nights: &[usize], share: f64) -> Option<usize> {
    let mut sorted = nights.to_vec();
    sorted.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied()
}

/// Simulates histories that are searched after each night.
pub fn looks(world: World, count: usize, seed: u64) -> Nightly {
    let Ok(fixture) = fixture() else { return Nightly::default() };
    let history = |random: &mut StdRng| look(world, &fixture, random);
    rounds(count, seed, history).into_iter().fold(Nightly::default(), Nightly::add)
}

fn look(world: World, fixture: &Run, random: &mut StdRng) -> Nightly {
    let run = |(night, offset): (usize, f64)| {
        let mut run = Run {
            id: format!("{night:06}").into(),
            experiment: Some(format!("{night:06}").into()),
            started_at_ms: i64::try_from(night).ok(),
            ..fixture.clone()
        };
        run.figures.rps = Some(10_000.0 * offset.exp());
        run
    };
    let runs: Vec<Run> = world.offsets(random).into_iter().enumerate().map(run).collect();
    let points = points(&runs, Metric::Rps);
    let nights: Vec<Vec<Change>> =
        (FIRST..=points.len()).map(|count| changes(&points[..count], Metric::Rps, &[])).collect();
    let is_confirmed = |change: &Change| change.support == Support::LaterPoints;
    let ever = |is: &dyn Fn(&Change) -> bool| nights.iter().flatten().any(is);
    let is_true = |change: &Change| change.found && change.at.is_some_and(|at| at.abs_diff(STEP) <= TOLERANCE);
    let until = |is: &dyn Fn(&Change) -> bool| {
        let first = nights.iter().position(|changes| changes.iter().any(is));
        first.map(|night| (night + FIRST).saturating_sub(STEP))
    };
    let (mut shown, mut confirmed) = (Share::default(), Share::default());
    shown.count(ever(&|change| change.found));
    confirmed.count(ever(&is_confirmed));
    Nightly {
        shown,
        confirmed,
        until_shown: until(&is_true).into_iter().collect(),
        until_confirmed: until(&|change| is_true(change) && is_confirmed(change)).into_iter().collect(),
    }
}
