//! Checks whether the users of an import spent their time in requests, by Little's law (see `little`). Pure.
//!
//! Of an import neither load nor script is known, so the number of users is derived from what they did:
//!
//! - k6: iterations × their duration is the time that users spent in iterations, in any load. Pauses are part of the
//!   script. Waits for connections are neither pauses nor answers of the target, and latencies exclude them.
//! - wrk: each connection sends its next request on a response, without pauses.

use brewbench_wire::reports::summary::Figures;

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        little::MAX_FAILED,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// wrk's mean latency excludes connections that never answered, so that honest results lack up to a third.
const TOLERANCE_OF_WRK: f64 = 2.0;

pub(super) fn judge(figures: &Figures, limits: &Limits, reasons: &mut Vec<Reason>) {
    let failed = figures.failed.map_or(1.0, |failed| failed as f64 / figures.requests.max(1) as f64);
    // Reconnects are reported once.
    if failed > MAX_FAILED || reasons.iter().any(|reason| reason.code == "generator_blocked") {
        return;
    }
    let limit = limits.get(Limit::GeneratorHeldBack);
    reasons.extend(of_k6(figures, limit).or_else(|| of_wrk(figures, (TOLERANCE_OF_WRK * limit).min(1.0))));
}

fn of_k6(figures: &Figures, limit: f64) -> Option<Reason> {
    let Figures { rps, measured_ms, .. } = figures;
    let active = figures.iterations? as f64 * figures.iteration_ms? / measured_ms;
    let in_requests = rps / 1_000.0 * figures.latency.avg_ms?;
    // Requests of a batch wait at the same time.
    let waiting = (rps / 1_000.0 * figures.blocked_ms?).min(active - in_requests);
    let text = format!(
        "of {active:.1} virtual users that ran the script {in_requests:.1} were in requests and {waiting:.1} waited for \
         connections on average, by throughput × time; the rest were in pauses or in the script"
    );
    reason(waiting / active, limit, text)
}

fn of_wrk(figures: &Figures, limit: f64) -> Option<Reason> {
    let connections = figures.closed_connections? as f64;
    let in_requests = figures.rps / 1_000.0 * figures.latency.avg_ms?;
    let text = format!(
        "of {connections:.0} connections {in_requests:.1} were in requests on average, by throughput × latency: the rest \
         of the time went into new connections, pauses or wrk itself"
    );
    reason(1.0 - in_requests / connections, limit, text)
}

fn reason(share: f64, limit: f64, text: String) -> Option<Reason> {
    let reason = || Reason::new("generator_held_back", Verdict::Suspect, text).with(share, limit, Unit::Share);
    (share > limit).then(reason)
}
