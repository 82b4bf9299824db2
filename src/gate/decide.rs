//! The decision: every rule in every cell, by the statistics of the compare page. Pure.
//!
//! A gate asks one question for each cell and metric; all of them are corrected for each other, so that a gate with many
//! rules does not close by chance more often than one with few.

use super::{Check, Gate, Outcome, cells::Cell, rule::Rule, unlike::unlike};
use crate::{
    compare::{
        known::Known,
        likeness::Circumstance,
        metric::Metric,
        noise,
        statistics::{self, Better, Gap, Question as Answer, Standing},
    },
    runs::{Run, Verdict},
    web::format::{self, plural},
};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// On what the gate closes.
    pub rules: &'a [Rule],
    /// What may be unlike nevertheless.
    pub accept: &'a [Circumstance],
    /// What is held against what.
    pub cells: &'a [Cell],
    /// What is known beside the runs.
    pub known: &'a Known,
}

/// A cell that the candidate was in.
struct Judged<'a> {
    cell: &'a Cell,
    /// Why nothing can be said about it.
    obstacle: Option<String>,
}

/// What the statistics say to all questions of a gate.
struct Answers {
    /// By cell and metric.
    each: Vec<(usize, Metric, Answer)>,
    /// So many repetitions a side it takes to answer one.
    enough: usize,
}

/// Decides. Names and address are for whoever asks to fill in.
pub fn decide(question: &Question) -> Gate {
    let Question { rules, accept, cells, known } = *question;
    let mut notes = Vec::new();
    let mut judged = Vec::new();
    for cell in cells {
        if cell.candidate.is_empty() {
            notes.push(format!("{}: only the baseline ran it; nothing is said about it", cell.name));
            continue;
        }
        let (accepted, refused): (Vec<_>, Vec<_>) =
            unlike(cell, &known.environments).into_iter().partition(|(one, _)| accept.contains(one));
        notes.extend(accepted.into_iter().map(|(_, told)| format!("{}: {told}; accepted", cell.name)));
        notes.extend(used(cell));
        let refused: Vec<String> = refused.into_iter().map(|(_, told)| told).collect();
        let unlike = (!refused.is_empty()).then(|| refused.join("; "));
        judged.push(Judged { cell, obstacle: obstacle(cell).or(unlike) });
    }
    let answers = answers(rules, &judged);
    let mut checks: Vec<Check> = judged
        .iter()
        .enumerate()
        .flat_map(|(place, judged)| rules.iter().map(move |rule| (place, judged, rule)))
        .map(|(place, judged, rule)| check(rule, judged, known, answers.of(place, rule.metric), answers.enough))
        .collect();
    if checks.is_empty() {
        checks = rules.iter().map(nothing).collect();
    }
    let outcome = worst(&checks);
    Gate {
        outcome,
        headline: headline(outcome, &checks),
        baseline: String::new(),
        candidate: String::new(),
        checks,
        notes,
        url: String::new(),
    }
}

/// Why a cell can't be judged at all.
fn obstacle(cell: &Cell) -> Option<String> {
    if cell.baseline.is_empty() {
        return Some("the baseline has no runs of this size, scenario and load".to_owned());
    }
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    sides.into_iter().find_map(|(role, runs)| {
        let waiting = runs.iter().filter(|run| !run.has_ended()).count();
        if waiting > 0 {
            return Some(format!("{} of the {role} not at an end yet", plural(waiting, "run")));
        }
        (!runs.iter().any(Run::counts)).then(|| format!("no run of the {role} counts: {}", why(&runs[0])))
    })
}

/// What keeps a candidate from being fine: runs without figures that count. Those that are left may be the ones that went
/// well by luck; where even they are worse, that is a regression.
fn fallen(cell: &Cell) -> Option<String> {
    let fallen: Vec<&Run> = cell.candidate.iter().filter(|run| has_fallen(run, &cell.candidate)).collect();
    let runs = plural(fallen.len(), "run");
    Some(format!("{runs} of the candidate without figures that count, the first: {}", why(fallen.first()?)))
}

/// Whether a run ended without figures that count, nobody wanted that, and no repetition of it has some.
fn has_fallen(run: &Run, all: &[Run]) -> bool {
    let mut last = run;
    while let Some(again) = all.iter().find(|other| other.retry_of.as_deref() == Some(&last.id)) {
        last = again;
    }
    !last.counts() && last.phase != "cancelled"
}

