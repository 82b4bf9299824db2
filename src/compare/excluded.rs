//! Runs that ended without figures that could be used: which, why, and what is said where there are no others. Pure.

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

/// A run that ended without figures that could be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOut {
    /// Its id.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Who.
    pub subject: String,
    /// Where.
    pub setting: String,
    /// Which repetition.
    pub repetition: u32,
    /// `invalid`, `failed`, `cancelled` or `lost`.
    pub state: String,
    /// Why, in sentences.
    pub why: String,
}

/// All of them, in the order of the rows.
pub fn left_out(subjects: &[Subject], rows: &[Row]) -> Vec<LeftOut> {
    let mut all = Vec::new();
    for row in rows {
        for cell in &row.cells {
            for run in &cell.runs {
                let state = match (run.phase.as_str(), run.verdict) {
                    ("finished", Some(Verdict::Invalid) | None) => "invalid",
                    (phase @ ("failed" | "cancelled" | "lost"), _) => phase,
                    _ => continue,
                };
                all.push(LeftOut {
                    run: run.id.clone(),
                    subject: subjects[cell.subject].label.clone(),
                    setting: row.setting.label.clone(),
                    repetition: run.repetition,
                    state: state.to_owned(),
                    why: why(run),
                });
            }
        }
    }
    all
}

fn why(run: &Run) -> String {
    let reasons = run.reasons.iter().filter(|reason| reason.verdict == Verdict::Invalid).map(|reason| &reason.text);
    let mut texts: Vec<&str> = run.error.iter().chain(reasons).map(String::as_str).collect();
    // What a target failed at is a reason, too.
    texts.dedup();
    texts.join("; ")
}

/// How many there are of each kind, what weighs most first: `2 failed, 1 cancelled`; empty if there are none.
pub fn counts(all: &[LeftOut]) -> String {
    let count = |state: &&str| all.iter().filter(|left| left.state == *state).count();
    let kinds = ["failed", "invalid", "lost", "cancelled"].into_iter().map(|state| (count(&state), state));
    let parts: Vec<String> =
        kinds.filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
    parts.join(", ")
}

/// What stands for the answer where not one run has figures that count.
pub fn no_result(all: &[LeftOut], unfinished: usize) -> Card {
    const LABEL: &str = "Result";
    if unfinished > 0 {
        let rest = format!("{} not at an end yet", format::plural(unfinished, "run"));
        let parts: Vec<String> = [counts(all), rest].into_iter().filter(|part| !part.is_empty()).collect();
        return Card::new(LABEL, "none yet", parts.join(", "), Tone::Plain);
    }
    // That somebody stopped the rest explains less than what went wrong before.
    let is_cancelled = |left: &&&LeftOut| left.state == "cancelled";
    let mut by_weight: Vec<&LeftOut> = all.iter().filter(|left| !left.why.is_empty()).collect();
    by_weight.sort_by_key(|left| is_cancelled(&left));
    let mut detail = format!("not one of {} has figures that count: {}", format::plural(all.len(), "run"), counts(all));
    if let Some(first) = by_weight.first() {
        detail = format!("{detail}; the first, {} repetition {}: {}", first.subject, first.repetition, first.why);
    }
    let tone = if all.iter().all(|left| left.state == "cancelled") { Tone::Plain } else { Tone::Doubtful };
    Card::new(LABEL, "no result", detail, tone)
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::Phase;

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
    fn where_nothing_counts_the_answer_says_so_with_counts_and_the_first_reason() {
        let card = card(vec![
            cancelled("gosherve", 1),
            failed(run("servy", 1), "the port was taken"),
            failed(run("servy", 2), "it died"),
            judged(run("servy", 3), Verdict::Invalid, "all requests failed"),
        ]);
        assert_eq!((card.value.as_str(), card.tone), ("no result", Tone::Doubtful));
        let told = "not one of 4 runs has figures that count: 2 failed, 1 invalid, 1 cancelled; \
                    the first, servy repetition 1: the port was taken";
        assert_eq!(card.detail, told);
    }

    #[test]
    fn several_sizes_without_any_figures_are_one_answer() {
        let card = card(vec![failed(sized("a", 1, 1.0), "no"), failed(sized("a", 1, 4.0), "no")]);
        assert_eq!(card.value, "no result");
    }

    #[test]
    fn while_some_have_not_ended_there_is_none_yet() {
        let waiting = Run { phase: Phase::Queued, verdict: None, ..failed(run("servy", 2), "") };
        let card = card(vec![failed(run("servy", 1), "it died"), waiting]);
        assert_eq!((card.value.as_str(), card.detail.as_str()), ("none yet", "1 failed, 1 run not at an end yet"));
    }

    #[test]
    fn who_cancels_everything_has_no_error() {
        let card = card(vec![cancelled("servy", 1), cancelled("servy", 2)]);
        assert_eq!((card.value.as_str(), card.tone), ("no result", Tone::Plain));
        assert!(card.detail.contains("2 cancelled; the first, servy repetition 1: cancelled by ada"), "{card:?}");
    }
}
