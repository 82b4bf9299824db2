//! Time series of one row: the repetitions of each cell aggregated by the time since the start of the measured phase.
//! Requests are counted and histograms added; percentiles are never averaged. Pure.

use std::collections::BTreeMap;

use brewbench_wire::{
    histogram::Histogram,
    series::{Series, Window},
};

use super::cell::{Cell, Row};
use crate::{app::ids::RunId, compare::view::Missing, results::series::model::latencies};

/// Maximum number of points in time that fit a chart.
const MAX_MOMENTS: u32 = 120;

/// Time series by run id.
pub type Recorded = BTreeMap<RunId, Series>;

/// Time series of one row.
#[derive(Debug)]
pub struct RowTimeseries {
    /// The cells with recorded time series.
    pub cells: Vec<CellTimeseries>,
    /// Runs that count but are not included.
    pub missing: Missing,
}

/// Aggregated repetitions of one cell.
#[derive(Debug)]
pub struct CellTimeseries {
    /// Index of the subject.
    pub subject: usize,
    /// Number of repetitions.
    pub repetitions: usize,
    /// In chronological order.
    pub moments: Vec<Point>,
    /// Latencies of all successful requests of all repetitions.
    pub latencies: Histogram,
}

/// One second of the measured phase, or a longer step of long runs, aggregated over the repetitions.
#[derive(Debug, Default)]
pub struct Point {
    /// End in seconds since the start of the measured phase.
    pub at_s: f64,
    /// Latencies of the successful requests.
    pub latencies: Histogram,
    requests: u64,
    elapsed_s: f64,
    cpu_us: f64,
    sampled_s: f64,
    memory_bytes: f64,
    samples: u32,
}

impl Point {
    /// Requests per second of one repetition.
    pub fn rps(&self) -> Option<f64> {
        (self.elapsed_s > 0.0).then(|| self.requests as f64 / self.elapsed_s)
    }

    /// Cores used by the target in one repetition.
    pub fn cores(&self) -> Option<f64> {
        (self.sampled_s > 0.0).then(|| self.cpu_us / 1e6 / self.sampled_s)
    }

    /// Mean memory that the target held over the samples, in bytes.
    pub fn memory_bytes(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.memory_bytes / f64::from(self.samples))
    }
}

impl RowTimeseries {
    /// Aggregates the included runs of a row. None if nothing was recorded.
    pub fn new(row: &Row, included: &[RunId], recorded: &Recorded) -> Option<Self> {
        let measured = |cell: &Cell| -> Vec<&Window> {
            let runs = cell.counting().filter(|run| included.contains(&run.id));
            runs.filter_map(|run| recorded.get(&run.id)?.measured.as_ref()).collect()
        };
        let all: Vec<(&Cell, Vec<&Window>)> = row.compared_cells().map(|cell| (cell, measured(cell))).collect();
        let longest = all.iter().flat_map(|(_, windows)| windows).filter_map(|window| window.seconds.last());
        let step_s = longest.map(|second| second.until_ms / 1_000).max()?.div_ceil(MAX_MOMENTS).max(1);
        let counting: usize = all.iter().map(|(cell, _)| cell.counts.counting()).sum();
        let having: usize = all.iter().map(|(_, windows)| windows.len()).sum();
        let cells = all.into_iter().filter(|(_, windows)| !windows.is_empty());
        let cells = cells.map(|(cell, windows)| CellTimeseries::new(cell.subject, &windows, step_s)).collect();
        let missing =
            Missing { without_series: included.len() - having, too_many: counting.saturating_sub(included.len()) };
        Some(Self { cells, missing })
    }
}

impl CellTimeseries {
    fn new(subject: usize, windows: &[&Window], step_s: u32) -> Self {
        let mut moments: BTreeMap<u32, Point> = BTreeMap::new();
        let mut all = Histogram::default();
        for window in windows {
            add_seconds(&mut moments, window, step_s);
            add_usage(&mut moments, window, step_s);
            all.add(&latencies(window).0);
        }
        for (number, moment) in &mut moments {
            moment.at_s = f64::from((number + 1) * step_s);
        }
        // k6 ends shortly after the last full second: the remainder is not a point of its own.
        let whole = f64::from(step_s) * windows.len() as f64;
        moments.retain(|number, moment| *number == 0 || moment.elapsed_s >= 0.3 * whole);
        Self { subject, repetitions: windows.len(), moments: moments.into_values().collect(), latencies: all }
    }
}

