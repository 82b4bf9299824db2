//! The throughput of each target while an experiment runs: the finished repetitions with their interval, and the
//! repetition in progress. Template: `experiments/_race.html`. Pure.

use std::fmt;

use askama::filters::HtmlSafe;
use brewbench_wire::Phase;

use super::{model::Experiment, progress::counted};
use crate::{
    app::ids::ExperimentId,
    compare::{
        metric::Metric,
        statistics::{Spread, spread},
    },
    runs::model::Run,
    web::{
        format,
        series_style::{Mark, Marks},
    },
};

/// The maximum number of targets.
const MAX_LANES: usize = 6;

/// The part of a lane's width that stays free at its ends, percent.
const MARGIN: f64 = 3.0;

/// The targets of an experiment in the setting that is measured now.
#[derive(Clone, Debug)]
pub struct Race {
    /// The experiment.
    pub experiment: ExperimentId,
    /// The size and the load, if there are several.
    pub setting: String,
    /// One per target.
    pub lanes: Vec<Lane>,
}

/// One target.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name.
    pub target: String,
    /// Its colour.
    pub mark: Mark,
    values: Vec<f64>,
    spread: Option<Spread>,
    /// Whether a repetition is in progress.
    is_running: bool,
    /// Requests per second of that repetition; none before its first second.
    now: Option<f64>,
    /// The figure at the right end.
    most: f64,
}

impl Race {
    /// Collects the runs of the setting in progress, or of the last one between two runs. None without runs.
    pub fn new(
        experiment: &Experiment,
        runs: &[Run],
        marks: &Marks,
        rate: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Self> {
        let is_active = |run: &&Run| !run.has_ended() && run.phase != Phase::Queued;
        let current = counted(runs)
            .find(is_active)
            .or_else(|| counted(runs).filter(|run| run.has_ended()).last())
            .or_else(|| counted(runs).next())?;
        let (size, load) = (&current.spec.size, &current.spec.load);
        let lane = |target: &String| {
            let own = || {
                counted(runs)
                    .filter(|run| run.spec.target == *target && run.spec.size == *size && run.spec.load == *load)
            };
            let values: Vec<f64> =
                own().filter(|run| run.counts()).filter_map(|run| Metric::Rps.value_in(run)).collect();
            let active = own().find(is_active);
            Lane {
                mark: marks.of(target),
                target: target.clone(),
                spread: spread(values.iter().copied()),
                values,
                is_running: active.is_some(),
                now: active.and_then(&rate),
                most: 0.0,
            }
        };
        let plan = &experiment.plan;
        let mut lanes: Vec<Lane> = plan.targets.iter().take(MAX_LANES).map(lane).collect();
        let most = lanes.iter().map(Lane::highest).fold(0.0, f64::max);
        for lane in &mut lanes {
            lane.most = most;
        }
        let several = plan.sizes.len() * plan.loads.len() > 1;
        let size = size.iter().map(|size| size.name.clone());
        let parts = size.chain(crate::runs::load::describe_with(&current.spec, crate::runs::load::describe));
        let setting = if several { parts.collect::<Vec<_>>().join(" · ") } else { String::new() };
        Some(Self { experiment: experiment.id.clone(), setting, lanes })
    }
}

impl Lane {
    fn highest(&self) -> f64 {
        let high = self.spread.as_ref().and_then(|spread| spread.high);
        self.values.iter().copied().chain(high).chain(self.now).fold(0.0, f64::max)
    }

    /// Describes its throughput: `16,300 to 17,800 requests/s in 3 runs, now 16,500`.
    ///
    /// The ratio of two medians is not the difference that a comparison estimates, so none is named.
    pub fn figure(&self) -> String {
        let number = |value: f64| format::number(Some(value)).text().to_owned();
        let finished = self.spread.as_ref().map(|spread| {
            let [low, high] = [spread.min, spread.max].map(number);
            let range = if low == high { low } else { format!("{low} to {high}") };
            format!("{range}\u{a0}requests/s in {}", format::plural(spread.count, "run"))
        });
        match (finished, self.now) {
            (Some(finished), Some(now)) => format!("{finished}, now {}", number(now)),
            (Some(finished), None) => finished,
            (None, Some(now)) => format!("now {}\u{a0}requests/s", number(now)),
            (None, None) if self.is_running => "first run started".to_owned(),
            (None, None) => "no run yet".to_owned(),
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.most > 0.0 { value / self.most } else { 0.0 };
        MARGIN + share * (100.0 - 2.0 * MARGIN)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"<svg class="lane {}" aria-hidden="true">"#, self.mark.colour())?;
        write!(f, r#"<line class="zero" x1="{MARGIN}%" x2="{MARGIN}%" y1="2" y2="22"/>"#)?;
        if let Some(now) = self.now {
            let end = self.place(now) - MARGIN;
            write!(f, r#"<rect x="{MARGIN}%" width="{end:.1}%" y="5" height="14"/>"#)?;
        }
        for value in &self.values {
            write!(f, r#"<circle class="run" cx="{:.1}%" cy="17" r="2"/>"#, self.place(*value))?;
        }
        if let Some(spread) = &self.spread {
            if let Some((low, high)) = spread.low.zip(spread.high) {
                let (low, high) = (self.place(low), self.place(high));
                write!(f, r#"<line x1="{low:.1}%" x2="{high:.1}%" y1="10" y2="10"/>"#)?;
            }
            write!(f, r#"<circle cx="{:.1}%" cy="10" r="4"/>"#, self.place(spread.median))?;
        }
        f.write_str("</svg>")
    }
}

/// Consists only of figures and words of this file.
impl HtmlSafe for Lane {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::describe::tests::{experiment, plan, queued},
        runs::testing::{finished, measuring},
    };

    fn race(runs: &[Run]) -> Option<Race> {
        Race::new(&experiment("night", plan()), runs, &Marks::default(), |_| Some(2_000.0))
    }

    #[test]
    fn each_target_has_its_finished_repetitions_and_the_one_in_progress() {
        let runs = [finished("servy", 1), finished("servy", 2), measuring("gosherve"), queued("servy")];
        let race = race(&runs).expect("a race");
        let of = |target: &str| race.lanes.iter().find(|lane| lane.target == target).expect("a lane");
        assert!(of("servy").figure().ends_with("requests/s in 2 runs"), "{}", of("servy").figure());
        assert_eq!(of("gosherve").figure(), "now 2,000\u{a0}requests/s");
        assert_eq!(of("servy").to_string().matches(r#"class="run""#).count(), 2);
        assert_eq!(of("gosherve").to_string().matches("<rect").count(), 1);
        assert!((of("servy").most - of("gosherve").most).abs() < 1e-9, "all lanes have one scale");
    }

    #[test]
    fn before_the_first_run_every_lane_is_empty() {
        let race = race(&[queued("servy"), queued("gosherve")]).expect("a race");
        assert!(race.lanes.iter().all(|lane| lane.figure() == "no run yet" && !lane.to_string().contains("NaN")));
        assert!(self::race(&[]).is_none());
    }
}
