//! The facts about a run's environment, in groups. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    results::{
        conditions::Conditions,
        environment::{
            circumstances,
            names::{Kind, kind, label, modern, shown},
        },
        evidence::Evidence,
        generator_record::GeneratorSeen,
    },
    runs::model::Run,
};

/// The environment of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunEnvironment {
    /// Its id.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Name of its target.
    pub target: String,
    /// Version of its target.
    pub version: Option<String>,
    /// Name of the machine size that the target got.
    pub size: Option<String>,
    /// Which repetition it was.
    pub repetition: u32,
    /// The agent that did it.
    pub agent: Option<String>,
    /// Facts by their dotted names, e.g. `cpu.model`; empty where nothing is known: for imports, and before the end.
    pub facts: BTreeMap<String, String>,
    /// What else the agent saw, as numbers: `ground` (the wait for a quiet machine), `clock_jump_ms`, `processes`,
    /// `processes_gone`, `response_change`, `placement` (of target and k6 on physical cores), `core_use`, `network`;
    /// null where it is not known.
    #[schema(value_type = Object)]
    pub conditions: Conditions,
    /// Under what its load was made, where others than its agent made it, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorEnvironment>,
}

/// The environment of one who made a part of a run's load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorEnvironment {
    /// The agent.
    pub agent: String,
    /// Facts by their dotted names.
    pub facts: BTreeMap<String, String>,
    /// As of a run: `ground`, `clock_jump_ms`, `core_use` and `network`.
    #[schema(value_type = Object)]
    pub conditions: Conditions,
}

impl RunEnvironment {
    /// Of a run, from what its agent saw if it has told that.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let conditions = evidence.map_or_else(Conditions::default, |evidence| evidence.conditions.clone());
        let facts = evidence.map_or_else(BTreeMap::new, facts);
        // A run that has ended keeps the names of its agents, whatever they are called later.
        let seen = run.generators.iter().zip(evidence.map_or(&[][..], |evidence| &evidence.generators));
        let of = |(agent, seen): (&String, &GeneratorSeen)| GeneratorEnvironment {
            agent: agent.clone(),
            facts: renamed(&seen.environment),
            conditions: seen.conditions.clone(),
        };
        let generators = seen.map(of).collect();
        let Run { id, target, version, size, repetition, agent, .. } = run.clone();
        let size = size.map(|size| size.name);
        Self { run: id, target, version, size, repetition, agent, facts, conditions, generators }
    }

    /// What it is called beside another.
    pub fn name(&self) -> String {
        let after =
            |words: &str, part: &Option<String>| part.as_ref().map(|part| format!("{words}{part}")).unwrap_or_default();
        let (version, size) = (after(" ", &self.version), after(", ", &self.size));
        format!("{}{version}{size}, repetition {}{}", self.target, self.repetition, after(" on ", &self.agent))
    }
}

/// Facts under the names of today.
pub fn facts(evidence: &Evidence) -> BTreeMap<String, String> {
    renamed(&evidence.environment)
}

pub(crate) fn renamed(facts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    facts.iter().map(|(name, value)| (modern(name).to_owned(), value.clone())).collect()
}

/// Facts that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they are about.
    pub title: &'static str,
    /// By their names.
    pub facts: Vec<Fact>,
}

/// A fact in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// E.g. `model`: unique within its group.
    pub name: String,
    /// With its unit.
    pub value: String,
}

/// All that is known, what the agent saw besides facts first; a group without facts is left out.
pub fn whole(environment: &RunEnvironment) -> Vec<Group> {
    with(circumstances::all(&environment.conditions), &environment.facts)
}

/// The same of one who made a part of the load.
pub fn of_generator(generator: &GeneratorEnvironment) -> Vec<Group> {
    with(circumstances::of_machine(&generator.conditions), &generator.facts)
}

