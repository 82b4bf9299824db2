//! Groups the chosen runs into comparable cells: subjects by settings. Pure.
//!
//! Only runs of one setting are compared with each other: machine size, scenario revision, parameters and load are the
//! same. Runs of one target in one setting are its repetitions. In a comparison by something other than the target, the
//! target is part of the setting instead.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use brewbench_wire::{
    load::{Load, Shape},
    target::TargetKind,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    compare::setting::{Setting, label, setting_key, setting_of, settings},
    runs::{
        code::{code_of, describe_code},
        load,
        model::{Run, RunSize},
    },
    web::series_style::{Mark, Marks},
};

/// What distinguishes the subjects of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Target and version.
    #[default]
    Target,
    /// Machine size.
    Size,
    /// Load.
    Load,
    /// Agent.
    Agent,
    /// Labels of the run.
    Label,
    /// Each of two runs that are not comparable otherwise; nothing is decided.
    Run,
}

impl By {
    /// The values to choose from, in display order.
    pub const ALL: [Self; 6] = [Self::Target, Self::Size, Self::Load, Self::Agent, Self::Label, Self::Run];

    /// Name in URLs and commands.
    pub fn key(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Size => "size",
            Self::Load => "load",
            Self::Agent => "agent",
            Self::Label => "label",
            Self::Run => "run",
        }
    }

    /// Name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target and version",
            Self::Size => "machine size",
            Self::Load => "load",
            Self::Agent => "agent",
            Self::Label => "label",
            Self::Run => "single run",
        }
    }

    /// What to compare picked runs by: two that do not meet in a setting are shown side by side.
    #[must_use]
    pub fn of_picked(self, runs: &[Run]) -> Self {
        let [one, other] = runs else { return self };
        if !one.counts() || !other.counts() {
            return self;
        }
        let meet = setting_key(one, self) == setting_key(other, self);
        let differ = (key(one, self), code_of(one)) != (key(other, self), code_of(other));
        if self == Self::Target && !(meet && differ) { Self::Run } else { self }
    }
}

/// A compared subject: by default a target in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Subject {
    /// Name in URLs: `name` or `name@version`.
    pub key: String,
    /// Name of the target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// How it was provided: `process`, `container`, `vm`, `url` or `kubernetes`; null if unknown, or if targets are not compared.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub kind: Option<TargetKind>,
    /// What identifies its code, followed by the experiment if that is only partly known; null if unknown, or if
    /// targets are not compared.
    #[serde(default)]
    pub code: Option<String>,
    /// Colour and shape. Versions of one target share the colour and differ in shape.
    pub mark: Mark,
    /// Displayed name, with the version only if another version is compared too, and with the kind or the
    /// code only if other ones are.
    pub label: String,
}

impl Subject {
    /// Whether a run belongs to it. Runs of different kinds or of different code are not repetitions of each other.
    fn has(&self, run: &Run, by: By) -> bool {
        match by {
            By::Target => {
                let is_version =
                    (&self.target, &self.version, self.kind) == (&run.spec.target, &run.version, run.target_kind);
                is_version && self.code == code_of(run)
            }
            By::Size | By::Load | By::Agent | By::Label | By::Run => self.key == key(run, by),
        }
    }
}

/// The runs of one subject in one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Index in [`Selection::subjects`].
    pub subject: usize,
    /// Index in [`Selection::settings`].
    pub setting: usize,
    /// All runs by repetition, including those that don't count.
    pub runs: Vec<Run>,
}

/// Runs grouped by subject and setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// By name and version.
    pub subjects: Vec<Subject>,
    /// By scenario, load and size.
    pub settings: Vec<Setting>,
    /// By setting, then subject.
    pub groups: Vec<Group>,
}

