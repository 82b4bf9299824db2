//! Forecasts the runs, duration and start of a plan before it is submitted. Pure.

use super::command::{command, without_secrets};
use crate::{
    experiments::{describe::cells_at_most, plan::Plan, power::SmallestDifference},
    runs::progress::planned_s,
    web::format,
};

/// Forecast of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Number of runs, e.g. `12 runs`, `12 to 80 runs`.
    pub runs: String,
    /// Cells, e.g. `2 targets × 2 sizes × 3 repetitions`.
    pub cells: String,
    /// Duration, e.g. `about 3 min`, `about 3 min to 20 min`, `about 3 min of machine time`.
    pub takes: String,
    /// The smallest difference it can show.
    pub smallest: SmallestDifference,
    /// The equivalent command.
    pub command: String,
    /// The body of the equivalent API request.
    pub json: String,
}

/// Where new runs would be in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueuePosition {
    /// Number of runs in progress or waiting.
    pub ahead: usize,
    /// Whether an agent that can do them is connected.
    pub has_agent: bool,
    /// Seconds until the first one starts, if known.
    pub starts_in_s: Option<f64>,
}

impl Forecast {
    /// Creates the forecast of a plan. `(fewest, most)` is its number of runs.
    pub fn new(plan: &Plan, smallest: SmallestDifference, (fewest, most): (usize, usize)) -> Self {
        let takes = |runs: usize| Some(planned_s(measured_s(plan)?, plan.longest_warm_up_s()) * runs as f64);
        let takes = takes(fewest).zip(takes(most)).map(|(least, longest)| {
            if fewest == most { approximate(least) } else { format!("{} to {}", approximate(least), in_words(longest)) }
        });
        // The number of machines that will share it is unknown.
        let takes = takes.map(|takes| if plan.spread { format!("{takes} of machine time") } else { takes });
        let (runs, shown) = (format::plural(most, "run"), without_secrets(plan));
        Self {
            runs: if fewest == most { runs } else { format!("{fewest} to {runs}") },
            cells: cells_at_most(plan),
            takes: takes.unwrap_or_else(|| "as long as the script says".to_owned()),
            smallest,
            command: command(&shown),
            json: serde_json::to_string_pretty(&shown).unwrap_or_default(),
        }
    }
}

impl QueuePosition {
    /// Describes it as the end of the sentence “starts …”.
    pub fn describe(self) -> String {
        let behind = format!("after {}", format::plural(self.ahead, "run"));
        match (self.has_agent, self.starts_in_s) {
            (false, _) if self.ahead == 0 => "when an agent connects".to_owned(),
            (false, _) => format!("{behind}, when an agent connects"),
            (true, Some(seconds)) if seconds < 1.0 => "immediately".to_owned(),
            (true, Some(seconds)) => format!("{behind}, in {}", approximate(seconds)),
            (true, None) if self.ahead == 0 => "immediately".to_owned(),
            (true, None) => behind,
        }
    }
}

/// Returns how long one run is measured, in seconds. All loads of a plan have the same duration.
fn measured_s(plan: &Plan) -> Option<f64> {
    match &plan.knee {
        Some(knee) => Some(knee.duration_s),
        None => Some(plan.loads.first()?.duration()?.as_secs_f64()),
    }
}

fn approximate(seconds: f64) -> String {
    format!("about {}", in_words(seconds))
}

fn in_words(seconds: f64) -> String {
    format::duration(Some(seconds.ceil())).text().to_owned()
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::Load;

    use super::*;
    use crate::experiments::{describe::tests::plan, stopping_rule::StoppingRule};

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    fn smallest() -> SmallestDifference {
        SmallestDifference { text: String::new(), is_too_little: false }
    }

    #[test]
    fn a_forecast_has_runs_and_duration() {
        let forecast = Forecast::new(&plan(), smallest(), (6, 6));
        assert_eq!(forecast.runs, "6 runs");
        assert_eq!(forecast.cells, "2 targets × 1 size × 3 repetitions");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s");
        assert!(forecast.json.contains("\"sizes\": [\n    \"2/4GiB\""), "{}", forecast.json);
    }

    #[test]
    fn a_place_in_the_queue_has_a_start_if_it_is_known() {
        let words = |ahead, has_agent, starts_in_s| plain(&QueuePosition { ahead, has_agent, starts_in_s }.describe());
        assert_eq!(words(2, true, Some(27.0)), "after 2 runs, in about 27 s");
        assert_eq!(words(2, true, Some(0.0)), "immediately", "another agent is free");
        assert_eq!(words(900, true, None), "after 900 runs");
        assert_eq!(words(0, true, Some(0.0)), "immediately");
        assert_eq!(words(0, false, None), "when an agent connects");
        assert_eq!(words(1, false, None), "after 1 run, when an agent connects");
    }

    #[test]
    fn an_adaptive_plan_has_a_minimum_and_a_maximum() {
        let until = Some(StoppingRule { narrower_than: 0.02, at_most: 20 });
        let forecast = Forecast::new(&Plan { stopping_rule: until, ..plan() }, smallest(), (6, 40));
        assert_eq!(forecast.runs, "6 to 40 runs");
        assert_eq!(forecast.cells, "2 targets × 1 size × 3 to 20 repetitions");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s to 9 min");
        let spread = Forecast::new(&Plan { spread: true, ..plan() }, smallest(), (6, 6));
        assert_eq!(plain(&spread.takes), "about 1 min 21 s of machine time");
    }

    #[test]
    fn unknown_durations_are_not_guessed() {
        let script = Plan { loads: vec![Load::Script], ..plan() };
        assert_eq!(Forecast::new(&script, smallest(), (6, 6)).takes, "as long as the script says");
    }
}
