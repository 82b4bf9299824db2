//! Checks whether connected agents can do a plan, before anything is queued. Pure.

use crate::{
    catalog::model::MachineSize,
    fleet::presence::Connected,
    placement::offer::{NO_REPLICAS, Offer, engine_obstacle, lacks_script, unfit},
    runs::model::{RunSize, RunSpec},
};

/// What a plan or one of its runs needs from agents.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// What is measured. Of a plan, without the targets and sizes, which it has several of.
    pub spec: &'a RunSpec,
    /// The only agent allowed.
    pub agent: Option<&'a str>,
    /// The label that the host must have; load generators need not have it.
    pub label: Option<&'a str>,
    /// The run; none for a plan.
    pub run: Option<brewbench_wire::RunId>,
    /// Runs of the experiment with the same block stay on one machine: 0 for all runs, otherwise the repetition.
    pub block: i64,
}

/// The targets and sizes of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// Names of targets.
    pub targets: &'a [String],
    /// Sizes.
    pub sizes: &'a [MachineSize],
}

impl<'a> Needs<'a> {
    /// Returns the needs of a plan.
    pub fn of_plan(spec: &'a RunSpec, agent: Option<&'a str>, label: Option<&'a str>) -> Self {
        Self { spec, agent, label, run: None, block: 0 }
    }

    /// Whether an agent is one of those requested.
    fn requests(&self, (name, agent): &(String, Connected)) -> bool {
        self.agent.is_none_or(|wanted| wanted == name) && self.label.is_none_or(|label| agent.has_label(label))
    }
}

/// Whether an agent that may do a plan offers one of its targets as one that compiles while it runs.
pub fn compiles_at_run_time(needs: Needs<'_>, cells: Cells<'_>, connected: &[(String, Connected)]) -> bool {
    let mut requested = connected.iter().filter(|agent| needs.requests(agent));
    let compiles =
        |agent: &Connected, target| Offer::find(&agent.hello, target).is_some_and(Offer::compiles_at_run_time);
    requested.any(|(_, agent)| cells.targets.iter().any(|target| compiles(agent, target)))
}

/// Describes the first requirement that no connected agent meets, if any.
pub fn obstacle(needs: Needs<'_>, cells: Cells<'_>, connected: &[(String, Connected)]) -> Option<String> {
    let agents: Vec<_> = connected.iter().filter(|agent| needs.requests(agent)).collect();
    if agents.is_empty() {
        return Some(none_connected(needs));
    }
    let spec = needs.spec;
    if let Some(sentence) = spec.generators.iter().find_map(|name| missing_generator(name, spec, connected)) {
        return Some(format!("generators: {sentence}"));
    }
    let agents: Vec<_> = agents.into_iter().filter(|(name, _)| !spec.generators.contains(name)).collect();
    if agents.is_empty() {
        return Some("generators: no agent is left to run the target; connect another agent".to_owned());
    }
    let labelled = needs.label.map_or(String::new(), |label| format!(" labelled {label:?}"));
    // With generators, those run the script.
    let allows_script = |agent: &Connected| !spec.generators.is_empty() || !lacks_script(spec, &agent.hello);
    if !agents.iter().any(|(_, agent)| allows_script(agent)) {
        let name = spec.scenario.as_deref().unwrap_or_default();
        return Some(format!(
            "scenario: no connected agent{labelled} runs user scenarios such as {name:?}; \
            start one with --any-scenario"
        ));
    }
    cells.targets.iter().find_map(|target| target_obstacle(spec, target, cells.sizes, &agents, &labelled))
}

