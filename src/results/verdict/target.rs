//! Judges the target: OOM kills, restarts, changed responses and failures.

use brewbench_wire::outcome::Cause;

use crate::{
    results::verdict::model::Context,
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(context: &Context<'_>, reasons: &mut Vec<Reason>) {
    if context.oom_kills > 0 {
        let text = format!("the kernel killed {} of the target: out of memory", processes(context.oom_kills));
        let reason = Reason::new("oom_killed", Verdict::Invalid, text);
        reasons.push(reason.with(context.oom_kills as f64, 0.0, Unit::Count));
    }
    reasons.extend(restarted(context));
    if let Some(change) = context.conditions.response_change.as_deref().filter(|change| !change.is_empty()) {
        let text = format!("the target's response changed during the load: {change}");
        reasons.push(Reason::new("response_changed", Verdict::Invalid, text));
    }
    if let Some(change) = context.conditions.response_text_change.as_deref().filter(|change| !change.is_empty()) {
        let text = format!("the text of the target's response changed during the load: {change}");
        reasons.push(Reason::note("response_text_changed", text));
    }
    let missing = |fault: &String| Reason::new("profile_missing", Verdict::Suspect, format!("no profile: {fault}"));
    reasons.extend(context.profile_faults.iter().map(missing));
}

/// Judges exited processes: some servers replace workers, but a target that lost all processes has crashed.
fn restarted(context: &Context<'_>) -> Option<Reason> {
    let gone = context.conditions.processes_gone.filter(|gone| *gone > 0)?;
    let all = context.conditions.processes.unwrap_or(gone).max(gone);
    let verdict = if gone == all { Verdict::Invalid } else { Verdict::Suspect };
    let text = format!("{gone} of the target's {} exited during the measurement", processes(all.into()));
    Some(Reason::new("target_restarted", verdict, text).with(gone.into(), 0.0, Unit::Count))
}

fn processes(count: u64) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// Returns the reason of a target's failure; None if the target did not cause it.
pub(super) fn failure(cause: Cause, why: &str) -> Option<Reason> {
    let code = match cause {
        Cause::TargetNotReady => "target_not_ready",
        Cause::TargetDied => "target_died",
        Cause::TargetOutOfMemory => "oom_killed",
        Cause::NoSuccess => "no_success",
        Cause::Generator | Cause::Script | Cause::Build | Cause::Other => return None,
    };
    Some(Reason::new(code, Verdict::Invalid, why))
}
