//! Whole searches against simulated targets.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;

const RULES: Rules = Rules { from: 1_000, to: 20_000, precision: 0.05, confirm: 3, spare: 1 };

/// Runs a whole search against a simulated target.
fn search(rules: Rules, mut target: impl FnMut(u32) -> Outcome) -> (End, Vec<Trial>) {
    let mut trials = Vec::new();
    loop {
        match next(&rules, &trials) {
            Step::End(end) => return (end, trials),
            Step::Measure(rates) => {
                assert!(!rates.is_empty());
                for (rate, times) in rates {
                    assert!((rules.from..=rules.to).contains(&rate) && times > 0);
                    trials.extend((0..times).map(|_| Trial { rate, outcome: target(rate) }));
                }
            }
        }
    }
}

fn breaks_at(knee: u32) -> impl FnMut(u32) -> Outcome {
    move |rate| if rate <= knee { Outcome::Held } else { Outcome::Missed }
}

#[test]
fn an_exact_knee_is_found_within_a_narrow_interval() {
    for knee in [1_000, 1_001, 4_444, 12_345, 19_999] {
        let (end, trials) = search(RULES, breaks_at(knee));
        let End::Knee(Fit { rate, low, high, contradiction: None, .. }) = end else { panic!("{end:?}") };
        assert!(low <= knee && knee <= high && f64::from(high) <= f64::from(low) * 1.12, "{knee}: {end:?}");
        assert!((f64::from(rate) / f64::from(knee) - 1.0).abs() < 0.03, "{knee}: {end:?}");
        assert!(trials.len() <= RULES.usual_runs() + 4, "{} > {}", trials.len(), RULES.usual_runs());
    }
}

#[test]
fn a_search_starts_at_both_ends_and_bisects() {
    let (_, trials) = search(RULES, breaks_at(4_000));
    let rates: Vec<_> = trials.iter().map(|trial| trial.rate).collect();
    assert_eq!(rates[..5], [1_000, 20_000, 4_470, 2_110, 3_070]);
}

#[test]
fn a_knee_outside_the_range_is_reported() {
    let (end, trials) = search(RULES, breaks_at(50_000));
    assert_eq!((end, trials.len()), (End::AboveRange, 4), "{trials:?}");
    let (end, trials) = search(RULES, breaks_at(10));
    assert_eq!(end, End::BelowRange);
    assert_eq!(tallies(&trials)[&1_000].missed, 3, "confirmed");
}

#[test]
fn an_end_of_the_range_needs_more_than_a_majority() {
    // Held, missed, held, held, held: four of five.
    let mut runs = 0;
    let once_missed = |rate| {
        runs += usize::from(rate == 20_000);
        if rate == 20_000 && runs == 2 { Outcome::Missed } else { Outcome::Held }
    };
    let (end, trials) = search(Rules { confirm: 1, ..RULES }, once_missed);
    let tally = tallies(&trials)[&20_000];
    assert_eq!((end, tally.held, tally.missed), (End::AboveRange, 4, 1));
}

#[test]
fn a_saturated_generator_is_no_knee() {
    let saturates = |rate| if rate <= 6_000 { Outcome::Held } else { Outcome::Saturated };
    let (end, _) = search(RULES, saturates);
    let End::Saturated { rate, held: Some(held) } = end else { panic!("{end:?}") };
    assert!(held <= 6_000 && rate > 6_000 && rate < 6_500, "{end:?}");
    assert_eq!(search(RULES, |_| Outcome::Saturated).0, End::Saturated { rate: 1_000, held: None });
    // If the target reaches its limit first, there is a knee.
    let both = |rate| match rate {
        0..=3_000 => Outcome::Held,
        3_001..=9_000 => Outcome::Missed,
        _ => Outcome::Saturated,
    };
    assert!(matches!(search(RULES, both).0, End::Knee(Fit { rate: 2_850..=3_150, .. })));
}

