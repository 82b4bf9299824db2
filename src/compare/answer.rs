//! The result of a comparison in sentences: what pages, reports, commands and lists show first. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    gain::{Gain, GainAxis, Strip},
    metric::Metric,
    selection::{By, Subject},
    sentence::{Sentence, summary},
    statistics::{Decision, Leader},
    trust::{Trust, TrustLevel},
};
use crate::{
    compare::{
        chosen::Options,
        excluded::{ExcludedRun, counts},
        finding,
        notes::listed,
        proposal::Proposal,
        sentence, significance,
        stat::Stat,
    },
    web::{
        card::Tone,
        format::{self, capitalize as sentence_case},
    },
};

/// Maximum number of headlines.
const MAX_HEADLINES: usize = 12;

/// The metrics of the details, after the primary one.
const DETAILS: [Metric; 5] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs, Metric::Memory];

/// The result in sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    /// The results: one per setting, or per target that is compared with a chosen baseline.
    pub headlines: Vec<Headline>,
    /// How far to rely on them.
    pub trust: Trust,
    /// What would decide more; null if all is decided, or it would not help.
    #[serde(default)]
    pub more: Option<Proposal>,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Headline {
    /// Label of the setting; null if the comparison has only one.
    pub setting: Option<String>,
    /// The result in a sentence, e.g. `rust-hyper is 48.0 % faster than go-nethttp`.
    #[schema(value_type = String)]
    pub sentence: Sentence,
    /// The other metrics, or why there is no result; may be empty.
    pub details: String,
    /// Whether it is good or bad for the target that the sentence is about.
    pub tone: Tone,
    /// Whether a difference was found.
    pub is_decided: bool,
    /// How many times better the first target of the sentence is; null without an interval.
    #[serde(default)]
    pub gain: Option<Gain>,
}

/// The cells of one setting, compared in one metric.
struct InRow<'a> {
    subjects: &'a [Subject],
    base: usize,
    /// All settings.
    rows: &'a [Row],
    row: &'a Row,
    primary: Metric,
}

impl Answer {
    /// Writes the answer for the subjects, one of which is the baseline.
    pub fn new(
        (subjects, base): (&[Subject], usize),
        rows: &[Row],
        excluded: &[ExcludedRun],
        options: &Options,
        trust: Trust,
    ) -> Self {
        let mut headlines = headlines((subjects, base), rows, excluded, options);
        headlines.truncate(MAX_HEADLINES);
        for headline in &mut headlines {
            headline.tone = trust.tone(headline.tone);
        }
        let more = if trust.level == TrustLevel::Unreliable { None } else { Proposal::new(rows, options) };
        Self { headlines, trust, more }
    }

    /// Returns the answer of a comparison that failed because of an error in the server.
    pub fn failed() -> Self {
        let sentence = Sentence::default().strong("Could not be compared");
        let headline = Headline::undecided(sentence, "The log of the server has the reason.", Tone::Doubtful);
        Self { headlines: vec![headline], trust: Trust::new(&[], &[]), more: None }
    }

    /// Returns the result in one line.
    pub fn line(&self) -> String {
        self.headlines.first().map_or_else(|| "No result".to_owned(), Headline::line)
    }
}

impl Headline {
    fn undecided(sentence: Sentence, details: impl Into<String>, tone: Tone) -> Self {
        Self { setting: None, sentence, details: details.into(), tone, is_decided: false, gain: None }
    }

    /// Draws its difference on an axis; hollow unless a difference was found.
    pub fn strip(&self, axis: &GainAxis) -> Option<Strip> {
        Some(axis.strip(self.gain?, if self.is_decided { self.tone } else { Tone::Plain }))
    }

    /// Describes the interval of its difference; empty without one.
    pub fn interval(&self) -> String {
        self.gain.map_or_else(String::new, |gain| gain.to_string())
    }

    /// Returns the sentence after its setting, if there are several: `1 vCPU: a is 5.0 % faster than b`.
    pub fn line(&self) -> String {
        match &self.setting {
            Some(setting) => format!("{setting}: {}", self.sentence),
            None => self.sentence.to_string(),
        }
    }
}

