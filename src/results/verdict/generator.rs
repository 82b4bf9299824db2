//! Whether k6 had room: a generator that is at its limit measures itself. Pure.

use brewbench_agent::reports::summary::Figures;

use super::usage::{Span, spans, thirds};
use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::{Making, Recorded},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A target that its quota holds back for a part of the time like this is at its limit, whatever it used on average.
const HELD_BACK: f64 = 0.05;

pub(super) fn judge(making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let Recorded::Series(series) = making.recorded else { return };
    // Those of other machines are judged one by one.
    if !making.generators.is_empty() {
        return;
    }
    let spans = spans(series, making.side());
    let parts = thirds(&spans).into_iter().filter_map(Span::sum);
    if let Some(busiest) = parts.max_by(|a, b| a.generator().total_cmp(&b.generator())) {
        let cores = making.cores.generator.len() as f64;
        reasons.extend(busy(making, busiest.generator(), cores, &busiest, limits));
    }
    if let Some(all) = Span::sum(&spans) {
        reasons.extend(throttled(all.generator_throttled(making.cores.generator.len() as f64), limits));
    }
}

/// Busy in one third is enough: a load in stages has its highest one only there. `meanwhile` is what the target did then.
pub(super) fn busy(making: &Making<'_>, used: f64, cores: f64, meanwhile: &Span, limits: &Limits) -> Option<Reason> {
    let (share, limit) = (used / cores, limits.of(Limit::GeneratorBusy));
    if cores <= 0.0 || share < limit || at_its_limit(making, meanwhile, limits) {
        return None;
    }
    let target = match making.vcpus {
        Some(vcpus) => format!("{:.2} of its {vcpus}", meanwhile.target()),
        None => format!("{:.2}", meanwhile.target()),
    };
    let text = format!(
        "k6 was the bottleneck: in its busiest third it used {used:.2} of its {cores} core{}, the target {target}; a faster \
         target would look the same",
        if cores > 1.0 { "s" } else { "" },
    );
    Some(Reason::new("generator_busy", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Whether the target itself can do no more: then the figures are its own, however busy k6 is.
fn at_its_limit(making: &Making<'_>, span: &Span, limits: &Limits) -> bool {
    let used = making.vcpus.filter(|vcpus| *vcpus > 0.0).map(|vcpus| span.target() / vcpus);
    used.is_some_and(|share| share >= limits.of(Limit::TargetBusy))
        || span.target_throttled(making.target_cores()) >= HELD_BACK
}

pub(super) fn throttled(share: f64, limits: &Limits) -> Option<Reason> {
    let limit = limits.of(Limit::GeneratorThrottled);
    if share <= limit {
        return None;
    }
    let text = format!("a CPU quota held k6 back for {} of the measured time", Unit::Share.text(share));
    Some(Reason::new("generator_throttled", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Latencies begin when a connection is there; what is waited for it is k6's, or the target's in a way that they hide.
pub(super) fn judge_connections(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let (Some(blocked), Some(duration)) = (figures.blocked_ms, figures.latency.avg_ms) else { return };
    let (share, limit) = (blocked / (blocked + duration), limits.of(Limit::GeneratorBlocked));
    if share > limit {
        let text = format!(
            "requests waited {blocked:.2} ms for a connection and {duration:.2} ms for their answer: {} of their time is \
             in no latency",
            Unit::Share.text(share)
        );
        reasons.push(Reason::new("generator_blocked", Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
}
