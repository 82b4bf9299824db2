//! Checks whether connected agents can do a plan, before anything is queued. Pure.

use brewbench_agent::wire::profile::ProfileOffer;

use crate::{catalog::model::MachineSize, fleet::presence::Connected};

/// What a plan needs from the agents.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// Names of targets.
    pub targets: &'a [String],
    /// Sizes.
    pub sizes: &'a [MachineSize],
    /// The scenario's name.
    pub scenario: &'a str,
    /// Whether the scenario is bundled.
    pub scenario_source: Source,
    /// The only agent allowed.
    pub agent: Option<&'a str>,
    /// The label that the host must have; load generators need not have it.
    pub label: Option<&'a str>,
    /// The agents that generate the load; empty if the host does.
    pub generators: &'a [String],
    /// Number of load generators in the cluster of the host; 0 for none.
    pub cluster_generators: u32,
    /// Whether it has profiled runs.
    pub profiled: bool,
}

/// Where a scenario comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Bundled with the program: every agent has it.
    Bundled,
    /// From a user: the agent must allow it.
    User,
}

/// What one run needs from its host.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The target's name.
    pub target: &'a str,
    /// CPU cores.
    pub vcpus: f64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Instances of the target.
    pub replicas: u32,
    /// Where the scenario comes from.
    pub source: Source,
    /// Whether other agents generate the load.
    pub has_generators: bool,
    /// Number of load generators in its cluster.
    pub cluster_generators: u32,
    /// Whether the target is profiled.
    pub profiled: bool,
}

/// Why an agent can't host a run, regardless of what it is doing now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It does not offer the target.
    NotOffered,
    /// The machine size is too large for it; describes what it has.
    TooSmall(String),
    /// The machine size has replicas, and its target can't.
    NoReplicas,
    /// Other agents would generate the load, and it can't accept that; says why.
    NoLoad(&'static str),
    /// It can't generate the load in its cluster; says why.
    NoCluster(String),
    /// It runs bundled scenarios only.
    Script,
    /// It can't profile the target; says why.
    NoProfile(String),
}

/// Why an agent can't start replicas of a target; the end of a sentence about it.
pub const NO_REPLICAS: &str = "starts one instance of it only: replicas need a target of kind kubernetes";

/// Returns why an agent can't host a run. The form, the queue and the assignment share this rule.
pub fn unfit(demand: Demand<'_>, agent: &Connected) -> Option<Unfit> {
    if !agent.offers(demand.target) {
        return Some(Unfit::NotOffered);
    }
    // A server that already runs, or a Pod, uses nothing of the agent's machine.
    if !agent.reaches(demand.target)
        && let Some(has) = agent.lacks(demand.vcpus, demand.memory_bytes)
    {
        return Some(Unfit::TooSmall(has));
    }
    if demand.replicas > 1 && !agent.replicates(demand.target) {
        return Some(Unfit::NoReplicas);
    }
    if demand.has_generators {
        // The generators run the script, not the host.
        if let Some(why) = load_obstacle(demand.target, agent) {
            return Some(Unfit::NoLoad(why));
        }
    } else if lacks_script(demand.source, agent) {
        return Some(Unfit::Script);
    }
    if let Some(why) = cluster_obstacle(demand.target, demand.cluster_generators, agent) {
        return Some(Unfit::NoCluster(why));
    }
    if demand.profiled { profile_obstacle(demand.target, agent).map(Unfit::NoProfile) } else { None }
}

/// Whether an agent that may do a plan offers one of its targets as one that compiles while it runs.
pub fn compiles_at_run_time(needs: Needs<'_>, connected: &[(String, Connected)]) -> bool {
    let mut requested = connected.iter().filter(|agent| is_requested(needs, agent));
    requested.any(|(_, agent)| needs.targets.iter().any(|target| agent.compiles_at_run_time(target)))
}

