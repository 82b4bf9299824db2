//! `/runs/{id}/live`: the page of a run as it goes on. What is known in memory is drawn from there: points at once, how
//! far it is every second; the database is asked when the run has changed, and never by the clock.

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
use brewbench_agent::wire::{self, Phase, now_ms, series::Part};
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
    live::{feed::News, status::written},
    results::series::model::SideCores,
    runs::{
        lookup,
        model::Run,
        pages::{
            phases::Stage,
            row::Doing,
            show::{RunPart, RunView, Stored},
            timeseries::Story,
        },
    },
    web::{
        live::{self, Beat, Concerns, Frame, Pace, View},
        series_style::Mark,
        shared::Shared,
    },
};

/// How far it is. Its root is `#doing`.
#[derive(Template)]
#[template(path = "runs/_doing.html")]
struct DoingPart<'a> {
    doing: &'a Doing,
}

/// Its phases. Its root is `#stages`.
#[derive(Template)]
#[template(path = "runs/_stages.html")]
struct StagesPart {
    stages: Vec<Stage>,
}

/// What has happened so far. Its root is `#seconds-of-run`.
#[derive(Template)]
#[template(path = "runs/_story.html")]
struct StoryPart<'a> {
    run: &'a Run,
    story: &'a Story,
}

/// Pages of runs that somebody follows: made once for all who look at the same. A closed tab costs nothing.
#[derive(Clone, Default)]
pub struct Followed(Arc<Mutex<Places>>);

type Places = BTreeMap<(wire::RunId, Scope), Weak<Pages>>;

/// One run for people who may do the same.
#[derive(Default)]
struct Pages {
    whole: Shared<Page>,
    /// None where nothing is known any more.
    story: Shared<Option<PatchElements>>,
}

/// All of a page.
struct Page {
    patch: PatchElements,
    doing: Option<Doing>,
    cell: Vec<Run>,
    phases: Vec<(String, i64)>,
    mark: Mark,
    /// The parts that its charts have.
    parts: Vec<Part>,
    /// Of the sides of the run.
    cores: SideCores,
}

impl Followed {
    fn pages(&self, run: wire::RunId, scope: Scope) -> Arc<Pages> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, pages| pages.strong_count() > 0);
        let pages = all.get(&(run, scope)).and_then(Weak::upgrade).unwrap_or_default();
        all.insert((run, scope), Arc::downgrade(&pages));
        pages
    }
}

/// The page as it changes, until the run has ended.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(followed): Extension<Followed>,
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
        doing: None,
        opened: state.underway.opened(),
        news: None,
        waiting: Vec::new(),
        missed: false,
        state: state.clone(),
    };
    live::follow(&state, &caller.name, Concerns::Run(run.id), view)
}

struct LiveRun {
    state: AppState,
    id: RunId,
    run: wire::RunId,
    scope: Scope,
    pages: Arc<Pages>,
    /// As it was sent last.
    page: Option<Arc<Page>>,
    /// How far the run is by now; none if it has ended.
    doing: Option<Doing>,
    opened: watch::Receiver<()>,
    /// None while nobody tells of the run.
    news: Option<Receiver<Arc<News>>>,
    /// Heard and not shown yet.
    waiting: Vec<Arc<News>>,
    /// Too much to hear all of it.
    missed: bool,
}

