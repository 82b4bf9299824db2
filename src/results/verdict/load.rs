//! Checks whether the requested load was generated and served. Pure.

use brewbench_wire::{
    load::Load,
    load_record::Message,
    reports::{
        protocol::Protocol,
        summary::{FailedCheck, Figures},
    },
};

use crate::{
    results::verdict::{
        cut_short,
        limits::{Limit, Limits},
        model::Context,
        records::{self, commonest, count, described},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// One iteration less than requested is k6's rounding.
const ROUNDING: f64 = 1.0;

/// k6 stops its clock slightly early if the last iterations end early.
const DURATION_TOLERANCE: f64 = 0.99;

pub(super) fn judge(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits, reasons: &mut Vec<Reason>) {
    requests(figures, context, limits, reasons);
    checks(figures, limits, reasons);
    rate(figures, context, limits, reasons);
    if !is_cut(reasons) {
        length(figures, limits, reasons);
    }
}

/// Whether the script ended the load, which explains that it was short.
fn is_cut(reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| reason.code == cut_short::CODE)
}

fn requests(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits, reasons: &mut Vec<Reason>) {
    if figures.requests == 0 {
        let reason = Reason::new("no_requests", Verdict::Invalid, no_requests(context));
        return reasons.push(reason.with(0.0, 1.0, Unit::Count));
    }
    let Some(failed) = figures.failed else {
        if figures.protocol == Protocol::WebSocket {
            return;
        }
        let text = "the summary does not contain the number of failed requests";
        return reasons.push(Reason::new("failures_unknown", Verdict::Suspect, text));
    };
    if failed >= figures.requests {
        let reason = Reason::new("no_success", Verdict::Invalid, no_success(failed, context));
        return reasons.push(reason.with(1.0, limits.get(Limit::RequestsFailedInvalid), Unit::Share));
    }
    let bounds = [Limit::RequestsFailed, Limit::RequestsFailedInvalid].map(|limit| limits.get(limit));
    let cause = unexpected(context).map_or_else(String::new, |first| format!("; most often {}", first.text));
    let reason = share("requests_failed", "requests", failed, figures.requests, bounds);
    reasons.extend(reason.map(|reason| reason.and(&cause)));
}

/// Explains why no request is among the metrics.
fn no_requests(context: Option<&Context<'_>>) -> String {
    let interrupted = context.map_or(0, records::interrupted);
    match context.and_then(commonest) {
        Some(message) => format!("no request was made: {}", described(message)),
        None if interrupted > 0 => {
            let interrupted = count(interrupted);
            format!("no request finished: {interrupted} iterations were still in progress at the end of the load")
        }
        None if context.is_some() => "the load generator made no HTTP request: requests of other protocols are not \
            measured"
            .to_owned(),
        None => "no request was made".to_owned(),
    }
}

/// Explains why all requests failed.
fn no_success(failed: u64, context: Option<&Context<'_>>) -> String {
    let failures = context.and_then(|context| context.failures);
    let all = count(failed);
    if let Some(first) = unexpected(context).filter(|first| first.count >= failed) {
        return format!("every response was {}: all {all} requests failed", first.text);
    }
    let cause = match context.and_then(|context| records::messages(context, |record| record.errors.as_ref())) {
        Some((_, Some(first))) => described(first),
        _ if failures.is_some_and(|failures| failures.count > 0) => {
            unexpected(context).map_or_else(|| "no response".to_owned(), described)
        }
        Some((0, None)) => "the target returned only errors".to_owned(),
        Some(_) | None => "the target was down or returned only errors".to_owned(),
    };
    format!("all {all} requests failed: {cause}")
}

/// Returns the commonest response that the script did not expect. Requests without a response have errors.
fn unexpected<'a>(context: Option<&Context<'a>>) -> Option<&'a Message> {
    let failures = context?.failures?;
    failures.commonest.iter().find(|message| !message.text.starts_with("no response"))
}

