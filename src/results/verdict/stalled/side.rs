//! Which side stood still during a pause. Pure.

use brewbench_wire::series::{Consumption, Usage, Window};

use super::pauses::Pause;
use crate::results::verdict::model::Context;

/// A side that uses less than this share of its usual CPU time stands still.
const STILL: f64 = 0.25;

/// A sample belongs to a pause if at least this share of its time does.
const WITHIN: f64 = 0.8;

/// Less CPU than this, cores, shows nothing.
const MIN_CORES: f64 = 0.005;

/// Samples that are this far apart are missing some, milliseconds.
const LATE_MS: f64 = 1_900.0;

/// Describes it as the end of a sentence; empty if unknown.
pub fn describe(stall: &Pause, all: &[Pause], window: &Window, context: &Context<'_>) -> String {
    let spans: Vec<(f64, f64, &Usage)> = window
        .usage
        .windows(2)
        .map(|pair| (f64::from(pair[0].at_ms), f64::from(pair[1].at_ms), &pair[1]))
        .filter(|(from, to, _)| to > from)
        .collect();
    let is_within = |from: f64, to: f64, pause: &Pause| {
        let common_ms = to.min(pause.to_ms) - from.max(pause.from_ms);
        common_ms >= (to - from) * WITHIN
    };
    let during = |side: fn(&Usage) -> Consumption| {
        cores(spans.iter().filter(|(from, to, _)| is_within(*from, *to, stall)), side)
    };
    let usual = |side: fn(&Usage) -> Consumption| {
        let is_apart = |from: f64, to: f64| all.iter().all(|pause| to <= pause.from_ms || from >= pause.to_ms);
        cores(spans.iter().filter(|(from, to, _)| *from >= 0.0 && is_apart(*from, *to)), side)
    };
    let target = during(|usage| usage.target).zip(usual(|usage| usage.target));
    // Its silence begins and ends at a report, and not where it stood still.
    let each = spans.iter().filter(|(from, to, _)| is_within(*from, *to, stall));
    let least = each.filter_map(|span| cores([span].into_iter(), |usage| usage.generator)).reduce(f64::min);
    let generator = least.zip(usual(|usage| usage.generator));
    let is_still = |(now, usual): (f64, f64)| usual >= MIN_CORES && now < usual * STILL;
    let has_late_sample =
        spans.iter().any(|(from, to, _)| to - from > LATE_MS && *from < stall.to_ms && *to > stall.from_ms);
    if stall.is_silent {
        return match generator {
            _ if has_late_sample => "; the machine stood still: neither the load generator nor the agent reported \
                anything"
                .to_owned(),
            Some((now, usual)) if is_still((now, usual)) => {
                format!(
                    "; the load generator stood still: it used {now:.2} cores, usually {usual:.2}, and reported nothing"
                )
            }
            _ => "; the load generator reported nothing".to_owned(),
        };
    }
    let Some((now, usual)) = target.filter(|(_, usual)| *usual >= MIN_CORES) else {
        return "; the load generator kept reporting".to_owned();
    };
    let is_throttled = spans.iter().filter(|(from, to, _)| is_within(*from, *to, stall)).any(|(from, to, usage)| {
        let throttled_ms = usage.target.throttled_us.unwrap_or(0) as f64 / 1_000.0;
        throttled_ms > (to - from) / 2.0 * context.target_cores()
    });
    let what = if is_throttled {
        "the target was throttled by its CPU quota"
    } else if is_still((now, usual)) {
        "the target stood still"
    } else {
        "the target was busy, but answered nothing"
    };
    format!("; {what}: it used {now:.2} cores, usually {usual:.2}, while the load generator kept reporting")
}

/// Returns the mean CPU use in these spans; None if there is none, or it is unknown.
fn cores<'a>(spans: impl Iterator<Item = &'a (f64, f64, &'a Usage)>, side: fn(&Usage) -> Consumption) -> Option<f64> {
    let (mut used_ms, mut elapsed_ms) = (0.0, 0.0);
    for (from, to, usage) in spans {
        used_ms += side(usage).cpu_us? as f64 / 1_000.0;
        elapsed_ms += to - from;
    }
    (elapsed_ms > 0.0).then(|| used_ms / elapsed_ms)
}
