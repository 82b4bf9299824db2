//! What happened in the runs of one row, second by second: the repetitions of each cell laid upon each other from the
//! start of the measured phase. Requests are counted and histograms added; no percentile is averaged. Pure.

use std::collections::BTreeMap;

use brewbench_agent::{
    series::histogram::Histogram,
    wire::series::{Series, Stretch},
};

use super::cell::{Cell, Row};
use crate::{app::ids::RunId, compare::view::Missing, results::series::model::latencies};

/// So many points of time fit a screen.
const MOST_MOMENTS: u32 = 120;

/// The series of runs by the runs' ids.
pub type Recorded = BTreeMap<RunId, Series>;

/// The story of one row.
#[derive(Debug)]
pub struct Story {
    /// Those of its cells of which anything was recorded.
    pub cells: Vec<CellStory>,
    /// The runs that count and are not in it.
    pub missing: Missing,
}

/// The repetitions of one cell together.
#[derive(Debug)]
pub struct CellStory {
    /// Place among the subjects.
    pub subject: usize,
    /// How many repetitions these are.
    pub repetitions: usize,
    /// In order of time.
    pub moments: Vec<Moment>,
    /// How long all successful requests of all repetitions took.
    pub latencies: Histogram,
}

/// A second of the measured phase, or a larger step of long runs, in all repetitions together.
#[derive(Debug, Default)]
pub struct Moment {
    /// When it ended, seconds after the start of the measured phase.
    pub at_s: f64,
    /// How long the successful requests took.
    pub latencies: Histogram,
    requests: u64,
    elapsed_s: f64,
    cpu_us: f64,
    sampled_s: f64,
    memory_bytes: f64,
    samples: u32,
}

impl Moment {
    /// Requests per second of one repetition.
    pub fn rps(&self) -> Option<f64> {
        (self.elapsed_s > 0.0).then(|| self.requests as f64 / self.elapsed_s)
    }

    /// Cores that the target used in one repetition.
    pub fn cores(&self) -> Option<f64> {
        (self.sampled_s > 0.0).then(|| self.cpu_us / 1e6 / self.sampled_s)
    }

    /// Memory that the target used, bytes, in the middle of the samples.
    pub fn memory_bytes(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.memory_bytes / f64::from(self.samples))
    }
}

impl Story {
    /// Of a row, as far as its runs were looked at. Nothing where nothing was recorded.
    pub fn new(row: &Row, looked_at: &[RunId], recorded: &Recorded) -> Option<Self> {
        let measured = |cell: &Cell| -> Vec<&Stretch> {
            let looked_at = cell.counting().filter(|run| looked_at.contains(&run.id));
            looked_at.filter_map(|run| recorded.get(&run.id)?.measured.as_ref()).collect()
        };
        let all: Vec<(&Cell, Vec<&Stretch>)> = row.rivals().map(|cell| (cell, measured(cell))).collect();
        let longest = all.iter().flat_map(|(_, stretches)| stretches).filter_map(|stretch| stretch.seconds.last());
        let step_s = longest.map(|second| second.until_ms / 1_000).max()?.div_ceil(MOST_MOMENTS).max(1);
        let counting: usize = all.iter().map(|(cell, _)| cell.tally.counting()).sum();
        let having: usize = all.iter().map(|(_, stretches)| stretches.len()).sum();
        let cells = all.into_iter().filter(|(_, stretches)| !stretches.is_empty());
        let cells = cells.map(|(cell, stretches)| CellStory::new(cell.subject, &stretches, step_s)).collect();
        let missing =
            Missing { without_series: looked_at.len() - having, too_many: counting.saturating_sub(looked_at.len()) };
        Some(Self { cells, missing })
    }
}

impl CellStory {
    fn new(subject: usize, stretches: &[&Stretch], step_s: u32) -> Self {
        let mut moments: BTreeMap<u32, Moment> = BTreeMap::new();
        let mut all = Histogram::default();
        for stretch in stretches {
            add_seconds(&mut moments, stretch, step_s);
            add_usage(&mut moments, stretch, step_s);
            all.add(&latencies(stretch).0);
        }
        for (number, moment) in &mut moments {
            moment.at_s = f64::from((number + 1) * step_s);
        }
        // k6 ends a little after the last whole second: what is left of it is no point of its own.
        let whole = f64::from(step_s) * stretches.len() as f64;
        moments.retain(|number, moment| *number == 0 || moment.elapsed_s >= 0.3 * whole);
        Self { subject, repetitions: stretches.len(), moments: moments.into_values().collect(), latencies: all }
    }
}

