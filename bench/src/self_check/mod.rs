//! Error rates and power of brewbench's statistics on simulated noise, with its own code from the order of the runs to
//! the decision.

mod bisection;
pub mod change_points;
mod compare;
mod fed;
mod gate;
mod nightly;
mod noise;
mod plans;
mod power;
mod sequential;
mod sweep_knees;
mod tables;
mod tally;
mod world;

pub use tables::print;

/// Rounds per figure of equal programs: the standard error of a share of 5 % is 0.7 percentage points.
pub const ROUNDS: usize = 1_000;

#[cfg(test)]
mod tests {
    use brewbench::compare::statistics::ALPHA;

    use super::{
        bisection,
        compare::{Nights, across, interleaved},
        fed, gate,
        nightly::{World, looks},
        noise::Within,
        plans::{self, Against},
        power::detectable,
        sequential,
        sweep_knees::sweeps,
        tally::Share,
        world::{Differ, Metrics, Plan},
    };

    #[test]
    fn equal_programs_rarely_differ_under_any_noise() {
        for within in Within::ALL {
            for repetitions in [5, 8] {
                let plan = Plan { repetitions, within, ..Plan::USUAL };
                let pages = interleaved(plan, 120, 1);
                assert!(pages.any.is_at_most(ALPHA), "{within:?}, {repetitions}: {pages:?}");
                assert!(pages.covers.is_at_least(1.0 - ALPHA), "{within:?}, {repetitions}: {pages:?}");
            }
        }
    }

    #[test]
    fn many_tests_keep_the_error_rate_and_find_true_differences() {
        let plan = |factor| Plan { sizes: 2, repetitions: 8, metrics: Metrics::Five, factor, ..Plan::USUAL };
        let pages = interleaved(plan(1.0), 60, 2);
        assert!(pages.any.is_at_most(ALPHA), "{pages:?}");
        let pages = interleaved(plan(1.1), 20, 3);
        assert!(pages.throughput.is_at_least(0.95) && pages.wrong.hits == 0, "{pages:?}");
    }

    #[test]
    fn differences_of_the_detectable_size_are_found_in_four_of_five_cases() {
        for (repetitions, metrics) in
            [(5, Metrics::One), (10, Metrics::One), (6, Metrics::Related), (10, Metrics::Related)]
        {
            let power = detectable(Within::LogNormal, repetitions, metrics, 200, 13);
            let missed = Share { hits: power.found.total - power.found.hits, ..power.found };
            assert!(power.found.total == 200 && power.found.is_at_least(0.78), "{repetitions}: {power:?}");
            assert!(missed.is_at_least(0.18), "{repetitions}: {power:?}");
        }
    }

    #[test]
    fn differences_between_nights_are_no_false_alarms_with_two_past_experiments() {
        for past in [2, 5, 12] {
            let pages = across(Nights { past, ..Nights::USUAL }, 150, 4);
            assert!(pages.any.is_at_most(ALPHA), "{past}: {pages:?}");
            assert!(pages.covers.is_at_least(1.0 - ALPHA), "{past}: {pages:?}");
        }
        let pages = across(Nights { past: 1, ..Nights::USUAL }, 20, 5);
        assert_eq!((pages.any.hits, pages.cannot_say.hits), (0, 20), "undecided without a past");
        let pages = across(Nights { past: 12, factor: 1.3, ..Nights::USUAL }, 20, 6);
        assert!(pages.any.is_at_least(0.9), "{pages:?}");
    }

    #[test]
    fn gates_never_pass_open_intervals_and_rarely_pass_regressions() {
        let noisy = Plan { repetitions: 5, noisier: 7.0, factor: 0.8, ..Plan::USUAL };
        let gates = gate::interleaved(&["rps<-5%"], noisy, 150, 7);
        assert_eq!(gates.open.hits, 0, "{gates:?}");
        assert!(gates.fine.is_at_most(ALPHA), "{gates:?}");
        let at_limit = Plan { repetitions: 10, factor: 0.9499, ..Plan::USUAL };
        let gates = gate::interleaved(&["rps<-5%"], at_limit, 150, 8);
        assert!(gates.open.hits == 0 && gates.fine.is_at_most(ALPHA), "{gates:?}");
        let quiet = Plan { repetitions: 10, noisier: 0.25, ..Plan::USUAL };
        let gates = gate::interleaved(&["rps<-5%"], quiet, 40, 9);
        assert!(gates.fine.is_at_least(0.95) && gates.regression.hits == 0, "{gates:?}");
        let worse = Plan { factor: 0.85, ..quiet };
        assert!(gate::interleaved(&["rps<-5%"], worse, 40, 10).regression.is_at_least(0.95));
    }

    #[test]
    fn a_change_within_the_limit_rarely_fails() {
        let allowed = Plan { repetitions: 10, factor: 0.96, ..Plan::USUAL };
        let gates = gate::interleaved(&["rps<-5%"], allowed, 120, 14);
        assert!(gates.regression.is_at_most(ALPHA / 2.0), "{gates:?}");
    }

