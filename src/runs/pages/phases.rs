//! The phases of a run with their times. Pure.

use std::str::FromStr;

use brewbench_agent::wire::Phase;

use crate::web::{format, time_ago};

/// One phase that a run went through, or is in.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// E.g. `warming up`.
    pub name: String,
    /// Its class in `app.css`: its word in the database.
    pub class: &'static str,
    /// When it began, unix ms.
    pub at_ms: i64,
    /// How long it took, or takes so far, in seconds; none for the last phase of a run that has ended.
    pub took_s: Option<f64>,
    /// Whether it is on the bar: the wait for an agent says nothing of the run and would hide the rest.
    pub on_bar: bool,
}

impl Stage {
    /// Its part of the bar, in milliseconds: below 1 in all, parts would not fill it.
    pub fn weight(&self) -> f64 {
        self.took_s.unwrap_or_default() * 1_000.0
    }

    /// How long it took; most phases take less than a second.
    pub fn took(&self) -> String {
        match self.took_s {
            None => String::new(),
            Some(seconds) if seconds < 1.0 => format!("{:.0}\u{a0}ms", seconds * 1_000.0),
            Some(seconds) => format::duration(Some(seconds)).text().to_owned(),
        }
    }

    /// The exact time.
    pub fn began(&self) -> String {
        time_ago::exact(Some(self.at_ms))
    }
}

/// The phases in the order in which a run goes through them. Two clocks had a part in the times: a phase that seems to
/// have begun before the one ahead of it took no time.
pub fn stages(begun: &[(String, i64)], now_ms: i64) -> Vec<Stage> {
    let mut known: Vec<(Phase, i64)> =
        begun.iter().filter_map(|(phase, at)| Some((Phase::from_str(phase).ok()?, *at))).collect();
    known.sort_by_key(|(phase, _)| Phase::ALL.iter().position(|other| other == phase));
    let ends = known.iter().skip(1).map(|(_, at)| Some(*at)).chain([None]);
    known
        .iter()
        .zip(ends)
        .map(|((phase, at), end)| {
            let end = end.or_else(|| (!phase.is_final()).then_some(now_ms));
            Stage {
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

    fn seen(phases: &[(&str, i64)], now: i64) -> Vec<(String, Option<f64>)> {
        let begun: Vec<_> = phases.iter().map(|(phase, at)| ((*phase).to_owned(), *at)).collect();
        stages(&begun, now).into_iter().map(|stage| (stage.name, stage.took_s)).collect()
    }

    #[test]
    fn each_phase_lasts_until_the_next_and_the_present_one_until_now() {
        let now = seen(&[("queued", 0), ("leased", 1_000), ("warming_up", 1_500)], 3_500);
        let told = [("queued", 1.0), ("leased", 0.5), ("warming up", 2.0)];
        assert_eq!(now, told.map(|(name, took)| (name.to_owned(), Some(took))));
    }

    #[test]
    fn a_run_that_has_ended_does_not_last() {
        assert_eq!(seen(&[("queued", 0), ("cancelled", 250)], 9_000)[1], ("cancelled".to_owned(), None));
    }

    #[test]
    fn clocks_that_differ_do_not_turn_phases_around() {
        let times = seen(&[("leased", 1_000), ("preparing", 998), ("measuring", 2_000), ("nonsense", 1)], 2_000);
        let names: Vec<_> = times.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["leased", "preparing", "measuring"]);
        assert_eq!(times[0].1, Some(0.0));
    }
}
