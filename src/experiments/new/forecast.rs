//! Forecasts the runs, duration and queue position of a plan before it is submitted. Pure.

use super::command::command;
use crate::{
    experiments::{describe::cells, plan::Plan, power::PlanPower},
    runs::{
        model::Run,
        progress::{planned_s, remaining_s},
    },
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
    /// Statistical power, if the plan compares anything.
    pub power: Option<PlanPower>,
    /// Position in the queue.
    pub place: String,
    /// The equivalent command.
    pub command: String,
    /// The body of the equivalent API request.
    pub json: String,
}

impl Forecast {
    /// Creates the forecast of a plan.
    ///
    /// `(fewest, most)` is its number of runs. `ahead` are unfinished runs, of which there are `ahead_count` in total.
    pub fn new(
        plan: &Plan,
        power: Option<PlanPower>,
        (fewest, most): (usize, usize),
        ahead: &[Run],
        ahead_count: usize,
        now_ms: i64,
    ) -> Self {
        let takes = |runs: usize| Some(planned_s(measured_s(plan)?, plan.longest_warm_up_s()) * runs as f64);
        let takes = takes(fewest).zip(takes(most)).map(|(least, longest)| {
            if fewest == most { about(least) } else { format!("{} to {}", about(least), in_words(longest)) }
        });
        // The number of machines that will share it is unknown.
        let takes = takes.map(|takes| if plan.spread { format!("{takes} of machine time") } else { takes });
        let runs = format::plural(most, "run");
        Self {
            runs: if fewest == most { runs } else { format!("{fewest} to {runs}") },
            cells: cells(plan),
            takes: takes.unwrap_or_else(|| "duration set by the script".to_owned()),
            power,
            place: place(ahead, ahead_count, now_ms),
            command: command(plan),
            json: serde_json::to_string_pretty(plan).unwrap_or_default(),
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

fn about(seconds: f64) -> String {
    format!("about {}", in_words(seconds))
}

fn in_words(seconds: f64) -> String {
    format::duration(Some(seconds.ceil())).text().to_owned()
}

fn place(ahead: &[Run], count: usize, now_ms: i64) -> String {
    if count == 0 {
        return "immediately: the queue is empty".to_owned();
    }
    let others: Vec<&Run> = ahead.iter().collect();
    let listed: Option<f64> = ahead.iter().map(|run| remaining_s(run, &others, now_ms)).sum();
    let behind = format!("after {} in progress or waiting", format::plural(count, "run"));
    match listed.filter(|_| ahead.len() == count) {
        Some(seconds) if seconds >= 1.0 => format!("{behind}, in {}", about(seconds)),
        _ => behind,
    }
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::load::Load;

    use super::*;
    use crate::experiments::describe::tests::{plan, queued};

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_forecast_has_runs_duration_and_the_end_of_the_queue() {
        let ahead = [queued("servy"), queued("servy")];
        let forecast = Forecast::new(&plan(), None, (6, 6), &ahead, 2, 0);
        assert_eq!(forecast.runs, "6 runs");
        assert_eq!(forecast.cells, "2 targets × 1 size × 3 repetitions");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s");
        assert_eq!(plain(&forecast.place), "after 2 runs in progress or waiting, in about 27 s");
        assert!(forecast.json.contains("\"sizes\": [\n    \"2/4GiB\""), "{}", forecast.json);
    }

    #[test]
    fn an_adaptive_plan_has_a_minimum_and_a_maximum() {
        let forecast = Forecast::new(&plan(), None, (6, 40), &[], 0, 0);
        assert_eq!(forecast.runs, "6 to 40 runs");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s to 9 min");
        let spread = Forecast::new(&Plan { spread: true, ..plan() }, None, (6, 6), &[], 0, 0);
        assert_eq!(plain(&spread.takes), "about 1 min 21 s of machine time");
    }

    #[test]
    fn unknown_durations_are_not_guessed() {
        let script = Plan { loads: vec![Load::Script], ..plan() };
        let forecast = Forecast::new(&script, None, (6, 6), &[], 0, 0);
        assert_eq!(forecast.takes, "duration set by the script");
        assert_eq!(forecast.place, "immediately: the queue is empty");
        assert_eq!(
            Forecast::new(&script, None, (6, 6), &[queued("x")], 900, 0).place,
            "after 900 runs in progress or waiting"
        );
    }
}
