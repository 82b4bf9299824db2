//! How often the product's statistics are wrong and what they find, on noise whose truth is known. Everything goes through
//! the product's own code, from the order of the runs to the decision.

pub mod change_points;
mod compare;
mod gate;
mod noise;
mod tables;
mod tally;
mod world;

/// Rounds a row: a share of 5 % is known to within 1.4 points.
pub const ROUNDS: usize = 1_000;

/// Prints the tables, with so many rounds a row.
pub fn print(rounds: usize) -> anyhow::Result<()> {
    println!("{}", tables::all(rounds)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use brewbench::compare::statistics::ALPHA;

    use super::{
        compare::{Nights, across, in_turn},
        gate::{self, Simulated},
        noise::Within,
        world::{Metrics, Plan},
    };

    #[test]
    fn equal_programs_measured_in_turn_seldom_differ_whatever_the_noise() {
        for within in Within::ALL {
            for repetitions in [5, 8] {
                let plan = Plan { sizes: 1, repetitions, within, metrics: Metrics::One, factor: 1.0 };
                let pages = in_turn(plan, 120, 1);
                assert!(pages.any.is_at_most(ALPHA), "{within:?}, {repetitions}: {pages:?}");
                assert!(pages.covers.is_at_least(1.0 - ALPHA), "{within:?}, {repetitions}: {pages:?}");
            }
        }
    }

    #[test]
    fn many_questions_make_no_more_false_alarms_and_true_differences_are_found() {
        let plan =
            |factor| Plan { sizes: 2, repetitions: 8, within: Within::LogNormal, metrics: Metrics::Five, factor };
        let pages = in_turn(plan(1.0), 60, 2);
        assert!(pages.any.is_at_most(ALPHA), "{pages:?}");
        let pages = in_turn(plan(1.1), 20, 3);
        assert!(pages.throughput.is_at_least(0.95) && pages.wrong.hits == 0, "{pages:?}");
    }

    #[test]
    fn nights_make_no_difference_once_two_of_the_past_are_known() {
        for past in [2, 5, 12] {
            let pages = across(Nights { past, ..Nights::USUAL }, 150, 4);
            assert!(pages.any.is_at_most(ALPHA), "{past}: {pages:?}");
            assert!(pages.covers.is_at_least(1.0 - ALPHA), "{past}: {pages:?}");
        }
        let pages = across(Nights { past: 1, ..Nights::USUAL }, 20, 5);
        assert_eq!((pages.any.hits, pages.cannot_say.hits), (0, 20), "without a past nothing is said");
        let pages = across(Nights { past: 12, factor: 1.3, ..Nights::USUAL }, 20, 6);
        assert!(pages.any.is_at_least(0.9), "{pages:?}");
    }

    #[test]
    fn a_gate_never_passes_with_an_open_interval_and_seldom_what_is_beyond_its_limit() {
        let noisy = Simulated { repetitions: 5, noisier: 7.0, factor: 0.8 };
        let gates = gate::in_turn(&["rps<-5%"], noisy, 150, 7);
        assert_eq!(gates.open.hits, 0, "{gates:?}");
        assert!(gates.fine.is_at_most(ALPHA), "{gates:?}");
        let at_limit = Simulated { repetitions: 10, noisier: 1.0, factor: 0.9499 };
        let gates = gate::in_turn(&["rps<-5%"], at_limit, 150, 8);
        assert!(gates.open.hits == 0 && gates.fine.is_at_most(ALPHA), "{gates:?}");
        let quiet = Simulated { repetitions: 10, noisier: 0.25, factor: 1.0 };
        let gates = gate::in_turn(&["rps<-5%"], quiet, 40, 9);
        assert!(gates.fine.is_at_least(0.95) && gates.regression.hits == 0, "{gates:?}");
        let worse = Simulated { factor: 0.85, ..quiet };
        assert!(gate::in_turn(&["rps<-5%"], worse, 40, 10).regression.is_at_least(0.95));
    }

    #[test]
    fn looking_again_and_again_does_not_find_what_is_not_there() {
        let equal = Simulated { repetitions: 12, noisier: 2.0, factor: 1.0 };
        let gates = gate::until_decided(&["rps<-0.1%"], equal, 120, 11);
        assert!(gates.regression.is_at_most(ALPHA), "{gates:?}");
    }

    #[test]
    fn a_gate_with_many_cells_on_two_nights_seldom_fails_equal_programs() {
        let gates = gate::across(&["rps<-5%"], Nights { past: 4, sizes: 6, ..Nights::USUAL }, 50, 12);
        assert!(gates.regression.is_at_most(ALPHA) && gates.open.hits == 0, "{gates:?}");
    }
}
