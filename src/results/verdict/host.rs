//! Detects other activity on the machine. Pure.

use brewbench_wire::{
    outcome::{Conditions, CoreUse},
    reports::summary::Figures,
};

use super::{
    generator::DELAYED,
    usage::{Span, spans},
};
use crate::{
    results::{
        generator_record::GeneratorRecord,
        verdict::{
            limits::{Limit, Limits},
            model::{Context, SeriesState},
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// CPU time of the kernel for the traffic of one request, seconds; kernels with separate interrupt accounting assign it
/// to no process, so it must not count as other activity.
const TRAFFIC_S: f64 = 15e-6;

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    // The agent's machine takes no part in a load from Pods.
    if context.generators.iter().any(GeneratorRecord::is_pod) {
        return;
    }
    if let SeriesState::Series(series) = context.series
        && let Some(all) = Span::sum(&spans(series, context.side(), 1.0))
    {
        // Both targets of a duet shared it.
        let shared = |reason: Reason| if context.is_duet() { with_partner(reason) } else { reason };
        reasons.extend(steal(all.steal(), all.stolen(), limits).map(shared));
        let others = Others::observed(context.conditions, all.others(), context.machine_cores);
        let disturbed = others.and_then(|others| disturbed(&others, figures.rps, limits));
        let disturbed = disturbed.map(|reason| if context.is_beside_url() { with_target(reason) } else { reason });
        if disturbed.as_ref().is_some_and(|reason| !reason.is_note()) {
            // Then k6 waited for these programs.
            reasons.retain(|reason| reason.code != DELAYED);
        }
        reasons.extend(disturbed.map(shared));
    }
    reasons.extend(not_idle(context.conditions));
}

/// Judges stolen CPU time: `steal` in cores, `share` of the requested CPU time.
pub(super) fn steal(steal: f64, share: f64, limits: &Limits) -> Option<Reason> {
    let limit = limits.get(Limit::HostSteal);
    if share <= limit {
        return None;
    }
    let text = format!(
        "the hypervisor gave {steal:.2} cores to other virtual machines, {} of the requested CPU time",
        Unit::Share.text(share)
    );
    Some(Reason::new("host_steal", Verdict::Suspect, text).with(share, limit, Unit::Share))
}

/// CPU use of programs other than target and k6, in cores.
pub(super) struct Others {
    used: f64,
    /// How many threads of target and load generator waited for a processor on average, if known.
    waiting: Option<f64>,
    /// Number of cores that it was measured on.
    cores: f64,
    /// Whose cores these are.
    whose: &'static str,
}

impl Others {
    /// Returns the use on the run's processors if the agent measured it, or else on the whole machine.
    ///
    /// None if the number of processors is unknown.
    pub(super) fn observed(conditions: &Conditions, on_machine: f64, machine_cores: Option<f64>) -> Option<Self> {
        if let Some(CoreUse { cores, elapsed_us, busy_us, target_us, generator_us, .. }) = conditions.core_use {
            let others_us = busy_us.saturating_sub(target_us.saturating_add(generator_us));
            let used = others_us as f64 / elapsed_us.max(1) as f64;
            let others = Self { used, waiting: waiting(conditions), cores: cores.into(), whose: "run" };
            return Some(others).filter(|others| others.cores > 0.0);
        }
        let cores = machine_cores.filter(|cores| *cores > 0.0)?;
        Some(Self { used: on_machine, waiting: None, cores, whose: "machine" })
    }
}

/// Returns how many threads of target and load generator waited for a processor on average; None if the agent did not
/// measure it.
fn waiting(conditions: &Conditions) -> Option<f64> {
    let CoreUse { elapsed_us, target_waited_us, generator_waited_us, .. } = conditions.core_use?;
    let waited_us = target_waited_us?.saturating_add(generator_waited_us?);
    (elapsed_us > 0).then(|| waited_us as f64 / elapsed_us as f64)
}

/// Judges other activity; `rps` requests per second went through the machine.
///
/// A run loses something to others only if they use its cores and its threads wait: programs of low priority use what
/// is left, and threads that wait while nobody else runs wait for each other.
pub(super) fn disturbed(others: &Others, rps: f64, limits: &Limits) -> Option<Reason> {
    let Others { used, waiting, cores, whose } = *others;
    let used = (used - rps * TRAFFIC_S).max(0.0);
    let (share, limit) = (used / cores, limits.get(Limit::HostDisturbed));
    if share <= limit {
        return None;
    }
    let text = format!("other programs used {used:.2} of the {whose}'s {cores} cores ({})", Unit::Share.text(share));
    let Some(waiting) = waiting else {
        return Some(Reason::new("host_disturbed", Verdict::Suspect, text).with(share, limit, Unit::Share));
    };
    let text = format!("{text}; {waiting:.2} threads of target and load generator waited for a core on average");
    let (waited, limit) = (waiting / cores, limits.get(Limit::HostWaited));
    let reason = if waited > limit {
        Reason::new("host_disturbed", Verdict::Suspect, text)
    } else {
        Reason::note("host_disturbed", text)
    };
    Some(reason.with(waited, limit, Unit::Share))
}

/// Turns a disturbance of a duet into a note: it affected both targets alike.
fn with_partner(reason: Reason) -> Reason {
    Reason { verdict: Verdict::Valid, ..reason }.and("; both targets of the duet shared it")
}

/// Turns a disturbance into a note: a server that already runs may be one of the other programs.
fn with_target(reason: Reason) -> Reason {
    let text = format!("{}; one of them may be the target", reason.text);
    Reason { verdict: Verdict::Valid, text, ..reason }
}

/// Judges the idle wait, not the load average, which still contains the previous run. A note if the agent measured what
/// the run lost to other programs: then that decides.
pub(super) fn not_idle(conditions: &Conditions) -> Option<Reason> {
    let idle_wait = conditions.idle_wait.filter(|idle_wait| !idle_wait.idle)?;
    let text = format!(
        "the machine was not idle before the load: other programs used {:.2} cores after {:.0} s, the limit is {:.2}",
        idle_wait.busy_cores,
        idle_wait.waited_ms as f64 / 1_000.0,
        idle_wait.limit_cores
    );
    let reason = match waiting(conditions) {
        Some(_) => Reason::note("not_quiet_before", text),
        None => Reason::new("not_quiet_before", Verdict::Suspect, text),
    };
    Some(reason.with(idle_wait.busy_cores, idle_wait.limit_cores, Unit::Cores))
}
