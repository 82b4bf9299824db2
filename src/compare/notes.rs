//! Notes on a comparison: everything that limits the value of its figures. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    cell::{Cell, Row, RunCounts},
    metric::Metric,
    selection::{By, Subject},
    sweep::Sweep,
};
use crate::{
    app::ids::RunId,
    compare::{
        comparability::Circumstance,
        excluded::{ExcludedRun, counts},
        note::{Level, Note},
        significance::Questions,
        stat::Stat,
        statistics::{Decision, MIN_EFFECT},
    },
    metrics,
    results::verdict::cell::{TOO_NOISY, are_too_short},
    runs::{code::are_comparable, model::Run},
    web::format::{self, plural},
};

/// Returns the notes on a comparison.
pub fn notes(subjects: &[Subject], rows: &[Row], questions: Questions, excluded: &[ExcludedRun]) -> Vec<Note> {
    let mut notes = Vec::new();
    // If no run counts, the result card says so.
    if rows.iter().any(|row| row.compared_cells().count() > 0) {
        notes.extend(excluded_note(excluded));
    }
    notes.extend(too_few(subjects, rows, questions));
    notes.extend(absent(subjects, rows));
    notes.extend(code(subjects));
    notes.extend(confounders(rows));
    notes.extend(several_machines(rows));
    notes.extend(not_interleaved(subjects, rows));
    notes.extend(looks(questions));
    notes.extend(missing_figures(rows));
    notes.extend(too_few_requests(rows));
    notes.extend(merged_histograms(rows));
    notes.extend(rounded(rows));
    notes.extend(steadiness(rows));
    notes.extend(settings(rows));
    notes.extend(unfinished(rows));
    notes
}

/// Returns a note on requested runs that do not exist.
pub fn missing(ids: &[RunId]) -> Option<Note> {
    let text = || format!("Deleted, or mistyped in the address: {}.", listed(ids.iter().map(RunId::to_string)));
    (!ids.is_empty()).then(|| doubt(format!("{} not found.", plural(ids.len(), "run")), text()))
}

pub(super) fn doubt(title: impl Into<String>, text: impl Into<String>) -> Note {
    Note { level: Level::Doubt, title: title.into(), text: text.into(), environments: None }
}

pub(super) fn info(title: impl Into<String>, text: impl Into<String>) -> Note {
    Note { level: Level::Info, title: title.into(), text: text.into(), environments: None }
}

/// Lists a few names, and the number of the others.
pub(crate) fn listed(names: impl Iterator<Item = String>) -> String {
    const MAX_NAMED: usize = 4;
    let mut names: Vec<String> = names.collect();
    if names.len() > MAX_NAMED {
        let more = names.len() - (MAX_NAMED - 1);
        names.truncate(MAX_NAMED - 1);
        names.push(format!("{more} more"));
    }
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn runs(rows: &[Row]) -> impl Iterator<Item = &Run> {
    rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs)
}

fn total(rows: &[Row], of: impl Fn(&RunCounts) -> usize) -> usize {
    rows.iter().flat_map(|row| &row.cells).map(|cell| of(&cell.counts)).sum()
}

fn excluded_note(excluded: &[ExcludedRun]) -> Option<Note> {
    let title = format!("{} excluded.", plural(excluded.len(), "run"));
    let text = format!("{}; see the reasons below the figures.", counts(excluded));
    // Cancelled runs cast no doubt on the others.
    let note = if excluded.iter().all(|run| run.state == "cancelled") { info } else { doubt };
    (!excluded.is_empty()).then(|| note(title, text))
}

