//! Title, lead line and result cards of a comparison. Pure.

use super::{
    cell::{Cell, Row},
    finding::{Finding, ahead},
    metric::Metric,
    selection::{By, Subject},
    statistics::{Better, Leader},
};
use crate::{
    compare::{
        excluded::{ExcludedRun, no_result},
        setting::{Setting, only_sizes_differ, shared},
    },
    runs::model::Run,
    web::{
        card::{Card, Tone},
        format,
    },
};

/// Maximum number of settings with a card.
const MAX_CARDS: usize = 8;

/// Returns the title of the comparison.
pub fn title(subjects: &[Subject], base: usize, by: By) -> String {
    match subjects {
        [] => "Nothing to compare".to_owned(),
        [one] => one.label.clone(),
        [one, other] if base == 1 => format!("{} against {}", one.label, other.label),
        [one, other] => format!("{} against {}", other.label, one.label),
        many if by == By::Target => format!("{} targets compared", many.len()),
        many => format!("{} compared", format::plural(many.len(), by.name())),
    }
}

/// Returns what all runs share, in one line.
pub fn in_common(rows: &[Row]) -> String {
    let runs = || rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
    let settings: Vec<&Setting> = rows.iter().map(|row| &row.setting).collect();
    let mut parts = shared(&settings);
    if settings.len() > 1 {
        let noun = if only_sizes_differ(&settings) { "machine size" } else { "setting" };
        parts.push(format::plural(settings.len(), noun));
    }
    if let Some(seconds) = common_value(runs().map(|run| run.spec.duration_s)) {
        parts.push(format!("{} measured", format::duration(Some(seconds)).text()));
    }
    if let Some(agent) = common_value(runs().map(|run| run.agent.clone())) {
        parts.push(format!("on {agent}"));
    }
    let repetitions: Vec<usize> = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.runs.len()).collect();
    let (least, most) = (repetitions.iter().min(), repetitions.iter().max());
    if let (Some(least), Some(most)) = (least, most) {
        let text = format::plural(most, "repetition");
        parts.push(match repetitions.len() {
            1 => text,
            _ if least == most => format!("{text} each"),
            _ => format!("{least} to {text}"),
        });
    }
    parts.join(" · ")
}

/// Returns the value that all share, if there is one.
fn common_value<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// Returns the cards: the differences of two targets in one setting, otherwise the leaders.
pub fn cards(subjects: &[Subject], base: usize, rows: &[Row], excluded: &[ExcludedRun]) -> Vec<Card> {
    let unfinished = || rows.iter().flat_map(|row| &row.cells).map(|cell| cell.counts.unfinished).sum();
    match rows {
        rows if rows.iter().all(|row| row.compared_cells().count() == 0) => vec![no_result(excluded, unfinished())],
        [row] if subjects.len() == 1 => row.compared_cells().flat_map(single).collect(),
        [row] if subjects.len() == 2 => pair(subjects, base, row),
        rows if rows.iter().any(|row| row.leader(Metric::primary(runs(row))) == Leader::BaselineOnly) => {
            rows.iter().flat_map(|row| with_baseline(subjects, base, row, rows.len() > 1)).take(MAX_CARDS).collect()
        }
        [row] => {
            let leading = |headline: Headline| {
                with_suspect_note(leader(subjects, row, headline).with_metric(headline.0), row.compared_cells())
            };
            HEADLINES.into_iter().map(leading).collect()
        }
        rows => {
            let leading = |row: &Row| {
                let card = leader(subjects, row, by_setting(row)).with_metric(Metric::Rps);
                with_suspect_note(card, row.compared_cells())
            };
            rows.iter().take(MAX_CARDS).map(leading).collect()
        }
    }
}

/// A metric, its label and its unit.
type Headline<'a> = (Metric, &'a str, &'static str);

const HEADLINES: [Headline; 3] = [
    (Metric::Rps, "Throughput", "\u{a0}requests/s"),
    (Metric::P50Ms, "Latency p50", "\u{a0}ms"),
    (Metric::P99Ms, "Latency p99", "\u{a0}ms"),
];

/// The cost of requests, shown if known.
const COSTS: [Headline; 2] =
    [(Metric::CpuMs, "CPU time per request", "\u{a0}ms"), (Metric::Memory, "Memory of the target", "")];