    #[test]
    fn repeated_looks_rarely_fail_and_the_page_agrees_with_their_regressions() {
        let equal = Plan { noisier: 2.0, ..Plan::USUAL };
        let looked = sequential::until_decided(&["rps<-0.1%"], equal, &[12], 120, 11);
        assert!(looked.gates.regression.is_at_most(ALPHA / 2.0), "{looked:?}");
        let worse = Plan { noisier: 2.5, factor: 0.9, ..Plan::USUAL };
        let looked = sequential::until_decided(&["rps<-5%"], worse, &[10, 20], 40, 15);
        assert!(looked.gates.regression.hits > 10, "{looked:?}");
        assert_eq!((looked.unconfirmed.hits, looked.unlike_page.hits), (0, 0), "{looked:?}");
    }

    #[test]
    fn a_bisection_finds_the_commit_or_says_that_it_can_not() {
        let bisections = bisection::among(32, Plan { factor: 0.9, ..Plan::USUAL }, 20, 40, 20);
        assert!(bisections.found.is_at_least(0.9) && bisections.most_steps <= 6, "{bisections:?}");
        let noisy = Plan { factor: 0.9, noisier: 2.5, ..Plan::USUAL };
        for bisections in [bisections, bisection::among(32, noisy, 20, 40, 21)] {
            assert!(bisections.wrong.is_at_most(ALPHA), "{bisections:?}");
        }
    }

    #[test]
    fn gates_with_many_cells_rarely_fail_equal_programs() {
        let gates = gate::across(&["rps<-5%"], Nights { past: 4, sizes: 6, ..Nights::USUAL }, 50, 12);
        assert!(gates.regression.is_at_most(ALPHA) && gates.open.hits == 0, "{gates:?}");
    }

    #[test]
    fn experiments_of_one_night_count_once() {
        let nights = Nights { past: 12, together: 5, ..Nights::USUAL };
        let pages = across(nights, 100, 16);
        assert!(pages.any.is_at_most(ALPHA) && pages.covers.is_at_least(1.0 - ALPHA), "{pages:?}");
        let gates = gate::across(&["rps<-5%"], Nights { factor: 0.9499, ..nights }, 100, 17);
        assert!(gates.fine.is_at_most(ALPHA), "{gates:?}");
    }

    #[test]
    fn a_large_regression_in_many_cells_fails_across_nights() {
        let gates = gate::across(&["rps<-5%"], Nights { past: 20, sizes: 12, factor: 0.6, ..Nights::USUAL }, 10, 18);
        assert!(gates.regression.is_at_least(0.9), "{gates:?}");
    }

    #[test]
    fn sides_that_never_met_zeros_and_rounded_values_name_nothing_false() {
        let worlds = [
            fed::new_version(0, 40, 31),
            fed::new_version(5, 100, 32),
            fed::halves(60, 33),
            fed::zeros(1.0, 100, 34),
            fed::whole_milliseconds(2.4, 1.08, 60, 35),
        ];
        for (number, world) in worlds.into_iter().enumerate() {
            assert!(world.named.is_at_most(ALPHA) && world.fails.is_at_most(ALPHA), "{number}: {world:?}");
        }
        for found in [fed::zeros(0.77, 20, 36), fed::whole_milliseconds(24.0, 1.5, 20, 37)] {
            assert!(found.named.is_at_least(0.95), "{found:?}");
        }
    }

    #[test]
    fn equal_targets_rarely_have_different_knees() {
        for (noise, repetitions) in [(0.03, 5), (0.08, 6), (0.15, 8)] {
            let knees = sweeps(false, noise, repetitions, 40, 22);
            assert!(knees.differ.total == 40 && knees.differ.is_at_most(ALPHA), "{noise}, {repetitions}: {knees:?}");
            assert!(knees.covers.is_at_least(1.0 - ALPHA), "{noise}, {repetitions}: {knees:?}");
        }
        let later = sweeps(true, 0.01, 8, 20, 23);
        assert!(later.differ.is_at_least(0.9), "{later:?}");
    }

    #[test]
    fn histories_that_are_searched_each_night_rarely_have_a_confirmed_change() {
        let flat = looks(World::Autocorrelated(0.3), 60, 24);
        assert!(flat.confirmed.is_at_most(ALPHA) && flat.shown.hits > flat.confirmed.hits, "{flat:?}");
        let step = looks(World::Step(0.1), 20, 25);
        assert!(step.until_confirmed.len() == 20, "{step:?}");
    }

    #[test]
    fn clear_differences_of_many_pairs_and_metrics_are_decided() {
        for (differ, repetitions) in [(Differ::Each, 6), (Differ::Last, 8)] {
            let plan = Plan { targets: 3, sizes: 2, repetitions, noisier: 0.25, factor: 3.0, differ, ..Plan::USUAL };
            for against in [Against::Each, Against::Baseline] {
                let decided = plans::decided(plan, against, 3, 19);
                assert_eq!(decided.hits, 3, "{plan:?} {against:?}");
            }
        }
    }
}
