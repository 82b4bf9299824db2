//! Detects a saturated load generator, which would measure itself. Pure.

use brewbench_agent::reports::summary::Figures;

use super::usage::{Span, spans, thirds};
use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::{Context, SeriesState},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A target that is throttled for this share of the time is saturated, whatever CPU it used on average.
const SATURATED_THROTTLING: f64 = 0.05;

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let SeriesState::Series(series) = context.series else { return };
    // Generators on other machines are judged one by one.
    if !context.generators.is_empty() {
        return;
    }
    let spans = spans(series, context.side());
    let parts = thirds(&spans).into_iter().filter_map(Span::sum);
    if let Some(busiest) = parts.max_by(|a, b| a.generator().total_cmp(&b.generator())) {
        reasons.extend(busy(context, busiest.generator(), context.generator_cores(), &busiest, limits));
    }
    if let Some(all) = Span::sum(&spans) {
        reasons.extend(throttled(all.generator_throttled(context.generator_cores()), limits));
    }
}

/// Judges the busiest third, because a load in stages peaks in one third only; `target` is the target's use then.
pub(super) fn busy(context: &Context<'_>, used: f64, cores: f64, target: &Span, limits: &Limits) -> Option<Reason> {
    let (share, limit) = (used / cores, limits.get(Limit::GeneratorBusy));
    if cores <= 0.0 || share < limit || is_target_saturated(context, target, limits) {
        return None;
    }
    let target = match context.vcpus {
        Some(vcpus) => format!("{:.2} of its {vcpus}", target.target()),
        None => format!("{:.2}", target.target()),
    };
    let text = format!(
        "k6 was the bottleneck: in its busiest third it used {used:.2} of its {cores} core{}, the target {target}; a faster \
         target would look the same",
        if cores > 1.0 { "s" } else { "" },
    );
    Some(Reason::new("generator_busy", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Whether the target is saturated: then the results are its own, however busy k6 is.
fn is_target_saturated(context: &Context<'_>, span: &Span, limits: &Limits) -> bool {
    let used = context.vcpus.filter(|vcpus| *vcpus > 0.0).map(|vcpus| span.target() / vcpus);
    used.is_some_and(|share| share >= limits.get(Limit::TargetBusy))
        || span.target_throttled(context.target_cores()) >= SATURATED_THROTTLING
}

pub(super) fn throttled(share: f64, limits: &Limits) -> Option<Reason> {
    let limit = limits.get(Limit::GeneratorThrottled);
    if share <= limit {
        return None;
    }
    let text = format!("a CPU quota throttled k6 for {} of the measured time", Unit::Share.text(share));
    Some(Reason::new("generator_throttled", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Judges the wait for connections, which latencies exclude: it is k6's, or hidden latency of the target.
pub(super) fn judge_connections(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let (Some(blocked), Some(duration)) = (figures.blocked_ms, figures.latency.avg_ms) else { return };
    let (share, limit) = (blocked / (blocked + duration), limits.get(Limit::GeneratorBlocked));
    if share > limit {
        let text = format!(
            "requests waited {blocked:.2} ms for a connection and {duration:.2} ms for the response: latencies exclude \
             {} of their time",
            Unit::Share.text(share)
        );
        reasons.push(Reason::new("generator_blocked", Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
}
