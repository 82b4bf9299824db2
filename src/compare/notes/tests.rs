//! Tests of each note, and of comparisons without notes.

use crate::{
    app::ids::RunId,
    catalog::model::Engine,
    compare::{
        metric::Metric,
        statistics::Leader,
        testing::{failed, faster, judged, repeated, run, sized},
        trust::TrustLevel,
        view::Comparison,
    },
    results::verdict::cell::TOO_NOISY,
    runs::{
        model::Run,
        verdict::{Reason, Verdict},
    },
    web::series_style::Marks,
};

fn titles(runs: Vec<Run>) -> Vec<String> {
    Comparison::new(runs, &Marks::default(), None)
        .notes
        .into_iter()
        .map(|note| format!("{} {}", note.title, note.text))
        .collect()
}

fn both() -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| run("servy", n)));
    runs
}

#[test]
fn clean_runs_of_one_setting_have_no_notes() {
    assert_eq!(titles(both()), Vec::<String>::new());
}

#[test]
fn excluded_runs_are_counted() {
    let mut runs = both();
    runs.push(judged(run("servy", 4), Verdict::Invalid, "all failed"));
    runs.push(failed(run("servy", 5), "did not start"));
    assert_eq!(titles(runs)[0], "2 runs excluded. 1 failed, 1 invalid; see the reasons below the figures.");
}

#[test]
fn runs_whose_steadiness_nobody_knows_have_one_note_and_stay_reliable() {
    let short = |mut run: Run| {
        run.spec.duration_s = Some(3.0);
        run
    };
    let runs: Vec<Run> = both().into_iter().map(short).collect();
    assert_eq!(titles(runs.clone()), ["Steadiness not judged. Too short: 6 runs of 3 s."]);
    let trust = Comparison::new(runs, &Marks::default(), None).answer.trust;
    assert_eq!(trust.level, TrustLevel::Reliable, "{trust:?}");
    let mut noisy = both();
    noisy[0].reasons.push(Reason::note(TOO_NOISY, "steadiness not judged"));
    assert_eq!(titles(noisy), ["Steadiness not judged. Scatter too much: 1 cell."]);
}

#[test]
fn confounders_are_listed() {
    let mut runs = both();
    runs[11].agent = Some("laptop".to_owned());
    runs[11].engine = Some(Engine { name: "k6".to_owned(), version: Some("1.0.0".to_owned()) });
    runs[10].target_identity = Some("other".to_owned());
    let notes = titles(runs.clone());
    let code = "Runs of one version are no repetitions of each other. servy 1.0 (its code differs): compared as targets of \
                their own. Raise the version with each change.";
    assert_eq!(notes.iter().filter(|note| *note == code).count(), 1, "{notes:?}");
    for expected in ["Agents differ. bench-01 and laptop.", "Load generators differ. k6 1.0.0 and k6 1.8.1."] {
        assert!(notes.iter().any(|note| note == expected), "{notes:?}");
    }
    let notes = Comparison::new(runs, &Marks::default(), None).notes;
    let pair = notes.iter().find_map(|note| note.environments.clone()).expect("two machines");
    assert_eq!(pair.each_ref().map(RunId::as_str), ["gosherve-1", "servy-6"], "one run of each");
}

#[test]
fn balanced_runs_from_several_machines_have_a_note() {
    let place = |run: Run| {
        let agent = if run.repetition > 3 { "laptop" } else { "bench-01" };
        Run { agent: Some(agent.to_owned()), experiment: Some("night".to_owned().into()), ..run }
    };
    let mut runs: Vec<Run> = both().into_iter().map(place).collect();
    let notes = titles(runs.clone());
    assert!(notes[0].starts_with("Measured on several machines. All cells have the same number of runs"), "{notes:?}");
    assert!(notes[0].contains("bench-01 and laptop"), "{notes:?}");
    runs[0].agent = Some("laptop".to_owned());
    assert_eq!(titles(runs)[0], "Agents differ. bench-01 and laptop.");
}

#[test]
fn a_size_without_runs_of_one_target_has_a_note() {
    let mut runs = repeated(|n| sized("gosherve", n, 1.0));
    runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
    runs.extend(repeated(|n| sized("servy", n, 4.0)));
    let notes = titles(runs);
    assert_eq!(notes[0], "Some targets have no run that counts in some settings. servy at 1 vCPU / 2 GiB.");
    assert!(notes[1].starts_with("Machine sizes differ."), "{notes:?}");
}

#[test]
fn percentiles_from_merged_histograms_have_a_note() {
    let mut runs = both();
    for run in &mut runs {
        run.spec.generators = vec!["gen-1".to_owned(), "gen-2".to_owned()];
    }
    let notes = titles(runs);
    let expected = "Percentiles from merged histograms. The load of 12 runs";
    assert!(notes.len() == 1 && notes[0].starts_with(expected), "{notes:?}");
}

#[test]
fn a_percentile_of_too_few_requests_is_shown_and_not_judged() {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
    for run in &mut runs {
        run.figures.requests = Some(40);
    }
    let comparison = Comparison::new(runs, &Marks::default(), None);
    let row = &comparison.rows[0];
    assert_eq!((row.leader(Metric::P99Ms), row.leader(Metric::P50Ms)), (Leader::Missing, Leader::Of(1)));
    assert!(row.cells[1].stat(Metric::P99Ms).spread.is_some(), "the percentile is still shown");
    let note = comparison.notes.iter().find(|note| note.title == "Too few requests.").expect("a note");
    assert!(note.text.starts_with("p99 needs at least 1,000 requests per run; 12 runs have fewer"), "{}", note.text);
}

#[test]
fn a_metric_missing_from_summaries_has_a_note() {
    let mut runs = both();
    for run in &mut runs {
        run.figures.p99_ms = None;
    }
    assert_eq!(titles(runs), ["Some runs lack a metric: p99 (12 runs). They are not used for it."]);
}
