//! Whether what happened second by second is known: what is not can't be judged.

use brewbench_agent::wire::{
    series::{Lacks, Stretch},
    summary::Figures,
};

use super::{Limit, Limits, Making, Reason, Recorded, Unit, Verdict};

/// A part of the seconds that may have come late or twice: what happened in them is in those beside them.
const UNEVEN: f64 = 0.1;

const CODE: &str = "series_incomplete";

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let limit = limits.of(Limit::SeriesIncomplete);
    let nothing = |text: &str| Reason::new(CODE, Verdict::Suspect, text).with(0.0, limit, Unit::Share);
    let series = match making.recorded {
        Recorded::NotYet => return,
        Recorded::Nothing => return reasons.push(nothing("nothing is known of what happened second by second")),
        Recorded::Series(series) => series,
    };
    let Some(stretch) = series.measured.as_ref().filter(|stretch| !stretch.seconds.is_empty()) else {
        return reasons.push(nothing("k6 told nothing of what happened second by second"));
    };
    let requests = stretch.seconds.iter().fold(0_u64, |sum, second| sum.saturating_add(second.requests()));
    let share = requests as f64 / figures.requests.max(1) as f64;
    if share < limit {
        let text = format!("the series has {requests} of the {} requests", figures.requests);
        return reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    let lacks = lacks(stretch);
    if !lacks.is_empty() {
        let count = lacks.iter().map(|(count, _)| *count as f64).sum();
        let told: Vec<String> = lacks.into_iter().map(|(_, words)| words).collect();
        let text = format!("the series is not whole: {}", told.join("; "));
        reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(count, 0.0, Unit::Count));
    }
}

/// What a stretch lacks: how much, and in words.
fn lacks(stretch: &Stretch) -> Vec<(u64, String)> {
    let Lacks { missing_seconds, doubled_seconds, restarts, damaged, left_out, unfinished } = stretch.lacks;
    let uneven = missing_seconds.saturating_add(doubled_seconds);
    let uneven = if uneven as f64 > stretch.seconds.len() as f64 * UNEVEN { uneven } else { 0 };
    let blind = u64::from(stretch.usage.len() < 2);
    [
        (uneven, format!("{missing_seconds} seconds came late, {doubled_seconds} twice")),
        (restarts, format!("k6 began anew {restarts} times")),
        (damaged, format!("{damaged} parts could not be read")),
        (left_out, format!("{left_out} figures have too many different tags")),
        (unfinished, "k6 did not tell its end".to_owned()),
        (blind, "CPU and memory were not sampled".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .collect()
}
