//! Runs that ended but do not count, and the card shown if no run counts. Pure.

use brewbench_wire::Phase;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{cell::Row, selection::Subject};
use crate::{
    app::ids::RunId,
    runs::{model::Run, verdict::Verdict},
    web::{
        card::{Card, Tone},
        format,
    },
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

/// Builds the card shown if no run counts.
pub fn no_result(all: &[ExcludedRun], unfinished: usize) -> Card {
    const LABEL: &str = "Result";
    if unfinished > 0 {
        let rest = format!("{} unfinished", format::plural(unfinished, "run"));
        let parts: Vec<String> = [counts(all), rest].into_iter().filter(|part| !part.is_empty()).collect();
        return Card::new(LABEL, "none yet", parts.join(", "), Tone::Plain);
    }
    // Cancelled runs explain less than failed ones.
    let is_cancelled = |excluded: &&&ExcludedRun| excluded.state == "cancelled";
    let mut by_weight: Vec<&ExcludedRun> = all.iter().filter(|excluded| !excluded.reason.is_empty()).collect();
    by_weight.sort_by_key(|excluded| is_cancelled(&excluded));
    let mut detail = format!("none of {} counts: {}", format::plural(all.len(), "run"), counts(all));
    if let Some(first) = by_weight.first() {
        detail = format!("{detail}; {} repetition {}: {}", first.subject, first.repetition, first.reason);
    }
    let tone = if all.iter().all(|excluded| excluded.state == "cancelled") { Tone::Plain } else { Tone::Doubtful };
    Card::new(LABEL, "no result", detail, tone)
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
        web::{
            card::{Card, Tone},
            series_style::Marks,
        },
    };

    fn card(runs: Vec<Run>) -> Card {
        let mut cards = Comparison::new(runs, &Marks::default(), None).cards;
        assert_eq!(cards.len(), 1, "{cards:?}");
        cards.remove(0)
    }

    fn cancelled(target: &str, repetition: u32) -> Run {
        Run { phase: Phase::Cancelled, ..failed(run(target, repetition), "cancelled by ada") }
    }

    #[test]
    fn without_counting_runs_the_card_shows_counts_and_the_first_reason() {
        let card = card(vec![
            cancelled("gosherve", 1),
            failed(run("servy", 1), "the port was taken"),
            failed(run("servy", 2), "it died"),
            judged(run("servy", 3), Verdict::Invalid, "all requests failed"),
        ]);
        assert_eq!((card.value.as_str(), card.tone), ("no result", Tone::Doubtful));
        let detail = "none of 4 runs counts: 2 failed, 1 invalid, 1 cancelled; servy repetition 1: the port was taken";
        assert_eq!(card.detail, detail);
    }

    #[test]
    fn several_sizes_without_figures_share_one_card() {
        let card = card(vec![failed(sized("a", 1, 1.0), "no"), failed(sized("a", 1, 4.0), "no")]);
        assert_eq!(card.value, "no result");
    }

    #[test]
    fn unfinished_runs_mean_no_result_yet() {
        let waiting = Run { phase: Phase::Queued, verdict: None, ..failed(run("servy", 2), "") };
        let card = card(vec![failed(run("servy", 1), "it died"), waiting]);
        assert_eq!((card.value.as_str(), card.detail.as_str()), ("none yet", "1 failed, 1 run unfinished"));
    }

    #[test]
    fn cancelled_runs_alone_are_no_warning() {
        let card = card(vec![cancelled("servy", 1), cancelled("servy", 2)]);
        assert_eq!((card.value.as_str(), card.tone), ("no result", Tone::Plain));
        assert!(card.detail.contains("2 cancelled; servy repetition 1: cancelled by ada"), "{card:?}");
    }
}
