//! k6's summary as JSON, in each of its shapes: `handleSummary`, `--summary-export`, machine-readable.

use super::format::{Format, Reader, Recognised};
use super::k6_units::half_digit_of_bytes;
use crate::reports::input::document::Document;
use crate::reports::json::{self, Node};
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::summary::{Metric, Shape, Summary};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};
use crate::reports::values::percentile;
use crate::reports::warning::Warning;
use crate::reports::{export, handle_summary, load, machine_readable, values};

pub(super) const FORMAT: Format = Format {
    name: "k6",
    title: "k6's summary as JSON",
    tool: "k6",
    limits: "A machine-readable summary has no groups, no thresholds and only the 90th and 95th percentile.",
    is_rounded: false,
    timeout_ms: Some(60_000.0),
    reader: Reader::Json { is, read: |document| Ok(vec![report(summary(document)?)?]) },
};

fn is(document: &Document<'_>) -> Recognised {
    // web-frameworks has `metrics`, too.
    let is_k6 = document.has(&["metrics"]) && !document.has(&["frameworks"])
        || document
            .get("results")
            .and_then(|results| results.get("metrics"))
            .is_some_and(|metrics| metrics.what() == "a list");
    is_k6.into()
}

fn summary(document: &Document<'_>) -> Result<Summary, Fault> {
    let document = json::read(document.text.as_bytes())?;
    match (document.get("results"), document.get("metrics")) {
        (Some(results), _) if matches!(results.get("metrics"), Some(Node::List(_))) => {
            machine_readable::read(&document, results)
        }
        (_, Some(metrics)) => {
            let entries = metrics.entries(&Place::root("metrics"))?;
            if handle_summary::recognises(entries) {
                handle_summary::read(&document, entries)
            } else {
                export::read(&document, entries)
            }
        }
        _ => Err(Place::root("results.metrics").fault("is not a list")),
    }
}

/// Validates a summary, and states its values in neutral terms.
pub(super) fn report(mut summary: Summary) -> Result<Report, Fault> {
    summary.remove_negative_times();
    load::keep(&mut summary);
    values::judge(&summary)?;
    summary.forget_unevaluated_thresholds();
    let figures = summary.figures();
    let negative = summary.negative_minima.iter();
    let warnings = negative.map(|metric| {
        Warning::Note(format!("{metric} has a negative time, because a clock went back: that statistic is unknown"))
    });
    let samples = |failed: u64| figures.requests.saturating_sub(failed);
    let has = |name| summary.metrics.contains_key(name);
    Ok(Report {
        version: summary.k6_version.clone(),
        duration: summary.measured_ms().map(Time::exact),
        load: Generated { connections: figures.vus_max, ..Generated::default() },
        requests: has("http_reqs").then_some(figures.requests),
        failed: figures.failed,
        rate_per_s: has("http_reqs").then_some(figures.rps),
        received_bytes: figures.data_received_bytes,
        received_per_s: figures.received_per_s,
        received_error_per_s: figures.received_per_s.map_or(0.0, half_digit_of_bytes),
        sent_bytes: figures.data_sent_bytes,
        latency: latencies(&summary, "http_req_duration", samples(0), Population::All),
        ok_latency: latencies(
            &summary,
            "http_req_duration{expected_response:true}",
            samples(figures.failed.unwrap_or_default()),
            Population::Successful,
        ),
        warnings: warnings.collect(),
        summary: Some(Box::new(summary)),
        ..Report::default()
    })
}

fn latencies(summary: &Summary, metric: &str, samples: u64, of: Population) -> Latencies {
    let Some(Metric { values, .. }) = summary.metrics.get(metric).filter(|metric| samples > 0 && !metric.is_empty())
    else {
        return Latencies::default();
    };
    let step = if summary.shape == Shape::TextReport { 0.01 } else { 0.0 };
    let time = |ms: f64| {
        // Text is cut to two decimals of the unit it is printed in.
        let unit_ms = [1e3, 1.0, 1e-3].into_iter().find(|unit| ms >= *unit).unwrap_or(1e-6);
        Time { ms, error_ms: step * unit_ms }
    };
    let value = |name: &str| values.get(name).copied().map(time);
    let ends = Latencies {
        min: value("min"),
        mean: value("avg"),
        max: value("max"),
        of,
        definition: Definition::Interpolated,
        ..Latencies::default()
    };
    ends.with_percentiles(values.iter().filter_map(|(name, ms)| Some((percentile(name)?, Some(time(*ms))))))
}
