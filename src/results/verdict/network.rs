//! Detects a saturated network, which would measure itself.

use brewbench_wire::outcome::Conditions;

use crate::{
    results::verdict::limits::{Limit, Limits},
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(conditions: &Conditions, limits: &Limits) -> Option<Reason> {
    let network = conditions.network.as_ref()?;
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
