//! Whether the machine was left to the run. Pure.

use brewbench_agent::reports::summary::Figures;

use super::usage::{Span, spans};
use crate::{
    results::{
        conditions::{Conditions, CoreUse},
        verdict::{
            limits::{Limit, Limits},
            model::{Making, Recorded},
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// CPU time of the kernel for the traffic of one request, seconds. Kernels that account for interrupts apart count it to
/// no process, so nobody shall be blamed for it.
const TRAFFIC_S: f64 = 15e-6;

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    if let Recorded::Series(series) = making.recorded
        && let Some(all) = Span::sum(&spans(series, making.side()))
    {
        reasons.extend(steal(all.steal(), all.stolen(), limits));
        let others = Others::seen(making.conditions, all.others(), making.machine_cores);
        reasons.extend(others.and_then(|others| disturbed(&others, figures.rps, limits)));
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

/// What others than target and k6 used, in cores.
pub(super) struct Others {
    used: f64,
    /// Of so many.
    cores: f64,
    /// Whose they are.
    whose: &'static str,
}

impl Others {
    /// On the run's processors, where the agent watched these; else on the whole machine. None where it is not known
    /// how many there are.
    pub(super) fn seen(conditions: &Conditions, on_machine: f64, machine_cores: Option<f64>) -> Option<Self> {
        if let Some(CoreUse { cores, elapsed_us, busy_us, target_us, generator_us }) = conditions.core_use {
            let others_us = busy_us.saturating_sub(target_us.saturating_add(generator_us));
            let used = others_us as f64 / elapsed_us.max(1) as f64;
            return Some(Self { used, cores: cores.into(), whose: "run" }).filter(|others| others.cores > 0.0);
        }
        let cores = machine_cores.filter(|cores| *cores > 0.0)?;
        Some(Self { used: on_machine, cores, whose: "machine" })
    }
}

/// So many requests went through the machine each second.
pub(super) fn disturbed(others: &Others, rps: f64, limits: &Limits) -> Option<Reason> {
    let Others { used, cores, whose } = *others;
    let used = (used - rps * TRAFFIC_S).max(0.0);
    let (share, limit) = (used / cores, limits.of(Limit::HostDisturbed));
    if share <= limit {
        return None;
    }
    let text =
        format!("other programs used {used:.2} of the {whose}'s {cores} cores meanwhile ({})", Unit::Share.text(share));
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
