//! `/runs/{id}/live`: the page of a run in progress.
//!
//! Points are drawn from memory at once, and progress every second. The database is read only when the run has changed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use askama::Template;
use axum::{
    Extension,
    extract::{Path, State},
    response::IntoResponse,
};
use brewbench_wire::{Phase, now_ms, series::WindowKind};
use datastar::prelude::{ElementPatchMode, PatchElements};
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    watch,
};

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    live::{
        feed::{LiveFeed, Update},
        status::to_json,
    },
    results::{
        pages::run::{
            phases::PhaseTiming,
            show::{RunPart, RunView, Stored},
            timeseries::RunCharts,
        },
        series::model::SideCores,
    },
    runs::{lookup, model::Run, pages::row::RunProgress},
    web::{
        live::{self, Frame, Pace, Tick, Topic, View},
        series_style::Mark,
        shared::Shared,
    },
};

/// The progress of the run. Its root is `#doing`.
#[derive(Template)]
#[template(path = "runs/_progress.html")]
struct RunProgressPart<'a> {
    progress: &'a RunProgress,
}

/// The phases of the run. Its root is `#stages`.
#[derive(Template)]
#[template(path = "runs/_phases.html")]
struct PhasesPart {
    phases: Vec<PhaseTiming>,
}

/// The charts so far. Its root is `#charts`.
#[derive(Template)]
#[template(path = "runs/_charts.html")]
struct ChartsPart {
    charts: RunCharts,
}

/// Pages of followed runs, rendered once for all viewers of the same page. A closed tab costs nothing.
#[derive(Clone, Default)]
pub struct LivePages(Arc<Mutex<Places>>);

type Places = BTreeMap<(brewbench_wire::RunId, Scope), Weak<Pages>>;

/// The page of one run for users with the same permission.
#[derive(Default)]
struct Pages {
    page: Shared<Page>,
    /// None once the series is no longer in memory.
    time_series: Shared<Option<PatchElements>>,
}

/// A complete page.
struct Page {
    patch: PatchElements,
    progress: Option<RunProgress>,
    cell: Vec<Run>,
    phases: Vec<(String, i64)>,
    mark: Mark,
    /// Parts shown in its charts.
    parts: Vec<WindowKind>,
    /// Cores of target and load generator.
    cores: SideCores,
}

impl LivePages {
    fn pages(&self, run: brewbench_wire::RunId, scope: Scope) -> Arc<Pages> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, pages| pages.strong_count() > 0);
        let pages = all.get(&(run, scope)).and_then(Weak::upgrade).unwrap_or_default();
        all.insert((run, scope), Arc::downgrade(&pages));
        pages
    }
}

/// Streams the page as it changes, until the run has ended.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(followed): Extension<LivePages>,
    Path(id): Path<RunId>,
) -> Result<impl IntoResponse> {
    let run = lookup::found(&state, &id).await?;
    let on_wire = run.id.to_wire().map_err(Error::internal)?;
    let view = LiveRun {
        id: run.id.clone(),
        run: on_wire,
        scope: caller.scope,
        pages: followed.pages(on_wire, caller.scope),
        page: None,
        progress: None,
        opened: state.memory::<LiveFeed>().opened(),
        updates: None,
        waiting: Vec::new(),
        missed: false,
        state: state.clone(),
    };
    live::follow(&state, &caller.name, Topic::Run(run.id), view)
}

struct LiveRun {
    state: AppState,
    id: RunId,
    run: brewbench_wire::RunId,
    scope: Scope,
    pages: Arc<Pages>,
    /// The page as sent last.
    page: Option<Arc<Page>>,
    /// Current progress; None if the run has ended.
    progress: Option<RunProgress>,
    opened: watch::Receiver<()>,
    /// None while no agent reports the run.
    updates: Option<Receiver<Arc<Update>>>,
    /// Received and not yet sent.
    waiting: Vec<Arc<Update>>,
    /// Whether updates were missed.
    missed: bool,
}

