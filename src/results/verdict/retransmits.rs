//! Judges segments that were lost between load generator and target. Pure.
//!
//! Only those of the run's own connections count. A segment that is sent again although the other end already had it,
//! such as the probe of a tail loss (RFC 8985) on loopback, delays nothing.

use brewbench_wire::outcome::Conditions;

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        records::count,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

const CODE: &str = "retransmits";

/// Fewer lost segments are normal.
const MIN_LOST: u64 = 10;

/// Linux waits at least this long for a timeout (`TCP_RTO_MIN`), milliseconds.
const TIMEOUT_MS: f64 = 200.0;

/// Judges the conditions of a machine; `slowest_ms` is the run's slowest request, if known.
pub(super) fn judge(conditions: &Conditions, slowest_ms: Option<f64>, limits: &Limits) -> Option<Reason> {
    let limit = limits.get(Limit::Retransmits);
    let Some(segments) = conditions.traffic.as_ref().map(|traffic| traffic.segments).filter(|all| all.sent > 0) else {
        return of_machine(conditions, limit);
    };
    let (lost, sent) = (segments.lost(), segments.sent);
    let share = lost as f64 / sent as f64;
    if share <= limit || lost < MIN_LOST {
        return None;
    }
    let counts = format!("{} of {}", count(lost), count(sent));
    let text = format!("{counts} TCP segments between load generator and target were lost and sent again");
    let is_loopback = conditions.network.as_ref().is_none_or(|network| network.interface.is_none());
    let slowest = slowest_ms.map(|ms| format!("; the slowest request took {}", Unit::Milliseconds.text(ms)));
    let slowest = slowest.unwrap_or_default();
    let reason = match slowest_ms {
        // Within a machine a round trip takes microseconds.
        Some(ms) if ms < TIMEOUT_MS && is_loopback => {
            Reason::note(CODE, format!("{text}{slowest}, so none waited for a timeout"))
        }
        Some(ms) if ms < TIMEOUT_MS => {
            Reason::new(CODE, Verdict::Suspect, format!("{text}: each delays its request by a round trip{slowest}"))
        }
        _ => {
            let text = format!(
                "{text}: each delays its request by a round trip, or by 200 ms or more after a timeout{slowest}"
            );
            Reason::new(CODE, Verdict::Suspect, text)
        }
    };
    Some(reason.with(share, limit, Unit::Share))
}

/// Notes what an older agent, or one that can't see the connections, counted for the whole machine.
fn of_machine(conditions: &Conditions, limit: f64) -> Option<Reason> {
    let network = conditions.network.as_ref()?;
    let (again, all) = (network.retransmitted?, network.segments.filter(|all| *all > 0)?);
    let share = again as f64 / all as f64;
    (share > limit && again >= MIN_LOST).then(|| {
        let text = format!(
            "{} of {} TCP segments of the whole machine were sent again; unknown how many were lost, and whose they \
             are",
            count(again),
            count(all)
        );
        Reason::note(CODE, text).with(share, limit, Unit::Share)
    })
}

#[cfg(test)]
mod tests;
