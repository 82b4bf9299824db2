//! Whether somebody can do what a plan asks for, known before anything is queued. Pure.

use crate::{catalog::MachineSize, fleet::Connected};

/// What a plan needs of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// Names of targets.
    pub targets: &'a [String],
    /// Sizes.
    pub sizes: &'a [MachineSize],
    /// The scenario's name.
    pub scenario: &'a str,
    /// Whether the scenario came with the program.
    pub scenario_source: Source,
    /// Only this agent.
    pub agent: Option<&'a str>,
}

/// Where a scenario comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// With the program: every agent has it.
    Bundled,
    /// From a user: an agent must be willing.
    User,
}

/// A sentence about the first thing that nobody connected can do; none if everything can be done.
pub fn obstacle(needs: Needs<'_>, connected: &[(String, Connected)]) -> Option<String> {
    let agents: Vec<_> = connected.iter().filter(|(name, _)| needs.agent.is_none_or(|wanted| wanted == name)).collect();
    if agents.is_empty() {
        return Some(match needs.agent {
            Some(name) => format!("agent: {name:?} is not connected"),
            None => {
                "no agent is connected; start one with `brewbench agent`, or the server with --local-agent".to_owned()
            }
        });
    }
    let willing = |agent: &Connected| needs.scenario_source == Source::Bundled || agent.hello.any_scenario;
    if !agents.iter().any(|(_, agent)| willing(agent)) {
        let name = needs.scenario;
        return Some(format!(
            "scenario: {name:?} did not come with brewbench, and no connected agent runs such scripts; \
             start one with --any-scenario"
        ));
    }
    for target in needs.targets {
        if !agents.iter().any(|(_, agent)| agent.offers(target)) {
            return Some(format!("target: {target:?} is offered by no connected agent; {}", offered(&agents)));
        }
        for size in needs.sizes {
            let able = |agent: &Connected| {
                willing(agent) && agent.offers(target) && agent.lacks(size.vcpus, size.memory_bytes).is_none()
            };
            if !agents.iter().any(|(_, agent)| able(agent)) {
                return Some(format!(
                    "size: no connected agent with {target:?} can give {}; {}",
                    size.name,
                    lacking(&agents, size)
                ));
            }
        }
    }
    None
}

fn offered(agents: &[&(String, Connected)]) -> String {
    let mut names: Vec<_> =
        agents.iter().flat_map(|(_, agent)| agent.hello.targets.iter().map(|offer| offer.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none is".to_owned() } else { format!("there are {}", names.join(", ")) }
}

fn lacking(agents: &[&(String, Connected)], size: &MachineSize) -> String {
    let reasons: Vec<_> = agents
        .iter()
        .map(|(name, agent)| match agent.lacks(size.vcpus, size.memory_bytes) {
            Some(lack) => format!("{name} {lack}"),
            None => format!("{name} does not offer it"),
        })
        .collect();
    reasons.join(", ")
}
