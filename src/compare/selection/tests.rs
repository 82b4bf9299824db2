//! Tests of the selection of comparable runs.

use super::*;
use crate::{
    compare::testing::{run, sized},
    runs::{
        load::tests::{rate, vus, vus_stages},
        model::RunSpec,
    },
};

#[test]
fn runs_of_one_target_in_one_setting_are_its_repetitions() {
    let selection = select(vec![run("servy", 2), run("gosherve", 1), run("servy", 1)], &Marks::default(), By::Target);
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
fn runs_of_different_kinds_are_no_repetitions_of_each_other() {
    let remote = |repetition| Run { target_kind: Some(TargetKind::Url), ..run("servy", repetition) };
    let mut failed = Run { target_kind: None, ..run("gosherve", 3) };
    failed.verdict = None;
    let runs = with_versions(vec![run("servy", 1), remote(1), remote(2), run("gosherve", 1), failed]);
    let selection = select(runs, &Marks::default(), By::Target);
    let subjects: Vec<_> = selection.subjects.iter().map(|one| (one.key.as_str(), one.label.as_str())).collect();
    let expected = [
        ("gosherve@1.0", "gosherve (process)"),
        ("servy@1.0 (process)", "servy (process)"),
        ("servy@1.0 (url)", "servy (url)"),
    ];
    assert_eq!(subjects, expected);
    assert_eq!(selection.groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), [2, 1, 2]);
}

#[test]
fn runs_of_different_code_are_no_repetitions_of_each_other() {
    let coded = |code: &str, repetition| Run { target_identity: Some(code.to_owned()), ..run("servy", repetition) };
    let mut failed = Run { target_identity: None, ..run("servy", 3) };
    failed.verdict = None;
    let (old, new) = ("code:aaaaaaaaaa", "code:bbbbbbbbbb");
    let runs = with_versions(vec![coded(old, 1), coded(new, 1), coded(new, 2), failed, run("gosherve", 1)]);
    let selection = select(runs.clone(), &Marks::default(), By::Target);
    let subjects: Vec<_> = selection.subjects.iter().map(|one| (one.key.as_str(), one.label.as_str())).collect();
    let expected = [
        ("gosherve@1.0", "gosherve"),
        ("servy@1.0 (code aaaaaaaa)", "servy (code aaaaaaaa)"),
        ("servy@1.0 (code bbbbbbbb)", "servy (code bbbbbbbb)"),
    ];
    assert_eq!(subjects, expected);
    assert_eq!(selection.groups.iter().map(|group| group.runs.len()).sum::<usize>(), 5, "the failed run has a column");
    let by_size = select(runs, &Marks::default(), By::Size);
    let labels: Vec<_> = by_size.settings.iter().map(|setting| setting.label.as_str()).collect();
    assert_eq!(labels, ["gosherve@1.0 · gosherve-sum", "servy@1.0 · code aaaaaaaa", "servy@1.0 · code bbbbbbbb"]);
}

#[test]
fn sizes_and_loads_are_never_mixed_and_sizes_are_sorted() {
    let mut hard = sized("servy", 1, 4.0);
    (hard.spec.load, hard.spec.vus) = (Some(vus(50, 10.0)), Some(50));
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
    let loaded = |load: Load| {
        let run = run("servy", 1);
        Run { spec: run.spec.clone().under(load), ..run }
    };
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
    let import = Run { spec: RunSpec { load: None, ..run("servy", 1).spec }, ..run("servy", 1) };
    assert_eq!(select(vec![import, run("servy", 2)], &Marks::default(), By::Target).settings.len(), 2);
}

#[test]
fn two_revisions_of_a_scenario_are_two_settings() {
    let mut other = run("servy", 1);
    other.spec.scenario_sha256 = Some("ffffffff00000000".to_owned());
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
