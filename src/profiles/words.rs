//! Profiles in words, for pages and commands. Pure.

use std::borrow::Borrow;

use brewbench_wire::profile::ProfileKind;

use super::model::{Delta, Overhead, ProfileComparison, ProfileInfo};
use crate::{app::ids::RunId, metrics::METRICS, web::format};

/// The name of a kind of profile.
pub fn kind(kind: impl Borrow<ProfileKind>) -> &'static str {
    match kind.borrow() {
        ProfileKind::Cpu => "CPU time",
        ProfileKind::Heap => "Memory in use",
        ProfileKind::Allocs => "Allocated memory",
    }
}

/// The last part of a run's id, which is random.
pub fn short(run: &RunId) -> &str {
    run.as_str().rsplit('-').next().unwrap_or_default()
}

/// A value of a table: at most four significant digits.
pub fn number(value: impl Borrow<f64>) -> String {
    format::number(Some(*value.borrow())).text().to_owned()
}

/// A difference with its sign.
pub fn signed(value: impl Borrow<f64>) -> String {
    let value = *value.borrow();
    let sign = if value > 0.0 {
        "+"
    } else if value < 0.0 {
        "−"
    } else {
        "±"
    };
    format!("{sign}{}", number(value.abs()))
}

/// The interval of a difference, or why there is none.
pub fn interval(delta: &Delta) -> String {
    match (delta.low.zip(delta.high), delta.p) {
        (Some((low, high)), _) => format!("{} to {}", signed(low), signed(high)),
        (None, None) => "too small to test".to_owned(),
        (None, Some(_)) => "too few runs".to_owned(),
    }
}

/// The sentences above the functions of a comparison.
pub fn conclusions(found: &ProfileComparison) -> Vec<String> {
    let ProfileComparison { headline, confounders, baseline, candidate, .. } = found;
    let mut lines = headline.clone();
    if !confounders.is_empty() {
        lines.push("More than the target differs, so nothing is concluded:".to_owned());
        lines.extend_from_slice(confounders);
    }
    lines.extend([baseline, candidate].into_iter().filter(|side| !side.overhead.is_empty()).map(|side| {
        let costs: Vec<String> = side.overhead.iter().map(overhead).collect();
        format!("{} with the profiler: {}", side.label, costs.join("; "))
    }));
    lines
}

/// What the profiler costs: `CPU time per request +3.1 % (−0.5 % to +6.2 %)`.
pub fn overhead(overhead: &Overhead) -> String {
    let Overhead { metric, change, low, high } = overhead;
    let title = METRICS.iter().find(|def| def.key == metric).map_or(metric.as_str(), |def| def.title);
    let word = |value: f64| format::change(Some(value)).text().to_owned();
    match low.zip(*high) {
        Some((low, high)) => format!("{title} {} ({} to {})", word(*change), word(low), word(high)),
        None => format!("{title} {} (too few repetitions for an interval)", word(*change)),
    }
}

/// How complete the profile of one run is.
pub fn quality(profile: &ProfileInfo) -> String {
    let ProfileInfo { source, profiler, duration_s, samples, lost, rate_hz, .. } = profile;
    let mut parts = vec![profiler.clone().unwrap_or_else(|| source.to_string())];
    parts.push(if *samples == 1 {
        "1 sample".to_owned()
    } else {
        format!("{} samples", format::count(Some(*samples)).text())
    });
    parts.extend(lost.filter(|lost| *lost > 0).map(|lost| format!("{} lost", format::count(Some(lost)).text())));
    parts.extend(rate_hz.map(|rate| format!("{} per second of CPU time", number(rate))));
    parts.extend(duration_s.map(|seconds| format::duration(Some(seconds)).text().to_owned()));
    let shares = [
        ("in functions without a name", profile.unknown_share),
        ("in stacks of at most two frames", profile.shallow_share),
        ("in frames that were folded", profile.trimmed_share),
    ];
    let shown = shares.into_iter().filter(|(_, share)| *share >= 0.01);
    parts.extend(shown.map(|(what, share)| format!("{} {what}", format::percent(Some(share)).text())));
    parts.join(" · ")
}

/// Splits a sentence at the backticks around its names: text, name, text, …
pub fn parts(sentence: &str) -> impl Iterator<Item = (bool, &str)> {
    sentence.split('`').enumerate().map(|(place, part)| (place % 2 == 1, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_relative_to_the_measured_repetitions() {
        let cost = Overhead { metric: "rps".to_owned(), change: -0.012, low: Some(-0.02), high: Some(0.001) };
        assert_eq!(overhead(&cost).replace('\u{a0}', " "), "Throughput −1.2 % (−2.0 % to +0.1 %)");
    }

    #[test]
    fn names_in_sentences_are_marked() {
        let found: Vec<_> = parts("It is in `a` → `b`.").collect();
        assert_eq!(found, [(false, "It is in "), (true, "a"), (false, " → "), (true, "b"), (false, ".")]);
    }
}