fn why(run: &Run) -> String {
    let reason = run.reasons.iter().find(|reason| reason.verdict == Verdict::Invalid).map(|reason| &reason.text);
    run.error.as_ref().or(reason).cloned().unwrap_or_else(|| run.phase.clone())
}

/// What was used or left out and is worth knowing.
fn used(cell: &Cell) -> Vec<String> {
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    let mut notes = Vec::new();
    for (role, runs) in sides {
        let suspect = runs.iter().filter(|run| run.counts() && run.verdict == Some(Verdict::Suspect)).count();
        if suspect > 0 {
            notes.push(format!("{}: {} of the {role} used", cell.name, plural(suspect, "suspect run")));
        }
        let out: Vec<&Run> = runs.iter().filter(|run| run.has_ended() && !run.counts()).collect();
        if let Some(first) = out.first() {
            let left_out = plural(out.len(), "run");
            notes.push(format!("{}: {left_out} of the {role} left out, the first: {}", cell.name, why(first)));
        }
    }
    notes
}

fn nothing(rule: &Rule) -> Check {
    Check {
        rule: rule.to_string(),
        metric: rule.metric,
        setting: "all".to_owned(),
        outcome: Outcome::CannotSay,
        baseline: None,
        candidate: None,
        repetitions: [0, 0],
        change: None,
        interval: None,
        p: None,
        told: "baseline and candidate have no runs to hold against each other".to_owned(),
    }
}

fn counting(runs: &[Run]) -> impl Iterator<Item = &Run> {
    runs.iter().filter(|run| run.counts())
}

fn values(metric: Metric, runs: &[Run]) -> Vec<f64> {
    counting(runs).filter_map(|run| metric.of(run)).collect()
}

/// Asks all questions at once. Several rules about one metric are one question.
fn answers(rules: &[Rule], judged: &[Judged]) -> Answers {
    let mut asked: Vec<(usize, Metric)> = Vec::new();
    let mut tests = Vec::new();
    for (place, Judged { cell, .. }) in judged.iter().enumerate().filter(|(_, judged)| judged.obstacle.is_none()) {
        for rule in rules {
            let (base, new) = (values(rule.metric, &cell.baseline), values(rule.metric, &cell.candidate));
            if asked.contains(&(place, rule.metric)) {
                continue;
            }
            if let Some(test) = statistics::ranks(&base, &new) {
                asked.push((place, rule.metric));
                tests.push(test);
            }
        }
    }
    let questions = tests.iter().filter(|test| !test.is_flat).count();
    let answers = asked.into_iter().zip(statistics::holm(&tests));
    let each = answers.map(|((place, metric), answer)| (place, metric, answer)).collect();
    Answers { each, enough: statistics::enough(questions.max(1)) }
}

impl Answers {
    fn of(&self, place: usize, metric: Metric) -> Option<Answer> {
        let found = self.each.iter().find(|(at, of, _)| (*at, *of) == (place, metric));
        found.map(|(_, _, answer)| *answer)
    }
}

fn check(rule: &Rule, judged: &Judged, known: &Known, answer: Option<Answer>, enough: usize) -> Check {
    let Judged { cell, obstacle } = judged;
    let (base, new) = (values(rule.metric, &cell.baseline), values(rule.metric, &cell.candidate));
    let middle = |values: &[f64]| Some(rule.metric.middle(&statistics::spread(values.iter().copied())?));
    let apart = apart(rule.metric, cell, known);
    let of_figures = match (obstacle, apart, answer) {
        (Some(obstacle), ..) => (Outcome::CannotSay, obstacle.clone()),
        (None, Some(apart), Some(answer)) => {
            let standing = statistics::stand(&answer, Some(apart.gap), rule.metric.better().unwrap_or(Better::Higher));
            if standing == Standing::TooFew {
                let told =
                    format!("too few repetitions: {} against {}, each side needs {enough}", new.len(), base.len());
                (Outcome::CannotSay, told)
            } else {
                ruled(rule, apart, standing)
            }
        }
        _ if base.is_empty() || new.is_empty() => {
            let side = if base.is_empty() { "baseline" } else { "candidate" };
            (Outcome::CannotSay, format!("no summary of the {side} has this figure"))
        }
        _ => (Outcome::CannotSay, "a figure of the baseline is zero, so there is no ratio to it".to_owned()),
    };
    let (outcome, told) = match (of_figures, fallen(cell)) {
        ((Outcome::Fine, told), Some(fallen)) => (Outcome::CannotSay, format!("{fallen}; of the others: {told}")),
        (of_figures, _) => of_figures,
    };
    Check {
        rule: rule.to_string(),
        metric: rule.metric,
        setting: cell.name.clone(),
        outcome,
        baseline: middle(&base),
        candidate: middle(&new),
        repetitions: [base.len(), new.len()],
        change: apart.map(|apart| apart.gap.by),
        interval: apart.and_then(|apart| apart.interval),
        p: answer.filter(|_| obstacle.is_none()).map(|answer| answer.corrected),
        told,
    }
}