fn headlines(
    (subjects, base): (&[Subject], usize),
    rows: &[Row],
    excluded: &[ExcludedRun],
    options: &Options,
) -> Vec<Headline> {
    if rows.iter().all(|row| row.compared_cells().count() == 0) {
        let unfinished = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.counts.unfinished).sum();
        return vec![no_result(excluded, unfinished)];
    }
    let of_row = |row: &Row| {
        let setting = (rows.len() > 1).then(|| row.setting.label.clone());
        let primary = significance::primary(row, options);
        let headlines = InRow { subjects, base, rows, row, primary }.headlines();
        headlines.into_iter().map(move |headline| Headline { setting: setting.clone(), ..headline })
    };
    rows.iter().flat_map(of_row).collect()
}

impl InRow<'_> {
    fn headlines(&self) -> Vec<Headline> {
        let rivals: Vec<&Cell> = self.row.compared_cells().collect();
        match rivals.as_slice() {
            [one, other] if self.row.setting.by == By::Run => vec![self.single_runs(one, other)],
            [] => vec![Headline::undecided(Sentence::default().strong("No run counts"), "", Tone::Doubtful)],
            [one] => vec![self.alone(one)],
            [one, other] if self.subjects.len() == 2 => {
                let (challenger, base) = if one.subject == self.base { (other, one) } else { (one, other) };
                vec![self.pair(challenger, base)]
            }
            many => match (self.row.leader(self.primary), many.iter().find(|cell| cell.subject == self.base)) {
                (Leader::BaselineOnly, Some(base)) => {
                    many.iter().filter(|cell| cell.subject != self.base).map(|cell| self.pair(cell, base)).collect()
                }
                _ => vec![self.leader()],
            },
        }
    }

    fn subject(&self, cell: &Cell) -> Sentence {
        let Subject { label, mark, .. } = &self.subjects[cell.subject];
        Sentence::default().subject(label, *mark)
    }

    /// The figures of a target with nothing to compare it with.
    fn alone(&self, cell: &Cell) -> Headline {
        let known = DETAILS.iter().map(|metric| cell.stat(*metric)).filter(|stat| stat.value.is_some());
        let sentence = match cell.stat(self.primary).value {
            Some(_) => self.subject(cell).text(": ").strong(&summary(cell.stat(self.primary))),
            None => self.subject(cell),
        };
        let others = known.filter(|stat| stat.metric != self.primary).map(summary);
        let absent: Vec<String> =
            (0..self.subjects.len()).filter(|place| *place != cell.subject).map(|place| self.absence(place)).collect();
        let mut details = others.collect::<Vec<_>>().join(", ");
        if !details.is_empty() {
            details.push('.');
        }
        details = [details].into_iter().chain(self.failures(&[cell])).collect::<Vec<_>>().join(" ");
        if !absent.is_empty() {
            details = format!("Nothing to compare with: {}. {details}", absent.join(", "));
        }
        Headline::undecided(sentence, details.trim_end(), if absent.is_empty() { Tone::Plain } else { Tone::Doubtful })
    }

    /// Where the runs of a target are that has none here: `viawrk has 8 runs under another setting: threads=2`.
    fn absence(&self, subject: usize) -> String {
        let counting = |row: &Row| -> usize {
            row.cells.iter().filter(|cell| cell.subject == subject).map(|cell| cell.counts.counting()).sum()
        };
        let elsewhere: Vec<(&Row, usize)> =
            self.rows.iter().map(|row| (row, counting(row))).filter(|(_, count)| *count > 0).collect();
        let label = &self.subjects[subject].label;
        match elsewhere.iter().map(|(_, count)| count).sum::<usize>() {
            0 => format!("{label} has no run that counts"),
            count => {
                let settings = elsewhere.iter().map(|(row, _)| row.setting.label.clone());
                format!("{label} has {} under another setting: {}", format::plural(count, "run"), listed(settings))
            }
        }
    }

    /// Two runs side by side: one run says nothing about the next.
    fn single_runs(&self, one: &Cell, other: &Cell) -> Headline {
        let figures =
            |cell: &Cell| format!("{}: {}.", self.subjects[cell.subject].label, summary(cell.stat(self.primary)));
        let details = format!("{} {}", figures(one), figures(other));
        Headline::undecided(Sentence::default().strong("One run each: no verdict"), details, Tone::Plain)
    }

    fn pair(&self, cell: &Cell, base: &Cell) -> Headline {
        let stat = cell.stat(self.primary);
        let both = || (self.subject(cell), self.subject(base));
        let between = |start: &str| {
            let (one, other) = both();
            Sentence::default().strong(start).text(" between ").then(one).text(" and ").then(other)
        };
        let details = self.details(cell, base);
        let headline = |sentence: Sentence, because: String, tone| {
            let details = [because, details.clone()].into_iter().filter(|part| !part.is_empty());
            let gain = Gain::new(stat);
            Headline { gain, ..Headline::undecided(sentence, details.collect::<Vec<_>>().join(" "), tone) }
        };
        let (one, other) = both();
        let named = || than(stat, one.clone(), other.clone());
        match stat.decision {
            Some(Decision::Better | Decision::Worse) => {
                let because =
                    if stat.has_no_ratio() { format!("{}.", sentence_case(finding::NO_RATIO)) } else { interval(stat) };
                Headline { is_decided: true, ..headline(named(), because, stat.tone()) }
            }
            Some(Decision::NoDifference) => {
                let hidden = stat.hidden().map(|margin| format!("Experiments vary by up to {margin}."));
                let missed = stat.detectable.map(|mde| format!("{}.", sentence_case(&stat.metric.detectable(mde))));
                let because: Vec<String> = hidden.into_iter().chain(missed).collect();
                headline(between("No difference found"), because.join(" "), Tone::Plain)
            }
            Some(Decision::BelowMinEffect) => {
                let least = stat.metric.amount(stat.min_effect.unwrap_or_default());
                let because = format!("{} This is below the minimum effect of {least}.", interval(stat));
                headline(named(), because.trim_start().to_owned(), Tone::Plain)
            }
            Some(Decision::NotComparable) => {
                let sentence = one.text(" and ").then(other).text(" are ").strong("not comparable");
                let place = |cell: &Cell| self.row.cells.iter().position(|one| one.subject == cell.subject);
                let is_confounded =
                    place(cell).zip(place(base)).is_some_and(|(one, other)| self.row.is_confounded([one, other]));
                Headline::undecided(sentence, not_comparable(is_confounded), Tone::Doubtful)
            }
            Some(Decision::TooCoarse) => {
                let sentence =
                    Sentence::default().strong("Too coarse").text(" to compare ").then(one).text(" with ").then(other);
                headline(sentence, format!("{}.", sentence_case(&finding::too_coarse(stat))), Tone::Doubtful)
            }
            Some(Decision::TooFew | Decision::NotInTurn) => {
                let why = format!("{}.", sentence_case(&finding::too_little(stat)));
                headline(too_little(one, other), why, Tone::Doubtful)
            }
            None => {
                let why = format!("{} is not in every summary.", sentence_case(self.primary.name()));
                headline(too_little(one, other), why, Tone::Doubtful)
            }
        }
    }

    /// The other metrics in words: what differs first, then what does not.
    fn details(&self, cell: &Cell, base: &Cell) -> String {
        let (mut differ, mut same, mut small) = (Vec::new(), Vec::new(), Vec::new());
        let (mut coarse, mut few) = (Vec::new(), Vec::new());
        for stat in DETAILS.into_iter().filter(|metric| *metric != self.primary).map(|metric| cell.stat(metric)) {
            match stat.decision {
                Some(Decision::Better | Decision::Worse) => differ.push(sentence::clause(stat)),
                Some(Decision::NoDifference) => same.push(stat.metric.name().to_owned()),
                Some(Decision::BelowMinEffect) => small.push(stat.metric.name().to_owned()),
                Some(Decision::TooCoarse) => coarse.push(format!("{} ({})", stat.metric.name(), stat.rounding())),
                Some(Decision::TooFew | Decision::NotInTurn) => few.push(stat.metric.name().to_owned()),
                Some(Decision::NotComparable) | None => {}
            }
        }
        let mut parts = Vec::new();
        if !differ.is_empty() {
            parts.push(format!("{}: {}.", self.subjects[cell.subject].label, listed(differ.into_iter())));
        }
        if !same.is_empty() {
            parts.push(format!("No difference found in {}.", listed(same.into_iter())));
        }
        if !small.is_empty() {
            parts.push(format!("Below the minimum effect: {}.", listed(small.into_iter())));
        }
        if !coarse.is_empty() {
            parts.push(format!("Too coarse to compare: {}.", listed(coarse.into_iter())));
        }
        if !few.is_empty() {
            parts.push(format!("Too little data for {}.", listed(few.into_iter())));
        }
        parts.extend(self.failures(&[cell, base]));
        parts.join(" ")
    }

    /// The failures of the worst repetition; a median would hide one of three.
    fn failures(&self, cells: &[&Cell]) -> Option<String> {
        let worst = |cell: &Cell| cell.stat(Metric::ErrorRate).spread.as_ref().map(|spread| spread.max);
        let texts: Vec<String> = cells
            .iter()
            .filter(|cell| worst(cell).is_some_and(|share| share > 0.0))
            .map(|cell| {
                format!("{} {}", self.subjects[cell.subject].label, Metric::ErrorRate.figure(worst(cell)).text())
            })
            .collect();
        (!texts.is_empty()).then(|| format!("Failed requests in the worst run: {}.", texts.join(", ")))
    }
}

