//! Checks that the time series is complete: what is missing can't be judged. Pure.

use brewbench_wire::{engine::Capability, reports::summary::Figures, series::Gaps};

use crate::{
    results::{
        generator_record::SeriesContent,
        verdict::{
            limits::{Limit, Limits},
            model::{Context, SeriesState},
            protocol,
            records::count,
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// Share of seconds that may be late or doubled: their counts are in the neighbouring seconds. One may in any run.
const MAX_UNEVEN: f64 = 0.1;

const CODE: &str = "series_incomplete";

/// Of load generators that report no series.
const UNKNOWN: &str = "series_unknown";

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let limit = limits.get(Limit::SeriesIncomplete);
    let series = match context.series {
        SeriesState::NotRecorded => return,
        SeriesState::Missing => {
            let text = "the run has no time series";
            return reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(0.0, limit, Unit::Share));
        }
        SeriesState::Series(series) => series,
    };
    let counts = SeriesContent::from_series(series);
    if !context.engine.capabilities().contains(&Capability::Series) {
        let tool = context.engine.as_str();
        let text =
            format!("{tool} reports totals only: whether the target was steady, and what it answered, is unknown");
        return reasons.push(Reason::new(UNKNOWN, Verdict::Suspect, text));
    }
    if context.generators.is_empty() {
        return reasons.extend(part(counts, if protocol::has_series(figures) { figures.requests } else { 0 }, limits));
    }
    // The seconds of k6 are judged for each generator; here the samples of the target's machine are.
    if counts.is_none_or(|counts| counts.samples < 2) {
        let text = "the time series is incomplete: CPU and memory of the target's machine were not sampled";
        reasons.push(Reason::new(CODE, Verdict::Suspect, text).with(1.0, 0.0, Unit::Count));
    }
}

/// Checks that a series contains the requests that its k6 counted.
pub(super) fn part(counts: Option<SeriesContent>, requests: u64, limits: &Limits) -> Option<Reason> {
    let limit = limits.get(Limit::SeriesIncomplete);
    let Some(counts) = counts.filter(|counts| counts.seconds > 0) else {
        let text = "the load generator reported no time series";
        return Some(Reason::new(CODE, Verdict::Suspect, text).with(0.0, limit, Unit::Share));
    };
    let share = counts.requests as f64 / requests.max(1) as f64;
    if requests > 0 && share < limit {
        let text = format!("the time series contains {} of the {} requests", count(counts.requests), count(requests));
        return Some(Reason::new(CODE, Verdict::Suspect, text).with(share, limit, Unit::Share));
    }
    let gaps = gaps(counts);
    if gaps.is_empty() {
        return None;
    }
    let count = gaps.iter().map(|(count, _)| *count as f64).sum();
    let texts: Vec<String> = gaps.into_iter().map(|(_, text)| text).collect();
    let text = format!("the time series is incomplete: {}", texts.join("; "));
    Some(Reason::new(CODE, Verdict::Suspect, text).with(count, 0.0, Unit::Count))
}

/// Lists the gaps of a series: their number and description.
fn gaps(counts: SeriesContent) -> Vec<(u64, String)> {
    let Gaps { missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished } = counts.gaps;
    let uneven = missing_seconds.saturating_add(doubled_seconds);
    let uneven = if uneven as f64 > (counts.seconds as f64 * MAX_UNEVEN).max(1.0) { uneven } else { 0 };
    let unsampled = u64::from(counts.samples < 2);
    [
        (uneven, format!("{missing_seconds} seconds were late, {doubled_seconds} doubled")),
        (restarts, format!("the load generator restarted {restarts} times")),
        (damaged, format!("{damaged} reports of the load generator could not be parsed")),
        (dropped_values, format!("{dropped_values} values were dropped: too many different tags")),
        (unfinished, "the load generator did not report its end".to_owned()),
        (unsampled, "CPU and memory were not sampled".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_second_is_no_gap_however_short_the_run() {
        let with = |missing_seconds| {
            let gaps = Gaps { missing_seconds, ..Gaps::default() };
            SeriesContent { requests: 30, seconds: 3, samples: 4, gaps, schema: None }
        };
        assert_eq!(part(Some(with(1)), 30, &Limits::default()), None);
        assert!(part(Some(with(2)), 30, &Limits::default()).is_some());
    }
}
