//! The options of the form for a new run, and why some are unavailable. Pure.

use brewbench_wire::{manifest::source::split_target, messages::ScriptReport, target::TargetKind};

use super::draft::{Draft, Faults};
use crate::{
    catalog::model::{MachineSize, ScenarioInfo, Target, find_size},
    fleet::{model::Agent, presence::Connected},
    placement::feasibility::{Cells, Needs, missing_generator, obstacle},
    runs::model::RunSpec,
    web::series_style::{Mark, Marks},
};

/// Everything that the form may offer.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Targets that agents offer or have offered.
    pub targets: Vec<Target>,
    /// Marks of the targets.
    pub marks: Marks,
    /// Machine sizes, smallest first.
    pub sizes: Vec<MachineSize>,
    /// Scenarios by name.
    pub scenarios: Vec<ScenarioInfo>,
    /// Agents by name.
    pub agents: Vec<Agent>,
    /// Names of baselines.
    pub baselines: Vec<String>,
}

/// One option of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the option.
    pub name: String,
    /// Further details.
    pub detail: String,
    /// Mark of a target.
    pub mark: Option<Mark>,
    /// Whether it is selected.
    pub is_chosen: bool,
    /// Why no connected agent can do it.
    pub obstacle: Option<String>,
}

impl Choice {
    /// Whether it can't be selected. A selected option can always be deselected.
    pub fn is_locked(&self) -> bool {
        self.obstacle.is_some() && !self.is_chosen
    }
}

/// All options, given what is already selected.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Targets by name.
    pub targets: Vec<Choice>,
    /// A target that is built from source, if an agent offers one.
    pub from_source: Option<String>,
    /// Machine sizes, smallest first.
    pub sizes: Vec<Choice>,
    /// Scenarios by name.
    pub scenarios: Vec<Choice>,
    /// What k6 has read of the chosen scenario's script.
    pub script: ScriptReport,
    /// Agents by name.
    pub agents: Vec<Choice>,
    /// Labels of agents, sorted.
    pub labels: Vec<Choice>,
    /// Agents that may generate load for another agent's target, by name.
    pub generators: Vec<Choice>,
    /// The most load generators in the cluster of an agent; 0 if no agent has any.
    pub cluster_generators: u32,
}

/// Returns the options that are available together with the selection of a draft.
pub fn form_options(draft: &Draft, catalog: &Catalog, connected: &[(String, Connected)]) -> Offer {
    let options = OptionCheck { draft, connected, spec: spec(draft, &catalog.scenarios) };
    Offer {
        targets: targets(&options, catalog),
        from_source: from_source(connected),
        sizes: sizes(&options, catalog),
        script: script(draft, &catalog.scenarios),
        scenarios: catalog.scenarios.iter().map(|scenario| options.scenario(scenario)).collect(),
        agents: agents(&options, catalog),
        labels: labels(&options, catalog),
        generators: generators(&options, catalog),
        cluster_generators: most_in_cluster(options.connected),
    }
}

fn script(draft: &Draft, scenarios: &[ScenarioInfo]) -> ScriptReport {
    let chosen = scenarios.iter().find(|scenario| scenario.name == draft.scenario);
    chosen.and_then(|scenario| scenario.check.as_ref()).map(|check| check.report.clone()).unwrap_or_default()
}

/// Returns what a draft measures, without its targets and sizes, with the newest revision of its scenario.
fn spec(draft: &Draft, scenarios: &[ScenarioInfo]) -> RunSpec {
    let newest = scenarios.iter().find(|scenario| scenario.name == draft.scenario);
    let plan = draft.with_fields(&mut Faults::default());
    RunSpec {
        scenario: Some(draft.scenario.clone()),
        // No scenario that is bundled has an empty hash.
        scenario_sha256: Some(newest.map(|scenario| scenario.sha256.clone()).unwrap_or_default()),
        generators: draft.load_from.clone(),
        cluster_generators: draft.cluster_generators().unwrap_or(0),
        profiled: !draft.profile.is_empty(),
        ..plan.spec("")
    }
}

struct OptionCheck<'a> {
    draft: &'a Draft,
    connected: &'a [(String, Connected)],
    spec: RunSpec,
}

