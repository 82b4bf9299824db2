//! The phases of a run with start and duration. Pure.

use std::str::FromStr;

use brewbench_wire::Phase;

use crate::web::{format, time_ago};

/// A past or current phase of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTiming {
    /// The name, e.g. `warming up`.
    pub name: String,
    /// The class in `app.css`, which is the word in the database.
    pub class: &'static str,
    /// Start, unix ms.
    pub at_ms: i64,
    /// Duration so far, in seconds; none for a final phase.
    pub took_s: Option<f64>,
    /// Whether the bar shows it: the time in the queue would hide the rest.
    pub on_bar: bool,
}

impl PhaseTiming {
    /// Its `flex-grow` in the bar, in milliseconds, because a sum below 1 would not fill the bar.
    pub fn weight(&self) -> f64 {
        self.took_s.unwrap_or_default() * 1_000.0
    }

    /// Its duration in words; most phases take less than a second.
    pub fn took(&self) -> String {
        match self.took_s {
            None => String::new(),
            Some(seconds) if seconds < 1.0 => format!("{:.0}\u{a0}ms", seconds * 1_000.0),
            Some(seconds) => format::duration(Some(seconds)).text().to_owned(),
        }
    }

    /// The exact start time.
    pub fn began(&self) -> String {
        time_ago::exact(Some(self.at_ms))
    }
}

/// Returns the phases in order. The times come from two clocks, so durations are at least zero.
pub fn timings(starts: &[(String, i64)], now_ms: i64) -> Vec<PhaseTiming> {
    let mut known: Vec<(Phase, i64)> =
        starts.iter().filter_map(|(phase, at)| Some((Phase::from_str(phase).ok()?, *at))).collect();
    known.sort_by_key(|(phase, _)| Phase::ALL.iter().position(|other| other == phase));
    let ends = known.iter().skip(1).map(|(_, at)| Some(*at)).chain([None]);
    known
        .iter()
        .zip(ends)
        .map(|((phase, at), end)| {
            let end = end.or_else(|| (!phase.is_final()).then_some(now_ms));
            PhaseTiming {
                name: phase.as_str().replace('_', " "),
                class: phase.as_str(),
                at_ms: *at,
                took_s: end.map(|end| (end - at).max(0) as f64 / 1_000.0),
                on_bar: *phase != Phase::Queued && !phase.is_final(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(phases: &[(&str, i64)], now: i64) -> Vec<(String, Option<f64>)> {
        let starts: Vec<_> = phases.iter().map(|(phase, at)| ((*phase).to_owned(), *at)).collect();
        timings(&starts, now).into_iter().map(|phase| (phase.name, phase.took_s)).collect()
    }

    #[test]
    fn each_phase_lasts_until_the_next_and_the_current_one_until_now() {
        let actual = durations(&[("queued", 0), ("leased", 1_000), ("warming_up", 1_500)], 3_500);
        let expected = [("queued", 1.0), ("leased", 0.5), ("warming up", 2.0)];
        assert_eq!(actual, expected.map(|(name, took)| (name.to_owned(), Some(took))));
    }

    #[test]
    fn a_final_phase_has_no_duration() {
        assert_eq!(durations(&[("queued", 0), ("cancelled", 250)], 9_000)[1], ("cancelled".to_owned(), None));
    }

    #[test]
    fn different_clocks_do_not_change_the_order_of_phases() {
        let times = durations(&[("leased", 1_000), ("preparing", 998), ("measuring", 2_000), ("nonsense", 1)], 2_000);
        let names: Vec<_> = times.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["leased", "preparing", "measuring"]);
        assert_eq!(times[0].1, Some(0.0));
    }
}