impl View for LiveRun {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let patches = match (beat, self.page.clone()) {
            (Beat::Time, Some(page)) => self.tick(&page)?,
            (Beat::News, Some(page)) if !self.missed && self.waiting.iter().all(|news| page.has(news.part)) => {
                let news = std::mem::take(&mut self.waiting);
                if news.iter().any(|news| is_tenth(news)) {
                    self.story(&page).await?
                } else {
                    news.iter().map(|news| grown(news, page.cores)).collect()
                }
            }
            _ => vec![self.whole().await?],
        };
        let pace = match &self.doing {
            None => Pace::Over,
            Some(doing) if doing.line.run.phase == Phase::Queued => Pace::Minute,
            Some(_) => Pace::Second,
        };
        Ok(Frame { patches, pace })
    }

    async fn news(&mut self) {
        loop {
            let Some(news) = &mut self.news else {
                if self.opened.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                if self.listen() {
                    self.missed = true;
                    return;
                }
                continue;
            };
            match news.recv().await {
                Ok(news) => return self.waiting.push(news),
                Err(RecvError::Lagged(_)) => {
                    self.missed = true;
                    return;
                }
                Err(RecvError::Closed) => self.news = None,
            }
        }
    }
}

impl LiveRun {
    /// Begins to hear of the run; true if there was something before that.
    fn listen(&mut self) -> bool {
        let Some((before, news)) = self.state.underway.listen(self.run, None) else { return false };
        self.news = Some(news);
        !before.is_empty()
    }

    /// All of the page.
    async fn whole(&mut self) -> Result<PatchElements> {
        // First, so that what comes while it is read comes again.
        if self.news.is_none() {
            self.listen();
        }
        (self.missed, self.waiting) = (false, Vec::new());
        let page = self.pages.whole.get(async || Page::read(&self.state, &self.id, self.scope).await).await?;
        let patch = page.patch.clone();
        (self.doing, self.page) = (page.doing.clone(), Some(page));
        Ok(patch)
    }

    /// What is different because time has passed.
    fn tick(&mut self, page: &Page) -> Result<Vec<PatchElements>> {
        let Some(doing) = &mut self.doing else { return Ok(Vec::new()) };
        let now = now_ms();
        let others: Vec<&Run> = page.cell.iter().filter(|other| other.id != self.id).collect();
        doing.look_again(&others, self.state.underway.rate(self.run), now);
        let stages = crate::runs::pages::phases::stages(&page.phases, now);
        Ok(vec![live::patch(&DoingPart { doing })?, live::patch(&StagesPart { stages })?])
    }

    /// All charts, and the table with the same figures.
    async fn story(&self, page: &Page) -> Result<Vec<PatchElements>> {
        let Some(doing) = &self.doing else { return Ok(Vec::new()) };
        let run = &doing.line.run;
        let patch = self.pages.story.get(async || {
            let series = self.state.underway.series(self.run);
            let story = series.and_then(|series| Story::new(run, page.mark, series, page.cores));
            story.map(|story| live::patch(&StoryPart { run, story: &story })).transpose()
        });
        Ok(Option::clone(&*patch.await?).into_iter().collect())
    }
}

impl Page {
    async fn read(state: &AppState, id: &RunId, scope: Scope) -> Result<Self> {
        let run = lookup::found(state, id).await?;
        let stored = Stored::read(state, &run).await?;
        let mark = stored.marks.of(&run.target);
        let (cell, phases) = (stored.cell.clone(), stored.phases.clone());
        let parts = stored.series.iter().flat_map(|series| series.parts().map(|(part, _)| part)).collect();
        let cores = SideCores::of(&run, stored.evidence());
        let view = RunView::new(run, stored, scope, now_ms());
        let patch = live::patch(&RunPart { view: &view })?;
        Ok(Self { patch, doing: view.doing, cell, phases, mark, parts, cores })
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

/// What is more than curves that grow, such as the histogram of the whole run, is drawn anew every tenth second: for all
/// at the same one, so that it is made once.
fn is_tenth(news: &News) -> bool {
    let before = news.seconds.before.unwrap_or(0);
    news.seconds.points.last().is_some_and(|last| last.until_ms / 10_000 > before / 10_000)
}

/// Points for `live.js`.
fn grown(news: &News, cores: SideCores) -> PatchElements {
    PatchElements::new(format!("<i>{}</i>", written(news, cores))).selector("#news").mode(ElementPatchMode::Append)
}
