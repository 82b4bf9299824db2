//! The top of a run's page: what is wrong with it, headline figures and notes. Pure.

use std::cmp::Reverse;

use brewbench_wire::{Phase, reports::summary::Summary};

use crate::{
    metrics::Metric,
    runs::{
        model::Run,
        verdict::{Reason, Verdict},
    },
    web::{
        card::{Card, Tone},
        format,
    },
};

/// What is wrong with the run, said once, with what follows from it.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The state, e.g. `Invalid`.
    pub title: &'static str,
    /// What the reader can do with the run.
    pub consequence: &'static str,
    /// Why, the most severe reasons first.
    pub reasons: Vec<String>,
    /// Its colour.
    pub tone: Tone,
}

/// Returns the headline figures; none for a run without results.
pub fn cards(run: &Run, summary: Option<&Summary>) -> Vec<Card> {
    let Some(requests) = run.figures.requests else { return Vec::new() };
    let ok = summary.map(|summary| summary.figures().ok_latency);
    let over = run.figures.measured_s.map(|seconds| format!(" in {}", format::duration(Some(seconds)).text()));
    let throughput = format!("{} requests{}", format::count(Some(requests)).text(), over.unwrap_or_default());
    let latency = |metric: Metric, label: &str, all: Option<f64>, ok: Option<f64>| {
        let value = all.map_or_else(|| "not known".to_owned(), |_| format::latency(all).text().to_owned());
        let value = value + &format::plus_minus(all, run.figures.resolution.get(&metric).copied(), format::latency);
        let detail = match (all, ok.filter(|_| run.figures.failed != Some(0))) {
            (None, _) => "not in the summary".to_owned(),
            (Some(_), Some(ok)) => format!("all requests; {} for successful ones", format::latency(Some(ok)).text()),
            (Some(_), None) => "all requests".to_owned(),
        };
        Card::new(label, value, detail, Tone::Plain).with_metric(metric)
    };
    let rps =
        run.figures.rps.map_or_else(|| "not known".to_owned(), |_| format::number(run.figures.rps).text().to_owned());
    let rps_error = run.figures.resolution.get(&Metric::Rps).copied();
    let rps = rps + &format::plus_minus(run.figures.rps, rps_error, format::number);
    vec![
        Card::new("Requests per second", rps, throughput, Tone::Plain).with_metric(Metric::Rps),
        latency(Metric::P50Ms, "Latency p50", run.figures.p50_ms, ok.and_then(|ok| ok.p50_ms)),
        latency(Metric::P99Ms, "Latency p99", run.figures.p99_ms, ok.and_then(|ok| ok.p99_ms)),
        failures(run, requests).with_metric(Metric::ErrorRate),
    ]
}

fn failures(run: &Run, requests: u64) -> Card {
    const LABEL: &str = "Failed requests";
    let total = format::count(Some(requests));
    match run.figures.failed {
        None => Card::new(LABEL, "not known", "not in the summary", Tone::Doubtful),
        Some(0) => Card::new(LABEL, "none", format!("of {}", total.text()), Tone::Plain),
        Some(failed) => {
            let detail = format!("{} of {}", format::count(Some(failed)).text(), total.text());
            let tone = match run.verdict {
                Some(Verdict::Invalid) => Tone::Bad,
                Some(Verdict::Valid) => Tone::Plain,
                Some(Verdict::Suspect) | None => Tone::Doubtful,
            };
            Card::new(LABEL, format::percent(run.figures.error_rate).text(), detail, tone)
        }
    }
}

/// Returns what is wrong with the run; none if nothing is.
/// A failure of the target is also a reason for the verdict, but is listed only once.
pub fn finding(run: &Run) -> Option<Finding> {
    const NO_RESULT: &str = "It has no results and enters no comparison.";
    let (title, consequence, tone) = match (run.phase, run.verdict) {
        (Phase::Failed, _) => ("Failed", NO_RESULT, Tone::Bad),
        (Phase::Lost, _) => ("Lost", NO_RESULT, Tone::Doubtful),
        (Phase::Cancelled, _) => ("Cancelled", NO_RESULT, Tone::Plain),
        (_, Some(Verdict::Invalid)) => ("Invalid", "The results are wrong, so it enters no comparison.", Tone::Bad),
        (_, Some(Verdict::Suspect)) => {
            ("Suspect", "The results may be wrong; a comparison with it says so.", Tone::Doubtful)
        }
        _ if run.spec.profiled => ("Profiled", "", Tone::Plain),
        _ => return None,
    };
    let profiled = "A profiler slows the target down, so this run enters no comparison, trend or gate.";
    let consequence = if run.spec.profiled { profiled } else { consequence };
    let mut reasons: Vec<&Reason> = run.reasons.iter().filter(|reason| !reason.is_note()).collect();
    reasons.sort_by_key(|reason| Reverse(reason.verdict));
    let reasons = reasons.into_iter().filter(|reason| run.error.as_deref() != Some(&reason.text)).map(sentence);
    let reasons = run.error.as_deref().map(begin).into_iter().chain(reasons).collect();
    Some(Finding { title, consequence, reasons, tone })
}

