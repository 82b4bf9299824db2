//! Checks the setup of a run: machine size, cores and clock.

use brewbench_wire::outcome::{Conditions, Mechanism, Placement};

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::Context,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let unlimited: Vec<_> = [("CPU", context.enforced.cpu), ("memory", context.enforced.memory)]
        .into_iter()
        .filter(|(_, mechanism)| *mechanism == Mechanism::None)
        .map(|(what, _)| what)
        .collect();
    if !unlimited.is_empty() {
        let text = format!("the machine size was not enforced: nothing limited {}", unlimited.join(" and "));
        reasons.push(if context.is_url() {
            // By its kind: the size says what the user believes the server has.
            Reason::note(
                "size_not_enforced",
                "the size is only a name: an agent can't limit a server that already runs",
            )
        } else {
            Reason::new("size_not_enforced", Verdict::Suspect, text)
        });
    }
    if context.conditions.emulated == Some(true) {
        let text = "the virtual machine's CPU was emulated, so the figures say nothing about real machines";
        reasons.push(Reason::new("emulated", Verdict::Suspect, text));
    }
    if context.conditions.shares_cores == Some(true) {
        let text = "other Pods could use the target's cores: its node gives cores of their own to whole vCPUs only, \
            and only with the CPU manager policy `static`";
        reasons.push(Reason::note("shares_node", text));
    }
    reasons.extend(shared_cores(context));
    reasons.extend(context.conditions.placement.and_then(physical_cores));
    reasons.extend(clock_jumped(context.conditions, limits));
}

/// Judges cores shared by k6 and target; not for generators on other machines.
fn shared_cores(context: &Context<'_>) -> Option<Reason> {
    let cores = context.cores;
    let shared = cores.generator.iter().filter(|core| cores.target.contains(core)).count();
    if !context.generators.is_empty() || (!cores.generator.is_empty() && shared == 0) {
        return None;
    }
    let text = "the load generator had no core of its own: it took CPU time from the target";
    let reason = Reason::new("shared_cores", Verdict::Suspect, text);
    let known = !cores.generator.is_empty();
    Some(if known { reason.with(shared as f64, 0.0, Unit::Count) } else { reason })
}

/// Judges vCPUs that are not physical cores of their own.
fn physical_cores(placement: Placement) -> Option<Reason> {
    match placement {
        // `shared_cores` reports the latter.
        Placement::WholeCores | Placement::SharedCores => None,
        Placement::SiblingThreads => {
            let text =
                "the target's vCPUs were hyperthreads of the same physical cores: the machine has too few of them";
            Some(Reason::note("sibling_threads", text))
        }
        Placement::SharedPhysicalCore => {
            let text = "the load generator ran on hyperthreads of the target's physical cores and took CPU time from \
                it: the machine has too few cores";
            Some(Reason::new("shared_physical_core", Verdict::Suspect, text))
        }
    }
}

/// Describes a clock change during a run.
pub fn clock_set(jumped_ms: i64) -> String {
    let way = if jumped_ms < 0 { "back" } else { "forward" };
    let far_ms = jumped_ms.unsigned_abs() as f64;
    let far = if far_ms < 10_000.0 { Unit::Milliseconds.text(far_ms) } else { Unit::Seconds.text(far_ms / 1_000.0) };
    format!("the machine's clock was set {way} by {far} during the run")
}

pub(super) fn clock_jumped(conditions: &Conditions, limits: &Limits) -> Option<Reason> {
    let jumped = conditions.clock_jump_ms.unwrap_or(0);
    let (observed, limit) = (jumped.unsigned_abs() as f64, limits.get(Limit::ClockJumped));
    if observed <= limit {
        return None;
    }
    Some(Reason::new("clock_jumped", Verdict::Suspect, clock_set(jumped)).with(observed, limit, Unit::Milliseconds))
}