/// Completes version, kind and identity of runs that failed before they were known.
///
/// They come from other runs of the same target and experiment, so that all share one column.
pub fn with_versions(mut runs: Vec<Run>) -> Vec<Run> {
    let versions = only_values(&runs, |run| run.version.clone());
    let kinds = only_values(&runs, |run| run.target_kind);
    for run in runs.iter_mut().filter(|run| !run.counts()) {
        let place = (run.experiment.clone(), run.spec.target.clone());
        run.version = run.version.take().or_else(|| versions.get(&place).cloned().flatten());
        run.target_kind = run.target_kind.or_else(|| kinds.get(&place).copied().flatten());
    }
    let identified = |run: &Run| Some((experiment_target(run), run.target_identity.clone()?));
    let identities: BTreeMap<_, _> = runs.iter().rev().filter_map(identified).collect();
    for run in runs.iter_mut().filter(|run| !run.counts() && run.target_identity.is_none()) {
        // It measured nothing, so it does not matter which code it would have been.
        run.target_identity = identities.get(&experiment_target(run)).cloned();
    }
    runs
}

/// A target in one version in an experiment.
type ExperimentTarget = (Option<ExperimentId>, String, Option<String>);

fn experiment_target(run: &Run) -> ExperimentTarget {
    (run.experiment.clone(), run.spec.target.clone(), run.version.clone())
}

/// Targets of experiments, with the value that all their runs share.
type OnlyValues<T> = BTreeMap<(Option<ExperimentId>, String), Option<T>>;

fn only_values<T: PartialEq>(runs: &[Run], value: impl Fn(&Run) -> Option<T>) -> OnlyValues<T> {
    let mut known = OnlyValues::new();
    for run in runs {
        let Some(value) = value(run) else { continue };
        match known.entry((run.experiment.clone(), run.spec.target.clone())) {
            Entry::Occupied(mut other) => {
                let is_same = other.get().as_ref() == Some(&value);
                other.insert(Some(value).filter(|_| is_same));
            }
            Entry::Vacant(none) => drop(none.insert(Some(value))),
        }
    }
    known
}

/// Groups runs by subject and setting. The result does not depend on their order.
pub fn select(runs: Vec<Run>, marks: &Marks, by: By) -> Selection {
    let subjects = match by {
        By::Target => targets(&runs, marks),
        By::Run => single_runs(&runs, marks),
        _ => others(&runs, by),
    };
    let (keys, settings) = settings(&runs, by);
    let mut groups: Vec<Group> = Vec::new();
    for run in runs {
        let place = |found: Option<usize>| found.unwrap_or_default();
        let subject = place(subjects.iter().position(|subject| subject.has(&run, by)));
        let own = setting_key(&run, by);
        let setting = place(keys.iter().position(|key| *key == own));
        match groups.iter_mut().find(|group| (group.subject, group.setting) == (subject, setting)) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { subject, setting, runs: vec![run] }),
        }
    }
    groups.sort_by_key(|group| (group.setting, group.subject));
    for group in &mut groups {
        group.runs.sort_by(|a, b| (a.repetition, &a.id).cmp(&(b.repetition, &b.id)));
    }
    Selection { subjects, settings, groups }
}

pub(crate) fn key(run: &Run, by: By) -> String {
    match by {
        By::Target => key_of(&run.spec.target, run.version.as_deref()),
        By::Size => run.spec.size.as_ref().map_or_else(|| "unknown size".to_owned(), |size| size.name.clone()),
        By::Load => load_of(run).unwrap_or_else(|| "unknown load".to_owned()),
        By::Agent => run.agent.clone().unwrap_or_else(|| "unknown agent".to_owned()),
        By::Label if run.labels.is_empty() => "no label".to_owned(),
        By::Label => run.labels.join(", "),
        By::Run => run.id.to_string(),
    }
}

fn key_of(target: &str, version: Option<&str>) -> String {
    version.map_or_else(|| target.to_owned(), |version| format!("{target}@{version}"))
}

pub(crate) fn load_of(run: &Run) -> Option<String> {
    load::describe_with(&run.spec, load::with_unusual_max_vus).map(|load| load.replace('\u{a0}', " "))
}

