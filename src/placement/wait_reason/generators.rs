//! Why the load generators of a run can't start. Pure.

use super::{WaitCode, WaitReason, takes_none};
use crate::{
    fleet::{
        model::{Agent, Availability},
        presence::Connected,
    },
    placement::{feasibility::Needs, offer::lacks_script},
};

/// Returns why the generators of a run can't start now, if they can't; the most serious reason wins.
pub fn generators_wait(needs: &Needs<'_>, connected: &[(String, Connected)], known: &[Agent]) -> Option<WaitReason> {
    let reasons = needs.spec.generators.iter().filter_map(|name| {
        let agent = connected.iter().find(|(connected, _)| connected == name).map(|(_, agent)| agent);
        let Some(agent) = agent else {
            let is_disabled = known.iter().any(|agent| agent.name == *name && agent.state() == "disabled");
            let (reason, how) =
                if is_disabled { (WaitCode::Disabled, "disabled") } else { (WaitCode::Away, "not connected") };
            return Some(WaitReason::without_agents(reason, format!("its load generator {name} is {how}")));
        };
        let (reason, how) = generator_obstacle(needs, agent)?;
        Some(WaitReason::without_agents(reason, format!("its load generator {name} {how}")))
    });
    // A busy agent needs no action, so any other reason comes first.
    reasons.min_by_key(|wait| matches!(wait.reason, WaitCode::Busy))
}

/// Returns why a connected agent can't generate load for a run now; the end of a sentence about it.
fn generator_obstacle(needs: &Needs<'_>, agent: &Connected) -> Option<(WaitCode, String)> {
    if lacks_script(needs.spec, &agent.hello) {
        let why = "runs bundled scenarios only: start it with --any-scenario";
        return Some((WaitCode::ScriptNotTaken, why.to_owned()));
    }
    if needs.run.is_some_and(|run| agent.declined.contains(&run)) {
        let why = "declined this run; it is offered again when the agent reconnects";
        return Some((WaitCode::Declined, why.to_owned()));
    }
    if agent.availability != Availability::Enabled {
        return Some((WaitCode::Drained, "is drained".to_owned()));
    }
    if let Some(fault) = &agent.fault {
        return Some((WaitCode::Faulty, takes_none(fault)));
    }
    (!agent.is_free()).then(|| (WaitCode::Busy, "is busy".to_owned()))
}
