//! The experiments and runs in progress, with the last seconds of each run.

use brewbench_wire::{Phase, now_ms};

use crate::{
    app::{error::Result, state::AppState},
    experiments::{
        model::Experiment,
        progress::{Progress, progress},
    },
    live::{
        chart::{LiveChart, charts, empty_charts},
        feed::LiveFeed,
    },
    runs::{
        model::Run,
        pages::{history::rate, row::RunProgress},
        progress::describe,
    },
    web::format,
};

/// The maximum number of runs with charts.
const MAX_ACTIVE: usize = 3;

/// The maximum number of seconds in a chart.
const MAX_SECONDS: usize = 300;

/// What is in progress.
#[derive(Debug)]
pub struct Running {
    /// The runs in progress, limited.
    pub active: Vec<Active>,
    /// How many runs are in progress.
    pub in_progress: usize,
    /// How many runs are queued.
    pub queued: usize,
    /// How many agents are connected.
    pub connected: usize,
}

/// A run in progress, with its experiment.
#[derive(Debug)]
pub struct Active {
    /// The run.
    pub run_progress: RunProgress,
    /// Throughput and latency of its last seconds.
    pub charts: [LiveChart; 2],
    experiment: Option<(Experiment, Vec<Run>)>,
    /// Progress of its experiment.
    pub progress: Option<Progress>,
}

impl Running {
    /// Loads the runs in progress.
    pub async fn load(state: &AppState, connected: usize) -> Result<Self> {
        let pool = &state.db.read;
        let (running, queued) = crate::runs::store::unfinished_count(pool).await?;
        let limit = i64::try_from(MAX_ACTIVE).unwrap_or(i64::MAX);
        // Runs in progress come before queued ones.
        let mut runs = crate::runs::store::unfinished(&state.db.rows, limit).await?;
        runs.retain(|run| run.phase != Phase::Queued);
        let targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
        let marks = crate::catalog::store::marks(pool, &targets).await?;
        let mut active = Vec::new();
        for run in runs {
            let experiment = match &run.experiment {
                Some(id) => crate::experiments::store::find(pool, id).await?,
                None => None,
            };
            let experiment = match experiment {
                Some(one) => {
                    let runs = crate::runs::store::of_experiment(&state.db.rows, &one.id).await?;
                    Some((one, runs))
                }
                None => None,
            };
            let run_progress = RunProgress::new(run, &marks, &[], now_ms());
            let mut one = Active { charts: empty_charts(), run_progress, experiment, progress: None };
            one.tick(state, now_ms());
            active.push(one);
        }
        Ok(Self { active, in_progress: running, queued, connected })
    }

    /// Updates what changes every second.
    pub fn tick(&mut self, state: &AppState) {
        let now = now_ms();
        for active in &mut self.active {
            active.tick(state, now);
        }
    }

    /// Returns how many runs in progress are not shown.
    pub fn more(&self) -> usize {
        self.in_progress.saturating_sub(self.active.len())
    }
}

impl Active {
    fn tick(&mut self, state: &AppState, now: i64) {
        let run = &self.run_progress.line.run;
        let wire = run.id.to_wire().ok();
        let seconds = wire.map(|id| state.memory::<LiveFeed>().recent(id, MAX_SECONDS)).unwrap_or_default();
        let rate = rate(state, run);
        self.charts = charts(run, self.run_progress.line.mark, &seconds);
        self.progress = self.experiment.as_ref().map(|(experiment, runs)| progress(experiment, runs, now));
        self.run_progress.refresh(&[], rate, now);
    }

    /// Returns the name of the experiment, or of the target of a run without one.
    pub fn title(&self) -> &str {
        self.experiment
            .as_ref()
            .map_or(self.run_progress.line.run.spec.target.as_str(), |(experiment, _)| experiment.name.as_str())
    }

    /// Returns the path of the experiment, or of a run without one.
    pub fn path(&self) -> String {
        match &self.experiment {
            Some((experiment, _)) => format!("/experiments/{}", experiment.id),
            None => self.run_path(),
        }
    }

    /// Returns the path of the run.
    pub fn run_path(&self) -> String {
        format!("/runs/{}", self.run_progress.line.run.id)
    }

    /// Describes the run: `servy · 2 vCPU / 4 GiB · repetition 4 · measuring`.
    pub fn now(&self) -> String {
        describe(&self.run_progress.line.run)
    }

    /// Returns the elapsed share, 0 to 1; none if unknown.
    pub fn share(&self) -> Option<f64> {
        self.progress.as_ref().map_or(self.run_progress.share, |progress| Some(progress.share))
    }

    /// Describes the remaining time.
    pub fn left(&self) -> String {
        match self.progress.as_ref().and_then(|progress| progress.remaining_s) {
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => self.run_progress.left.clone(),
        }
    }
}
