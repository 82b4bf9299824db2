//! Differences between two environments, and whether they are relevant. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    generators,
    names::{Kind, kind, label, shown},
};
use crate::results::environment::{facts::RunEnvironment, generators::GeneratorDifference};

/// Comparison of two environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentDifference {
    /// The environment of the run.
    pub run: RunEnvironment,
    /// The environment of the other run.
    pub with: RunEnvironment,
    /// Number of equal facts.
    pub alike: u32,
    /// Facts that differ, relevant ones first; empty if either environment is unknown.
    pub differences: Vec<FactDifference>,
    /// Comparison of the generators' environments, for distributed runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorDifference>,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FactDifference {
    /// Its dotted name, e.g. `cpu.model`.
    pub fact: String,
    /// The group that it belongs to, e.g. `Processor`.
    pub group: String,
    /// Its label within the group.
    pub label: String,
    /// Value in the run, formatted; null if unknown.
    pub run: Option<String>,
    /// Value in the other run, formatted; null if unknown.
    pub with: Option<String>,
    /// How relevant it is.
    pub weight: Weight,
}

/// How relevant a difference is for a comparison of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It may explain different results.
    Matters,
    /// It is a property of the targets, which differ.
    Target,
    /// It always differs from run to run.
    Passing,
}

impl Weight {
    /// All weights, most relevant first.
    pub const ALL: [Self; 3] = [Self::Matters, Self::Target, Self::Passing];

    /// Heading of such differences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Matters => "Relevant differences",
            Self::Target => "Differences between the targets",
            Self::Passing => "Expected differences",
        }
    }
}

/// Variables that differ in every login session or service start.
const PASSING_VARIABLES: [&str; 22] = [
    "_",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "MEMORY_PRESSURE_WATCH",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WINDOWID",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
];

impl EnvironmentDifference {
    /// Compares the environments of two runs.
    pub fn new(run: RunEnvironment, with: RunEnvironment) -> Self {
        let same_target = is_same_target(&run, &with);
        let (alike, differences) = compare(&run.facts, &with.facts, same_target);
        let generators = generators::differences(&run.generators, &with.generators);
        Self { run, with, alike, differences, generators }
    }

    /// Returns the differences of a weight.
    pub fn with_weight(&self, weight: Weight) -> Vec<&FactDifference> {
        filter_weight(&self.differences, weight)
    }

    /// Summarizes the comparison in a sentence.
    pub fn summarize(&self) -> String {
        let Self { run, with, alike, .. } = self;
        let unknown: Vec<_> =
            [run, with].into_iter().filter(|side| side.facts.is_empty()).map(RunEnvironment::name).collect();
        match unknown.as_slice() {
            [] => {}
            [one] => return format!("The environment of {one} is unknown."),
            all => return format!("The environments of {} are unknown.", all.join(" and ")),
        }
        if run.run == with.run {
            return "Both are the same run.".to_owned();
        }
        match self.differences.len() {
            0 => format!("No differences; equal facts: {alike}."),
            _ => counted(&self.differences, *alike),
        }
    }
}

/// Returns the names of the facts that differ and may explain different results; none if either side is unknown.
pub fn relevant<'a>(run: &'a RunEnvironment, with: &'a RunEnvironment) -> impl Iterator<Item = &'a str> {
    let are_known = !run.facts.is_empty() && !with.facts.is_empty();
    let same_target = is_same_target(run, with);
    let only_with = with.facts.keys().filter(|name| !run.facts.contains_key(*name));
    let names = run.facts.keys().chain(only_with).map(String::as_str);
    names.filter(move |name| {
        are_known && run.facts.get(*name) != with.facts.get(*name) && weight(name, same_target) == Weight::Matters
    })
}

fn is_same_target(run: &RunEnvironment, with: &RunEnvironment) -> bool {
    run.target == with.target && run.version == with.version
}

/// Returns the number of equal facts and the differences, relevant ones first; (0, none) if either side is unknown.
pub(super) fn compare(
    run: &BTreeMap<String, String>,
    with: &BTreeMap<String, String>,
    same_target: bool,
) -> (u32, Vec<FactDifference>) {
    if run.is_empty() || with.is_empty() {
        return (0, Vec::new());
    }
    let names: BTreeSet<&String> = run.keys().chain(with.keys()).collect();
    let mut differences: Vec<_> = names.iter().filter_map(|name| difference(name, run, with, same_target)).collect();
    let alike = u32::try_from(names.len() - differences.len()).unwrap_or(u32::MAX);
    differences.sort_by_key(|difference| (difference.weight, kind(&difference.fact)));
    (alike, differences)
}

pub(super) fn filter_weight(differences: &[FactDifference], weight: Weight) -> Vec<&FactDifference> {
    differences.iter().filter(|difference| difference.weight == weight).collect()
}

