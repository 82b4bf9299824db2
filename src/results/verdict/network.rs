//! Whether the network carried the load as it came: a full line, or one that loses packets, measures itself.

use crate::{
    results::{
        conditions::{Conditions, NetworkUse},
        verdict::limits::{Limit, Limits},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// Fewer segments than this are sent again in any minute, whatever else the machine talks about.
const NOTICED: u64 = 10;

pub(super) fn judge(conditions: &Conditions, limits: &Limits) -> impl Iterator<Item = Reason> {
    let network = conditions.network.as_ref();
    let of = |judge: fn(&NetworkUse, &Limits) -> Option<Reason>| network.and_then(|seen| judge(seen, limits));
    [of(saturated), of(retransmits)].into_iter().flatten()
}

fn saturated(seen: &NetworkUse, limits: &Limits) -> Option<Reason> {
    let (peak, speed) = (seen.peak_bits? as f64, seen.speed_bits.filter(|speed| *speed > 0)? as f64);
    let (share, limit) = (peak / speed, limits.of(Limit::NetworkSaturated));
    if share < limit {
        return None;
    }
    let text = format!(
        "{} was full: {:.0} of its {:.0} Mbit/s in one direction in the busiest third; a faster target would look the same",
        seen.interface.as_deref().unwrap_or("the network"),
        peak / 1e6,
        speed / 1e6
    );
    Some(Reason::new("network_saturated", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

fn retransmits(seen: &NetworkUse, limits: &Limits) -> Option<Reason> {
    let (again, all) = (seen.retransmitted?, seen.segments.filter(|all| *all > 0)?);
    let (share, limit) = (again as f64 / all as f64, limits.of(Limit::Retransmits));
    if share <= limit || again < NOTICED {
        return None;
    }
    let text = format!("{again} of {all} TCP segments were sent again: each delays its request by 200 ms or more");
    Some(Reason::new("retransmits", Verdict::Suspect, text).with(share, limit, Unit::Share))
}
