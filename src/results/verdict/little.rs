//! Whether the virtual users of a closed model were busy with requests. By Little's law (1961, Operations Research 9,
//! 383–387) as many requests are under way on average as throughput × latency; where that is far less than there are
//! virtual users, these were held back by k6, and the target had a lesser load than the run says.

use brewbench_agent::{
    reports::summary::Figures,
    wire::load::{Form, Load},
};

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::Making,
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// With more failures the latencies are theirs: a request that got no response counts with no time at all.
const MAX_FAILED: f64 = 0.01;

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let Some(users) = making.load.and_then(users) else { return };
    let failed = figures.failed.map_or(1.0, |failed| failed as f64 / figures.requests.max(1) as f64);
    let busy = may_wait(making).and_then(|may_wait| busy(figures, may_wait));
    let Some((busy, what)) = busy.filter(|_| failed <= MAX_FAILED) else { return };
    let (held, limit) = (1.0 - busy / users, limits.of(Limit::GeneratorHeldBack));
    if held > limit {
        let text = format!(
            "k6 held back {} of the load: of {users:.0} virtual users {busy:.1} were in {what} on average, by throughput × \
             latency",
            Unit::Share.text(held)
        );
        reasons.push(Reason::new("generator_held_back", Verdict::Suspect, text).with(held, limit, Unit::Share));
    }
}

/// How many virtual users there are, where that does not change.
fn users(load: &Load) -> Option<f64> {
    let Load::Closed(closed) = load else { return None };
    match closed.vus().form() {
        Form::Constant { level, .. } if *level > 0 => Some((*level).into()),
        Form::Constant { .. } | Form::Stages(_) => None,
    }
}

/// Whether time may pass between the requests because the script wants that; not known where no agent looked.
fn may_wait(making: &Making<'_>) -> Option<bool> {
    let conditions = [making.conditions].into_iter().chain(making.generators.iter().map(|one| &one.conditions));
    conditions.filter_map(|conditions| conditions.script_may_wait).reduce(|one, other| one || other)
}

/// How many virtual users were in a request on average; in an iteration, where the script may wait within one.
fn busy(figures: &Figures, may_wait: bool) -> Option<(f64, &'static str)> {
    if may_wait {
        let (iterations, each) = (figures.iterations? as f64, figures.iteration_ms?);
        return (figures.measured_ms > 0.0).then(|| (iterations / figures.measured_ms * each, "an iteration"));
    }
    let each = figures.latency.avg_ms? + figures.blocked_ms?;
    Some((figures.rps / 1_000.0 * each, "a request"))
}
