//! Runs that ended but do not count. Pure.

use brewbench_wire::Phase;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{cell::Row, selection::Subject};
use crate::{
    app::ids::RunId,
    runs::{model::Run, verdict::Verdict},
};

/// A run that ended but does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExcludedRun {
    /// Id of the run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Label of the subject.
    pub subject: String,
    /// Label of the setting.
    pub setting: String,
    /// Number of the repetition.
    pub repetition: u32,
    /// `invalid`, `failed`, `cancelled`, `lost`, or `profiled`.
    pub state: String,
    /// Error and reasons of the verdict.
    pub reason: String,
}

/// Returns all excluded runs, in the order of the rows.
pub fn excluded_runs(subjects: &[Subject], rows: &[Row]) -> Vec<ExcludedRun> {
    let mut all = Vec::new();
    for row in rows {
        for cell in &row.cells {
            for run in &cell.runs {
                let state = match (run.phase, run.verdict) {
                    (Phase::Finished, _) if run.spec.profiled => "profiled",
                    (Phase::Finished, Some(Verdict::Invalid) | None) => "invalid",
                    (phase @ (Phase::Failed | Phase::Cancelled | Phase::Lost), _) => phase.as_str(),
                    _ => continue,
                };
                all.push(ExcludedRun {
                    run: run.id.clone(),
                    subject: subjects[cell.subject].label.clone(),
                    setting: row.setting.label.clone(),
                    repetition: run.repetition,
                    state: state.to_owned(),
                    reason: reason(run),
                });
            }
        }
    }
    all
}

fn reason(run: &Run) -> String {
    if run.spec.profiled {
        return "a profiler slows the target down, so the run is no measurement".to_owned();
    }
    let reasons = run.reasons.iter().filter(|reason| reason.verdict == Verdict::Invalid).map(|reason| &reason.text);
    let mut texts: Vec<&str> = run.error.iter().chain(reasons).map(String::as_str).collect();
    // The error of a failed target is also a reason.
    texts.dedup();
    texts.join("; ")
}

/// Counts the runs by state, the most serious first: `2 failed, 1 cancelled`.
pub fn counts(all: &[ExcludedRun]) -> String {
    let count = |state: &&str| all.iter().filter(|excluded| excluded.state == *state).count();
    let kinds = ["failed", "invalid", "lost", "cancelled", "profiled"].into_iter().map(|state| (count(&state), state));
    let parts: Vec<String> =
        kinds.filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use brewbench_wire::Phase;

    use crate::{
        compare::{
            testing::{failed, judged, run, sized},
            view::Comparison,
        },
        runs::{model::Run, verdict::Verdict},
        web::{card::Tone, series_style::Marks},
    };

    /// Sentence, details and tone of the only headline.
    fn result(runs: Vec<Run>) -> (String, String, Tone) {
        let mut headlines = Comparison::new(runs, &Marks::default(), None).answer.headlines;
        assert_eq!(headlines.len(), 1, "{headlines:?}");
        let only = headlines.remove(0);
        (only.sentence.to_string(), only.details, only.tone)
    }

    fn cancelled(target: &str, repetition: u32) -> Run {
        Run { phase: Phase::Cancelled, ..failed(run(target, repetition), "cancelled by ada") }
    }

    #[test]
    fn without_counting_runs_the_result_shows_counts_and_the_first_reason() {
        let (sentence, details, tone) = result(vec![
            cancelled("gosherve", 1),
            failed(run("servy", 1), "the port was taken"),
            failed(run("servy", 2), "it died"),
            judged(run("servy", 3), Verdict::Invalid, "all requests failed"),
        ]);
        assert_eq!((sentence.as_str(), tone), ("No result", Tone::Doubtful));
        let expected =
            "None of 4 runs counts: 2 failed, 1 invalid, 1 cancelled. servy repetition 1: the port was taken.";
        assert_eq!(details, expected);
    }

    #[test]
    fn several_sizes_without_figures_share_one_result() {
        let (sentence, ..) = result(vec![failed(sized("a", 1, 1.0), "no"), failed(sized("a", 1, 4.0), "no")]);
        assert_eq!(sentence, "No result");
    }

    #[test]
    fn unfinished_runs_mean_no_result_yet() {
        let waiting = Run { phase: Phase::Queued, verdict: None, ..failed(run("servy", 2), "") };
        let (sentence, details, _) = result(vec![failed(run("servy", 1), "it died"), waiting]);
        assert_eq!((sentence.as_str(), details.as_str()), ("No result yet", "1 failed, 1 run unfinished."));
    }

    #[test]
    fn cancelled_runs_alone_are_no_warning() {
        let (sentence, details, tone) = result(vec![cancelled("servy", 1), cancelled("servy", 2)]);
        assert_eq!((sentence.as_str(), tone), ("No result", Tone::Plain));
        assert!(details.contains("2 cancelled. servy repetition 1: cancelled by ada"), "{details}");
    }
}
