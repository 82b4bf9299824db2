//! Checks whether the requested load was generated and served. Pure.

use brewbench_agent::{reports::summary::Figures, wire::load::Load};

use crate::{
    results::verdict::limits::{Limit, Limits},
    runs::verdict::{Reason, Unit, Verdict},
};

/// One iteration less than requested is k6's rounding.
const ROUNDING: f64 = 1.0;

/// k6 stops its clock slightly early if the last iterations end early.
const DURATION_TOLERANCE: f64 = 0.99;

pub(super) fn judge(figures: &Figures, load: Option<&Load>, limits: &Limits, reasons: &mut Vec<Reason>) {
    requests(figures, limits, reasons);
    checks(figures, limits, reasons);
    rate(figures, load.and_then(Load::iterations), limits, reasons);
    length(figures, limits, reasons);
}

fn requests(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    if figures.requests == 0 {
        let reason = Reason::new("no_requests", Verdict::Invalid, "no request was made");
        return reasons.push(reason.with(0.0, 1.0, Unit::Count));
    }
    let Some(failed) = figures.failed else {
        let text = "the summary does not contain the number of failed requests";
        return reasons.push(Reason::new("failures_unknown", Verdict::Suspect, text));
    };
    if failed >= figures.requests {
        let text = format!("all {failed} requests failed: the target was down or returned only errors");
        let reason = Reason::new("no_success", Verdict::Invalid, text);
        return reasons.push(reason.with(1.0, limits.get(Limit::RequestsFailedInvalid), Unit::Share));
    }
    let bounds = [Limit::RequestsFailed, Limit::RequestsFailedInvalid].map(|limit| limits.get(limit));
    reasons.extend(share("requests_failed", "requests", failed, figures.requests, bounds));
}

fn checks(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let failed = figures.checks_failed.unwrap_or(0);
    let all = failed.saturating_add(figures.checks_passed.unwrap_or(0));
    let bounds = [Limit::ChecksFailed, Limit::ChecksFailedInvalid].map(|limit| limits.get(limit));
    reasons.extend(share("checks_failed", "checks", failed, all, bounds));
}

/// Judges a share of failures by the limits for suspect and for invalid; a note if it is within both.
fn share(code: &str, what: &str, failed: u64, all: u64, [suspect, invalid]: [f64; 2]) -> Option<Reason> {
    let rate = failed as f64 / all.max(1) as f64;
    let text = |limit| {
        let (rate, limit) = Unit::Share.texts(rate, limit);
        format!("{failed} of {all} {what} failed: {rate}, the limit is {limit}")
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
fn rate(figures: &Figures, requested: Option<f64>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let done = figures.iterations.unwrap_or(0);
    let dropped = figures.dropped_iterations.unwrap_or(0);
    let all = done.saturating_add(dropped);
    let (share, limit) = (dropped as f64 / all.max(1) as f64, limits.get(Limit::IterationsDropped));
    if share > limit {
        let text = format!(
            "k6 could not start {dropped} of {all} iterations in time ({}), because all its virtual users were busy: \
             the load was lower than requested",
            Unit::Share.text(share)
        );
        reasons.push(Reason::new("iterations_dropped", Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    // Dropped iterations are reported above.
    let Some(requested) = requested.filter(|requested| *requested > 0.0 && share <= limit) else { return };
    let (kept, least) = (done as f64 / requested, limits.get(Limit::RateNotKept));
    if (done as f64) < requested * least - ROUNDING {
        let text = format!(
            "k6 completed {done} of the {requested:.0} requested iterations ({:.1} %): the load was too low",
            kept * 100.0
        );
        reasons.push(Reason::new("rate_not_kept", Verdict::Suspect, text).with(kept, least, Unit::Share));
    }
}

fn length(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let (seconds, least) = (figures.measured_ms / 1_000.0, limits.get(Limit::TooShort));
    if seconds < least * DURATION_TOLERANCE {
        let text = format!("measured only {}", Unit::Seconds.text(seconds));
        reasons.push(Reason::new("too_short", Verdict::Suspect, text).with(seconds, least, Unit::Seconds));
    }
}
