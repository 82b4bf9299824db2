//! Whether the machine was left to the run.

use brewbench_agent::wire::{outcome::Conditions, summary::Figures};

use super::{
    Limit, Limits, Making, Reason, Recorded, Unit, Verdict,
    usage::{Span, spans},
};

/// CPU time of the kernel for the traffic of one request, seconds. Kernels that account for interrupts apart count it to
/// no process, so nobody shall be blamed for it.
const TRAFFIC_S: f64 = 15e-6;

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    if let Recorded::Series(series) = making.recorded
        && let Some(all) = Span::sum(&spans(series, making.side()))
    {
        reasons.extend(steal(all.steal(), all.stolen(), limits));
        reasons.extend(disturbed(all.others(), figures.rps, making.machine_cores, limits));
    }
    reasons.extend(not_quiet(making.conditions));
}

/// `steal` in cores, `share` of what was wanted.
pub(super) fn steal(steal: f64, share: f64, limits: &Limits) -> Option<Reason> {
    let limit = limits.of(Limit::HostSteal);
    if share <= limit {
        return None;
    }
    let text = format!(
        "the hypervisor gave {steal:.2} cores to others, {} of the CPU time that was wanted here",
        Unit::Share.text(share)
    );
    Some(Reason::new("host_steal", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// `others` in cores, of a machine of so many, through which so many requests went each second.
pub(super) fn disturbed(others: f64, rps: f64, cores: Option<f64>, limits: &Limits) -> Option<Reason> {
    let cores = cores.filter(|cores| *cores > 0.0)?;
    let others = (others - rps * TRAFFIC_S).max(0.0);
    let (share, limit) = (others / cores, limits.of(Limit::HostDisturbed));
    if share <= limit {
        return None;
    }
    let text = format!(
        "other programs used {others:.2} of the machine's {cores} cores meanwhile ({})",
        Unit::Share.text(share)
    );
    Some(Reason::new("host_disturbed", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// Only what the agent saw while nothing of ours ran counts: the load average still has the run before in it.
pub(super) fn not_quiet(conditions: &Conditions) -> Option<Reason> {
    let ground = conditions.ground.filter(|ground| !ground.quiet)?;
    let text = format!(
        "the machine was not quiet before the load: others used {:.2} cores after a wait of {:.0} s, {:.2} are allowed",
        ground.busy_cores,
        ground.waited_ms as f64 / 1_000.0,
        ground.limit_cores
    );
    let reason = Reason::new("not_quiet_before", Verdict::Suspect, text);
    Some(reason.with(ground.busy_cores, ground.limit_cores, Unit::Cores))
}
