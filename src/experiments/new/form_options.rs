//! What the form of a new run offers: all there is, and why some of it can't be had now. Pure.

use brewbench_agent::scenarios;

use super::draft::Draft;
use crate::{
    catalog::model::{MachineSize, ScenarioInfo, Target, find_size},
    fleet::{model::Agent, presence::Connected},
    placement::feasibility::{Needs, Source, missing_generator, obstacle},
    web::series_style::{Mark, Marks},
};

/// All there is.
#[derive(Clone, Debug)]
pub struct Known {
    /// As agents offered them, now or once.
    pub targets: Vec<Target>,
    /// Their marks.
    pub marks: Marks,
    /// Smallest first.
    pub sizes: Vec<MachineSize>,
    /// By name.
    pub scenarios: Vec<ScenarioInfo>,
    /// By name.
    pub agents: Vec<Agent>,
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What else is known of it.
    pub detail: String,
    /// For targets.
    pub mark: Option<Mark>,
    /// Whether it is chosen.
    pub is_chosen: bool,
    /// Why nobody can do it now.
    pub obstacle: Option<String>,
}

impl Choice {
    /// Whether it can't be chosen. What was chosen before can always be given up again.
    pub fn is_locked(&self) -> bool {
        self.obstacle.is_some() && !self.is_chosen
    }
}

/// All that can be chosen, given what has been chosen already.
#[derive(Clone, Debug)]
pub struct Offer {
    /// By name.
    pub targets: Vec<Choice>,
    /// Smallest first.
    pub sizes: Vec<Choice>,
    /// By name.
    pub scenarios: Vec<Choice>,
    /// By name.
    pub agents: Vec<Choice>,
    /// Labels of agents, by the alphabet.
    pub labels: Vec<Choice>,
    /// Agents that may make the load of another one's target, by name.
    pub generators: Vec<Choice>,
}

/// What can be chosen beside what a draft says.
pub fn offer(draft: &Draft, known: &Known, connected: &[(String, Connected)]) -> Offer {
    let asker = Asker { draft, connected, source: source_of(&draft.scenario, &known.scenarios) };
    Offer {
        targets: targets(&asker, known),
        sizes: sizes(&asker, known),
        scenarios: known.scenarios.iter().map(|scenario| asker.scenario(scenario)).collect(),
        agents: agents(&asker, known),
        labels: labels(&asker, known),
        generators: generators(&asker, known),
    }
}

/// Where the newest revision of a scenario comes from.
fn source_of(name: &str, scenarios: &[ScenarioInfo]) -> Source {
    scenarios.iter().find(|scenario| scenario.name == name).map_or(Source::User, origin)
}

fn origin(scenario: &ScenarioInfo) -> Source {
    let came_along = scenarios::bundled().iter().any(|bundled| bundled.sha256() == scenario.sha256);
    if came_along { Source::Bundled } else { Source::User }
}

struct Asker<'a> {
    draft: &'a Draft,
    connected: &'a [(String, Connected)],
    source: Source,
}

impl Asker<'_> {
    fn agent(&self) -> Option<&str> {
        Some(self.draft.agent.as_str()).filter(|name| !name.is_empty())
    }

    fn label(&self) -> Option<&str> {
        Some(self.draft.agent_label.as_str()).filter(|label| !label.is_empty())
    }

    /// What keeps it from being done. Where nobody is connected, runs wait for agents, so nothing does.
    fn obstacle(&self, needs: Needs<'_>) -> Option<String> {
        if self.connected.is_empty() { None } else { obstacle(needs, self.connected) }
    }

    /// What keeps it from being done by whom the draft names.
    fn ask(&self, targets: &[String], sizes: &[MachineSize]) -> Option<String> {
        self.ask_of(targets, sizes, (self.agent(), self.label()))
    }

    /// What keeps it from being done by an agent, or those with a label.
    fn ask_of(
        &self,
        targets: &[String],
        sizes: &[MachineSize],
        (agent, label): (Option<&str>, Option<&str>),
    ) -> Option<String> {
        let Draft { scenario, load_from, .. } = self.draft;
        let scenario_source = self.source;
        let needs = Needs { targets, sizes, scenario, scenario_source, agent, label, generators: load_from };
        self.obstacle(needs)
    }

    /// Whether somebody has a target, whatever the script.
    fn target(&self, name: &str) -> Option<String> {
        let needs = Needs {
            targets: &[name.to_owned()],
            sizes: &[],
            scenario: &self.draft.scenario,
            scenario_source: Source::Bundled,
            agent: self.agent(),
            label: self.label(),
            generators: &[],
        };
        let told = self.obstacle(needs)?;
        Some(if told.starts_with("target: ") { "offered by no connected agent".to_owned() } else { short(&told) })
    }

    fn scenario(&self, scenario: &ScenarioInfo) -> Choice {
        let needs = Needs {
            targets: &[],
            sizes: &[],
            scenario: &scenario.name,
            scenario_source: origin(scenario),
            agent: self.agent(),
            label: self.label(),
            generators: &[],
        };
        let told = self.obstacle(needs);
        let told = told.map(|told| if told.starts_with("scenario: ") { UNWELCOME.to_owned() } else { short(&told) });
        Choice {
            name: scenario.name.clone(),
            detail: String::new(),
            mark: None,
            is_chosen: self.draft.scenario == scenario.name,
            obstacle: told,
        }
    }
}

