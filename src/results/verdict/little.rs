//! Checks whether the virtual users of a closed model were busy with requests.
//!
//! By Little's law (1961, Operations Research 9, 383–387) the mean number of requests in progress is throughput ×
//! latency. If that is far less than the number of virtual users, k6 held them back and the load was lower.

use brewbench_wire::{
    load::{Form, Load},
    reports::summary::Figures,
};

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        load::limited_by_script,
        model::Context,
        records::interrupted,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// With more failures latencies are unusable: a request without a response counts as 0 ms.
pub(super) const MAX_FAILED: f64 = 0.01;

/// The code of a reason that does not apply if nothing was answered for a while.
pub(super) const HELD_BACK: &str = "generator_held_back";

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let Some(users) = context.load.and_then(users) else { return };
    let failed = figures.failed.map_or(1.0, |failed| failed as f64 / figures.requests.max(1) as f64);
    let busy = may_wait(context).and_then(|may_wait| busy(figures, may_wait));
    let Some((busy, what)) = busy.filter(|_| failed <= MAX_FAILED) else { return };
    // No metric contains the iterations that never ended, whose virtual users were busy.
    let (unended, limit) = (interrupted(context) as f64, limits.get(Limit::GeneratorHeldBack));
    let held = 1.0 - (busy + unended) / users;
    if held > limit {
        let by =
            limited_by_script(context, figures.rps).map_or(String::new(), |limited| format!(", because {limited}"));
        let text = format!(
            "the load generator held back {} of the load{by}: of {users:.0} virtual users {busy:.1} were in {what} on \
             average, by throughput × latency",
            Unit::Share.text(held)
        );
        reasons.push(Reason::new(HELD_BACK, Verdict::Suspect, text).with(held, limit, Unit::Share));
    }
}

/// Returns the number of virtual users if it is constant.
fn users(load: &Load) -> Option<f64> {
    let Load::Closed(closed) = load else { return None };
    match closed.vus().form() {
        Form::Constant { level, .. } if *level > 0 => Some((*level).into()),
        Form::Constant { .. } | Form::Stages(_) => None,
    }
}

/// Whether the script may pause between requests; None if no agent checked.
pub(super) fn may_wait(context: &Context<'_>) -> Option<bool> {
    let conditions = [context.conditions].into_iter().chain(context.generators.iter().map(|one| &one.conditions));
    conditions.filter_map(|conditions| conditions.script_may_wait).reduce(|one, other| one || other)
}

/// Returns how many virtual users were in a request on average, or in an iteration if the script may pause.
fn busy(figures: &Figures, may_wait: bool) -> Option<(f64, &'static str)> {
    if may_wait {
        let (iterations, each) = (figures.iterations? as f64, figures.iteration_ms?);
        return (figures.measured_ms > 0.0).then(|| (iterations / figures.measured_ms * each, "an iteration"));
    }
    let each = figures.latency.avg_ms? + figures.blocked_ms?;
    Some((figures.rps / 1_000.0 * each, "a request"))
}
