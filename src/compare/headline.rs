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
    if let Some(seconds) = one(runs().map(|run| run.duration_s)) {
        parts.push(format!("{} measured", format::duration(Some(seconds)).text()));
    }
    if let Some(agent) = one(runs().map(|run| run.agent.clone())) {
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
fn one<T: PartialEq>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

/// Returns the cards: the differences of two targets in one setting, otherwise the leaders.
pub fn cards(subjects: &[Subject], base: usize, rows: &[Row], excluded: &[ExcludedRun]) -> Vec<Card> {
    let unfinished = || rows.iter().flat_map(|row| &row.cells).map(|cell| cell.counts.unfinished).sum();
    match rows {
        rows if rows.iter().all(|row| row.rivals().count() == 0) => vec![no_result(excluded, unfinished())],
        [row] if subjects.len() == 1 => row.rivals().flat_map(single).collect(),
        [row] if subjects.len() == 2 => pair(subjects, base, row),
        rows if rows.iter().any(|row| row.leader(Metric::primary(runs(row))) == Leader::BaselineOnly) => {
            rows.iter().flat_map(|row| with_baseline(subjects, base, row, rows.len() > 1)).take(MAX_CARDS).collect()
        }
        [row] => {
            let leading = |headline: Headline| {
                with_suspect_note(leader(subjects, row, headline).with_metric(headline.0), row.rivals())
            };
            HEADLINES.into_iter().map(leading).collect()
        }
        rows => {
            let leading = |row: &Row| {
                let card = leader(subjects, row, by_setting(row)).with_metric(Metric::Rps);
                with_suspect_note(card, row.rivals())
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
    let rivals: Vec<&Cell> = row.rivals().collect();
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
    let Some(baseline) = row.rivals().find(|cell| cell.subject == base) else { return Vec::new() };
    let card = |cell: &Cell| {
        let Subject { label, mark, .. } = &subjects[cell.subject];
        let label = if is_one_of_many { format!("{label}, {}", row.setting.label) } else { label.clone() };
        let card = difference((metric, &label, unit), cell, baseline, &subjects[base].label);
        with_suspect_note(Card { mark: Some(*mark), ..card.with_metric(metric) }, [cell, baseline])
    };
    row.rivals().filter(|cell| cell.subject != base).map(card).collect()
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
    let known = row.rivals().filter(|cell| cell.stat(metric).value.is_some());
    match metric.better() {
        Some(Better::Higher) => known.max_by(|one, other| value(one).total_cmp(&value(other))),
        _ => known.min_by(|one, other| value(one).total_cmp(&value(other))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        compare::{
            testing::{failed, faster, judged, repeated, run, sized},
            view::Comparison,
        },
        runs::{model::Run, verdict::Verdict},
        web::{card::Tone, series_style::Marks},
    };

    fn cards(runs: Vec<Run>) -> Vec<(String, String, Tone)> {
        let plain = |text: &str| text.replace('\u{a0}', " ");
        let cards = Comparison::new(runs, &Marks::default(), None).cards;
        cards.into_iter().map(|card| (plain(&card.value), plain(&card.detail), card.tone)).collect()
    }

    fn against(factor: f64) -> Vec<Run> {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), factor)));
        runs
    }

    #[test]
    fn two_targets_are_compared_in_words_and_figures() {
        let cards = cards(against(1.25));
        let expected = (
            "+25.0 %".to_owned(),
            "faster than gosherve (+24.4 % to +25.6 %) · 12,500 instead of 10,000 requests/s".to_owned(),
            Tone::Good,
        );
        assert_eq!(cards[0], expected);
        assert_eq!(cards[2].0, "−20.0 %");
        assert_eq!((cards[3].0.as_str(), cards[3].1.as_str()), ("none", "on either side"));
    }

    #[test]
    fn slower_is_bad_and_close_is_no_difference() {
        assert_eq!(cards(against(0.8))[0].2, Tone::Bad);
        let close = &cards(against(1.004))[0];
        assert_eq!((close.0.as_str(), close.2), ("no difference found", Tone::Plain));
        assert!(
            close.1.contains("could have been missed") && close.1.contains("· 10,040 instead of 10,000"),
            "{}",
            close.1
        );
    }

    #[test]
    fn one_repetition_is_too_few() {
        let cards = cards(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)]);
        assert_eq!(cards[0].0, "too little data");
        let only = "+100 %, but only 1 of 5 repetitions on each side were measured in turn";
        assert!(cards[0].1.starts_with(only), "{cards:?}");
        assert_eq!(cards[0].2, Tone::Doubtful);
    }

    #[test]
    fn a_target_without_counting_runs_is_named() {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.push(failed(run("servy", 1), "did not start"));
        assert_eq!(cards(runs)[0].1, "servy has no run that counts");
    }

    #[test]
    fn failures_of_one_repetition_are_shown() {
        let mut runs = against(1.25);
        runs[7].figures.error_rate = Some(0.004);
        let card = &cards(runs)[3];
        assert_eq!((card.0.as_str(), card.1.as_str()), ("0.40 %", "in the worst repetition; gosherve 0 %"));
    }

    fn on(experiment: &str, target: &str, factor: f64) -> Vec<Run> {
        let within = |run: Run| Run {
            id: format!("{experiment}-{target}-{}", run.repetition).into(),
            experiment: Some(experiment.to_owned().into()),
            ..run
        };
        repeated(|n| within(faster(run(target, n), factor)))
    }

    /// The fast day has a and b, the slow day b and c: b is better than both, but a has the highest median.
    #[test]
    fn the_card_names_the_target_that_the_test_found_and_not_the_highest_median() {
        let runs = [on("fast", "a", 1.0), on("fast", "b", 1.03), on("slow", "b", 0.82), on("slow", "c", 0.8)].concat();
        let cards = cards(runs);
        assert_eq!(cards[0].0, "b", "{cards:?}");
        assert!(cards[0].1.ends_with("2.5 % faster than c"), "{cards:?}");
    }

    /// The machine slows down half-way, and the slow half of a is invalid.
    #[test]
    fn a_target_whose_slow_half_is_invalid_does_not_lead() {
        let machine = |n: u32| if n > 6 { 0.7 } else { 1.0 + 0.0005 * f64::from(n) };
        let of = |target: &'static str, factor: f64| {
            (1..=12).map(move |n| faster(run(target, n), factor * machine(n))).collect::<Vec<_>>()
        };
        let mut runs = of("a", 0.96);
        for run in runs.iter_mut().skip(6) {
            *run = judged(run.clone(), Verdict::Invalid, "all requests failed");
        }
        runs.extend([of("b", 1.0), of("c", 0.9)].concat());
        let cards = cards(runs);
        assert_eq!(cards[0].0, "b", "{cards:?}");
    }

    /// The repetitions of different blocks are not compared, however many there are.
    #[test]
    fn compared_repetitions_are_counted_by_common_blocks() {
        let night = |target: &'static str, night: &'static str, numbers: std::ops::RangeInclusive<u32>| {
            numbers.map(move |n| Run {
                id: format!("{target}-{night}-{n}").into(),
                experiment: Some(night.to_owned().into()),
                ..run(target, n)
            })
        };
        let base: Vec<Run> = night("a", "one", 1..=9).chain(night("a", "two", 1..=1)).collect();
        let other: Vec<Run> = night("b", "one", 1..=1).chain(night("b", "two", 1..=9)).collect();
        let cards = cards([base, other].concat());
        assert!(cards[0].1.contains("only 2 of 4 repetitions on each side"), "{cards:?}");
    }

    #[test]
    fn a_difference_below_the_minimum_effect_is_called_that() {
        let cards = cards(against(1.009));
        let less = "+0.9 % (+0.4 % to +1.4 %): smaller than the minimum effect (1 %) · 10,090 instead of 10,000";
        assert_eq!((cards[0].0.as_str(), cards[0].2), ("below 1 %", Tone::Plain));
        assert!(cards[0].1.starts_with(less), "{cards:?}");
    }

    #[test]
    fn with_a_chosen_baseline_each_target_is_compared_with_it() {
        let of = |target: &'static str, factor: f64| repeated(move |n| faster(run(target, n), factor));
        let runs = [of("a", 1.0), of("b", 1.2), of("c", 1.2)].concat();
        let cards = |baseline: Option<&str>| Comparison::new(runs.clone(), &Marks::default(), baseline).cards;
        let open = &cards(None)[0];
        assert_eq!((open.label.as_str(), open.value.as_str()), ("Throughput", "no difference found"));
        let chosen = cards(Some("a"));
        let texts: Vec<_> =
            chosen.iter().map(|card| (card.label.as_str(), card.value.replace('\u{a0}', " "))).collect();
        assert_eq!(texts, [("b", "+20.0 %".to_owned()), ("c", "+20.0 %".to_owned())]);
        let slowest = &cards(Some("b"))[0];
        assert_eq!((slowest.label.as_str(), slowest.tone), ("a", Tone::Bad));
    }

    #[test]
    fn each_of_several_sizes_shows_its_leader() {
        let mut runs = repeated(|n| sized("gosherve", n, 1.0));
        runs.extend(repeated(|n| faster(sized("servy", n, 1.0), 1.5)));
        runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
        runs.push(sized("servy", 1, 4.0));
        let cards = cards(runs);
        assert_eq!(
            (cards[0].0.as_str(), cards[0].1.as_str()),
            ("servy", "15,000 requests/s, 50.0 % faster than gosherve")
        );
        assert_eq!(cards[1].0, "too little data");
    }
}