fn checks(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let failed = figures.checks_failed.unwrap_or(0);
    let all = failed.saturating_add(figures.checks_passed.unwrap_or(0));
    let bounds = [Limit::ChecksFailed, Limit::ChecksFailedInvalid].map(|limit| limits.get(limit));
    let cause = figures.worst_check.as_ref().map_or_else(String::new, |FailedCheck { name, passes, fails }| {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("; “{name}” failed {} of {} times", count(*fails), count(passes.saturating_add(*fails)))
    });
    reasons.extend(share("checks_failed", "checks", failed, all, bounds).map(|reason| reason.and(&cause)));
}

/// Judges a share of failures by the limits for suspect and for invalid; a note if it is within both.
pub(super) fn share(code: &str, what: &str, failed: u64, all: u64, [suspect, invalid]: [f64; 2]) -> Option<Reason> {
    let rate = failed as f64 / all.max(1) as f64;
    let text = |limit| {
        let (rate, limit) = Unit::Share.texts(rate, limit);
        format!("{} of {} {what} failed: {rate}, the limit is {limit}", count(failed), count(all))
    };
    let (reason, limit) = match rate {
        rate if rate > invalid => (Reason::new(code, Verdict::Invalid, text(invalid)), invalid),
        rate if rate > suspect => (Reason::new(code, Verdict::Suspect, text(suspect)), suspect),
        rate if rate > 0.0 => (Reason::note(code, text(suspect)), suspect),
        _ => return None,
    };
    Some(reason.with(rate, limit, Unit::Share))
}

/// Checks that the iterations of an open model started on time.
fn rate(figures: &Figures, context: Option<&Context<'_>>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let interrupted = context.map_or(0, records::interrupted);
    let started = figures.iterations.unwrap_or(0).saturating_add(interrupted);
    let dropped = figures.dropped_iterations.unwrap_or(0);
    let all = started.saturating_add(dropped);
    let (share, limit) = (dropped as f64 / all.max(1) as f64, limits.get(Limit::IterationsDropped));
    if share > limit {
        let text = format!(
            "the load generator could not start {} of {} iterations in time ({}), because {}: the load was lower than \
             requested",
            count(dropped),
            count(all),
            Unit::Share.text(share),
            obstacle(context, figures, interrupted)
        );
        reasons.push(Reason::new("iterations_dropped", Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    // Dropped iterations are reported above, and so is a load that the script ended.
    let is_explained = share > limit || is_cut(reasons);
    let requested = context.and_then(|context| context.load).and_then(Load::iterations);
    let Some(requested) = requested.filter(|requested| *requested > 0.0 && !is_explained) else { return };
    let (kept, least) = (started as f64 / requested, limits.get(Limit::RateNotKept));
    if (started as f64) < requested * least - ROUNDING {
        let text = format!(
            "the load generator started {} of the {} requested iterations ({:.1} %): the load was too low",
            count(started),
            Unit::Count.text(requested.round()),
            kept * 100.0
        );
        reasons.push(Reason::new("rate_not_kept", Verdict::Suspect, text).with(kept, least, Unit::Share));
    }
}

/// A script's `rps` held k6 back if the requests came close to it.
const CLOSE_TO_LIMIT: f64 = 0.8;

/// Describes the script's option `rps`, if it was what limited the load.
pub(super) fn limited_by_script(context: &Context<'_>, rps: f64) -> Option<String> {
    let limit = records::rps_limit(context).filter(|limit| rps >= limit * CLOSE_TO_LIMIT)?;
    Some(format!("the script's option rps allows {limit} requests per second"))
}

/// Explains why iterations could not start.
fn obstacle(context: Option<&Context<'_>>, figures: &Figures, interrupted: u64) -> String {
    match context.and_then(|context| limited_by_script(context, figures.rps)) {
        Some(limited) => limited,
        None if interrupted > 0 => {
            let interrupted = count(interrupted);
            format!("all its virtual users were busy, {interrupted} of them in iterations that did not end")
        }
        None => "all its virtual users were busy".to_owned(),
    }
}

fn length(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let (seconds, least) = (figures.measured_ms / 1_000.0, limits.get(Limit::TooShort));
    if seconds < least * DURATION_TOLERANCE {
        let text = format!("measured only {}", Unit::Seconds.text(seconds));
        reasons.push(Reason::new("too_short", Verdict::Suspect, text).with(seconds, least, Unit::Seconds));
    }
}
