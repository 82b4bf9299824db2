//! Whether somebody can do what a plan asks for, known before anything is queued. Pure.

use crate::{catalog::model::MachineSize, fleet::presence::Connected};

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
    /// Only agents with this label; those that make the load need not have it.
    pub label: Option<&'a str>,
    /// The agents that make the load; none where the target's own does.
    pub generators: &'a [String],
}

/// Where a scenario comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// With the program: every agent has it.
    Bundled,
    /// From a user: an agent must be willing.
    User,
}

/// What one run demands of the agent that runs its target.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The target's name.
    pub target: &'a str,
    /// Cores.
    pub vcpus: f64,
    /// Memory.
    pub memory_bytes: u64,
    /// Where the scenario comes from.
    pub source: Source,
    /// Whether other agents make the load.
    pub has_generators: bool,
}

/// Why an agent can't meet a demand as long as it is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It does not offer the target.
    NotOffered,
    /// It can't give the machine size: what it has.
    TooSmall(String),
    /// The load comes from others, and it takes none: why.
    NoLoad(&'static str),
    /// It runs only scripts that came with it.
    Script,
}

/// The rule: what keeps an agent from running the target of a run. The form, the queue and the hand-out all use it.
pub fn unfit(demand: Demand<'_>, agent: &Connected) -> Option<Unfit> {
    if !agent.offers(demand.target) {
        return Some(Unfit::NotOffered);
    }
    if let Some(has) = agent.lacks(demand.vcpus, demand.memory_bytes) {
        return Some(Unfit::TooSmall(has));
    }
    if demand.has_generators {
        // It needs no script: those who make the load do.
        return takes_no_load(demand.target, agent).map(Unfit::NoLoad);
    }
    lacks_script(demand.source, agent).then_some(Unfit::Script)
}

/// A sentence about the first thing that nobody connected can do; none if everything can be done.
pub fn obstacle(needs: Needs<'_>, connected: &[(String, Connected)]) -> Option<String> {
    let is_meant = |(name, agent): &&(String, Connected)| {
        needs.agent.is_none_or(|wanted| wanted == name) && needs.label.is_none_or(|label| agent.has_label(label))
    };
    let agents: Vec<_> = connected.iter().filter(is_meant).collect();
    if agents.is_empty() {
        return Some(nobody_connected(needs));
    }
    let Needs { scenario, scenario_source, generators, .. } = needs;
    let missing = |name: &String| missing_generator(name, scenario, scenario_source, connected);
    if let Some(sentence) = generators.iter().find_map(missing) {
        return Some(format!("generators: {sentence}"));
    }
    let is_generator = |name: &String| needs.generators.contains(name);
    let agents: Vec<_> = agents.into_iter().filter(|(name, _)| !is_generator(name)).collect();
    if agents.is_empty() {
        return Some("generators: nobody is left to run the target; connect another agent".to_owned());
    }
    let labelled = needs.label.map_or(String::new(), |label| format!(" labelled {label:?}"));
    let has_generators = !needs.generators.is_empty();
    // Where others make the load, they run the script.
    let willing = |agent: &Connected| has_generators || !lacks_script(needs.scenario_source, agent);
    if !agents.iter().any(|(_, agent)| willing(agent)) {
        let name = needs.scenario;
        return Some(format!(
            "scenario: {name:?} did not come with brewbench, and no connected agent{labelled} runs such scripts; \
             start one with --any-scenario"
        ));
    }
    for target in needs.targets {
        if !agents.iter().any(|(_, agent)| agent.offers(target)) {
            return Some(format!(
                "target: {target:?} is offered by no connected agent{labelled}; {}",
                offered(&agents)
            ));
        }
        if has_generators && let Some(why) = nobody_takes_load(target, &agents) {
            return Some(why);
        }
        for size in needs.sizes {
            let MachineSize { vcpus, memory_bytes, .. } = *size;
            let source = needs.scenario_source;
            let demand = Demand { target, vcpus, memory_bytes, source, has_generators };
            if !agents.iter().any(|(_, agent)| unfit(demand, agent).is_none()) {
                return Some(format!(
                    "size: no connected agent{labelled} with {target:?} can give {}; {}",
                    size.name,
                    lacking(&agents, size)
                ));
            }
        }
    }
    None
}

/// None of the agents that are meant is connected.
fn nobody_connected(needs: Needs<'_>) -> String {
    match (needs.agent, needs.label) {
        (Some(name), _) => format!("agent: {name:?} is not connected"),
        (None, Some(label)) => format!("agent_label: no agent labelled {label:?} is connected"),
        (None, None) => {
            "no agent is connected; start one with `brewbench agent`, or the server with --local-agent".to_owned()
        }
    }
}

/// What keeps an agent from making load for a scenario: a sentence; nothing if nothing does.
pub fn missing_generator(
    name: &str,
    scenario: &str,
    source: Source,
    connected: &[(String, Connected)],
) -> Option<String> {
    let Some((_, agent)) = connected.iter().find(|(connected, _)| connected == name) else {
        return Some(format!("{name:?} is not connected"));
    };
    lacks_script(source, agent)
        .then(|| format!("{name} runs no such scripts as {scenario:?}; start it with --any-scenario"))
}

/// Whether an agent makes no load of a scenario for others: it runs only scripts that came with it.
pub fn lacks_script(source: Source, agent: &Connected) -> bool {
    source == Source::User && !agent.hello.any_scenario
}

/// Why nobody who offers a target lets load come from others; nothing if somebody does.
fn nobody_takes_load(target: &str, agents: &[&(String, Connected)]) -> Option<String> {
    let mut told = None;
    for (name, agent) in agents.iter().filter(|(_, agent)| agent.offers(target)) {
        let why = takes_no_load(target, agent)?;
        told.get_or_insert_with(|| format!("target: {target:?} can't be loaded by other agents: {name} {why}"));
    }
    told
}

/// Why load can't come from others to a target of this agent; nothing if it can.
fn takes_no_load(target: &str, agent: &Connected) -> Option<&'static str> {
    if agent.hello.load_address.is_none() {
        return Some("lets no load come from other agents: start it with --load-address");
    }
    let listens = agent.hello.targets.iter().any(|offer| offer.name == target && offer.anywhere);
    (!listens).then_some("has a manifest of it without {host}, so it can't listen for other machines")
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
