//! Judges a run by all rules. Pure.

use brewbench_agent::{reports::summary::Figures, wire::outcome::Cause};

use crate::results::verdict::{
    cut_short, exceptions, generator, generators, host, idle_users, interrupted,
    limits::Limits,
    little, load,
    model::{Context, Judgement},
    negative, network, series, setup, steadiness, target,
};

/// Judges a run by its metrics; `context` is absent for an import, of which nothing else is known.
pub fn judge(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits) -> Judgement {
    let mut reasons = Vec::new();
    if let Some(context) = context {
        target::judge(context, &mut reasons);
    }
    if let Some(context) = context {
        reasons.extend(cut_short::judge(context));
        reasons.extend(exceptions::judge(figures, context, limits));
    }
    load::judge(figures, context, limits, &mut reasons);
    reasons.extend(negative::judge(figures));
    if let Some(context) = context {
        reasons.extend(interrupted::judge(figures, context, limits));
        generator::judge(context, limits, &mut reasons);
        generators::judge(context, limits, &mut reasons);
    }
    generator::judge_connections(figures, limits, &mut reasons);
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
