//! Facts about a run's environment, in groups. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use brewbench_wire::outcome::Conditions;

use crate::{
    app::ids::RunId,
    results::{
        environment::{
            circumstances,
            names::{Kind, current_name, kind, label, shown, without_build_folder},
        },
        evidence::Evidence,
        generator_record::GeneratorRecord,
    },
    runs::model::{Run, RunSpec},
};

/// The environment of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunEnvironment {
    /// The run's id.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Name of its target.
    pub target: String,
    /// Version of its target.
    pub version: Option<String>,
    /// Name of the machine size that the target got.
    pub size: Option<String>,
    /// Number of the repetition.
    pub repetition: u32,
    /// The agent that ran the target.
    pub agent: Option<String>,
    /// Facts by their dotted names, e.g. `cpu.model`; empty for imports and until the run has ended.
    pub facts: BTreeMap<String, String>,
    /// Conditions that the agent observed; null if unknown. Of the machine: `idle_wait`, `clock_jump_ms`, `core_use`,
    /// `network`, `generator_quota`. Of the target: `round_trip_ms`, `processes`, `processes_gone`, `response_change`,
    /// `response_text_change`, `response_head_bytes`, `placement`, `shares_cores`, `counters`.
    #[schema(value_type = Object)]
    pub conditions: Conditions,
    /// Environments of the generators of a distributed run, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorEnvironment>,
}

/// The environment of one generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorEnvironment {
    /// The agent.
    pub agent: String,
    /// Facts by their dotted names.
    pub facts: BTreeMap<String, String>,
    /// Conditions as for a run: `idle_wait`, `clock_jump_ms`, `core_use`, `network` and `generator_quota`.
    #[schema(value_type = Object)]
    pub conditions: Conditions,
}

impl RunEnvironment {
    /// Builds the environment of a run from its evidence, if there is any.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let conditions = evidence.map_or_else(Conditions::default, |evidence| evidence.conditions.clone());
        let facts = evidence.map_or_else(BTreeMap::new, facts);
        // A run keeps the names of its agents, even if they are renamed later.
        let records = evidence.map_or(&[][..], |evidence| &evidence.generators);
        let environment = |(index, record): (usize, &GeneratorRecord)| GeneratorEnvironment {
            agent: run.spec.generators.get(index).unwrap_or(&record.agent).clone(),
            facts: renamed(&record.environment),
            conditions: record.conditions.clone(),
        };
        let generators = records.iter().enumerate().map(environment).collect();
        let Run { id, version, spec: RunSpec { target, size, .. }, repetition, agent, .. } = run.clone();
        let size = size.map(|size| size.name);
        Self { run: id, target, version, size, repetition, agent, facts, conditions, generators }
    }

    /// Returns a name that distinguishes it from another run.
    pub fn name(&self) -> String {
        let after =
            |words: &str, part: &Option<String>| part.as_ref().map(|part| format!("{words}{part}")).unwrap_or_default();
        let (version, size) = (after(" ", &self.version), after(", ", &self.size));
        format!("{}{version}{size}, repetition {}{}", self.target, self.repetition, after(" on ", &self.agent))
    }
}

/// Returns the facts of a run under their current names.
pub fn facts(evidence: &Evidence) -> BTreeMap<String, String> {
    renamed(&evidence.environment)
}

pub(crate) fn renamed(facts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let current =
        |(name, value): (&String, &String)| Some((current_name(name).to_owned(), without_build_folder(name, value)?));
    facts.iter().filter_map(current).collect()
}

/// A group of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Heading of the group.
    pub title: &'static str,
    /// Facts in the order of their names.
    pub facts: Vec<Fact>,
}

/// A fact, formatted for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Label, unique within its group, e.g. `model`.
    pub name: String,
    /// Value with its unit.
    pub value: String,
}

/// Returns all groups that are not empty, conditions first.
pub fn all_groups(environment: &RunEnvironment) -> Vec<Group> {
    groups_with(circumstances::all(&environment.conditions), &environment.facts)
}

/// Returns all groups of a generator that are not empty, conditions first.
pub fn generator_groups(generator: &GeneratorEnvironment) -> Vec<Group> {
    groups_with(circumstances::of_machine(&generator.conditions), &generator.facts)
}

fn groups_with(circumstances: Vec<Fact>, facts: &BTreeMap<String, String>) -> Vec<Group> {
    let conditions = Some(circumstances).filter(|facts| !facts.is_empty());
    let conditions = conditions.map(|facts| Group { title: "Conditions", facts });
    conditions.into_iter().chain(groups(facts)).collect()
}