/// Describes the first requirement of a target that none of these agents meets, if any.
fn target_obstacle(
    spec: &RunSpec,
    target: &str,
    sizes: &[MachineSize],
    agents: &[&(String, Connected)],
    labelled: &str,
) -> Option<String> {
    let offers: Vec<_> =
        agents.iter().filter_map(|(name, agent)| Some((name, Offer::find(&agent.hello, target)?))).collect();
    if offers.is_empty() {
        return Some(format!("target: no connected agent{labelled} offers {target:?}; {}", offered(agents)));
    }
    // Describes why none of them can do something, by the first.
    let none = |obstacle: &dyn Fn(Offer<'_>) -> Option<String>| {
        let all: Option<Vec<_>> = offers.iter().map(|(name, offer)| Some((name, obstacle(*offer)?))).collect();
        all?.into_iter().next()
    };
    if spec.generators.is_empty()
        && let Some(sentence) = engines_obstacle(spec, &offers)
    {
        return Some(sentence);
    }
    if !spec.generators.is_empty()
        && let Some((name, why)) = none(&|offer| offer.load_obstacle().map(str::to_owned))
    {
        return Some(format!("target: other agents can't load {target:?}: {name} {why}"));
    }
    if let Some((name, why)) = none(&|offer| offer.cluster_obstacle(spec.cluster_generators)) {
        return Some(format!("cluster_generators: {name} {why}"));
    }
    if let Some((name, why)) = none(&|offer| offer.duet_obstacle(spec.duet).map(str::to_owned)) {
        return Some(format!("duet: {name} {why}"));
    }
    let is_provided = |size: &RunSize| {
        // Whether they can profile it has a sentence of its own.
        let (target, size) = (target.to_owned(), Some(size.clone()));
        let spec = RunSpec { target, size, profiled: false, ..spec.clone() };
        agents.iter().any(|(_, agent)| unfit(&spec, &agent.hello).is_none())
    };
    if let Some(size) = sizes.iter().map(RunSize::from).find(|size| !is_provided(size)) {
        return Some(format!(
            "size: no connected agent{labelled} that offers {target:?} can provide {}; {}",
            size.name,
            describe_lacks(agents, target, &size, spec.duet)
        ));
    }
    let (name, why) = none(&|offer| offer.profile_obstacle()).filter(|_| spec.profiled)?;
    Some(format!("profile: {name} can't profile {target:?}: {why}"))
}

/// Describes why the load generators of none of these agents can generate the load, by the first.
fn engines_obstacle(spec: &RunSpec, offers: &[(&String, Offer<'_>)]) -> Option<String> {
    let obstacle = |(name, offer): &(&String, Offer<'_>)| {
        engine_obstacle(spec, offer.agent).map(|(field, why)| format!("{field}: {name} {why}"))
    };
    let all: Option<Vec<String>> = offers.iter().map(obstacle).collect();
    all?.into_iter().next()
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
pub fn missing_generator(name: &str, spec: &RunSpec, connected: &[(String, Connected)]) -> Option<String> {
    let Some((_, agent)) = connected.iter().find(|(connected, _)| connected == name) else {
        return Some(format!("{name:?} is not connected"));
    };
    if let Some((_, why)) = engine_obstacle(spec, &agent.hello) {
        return Some(format!("{name} {why}"));
    }
    let scenario = spec.scenario.as_deref().unwrap_or_default();
    lacks_script(spec, &agent.hello)
        .then(|| format!("{name} runs bundled scenarios only, and {scenario:?} is not; start it with --any-scenario"))
}

fn offered(agents: &[&(String, Connected)]) -> String {
    let mut names: Vec<_> =
        agents.iter().flat_map(|(_, agent)| agent.hello.targets.iter().map(|offer| offer.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none is offered".to_owned() } else { format!("offered: {}", names.join(", ")) }
}

fn describe_lacks(agents: &[&(String, Connected)], target: &str, size: &RunSize, is_duet: bool) -> String {
    let reason = |(name, agent): &&(String, Connected)| match Offer::find(&agent.hello, target) {
        None => format!("{name} does not offer the target"),
        Some(offer) if !offer.replicates(size) => format!("{name} {NO_REPLICAS}"),
        Some(offer) => match offer.size_obstacle(size, is_duet) {
            Some(lack) => format!("{name} {lack}"),
            None => format!("{name} can't do the rest of the plan"),
        },
    };
    agents.iter().map(reason).collect::<Vec<_>>().join(", ")
}
