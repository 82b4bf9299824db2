//! The statistics are tried on noise as real machines make it: how often they cry wolf, and what they find.

use std::f64::consts::TAU;

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ALPHA, Better, Gap, LEAST_DIFFERENCE, Standing, difference, holm, ranks, spread, stand};

/// Rounds of each cell of the table: a share of 5 % is known to within 1.4 points.
const ROUNDS: usize = 1_000;

/// How the repetitions of one program scatter.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Factors, small ones and few great ones.
    LogNormal,
    /// The same, and one run in ten a fifth slower: somebody else was there.
    Outliers,
    /// The same, and the machine becomes slower by 5 % from the first run to the last.
    Drift,
    /// The same about two values that lie 4 % apart: where the memory happened to lie.
    TwoModes,
    /// The same, but each run resembles the one before it: the neighbour stays a while.
    Autocorrelated,
}

const ALL: [Noise; 5] = [Noise::LogNormal, Noise::Outliers, Noise::Drift, Noise::TwoModes, Noise::Autocorrelated];

/// The deviation of the noise: what the bundled targets show on a machine that nobody else uses.
const SIGMA: f64 = 0.02;

/// Figures of two programs that ran in turn, in blocks of two in a random order as an experiment has them. The second
/// one is faster by a factor.
fn two(noise: Noise, count: usize, factor: f64, random: &mut StdRng) -> [Vec<f64>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    let mut before = normal(random);
    for block in 0..count {
        let first = usize::from(random.random::<bool>());
        for (place, side) in [first, 1 - first].into_iter().enumerate() {
            before = 0.6 * before + 0.8 * normal(random);
            let at = (2 * block + place) as f64 / (2 * count) as f64;
            let log = match noise {
                Noise::Outliers if random.random::<f64>() < 0.1 => -0.2 + SIGMA * normal(random),
                Noise::LogNormal | Noise::Outliers => SIGMA * normal(random),
                Noise::Drift => SIGMA * normal(random) - 0.05 * at,
                Noise::TwoModes => SIGMA * normal(random) + if random.random::<bool>() { 0.04 } else { 0.0 },
                Noise::Autocorrelated => SIGMA * before,
            };
            sides[side].push(10_000.0 * log.exp() * if side == 1 { factor } else { 1.0 });
        }
    }
    sides
}

/// Box and Muller's transform of two uniform numbers.
fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

/// How the second side stands on a page that asks nothing else.
fn standing([base, challenger]: &[Vec<f64>; 2]) -> Standing {
    let question = holm(&[ranks(base, challenger).expect("two sides")])[0];
    let gap = difference(base, challenger).map(|found| Gap::of(&found, LEAST_DIFFERENCE));
    stand(&question, gap, Better::Higher)
}

/// Of so many rounds, the share in which a difference was told, and that in which it was told the wrong way round.
fn told(noise: Noise, count: usize, factor: f64, random: &mut StdRng) -> (f64, f64) {
    let (mut any, mut wrong) = (0, 0);
    for _ in 0..ROUNDS {
        let standing = standing(&two(noise, count, factor, random));
        any += usize::from(matches!(standing, Standing::Better | Standing::Worse));
        wrong += usize::from(standing == Standing::Worse);
    }
    (any as f64 / ROUNDS as f64, wrong as f64 / ROUNDS as f64)
}