/// Throughput, labelled with the setting.
fn by_setting(row: &Row) -> Headline<'_> {
    (Metric::Rps, &row.setting.label, HEADLINES[0].2)
}

/// Returns the figures of a single target.
fn single(cell: &Cell) -> Vec<Card> {
    let detail = match cell.counts.counting() {
        1 => "1 repetition".to_owned(),
        count => format!("median of {count} repetitions"),
    };
    let card = |(metric, label, unit): Headline<'static>| {
        let stat = cell.stat(metric);
        let range = stat.range();
        let detail = if range.is_empty() { detail.clone() } else { format!("{detail}, {range}") };
        let value = if stat.value.is_some() { format!("{}{unit}", stat.figure().text()) } else { "unknown".to_owned() };
        with_suspect_note(Card::new(label, value, detail, Tone::Plain).with_metric(metric), [cell])
    };
    let known = COSTS.into_iter().filter(|(metric, ..)| cell.stat(*metric).spread.is_some());
    HEADLINES.into_iter().map(card).chain([failures(cell, None)]).chain(known.map(card)).collect()
}

fn pair(subjects: &[Subject], base: usize, row: &Row) -> Vec<Card> {
    let rivals: Vec<&Cell> = row.compared_cells().collect();
    let [one, other] = rivals.as_slice() else {
        let present: Vec<_> = rivals.iter().map(|cell| cell.subject).collect();
        let absent = subjects.iter().enumerate().find(|(place, _)| !present.contains(place));
        let detail =
            absent.map_or_else(String::new, |(_, subject)| format!("{} has no run that counts", subject.label));
        return vec![Card::new("Result", "no comparison", detail, Tone::Doubtful)];
    };
    let (challenger, baseline) = if one.subject == base { (*other, *one) } else { (*one, *other) };
    let name = subjects[base].label.as_str();
    let card = |headline: Headline| {
        let card = difference(headline, challenger, baseline, name).with_metric(headline.0);
        with_suspect_note(card, [challenger, baseline])
    };
    let known = COSTS.into_iter().filter(|(metric, ..)| challenger.stat(*metric).effect.is_some());
    let failures = failures(challenger, Some((baseline, name)));
    HEADLINES.into_iter().map(card).chain([failures]).chain(known.map(card)).collect()
}

fn runs(row: &Row) -> impl Iterator<Item = &Run> {
    row.cells.iter().flat_map(|cell| &cell.runs)
}

/// Shows how each other target compares with the chosen baseline in the primary metric.
fn with_baseline(subjects: &[Subject], base: usize, row: &Row, is_one_of_many: bool) -> Vec<Card> {
    let metric = Metric::primary(runs(row));
    let unit = HEADLINES.into_iter().find(|(one, ..)| *one == metric).map_or("", |(.., unit)| unit);
    let Some(baseline) = row.compared_cells().find(|cell| cell.subject == base) else { return Vec::new() };
    let card = |cell: &Cell| {
        let Subject { label, mark, .. } = &subjects[cell.subject];
        let label = if is_one_of_many { format!("{label}, {}", row.setting.label) } else { label.clone() };
        let card = difference((metric, &label, unit), cell, baseline, &subjects[base].label);
        with_suspect_note(Card { mark: Some(*mark), ..card.with_metric(metric) }, [cell, baseline])
    };
    row.compared_cells().filter(|cell| cell.subject != base).map(card).collect()
}

/// Adds a note to a card whose figures include suspect runs.
fn with_suspect_note<'a>(card: Card, cells: impl IntoIterator<Item = &'a Cell>) -> Card {
    let suspect: usize = cells.into_iter().map(|cell| cell.counts.suspect).sum();
    if suspect == 0 {
        return card;
    }
    let detail = format!("{} · with {}", card.detail, format::plural(suspect, "suspect run"));
    Card { detail, tone: Tone::Doubtful, ..card }
}

/// Shows how a challenger compares with the baseline called `name`, and both figures.
fn difference((metric, label, unit): Headline, challenger: &Cell, baseline: &Cell, name: &str) -> Card {
    let (stat, against) = (challenger.stat(metric), baseline.stat(metric));
    let Some(Finding { short, detail, tone }) = Finding::new(stat, name) else {
        return Card::new(label, "unknown", "not in the summaries", Tone::Plain);
    };
    let figures = format!("{} instead of {}{unit}", stat.figure().text(), against.figure().text());
    Card::new(label, short, format!("{detail} · {figures}"), tone)
}