/// The last second is cut short by k6's end: its rate is that of the time it had.
fn add_seconds(moments: &mut BTreeMap<u32, Moment>, stretch: &Stretch, step_s: u32) {
    let mut before_ms = 0;
    for second in &stretch.seconds {
        let moment = moments.entry(second.until_ms.saturating_sub(1) / 1_000 / step_s).or_default();
        moment.requests = moment.requests.saturating_add(second.requests());
        moment.elapsed_s += f64::from(second.until_ms.saturating_sub(before_ms)) / 1_000.0;
        moment.latencies.add(&second.succeeded);
        before_ms = second.until_ms;
    }
}

fn add_usage(moments: &mut BTreeMap<u32, Moment>, stretch: &Stretch, step_s: u32) {
    // The last sample was taken when k6 had gone, so it is partly idle.
    let usage = stretch.usage.split_last().map_or(&[][..], |(_, but_last)| but_last);
    for pair in usage.windows(2) {
        let (from_ms, until_ms) = (pair[0].at_ms, pair[1].at_ms);
        let Ok(at_ms) = u32::try_from(until_ms.saturating_sub(1)) else { continue };
        let Some(moment) = moments.get_mut(&(at_ms / 1_000 / step_s)) else { continue };
        if let Some(cpu_us) = pair[1].target.cpu_us {
            moment.cpu_us += cpu_us as f64;
            moment.sampled_s += f64::from(until_ms.saturating_sub(from_ms)) / 1_000.0;
        }
        if let Some(bytes) = pair[1].target.memory_bytes {
            moment.memory_bytes += bytes as f64;
            moment.samples += 1;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        compare::{
            testing::{faster, repeated, run},
            view::Comparison,
        },
        results::series::model::tests::rising,
        web::series_style::Marks,
    };

    /// Two targets, six repetitions each, of all of which but one a series is known.
    pub fn two() -> (Comparison, Recorded) {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        let recorded = runs.iter().skip(1).map(|run| (run.id.clone(), rising())).collect();
        (Comparison::new(runs, &Marks::default(), None), recorded)
    }

    /// Of the first row, with a look at all of its runs.
    pub fn story(comparison: &Comparison, recorded: &Recorded) -> Option<Story> {
        Story::new(&comparison.rows[0], &comparison.run_ids(), recorded)
    }

    #[test]
    fn what_is_not_looked_at_is_told_apart_from_what_has_no_series() {
        let (comparison, recorded) = two();
        let few: Vec<_> = comparison.run_ids().into_iter().take(4).collect();
        let missing = Story::new(&comparison.rows[0], &few, &recorded).expect("a story").missing;
        assert_eq!(missing, Missing { without_series: 1, too_many: 8 });
        assert_eq!(missing.told().as_deref(), Some("1 run without a series left out; 8 runs more not drawn."));
    }

    #[test]
    fn repetitions_lie_upon_each_other_and_are_counted_together() {
        let (comparison, recorded) = two();
        let story = story(&comparison, &recorded).expect("a story");
        let [one, other] = story.cells.as_slice() else { panic!("two cells") };
        assert_eq!((one.repetitions, other.repetitions, story.missing.without_series), (5, 6, 1));
        assert_eq!(one.moments.len(), 10);
        let third = &one.moments[2];
        assert_eq!((third.at_s, third.rps(), third.cores()), (3.0, Some(300.0), Some(0.5)));
        assert_eq!(third.memory_bytes(), Some(f64::from(1 << 20)));
        assert_eq!(third.latencies.total(), 5 * 299);
        assert_eq!(one.latencies.total(), 5 * (100 * 55 - 10));
    }

    #[test]
    fn long_runs_are_told_in_larger_steps() {
        let (comparison, mut recorded) = two();
        for series in recorded.values_mut() {
            let stretch = series.measured.as_mut().expect("seconds");
            for (place, second) in stretch.seconds.iter_mut().enumerate() {
                second.until_ms = 360_000 * (u32::try_from(place).expect("ten") + 1);
            }
        }
        let story = story(&comparison, &recorded).expect("a story");
        assert_eq!(story.cells[0].moments.len(), 10);
        assert!((story.cells[0].moments[0].at_s - 360.0).abs() < 1e-9);
    }

    #[test]
    fn without_any_series_there_is_no_story() {
        let (comparison, _) = two();
        assert!(story(&comparison, &Recorded::new()).is_none());
    }
}