/// Metrics that too few repetitions answer.
fn too_few(subjects: &[Subject], rows: &[Row], questions: Questions) -> Option<Note> {
    let mut metrics = BTreeSet::new();
    let mut names = BTreeSet::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        for stat in cell.stats.iter().filter(|stat| stat.decision == Some(Decision::TooFew)) {
            metrics.insert(stat.metric.name());
            names.insert(subjects[cell.subject].label.clone());
        }
    }
    let text = format!(
        "{}: {} cannot be decided yet. With {} repetitions on each side every question can be.",
        listed(names.iter().cloned()),
        listed(metrics.iter().map(|name| (*name).to_owned())),
        questions.enough
    );
    (!names.is_empty()).then(|| info("Too little data for some metrics.", text))
}

/// Subjects without runs that count in settings where others have some.
fn absent(subjects: &[Subject], rows: &[Row]) -> Option<Note> {
    let mut gaps = Vec::new();
    for row in rows {
        let present: Vec<usize> = row.compared_cells().map(|cell| cell.subject).collect();
        for (place, subject) in subjects.iter().enumerate() {
            if !present.contains(&place) && !present.is_empty() {
                gaps.push(match rows.len() {
                    1 => subject.label.clone(),
                    _ => format!("{} at {}", subject.label, row.setting.label),
                });
            }
        }
    }
    let scope = if rows.len() == 1 { "" } else { " in some settings" };
    let title = format!("Some targets have no run that counts{scope}.");
    (!gaps.is_empty()).then(|| doubt(title, format!("{}.", listed(gaps.into_iter()))))
}

/// Versions whose code is different in some runs: a hand-written version does not change by itself.
fn code(subjects: &[Subject]) -> Option<Note> {
    let mut versions: BTreeMap<(&str, Option<&str>), Vec<&Subject>> = BTreeMap::new();
    for subject in subjects.iter().filter(|subject| subject.code.is_some()) {
        versions.entry((&subject.target, subject.version.as_deref())).or_default().push(subject);
    }
    versions.retain(|_, subjects| subjects.len() > 1);
    let are_known = |all: &[&Subject]| {
        let code = |place: usize| all.get(place).and_then(|subject| subject.code.as_deref()).unwrap_or_default();
        (1..all.len()).all(|place| are_comparable(code(0), code(place)))
    };
    let names = versions.iter().map(|((target, version), all)| {
        let name = version.map_or_else(|| (*target).to_owned(), |version| format!("{target} {version}"));
        let why = if are_known(all) { "its code differs" } else { "it is not known to be the same code" };
        format!("{name} ({why})")
    });
    let text = format!("{}: compared as targets of their own. Raise the version with each change.", listed(names));
    (!versions.is_empty()).then(|| doubt("Runs of one version are no repetitions of each other.", text))
}

/// Confounders of pairs of cells.
fn confounders(rows: &[Row]) -> Vec<Note> {
    let mut all: BTreeMap<Circumstance, (BTreeSet<String>, &[RunId; 2])> = BTreeMap::new();
    for confounder in rows.iter().flat_map(|row| &row.confounders) {
        let (values, _) = all.entry(confounder.what).or_insert_with(|| (BTreeSet::new(), &confounder.runs));
        values.extend(confounder.values.iter().cloned());
    }
    let note = |(what, (values, runs)): (Circumstance, (BTreeSet<String>, &[RunId; 2]))| {
        let note = doubt(format!("{} differ.", what.title()), format!("{}.", listed(values.into_iter())));
        Note { environments: Some(runs.clone()), ..note }
    };
    all.into_iter().map(note).collect()
}

/// Rows whose cells have the same number of runs from each of several machines.
fn several_machines(rows: &[Row]) -> Option<Note> {
    let is_balanced = |row: &&Row| {
        let differ = row.confounders.iter().any(|confounder| confounder.what == Circumstance::Agents);
        row.setting.by != By::Agent && row.compared_cells().count() > 1 && !differ
    };
    let agents = |row: &Row| row.cells.iter().flat_map(Cell::counting).filter_map(|run| run.agent.clone()).collect();
    let several: Vec<BTreeSet<String>> =
        rows.iter().filter(is_balanced).map(agents).filter(|agents: &BTreeSet<_>| agents.len() > 1).collect();
    let all: BTreeSet<String> = several.into_iter().flatten().collect();
    let text = format!(
        "All cells have the same number of runs from each of {}, so differences between the machines cancel out.",
        listed(all.iter().cloned())
    );
    (!all.is_empty()).then(|| info("Measured on several machines.", text))
}

