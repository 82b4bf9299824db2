//! Groups the chosen runs into comparable cells: subjects by settings. Pure.
//!
//! Only runs of one setting are compared with each other: machine size, scenario revision, parameters and load are the
//! same. Runs of one target in one setting are its repetitions. In a comparison by something other than the target, the
//! target is part of the setting instead.

use std::{cmp::Ordering, collections::BTreeMap};

use brewbench_agent::wire::load::{Load, Shape};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    compare::setting::{Setting, order, setting_of, settings},
    runs::{load, model::Run},
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
}

impl By {
    /// All values, in display order.
    pub const ALL: [Self; 5] = [Self::Target, Self::Size, Self::Load, Self::Agent, Self::Label];

    /// Name in URLs and commands.
    pub fn key(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Size => "size",
            Self::Load => "load",
            Self::Agent => "agent",
            Self::Label => "label",
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
        }
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
    /// Colour and shape. Versions of one target share the colour and differ in shape.
    pub mark: Mark,
    /// Displayed name, with the version only if another version is compared too.
    pub label: String,
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

/// Completes the version of runs that failed before it was known.
///
/// The version comes from other runs of the same target and experiment, so that all share one column.
pub fn with_versions(mut runs: Vec<Run>) -> Vec<Run> {
    let mut known: BTreeMap<(Option<ExperimentId>, String), Option<String>> = BTreeMap::new();
    for run in &runs {
        let Some(version) = &run.version else { continue };
        known
            .entry((run.experiment.clone(), run.target.clone()))
            .and_modify(|other| *other = other.take().filter(|other| other == version))
            .or_insert_with(|| Some(version.clone()));
    }
    for run in runs.iter_mut().filter(|run| run.version.is_none() && !run.counts()) {
        run.version = known.get(&(run.experiment.clone(), run.target.clone())).cloned().flatten();
    }
    runs
}

/// Groups runs by subject and setting. The result does not depend on their order.
pub fn select(runs: Vec<Run>, marks: &Marks, by: By) -> Selection {
    let subjects = if by == By::Target { targets(&runs, marks) } else { others(&runs, by) };
    let settings = settings(&runs, by);
    let mut groups: Vec<Group> = Vec::new();
    for run in runs {
        let place = |found: Option<usize>| found.unwrap_or_default();
        let subject = place(subjects.iter().position(|subject| subject.key == key(&run, by)));
        let setting = place(settings.iter().position(|setting| same(setting, &setting_of(&run, by))));
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
        By::Target => match &run.version {
            Some(version) => format!("{}@{version}", run.target),
            None => run.target.clone(),
        },
        By::Size => run.size.as_ref().map_or_else(|| "unknown size".to_owned(), |size| size.name.clone()),
        By::Load => load_of(run).unwrap_or_else(|| "unknown load".to_owned()),
        By::Agent => run.agent.clone().unwrap_or_else(|| "unknown agent".to_owned()),
        By::Label if run.labels.is_empty() => "no label".to_owned(),
        By::Label => run.labels.join(", "),
    }
}

pub(crate) fn load_of(run: &Run) -> Option<String> {
    run.load.as_ref().map(|load| load::with_unusual_max_vus(load).replace('\u{a0}', " "))
}

/// Returns sizes, loads, agents or labels as subjects, smallest first, with colours by position.
pub(crate) fn others(runs: &[Run], by: By) -> Vec<Subject> {
    let mut all: Vec<&Run> = runs.iter().collect();
    let cores = |run: &Run| run.size.as_ref().map_or(0.0, |size| size.vcpus);
    all.sort_by(|a, b| match by {
        By::Size => cores(a).total_cmp(&cores(b)),
        By::Load => (peak(a), load_of(a)).cmp(&(peak(b), load_of(b))),
        By::Target | By::Agent | By::Label => key(a, by).cmp(&key(b, by)),
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
        mark: Mark(place),
        label: key.clone(),
        key,
    };
    keys.into_iter().enumerate().map(subject).collect()
}

pub(crate) fn peak(run: &Run) -> u32 {
    run.load.as_ref().and_then(Load::shape).map_or(0, Shape::peak)
}

fn targets(runs: &[Run], marks: &Marks) -> Vec<Subject> {
    let mut names: Vec<_> =
        runs.iter().map(|run| (run.target.clone(), run.version.clone(), key(run, By::Target))).collect();
    names.sort();
    names.dedup_by(|a, b| a.2 == b.2);
    let versions = |target: &str| names.iter().filter(|(name, ..)| name == target).count();
    let mut taken: Vec<Mark> = Vec::new();
    let subject = |(target, version, key): &(String, Option<String>, String)| {
        let mark = marks.of(target).beside(&taken);
        taken.push(mark);
        let label = match version {
            Some(version) if versions(target) > 1 => format!("{target} {version}"),
            _ => target.clone(),
        };
        Subject { key: key.clone(), target: target.clone(), version: version.clone(), mark, label }
    };
    names.iter().map(subject).collect()
}

pub(crate) fn same(one: &Setting, other: &Setting) -> bool {
    order(one, other) == Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{run, sized},
        runs::load::tests::{rate, vus, vus_stages},
    };

    #[test]
    fn runs_of_one_target_in_one_setting_are_its_repetitions() {
        let selection =
            select(vec![run("servy", 2), run("gosherve", 1), run("servy", 1)], &Marks::default(), By::Target);
        let labels: Vec<_> = selection.subjects.iter().map(|subject| subject.label.as_str()).collect();
        assert_eq!(labels, ["gosherve", "servy"]);
        assert_eq!(selection.settings.len(), 1);
        assert_eq!(selection.settings[0].label, "hash · 10 VUs · 2 vCPU / 4 GiB");
        let repetitions: Vec<_> = selection.groups[1].runs.iter().map(|run| run.repetition).collect();
        assert_eq!((selection.groups[1].subject, repetitions), (1, vec![1, 2]));
    }

    #[test]
    fn the_colour_of_a_target_does_not_depend_on_the_other_targets() {
        let slots = [("a", 5), ("b", 2), ("c", 0)];
        let marks: Marks = slots.map(|(name, slot)| (name.to_owned(), Mark(slot))).into_iter().collect();
        let there = select(vec![run("a", 1), run("b", 1), run("c", 1)], &marks, By::Target).subjects;
        let back = select(vec![run("c", 1), run("b", 1), run("a", 1)], &marks, By::Target).subjects;
        assert_eq!(there, back);
        assert_eq!(there.iter().map(|subject| subject.mark.0).collect::<Vec<_>>(), [5, 2, 0]);
        assert_eq!(select(vec![run("b", 1)], &marks, By::Target).subjects[0].mark, Mark(2));
    }

    #[test]
    fn two_versions_of_a_target_are_two_subjects() {
        let mut old = run("servy", 1);
        old.version = Some("1.0".to_owned());
        let mut new = run("servy", 1);
        new.version = Some("2.0".to_owned());
        let subjects = select(vec![new, old, run("gosherve", 1)], &Marks::default(), By::Target).subjects;
        let labels: Vec<_> = subjects.iter().map(|subject| subject.label.as_str()).collect();
        assert_eq!(labels, ["gosherve", "servy 1.0", "servy 2.0"]);
        assert_eq!(subjects[1].key, "servy@1.0");
        let [_, old, new] = subjects.as_slice() else { panic!("three") };
        assert_eq!(old.mark.role(), new.mark.role());
        assert_ne!(old.mark.symbol(), new.mark.symbol());
    }

    #[test]
    fn sizes_and_loads_are_never_mixed_and_sizes_are_sorted() {
        let mut hard = sized("servy", 1, 4.0);
        (hard.load, hard.vus) = (Some(vus(50, 10.0)), Some(50));
        let selection = select(
            vec![sized("servy", 1, 16.0), sized("servy", 1, 4.0), sized("servy", 1, 1.0), hard],
            &Marks::default(),
            By::Target,
        );
        let labels: Vec<_> = selection.settings.iter().map(|setting| setting.label.as_str()).collect();
        let vcpus = |n: u32| format!("10 VUs · {n} vCPU / {} GiB", 2 * n);
        assert_eq!(labels, [&vcpus(1), &vcpus(4), &vcpus(16), "50 VUs · 4 vCPU / 8 GiB"]);
        assert_eq!(selection.groups.len(), 4);
    }

    #[test]
    fn different_loads_are_never_mixed_but_durations_may_differ() {
        let loaded = |load: Load| Run { vus: load::constant_vus(&load), load: Some(load), ..run("servy", 1) };
        let labels = |loads: Vec<Load>| {
            let settings = select(loads.into_iter().map(loaded).collect(), &Marks::default(), By::Target).settings;
            settings.into_iter().map(|setting| setting.label.replace('\u{a0}', " ")).collect::<Vec<_>>()
        };
        assert_eq!(
            labels(vec![vus(10, 5.0), rate(2_000, 5.0), rate(300, 5.0), vus_stages("1s:10,1s:0"), vus_stages("2s:10")]),
            [
                "0 → 10 VUs in 1 stage (2s:10)",
                "0 → 10 → 0 VUs in 2 stages (1s:10,1s:0)",
                "300 iterations/s",
                "2,000 iterations/s",
                "10 VUs"
            ]
        );
        assert_eq!(labels(vec![vus(10, 5.0), vus(10, 50.0)]).len(), 1);
        let import = Run { load: None, ..run("servy", 1) };
        assert_eq!(select(vec![import, run("servy", 2)], &Marks::default(), By::Target).settings.len(), 2);
    }

    #[test]
    fn two_revisions_of_a_scenario_are_two_settings() {
        let mut other = run("servy", 1);
        other.scenario_sha256 = Some("ffffffff00000000".to_owned());
        let selection = select(vec![run("servy", 1), other], &Marks::default(), By::Target);
        let labels: Vec<_> = selection.settings.iter().map(|setting| setting.label.as_str()).collect();
        assert_eq!(labels, ["revision 00aa00aa", "revision ffffffff"]);
    }

    #[test]
    fn a_comparison_by_size_has_the_target_in_the_setting() {
        let runs = [16.0, 1.0, 4.0].map(|vcpus| sized("servy", 1, vcpus)).to_vec();
        let selection = select(runs.clone(), &Marks::default(), By::Size);
        let labels: Vec<_> = selection.subjects.iter().map(|subject| subject.label.as_str()).collect();
        assert_eq!(labels, ["1 vCPU / 2 GiB", "4 vCPU / 8 GiB", "16 vCPU / 32 GiB"]);
        assert_eq!(selection.settings.len(), 1);
        assert_eq!(selection.settings[0].label, "hash · 10 VUs · servy@1.0");
        assert_eq!(select(runs, &Marks::default(), By::Load).settings.len(), 3);
    }

    #[test]
    fn subjects_can_be_agents_or_labels() {
        let mut runs = vec![run("servy", 1), run("servy", 2), run("gosherve", 1)];
        runs[1].agent = Some("laptop".to_owned());
        runs[1].labels = vec!["musl".to_owned()];
        let keys = |by| {
            let subjects = select(runs.clone(), &Marks::default(), by).subjects;
            subjects.into_iter().map(|subject| subject.key).collect::<Vec<_>>()
        };
        assert_eq!(
            (keys(By::Agent), keys(By::Label)),
            (vec!["bench-01".to_owned(), "laptop".to_owned()], vec!["musl".to_owned(), "no label".to_owned()])
        );
    }
}