const UNWELCOME: &str = "no connected agent runs scripts that did not come with brewbench";

/// What is said to all of them once needs not be said to each.
fn short(told: &str) -> String {
    let said = told.split_once(": ").filter(|(field, _)| !field.contains(' ')).map_or(told, |(_, rest)| rest);
    said.split(';').next().unwrap_or_default().trim().to_owned()
}

fn targets(asker: &Asker<'_>, known: &Known) -> Vec<Choice> {
    let mut all: Vec<Choice> = Vec::new();
    // By name, what was seen last first.
    for target in &known.targets {
        if all.last().is_some_and(|last| last.name == target.name) {
            continue;
        }
        all.push(Choice {
            name: target.name.clone(),
            detail: format!("{} · {}", target.version, target.description),
            mark: Some(known.marks.of(&target.name)),
            is_chosen: asker.draft.targets.contains(&target.name),
            obstacle: asker.target(&target.name),
        });
    }
    for name in asker.draft.targets.iter().filter(|name| !known.targets.iter().any(|target| target.name == **name)) {
        all.push(Choice {
            name: name.clone(),
            detail: String::new(),
            mark: Some(known.marks.of(name)),
            is_chosen: true,
            obstacle: Some("no agent ever offered it".to_owned()),
        });
    }
    all
}

fn sizes(asker: &Asker<'_>, known: &Known) -> Vec<Choice> {
    // A size is judged by those of the chosen targets that can be had, or by any target that can.
    let can_be_had = |name: &&String| asker.target(name).is_none();
    let chosen: Vec<String> = asker.draft.targets.iter().filter(can_be_had).cloned().collect();
    let meant: Vec<&MachineSize> =
        asker.draft.sizes.iter().filter_map(|meant| find_size(&known.sizes, meant)).collect();
    let judge = |size: &MachineSize| {
        let size = std::slice::from_ref(size);
        if !chosen.is_empty() {
            return asker.ask(&chosen, size);
        }
        let mut told = None;
        for target in known.targets.iter().filter(|target| asker.target(&target.name).is_none()) {
            told = Some(asker.ask(std::slice::from_ref(&target.name), size)?);
        }
        told.or_else(|| asker.ask(&[], &[]))
    };
    let choice = |size: &MachineSize| Choice {
        name: size.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: meant.iter().any(|meant| meant.name == size.name),
        obstacle: judge(size).filter(|told| !told.starts_with("scenario: ")).map(|told| match told.split_once("; ") {
            Some((head, why)) if head.starts_with("size: ") => why.to_owned(),
            _ => short(&told),
        }),
    };
    known.sizes.iter().map(choice).collect()
}

fn meant_sizes(asker: &Asker<'_>, known: &Known) -> Vec<MachineSize> {
    asker.draft.sizes.iter().filter_map(|meant| find_size(&known.sizes, meant)).cloned().collect()
}

fn agents(asker: &Asker<'_>, known: &Known) -> Vec<Choice> {
    let meant = meant_sizes(asker, known);
    let choice = |agent: &Agent| Choice {
        name: agent.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: asker.draft.agent == agent.name,
        obstacle: asker
            .ask_of(&asker.draft.targets, &meant, (Some(&agent.name), None))
            .map(|told| if told.starts_with("agent: ") { "not connected".to_owned() } else { short(&told) }),
    };
    known.agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).map(choice).collect()
}

fn labels(asker: &Asker<'_>, known: &Known) -> Vec<Choice> {
    let meant = meant_sizes(asker, known);
    let obstacle = |label: &str| {
        let told = asker.ask_of(&asker.draft.targets, &meant, (None, Some(label)))?;
        Some(if told.starts_with("agent_label: ") { "none is connected".to_owned() } else { short(&told) })
    };
    let mut all: Vec<Choice> = Vec::new();
    for (name, agents) in crate::fleet::model::labels(&known.agents) {
        let (is_chosen, obstacle) = (asker.draft.agent_label == name, obstacle(&name));
        all.push(Choice { detail: agents.join(", "), mark: None, is_chosen, obstacle, name });
    }
    if let Some(gone) = asker.label().filter(|label| !all.iter().any(|choice| choice.name == *label)) {
        let obstacle = Some("no agent is labelled so".to_owned());
        all.push(Choice { name: gone.to_owned(), detail: String::new(), mark: None, is_chosen: true, obstacle });
    }
    all
}

fn generators(asker: &Asker<'_>, known: &Known) -> Vec<Choice> {
    let obstacle = |agent: &Agent| {
        if asker.agent() == Some(agent.name.as_str()) {
            return Some("runs the target".to_owned());
        }
        if asker.connected.is_empty() {
            return None;
        }
        let told = missing_generator(&agent.name, &asker.draft.scenario, asker.source, asker.connected)?;
        Some(if told.ends_with("is not connected") { "not connected".to_owned() } else { told })
    };
    let choice = |agent: &Agent| Choice {
        name: agent.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: asker.draft.load_from.contains(&agent.name),
        obstacle: obstacle(agent),
    };
    known.agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).map(choice).collect()
}
