//! In what two environments differ, and whether that matters. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    generators,
    names::{Kind, kind, label, shown},
};
use crate::results::environment::{facts::RunEnvironment, generators::GeneratorDifference};

/// Two environments held against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentDifference {
    /// The one.
    pub run: RunEnvironment,
    /// The other.
    pub with: RunEnvironment,
    /// How many facts are the same.
    pub alike: u32,
    /// Facts that are not, those that matter first; empty where nothing is known of one of them.
    pub differences: Vec<FactDifference>,
    /// The same of those who made the load, where others than the target's agents made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorDifference>,
}

/// A fact that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FactDifference {
    /// Its dotted name, e.g. `cpu.model`.
    pub fact: String,
    /// The group that it belongs to, e.g. `Processor`.
    pub group: String,
    /// What it is called there.
    pub label: String,
    /// Here, in words; null where it is not known.
    pub run: Option<String>,
    /// There, in words; null where it is not known.
    pub with: Option<String>,
    /// Whether it matters.
    pub weight: Weight,
}

/// What a difference means for a comparison of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It may be the reason for other figures.
    Matters,
    /// It belongs to the targets, which are not the same one in the same version.
    Target,
    /// It differs from run to run by its nature.
    Passing,
}

impl Weight {
    /// The heavier first.
    pub const ALL: [Self; 3] = [Self::Matters, Self::Target, Self::Passing];

    /// What stands above such differences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Matters => "What matters",
            Self::Target => "The targets themselves",
            Self::Passing => "What differs by nature",
        }
    }
}

/// Variables that are others in every login or every start of a service.
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
    /// Of two runs.
    pub fn new(run: RunEnvironment, with: RunEnvironment) -> Self {
        let same_target = run.target == with.target && run.version == with.version;
        let (alike, differences) = compare(&run.facts, &with.facts, same_target);
        let generators = generators::differences(&run.generators, &with.generators);
        Self { run, with, alike, differences, generators }
    }

    /// Those of a weight.
    pub fn of(&self, weight: Weight) -> Vec<&FactDifference> {
        of_weight(&self.differences, weight)
    }

    /// What there is to say in a sentence.
    pub fn sentence(&self) -> String {
        let Self { run, with, alike, .. } = self;
        let unknown: Vec<_> =
            [run, with].into_iter().filter(|side| side.facts.is_empty()).map(RunEnvironment::name).collect();
        if !unknown.is_empty() {
            return format!("Nothing is known of the environment of {}.", unknown.join(", nor of that of "));
        }
        if run.run == with.run {
            return "It is one and the same run.".to_owned();
        }
        match self.differences.len() {
            0 => format!("The environments are the same in all {alike} facts."),
            _ => counted(&self.differences, *alike),
        }
    }
}

/// How many facts are the same, and those that are not, the heavier first; none where nothing is known of one side.
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

pub(super) fn of_weight(differences: &[FactDifference], weight: Weight) -> Vec<&FactDifference> {
    differences.iter().filter(|difference| difference.weight == weight).collect()
}

/// Some differences in a sentence.
pub(super) fn counted(differences: &[FactDifference], alike: u32) -> String {
    match of_weight(differences, Weight::Matters).len() {
        0 => format!("Nothing that matters differs; {alike} facts are the same."),
        1 => format!("1 fact that matters differs; {alike} are the same."),
        some => format!("{some} facts that matter differ; {alike} are the same."),
    }
}

fn difference(
    name: &str,
    run: &BTreeMap<String, String>,
    with: &BTreeMap<String, String>,
    same_target: bool,
) -> Option<FactDifference> {
    let (one, other) = (run.get(name), with.get(name));
    let told = |value: Option<&String>| value.map(|value| shown(name, value));
    (one != other).then(|| FactDifference {
        fact: name.to_owned(),
        group: kind(name).title().to_owned(),
        label: label(name),
        run: told(one),
        with: told(other),
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
    use crate::results::{conditions::Conditions, environment::facts::tests::told};

    fn environment(run: &str, target: &str, facts: &[(&str, &str)]) -> RunEnvironment {
        RunEnvironment {
            run: run.to_owned().into(),
            target: target.to_owned(),
            version: None,
            size: None,
            repetition: 1,
            agent: Some("rack".to_owned()),
            facts: told(facts),
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

    /// Facts with some of them changed or, where the value is empty, left out.
    fn but<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut facts: BTreeMap<_, _> = FACTS.into_iter().collect();
        facts.extend(changes.iter().copied());
        facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    #[test]
    fn equal_environments_have_no_difference() {
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &FACTS));
        assert_eq!((compared.alike, compared.differences.len()), (6, 0));
        assert_eq!(compared.sentence(), "The environments are the same in all 6 facts.");
    }

    #[test]
    fn what_matters_is_told_apart_from_what_does_not() {
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
        let told = |weight| {
            let of = compared.of(weight).into_iter();
            let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "?".to_owned()).replace('\u{a0}', " ");
            of.map(|fact| format!("{} {}: {} | {}", fact.group, fact.label, side(&fact.run), side(&fact.with)))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told(Weight::Matters),
            [
                "Processor model: Z80 | ?",
                "Processor turbo: ? | on",
                "Memory in all: 1 GiB | 2 GiB",
                "Variables of the target LEVEL: info | debug"
            ]
        );
        assert_eq!(told(Weight::Target), ["Target command: servy | gosherve"]);
        let passing = ["Variables of the target SHLVL: 1 | 2", "Before the start load average: 0 0 0 | 9 9 9"];
        assert_eq!(told(Weight::Passing), passing);
        assert_eq!(compared.sentence(), "4 facts that matter differ; 0 are the same.");
    }

    #[test]
    fn of_one_target_every_difference_of_its_own_matters() {
        let other = but(&[("target.command", "servy --fast")]);
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &other));
        assert_eq!(compared.of(Weight::Matters).len(), 1);
        assert_eq!(compared.sentence(), "1 fact that matters differs; 5 are the same.");
        let other = but(&[("load.before", "1 1 1")]);
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &other));
        assert_eq!(compared.sentence(), "Nothing that matters differs; 5 facts are the same.");
    }

    #[test]
    fn of_what_nobody_knows_nothing_differs() {
        let compared = EnvironmentDifference::new(environment("a", "servy", &FACTS), environment("b", "servy", &[]));
        assert_eq!(compared.differences, []);
        let expected = "Nothing is known of the environment of servy, repetition 1 on rack.";
        assert_eq!(compared.sentence(), expected);
    }
}
