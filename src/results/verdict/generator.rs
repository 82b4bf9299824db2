//! Detects a saturated load generator, which would measure itself. Pure.

use brewbench_wire::{outcome::CoreUse, reports::summary::Figures};

use super::usage::{Span, spans, thirds};
use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::{Context, SeriesState},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// The code of a reason that does not apply if other programs are why k6 waited.
pub(super) const DELAYED: &str = "generator_delayed";

/// A target that is throttled for this share of the time is saturated, whatever CPU it used on average.
const SATURATED_THROTTLING: f64 = 0.05;

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let SeriesState::Series(series) = context.series else { return };
    // Generators on other machines are judged one by one.
    if !context.generators.is_empty() {
        return;
    }
    let spans = spans(series, context.side(), context.own_share());
    let parts = thirds(&spans).into_iter().filter_map(Span::sum);
    let busiest = parts.max_by(|a, b| a.generator().total_cmp(&b.generator()));
    let bound = busiest.and_then(|part| busy(context, part.generator(), context.generator_cores(), &part, limits));
    let is_bound = bound.is_some();
    reasons.extend(bound);
    if let Some(all) = Span::sum(&spans) {
        reasons.extend(delayed(context, &all, limits).filter(|_| !is_bound));
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
        _ if context.is_url() => "an unknown share".to_owned(),
        Some(vcpus) => format!("{:.2} of its {vcpus}", target.target()),
        None => format!("{:.2}", target.target()),
    };
    let text = format!(
        "the load generator was the bottleneck: in its busiest third it used {used:.2} of its {cores} core{}, the \
         target {target}; a faster target would look the same",
        if cores > 1.0 { "s" } else { "" },
    );
    Some(Reason::new("generator_busy", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Judges how full k6's cores are: running and waiting threads. Requests queue within k6 long before it uses its cores
/// up, so latencies need a lower limit than throughput.
fn delayed(context: &Context<'_>, all: &Span, limits: &Limits) -> Option<Reason> {
    let CoreUse { elapsed_us, generator_us, generator_waited_us, .. } = context.conditions.core_use?;
    let (cores, limit) = (context.generator_cores(), limits.get(Limit::GeneratorDelayed));
    let in_cores = |us: u64| us as f64 / (elapsed_us.max(1) as f64 * context.own_share());
    let (running, waiting) = (in_cores(generator_us), in_cores(generator_waited_us?));
    let share = (running + waiting) / cores;
    if cores <= 0.0 || share <= limit || is_target_saturated(context, all, limits) {
        return None;
    }
    let text = format!(
        "the latencies are partly the load generator's: on its {cores} core{} its threads ran for {running:.2} and \
         waited for {waiting:.2} of the time; give it more cores, or lower the load",
        if cores > 1.0 { "s" } else { "" },
    );
    Some(Reason::new(DELAYED, Verdict::Suspect, text).with(share, limit, Unit::Share))
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
    let text = format!("a CPU quota throttled the load generator for {} of the measured time", Unit::Share.text(share));
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
