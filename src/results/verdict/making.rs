//! Whether the run was made as it says.

use brewbench_agent::wire::outcome::Mechanism;

use crate::{
    results::{
        conditions::{Conditions, Placement},
        verdict::{
            limits::{Limit, Limits},
            model::Making,
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let lacking: Vec<_> = [("CPU", making.enforced.cpu), ("memory", making.enforced.memory)]
        .into_iter()
        .filter(|(_, mechanism)| *mechanism == Mechanism::None)
        .map(|(what, _)| what)
        .collect();
    if !lacking.is_empty() {
        let text = format!("the machine size was not enforced: nothing limited {}", lacking.join(" and "));
        reasons.push(Reason::new("size_not_enforced", Verdict::Suspect, text));
    }
    reasons.extend(shared_cores(making));
    reasons.extend(making.conditions.placement.and_then(physical_cores));
    reasons.extend(clock_jumped(making.conditions, limits));
}

/// On other machines than the target's k6 takes nothing from it.
fn shared_cores(making: &Making<'_>) -> Option<Reason> {
    let cores = making.cores;
    let shared = cores.generator.iter().filter(|core| cores.target.contains(core)).count();
    if !making.generators.is_empty() || (!cores.generator.is_empty() && shared == 0) {
        return None;
    }
    let text = "k6 had no core of its own: it took time from the target";
    let reason = Reason::new("shared_cores", Verdict::Suspect, text);
    let known = !cores.generator.is_empty();
    Some(if known { reason.with(shared as f64, 0.0, Unit::Count) } else { reason })
}

/// What is said of processors that are no cores of their own.
fn physical_cores(placement: Placement) -> Option<Reason> {
    match placement {
        // The processors themselves report the latter.
        Placement::WholeCores | Placement::SharedCores => None,
        Placement::SiblingThreads => {
            let text =
                "the target's vCPUs were hyperthreads of the same physical cores: the machine has too few for one each";
            Some(Reason::note("sibling_threads", text))
        }
        Placement::SharedPhysicalCore => {
            let text = "k6 ran on hyperthreads of the target's physical cores, the machine has too few: it took time from the \
                        target";
            Some(Reason::new("shared_physical_core", Verdict::Suspect, text))
        }
    }
}

/// By how much a machine's clock was set during a run, in words.
pub fn clock_set(jumped_ms: i64) -> String {
    let way = if jumped_ms < 0 { "back" } else { "forward" };
    let far_ms = jumped_ms.unsigned_abs() as f64;
    let far = if far_ms < 10_000.0 { Unit::Milliseconds.text(far_ms) } else { Unit::Seconds.text(far_ms / 1_000.0) };
    format!("the machine's clock was set {way} by {far} during the run")
}

pub(super) fn clock_jumped(conditions: &Conditions, limits: &Limits) -> Option<Reason> {
    let jumped = conditions.clock_jump_ms.unwrap_or(0);
    let (seen, limit) = (jumped.unsigned_abs() as f64, limits.of(Limit::ClockJumped));
    if seen <= limit {
        return None;
    }
    Some(Reason::new("clock_jumped", Verdict::Suspect, clock_set(jumped)).with(seen, limit, Unit::Milliseconds))
}
