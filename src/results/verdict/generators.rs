//! Judges the generators of a distributed run: each like one on the target's machine, and all of them by whether they
//! ran at the same time.

use std::collections::BTreeMap;

use super::{
    generator,
    host::{self, Others},
    network, reach, retransmits, series,
    usage::{Span, spans, thirds, throttled_share},
};
use crate::{
    results::{
        generator_record::{GeneratorRecord, Share},
        verdict::{
            limits::{Limit, Limits},
            model::{Context, Judgement, SeriesState},
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let generators = context.generators;
    if generators.is_empty() {
        return;
    }
    let spans = match context.series {
        SeriesState::Series(series) => spans(series, context.side(), 1.0),
        SeriesState::Missing | SeriesState::NotRecorded => Vec::new(),
    };
    let longest = generators.iter().filter_map(|one| Some(one.figures?.measured_ms)).fold(0.0, f64::max);
    reasons.extend(started_apart(generators, limits));
    let mut found = Vec::new();
    for one in generators {
        let mut own = Vec::new();
        own.extend(share(one.figures.unwrap_or_default(), longest, limits));
        own.extend(busy(context, one, &spans, limits));
        if let Some(used) = &one.used {
            let cores = one.cores().unwrap_or(1.0);
            own.extend(generator::throttled(throttled_share(used.throttled, 1.0, cores), limits));
            own.extend(host::steal(used.steal, used.stolen, limits));
            let rps = one.figures.map_or(0.0, |figures| figures.rps);
            let others = Others::observed(&one.conditions, used.others, one.machine_cores());
            own.extend(others.and_then(|others| host::disturbed(&others, rps, limits)));
        }
        own.extend(host::not_idle(&one.conditions));
        own.extend(network::judge(&one.conditions, limits));
        own.extend(retransmits::judge(&one.conditions, None, limits));
        own.extend(reach::elsewhere(&one.conditions, None, None, limits));
        own.extend(crate::results::verdict::setup::clock_jumped(&one.conditions, limits));
        // Without requests there is nothing to be incomplete.
        let requests = one.figures.map_or(0, |figures| figures.requests);
        own.extend((requests > 0).then(|| series::part(one.series, requests, limits)).flatten());
        found.extend(own.into_iter().map(|reason| (one.agent.as_str(), reason)));
    }
    reasons.extend(by_code(found));
}

/// Names the generators in their reasons. A reason that more of them share than this is given once, for the first.
const MAX_ALIKE: usize = 4;

fn by_code(found: Vec<(&str, Reason)>) -> Vec<Reason> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, reason) in &found {
        *counts.entry(reason.code.clone()).or_default() += 1;
    }
    let mut shown = Vec::new();
    for (agent, reason) in found {
        let count = counts.get(&reason.code).copied().unwrap_or(0);
        if count <= MAX_ALIKE {
            shown.push(on_agent(agent, reason));
        } else if !shown.iter().any(|known: &Reason| known.code == reason.code) {
            shown.push(on_agent(&format!("{agent} and {} others", count - 1), reason));
        }
    }
    shown
}

/// Judges a run whose generator failed or declined it.
pub fn failed(sentence: &str) -> Judgement {
    vec![Reason::new("generator_failed", Verdict::Invalid, sentence)].into()
}

/// Judges a run that lost one of its agents.
pub fn lost(sentence: &str) -> Judgement {
    vec![Reason::new("generator_lost", Verdict::Invalid, sentence)].into()
}

/// Names the agent in a reason.
fn on_agent(agent: &str, reason: Reason) -> Reason {
    Reason { text: format!("on {agent}: {}", reason.text), ..reason }
}

/// Judges a generator that made no request, or measured for less time than the others.
fn share(figures: Share, longest: f64, limits: &Limits) -> Option<Reason> {
    if figures.requests == 0 {
        let reason = Reason::new(
            "generator_idle",
            Verdict::Suspect,
            "the load generator made no request of its part of the load",
        );
        return Some(reason.with(0.0, 1.0, Unit::Count));
    }
    let (kept, least) = (figures.measured_ms / longest, limits.get(Limit::EndedEarly));
    let seconds = |ms: f64| Unit::Seconds.text(ms / 1_000.0);
    (longest > 0.0 && kept < least).then(|| {
        let text = format!(
            "the load generator measured for {}, another generator for {}: the load was lower than requested",
            seconds(figures.measured_ms),
            seconds(longest)
        );
        Reason::new("ended_early", Verdict::Suspect, text).with(kept, least, Unit::Share)
    })
}

/// Judges a generator that was busy while the target was not saturated in the same third.
fn busy(context: &Context<'_>, one: &GeneratorRecord, spans: &[Span], limits: &Limits) -> Option<Reason> {
    let used = one.used.as_ref()?;
    let (third, most) = used.thirds.iter().copied().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let target_thirds = thirds(spans);
    let target = if target_thirds.len() == used.thirds.len() { target_thirds[third] } else { spans };
    generator::busy(context, most, one.cores()?, &Span::sum(target)?, limits)
}

/// Judges how far apart the generators may have started, including clock errors.
fn started_apart(generators: &[GeneratorRecord], limits: &Limits) -> Option<Reason> {
    const CODE: &str = "started_apart";
    if let Some(unknown) = generators.iter().find(|one| one.clock.is_none()) {
        let text =
            format!("unknown whether all generators started together: the clock of {} was not compared", unknown.agent);
        return Some(Reason::new(CODE, Verdict::Suspect, text));
    }
    let starts = generators.iter().filter_map(|one| Some((one, one.after_first_ms? as f64, one.clock?.error_ms)));
    let (last, at, error) = starts.clone().max_by(|(_, a, ae), (_, b, be)| (a + ae).total_cmp(&(b + be)))?;
    let others = starts.filter(|(one, ..)| one.agent != last.agent);
    let (first, from, from_error) = others.min_by(|(_, a, ae), (_, b, be)| (a - ae).total_cmp(&(b - be)))?;
    let (apart, error, limit) = ((at - from).abs(), error + from_error, limits.get(Limit::StartedApart));
    // Clocks are exact only within their error.
    if apart + error <= limit {
        return None;
    }
    let text = format!(
        "{} and {} started {apart:.0} ms apart, with a clock error of up to {error:.0} ms: the load was incomplete at \
         the start",
        first.agent, last.agent
    );
    Some(Reason::new(CODE, Verdict::Suspect, text).with(apart + error, limit, Unit::Milliseconds))
}

#[cfg(test)]
mod tests;
