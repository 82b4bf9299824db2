//! Whether the run was made as it says.

use brewbench_agent::wire::outcome::Mechanism;

use super::{Limit, Limits, Making, Reason, Unit, Verdict};

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
    let cores = making.cores;
    let shared = cores.generator.iter().filter(|core| cores.target.contains(core)).count();
    if cores.generator.is_empty() || shared > 0 {
        let text = "k6 had no core of its own: it took time from the target";
        let reason = Reason::new("shared_cores", Verdict::Suspect, text);
        let known = !cores.generator.is_empty();
        reasons.push(if known { reason.with(shared as f64, 0.0, Unit::Count) } else { reason });
    }
    let jumped = making.conditions.clock_jump_ms.unwrap_or(0);
    let (seen, limit) = (jumped.unsigned_abs() as f64, limits.of(Limit::ClockJumped));
    if seen > limit {
        let text = format!(
            "the machine's clock was set {} by {} during the run",
            if jumped < 0 { "back" } else { "forward" },
            Unit::Milliseconds.text(seen)
        );
        reasons.push(Reason::new("clock_jumped", Verdict::Suspect, text).with(seen, limit, Unit::Milliseconds));
    }
}