/// Returns notes, which affect no verdict.
pub fn notes(run: &Run) -> Vec<String> {
    run.reasons.iter().filter(|reason| reason.is_note()).map(sentence).collect()
}

fn sentence(reason: &Reason) -> String {
    let figures = reason.figures().map_or_else(String::new, |figures| format!(" ({figures})"));
    format!("{}{figures}", begin(&reason.text))
}

/// Begins a sentence, unless its first word is the name of a program.
fn begin(text: &str) -> String {
    if text.starts_with("k6") || text.starts_with("wrk") { text.to_owned() } else { format::capitalize(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        metrics::Figures,
        runs::{
            testing::{failed, figured, finished, judged},
            verdict::Unit,
        },
    };

    #[test]
    fn unknown_values_are_named_and_never_zero() {
        let mut run = finished("servy", 1);
        (run.figures.p99_ms, run.figures.failed) = (None, None);
        let cards = cards(&run, None);
        assert_eq!((cards[2].value.as_str(), cards[3].value.as_str()), ("not known", "not known"));
        assert_eq!(cards[0].value, "10,000");
    }

    #[test]
    fn rounded_values_say_how_far_they_may_be_off() {
        let rounded = figured(finished("servy", 1), |figures| {
            figures.p50_ms = Some(2.0);
            figures.resolution = [(Metric::P50Ms, 0.5)].into();
        });
        let cards = cards(&rounded, None);
        assert_eq!(cards[1].value.replace('\u{a0}', " "), "2.00 ms ± 0.5 ms");
        assert_eq!(cards[2].value.replace('\u{a0}', " "), "16.00 ms");
    }

    #[test]
    fn failures_are_bad_only_if_they_make_the_run_invalid() {
        let change = |figures: &mut Figures| (figures.failed, figures.error_rate) = (Some(3), Some(0.000_03));
        let some = figured(finished("servy", 1), change);
        assert_eq!(failures(&judged(some.clone(), Verdict::Suspect, "why"), 100_000).tone, Tone::Doubtful);
        assert_eq!(failures(&some, 100_000).tone, Tone::Plain, "only a note");
        assert_eq!(failures(&judged(some, Verdict::Invalid, "why"), 100_000).tone, Tone::Bad);
        assert_eq!(failures(&finished("servy", 1), 100_000).value, "none");
    }

    #[test]
    fn each_phase_and_verdict_has_a_title() {
        let title = |phase: &str| finding(&failed("servy", phase, "why")).expect("a finding").title;
        assert_eq!(["failed", "cancelled", "lost"].map(title), ["Failed", "Cancelled", "Lost"]);
        let judged = |verdict| judged(finished("servy", 1), verdict, "why");
        assert_eq!(finding(&judged(Verdict::Suspect)).expect("a finding").title, "Suspect");
        assert_eq!(finding(&judged(Verdict::Valid)), None);
        assert_eq!(notes(&judged(Verdict::Valid)), ["Why"]);
        let mut profiled = finished("servy", 1);
        profiled.spec.profiled = true;
        assert!(finding(&profiled).expect("a finding").consequence.contains("enters no comparison"));
    }

    #[test]
    fn a_failed_target_is_listed_once() {
        let run = judged(failed("servy", "failed", "it died"), Verdict::Invalid, "it died");
        let finding = finding(&run).expect("a finding");
        assert_eq!((finding.title, finding.reasons), ("Failed", vec!["It died".to_owned()]));
    }

    #[test]
    fn the_most_severe_reason_comes_first_and_figures_are_said_once() {
        let mut run = judged(finished("servy", 1), Verdict::Invalid, "it is broken");
        let share = |text: &str| Reason::new("x", Verdict::Suspect, text).with(0.5, 0.25, Unit::Share);
        run.reasons.splice(0..0, [share("half of it"), share("half of it: 50 %, the limit is 25 %")]);
        let expected = ["It is broken", "Half of it (50 %, limit 25 %)", "Half of it: 50 %, the limit is 25 %"];
        assert_eq!(finding(&run).expect("a finding").reasons, expected);
    }
}