fn is_requested(needs: Needs<'_>, (name, agent): &(String, Connected)) -> bool {
    needs.agent.is_none_or(|wanted| wanted == name) && needs.label.is_none_or(|label| agent.has_label(label))
}

/// Describes the first requirement that no connected agent meets, if any.
pub fn obstacle(needs: Needs<'_>, connected: &[(String, Connected)]) -> Option<String> {
    let agents: Vec<_> = connected.iter().filter(|agent| is_requested(needs, agent)).collect();
    if agents.is_empty() {
        return Some(none_connected(needs));
    }
    let Needs { scenario, scenario_source, generators, .. } = needs;
    let missing = |name: &String| missing_generator(name, scenario, scenario_source, connected);
    if let Some(sentence) = generators.iter().find_map(missing) {
        return Some(format!("generators: {sentence}"));
    }
    let is_generator = |name: &String| needs.generators.contains(name);
    let agents: Vec<_> = agents.into_iter().filter(|(name, _)| !is_generator(name)).collect();
    if agents.is_empty() {
        return Some("generators: no agent is left to run the target; connect another agent".to_owned());
    }
    let labelled = needs.label.map_or(String::new(), |label| format!(" labelled {label:?}"));
    let has_generators = !needs.generators.is_empty();
    // With generators, those run the script.
    let allows_script = |agent: &Connected| has_generators || !lacks_script(needs.scenario_source, agent);
    if !agents.iter().any(|(_, agent)| allows_script(agent)) {
        let name = needs.scenario;
        return Some(format!(
            "scenario: {name:?} is not bundled, and no connected agent{labelled} runs user scenarios; \
            start one with --any-scenario"
        ));
    }
    for target in needs.targets {
        if !agents.iter().any(|(_, agent)| agent.offers(target)) {
            return Some(format!("target: no connected agent{labelled} offers {target:?}; {}", offered(&agents)));
        }
        if has_generators && let Some(why) = none_accepts_load(target, &agents) {
            return Some(why);
        }
        if let Some(why) = none_has_cluster(target, needs.cluster_generators, &agents) {
            return Some(why);
        }
        if let Some(size) = needs.sizes.iter().find(|size| !is_provided(needs, target, size, &agents)) {
            return Some(format!(
                "size: no connected agent{labelled} that offers {target:?} can provide {}; {}",
                size.name,
                describe_lacks(&agents, target, size)
            ));
        }
        if needs.profiled
            && let Some(why) = none_profiles(target, &agents)
        {
            return Some(why);
        }
    }
    None
}

/// Whether one of these agents can start a target in a machine size.
fn is_provided(needs: Needs<'_>, target: &str, size: &MachineSize, agents: &[&(String, Connected)]) -> bool {
    let MachineSize { vcpus, memory_bytes, replicas, .. } = *size;
    let (source, has_generators) = (needs.scenario_source, !needs.generators.is_empty());
    let (cluster_generators, profiled) = (needs.cluster_generators, false);
    let demand = Demand { target, vcpus, memory_bytes, replicas, source, has_generators, cluster_generators, profiled };
    agents.iter().any(|(_, agent)| unfit(demand, agent).is_none())
}

/// Describes that none of the requested agents is connected.
fn none_connected(needs: Needs<'_>) -> String {
    match (needs.agent, needs.label) {
        (Some(name), _) => format!("agent: {name:?} is not connected"),
        (None, Some(label)) => format!("agent_label: no agent labelled {label:?} is connected"),
        (None, None) => {
            "no agent is connected; start one with `brewbench agent`, or start the server with --local-agent".to_owned()
        }
    }
}

/// Describes why an agent can't generate load for a scenario, if it can't.
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
        .then(|| format!("{name} runs bundled scenarios only, and {scenario:?} is not; start it with --any-scenario"))
}

/// Whether an agent refuses a scenario because it runs bundled ones only.
pub fn lacks_script(source: Source, agent: &Connected) -> bool {
    source == Source::User && !agent.hello.any_scenario
}

