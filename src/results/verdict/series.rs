//! Whether what happened second by second is known: what is not can't be judged. Pure.

use brewbench_agent::{reports::summary::Figures, wire::series::Lacks};

use crate::{
    results::{
        generator_record::SeriesSeen,
        verdict::{
            limits::{Limit, Limits},
            model::{Making, Recorded},
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A part of the seconds that may have come late or twice: what happened in them is in those beside them.
const UNEVEN: f64 = 0.1;

const CODE: &str = "series_incomplete";

pub(super) fn judge(figures: &Figures, making: &Making<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let limit = limits.of(Limit::SeriesIncomplete);
    let series = match making.recorded {
        Recorded::NotYet => return,
        Recorded::Nothing => {
            let text = "nothing is known of what happened second by second";
            return reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(0.0, limit, Unit::Share));
        }
        Recorded::Series(series) => series,
    };
    let seen = SeriesSeen::of(series);
    if making.generators.is_empty() {
        return reasons.extend(part(seen, figures.requests, limits));
    }
    // What k6 told is judged for each generator; here is what the target's machine told.
    if seen.is_none_or(|seen| seen.samples < 2) {
        let text = "the series is not whole: CPU and memory of the target's machine were not sampled";
        reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(1.0, 0.0, Unit::Count));
    }
}

/// Whether a series has in it what its k6 has counted.
pub(super) fn part(seen: Option<SeriesSeen>, requests: u64, limits: &Limits) -> Option<Reason> {
    let limit = limits.of(Limit::SeriesIncomplete);
    let Some(seen) = seen.filter(|seen| seen.seconds > 0) else {
        let text = "k6 told nothing of what happened second by second";
        return Some(Reason::new(CODE, Verdict::Suspect, text).with(0.0, limit, Unit::Share));
    };
    let share = seen.requests as f64 / requests.max(1) as f64;
    if share < limit {
        let text = format!("the series has {} of the {requests} requests", seen.requests);
        return Some(Reason::new(CODE, Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    let lacks = lacks(seen);
    if lacks.is_empty() {
        return None;
    }
    let count = lacks.iter().map(|(count, _)| *count as f64).sum();
    let told: Vec<String> = lacks.into_iter().map(|(_, words)| words).collect();
    let text = format!("the series is not whole: {}", told.join("; "));
    Some(Reason::new(CODE, Verdict::Suspect, text).with(count, 0.0, Unit::Count))
}

/// What a stretch lacks: how much, and in words.
fn lacks(seen: SeriesSeen) -> Vec<(u64, String)> {
    let Lacks { missing_seconds, doubled_seconds, restarts, damaged, left_out, unfinished } = seen.lacks;
    let uneven = missing_seconds.saturating_add(doubled_seconds);
    let uneven = if uneven as f64 > seen.seconds as f64 * UNEVEN { uneven } else { 0 };
    let blind = u64::from(seen.samples < 2);
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