/// Returns the label of a fact with its group: `kernel (System)`.
pub fn title_of(fact: &str) -> String {
    format!("{} ({})", label(fact), kind(fact).title())
}

/// Returns the label of a fact with its values: `kernel 6.1 and 6.12`.
pub fn described<'a>(fact: &str, values: impl IntoIterator<Item = Option<&'a String>>) -> String {
    let word = |value: Option<&String>| value.map_or_else(|| "not known".to_owned(), |value| shown(fact, value));
    format!("{} {}", label(fact), values.into_iter().map(word).collect::<Vec<_>>().join(" and "))
}

/// Groups facts; empty groups are left out.
pub fn groups(facts: &BTreeMap<String, String>) -> Vec<Group> {
    let of_kind = |wanted: Kind| {
        let matching = facts.iter().filter(|(name, _)| kind(name) == wanted);
        matching.map(|(name, value)| Fact { name: label(name), value: shown(name, value) }).collect()
    };
    let groups = Kind::ALL.into_iter().map(|kind| Group { title: kind.title(), facts: of_kind(kind) });
    groups.filter(|group| !group.facts.is_empty()).collect()
}

/// Returns the most important facts.
pub fn essentials(facts: &BTreeMap<String, String>) -> Vec<Fact> {
    const ESSENTIAL: [(&str, &str); 9] = [
        ("cpu.model", "CPU"),
        ("cpu.usable", "usable cores"),
        ("cpu.governor", "frequency governor"),
        ("cpu.turbo", "turbo"),
        ("machine.virtual", "virtual machine"),
        ("memory.bytes", "memory"),
        ("kernel.release", "kernel"),
        ("os.name", "OS"),
        ("load.before", "load average before the run"),
    ];
    let fact = |(name, label): (&str, &str)| {
        let value = shown(name, facts.get(name)?);
        Some(Fact { name: label.to_owned(), value })
    };
    ESSENTIAL.into_iter().filter_map(fact).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fact_map(facts: &[(&str, &str)]) -> BTreeMap<String, String> {
        facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value).replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn facts_are_grouped_and_worded() {
        let facts = fact_map(&[
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
        let listed: Vec<_> = groups(&facts)
            .into_iter()
            .map(|group| format!("{}: {}", group.title, texts(group.facts).join("; ")))
            .collect();
        assert_eq!(
            listed,
            [
                "Processor: cache L1d: 32K; model: Z80",
                "Memory: total: 4 GiB; swap: 0 B",
                "Network: net.core.somaxconn: 4096",
                "Limits: fs.file-max: 100; open files: 1024, at most 1048576",
                "Mitigations: spec store bypass: Vulnerable",
                "Target: command: servy {port}; executable size: 1 MiB",
                "Target environment variables: GOMAXPROCS: 2",
                "Other: something.new: 1",
            ]
        );
    }

    #[test]
    fn where_older_agents_stored_a_build_is_no_fact() {
        let folder = |recipe: &str| format!("/var/lib/brewbench-runs/a1.builds/api/done/{}-{recipe}", "ab".repeat(20));
        let of = |folder: &str| {
            let executable = format!("{folder}/bin/api");
            let old = fact_map(&[("target.executable", &executable), ("target.folder", folder), ("os.name", folder)]);
            facts(&Evidence { environment: old, ..Evidence::default() })
        };
        let (one, other) = (of(&folder("0123456789ab")), of(&folder("ba9876543210")));
        assert_eq!(one["target.executable"], "bin/api");
        let differ: Vec<_> = one.iter().filter(|(name, value)| other.get(*name) != Some(value)).collect();
        assert_eq!(differ, [(&"os.name".to_owned(), &folder("0123456789ab"))], "no path of the target");
        let elsewhere = of("/srv/done/v1-2");
        assert_eq!(
            (elsewhere["target.folder"].as_str(), elsewhere.len()),
            ("/srv/done/v1-2", 3),
            "a folder of the owner"
        );
    }

    #[test]
    fn facts_of_older_agents_get_their_current_names() {
        let old = fact_map(&[
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
            "usable cores: 2",
            "frequency governor: powersave",
            "turbo: on",
            "memory: 1 GiB",
            "kernel: Linux 6",
            "OS: Debian",
            "load average before the run: 0 0 0",
        ];
        assert_eq!(texts(essentials(&facts)), expected);
        assert!(!groups(&facts).iter().any(|group| group.title == "Other"), "{facts:?}");
    }
}
