//! Whether generators on other machines made the load that was asked for: each is judged as one on the target's machine
//! is, and all of them by whether they did it together.

use super::{
    generator,
    host::{self, Others},
    network, series,
    usage::{Span, spans, thirds, throttled_share},
};
use crate::{
    results::{
        generator_record::{GeneratorSeen, Share},
        verdict::{
            limits::{Limit, Limits},
            model::{Judgement, Making, Recorded},
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let generators = making.generators;
    if generators.is_empty() {
        return;
    }
    let spans = match making.recorded {
        Recorded::Series(series) => spans(series, making.side()),
        Recorded::Nothing | Recorded::NotYet => Vec::new(),
    };
    let longest = generators.iter().filter_map(|one| Some(one.figures?.measured_ms)).fold(0.0, f64::max);
    reasons.extend(started_apart(generators, limits));
    for one in generators {
        let mut own = Vec::new();
        own.extend(share(one.figures.unwrap_or_default(), longest, limits));
        own.extend(busy(making, one, &spans, limits));
        if let Some(used) = &one.used {
            let cores = one.cores().unwrap_or(1.0);
            own.extend(generator::throttled(throttled_share(used.throttled, 1.0, cores), limits));
            own.extend(host::steal(used.steal, used.stolen, limits));
            let rps = one.figures.map_or(0.0, |figures| figures.rps);
            let others = Others::seen(&one.conditions, used.others, one.machine_cores());
            own.extend(others.and_then(|others| host::disturbed(&others, rps, limits)));
        }
        own.extend(host::not_quiet(&one.conditions));
        own.extend(network::judge(&one.conditions, limits));
        own.extend(crate::results::verdict::making::clock_jumped(&one.conditions, limits));
        // Of nothing nothing is missing.
        let requests = one.figures.map_or(0, |figures| figures.requests);
        own.extend((requests > 0).then(|| series::part(one.series, requests, limits)).flatten());
        reasons.extend(own.into_iter().map(|reason| of(&one.agent, reason)));
    }
}

/// Of a run that one of its generators could not do, or did not want to.
pub fn failed(sentence: &str) -> Judgement {
    vec![Reason::new("generator_failed", Verdict::Invalid, sentence)].into()
}

/// Of a run that one of its agents has left.
pub fn lost(sentence: &str) -> Judgement {
    vec![Reason::new("generator_lost", Verdict::Invalid, sentence)].into()
}

/// Says whose it is.
fn of(agent: &str, reason: Reason) -> Reason {
    Reason { text: format!("on {agent}: {}", reason.text), ..reason }
}

/// A generator that did nothing, or less long than the others.
fn share(figures: Share, longest: f64, limits: &Limits) -> Option<Reason> {
    if figures.requests == 0 {
        let reason = Reason::new("generator_idle", Verdict::Suspect, "k6 made not one request of its part of the load");
        return Some(reason.with(0.0, 1.0, Unit::Count));
    }
    let (kept, least) = (figures.measured_ms / longest, limits.of(Limit::EndedEarly));
    let seconds = |ms: f64| Unit::Seconds.text(ms / 1_000.0);
    (longest > 0.0 && kept < least).then(|| {
        let text = format!(
            "k6 measured for {} and others for {}: the target had less load than asked for",
            seconds(figures.measured_ms),
            seconds(longest)
        );
        Reason::new("ended_early", Verdict::Suspect, text).with(kept, least, Unit::Share)
    })
}

/// Busy while the target could do more; of the target that third is looked at.
fn busy(making: &Making<'_>, one: &GeneratorSeen, spans: &[Span], limits: &Limits) -> Option<Reason> {
    let used = one.used.as_ref()?;
    let (third, most) = used.thirds.iter().copied().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let of_target = thirds(spans);
    let meanwhile = if of_target.len() == used.thirds.len() { of_target[third] } else { spans };
    generator::busy(making, most, one.cores()?, &Span::sum(meanwhile)?, limits)
}

/// How far apart they began at most, as far as their clocks can tell.
fn started_apart(generators: &[GeneratorSeen], limits: &Limits) -> Option<Reason> {
    const CODE: &str = "started_apart";
    if let Some(unknown) = generators.iter().find(|one| one.clock.is_none()) {
        let text = format!("nobody knows whether all began together: the clock of {} was not compared", unknown.agent);
        return Some(Reason::new(CODE, Verdict::Suspect, text));
    }
    let starts = generators.iter().filter_map(|one| Some((one, one.after_first_ms? as f64, one.clock?.error_ms)));
    let (last, at, error) = starts.clone().max_by(|(_, a, ae), (_, b, be)| (a + ae).total_cmp(&(b + be)))?;
    let others = starts.filter(|(one, ..)| one.agent != last.agent);
    let (first, from, from_error) = others.min_by(|(_, a, ae), (_, b, be)| (a - ae).total_cmp(&(b - be)))?;
    let (apart, error, limit) = ((at - from).abs(), error + from_error, limits.of(Limit::StartedApart));
    // What the starts differ by is known but for what the clocks may be wrong.
    if apart + error <= limit {
        return None;
    }
    let text = format!(
        "{} and {} began {apart:.0} ms apart, and their clocks may be wrong by {error:.0} ms: the load was not whole from \
         the start",
        first.agent, last.agent
    );
    Some(Reason::new(CODE, Verdict::Suspect, text).with(apart + error, limit, Unit::Milliseconds))
}

#[cfg(test)]
mod tests;