#[test]
fn inconclusive_runs_are_repeated_a_limited_number_of_times() {
    let mut first = true;
    let once = |rate| {
        if std::mem::take(&mut first) { Outcome::Inconclusive } else { breaks_at(4_000)(rate) }
    };
    assert!(matches!(search(RULES, once).0, End::Knee(_)));
    assert_eq!(search(RULES, |_| Outcome::Inconclusive).0, End::NoFigures { rate: 1_000 });
}

#[test]
fn suspect_runs_are_measured_again_and_end_a_search_only_if_there_are_many() {
    let mut runs = 0;
    let often = |rate| {
        runs += 1;
        if runs % 2 == 0 { Outcome::Suspect } else { breaks_at(4_000)(rate) }
    };
    let (end, trials) = search(RULES, often);
    assert!(matches!(end, End::Knee(Fit { low: ..=4_000, high: 4_000.., .. })), "{end:?}");
    assert!(trials.iter().filter(|trial| trial.outcome == Outcome::Suspect).count() > 2);
    assert_eq!(search(RULES, |_| Outcome::Suspect).0, End::Suspect { rate: 1_000 });
}

/// A target whose capacity varies from run to run.
struct Target {
    capacity: f64,
    /// Standard deviation of the logarithm of its capacity.
    variation: f64,
    /// Share of the runs that are disturbed and lose 30 %.
    disturbed: f64,
    /// Whether the verdict notices it.
    noticed: bool,
}

impl Target {
    fn run(&self, rate: u32, random: &mut StdRng) -> Outcome {
        let (one, two): (f64, f64) = (random.random(), random.random());
        let normal = (-2.0 * one.max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * two).cos();
        let is_disturbed = random.random::<f64>() < self.disturbed;
        let capacity = self.capacity * (self.variation * normal).exp() * if is_disturbed { 0.7 } else { 1.0 };
        match f64::from(rate) <= capacity {
            _ if is_disturbed && self.noticed => Outcome::Suspect,
            true => Outcome::Held,
            false => Outcome::Missed,
        }
    }
}

#[test]
fn the_interval_holds_the_knee_in_nine_of_ten_searches_at_least() {
    let quiet = |variation| (variation, 0.0, true);
    for (place, (variation, disturbed, noticed)) in
        (0..).zip([quiet(0.03), quiet(0.08), (0.03, 0.2, true), (0.03, 0.05, false)])
    {
        let mut random = StdRng::seed_from_u64(100 + place);
        let (mut covers, mut runs, mut bias) = (0, 0, 0.0);
        for _ in 0..SEARCHES {
            let capacity = 2_000.0 * 7.5_f64.powf(random.random::<f64>());
            let target = Target { capacity, variation, disturbed, noticed };
            let (end, trials) = search(RULES, |rate| target.run(rate, &mut random));
            let End::Knee(Fit { rate, low, high, .. }) = end else { panic!("{end:?}") };
            covers += usize::from(f64::from(low) <= capacity && capacity <= f64::from(high));
            runs += trials.len();
            bias += (f64::from(rate) / capacity).ln() / SEARCHES as f64;
        }
        let mean_runs = runs as f64 / SEARCHES as f64;
        assert!(covers * 100 >= SEARCHES * 90, "variation {variation}: {covers} of {SEARCHES}");
        assert!(mean_runs < 36.0 && bias.abs() < 0.01, "variation {variation}: {mean_runs} runs, bias {bias}");
    }
}

/// Number of searches per kind of target: enough to tell 95 from 90 %.
const SEARCHES: usize = 60;

#[test]
fn every_search_ends() {
    let mut random = StdRng::seed_from_u64(2);
    for _ in 0..300 {
        let rules = Rules {
            from: random.random_range(1..100),
            to: random.random_range(100..1_000_000),
            precision: random.random_range(0.001..0.5),
            confirm: random.random_range(1..9),
            spare: random.random_range(0..3),
        };
        let (_, trials) = search(rules, |_| OUTCOMES[random.random_range(0..5)]);
        assert!(trials.len() < MAX_RUNS + 20);
    }
}

const OUTCOMES: [Outcome; 5] =
    [Outcome::Held, Outcome::Missed, Outcome::Saturated, Outcome::Suspect, Outcome::Inconclusive];
