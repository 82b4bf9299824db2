//! Judges whether the turns of a duet overlapped: whether requests of one target ran into the turn of the other. Pure.

use std::time::Duration;

use brewbench_wire::{duet::PAUSE, reports::summary::Figures};

use crate::{
    results::verdict::model::Context,
    runs::verdict::{Reason, Unit, Verdict},
};

pub(super) fn judge(figures: &Figures, context: &Context<'_>) -> Option<Reason> {
    let pause_ms = Duration::as_secs_f64(&PAUSE) * 1_000.0;
    let mean_ms = figures.latency.avg_ms.filter(|mean_ms| context.is_duet() && *mean_ms > pause_ms)?;
    let text = format!(
        "a request took {mean_ms:.1} ms on average, longer than the pause of {pause_ms:.0} ms between the turns of the \
         duet: the last ones of each turn slowed down the other target; use fewer virtual users, or no duet"
    );
    Some(Reason::new("turn_overlap", Verdict::Suspect, text).with(mean_ms, pause_ms, Unit::Milliseconds))
}
