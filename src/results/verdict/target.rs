//! What the target did besides answering.

use brewbench_agent::wire::outcome::Cause;

use crate::{
    results::verdict::model::Making,
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(making: &Making<'_>, reasons: &mut Vec<Reason>) {
    if making.oom_kills > 0 {
        let text = format!("the kernel killed {} of the target: out of memory", processes(making.oom_kills));
        let reason = Reason::new("oom_killed", Verdict::Invalid, text);
        reasons.push(reason.with(making.oom_kills as f64, 0.0, Unit::Count));
    }
    reasons.extend(restarted(making));
    if let Some(change) = making.conditions.response_change.as_deref().filter(|change| !change.is_empty()) {
        let text = format!("the target answers otherwise than before the load: {change}");
        reasons.push(Reason::new("response_changed", Verdict::Invalid, text));
    }
}

/// Some servers renew their workers as they go; one that was replaced whole has crashed.
fn restarted(making: &Making<'_>) -> Option<Reason> {
    let gone = making.conditions.processes_gone.filter(|gone| *gone > 0)?;
    let of = making.conditions.processes.unwrap_or(gone).max(gone);
    let verdict = if gone == of { Verdict::Invalid } else { Verdict::Suspect };
    let text = format!("{gone} of the target's {} ended during the measurement", processes(of.into()));
    Some(Reason::new("target_restarted", verdict, text).with(gone.into(), 0.0, Unit::Count))
}

fn processes(count: u64) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// What a failure says of the target; nothing where it was not the target's.
pub(super) fn failure(cause: Cause, why: &str) -> Option<Reason> {
    let code = match cause {
        Cause::TargetNotReady => "target_not_ready",
        Cause::TargetDied => "target_died",
        Cause::TargetOutOfMemory => "oom_killed",
        Cause::Generator | Cause::Other => return None,
    };
    Some(Reason::new(code, Verdict::Invalid, why))
}