impl OptionCheck<'_> {
    fn agent(&self) -> Option<&str> {
        Some(self.draft.agent.as_str()).filter(|name| !name.is_empty())
    }

    fn label(&self) -> Option<&str> {
        Some(self.draft.agent_label.as_str()).filter(|label| !label.is_empty())
    }

    /// Returns why no connected agent can do it. Without connected agents there is no obstacle: runs wait for one.
    fn obstacle(&self, needs: Needs<'_>, cells: Cells<'_>) -> Option<String> {
        if self.connected.is_empty() { None } else { obstacle(needs, cells, self.connected) }
    }

    /// Returns why the agents of the draft can't do it.
    fn check(&self, targets: &[String], sizes: &[MachineSize]) -> Option<String> {
        self.check_on(targets, sizes, (self.agent(), self.label()))
    }

    /// Returns why an agent, or the agents with a label, can't do it.
    fn check_on(
        &self,
        targets: &[String],
        sizes: &[MachineSize],
        (agent, label): (Option<&str>, Option<&str>),
    ) -> Option<String> {
        self.obstacle(Needs::of_plan(&self.spec, agent, label), Cells { targets, sizes })
    }

    /// Returns why no agent can run a target, regardless of the scenario.
    fn target(&self, name: &str) -> Option<String> {
        let spec = RunSpec::default();
        let needs = Needs::of_plan(&spec, self.agent(), self.label());
        let obstacle = self.obstacle(needs, Cells { targets: &[name.to_owned()], sizes: &[] })?;
        let is_about_target = obstacle.starts_with("target: ");
        Some(if is_about_target { "no connected agent offers it".to_owned() } else { short(&obstacle) })
    }

    fn scenario(&self, scenario: &ScenarioInfo) -> Choice {
        let (name, sha256) = (Some(scenario.name.clone()), Some(scenario.sha256.clone()));
        let spec = RunSpec { scenario: name, scenario_sha256: sha256, ..RunSpec::default() };
        let needs = Needs::of_plan(&spec, self.agent(), self.label());
        let shorten = |obstacle: String| {
            if obstacle.starts_with("scenario: ") { NOT_ALLOWED.to_owned() } else { short(&obstacle) }
        };
        Choice {
            name: scenario.name.clone(),
            detail: String::new(),
            mark: None,
            is_chosen: self.draft.scenario == scenario.name,
            obstacle: self.obstacle(needs, Cells { targets: &[], sizes: &[] }).map(shorten),
        }
    }
}

const NOT_ALLOWED: &str = "no connected agent runs user scenarios";

