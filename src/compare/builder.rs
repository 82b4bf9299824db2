//! The form that chooses what to compare: two sides and what they have in common, from what was measured. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use url::form_urlencoded;

use crate::{
    app::ids::{ExperimentId, RunId, joined},
    compare::{chosen::MAX_RUNS, selection::By},
};

/// A run that counts, with the properties by which it is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct CandidateRun {
    /// The run.
    pub id: RunId,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// When it finished, Unix ms.
    pub finished_at_ms: i64,
    /// Its values, in the order of [`Property::ALL`].
    pub values: [String; Property::ALL.len()],
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub version: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
}

/// The start of a side that is a label.
const LABEL: &str = "label:";
/// The start of a side that is a baseline.
const BASELINE: &str = "baseline:";

/// What there is to choose from.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Runs that count, from the newest to the oldest.
    pub runs: Vec<CandidateRun>,
    /// The runs of each baseline.
    pub baselines: BTreeMap<String, Vec<RunId>>,
}

impl Candidates {
    /// The runs of a side: of a target in one version, with a label, or of a baseline.
    fn side<'a>(&'a self, side: &str, choice: &Choice) -> Vec<&'a CandidateRun> {
        let baseline = side.strip_prefix(BASELINE).map(|name| self.baselines.get(name));
        let belongs = |run: &&CandidateRun| match (side.strip_prefix(LABEL), baseline) {
            (Some(label), _) => run.labels.iter().any(|own| own == label),
            (None, Some(ids)) => ids.is_some_and(|ids| ids.contains(&run.id)),
            (None, None) => key(run) == side,
        };
        self.runs.iter().filter(|run| choice.admits(run)).filter(belongs).collect()
    }
}

/// What both sides have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The scenario.
    Scenario,
    /// The machine size.
    Size,
    /// The load.
    Load,
    /// The load generator.
    Engine,
}

impl Property {
    /// In the order of the form.
    pub const ALL: [Self; 4] = [Self::Scenario, Self::Size, Self::Load, Self::Engine];

    /// Query parameter.
    pub fn key(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Size => "size",
            Self::Load => "load",
            Self::Engine => "engine",
        }
    }

    /// Label of the field.
    pub fn label(self) -> &'static str {
        match self {
            Self::Scenario => "Scenario",
            Self::Size => "Machine size",
            Self::Load => "Load",
            Self::Engine => "Load generator",
        }
    }
}

/// What the form was submitted with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Choice {
    /// The candidate: `name@version`, `label:NAME` or `baseline:NAME`.
    #[serde(default)]
    pub candidate: String,
    /// What it is compared with, in the same form.
    #[serde(default)]
    pub against: String,
    /// The scenario; empty for all.
    #[serde(default)]
    pub scenario: String,
    /// The machine size; empty for all.
    #[serde(default)]
    pub size: String,
    /// The load; empty for all.
    #[serde(default)]
    pub load: String,
    /// The load generator; empty for all.
    #[serde(default)]
    pub engine: String,
}

impl Choice {
    fn value(&self, property: Property) -> &str {
        match property {
            Property::Scenario => &self.scenario,
            Property::Size => &self.size,
            Property::Load => &self.load,
            Property::Engine => &self.engine,
        }
    }

    fn value_mut(&mut self, property: Property) -> &mut String {
        match property {
            Property::Scenario => &mut self.scenario,
            Property::Size => &mut self.size,
            Property::Load => &mut self.load,
            Property::Engine => &mut self.engine,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a run has the chosen properties.
    fn admits(&self, run: &CandidateRun) -> bool {
        Property::ALL.iter().zip(&run.values).all(|(property, value)| {
            let wanted = self.value(*property);
            wanted.is_empty() || wanted == value
        })
    }
}

/// A field of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Query parameter.
    pub key: &'static str,
    /// Label.
    pub label: &'static str,
    /// The text for no choice.
    pub none: &'static str,
    /// The chosen value; empty for none.
    pub chosen: String,
    /// Options under their headings; options without one come first.
    pub groups: Vec<Group>,
}

/// Options under a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The heading; empty for none.
    pub label: &'static str,
    /// Value and text of each option.
    pub options: Vec<(String, String)>,
}

/// One side of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenSide {
    /// The chosen side; empty if none is.
    pub key: String,
    /// Its runs.
    pub runs: Vec<RunId>,
    /// When the newest finished, Unix ms.
    pub finished_at_ms: Option<i64>,
    /// The target to measure for it.
    target: Option<String>,
}

/// The form, filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builder {
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// Candidate and baseline.
    pub sides: [ChosenSide; 2],
    /// Whether both sides were measured in one experiment.
    pub in_one_experiment: bool,
}

impl Builder {
    /// Fills in the form.
    pub fn new(choice: Choice, stock: &Candidates) -> Self {
        let choice = if choice.is_empty() { default(&stock.runs) } else { choice };
        let (sides, in_one_experiment) = sides(&choice, stock);
        Self { fields: fields(&choice, stock), sides, in_one_experiment }
    }

    /// Whether there is nothing to choose from.
    pub fn is_empty(&self) -> bool {
        self.fields.iter().all(|field| field.groups.iter().all(|group| group.options.is_empty()))
    }

    /// The runs of both sides; none unless both have some.
    pub fn runs(&self) -> Vec<RunId> {
        if self.sides.iter().any(|side| side.runs.is_empty()) {
            return Vec::new();
        }
        self.sides.iter().flat_map(|side| side.runs.clone()).collect()
    }

    /// What the comparison distinguishes: labels if both sides are some, otherwise targets.
    pub fn by(&self) -> By {
        if self.sides.iter().all(|side| side.key.starts_with(LABEL)) { By::Label } else { By::Target }
    }

