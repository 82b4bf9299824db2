//! Whether the measured phase was one thing from its begin to its end: its thirds are compared.
//!
//! Of a constant number of virtual users the rate alone is looked at. It fixes the mean latency (Little's law: users =
//! rate × latency), and the median of a target that its quota holds back jumps between those requests that met the pause
//! and those that did not, though nothing drifts. Where requests come at a constant rate, only latency can drift.

use brewbench_agent::{
    series::histogram::Histogram,
    wire::{
        load::{Form, Load},
        series::Second,
    },
};

use super::{Limit, Limits, Making, Reason, Recorded, Unit, Verdict, usage::thirds};

/// Fewer requests than this in a third, and chance moves rates and medians by a tenth.
const ENOUGH: u64 = 100;

/// A third of the measured phase.
struct Third {
    requests: u64,
    seconds: f64,
    latencies: Histogram,
}

pub(super) fn judge(making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let Recorded::Series(series) = making.recorded else { return };
    let Some(load) = making.load.filter(|load| is_constant(load)) else { return };
    let thirds = whole_thirds(series.measured.as_ref().map_or(&[], |stretch| &stretch.seconds));
    if thirds.len() < 3 || thirds.iter().all(|third| third.requests < ENOUGH) {
        return;
    }
    if matches!(load, Load::Closed(_)) {
        let rates: Vec<f64> = thirds.iter().map(|third| third.requests as f64 / third.seconds).collect();
        let words = |value: &f64| format!("{value:.0}");
        reasons.extend(drift("not_steady", "requests/s", &rates, words, limits.of(Limit::NotSteadyRate)));
        return;
    }
    let medians = thirds.iter().filter(|third| third.latencies.total() >= ENOUGH);
    let medians: Vec<f64> = medians.filter_map(|third| Some(third.latencies.quantile(0.5)?.estimate)).collect();
    let words = |value: &f64| format!("{value:.2}");
    reasons.extend(drift("not_steady_p50", "the p50 in ms", &medians, words, limits.of(Limit::NotSteadyP50)));
}

/// A script's own load may be anything; one in stages shall not be steady.
fn is_constant(load: &Load) -> bool {
    load.shape().is_some_and(|shape| matches!(shape.form(), Form::Constant { .. }))
}

/// The thirds without the first second, in which k6 starts, and the last one, in which it ends.
fn whole_thirds(seconds: &[Second]) -> Vec<Third> {
    let timed: Vec<(f64, &Second)> = seconds
        .windows(2)
        .map(|pair| ((f64::from(pair[1].until_ms) - f64::from(pair[0].until_ms)) / 1_000.0, &pair[1]))
        .collect();
    let inner = timed.split_last().map_or(&[][..], |(_, inner)| inner);
    thirds(inner).into_iter().map(Third::of).filter(|third| third.seconds > 0.0).collect()
}

impl Third {
    fn of(part: &[(f64, &Second)]) -> Self {
        let mut latencies = Histogram::default();
        for (_, second) in part {
            latencies.add(&second.succeeded);
        }
        Self {
            requests: part.iter().fold(0, |sum, (_, second)| sum.saturating_add(second.requests())),
            seconds: part.iter().map(|(seconds, _)| seconds).sum(),
            latencies,
        }
    }
}

fn drift(code: &str, what: &str, values: &[f64], words: impl Fn(&f64) -> String, limit: f64) -> Option<Reason> {
    if values.len() < 3 {
        return None;
    }
    let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(least, most), &v| (least.min(v), most.max(v)));
    let share = if most > 0.0 { 1.0 - least / most } else { 0.0 };
    if share <= limit {
        return None;
    }
    let told: Vec<String> = values.iter().map(words).collect();
    let text = format!("not steady: {what} in the thirds of the measured phase {}", told.join(", then "));
    Some(Reason::new(code, Verdict::Suspect, text).with(share, limit, Unit::Share))
}
