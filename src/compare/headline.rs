//! Title, lead line and result cards of a comparison. Pure.

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::{By, Subject},
    statistics::{Better, Decision, Leader, Spread, TooLittlePast},
};
use crate::{
    compare::{
        excluded::{ExcludedRun, no_result},
        setting::{Setting, only_sizes_differ, shared},
        significance::Questions,
        stat::Stat,
    },
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
pub fn cards(
    subjects: &[Subject],
    base: usize,
    rows: &[Row],
    questions: Questions,
    excluded: &[ExcludedRun],
) -> Vec<Card> {
    let unfinished = || rows.iter().flat_map(|row| &row.cells).map(|cell| cell.counts.unfinished).sum();
    match rows {
        rows if rows.iter().all(|row| row.rivals().count() == 0) => vec![no_result(excluded, unfinished())],
        [row] if subjects.len() == 1 => row.rivals().flat_map(single).collect(),
        [row] if subjects.len() == 2 => pair(subjects, base, row, questions),
        [row] => {
            let leading = |headline: Headline| {
                with_suspect_note(leader(subjects, row, headline, questions).with_metric(headline.0), row.rivals())
            };
            HEADLINES.into_iter().map(leading).collect()
        }
        rows => {
            let leading = |row: &Row| {
                let card = leader(subjects, row, by_setting(row), questions).with_metric(Metric::Rps);
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
        let value =
            if stat.spread.is_some() { format!("{}{unit}", stat.figure().text()) } else { "unknown".to_owned() };
        with_suspect_note(Card::new(label, value, detail, Tone::Plain).with_metric(metric), [cell])
    };
    let known = COSTS.into_iter().filter(|(metric, ..)| cell.stat(*metric).spread.is_some());
    HEADLINES.into_iter().map(card).chain([failures(cell, None)]).chain(known.map(card)).collect()
}

fn pair(subjects: &[Subject], base: usize, row: &Row, questions: Questions) -> Vec<Card> {
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
        let card = difference(headline, challenger, baseline, name, questions).with_metric(headline.0);
        with_suspect_note(card, [challenger, baseline])
    };
    let known = COSTS.into_iter().filter(|(metric, ..)| challenger.stat(*metric).effect.is_some());
    let failures = failures(challenger, Some((baseline, name)));
    HEADLINES.into_iter().map(card).chain([failures]).chain(known.map(card)).collect()
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

fn difference(
    (metric, label, unit): Headline,
    challenger: &Cell,
    baseline: &Cell,
    name: &str,
    questions: Questions,
) -> Card {
    let (stat, against) = (challenger.stat(metric), baseline.stat(metric));
    let (Some(effect), Some(decision)) = (stat.effect, stat.decision) else {
        return Card::new(label, "unknown", "not in the summaries", Tone::Plain);
    };
    let (change, word) = (stat.change().text().to_owned(), metric.word(effect.change()));
    let figures = format!("{} instead of {}{unit}", stat.figure().text(), against.figure().text());
    let within = match stat.interval() {
        interval if interval.is_empty() => String::new(),
        interval => format!(" ({interval})"),
    };
    match decision {
        Decision::Better => Card::new(label, change, format!("{word} than {name}{within} · {figures}"), Tone::Good),
        Decision::Worse => Card::new(label, change, format!("{word} than {name}{within} · {figures}"), Tone::Bad),
        Decision::NoDifference => {
            let detail = format!("{change}{within}{} · {figures}", detectability(stat));
            Card::new(label, "no difference found", detail, Tone::Plain)
        }
        Decision::NotInTurn => {
            let because = stat.apart.and_then(|apart| apart.because).map_or("", TooLittlePast::because);
            let detail = format!("{change}, but not measured in turn: {because} · {figures}");
            Card::new(label, "cannot say", detail, Tone::Doubtful)
        }
        Decision::NotComparable => {
            let detail = format!("{change}{within}, but more than the target differs · {figures}");
            Card::new(label, "not comparable", detail, Tone::Doubtful)
        }
        Decision::TooFew => {
            let fewest = challenger.values(metric).len().min(baseline.values(metric).len());
            let few = format!("too few repetitions to be sure ({fewest} of {})", enough(stat, questions, fewest));
            Card::new(label, change, format!("{word}, but {few} · {figures}"), Tone::Doubtful)
        }
    }
}

/// Describes which difference could have been found.
fn detectability(stat: &Stat) -> String {
    let mde = stat.detectable.map_or_else(String::new, |mde| format!(" · {}", stat.metric.detectable(mde)));
    match stat.hidden() {
        Some(margin) => format!(" · within the variation between experiments ({margin}){mde}"),
        None => mde,
    }
}

/// Returns the repetitions that a question needs; at least one more for a secondary metric.
fn enough(stat: &Stat, questions: Questions, fewest: usize) -> usize {
    if stat.metric == questions.primary { questions.enough } else { questions.enough.max(fewest + 1) }
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

/// Shows the leader of one setting in one metric.
fn leader(subjects: &[Subject], row: &Row, (metric, label, unit): Headline, questions: Questions) -> Card {
    let lead = row.leader(metric);
    // None sorts last, so the best one known comes first.
    let mut cells: Vec<(&Cell, &Spread)> =
        row.rivals().filter_map(|cell| Some((cell, cell.stat(metric).spread.as_ref()?))).collect();
    cells.sort_by(|(_, a), (_, b)| match metric.better() {
        Some(Better::Higher) => metric.middle(b).total_cmp(&metric.middle(a)),
        _ => metric.middle(a).total_cmp(&metric.middle(b)),
    });
    let Some((first, first_spread)) = cells.first() else {
        return Card::new(label, "no figures", "not in any run that counts", Tone::Doubtful);
    };
    let subject = &subjects[first.subject];
    let figure = format!("{}{unit}", first.stat(metric).figure().text());
    let named = |detail: String, tone| Card {
        mark: Some(subject.mark),
        ..Card::new(label, subject.label.clone(), detail, tone)
    };
    let best = if metric.better() == Some(Better::Higher) { "highest" } else { "lowest" };
    let foremost = format!("{best} median: {}, {figure}", subject.label);
    match lead {
        Leader::Of(_) => {
            let ahead = cells.get(1).map(|(second, spread)| {
                let change = match (first.stat(metric).effect, second.stat(metric).effect) {
                    // The estimate of the tables and charts, if one of the two is the baseline.
                    (Some(effect), None) if cells.len() == 2 => effect.change(),
                    (None, Some(effect)) if cells.len() == 2 => 1.0 / effect.ratio - 1.0,
                    _ => metric.middle(first_spread) / metric.middle(spread) - 1.0,
                };
                let name = &subjects[second.subject].label;
                format!("{} against {name}", format::change(Some(change)).text())
            });
            named(
                [Some(format!("leads with {figure}")), ahead].into_iter().flatten().collect::<Vec<_>>().join(", "),
                Tone::Good,
            )
        }
        Leader::Alone => {
            Card::new(label, "nothing to compare with", format!("{}: {figure}", subject.label), Tone::Plain)
        }
        Leader::Unclear => Card::new(label, "no clear leader", foremost, Tone::Plain),
        Leader::Missing => {
            let detail = format!("{foremost}, but not in every summary");
            Card::new(label, "not compared", detail, Tone::Doubtful)
        }
        Leader::NotInTurn => {
            let detail = format!("{foremost}, but not all were measured in turn");
            Card::new(label, "cannot say", detail, Tone::Doubtful)
        }
        Leader::NotComparable => {
            let detail = format!("{foremost}, but more than the target differs");
            Card::new(label, "not comparable", detail, Tone::Doubtful)
        }
        Leader::TooFew(fewest) => {
            let needed = if metric == questions.primary { questions.enough } else { questions.enough.max(fewest + 1) };
            let detail = format!("{foremost} ({fewest} of {needed} repetitions)");
            Card::new(label, "too few repetitions", detail, Tone::Doubtful)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        compare::{
            testing::{failed, faster, repeated, run, sized},
            view::Comparison,
        },
        runs::model::Run,
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
            close.1.contains("minimum detectable effect") && close.1.contains("· 10,040 instead of 10,000"),
            "{}",
            close.1
        );
    }

    #[test]
    fn one_repetition_is_too_few() {
        let cards = cards(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)]);
        assert!(cards[0].1.starts_with("faster, but too few repetitions to be sure (1 of 4)"), "{cards:?}");
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

    #[test]
    fn each_of_several_sizes_shows_its_leader() {
        let mut runs = repeated(|n| sized("gosherve", n, 1.0));
        runs.extend(repeated(|n| faster(sized("servy", n, 1.0), 1.5)));
        runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
        runs.push(sized("servy", 1, 4.0));
        let cards = cards(runs);
        assert_eq!(
            (cards[0].0.as_str(), cards[0].1.as_str()),
            ("servy", "leads with 15,000 requests/s, +50.0 % against gosherve")
        );
        assert_eq!(cards[1].0, "too few repetitions");
    }
}