/// By how much the sides differ.
#[derive(Clone, Copy)]
struct Apart {
    gap: Gap,
    interval: Option<[f64; 2]>,
    /// The cell usually moves so far from one experiment to the next, and the sides are of several.
    drift: Option<f64>,
}

/// What matters is for the rules to say: any difference may, that is more than drift.
fn apart(metric: Metric, cell: &Cell, known: &Known) -> Option<Apart> {
    const ANY: f64 = f64::MIN_POSITIVE;
    let (base, new) = (values(metric, &cell.baseline), values(metric, &cell.candidate));
    if metric.is_share() {
        return Some(Apart { gap: Gap::of_shares(&base, &new, ANY)?, interval: None, drift: None });
    }
    let noise = |runs: &[Run]| noise::of_runs(counting(runs), &known.history).get(&metric).copied();
    let [one, other] = [&cell.baseline, &cell.candidate];
    let drift = noise::drift((counting(one), noise(one)), (counting(other), noise(other)));
    let difference = statistics::difference(&base, &new)?;
    let interval = difference.interval().map(|(low, high)| [low, high]);
    Some(Apart { gap: Gap::of(&difference, drift.unwrap_or(ANY).max(ANY)), interval, drift })
}

fn ruled(rule: &Rule, apart: Apart, standing: Standing) -> (Outcome, String) {
    let Apart { gap, interval, drift } = apart;
    let amount = |by: f64| rule.metric.difference(Some(by)).text().to_owned();
    let within = interval.map_or_else(String::new, |[low, high]| format!(" ({} to {})", amount(low), amount(high)));
    let (by, limit) = (format!("{}{within}", amount(gap.by)), rule.limit());
    let is_crossed = rule.is_crossed_by(gap.by);
    match standing {
        Standing::Better | Standing::Worse if is_crossed => {
            (Outcome::Regression, format!("{by} is a real difference and beyond {limit}"))
        }
        Standing::Better | Standing::Worse => (Outcome::Fine, format!("{by} is a real difference, not beyond {limit}")),
        _ if is_crossed => (Outcome::Fine, format!("{by} is beyond {limit}, but {}", doubt(gap, drift))),
        _ => {
            let is_open = interval.is_some_and(|ends| ends.into_iter().any(|end| rule.is_crossed_by(end)));
            let doubt = if is_open { format!("; one beyond {limit} is not ruled out") } else { String::new() };
            (Outcome::Fine, format!("no difference seen: {by}{doubt}"))
        }
    }
}

/// Why a difference is not called real.
fn doubt(gap: Gap, drift: Option<f64>) -> String {
    match drift.filter(|drift| gap.is_clear && gap.by.abs() < *drift) {
        Some(drift) => {
            let percent = format::percent(Some(drift));
            format!("this usually moves by up to {} from one experiment to the next", percent.text())
        }
        None => "may be chance".to_owned(),
    }
}

fn worst(checks: &[Check]) -> Outcome {
    [Outcome::Regression, Outcome::CannotSay]
        .into_iter()
        .find(|outcome| checks.iter().any(|check| check.outcome == *outcome))
        .unwrap_or(Outcome::Fine)
}

fn headline(outcome: Outcome, checks: &[Check]) -> String {
    let words = outcome.words();
    let telling: Vec<&Check> = checks.iter().filter(|check| check.outcome == outcome).collect();
    let Some(first) = telling.first() else { return words.to_owned() };
    let more = match telling.len() {
        1 => String::new(),
        count => format!(" (and {} more)", plural(count - 1, "check")),
    };
    match outcome {
        Outcome::Fine => format!("{words}: {} held", plural(checks.len(), "check")),
        Outcome::Regression => {
            format!("{words}: {} {} at {}{more}", first.metric.name(), first.difference(), first.setting)
        }
        Outcome::CannotSay => format!("{words}: {} at {}{more}", first.told, first.setting),
    }
}

#[cfg(test)]
mod tests;
