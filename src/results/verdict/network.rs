//! Detects a saturated or lossy network, which would measure itself.

use crate::{
    results::{
        conditions::{Conditions, NetworkUse},
        verdict::limits::{Limit, Limits},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// Fewer retransmitted segments are normal background traffic.
const MIN_RETRANSMITTED: u64 = 10;

pub(super) fn judge(conditions: &Conditions, limits: &Limits) -> impl Iterator<Item = Reason> {
    let network = conditions.network.as_ref();
    let apply = |rule: fn(&NetworkUse, &Limits) -> Option<Reason>| network.and_then(|network| rule(network, limits));
    [apply(saturated), apply(retransmits)].into_iter().flatten()
}

fn saturated(network: &NetworkUse, limits: &Limits) -> Option<Reason> {
    let (peak, speed) = (network.peak_bits? as f64, network.speed_bits.filter(|speed| *speed > 0)? as f64);
    let (share, limit) = (peak / speed, limits.get(Limit::NetworkSaturated));
    if share < limit {
        return None;
    }
    let text = format!(
        "{} was saturated: {:.0} of its {:.0} Mbit/s in one direction in the busiest third; a faster target would look \
        the same",
        network.interface.as_deref().unwrap_or("the network"),
        peak / 1e6,
        speed / 1e6
    );
    Some(Reason::new("network_saturated", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

fn retransmits(network: &NetworkUse, limits: &Limits) -> Option<Reason> {
    let (again, all) = (network.retransmitted?, network.segments.filter(|all| *all > 0)?);
    let (share, limit) = (again as f64 / all as f64, limits.get(Limit::Retransmits));
    if share <= limit || again < MIN_RETRANSMITTED {
        return None;
    }
    let text = format!("{again} of {all} TCP segments were retransmitted: each delays its request by 200 ms or more");
    Some(Reason::new("retransmits", Verdict::Suspect, text).with(share, limit, Unit::Share))
}
