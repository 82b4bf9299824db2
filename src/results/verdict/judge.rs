//! Judges a run by all rules. Pure.

use brewbench_agent::{reports::summary::Figures, wire::outcome::Cause};

use crate::results::verdict::{
    connections, generator, generators, host, idle_users,
    limits::Limits,
    little, load,
    model::{Context, Judgement},
    network, series, setup, steadiness, target, unsolicited,
};

/// Judges a run by its metrics; `context` is absent for an import, of which nothing else is known.
pub fn judge(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits) -> Judgement {
    let mut reasons = Vec::new();
    if let Some(context) = context {
        target::judge(context, &mut reasons);
        reasons.extend(unsolicited::judge(context));
    }
    load::judge(figures, context.and_then(|context| context.load), limits, &mut reasons);
    if let Some(context) = context {
        generator::judge(context, limits, &mut reasons);
        generators::judge(context, limits, &mut reasons);
    }
    generator::judge_connections(figures, limits, &mut reasons);
    reasons.extend(connections::judge(figures));
    if context.is_none() {
        idle_users::judge(figures, limits, &mut reasons);
    }
    if let Some(context) = context {
        little::judge(figures, context, limits, &mut reasons);
        host::judge(figures, context, limits, &mut reasons);
        reasons.extend(network::judge(context.conditions, limits));
        steadiness::judge(context, limits, &mut reasons);
        setup::judge(context, limits, &mut reasons);
        series::judge(figures, context, limits, &mut reasons);
    }
    reasons.into()
}

/// Judges a run without metrics; only failures of its target yield a verdict. `why` is the agent's message.
pub fn judge_failure(cause: Cause, why: &str) -> Option<Judgement> {
    target::failure(cause, why).map(|reason| vec![reason].into())
}
