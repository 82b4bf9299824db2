//! What a submission would come to, said before it is made. Pure.

use super::command::command;
use crate::{
    experiments::{describe::cells, plan::Plan, power::PlanPower},
    runs::{
        model::Run,
        progress::{left_s, planned_s},
    },
    web::format,
};

/// What a plan would come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// E.g. `12 runs`, `12 to 80 runs`.
    pub runs: String,
    /// E.g. `2 targets × 2 sizes × 3 repetitions`.
    pub cells: String,
    /// E.g. `about 3 min`, `about 3 min to 20 min`, `about 3 min of machine time`.
    pub takes: String,
    /// What its comparison will be able to tell; none where it compares nothing.
    pub power: Option<PlanPower>,
    /// Where in the queue it would stand.
    pub place: String,
    /// The command that does the same.
    pub command: String,
    /// The body of the request that does the same.
    pub json: String,
}

impl Forecast {
    /// What a plan would come to that makes so many runs, the fewest and the most, behind these ones, of which there may
    /// be more than are listed.
    pub fn new(
        plan: &Plan,
        power: Option<PlanPower>,
        (fewest, most): (usize, usize),
        ahead: &[Run],
        ahead_in_all: usize,
        now_ms: i64,
    ) -> Self {
        let takes = |runs: usize| Some(planned_s(lasts_s(plan)?, plan.longest_warm_up_s()) * runs as f64);
        let takes = takes(fewest).zip(takes(most)).map(|(least, longest)| {
            if fewest == most { about(least) } else { format!("{} to {}", about(least), in_words(longest)) }
        });
        // Nobody knows how many machines will share it.
        let takes = takes.map(|takes| if plan.spread { format!("{takes} of machine time") } else { takes });
        let runs = format::plural(most, "run");
        Self {
            runs: if fewest == most { runs } else { format!("{fewest} to {runs}") },
            cells: cells(plan),
            takes: takes.unwrap_or_else(|| "as long as its script takes".to_owned()),
            power,
            place: place(ahead, ahead_in_all, now_ms),
            command: command(plan),
            json: serde_json::to_string_pretty(plan).unwrap_or_default(),
        }
    }
}

/// How long one run is measured, seconds: several loads are equally long.
fn lasts_s(plan: &Plan) -> Option<f64> {
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

fn place(ahead: &[Run], in_all: usize, now_ms: i64) -> String {
    if in_all == 0 {
        return "at once: nothing else runs or waits".to_owned();
    }
    let others: Vec<&Run> = ahead.iter().collect();
    let listed: Option<f64> = ahead.iter().map(|run| left_s(run, &others, now_ms)).sum();
    let behind = format!("behind {} that {} not ended", format::plural(in_all, "run"), have(in_all));
    match listed.filter(|_| ahead.len() == in_all) {
        Some(seconds) if seconds >= 1.0 => format!("{behind}, in {}", about(seconds)),
        _ => behind,
    }
}

fn have(count: usize) -> &'static str {
    if count == 1 { "has" } else { "have" }
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
    fn it_counts_runs_takes_the_time_of_the_progress_and_stands_at_the_end_of_the_queue() {
        let ahead = [queued("servy"), queued("servy")];
        let forecast = Forecast::new(&plan(), None, (6, 6), &ahead, 2, 0);
        assert_eq!(forecast.runs, "6 runs");
        assert_eq!(forecast.cells, "2 targets × 1 size × 3 repetitions");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s");
        assert_eq!(plain(&forecast.place), "behind 2 runs that have not ended, in about 27 s");
        assert!(forecast.json.contains("\"sizes\": [\n    \"2/4GiB\""), "{}", forecast.json);
    }

    #[test]
    fn what_decides_by_itself_has_a_least_and_a_most() {
        let forecast = Forecast::new(&plan(), None, (6, 40), &[], 0, 0);
        assert_eq!(forecast.runs, "6 to 40 runs");
        assert_eq!(plain(&forecast.takes), "about 1 min 21 s to 9 min");
        let spread = Forecast::new(&Plan { spread: true, ..plan() }, None, (6, 6), &[], 0, 0);
        assert_eq!(plain(&spread.takes), "about 1 min 21 s of machine time");
    }

    #[test]
    fn what_can_not_be_known_is_not_guessed() {
        let script = Plan { loads: vec![Load::Script], ..plan() };
        let forecast = Forecast::new(&script, None, (6, 6), &[], 0, 0);
        assert_eq!(forecast.takes, "as long as its script takes");
        assert_eq!(forecast.place, "at once: nothing else runs or waits");
        assert_eq!(
            Forecast::new(&script, None, (6, 6), &[queued("x")], 900, 0).place,
            "behind 900 runs that have not ended"
        );
    }
}
