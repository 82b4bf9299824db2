//! Whether the load was what it should be, and was answered. Pure.

use brewbench_agent::{reports::summary::Figures, wire::load::Load};

use crate::{
    results::verdict::limits::{Limit, Limits},
    runs::verdict::{Reason, Unit, Verdict},
};

/// One iteration less than asked is k6's rounding.
const ROUNDING: f64 = 1.0;

/// k6's own clock ends a little early when the last iterations do.
const NEARLY: f64 = 0.99;

pub(super) fn judge(figures: &Figures, load: Option<&Load>, limits: &Limits, reasons: &mut Vec<Reason>) {
    requests(figures, limits, reasons);
    checks(figures, limits, reasons);
    rate(figures, load.and_then(Load::iterations), limits, reasons);
    length(figures, limits, reasons);
}

fn requests(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    if figures.requests == 0 {
        let reason = Reason::new("no_requests", Verdict::Invalid, "not one request was made");
        return reasons.push(reason.with(0.0, 1.0, Unit::Count));
    }
    let Some(failed) = figures.failed else {
        let text = "the summary does not say how many requests failed";
        return reasons.push(Reason::new("failures_unknown", Verdict::Suspect, text));
    };
    if failed >= figures.requests {
        let text = format!("all {failed} requests failed: the target was down or answered only errors");
        let reason = Reason::new("no_success", Verdict::Invalid, text);
        return reasons.push(reason.with(1.0, limits.of(Limit::RequestsFailedInvalid), Unit::Share));
    }
    let bounds = [Limit::RequestsFailed, Limit::RequestsFailedInvalid].map(|limit| limits.of(limit));
    reasons.extend(share("requests_failed", "requests", failed, figures.requests, bounds));
}

fn checks(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let failed = figures.checks_failed.unwrap_or(0);
    let of = failed.saturating_add(figures.checks_passed.unwrap_or(0));
    let bounds = [Limit::ChecksFailed, Limit::ChecksFailedInvalid].map(|limit| limits.of(limit));
    reasons.extend(share("checks_failed", "checks", failed, of, bounds));
}

/// A share of failures against the limit of the suspect and that of the invalid; a note where it is within both.
fn share(code: &str, what: &str, failed: u64, of: u64, [suspect, invalid]: [f64; 2]) -> Option<Reason> {
    let rate = failed as f64 / of.max(1) as f64;
    let told = |limit| {
        let (rate, limit) = Unit::Share.texts(rate, limit);
        format!("{failed} of {of} {what} failed: {rate}, the limit is {limit}")
    };
    let (reason, limit) = match rate {
        rate if rate > invalid => (Reason::new(code, Verdict::Invalid, told(invalid)), invalid),
        rate if rate > suspect => (Reason::new(code, Verdict::Suspect, told(suspect)), suspect),
        rate if rate > 0.0 => (Reason::note(code, told(suspect)), suspect),
        _ => return None,
    };
    Some(reason.with(rate, limit, Unit::Share))
}

/// An open load is only what it says if its iterations began when they should have.
fn rate(figures: &Figures, asked: Option<f64>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let done = figures.iterations.unwrap_or(0);
    let dropped = figures.dropped_iterations.unwrap_or(0);
    let of = done.saturating_add(dropped);
    let (share, limit) = (dropped as f64 / of.max(1) as f64, limits.of(Limit::IterationsDropped));
    if share > limit {
        let text = format!(
            "k6 could not start {dropped} of {of} iterations in time ({}), because all its virtual users were busy: \
             less load than asked for",
            Unit::Share.text(share)
        );
        reasons.push(Reason::new("iterations_dropped", Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    // What was dropped is told above.
    let Some(asked) = asked.filter(|asked| *asked > 0.0 && share <= limit) else { return };
    let (kept, least) = (done as f64 / asked, limits.of(Limit::RateNotKept));
    if (done as f64) < asked * least - ROUNDING {
        let text = format!(
            "k6 made {done} iterations of the {asked:.0} that the rate asks for ({:.1} %): less load than asked for",
            kept * 100.0
        );
        reasons.push(Reason::new("rate_not_kept", Verdict::Suspect, text).with(kept, least, Unit::Share));
    }
}

fn length(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let (seconds, least) = (figures.measured_ms / 1_000.0, limits.of(Limit::TooShort));
    if seconds < least * NEARLY {
        let text = format!("only {} were measured", Unit::Seconds.text(seconds));
        reasons.push(Reason::new("too_short", Verdict::Suspect, text).with(seconds, least, Unit::Seconds));
    }
}