/// Removes the field and the hint from an error.
fn short(sentence: &str) -> String {
    let field_and_rest = sentence.split_once(": ").filter(|(field, _)| !field.contains(' '));
    let rest = field_and_rest.map_or(sentence, |(_, rest)| rest);
    rest.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Describes a target in one line: version, any kind but the usual one, description.
fn describe(target: &Target) -> String {
    let kind = Some(target.kind).filter(|kind| *kind != TargetKind::Process).map(TargetKind::as_str);
    let description = Some(target.description.as_str()).filter(|text| !text.is_empty());
    [Some(target.version.as_str()), kind, description].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn from_source(connected: &[(String, Connected)]) -> Option<String> {
    let mut offers = connected.iter().flat_map(|(_, agent)| &agent.hello.targets);
    offers.find(|offer| !offer.revisions.is_empty()).map(|offer| offer.name.clone())
}

fn targets(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<Choice> {
    let mut all: Vec<Choice> = Vec::new();
    // Sorted by name; of each name the last seen version is first.
    for target in &catalog.targets {
        if all.last().is_some_and(|last| last.name == target.name) {
            continue;
        }
        all.push(Choice {
            name: target.name.clone(),
            detail: describe(target),
            mark: Some(catalog.marks.of(&target.name)),
            is_chosen: options.draft.targets.contains(&target.name),
            obstacle: options.target(&target.name),
        });
    }
    let is_known = |name: &str| catalog.targets.iter().any(|target| target.name == name);
    for name in options.draft.targets.iter().filter(|name| !is_known(name)) {
        let never = || Some("no agent has ever offered it".to_owned());
        all.push(Choice {
            name: name.clone(),
            detail: String::new(),
            mark: None,
            is_chosen: true,
            obstacle: if is_known(split_target(name).0) { options.target(name) } else { never() },
        });
    }
    all
}

fn sizes(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<Choice> {
    // Check a size with the selected targets that are available, or with any available target.
    let is_available = |name: &&String| options.target(name).is_none();
    let chosen: Vec<String> = options.draft.targets.iter().filter(is_available).cloned().collect();
    let chosen_sizes: Vec<&MachineSize> =
        options.draft.sizes.iter().filter_map(|name| find_size(&catalog.sizes, name)).collect();
    let check = |size: &MachineSize| {
        let size = std::slice::from_ref(size);
        if !chosen.is_empty() {
            return options.check(&chosen, size);
        }
        let mut obstacle = None;
        for target in catalog.targets.iter().filter(|target| options.target(&target.name).is_none()) {
            obstacle = Some(options.check(std::slice::from_ref(&target.name), size)?);
        }
        obstacle.or_else(|| options.check(&[], &[]))
    };
    let choice = |size: &MachineSize| Choice {
        name: size.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: chosen_sizes.iter().any(|chosen| chosen.name == size.name),
        obstacle: check(size).filter(|obstacle| !obstacle.starts_with("scenario: ")).map(|obstacle| {
            match obstacle.split_once("; ") {
                Some((head, why)) if head.starts_with("size: ") => why.to_owned(),
                _ => short(&obstacle),
            }
        }),
    };
    catalog.sizes.iter().map(choice).collect()
}

fn chosen_sizes(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<MachineSize> {
    options.draft.sizes.iter().filter_map(|name| find_size(&catalog.sizes, name)).cloned().collect()
}

fn agents(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<Choice> {
    let sizes = chosen_sizes(options, catalog);
    let choice = |agent: &Agent| Choice {
        name: agent.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: options.draft.agent == agent.name,
        obstacle: options
            .check_on(&options.draft.targets, &sizes, (Some(&agent.name), None))
            .map(|why| if why.starts_with("agent: ") { "not connected".to_owned() } else { short(&why) }),
    };
    catalog.agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).map(choice).collect()
}

fn labels(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<Choice> {
    let sizes = chosen_sizes(options, catalog);
    let obstacle = |label: &str| {
        let why = options.check_on(&options.draft.targets, &sizes, (None, Some(label)))?;
        Some(if why.starts_with("agent_label: ") { "none is connected".to_owned() } else { short(&why) })
    };
    let mut all: Vec<Choice> = Vec::new();
    for (name, agents) in crate::fleet::model::labels(&catalog.agents) {
        let (is_chosen, obstacle) = (options.draft.agent_label == name, obstacle(&name));
        all.push(Choice { detail: agents.join(", "), mark: None, is_chosen, obstacle, name });
    }
    if let Some(unknown) = options.label().filter(|label| !all.iter().any(|choice| choice.name == *label)) {
        let obstacle = Some("no agent has this label".to_owned());
        all.push(Choice { name: unknown.to_owned(), detail: String::new(), mark: None, is_chosen: true, obstacle });
    }
    all
}

fn most_in_cluster(connected: &[(String, Connected)]) -> u32 {
    connected.iter().filter_map(|(_, agent)| agent.hello.generators).map(|offer| offer.most).max().unwrap_or(0)
}

fn generators(options: &OptionCheck<'_>, catalog: &Catalog) -> Vec<Choice> {
    let obstacle = |agent: &Agent| {
        if options.agent() == Some(agent.name.as_str()) {
            return Some("runs the target".to_owned());
        }
        if options.connected.is_empty() {
            return None;
        }
        let why = missing_generator(&agent.name, &options.spec, options.connected)?;
        Some(if why.ends_with("is not connected") { "not connected".to_owned() } else { why })
    };
    let choice = |agent: &Agent| Choice {
        name: agent.name.clone(),
        detail: String::new(),
        mark: None,
        is_chosen: options.draft.load_from.contains(&agent.name),
        obstacle: obstacle(agent),
    };
    catalog.agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).map(choice).collect()
}