/// Cells measured in other experiments than the baseline: their variation, or why it is unknown.
fn not_interleaved(subjects: &[Subject], rows: &[Row]) -> Vec<Note> {
    let (mut known, mut unknown) = (Vec::new(), BTreeMap::<&str, BTreeSet<String>>::new());
    for (row, cell) in rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell))) {
        let stat = cell.stat(Metric::primary(&cell.runs));
        let Some(apart) = stat.apart else { continue };
        let at = if rows.len() > 1 { format!(" at {}", row.setting.label) } else { String::new() };
        let name = format!("{}{at}", subjects[cell.subject].label);
        if let Some(why) = apart.because {
            unknown.entry(why.because()).or_default().insert(name);
        } else if let Some(margin) = apart.margin {
            known.push(format!("{name} alone moved by up to {}{}", stat.metric.amount(margin), instead(stat)));
        }
    }
    let too_little = |(why, names): (&str, BTreeSet<String>)| {
        let text = format!("{}: {why}. Measure both again in one experiment.", listed(names.into_iter()));
        doubt("Not measured in turn with the baseline.", text)
    };
    let mut notes: Vec<Note> = unknown.into_iter().map(too_little).collect();
    let text = format!("Between experiments {}. Smaller differences do not count.", listed(known.iter().cloned()));
    notes.extend((!known.is_empty()).then(|| info("Not measured in turn with the baseline.", text)));
    notes
}

/// Describes what measuring both in turn would show.
fn instead(stat: &Stat) -> String {
    let interleaved = stat.apart.and_then(|apart| apart.interleaved);
    interleaved.map_or_else(String::new, |seen| {
        format!("; measured in turn you would see differences from {}", stat.metric.amount(seen))
    })
}

/// Experiments that were extended after a look: each look is another chance of a false result.
fn looks(questions: Questions) -> Option<Note> {
    let text = format!("The error rate is split across {} looks at these experiments.", questions.looks);
    (questions.looks > 1).then(|| info("Repetitions were added after a look.", text))
}

fn missing_figures(rows: &[Row]) -> Option<Note> {
    let lacking = metrics::compared().filter_map(|metric| {
        let counting = || runs(rows).filter(|run| run.counts());
        let count = counting().filter(|run| metric.value_in(run).is_none()).count();
        // A recorded metric is missing only if other runs have it.
        let is_missing = !metric.is_recorded() || count < counting().count();
        (count > 0 && is_missing).then(|| format!("{} ({})", metric.name(), plural(count, "run")))
    });
    let text = listed(lacking);
    (!text.is_empty()).then(|| info("Some runs lack a metric:", format!("{text}. They are not used for it.")))
}

/// Runs with too few requests for a percentile.
fn too_few_requests(rows: &[Row]) -> Option<Note> {
    let counting = || rows.iter().filter(|row| row.compared_cells().count() > 1).flat_map(|row| &row.cells);
    let few = metrics::judged().filter_map(|metric| metric.too_few_requests(counting().flat_map(Cell::counting)));
    let texts: Vec<String> = few.collect();
    let text = || format!("{}. They are not used for it.", texts.join("; "));
    (!texts.is_empty()).then(|| doubt("Too few requests.", text()))
}

/// Runs whose percentiles come from merged histograms and not from k6.
fn merged_histograms(rows: &[Row]) -> Option<Note> {
    let count = runs(rows).filter(|run| run.counts() && run.load_from().is_some()).count();
    let text = format!(
        "The load of {} came from other machines. Their percentiles are exact to within one bucket of the merged \
         histograms; the page of a run shows its width.",
        plural(count, "run")
    );
    (count > 0).then(|| info("Percentiles from merged histograms.", text))
}

