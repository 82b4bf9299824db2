//! Judges a run by all rules. Pure.

use std::collections::BTreeSet;

use brewbench_wire::{outcome::Cause, reports::summary::Figures};

use crate::results::verdict::{
    code, connections, cut_short, delayed_ack, exceptions, generator, generators, host, idle_users, interrupted,
    limits::Limits,
    little, load,
    model::{Context, Judgement},
    negative, network, protocol, reach, reader, retransmits, series, setup, stalled, steadiness, target, turns,
    unsolicited,
};
use crate::runs::verdict::{Reason, Verdict};

/// Reasons to be invalid that another attempt may not have: the machines may be the cause.
const OF_MACHINES: [&str; 3] = [stalled::CODE, "generator_failed", "generator_lost"];

/// Judges a run by its metrics; `context` is absent for an import, of which nothing else is known.
pub fn judge(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits) -> Judgement {
    let mut reasons = Vec::new();
    if let Some(context) = context {
        target::judge(context, &mut reasons);
        reach::judge(figures, context, limits, &mut reasons);
        reasons.extend(unsolicited::judge(context));
        reasons.extend(cut_short::judge(context));
        reasons.extend(exceptions::judge(figures, context, limits));
    }
    load::judge(figures, context, limits, &mut reasons);
    reasons.extend(protocol::judge(figures));
    reasons.extend(negative::judge(figures));
    if let Some(context) = context {
        reasons.extend(interrupted::judge(figures, context, limits));
        generator::judge(context, limits, &mut reasons);
        generators::judge(context, limits, &mut reasons);
    }
    generator::judge_connections(figures, limits, &mut reasons);
    reasons.extend(connections::judge(figures));
    if context.is_none() {
        idle_users::judge(figures, limits, &mut reasons);
        reasons.extend(reader::judge(figures));
    }
    if let Some(context) = context {
        little::judge(figures, context, limits, &mut reasons);
        reasons.extend(turns::judge(figures, context));
        host::judge(figures, context, limits, &mut reasons);
        reasons.extend(network::judge(context.conditions, limits));
        reasons.extend(retransmits::judge(context.conditions, figures.latency.max_ms, limits));
        reasons.extend(delayed_ack::judge(figures, context.conditions));
        steadiness::judge(context, limits, &mut reasons);
        setup::judge(context, limits, &mut reasons);
        code::judge(context, &mut reasons);
        series::judge(figures, context, limits, &mut reasons);
        if protocol::has_series(figures) {
            stalled::judge(figures, context, limits, &mut reasons);
        }
    }
    reasons.into()
}

/// Whether a retry would end in the same way, because the script is the cause.
pub fn would_repeat(judgement: &Judgement) -> bool {
    let of_script = [cut_short::CODE, exceptions::CODE, reach::OTHER_ORIGIN];
    invalid_codes(&judgement.reasons).iter().any(|code| of_script.contains(code))
}

/// Whether two invalid runs of a cell have the same reasons, so that the target or the script is the cause.
pub fn is_alike(one: &[Reason], other: &[Reason]) -> bool {
    let codes = invalid_codes(one);
    !OF_MACHINES.iter().any(|code| codes.contains(code)) && codes == invalid_codes(other)
}

fn invalid_codes(reasons: &[Reason]) -> BTreeSet<&str> {
    let invalid = reasons.iter().filter(|reason| reason.verdict == Verdict::Invalid);
    invalid.map(|reason| reason.code.as_str()).collect()
}

/// Judges a run without metrics; only failures of its target yield a verdict. `why` is the agent's message.
pub fn judge_failure(cause: Cause, why: &str) -> Option<Judgement> {
    target::failure(cause, why).map(|reason| vec![reason].into())
}
