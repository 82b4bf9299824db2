//! Whether k6 had room: a generator that is at its limit measures itself.

use brewbench_agent::wire::summary::Figures;

use super::{
    Limit, Limits, Making, Reason, Recorded, Unit, Verdict,
    usage::{Span, spans, thirds},
};

/// A target that its quota holds back for a part of the time like this is at its limit, whatever it used on average.
const HELD_BACK: f64 = 0.05;

pub(super) fn judge(making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let Recorded::Series(series) = making.recorded else { return };
    let spans = spans(series);
    reasons.extend(busy(making, &spans, limits));
    reasons.extend(throttled(&spans, limits));
}

/// Busy in one third is enough: a load in stages has its highest one only there.
fn busy(making: &Making<'_>, spans: &[Span], limits: &Limits) -> Option<Reason> {
    let cores = making.cores.generator.len();
    let parts = thirds(spans).into_iter().filter_map(Span::sum);
    let busiest = parts.max_by(|a, b| a.generator().total_cmp(&b.generator()))?;
    let (share, limit) = (busiest.generator() / cores as f64, limits.of(Limit::GeneratorBusy));
    if cores == 0 || share < limit || at_its_limit(making, &busiest, limits) {
        return None;
    }
    let target = match making.vcpus {
        Some(vcpus) => format!("{:.2} of its {vcpus}", busiest.target()),
        None => format!("{:.2}", busiest.target()),
    };
    let text = format!(
        "k6 was the bottleneck: in its busiest third it used {:.2} of its {cores} core{}, the target {target}; a faster \
         target would look the same",
        busiest.generator(),
        if cores == 1 { "" } else { "s" },
    );
    Some(Reason::new("generator_busy", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Whether the target itself can do no more: then the figures are its own, however busy k6 is.
fn at_its_limit(making: &Making<'_>, span: &Span, limits: &Limits) -> bool {
    let used = making.vcpus.filter(|vcpus| *vcpus > 0.0).map(|vcpus| span.target() / vcpus);
    used.is_some_and(|share| share >= limits.of(Limit::TargetBusy)) || span.target_throttled() >= HELD_BACK
}

fn throttled(spans: &[Span], limits: &Limits) -> Option<Reason> {
    let (share, limit) = (Span::sum(spans)?.generator_throttled(), limits.of(Limit::GeneratorThrottled));
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