/// Describes why no agent that offers a target accepts load from other agents, if none does.
fn none_accepts_load(target: &str, agents: &[&(String, Connected)]) -> Option<String> {
    let mut first = None;
    for (name, agent) in agents.iter().filter(|(_, agent)| agent.offers(target)) {
        let why = load_obstacle(target, agent)?;
        first.get_or_insert_with(|| format!("target: other agents can't load {target:?}: {name} {why}"));
    }
    first
}

/// Returns why other agents can't load a target on this agent; the end of a sentence about it.
fn load_obstacle(target: &str, agent: &Connected) -> Option<&'static str> {
    if agent.reaches(target) {
        return Some("reaches a target outside its machine, which only the agent with its manifest may load");
    }
    if agent.hello.load_address.is_none() {
        return Some("accepts no load from other agents: start it with --load-address");
    }
    let listens = agent.hello.targets.iter().any(|offer| offer.name == target && offer.anywhere);
    (!listens).then_some("has a manifest without {host} for it, so the target can't listen for other machines")
}

/// Describes why no agent that offers a target can generate its load in a cluster, if none can.
fn none_has_cluster(target: &str, count: u32, agents: &[&(String, Connected)]) -> Option<String> {
    let mut first = None;
    for (name, agent) in agents.iter().filter(|(_, agent)| agent.offers(target)) {
        let why = cluster_obstacle(target, count, agent)?;
        first.get_or_insert_with(|| format!("cluster_generators: {name} {why}"));
    }
    first
}

/// Returns why this many generators in the cluster of an agent can't load a target; the end of a sentence about the agent.
fn cluster_obstacle(target: &str, count: u32, agent: &Connected) -> Option<String> {
    if count == 0 {
        return None;
    }
    match agent.hello.generators {
        None => {
            let why = "generates no load in a cluster: start it with --kubernetes and --generators";
            Some(why.to_owned())
        }
        Some(offer) if offer.most < count => Some(format!("allows {} generators at most", offer.most)),
        // Pods can't reach a target that listens on the loopback interface of the agent's machine.
        Some(_) if !agent.reaches(target) => {
            Some(format!("runs {target:?} on its own machine, where Pods can't reach it"))
        }
        Some(_) => None,
    }
}

/// Describes why no agent that offers a target can profile it, if none can.
fn none_profiles(target: &str, agents: &[&(String, Connected)]) -> Option<String> {
    let mut first = None;
    for (name, agent) in agents.iter().filter(|(_, agent)| agent.offers(target)) {
        let why = profile_obstacle(target, agent)?;
        first.get_or_insert_with(|| format!("profile: {name} can't profile {target:?}: {why}"));
    }
    first
}

/// Returns why an agent can't profile a target it offers.
pub fn profile_obstacle(target: &str, agent: &Connected) -> Option<String> {
    match agent.hello.targets.iter().find(|offer| offer.name == target)?.profile.as_ref() {
        Some(ProfileOffer::Ready { .. }) => None,
        Some(ProfileOffer::Impossible { reason }) => Some(reason.clone()),
        None => Some("it does not say that it can".to_owned()),
    }
}

fn offered(agents: &[&(String, Connected)]) -> String {
    let mut names: Vec<_> =
        agents.iter().flat_map(|(_, agent)| agent.hello.targets.iter().map(|offer| offer.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none is offered".to_owned() } else { format!("offered: {}", names.join(", ")) }
}

fn describe_lacks(agents: &[&(String, Connected)], target: &str, size: &MachineSize) -> String {
    let reasons: Vec<_> = agents
        .iter()
        .map(|(name, agent)| match agent.lacks(size.vcpus, size.memory_bytes) {
            _ if size.replicas > 1 && agent.offers(target) && !agent.replicates(target) => {
                format!("{name} {NO_REPLICAS}")
            }
            Some(lack) => format!("{name} {lack}"),
            None => format!("{name} does not offer the target"),
        })
        .collect();
    reasons.join(", ")
}