/// Summarizes differences in a sentence.
pub(super) fn counted(differences: &[FactDifference], alike: u32) -> String {
    match filter_weight(differences, Weight::Matters).len() {
        0 => format!("No relevant differences; equal facts: {alike}."),
        1 => format!("1 relevant difference; equal facts: {alike}."),
        some => format!("{some} relevant differences; equal facts: {alike}."),
    }
}

fn difference(
    name: &str,
    run: &BTreeMap<String, String>,
    with: &BTreeMap<String, String>,
    same_target: bool,
) -> Option<FactDifference> {
    let (one, other) = (run.get(name), with.get(name));
    let formatted = |value: Option<&String>| value.map(|value| shown(name, value));
    (one != other).then(|| FactDifference {
        fact: name.to_owned(),
        group: kind(name).title().to_owned(),
        label: label(name),
        run: formatted(one),
        with: formatted(other),
        weight: weight(name, same_target),
    })
}

fn weight(name: &str, same_target: bool) -> Weight {
    let variable = name.strip_prefix("target.env.");
    if kind(name) == Kind::Before || variable.is_some_and(|variable| PASSING_VARIABLES.contains(&variable)) {
        Weight::Passing
    } else if kind(name) == Kind::Target && !same_target {
        Weight::Target
    } else {
        Weight::Matters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brewbench_wire::outcome::Conditions;

    use crate::results::environment::facts::tests::fact_map;

    fn environment(run: &str, target: &str, facts: &[(&str, &str)]) -> RunEnvironment {
        RunEnvironment {
            run: run.to_owned().into(),
            target: target.to_owned(),
            version: None,
            size: None,
            repetition: 1,
            agent: Some("rack".to_owned()),
            facts: fact_map(facts),
            conditions: Conditions::default(),
            generators: Vec::new(),
        }
    }

    const FACTS: [(&str, &str); 6] = [
        ("cpu.model", "Z80"),
        ("load.before", "0 0 0"),
        ("memory.bytes", "1073741824"),
        ("target.command", "servy"),
        ("target.env.LEVEL", "info"),
        ("target.env.SHLVL", "1"),
    ];

    /// Facts with changes; an empty value removes a fact.
    fn but<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut facts: BTreeMap<_, _> = FACTS.into_iter().collect();
        facts.extend(changes.iter().copied());
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    #[test]
    fn equal_environments_have_no_difference() {
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &FACTS));
        assert_eq!((compared.alike, compared.differences.len()), (6, 0));
        assert_eq!(compared.summarize(), "No differences; equal facts: 6.");
    }

    #[test]
    fn relevant_and_expected_differences_are_separated() {
        let other = but(&[
            ("load.before", "9 9 9"),
            ("target.command", "gosherve"),
            ("target.env.SHLVL", "2"),
            ("target.env.LEVEL", "debug"),
            ("memory.bytes", "2147483648"),
            ("cpu.model", ""),
            ("cpu.turbo", "on"),
        ]);
        let compared =
            EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "gosherve", &other));
        let listed = |weight| {
            let facts = compared.with_weight(weight).into_iter();
            let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "?".to_owned()).replace('\u{a0}', " ");
            facts
                .map(|fact| format!("{} {}: {} | {}", fact.group, fact.label, side(&fact.run), side(&fact.with)))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            listed(Weight::Matters),
            [
                "Processor model: Z80 | ?",
                "Processor turbo: ? | on",
                "Memory total: 1 GiB | 2 GiB",
                "Target environment variables LEVEL: info | debug"
            ]
        );
        assert_eq!(listed(Weight::Target), ["Target command: servy | gosherve"]);
        let passing = ["Target environment variables SHLVL: 1 | 2", "Before the run load average: 0 0 0 | 9 9 9"];
        assert_eq!(listed(Weight::Passing), passing);
        assert_eq!(compared.summarize(), "4 relevant differences; equal facts: 0.");
    }

    #[test]
    fn target_differences_are_relevant_for_one_target() {
        let other = but(&[("target.command", "servy --fast")]);
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &other));
        assert_eq!(compared.with_weight(Weight::Matters).len(), 1);
        assert_eq!(compared.summarize(), "1 relevant difference; equal facts: 5.");
        let other = but(&[("load.before", "1 1 1")]);
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &other));
        assert_eq!(compared.summarize(), "No relevant differences; equal facts: 5.");
    }

    #[test]
    fn an_unknown_environment_has_no_differences() {
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &[]));
        assert_eq!(compared.differences, []);
        let expected = "The environment of servy, repetition 1 on rack is unknown.";
        assert_eq!(compared.summarize(), expected);
    }
}
