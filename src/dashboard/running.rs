//! The runs in progress, each with the race of its experiment.

use brewbench_wire::{Phase, now_ms};

use crate::{
    app::{error::Result, state::AppState},
    experiments::{
        list::ListedExperiment,
        model::Experiment,
        progress::{Progress, progress},
        race::Race,
    },
    runs::{
        model::Run,
        pages::{history::rate, row::RunProgress},
        progress::describe,
    },
    web::{format, series_style::Marks},
};

/// The maximum number of runs that are read.
const MAX_ACTIVE: usize = 3;

/// What is in progress.
#[derive(Debug)]
pub struct Running {
    /// The runs in progress, limited.
    pub active: Vec<Active>,
    /// How many runs are in progress.
    pub in_progress: usize,
    /// How many runs are queued.
    pub queued: usize,
    marks: Marks,
}

/// A run in progress, with its experiment.
#[derive(Debug)]
pub struct Active {
    /// The run.
    pub run_progress: RunProgress,
    experiment: Option<(Experiment, Vec<Run>)>,
    /// Progress of its experiment.
    pub progress: Option<Progress>,
    /// The targets of its experiment so far.
    pub race: Option<Race>,
}

impl Running {
    /// Loads the runs in progress.
    pub async fn load(state: &AppState) -> Result<Self> {
        let pool = &state.db.read;
        let (in_progress, queued) = crate::runs::store::unfinished_count(pool).await?;
        let limit = i64::try_from(MAX_ACTIVE).unwrap_or(i64::MAX);
        // Runs in progress come before queued ones.
        let mut runs = match in_progress {
            0 => Vec::new(),
            _ => crate::runs::store::unfinished(&state.db.rows, limit).await?,
        };
        runs.retain(|run| run.phase != Phase::Queued);
        let mut experiments: Vec<Option<(Experiment, Vec<Run>)>> = Vec::new();
        for run in &runs {
            let experiment = match &run.experiment {
                Some(id) => crate::experiments::store::find(pool, id).await?,
                None => None,
            };
            experiments.push(match experiment {
                Some(one) => {
                    let runs = crate::runs::store::of_experiment(&state.db.rows, &one.id).await?;
                    Some((one, runs))
                }
                None => None,
            });
        }
        let planned = experiments.iter().flatten().flat_map(|(experiment, _)| &experiment.plan.targets);
        let targets: Vec<&str> = planned.chain(runs.iter().map(|run| &run.spec.target)).map(String::as_str).collect();
        let marks = crate::catalog::store::marks(pool, &targets).await?;
        let active = runs.into_iter().zip(experiments).map(|(run, experiment)| Active {
            run_progress: RunProgress::new(run, &marks, &[], now_ms()),
            experiment,
            progress: None,
            race: None,
        });
        let mut running = Self { active: active.collect(), in_progress, queued, marks };
        running.tick(state);
        Ok(running)
    }

    /// Updates what changes every second.
    pub fn tick(&mut self, state: &AppState) {
        let now = now_ms();
        for active in &mut self.active {
            active.tick(state, &self.marks, now);
        }
    }

    /// Returns how many runs in progress are not in the bar.
    pub fn more(&self) -> usize {
        self.in_progress.saturating_sub(1)
    }

    /// Returns the races, one per experiment.
    pub fn races(&self) -> impl Iterator<Item = &Race> {
        let is_first = |(place, active): &(usize, &Active)| {
            let id = |active: &Active| active.race.as_ref().map(|race| race.experiment.clone());
            !self.active[..*place].iter().any(|other| id(other) == id(active))
        };
        self.active.iter().enumerate().filter(is_first).filter_map(|(_, active)| active.race.as_ref())
    }

    /// Returns the race of a listed experiment.
    pub fn race_of(&self, line: &ListedExperiment) -> Option<&Race> {
        self.races().find(|race| race.experiment == line.experiment.id)
    }
}

impl Active {
    fn tick(&mut self, state: &AppState, marks: &Marks, now: i64) {
        let rate_of = |run: &Run| rate(state, run);
        let rate = rate_of(&self.run_progress.line.run);
        self.run_progress.refresh(&[], rate, now);
        let Some((experiment, runs)) = &self.experiment else { return };
        self.progress = Some(progress(experiment, runs, now));
        self.race = Race::new(experiment, runs, marks, |run| rate_of(run).map(|rate| rate.rps));
    }

    /// Returns the name of the experiment, or of the target of a run without one.
    pub fn title(&self) -> &str {
        let target = self.run_progress.line.run.spec.target.as_str();
        self.experiment.as_ref().map_or(target, |(experiment, _)| experiment.name.as_str())
    }

    /// Returns the path of the experiment, or of a run without one.
    pub fn path(&self) -> String {
        match &self.experiment {
            Some((experiment, _)) => format!("/experiments/{}", experiment.id),
            None => format!("/runs/{}", self.run_progress.line.run.id),
        }
    }

    /// Describes the run: `servy · 2 vCPU / 4 GiB · repetition 4 · measuring`.
    pub fn now(&self) -> String {
        describe(&self.run_progress.line.run)
    }

    /// Returns the elapsed share, 0 to 1.
    pub fn share(&self) -> f64 {
        let of_run = self.run_progress.share.unwrap_or_default();
        self.progress.as_ref().map_or(of_run, |progress| progress.share)
    }

    /// Describes the remaining time.
    pub fn left(&self) -> String {
        match self.progress.as_ref().and_then(|progress| progress.remaining_s) {
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => self.run_progress.left.clone(),
        }
    }
}
