//! Error rates and power of brewbench's statistics on simulated noise, with its own code from the order of the runs to
//! the decision.

pub mod change_points;
mod compare;
mod gate;
mod noise;
mod power;
mod tables;
mod tally;
mod world;

/// Rounds per row: the standard error of a share of 5 % is 0.7 percentage points.
pub const ROUNDS: usize = 1_000;

/// Prints the tables, with `rounds` rounds per row.
pub fn print(rounds: usize) -> anyhow::Result<()> {
    println!("{}", tables::all(rounds)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use brewbench::compare::statistics::ALPHA;

    use super::{
        compare::{Nights, across, interleaved},
        gate::{self, Simulated},
        noise::Within,
        power::detectable,
        tally::Share,
        world::{Metrics, Plan},
    };

    #[test]
    fn equal_programs_rarely_differ_under_any_noise() {
        for within in Within::ALL {
            for repetitions in [5, 8] {
                let plan = Plan { sizes: 1, repetitions, within, metrics: Metrics::One, factor: 1.0 };
                let pages = interleaved(plan, 120, 1);
                assert!(pages.any.is_at_most(ALPHA), "{within:?}, {repetitions}: {pages:?}");
                assert!(pages.covers.is_at_least(1.0 - ALPHA), "{within:?}, {repetitions}: {pages:?}");
            }
        }
    }

    #[test]
    fn many_tests_keep_the_error_rate_and_find_true_differences() {
        let plan =
            |factor| Plan { sizes: 2, repetitions: 8, within: Within::LogNormal, metrics: Metrics::Five, factor };
        let pages = interleaved(plan(1.0), 60, 2);
        assert!(pages.any.is_at_most(ALPHA), "{pages:?}");
        let pages = interleaved(plan(1.1), 20, 3);
        assert!(pages.throughput.is_at_least(0.95) && pages.wrong.hits == 0, "{pages:?}");
    }

    #[test]
    fn differences_of_the_detectable_size_are_found_in_four_of_five_cases() {
        for repetitions in [5, 10] {
            let power = detectable(Within::LogNormal, repetitions, 200, 13);
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
        let noisy = Simulated { repetitions: 5, noisier: 7.0, factor: 0.8 };
        let gates = gate::interleaved(&["rps<-5%"], noisy, 150, 7);
        assert_eq!(gates.open.hits, 0, "{gates:?}");
        assert!(gates.fine.is_at_most(ALPHA), "{gates:?}");
        let at_limit = Simulated { repetitions: 10, noisier: 1.0, factor: 0.9499 };
        let gates = gate::interleaved(&["rps<-5%"], at_limit, 150, 8);
        assert!(gates.open.hits == 0 && gates.fine.is_at_most(ALPHA), "{gates:?}");
        let quiet = Simulated { repetitions: 10, noisier: 0.25, factor: 1.0 };
        let gates = gate::interleaved(&["rps<-5%"], quiet, 40, 9);
        assert!(gates.fine.is_at_least(0.95) && gates.regression.hits == 0, "{gates:?}");
        let worse = Simulated { factor: 0.85, ..quiet };
        assert!(gate::interleaved(&["rps<-5%"], worse, 40, 10).regression.is_at_least(0.95));
    }

    #[test]
    fn repeated_looks_do_not_cause_false_alarms() {
        let equal = Simulated { repetitions: 12, noisier: 2.0, factor: 1.0 };
        let gates = gate::until_decided(&["rps<-0.1%"], equal, 120, 11);
        assert!(gates.regression.is_at_most(ALPHA), "{gates:?}");
    }

    #[test]
    fn gates_with_many_cells_rarely_fail_equal_programs() {
        let gates = gate::across(&["rps<-5%"], Nights { past: 4, sizes: 6, ..Nights::USUAL }, 50, 12);
        assert!(gates.regression.is_at_most(ALPHA) && gates.open.hits == 0, "{gates:?}");
    }
}
