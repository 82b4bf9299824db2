//! Detects time in which nothing was answered although there was load: a target or a load generator that stood still.
//! Pure.
//!
//! A second without a response is part of many runs: a script may sleep, and a slow target may take seconds for each
//! response. So a pause counts only if it is out of line with the run's other pauses, and if something shows that
//! requests were due: one that took as long as the pause, virtual users that never wait, or a load generator that
//! reported nothing.

mod pauses;
mod side;

use brewbench_wire::{load::Load, reports::summary::Figures, series::Window};

use self::pauses::{End, Pause};
use super::{
    limits::{Limit, Limits},
    little,
    model::{Context, SeriesState},
};
use crate::runs::verdict::{Reason, Unit, Verdict};

pub(super) const CODE: &str = "stalled";

/// The most pauses that a sentence names.
const MAX_NAMED: usize = 3;

/// With so few virtual users, all of them can be in a slow request at the same time.
const FEW_USERS: u64 = 3;
/// This number of points with such slow requests is the rhythm of a run with few users.
const RHYTHM: usize = 3;

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let SeriesState::Series(series) = context.series else { return };
    let Some(window) = series.measured.as_ref() else { return };
    let Some(found) = find(figures, context, window, limits.get(Limit::Stalled) * 1_000.0) else { return };
    // Users that waited for a response were not held back by k6.
    reasons.retain(|reason| reason.code != little::HELD_BACK);
    reasons.push(found.reason(context, window, limits));
}

/// What stood still.
struct FoundStalls {
    stalls: Vec<Pause>,
    /// How long there was load, milliseconds.
    loaded_ms: f64,
}

fn find(figures: &Figures, context: &Context<'_>, window: &Window, least_ms: f64) -> Option<FoundStalls> {
    let length_ms = context.load.and_then(Load::duration).map(|length| length.as_secs_f64() * 1_000.0);
    let observed = pauses::observe(&window.seconds, length_ms)?;
    let is_stall = |pause: &&Pause| {
        let usual_ms = observed.usual_ms.max(figures.latency.p50_ms.unwrap_or(0.0));
        let is_long = pause.idle_ms() >= least_ms && pause.idle_ms() > usual_ms * 2.0;
        let slow = observed.slowest_ms.iter().filter(|slowest_ms| **slowest_ms * 2.0 >= pause.idle_ms()).count();
        let is_rhythm = slow >= RHYTHM && observed.peak_users <= FEW_USERS;
        is_long && !is_rhythm && was_due(pause, figures, context)
    };
    let stalls: Vec<Pause> = observed.pauses.iter().filter(is_stall).copied().collect();
    (!stalls.is_empty()).then_some(FoundStalls { stalls, loaded_ms: observed.loaded_ms })
}

/// Whether responses were due during a pause.
fn was_due(pause: &Pause, figures: &Figures, context: &Context<'_>) -> bool {
    if pause.is_silent {
        return true;
    }
    let never_waits = little::may_wait(context) == Some(false);
    match pause.end {
        End::Response { slowest_ms } if slowest_ms >= pause.idle_ms() => true,
        End::Response { .. } => never_waits && matches!(context.load, Some(Load::Closed(_))),
        // Users that sleep longer than this may just not have come back.
        End::Load => {
            let is_long = figures.iteration_ms.is_some_and(|each| pause.idle_ms() > each * 2.0);
            let is_planned = matches!(context.load, Some(Load::Closed(_) | Load::Open(_)));
            is_planned && (never_waits || is_long && figures.iterations.is_some_and(|done| done > 0))
        }
    }
}

impl FoundStalls {
    fn reason(&self, context: &Context<'_>, window: &Window, limits: &Limits) -> Reason {
        let idle_ms: f64 = self.stalls.iter().map(Pause::idle_ms).sum();
        let (share, most) = (idle_ms / self.loaded_ms.max(1.0), limits.get(Limit::StalledInvalid));
        let named: Vec<String> = self.stalls.iter().take(MAX_NAMED).map(Pause::describe).collect();
        let more = self.stalls.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more times") } else { String::new() };
        let longest = self.stalls.iter().max_by(|a, b| a.idle_ms().total_cmp(&b.idle_ms()));
        let side = longest.map(|longest| side::describe(longest, &self.stalls, window, context)).unwrap_or_default();
        let seconds = |ms: f64| Unit::Seconds.text(ms / 1_000.0);
        let text = format!(
            "no response {}{more}: {} of {} of load{side}",
            named.join(", "),
            seconds(idle_ms),
            seconds(self.loaded_ms)
        );
        if share > most {
            return Reason::new(CODE, Verdict::Invalid, text).with(share, most, Unit::Share);
        }
        let limit = limits.get(Limit::Stalled);
        Reason::new(CODE, Verdict::Suspect, text).with(idle_ms / 1_000.0, limit, Unit::Seconds)
    }
}

#[cfg(test)]
mod tests;