/// Describes why there is no result.
fn no_result(all: &[ExcludedRun], unfinished: usize) -> Headline {
    if unfinished > 0 {
        let rest = format!("{} unfinished", format::plural(unfinished, "run"));
        let parts: Vec<String> = [counts(all), rest].into_iter().filter(|part| !part.is_empty()).collect();
        return Headline::undecided(
            Sentence::default().strong("No result yet"),
            format!("{}.", parts.join(", ")),
            Tone::Plain,
        );
    }
    // Cancelled runs explain less than failed ones.
    let is_cancelled = |excluded: &&&ExcludedRun| excluded.state == "cancelled";
    let mut by_weight: Vec<&ExcludedRun> = all.iter().filter(|excluded| !excluded.reason.is_empty()).collect();
    by_weight.sort_by_key(|excluded| is_cancelled(&excluded));
    let mut details = format!("None of {} counts: {}.", format::plural(all.len(), "run"), counts(all));
    if let Some(first) = by_weight.first() {
        details = format!("{details} {} repetition {}: {}.", first.subject, first.repetition, first.reason);
    }
    let tone = if all.iter().all(|excluded| excluded.state == "cancelled") { Tone::Plain } else { Tone::Doubtful };
    Headline::undecided(Sentence::default().strong("No result"), details, tone)
}

