//! Properties of a run's requests, as a list of facts. Template: `runs/_summary.html`. Pure.

use std::collections::BTreeMap;

use crate::{metrics::work::mix, runs::model::Run, web::format};

/// The text for unknown values.
const UNKNOWN: &str = "not known";

/// Returns name and value of each fact that must match for a comparison.
pub fn work(run: &Run) -> Vec<(&'static str, String)> {
    let work = &run.figures.work;
    let known = |value: Option<f64>, unit: &str| match value {
        Some(_) => format!("{}{unit}", format::number(value).text()),
        None => UNKNOWN.to_owned(),
    };
    let counts = |counts: &Option<BTreeMap<String, u64>>| counts.as_ref().map_or_else(|| UNKNOWN.to_owned(), mix);
    let count = |count: Option<u64>| format::count(count).text().to_owned();
    let connections = match (work.new_connections, work.min_new_connections, work.max_new_connections) {
        (Some(new), ..) => {
            format!("{} ({} of the requests)", count(Some(new)), format::percent(work.new_connection_share).text())
        }
        (None, Some(least), Some(most)) => format!("{} to {}", count(Some(least)), count(Some(most))),
        _ => UNKNOWN.to_owned(),
    };
    vec![
        (
            "Iterations",
            run.figures
                .iterations
                .map_or(UNKNOWN.to_owned(), |_| format::count(run.figures.iterations).text().to_owned()),
        ),
        ("Requests per iteration", known(work.requests_per_iteration, "")),
        ("Response bytes per request", known(work.bytes_per_request, "\u{a0}B")),
        ("Request bytes per request", known(work.sent_bytes_per_request, "\u{a0}B")),
        ("New connections", connections),
        ("Statuses", counts(&work.statuses)),
        ("Protocols", counts(&work.protocols)),
        ("Checks passed", known_checks(run)),
    ]
}

fn known_checks(run: &Run) -> String {
    let (Some(passed), Some(failed)) = (run.figures.checks_passed, run.figures.checks_failed) else {
        return UNKNOWN.to_owned();
    };
    let total = passed.saturating_add(failed);
    let rate = (total > 0).then(|| passed as f64 / total as f64);
    format!("{} of {}", format::percent(rate).text(), format::count(Some(total)).text())
}

#[cfg(test)]
mod tests {
    use brewbench_wire::work_done::WorkDone;

    use crate::{
        metrics::work::RunWork,
        runs::testing::{figured, finished},
    };

    #[test]
    fn known_values_have_units_and_others_are_not_known() {
        let work = RunWork::new(Some(1_000), Some(500), Some(1_204_000.0));
        let work = work.with_connections(Some(10), Some(10), Some(1_000)).with_sent(Some(1_204_000.0), Some(1_000));
        let statuses = [("200".to_owned(), 500), ("302".to_owned(), 500)].into();
        let work = work.with_tags(WorkDone { statuses: Some(statuses), ..WorkDone::default() }, Some(1_000));
        let run = figured(finished("servy", 1), |figures| (figures.iterations, figures.work) = (Some(500), work));
        let lines: Vec<String> =
            super::work(&run).iter().map(|(name, value)| format!("{name}: {value}").replace('\u{a0}', " ")).collect();
        assert_eq!(
            lines,
            [
                "Iterations: 500",
                "Requests per iteration: 2.00",
                "Response bytes per request: 1,204 B",
                "Request bytes per request: 1,204 B",
                "New connections: 10 (1 % of the requests)",
                "Statuses: 200 50 %, 302 50 %",
                "Protocols: not known",
                "Checks passed: not known",
            ]
        );
    }
}
