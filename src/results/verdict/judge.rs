//! Judges a run by all rules. Pure.

use brewbench_agent::{reports::summary::Figures, wire::outcome::Cause};

use crate::results::verdict::{
    generator, generators, host,
    limits::Limits,
    little, load, making,
    model::{Judgement, Making},
    network, series, steadiness, target,
};

/// Judges a whole summary; `making` is absent for an import, of which nothing else is known.
pub fn judge(figures: &Figures, making: Option<&Making<'_>>, limits: &Limits) -> Judgement {
    let mut reasons = Vec::new();
    if let Some(making) = making {
        target::judge(making, &mut reasons);
    }
    load::judge(figures, making.and_then(|making| making.load), limits, &mut reasons);
    if let Some(making) = making {
        generator::judge(making, limits, &mut reasons);
        generators::judge(making, limits, &mut reasons);
    }
    generator::judge_connections(figures, limits, &mut reasons);
    if let Some(making) = making {
        little::judge(figures, making, limits, &mut reasons);
        host::judge(figures, making, limits, &mut reasons);
        reasons.extend(network::judge(making.conditions, limits));
        steadiness::judge(making, limits, &mut reasons);
        making::judge(making, limits, &mut reasons);
        series::judge(figures, making, limits, &mut reasons);
    }
    reasons.into()
}

/// Judges a run that has no figures; only what its target did is a verdict on it. `why` is the agent's sentence.
pub fn judge_failure(cause: Cause, why: &str) -> Option<Judgement> {
    target::failure(cause, why).map(|reason| vec![reason].into())
}
