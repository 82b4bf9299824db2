//! Whether the machine was left to the run.

use brewbench_agent::wire::summary::Figures;

use super::{
    Limit, Limits, Making, Reason, Recorded, Unit, Verdict,
    usage::{Span, spans},
};

/// CPU time of the kernel for the traffic of one request, seconds. Kernels that account for interrupts apart count it to
/// no process, so nobody shall be blamed for it.
const TRAFFIC_S: f64 = 15e-6;

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    if let Recorded::Series(series) = making.recorded
        && let Some(all) = Span::sum(&spans(series))
    {
        reasons.extend(steal(&all, limits));
        reasons.extend(disturbed(figures, making, &all, limits));
    }
    reasons.extend(not_quiet(making));
}

fn steal(all: &Span, limits: &Limits) -> Option<Reason> {
    let (share, limit) = (all.stolen(), limits.of(Limit::HostSteal));
    if share <= limit {
        return None;
    }
    let text = format!(
        "the hypervisor gave {:.2} cores to others, {} of the CPU time that was wanted here",
        all.steal(),
        Unit::Share.text(share)
    );
    Some(Reason::new("host_steal", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

fn disturbed(figures: &Figures, making: &Making<'_>, all: &Span, limits: &Limits) -> Option<Reason> {
    let cores = making.machine_cores.filter(|cores| *cores > 0.0)?;
    let others = (all.others() - figures.rps * TRAFFIC_S).max(0.0);
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
fn not_quiet(making: &Making<'_>) -> Option<Reason> {
    let ground = making.conditions.ground.filter(|ground| !ground.quiet)?;
    let text = format!(
        "the machine was not quiet before the load: others used {:.2} cores after a wait of {:.0} s, {:.2} are allowed",
        ground.busy_cores,
        ground.waited_ms as f64 / 1_000.0,
        ground.limit_cores
    );
    let reason = Reason::new("not_quiet_before", Verdict::Suspect, text);
    Some(reason.with(ground.busy_cores, ground.limit_cores, Unit::Cores))
}
