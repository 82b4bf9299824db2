//! `/runs/{id}/live`: the page of a run as it goes on. What is known in memory is drawn from there: points at once, how
//! far it is every second; the database is asked when the run has changed, and never by the clock.

use std::{sync::Arc, time::Duration};

use askama::Template;
use axum::{
    extract::{Path, State},
    response::IntoResponse,
};
use brewbench_agent::wire::{RunId, now_ms, series::Part};
use datastar::prelude::{ElementPatchMode, PatchElements};
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        watch,
    },
    time::Instant,
};

use super::{
    line::Doing,
    one::{RunPart, RunView, Stored},
    stages::{self, Stage},
    story::Story,
};
use crate::{
    auth::{Read, Scope},
    error::{Error, Result},
    runs::{Run, api, now::written},
    state::AppState,
    underway::News,
    web::{
        live::{self, Beat, Concerns, Frame, Pace, View},
        mark::Mark,
    },
};

/// What is more than curves that grow, such as the histogram of the whole run, is drawn anew so often.
const STORY: Duration = Duration::from_secs(10);

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

/// The page as it changes, until the run has ended.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse> {
    let run = api::found(&state, &id).await?;
    let id: RunId = run.id.parse().map_err(Error::internal)?;
    let view = LiveRun {
        id: run.id,
        run: id,
        scope: caller.scope,
        shown: None,
        opened: state.underway.opened(),
        news: None,
        waiting: Vec::new(),
        missed: false,
        state: state.clone(),
    };
    Ok(live::follow(&state, Concerns::Run(id.0), view))
}

struct LiveRun {
    state: AppState,
    id: String,
    run: RunId,
    scope: Scope,
    /// What the page shows.
    shown: Option<Shown>,
    opened: watch::Receiver<()>,
    /// None while nobody tells of the run.
    news: Option<Receiver<Arc<News>>>,
    /// Heard and not shown yet.
    waiting: Vec<Arc<News>>,
    /// Too much to hear all of it.
    missed: bool,
}

/// The page as it was sent last.
struct Shown {
    doing: Option<Doing>,
    cell: Vec<Run>,
    phases: Vec<(String, i64)>,
    mark: Mark,
    /// The parts that its charts have.
    parts: Vec<Part>,
    told_at: Instant,
}

impl View for LiveRun {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let patches = match (beat, &mut self.shown) {
            (Beat::Time, Some(shown)) => shown.tick(&self.state, self.run)?,
            (Beat::News, Some(shown)) if !self.missed && self.waiting.iter().all(|news| shown.has(news.part)) => {
                self.waiting.drain(..).map(|news| grown(&news)).collect()
            }
            _ => vec![self.whole().await?],
        };
        let pace = match self.shown.as_ref().and_then(|shown| shown.doing.as_ref()) {
            None => Pace::Over,
            Some(doing) if doing.line.run.phase == "queued" => Pace::Minute,
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
        let run = api::found(&self.state, &self.id).await?;
        let stored = Stored::read(&self.state, &run).await?;
        let mark = stored.marks.of(&run.target);
        let (cell, phases) = (stored.cell.clone(), stored.phases.clone());
        let parts = stored.series.iter().flat_map(|series| series.parts().map(|(part, _)| part)).collect();
        let view = RunView::new(run, stored, self.scope, now_ms());
        let patch = live::patch(&RunPart { view: &view })?;
        self.shown = Some(Shown { doing: view.doing, cell, phases, mark, parts, told_at: Instant::now() });
        Ok(patch)
    }
}

impl Shown {
    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// What is different because time has passed.
    fn tick(&mut self, state: &AppState, run: RunId) -> Result<Vec<PatchElements>> {
        let Some(doing) = &mut self.doing else { return Ok(Vec::new()) };
        let (now, id) = (now_ms(), doing.line.run.id.clone());
        let others: Vec<&Run> = self.cell.iter().filter(|other| other.id != id).collect();
        doing.look_again(&others, state.underway.rate(run), now);
        let stages = stages::stages(&self.phases, now);
        let mut patches = vec![live::patch(&DoingPart { doing })?, live::patch(&StagesPart { stages })?];
        if !self.parts.is_empty() && self.told_at.elapsed() >= STORY {
            self.told_at = Instant::now();
            let series = state.underway.series(run);
            if let Some(story) = series.and_then(|series| Story::new(&doing.line.run, self.mark, series)) {
                patches.push(live::patch(&StoryPart { run: &doing.line.run, story: &story })?);
            }
        }
        Ok(patches)
    }
}

/// Points for `live.js`.
fn grown(news: &News) -> PatchElements {
    PatchElements::new(format!("<i>{}</i>", written(news))).selector("#news").mode(ElementPatchMode::Append)
}