/// Values that were rounded before they were read, by more than half of the usual minimum effect.
fn rounded(rows: &[Row]) -> Option<Note> {
    let stats = || rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.stats);
    let is_coarse = |stat: &&Stat| {
        stat.rounding.is_some_and(|by| by > MIN_EFFECT / 2.0 * stat.spread.as_ref().map_or(0.0, |all| all.min.abs()))
    };
    let coarsest = |metric: Metric| {
        let known = stats().filter(|stat| stat.metric == metric).filter(is_coarse);
        known.max_by(|one, other| one.rounding.unwrap_or(0.0).total_cmp(&other.rounding.unwrap_or(0.0)))
    };
    let metrics: Vec<String> = metrics::judged()
        .filter_map(|metric| coarsest(metric).map(|stat| format!("{} {}", metric.name(), stat.rounding())))
        .collect();
    let text = || format!("{}. Intervals contain this, and nothing within it is decided.", metrics.join(", "));
    (!metrics.is_empty()).then(|| info("Values are rounded:", text()))
}

/// Runs of which nobody knows whether they were steady: too short, or too noisy.
fn steadiness(rows: &[Row]) -> Option<Note> {
    let cells = || rows.iter().flat_map(|row| &row.cells).map(|cell| cell.counting().collect::<Vec<_>>());
    let seconds = |run: &&Run| run.spec.duration_s.map_or_else(String::new, |seconds| format!("{seconds} s"));
    let short: BTreeSet<String> = cells()
        .filter(|runs| are_too_short(runs))
        .map(|runs| {
            let lengths: BTreeSet<String> = runs.iter().map(seconds).collect();
            format!("{} of {}", plural(runs.len(), "run"), listed(lengths.into_iter()))
        })
        .collect();
    let is_noisy = |run: &&Run| run.reasons.iter().any(|reason| reason.code == TOO_NOISY);
    let noisy = cells().filter(|runs| runs.iter().any(is_noisy)).count();
    let short = (!short.is_empty()).then(|| format!("too short: {}", listed(short.into_iter())));
    let noisy = (noisy > 0).then(|| format!("scatter too much: {}", plural(noisy, "cell")));
    let why: Vec<String> = short.into_iter().chain(noisy).collect();
    (!why.is_empty()).then(|| info("Steadiness not judged.", format::capitalize(&format!("{}.", why.join("; ")))))
}

fn settings(rows: &[Row]) -> Option<Note> {
    let differ = |part: fn(&Row) -> String| rows.iter().map(part).collect::<BTreeSet<_>>().len() > 1;
    let mut kinds = Vec::new();
    if differ(|row| format!("{:?} {:?}", row.setting.scenario, row.setting.scenario_sha256)) {
        kinds.push("scenarios".to_owned());
    }
    if differ(|row| format!("{:?} {:?}", (&row.setting.load, row.setting.vus), row.setting.parameters)) {
        kinds.push("loads".to_owned());
    }
    if differ(|row| format!("{:?}", row.setting.size)) {
        kinds.push("machine sizes".to_owned());
    }
    let text = "Results are compared only where these are the same.";
    (!kinds.is_empty()).then(|| info(format!("{} differ.", format::capitalize(&listed(kinds.into_iter()))), text))
}

/// The knees of a sweep of loads.
pub(super) fn knees(sweep: &Sweep) -> Option<Note> {
    let sentences = sweep.sentences();
    (!sentences.is_empty()).then(|| info("Load sweep.", sentences.join(" ")))
}

fn unfinished(rows: &[Row]) -> Option<Note> {
    let count = total(rows, |counts| counts.unfinished);
    (count > 0).then(|| info(format!("{} unfinished.", plural(count, "run")), "They are added when they finish."))
}

#[cfg(test)]
mod tests;