    /// The query of `/compare` for these runs.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("runs", &joined(&self.runs()));
        let by = self.by();
        if by == By::Label {
            query.append_pair("by", by.key());
        }
        let baseline = self.sides[1].key.trim_start_matches(LABEL);
        if !baseline.starts_with(BASELINE) {
            query.append_pair("baseline", baseline);
        }
        query.finish()
    }

    /// Whether two different sides are chosen.
    pub fn is_complete(&self) -> bool {
        let [candidate, against] = &self.sides;
        !candidate.key.is_empty() && !against.key.is_empty() && candidate.key != against.key
    }

    /// The form of a new run that measures both sides.
    pub fn new_run(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        // A run brings its scenario, size and load.
        query.extend_pairs(self.sides.iter().find_map(|side| side.runs.first()).map(|run| ("run", run.as_str())));
        query.extend_pairs(self.sides.iter().filter_map(|side| side.target.as_ref()).map(|target| ("target", target)));
        format!("/experiments/new?{}", query.finish())
    }
}

/// `name@version`, as comparisons call a target in one version.
fn key(run: &CandidateRun) -> String {
    run.version.as_ref().map_or_else(|| run.target.clone(), |version| format!("{}@{version}", run.target))
}

/// The two most recently measured targets of the newest cell that has two; the first by name is the baseline, as on the
/// page of their experiment.
fn default(measured: &[CandidateRun]) -> Choice {
    let mut groups: BTreeMap<&[String], Vec<String>> = BTreeMap::new();
    for run in measured {
        let keys = groups.entry(&run.values).or_default();
        let key = key(run);
        if !keys.contains(&key) {
            keys.push(key);
        }
        if keys.len() == 2 {
            keys.sort();
        }
        if let [against, candidate] = keys.as_slice() {
            let mut choice = Choice { candidate: candidate.clone(), against: against.clone(), ..Choice::default() };
            for (property, value) in Property::ALL.into_iter().zip(&run.values) {
                choice.value_mut(property).clone_from(value);
            }
            return choice;
        }
    }
    Choice::default()
}

fn fields(choice: &Choice, stock: &Candidates) -> Vec<Field> {
    let side = |name: &'static str, label, chosen: &str| {
        let targets = values(stock.runs.iter().map(key), chosen);
        let labels =
            values(stock.runs.iter().flat_map(|run| run.labels.iter().map(|name| format!("{LABEL}{name}"))), "");
        let baselines = values(stock.baselines.keys().map(|name| format!("{BASELINE}{name}")), "");
        let groups = [("Targets", targets), ("Labels", labels), ("Baselines", baselines)];
        let groups = groups.into_iter().filter(|(_, options)| !options.is_empty());
        let groups = groups.map(|(label, options)| Group { label, options }).collect();
        Field { key: name, label, none: "Choose", chosen: chosen.to_owned(), groups }
    };
    let sides = [side("candidate", "Candidate", &choice.candidate), side("against", "Baseline", &choice.against)];
    let property = |(place, property): (usize, Property)| {
        let chosen = choice.value(property);
        let options = values(stock.runs.iter().map(|run| run.values[place].clone()), chosen);
        let groups = vec![Group { label: "", options }];
        Field { key: property.key(), label: property.label(), none: "All", chosen: chosen.to_owned(), groups }
    };
    sides.into_iter().chain(Property::ALL.into_iter().enumerate().map(property)).collect()
}

/// Each value once, with its text. A chosen one stays visible, even if nothing has it any more.
fn values(all: impl Iterator<Item = String>, chosen: &str) -> Vec<(String, String)> {
    let is_named = chosen.starts_with(LABEL) || chosen.starts_with(BASELINE);
    let chosen = Some(chosen.to_owned()).filter(|chosen| !chosen.is_empty() && !is_named);
    let all: BTreeSet<String> = all.chain(chosen).collect();
    let text = |value: &String| {
        let name = value.strip_prefix(LABEL).or_else(|| value.strip_prefix(BASELINE));
        name.map_or_else(|| value.replacen('@', " ", 1), str::to_owned)
    };
    all.iter().map(|value| (value.clone(), text(value))).collect()
}

/// The runs of the newest experiment that measured both sides; otherwise those of the newest experiment of each.
fn sides(choice: &Choice, stock: &Candidates) -> ([ChosenSide; 2], bool) {
    let candidate = stock.side(&choice.candidate, choice);
    let against = stock.side(&choice.against, choice);
    let both = candidate.iter().find_map(|run| {
        let experiment = run.experiment.as_ref()?;
        against.iter().any(|other| other.experiment.as_ref() == Some(experiment)).then_some(experiment)
    });
    let side = |wanted: &str, runs: &[&CandidateRun]| {
        let is_named = wanted.starts_with(LABEL) || wanted.starts_with(BASELINE);
        let newest = runs.first().and_then(|run| run.experiment.as_ref());
        let from = both.or(newest);
        // Runs without an experiment, such as imports, count together.
        let belongs = |run: &&&CandidateRun| is_named || run.experiment.as_ref() == from;
        let chosen: Vec<&&CandidateRun> = runs.iter().filter(belongs).take(MAX_RUNS / 2).collect();
        let own = (!is_named && !wanted.is_empty()).then(|| wanted.split('@').next().unwrap_or_default().to_owned());
        ChosenSide {
            key: wanted.to_owned(),
            runs: chosen.iter().map(|run| run.id.clone()).collect(),
            finished_at_ms: chosen.first().map(|run| run.finished_at_ms),
            target: chosen.first().map(|run| run.target.clone()).or(own),
        }
    };
    ([side(&choice.candidate, &candidate), side(&choice.against, &against)], both.is_some())
}

#[cfg(test)]
mod tests;