/// Shows the failures of the worst repetition; a median would hide one of three.
fn failures(cell: &Cell, against: Option<(&Cell, &str)>) -> Card {
    const LABEL: &str = "Failed requests";
    let worst = |cell: &Cell| cell.stat(Metric::ErrorRate).spread.as_ref().map(|spread| spread.max);
    let text = |share: f64| format::percent(Some(share)).text().to_owned();
    let card = match (worst(cell), against.map(|(cell, name)| (worst(cell), name))) {
        (None, _) | (_, Some((None, _))) => Card::new(LABEL, "unknown", "not in every summary", Tone::Doubtful),
        (Some(0.0), None) => Card::new(LABEL, "none", "in any repetition that counts", Tone::Plain),
        (Some(0.0), Some((Some(0.0), _))) => Card::new(LABEL, "none", "on either side", Tone::Plain),
        (Some(share), None) => Card::new(LABEL, text(share), "in the worst repetition", Tone::Doubtful),
        (Some(share), Some((Some(other), name))) => {
            let detail = format!("in the worst repetition; {name} {}", text(other));
            Card::new(LABEL, text(share), detail, Tone::Doubtful)
        }
    };
    card.with_metric(Metric::ErrorRate)
}

/// Shows the leader of one setting in one metric, and how far it is ahead.
fn leader(subjects: &[Subject], row: &Row, (metric, label, unit): Headline) -> Card {
    let figure = |cell: &Cell| format!("{}{unit}", cell.stat(metric).figure().text());
    let Some(foremost) = foremost(row, metric) else {
        return Card::new(label, "no figures", "not in any run that counts", Tone::Doubtful);
    };
    let best = if metric.better() == Some(Better::Higher) { "highest" } else { "lowest" };
    let name = &subjects[foremost.subject].label;
    let because = |why: &str| format!("{best}: {name}, {}{why}", figure(foremost));
    match row.leader(metric) {
        Leader::Of(place) => {
            let cell = &row.cells[place];
            let subject = &subjects[cell.subject];
            let ahead = row.leads.get(&metric).map(|lead| {
                let rival = &subjects[row.cells[lead.over].subject].label;
                format!(", {}", ahead(metric, lead.by, rival))
            });
            let detail = figure(cell) + &ahead.unwrap_or_default();
            Card { mark: Some(subject.mark), ..Card::new(label, subject.label.clone(), detail, Tone::Good) }
        }
        Leader::Alone => {
            Card::new(label, "nothing to compare with", format!("{name}: {}", figure(foremost)), Tone::Plain)
        }
        Leader::Unclear => Card::new(label, "no difference found", because(" (not all others differ)"), Tone::Plain),
        Leader::BaselineOnly => Card::new(label, "compared with the baseline only", because(""), Tone::Plain),
        Leader::Missing => Card::new(label, "too little data", because("; not in every summary"), Tone::Doubtful),
        Leader::NotInTurn => {
            Card::new(label, "too little data", because("; not all were measured in turn"), Tone::Doubtful)
        }
        Leader::NotComparable => {
            Card::new(label, "not comparable", because("; more than the target differs"), Tone::Doubtful)
        }
        Leader::TooFew(fewest) => {
            let few = format!("; only {} each", format::plural(fewest, "repetition"));
            Card::new(label, "too little data", because(&few), Tone::Doubtful)
        }
    }
}

/// Returns the cell with the best figure, whether or not that is a difference.
fn foremost(row: &Row, metric: Metric) -> Option<&Cell> {
    let value = |cell: &&Cell| cell.stat(metric).value.unwrap_or(f64::NAN);
    let known = row.compared_cells().filter(|cell| cell.stat(metric).value.is_some());
    match metric.better() {
        Some(Better::Higher) => known.max_by(|one, other| value(one).total_cmp(&value(other))),
        _ => known.min_by(|one, other| value(one).total_cmp(&value(other))),
    }
}

#[cfg(test)]
mod tests;
