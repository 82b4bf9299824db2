//! The top of a run's page: headline figures, errors, warnings and notes. Pure.

use brewbench_wire::{Phase, reports::summary::Summary};

use crate::{
    metrics::Metric,
    runs::{model::Run, verdict::Verdict},
    web::{
        card::{Card, Tone},
        format,
    },
};

/// An error, a warning or a note about the run.
#[derive(Debug, PartialEq, Eq)]
pub struct Warning {
    /// The kind, e.g. `Invalid.`
    pub title: &'static str,
    /// The explanation.
    pub text: String,
    /// The observed value and the limit, if there are any.
    pub figures: Option<String>,
    /// The class in `app.css`.
    pub class: &'static str,
}

/// Returns the headline figures; none for a run without results.
pub fn cards(run: &Run, summary: Option<&Summary>) -> Vec<Card> {
    let Some(requests) = run.figures.requests else { return Vec::new() };
    let ok = summary.map(|summary| summary.figures().ok_latency);
    let over = run.figures.measured_s.map(|seconds| format!(" in {}", format::duration(Some(seconds)).text()));
    let throughput = format!("{} requests{}", format::count(Some(requests)).text(), over.unwrap_or_default());
    let latency = |metric: Metric, label: &str, all: Option<f64>, ok: Option<f64>| {
        let value = all.map_or_else(|| "not known".to_owned(), |_| format::latency(all).text().to_owned());
        let detail = match (all, ok.filter(|_| run.figures.failed != Some(0))) {
            (None, _) => "not in the summary".to_owned(),
            (Some(_), Some(ok)) => format!("all requests; {} for successful ones", format::latency(Some(ok)).text()),
            (Some(_), None) => "all requests".to_owned(),
        };
        Card::new(label, value, detail, Tone::Plain).with_metric(metric)
    };
    let rps =
        run.figures.rps.map_or_else(|| "not known".to_owned(), |_| format::number(run.figures.rps).text().to_owned());
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

/// Returns errors, warnings and notes, the most severe first.
/// A failure of the target is also a reason for the verdict, but is listed only once.
pub fn warnings(run: &Run) -> Vec<Warning> {
    let ended = run.error.clone().map(|text| {
        let (title, class) = match run.phase {
            Phase::Cancelled => ("Cancelled.", ""),
            Phase::Lost => ("Lost.", "doubt"),
            _ => ("Failed.", "fault"),
        };
        Warning { title, text, figures: None, class }
    });
    let reasons = run.reasons.iter().filter(|reason| run.error.as_deref() != Some(&reason.text)).map(|reason| {
        let (title, class) = match reason.verdict {
            Verdict::Invalid => ("Invalid.", "fault"),
            Verdict::Suspect => ("Suspect.", "doubt"),
            Verdict::Valid => ("Note.", ""),
        };
        Warning { title, text: reason.text.clone(), figures: reason.figures(), class }
    });
    let mut all: Vec<Warning> = ended.into_iter().chain(reasons).collect();
    all.sort_by_key(|warning| {
        ["fault", "doubt"].iter().position(|class| *class == warning.class).unwrap_or(usize::MAX)
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        metrics::Figures,
        runs::testing::{failed, figured, finished, judged},
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
        let title = |phase: &str| warnings(&failed("servy", phase, "why")).remove(0).title;
        assert_eq!(["failed", "cancelled", "lost"].map(title), ["Failed.", "Cancelled.", "Lost."]);
        assert_eq!(warnings(&judged(finished("servy", 1), Verdict::Suspect, "why"))[0].title, "Suspect.");
        assert_eq!(warnings(&judged(finished("servy", 1), Verdict::Valid, "why"))[0].title, "Note.");
    }

    #[test]
    fn a_failed_target_is_listed_once() {
        let run = judged(failed("servy", "failed", "it died"), Verdict::Invalid, "it died");
        let shown: Vec<_> = warnings(&run).into_iter().map(|warning| (warning.title, warning.text)).collect();
        assert_eq!(shown, [("Failed.", "it died".to_owned())]);
    }
}