#[test]
fn equal_programs_seldom_differ_and_true_differences_are_found() {
    let mut random = StdRng::seed_from_u64(1);
    println!("Differences told, % of {ROUNDS} comparisons; noise of {} %", SIGMA * 100.0);
    println!("| noise | repetitions | A/A | true 2 % | true 5 % | true 10 % |");
    println!("|---|---|---|---|---|---|");
    for noise in ALL {
        for count in [3, 5, 10] {
            let [none, two, five, ten] = [1.0, 1.02, 1.05, 1.1].map(|factor| told(noise, count, factor, &mut random));
            let percent = |(share, _): (f64, f64)| share * 100.0;
            println!(
                "| {noise:?} | {count} | {:.1} | {:.1} | {:.1} | {:.1} |",
                percent(none),
                percent(two),
                percent(five),
                percent(ten)
            );
            assert!(none.0 <= ALPHA, "{noise:?}: {} false alarms with {count}", none.0);
            assert!(five.1 <= 0.001 && ten.1 <= 0.001, "{noise:?}: a wrong winner with {count}");
            if count == 3 {
                assert!(ten.0 < 1e-9, "three repetitions can't tell anything");
            }
            if count == 10 {
                let expected = if matches!(noise, Noise::LogNormal) { 0.9 } else { 0.4 };
                assert!(five.0 >= expected, "{noise:?}: only {} of the true 5 % were found", five.0);
            }
        }
    }
}

#[test]
fn a_page_of_many_equal_cells_seldom_shows_a_difference_anywhere() {
    const CELLS: usize = 12;
    let mut random = StdRng::seed_from_u64(2);
    let alarms = (0..ROUNDS / 2).filter(|_| {
        let cells: Vec<_> = (0..CELLS).map(|_| two(Noise::LogNormal, 7, 1.0, &mut random)).collect();
        let tests: Vec<_> = cells.iter().map(|[one, other]| ranks(one, other).expect("two sides")).collect();
        holm(&tests).iter().any(|question| question.corrected <= ALPHA)
    });
    let share = alarms.count() as f64 / (ROUNDS / 2) as f64;
    println!("A/A, {CELLS} questions on a page: {:.1} % of pages show a difference somewhere", share * 100.0);
    assert!(share <= ALPHA, "{share}");
}

#[test]
fn intervals_hold_the_true_ratio_as_often_as_they_say_and_a_bootstrap_would_be_wider() {
    let mut random = StdRng::seed_from_u64(3);
    println!("95 % intervals of the ratio: how often they hold it, % of {ROUNDS} comparisons, and how wide they are");
    println!("| noise | repetitions | from the ranks | width | bootstrap of the medians | width |");
    println!("|---|---|---|---|---|---|");
    for noise in ALL {
        for count in [5, 10] {
            let (mut ours, mut theirs) = (Held::default(), Held::default());
            for round in 0..ROUNDS {
                let [base, challenger] = two(noise, count, 1.05, &mut random);
                let found = difference(&base, &challenger).and_then(|found| found.interval()).expect("an interval");
                ours.count(found);
                if round % 4 == 0 {
                    theirs.count(bootstrap(&base, &challenger, &mut random));
                }
            }
            let [(held, width), (held_by_bootstrap, its_width)] = [ours.told(), theirs.told()];
            println!("| {noise:?} | {count} | {held:.1} | {width:.3} | {held_by_bootstrap:.1} | {its_width:.3} |");
            assert!(held >= 93.0, "{noise:?}, {count}: {held}");
            assert!(width < its_width * 1.05, "{noise:?}, {count}: {width} against {its_width}");
        }
    }
}

/// Intervals of a true difference of 5 %.
#[derive(Default)]
struct Held {
    rounds: f64,
    hits: f64,
    width: f64,
}

impl Held {
    fn count(&mut self, (low, high): (f64, f64)) {
        self.rounds += 1.0;
        self.hits += f64::from(low <= 0.05 && 0.05 <= high);
        self.width += high - low;
    }

    /// How many of a hundred held it, and their mean width.
    fn told(&self) -> (f64, f64) {
        (100.0 * self.hits / self.rounds, self.width / self.rounds)
    }
}

/// The percentile bootstrap of the ratio of two medians.
fn bootstrap(base: &[f64], challenger: &[f64], random: &mut StdRng) -> (f64, f64) {
    let mut median = |values: &[f64]| {
        spread(values.iter().map(|_| values[random.random_range(0..values.len())])).expect("values").median
    };
    let mut ratios: Vec<f64> = (0..400).map(|_| median(challenger) / median(base)).collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[10] - 1.0, ratios[389] - 1.0)
}