/// Returns sizes, loads, agents or labels as subjects, smallest first, with colours by position.
pub(crate) fn others(runs: &[Run], by: By) -> Vec<Subject> {
    let mut all: Vec<&Run> = runs.iter().collect();
    let cores = |run: &Run| run.spec.size.as_ref().map_or(0.0, RunSize::total_vcpus);
    all.sort_by(|a, b| match by {
        By::Size => cores(a).total_cmp(&cores(b)),
        By::Load => (peak(a), load_of(a)).cmp(&(peak(b), load_of(b))),
        By::Target | By::Agent | By::Label | By::Run => key(a, by).cmp(&key(b, by)),
    });
    let mut keys: Vec<String> = Vec::new();
    for key in all.into_iter().map(|run| key(run, by)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let subject = |(place, key): (usize, String)| Subject {
        target: key.clone(),
        version: None,
        kind: None,
        code: None,
        mark: Mark(place),
        label: key.clone(),
        key,
    };
    keys.into_iter().enumerate().map(subject).collect()
}

/// Returns runs as subjects, each named after what distinguishes it from the others.
fn single_runs(runs: &[Run], marks: &Marks) -> Vec<Subject> {
    let all: Vec<Setting> = runs.iter().map(|run| setting_of(run, By::Run)).collect();
    let mut taken: Vec<Mark> = Vec::new();
    let subject = |(run, setting): (&Run, &Setting)| {
        let mark = marks.of(&run.spec.target).beside(&taken);
        taken.push(mark);
        let label = Some(label(setting, &all)).filter(|label| !label.is_empty());
        let is_only = runs.iter().filter(|other| other.repetition == run.repetition).count() == 1;
        // The last characters of an id are random.
        let which = if is_only {
            format!("repetition {}", run.repetition)
        } else {
            format!("…{}", last_characters(run.id.as_str()))
        };
        let same = || format!("{} {which}", run.spec.target);
        Subject {
            key: key(run, By::Run),
            target: run.spec.target.clone(),
            version: run.version.clone(),
            kind: None,
            code: None,
            mark,
            label: label.unwrap_or_else(same),
        }
    };
    runs.iter().zip(&all).map(subject).collect()
}

fn last_characters(id: &str) -> &str {
    id.char_indices().rev().nth(5).map_or(id, |(at, _)| &id[at..])
}

pub(crate) fn peak(run: &Run) -> u32 {
    run.spec.load.as_ref().and_then(Load::shape).map_or(0, Shape::peak)
}

fn targets(runs: &[Run], marks: &Marks) -> Vec<Subject> {
    type Named = (String, Option<String>, Option<TargetKind>);
    let all: BTreeSet<(Named, Option<String>)> = runs
        .iter()
        .map(|run| ((run.spec.target.clone(), run.version.clone(), run.target_kind), code_of(run)))
        .collect();
    let names: BTreeSet<Named> = all.iter().map(|(named, _)| named.clone()).collect();
    let versions = |target: &str| {
        let versions: BTreeSet<_> =
            names.iter().filter(|(name, ..)| name == target).map(|(_, version, _)| version).collect();
        versions.len()
    };
    let kinds: BTreeSet<_> = names.iter().filter_map(|(.., kind)| *kind).collect();
    let mut taken: Vec<Mark> = Vec::new();
    let subject = |(named, code): &(Named, Option<String>)| {
        let (target, version, kind) = named;
        let mark = marks.of(target).beside(&taken);
        taken.push(mark);
        let mut label = match version {
            Some(version) if versions(target) > 1 => format!("{target} {version}"),
            _ => target.clone(),
        };
        let mut key = key_of(target, version.as_deref());
        if let Some(kind) = kind.filter(|_| kinds.len() > 1) {
            label = format!("{label} ({kind})");
            // One target may be provided in several ways.
            let is_same = |other: &&Named| (&other.0, &other.1) == (target, version);
            if names.iter().filter(is_same).count() > 1 {
                key = format!("{key} ({kind})");
            }
        }
        if all.iter().filter(|(other, _)| other == named).count() > 1 {
            let words = describe_code(code.as_deref());
            (label, key) = (format!("{label} ({words})"), format!("{key} ({words})"));
        }
        Subject { key, target: target.clone(), version: version.clone(), kind: *kind, code: code.clone(), mark, label }
    };
    all.iter().map(subject).collect()
}

#[cfg(test)]
mod tests;