/// `servy is 25.0 % faster than gosherve`, for another metric than throughput with its name.
fn than(stat: &Stat, one: Sentence, other: Sentence) -> Sentence {
    let is_speed = matches!(stat.metric.word(1.0), "faster" | "slower");
    let verb = if is_speed { " is " } else { " has " };
    let (difference, word) = sentence::of(stat);
    let sentence = one.text(verb).strong(&difference).text(&format!(" {word} ")).then(other);
    let is_named = is_speed && stat.metric != Metric::Rps;
    if is_named { sentence.text(&format!(" in {}", stat.metric.name())) } else { sentence }
}

/// Returns why targets are not comparable.
fn not_comparable(is_confounded: bool) -> &'static str {
    if is_confounded { "More than the target differs." } else { "The targets did different work." }
}

fn too_little(one: Sentence, other: Sentence) -> Sentence {
    Sentence::default().strong("Too little data").text(" to compare ").then(one).text(" with ").then(other)
}

/// The interval of the primary metric: `Throughput: +18.0 % to +72.0 % (95 % interval).`
fn interval(stat: &Stat) -> String {
    match stat.interval() {
        interval if interval.is_empty() => interval,
        interval => format!("{}: {interval} (95\u{a0}% interval).", sentence_case(stat.metric.name())),
    }
}

mod leader;
#[cfg(test)]
mod tests;