pub(crate) fn with(circumstances: Vec<Fact>, facts: &BTreeMap<String, String>) -> Vec<Group> {
    let seen = Some(circumstances).filter(|facts| !facts.is_empty());
    let seen = seen.map(|facts| Group { title: "Circumstances", facts });
    seen.into_iter().chain(groups(facts)).collect()
}

/// All facts, group by group; a group without facts is left out.
pub fn groups(facts: &BTreeMap<String, String>) -> Vec<Group> {
    let told = |wanted: Kind| {
        let of = facts.iter().filter(|(name, _)| kind(name) == wanted);
        of.map(|(name, value)| Fact { name: label(name), value: shown(name, value) }).collect()
    };
    let groups = Kind::ALL.into_iter().map(|kind| Group { title: kind.title(), facts: told(kind) });
    groups.filter(|group| !group.facts.is_empty()).collect()
}

/// The few that people ask for first, in words.
pub fn essentials(facts: &BTreeMap<String, String>) -> Vec<Fact> {
    const ESSENTIAL: [(&str, &str); 9] = [
        ("cpu.model", "CPU"),
        ("cpu.usable", "cores for the agent"),
        ("cpu.governor", "frequency governor"),
        ("cpu.turbo", "turbo"),
        ("machine.virtual", "virtual machine"),
        ("memory.bytes", "memory"),
        ("kernel.release", "kernel"),
        ("os.name", "OS"),
        ("load.before", "load average before the start"),
    ];
    let told = |(name, label): (&str, &str)| {
        let value = shown(name, facts.get(name)?);
        Some(Fact { name: label.to_owned(), value })
    };
    ESSENTIAL.into_iter().filter_map(told).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn told(facts: &[(&str, &str)]) -> BTreeMap<String, String> {
        facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value).replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn facts_are_grouped_and_worded() {
        let facts = told(&[
            ("cpu.cache.l1d", "32K"),
            ("cpu.model", "Z80"),
            ("memory.swap_bytes", "0"),
            ("memory.bytes", "4294967296"),
            ("net.core.somaxconn", "4096"),
            ("fs.file-max", "100"),
            ("limit.open_files", "1024, at most 1048576"),
            ("mitigation.spec_store_bypass", "Vulnerable"),
            ("target.env.GOMAXPROCS", "2"),
            ("target.command", "servy {port}"),
            ("target.executable_bytes", "1048576"),
            ("something.new", "1"),
        ]);
        let told: Vec<_> = groups(&facts)
            .into_iter()
            .map(|group| format!("{}: {}", group.title, texts(group.facts).join("; ")))
            .collect();
        assert_eq!(
            told,
            [
                "Processor: cache L1d: 32K; model: Z80",
                "Memory: in all: 4 GiB; swap: 0 B",
                "Network: net.core.somaxconn: 4096",
                "Limits: fs.file-max: 100; open files: 1024, at most 1048576",
                "Mitigations: spec store bypass: Vulnerable",
                "Target: command: servy {port}; executable: 1 MiB",
                "Variables of the target: GOMAXPROCS: 2",
                "More: something.new: 1",
            ]
        );
    }

    #[test]
    fn what_older_agents_told_is_shown_under_the_names_of_today() {
        let old = told(&[
            ("cpu_model", "Z80"),
            ("cores", "2"),
            ("memory_bytes", "1073741824"),
            ("kernel", "Linux 6"),
            ("os", "Debian"),
            ("governor", "powersave"),
            ("turbo", "on"),
            ("load_average", "0 0 0"),
        ]);
        let facts = facts(&Evidence { environment: old, ..Evidence::default() });
        let expected = [
            "CPU: Z80",
            "cores for the agent: 2",
            "frequency governor: powersave",
            "turbo: on",
            "memory: 1 GiB",
            "kernel: Linux 6",
            "OS: Debian",
            "load average before the start: 0 0 0",
        ];
        assert_eq!(texts(essentials(&facts)), expected);
        assert!(!groups(&facts).iter().any(|group| group.title == "More"), "{facts:?}");
    }
}