/// Adds requests and latencies. The rate of the incomplete last second is that of its length.
fn add_seconds(moments: &mut BTreeMap<u32, Point>, window: &Window, step_s: u32) {
    let mut before_ms = 0;
    for second in &window.seconds {
        let moment = moments.entry(second.until_ms.saturating_sub(1) / 1_000 / step_s).or_default();
        moment.requests = moment.requests.saturating_add(second.requests());
        moment.elapsed_s += f64::from(second.until_ms.saturating_sub(before_ms)) / 1_000.0;
        moment.latencies.add(&second.succeeded);
        before_ms = second.until_ms;
    }
}

fn add_usage(moments: &mut BTreeMap<u32, Point>, window: &Window, step_s: u32) {
    // The last sample was taken after k6 had ended, so it is partly idle.
    let usage = window.usage.split_last().map_or(&[][..], |(_, but_last)| but_last);
    for pair in usage.windows(2) {
        let (from_ms, until_ms) = (pair[0].at_ms, pair[1].at_ms);
        let Ok(at_ms) = u32::try_from(until_ms.saturating_sub(1)) else { continue };
        let Some(moment) = moments.get_mut(&(at_ms / 1_000 / step_s)) else { continue };
        if let Some(cpu_us) = pair[1].target.cpu_us {
            moment.cpu_us += cpu_us as f64;
            moment.sampled_s += f64::from(until_ms.saturating_sub(from_ms)) / 1_000.0;
        }
        if let Some(bytes) = pair[1].target.held_memory_bytes {
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

    /// Two targets with six repetitions each; all but one repetition have a time series.
    pub fn two() -> (Comparison, Recorded) {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        let recorded = runs.iter().skip(1).map(|run| (run.id.clone(), rising())).collect();
        (Comparison::new(runs, &Marks::default(), None), recorded)
    }

    /// Time series of the first row, with all runs included.
    pub fn first_row(comparison: &Comparison, recorded: &Recorded) -> Option<RowTimeseries> {
        RowTimeseries::new(&comparison.rows[0], &comparison.run_ids(), recorded)
    }

    #[test]
    fn missing_series_and_runs_above_the_limit_are_counted_separately() {
        let (comparison, recorded) = two();
        let few: Vec<_> = comparison.run_ids().into_iter().take(4).collect();
        let missing = RowTimeseries::new(&comparison.rows[0], &few, &recorded).expect("a time series").missing;
        assert_eq!(missing, Missing { without_series: 1, too_many: 8 });
        assert_eq!(missing.describe().as_deref(), Some("1 run without a time series excluded; 8 runs not drawn."));
    }

    #[test]
    fn repetitions_are_aggregated_by_time() {
        let (comparison, recorded) = two();
        let series = first_row(&comparison, &recorded).expect("a time series");
        let [one, other] = series.cells.as_slice() else { panic!("two cells") };
        assert_eq!((one.repetitions, other.repetitions, series.missing.without_series), (5, 6, 1));
        assert_eq!(one.moments.len(), 10);
        let third = &one.moments[2];
        assert_eq!((third.at_s, third.rps(), third.cores()), (3.0, Some(300.0), Some(0.5)));
        assert_eq!(third.memory_bytes(), Some(f64::from(1 << 19)));
        assert_eq!(third.latencies.total(), 5 * 299);
        assert_eq!(one.latencies.total(), 5 * (100 * 55 - 10));
    }

    #[test]
    fn long_runs_have_longer_steps() {
        let (comparison, mut recorded) = two();
        for series in recorded.values_mut() {
            let window = series.measured.as_mut().expect("seconds");
            for (place, second) in window.seconds.iter_mut().enumerate() {
                second.until_ms = 360_000 * (u32::try_from(place).expect("ten") + 1);
            }
        }
        let series = first_row(&comparison, &recorded).expect("a time series");
        assert_eq!(series.cells[0].moments.len(), 10);
        assert!((series.cells[0].moments[0].at_s - 360.0).abs() < 1e-9);
    }

    #[test]
    fn rows_without_recorded_series_have_none() {
        let (comparison, _) = two();
        assert!(first_row(&comparison, &Recorded::new()).is_none());
    }
}