impl View for LiveRun {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        let patches = match (tick, self.page.clone()) {
            (Tick::Time, Some(page)) => self.tick(&page)?,
            (Tick::News, Some(page)) if !self.missed && self.waiting.iter().all(|update| page.has(update.part)) => {
                let updates = std::mem::take(&mut self.waiting);
                if updates.iter().any(|update| is_tenth(update)) {
                    self.time_series(&page).await?
                } else {
                    updates.iter().map(|update| new_points(update, page.cores)).collect()
                }
            }
            _ => vec![self.page().await?],
        };
        let pace = match &self.progress {
            None => Pace::Over,
            Some(progress) if progress.line.run.phase == Phase::Queued => Pace::Minute,
            Some(_) => Pace::Second,
        };
        Ok(Frame { patches, pace })
    }

    async fn news(&mut self) {
        loop {
            let Some(updates) = &mut self.updates else {
                if self.opened.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                if self.subscribe() {
                    self.missed = true;
                    return;
                }
                continue;
            };
            match updates.recv().await {
                Ok(update) => return self.waiting.push(update),
                Err(RecvError::Lagged(_)) => {
                    self.missed = true;
                    return;
                }
                Err(RecvError::Closed) => self.updates = None,
            }
        }
    }
}

impl LiveRun {
    /// Subscribes to the run; true if it already has points.
    fn subscribe(&mut self) -> bool {
        let Some((before, updates)) = self.state.memory::<LiveFeed>().subscribe(self.run, None) else { return false };
        self.updates = Some(updates);
        !before.is_empty()
    }

    /// Renders the complete page.
    async fn page(&mut self) -> Result<PatchElements> {
        // Subscribe first: points that arrive while the page is read are then sent again.
        if self.updates.is_none() {
            self.subscribe();
        }
        (self.missed, self.waiting) = (false, Vec::new());
        let page = self.pages.page.get(async || Page::read(&self.state, &self.id, self.scope).await).await?;
        let patch = page.patch.clone();
        (self.progress, self.page) = (page.progress.clone(), Some(page));
        Ok(patch)
    }

    /// Updates what changes with time.
    fn tick(&mut self, page: &Page) -> Result<Vec<PatchElements>> {
        let Some(progress) = &mut self.progress else { return Ok(Vec::new()) };
        let now = now_ms();
        let others: Vec<&Run> = page.cell.iter().filter(|other| other.id != self.id).collect();
        progress.refresh(&others, self.state.memory::<LiveFeed>().rate(self.run), now);
        progress.step = self.state.memory::<LiveFeed>().step(self.run);
        let phases = crate::results::pages::run::phases::timings(&page.phases, now);
        Ok(vec![live::patch(&RunProgressPart { progress })?, live::patch(&PhasesPart { phases })?])
    }

    /// Renders all charts and the table with the same values.
    async fn time_series(&self, page: &Page) -> Result<Vec<PatchElements>> {
        let Some(progress) = &self.progress else { return Ok(Vec::new()) };
        let run = &progress.line.run;
        let patch = self.pages.time_series.get(async || {
            let series = self.state.memory::<LiveFeed>().series(self.run);
            let charts = |series| RunCharts::new(run, page.mark, &page.cell, None, Some((series, page.cores)));
            series.map(|series| live::patch(&ChartsPart { charts: charts(series) })).transpose()
        });
        Ok(Option::clone(&*patch.await?).into_iter().collect())
    }
}

impl Page {
    async fn read(state: &AppState, id: &RunId, scope: Scope) -> Result<Self> {
        let run = lookup::found(state, id).await?;
        let stored = Stored::read(state, &run).await?;
        let mark = stored.marks.of(&run.spec.target);
        let (cell, phases) = (stored.cell.clone(), stored.phases.clone());
        let parts = stored.series.iter().flat_map(|series| series.parts().map(|(part, _)| part)).collect();
        let cores = SideCores::new(&run, stored.evidence());
        let view = RunView::new(run, stored, scope, now_ms());
        let patch = live::patch(&RunPart { view: &view })?;
        Ok(Self { patch, progress: view.progress, cell, phases, mark, parts, cores })
    }

    fn has(&self, part: WindowKind) -> bool {
        self.parts.contains(&part)
    }
}

/// Whether an update crosses a multiple of ten seconds, at which all charts are drawn again, such as the histogram of
/// the run. The time is the same for all viewers, so that it is rendered once.
fn is_tenth(update: &Update) -> bool {
    let before = update.seconds.before.unwrap_or(0);
    update.seconds.points.last().is_some_and(|last| last.until_ms / 10_000 > before / 10_000)
}

/// Returns new points for `live.js`.
fn new_points(update: &Update, cores: SideCores) -> PatchElements {
    PatchElements::new(format!("<i>{}</i>", to_json(update, cores))).selector("#news").mode(ElementPatchMode::Append)
}
