//! `/queue`: what waits, for whom and why, and what goes first.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension, Router,
    extract::{Path, State},
    response::{IntoResponse, Redirect},
    routing::{get, post},
};
use brewbench_agent::wire::now_ms;
use tokio::sync::watch;

use super::api::{experiment_next, run_next};
use crate::{
    app::{
        alert_cache::Notice,
        error::Result,
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::{
        caller::{Read, Submit},
        model::Scope,
    },
    dispatch::queue::{
        list::look,
        model::{QueueList, Waiting},
    },
    fleet::presence::Presence,
    placement::wait_reason::Reason,
    runs::pages::row::{Doing, Line},
    web::{
        format,
        live::{self, Beat, Concerns, Frame, Pace, View},
        shell::{Section, Shell},
    },
};

/// More than these nobody reads; the rest is counted.
const MOST_SHOWN: usize = 100;

/// What changes is told; that more was planned than came of it is not, and is looked up this often.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// The pages of this.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/queue", get(index))
        .route("/queue/live", get(follow))
        .route("/queue/runs/{id}/next", post(post_run_next))
        .route("/queue/experiments/{id}/next", post(post_experiment_next))
}

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "dispatch/queue.html")]
struct QueuePage {
    shell: Shell,
    queue: Queue,
}

/// All of it but what surrounds it. Its root is `#queue`.
#[derive(Debug, Template)]
#[template(path = "dispatch/_queue.html")]
struct QueuePart<'a> {
    queue: &'a Queue,
}

/// What the page shows.
#[derive(Debug)]
struct Queue {
    /// What somebody should look at.
    notices: Arc<[Notice]>,
    doing: Vec<Doing>,
    rows: Vec<Row>,
    total: usize,
    scope: Scope,
    read_at: Instant,
}

/// A run that waits.
#[derive(Debug)]
struct Row {
    line: Line,
    waiting: Waiting,
    /// Whether it is the first of its experiment.
    leads: bool,
    /// In how many seconds it begins, now.
    starts_in_s: Option<f64>,
}

impl Row {
    fn id(&self) -> &RunId {
        &self.line.run.id
    }

    /// Who is to do it.
    fn who(&self) -> String {
        match (&self.waiting.wanted_agent, &self.waiting.agent_label) {
            (Some(name), _) => name.clone(),
            (None, _) if !self.waiting.agents.is_empty() => self.waiting.agents.join(", "),
            (None, Some(label)) => format!("any labelled {label}"),
            (None, None) => "any agent".to_owned(),
        }
    }

    /// When it begins, in words.
    fn starts(&self) -> String {
        match self.starts_in_s {
            Some(seconds) if seconds < 1.0 => "now".to_owned(),
            Some(seconds) => format!("in about {}", format::duration(Some(seconds.ceil())).text()),
            None => "can’t be told".to_owned(),
        }
    }

    /// Whether somebody has to do something before it begins.
    fn is_stuck(&self) -> bool {
        !matches!(self.waiting.reason, Reason::Busy | Reason::Soon)
    }

    fn is_first(&self) -> bool {
        self.waiting.position == 1
    }

    /// The experiment that others of its runs may wait in.
    fn experiment(&self) -> Option<(&ExperimentId, &str)> {
        Some((self.line.run.experiment.as_ref()?, self.waiting.experiment_name.as_deref().unwrap_or("experiment")))
    }
}

impl Queue {
    async fn read(state: &AppState, presence: &Presence, scope: Scope) -> Result<Self> {
        let QueueList { total, waiting, working } = look(state, presence).await?;
        let targets: Vec<&str> =
            waiting.iter().map(|waiting| &waiting.run).chain(&working).map(|run| run.target.as_str()).collect();
        let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
        let now = now_ms();
        let doing = working.into_iter().map(|run| Doing::new(run, &marks, &[], now)).collect();
        let mut seen = HashSet::new();
        let row = |waiting: Waiting| {
            let leads = seen.insert(waiting.run.experiment.clone());
            Row { line: Line::new(waiting.run.clone(), &marks), starts_in_s: waiting.starts_in_s, waiting, leads }
        };
        Ok(Self {
            notices: state.notices.now(),
            doing,
            rows: waiting.into_iter().take(MOST_SHOWN).map(row).collect(),
            total,
            scope,
            read_at: Instant::now(),
        })
    }

    /// Looks again at what moves from second to second.
    fn tick(&mut self) {
        let (now, passed_s) = (now_ms(), self.read_at.elapsed().as_secs_f64());
        for doing in &mut self.doing {
            doing.look_again(&[], None, now);
        }
        for row in &mut self.rows {
            row.starts_in_s = row.waiting.starts_in_s.map(|seconds| (seconds - passed_s).max(0.0));
        }
    }

    fn may_change(&self) -> bool {
        self.scope >= Scope::Submit
    }

    fn more(&self) -> usize {
        self.total.saturating_sub(self.rows.len())
    }

    /// How many of those that are shown wait for somebody to do something.
    fn stuck(&self) -> usize {
        self.rows.iter().filter(|row| row.is_stuck()).count()
    }
}

/// `GET /queue`
async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<QueuePage> {
    let queue = Queue::read(&state, &presence, caller.scope).await?;
    Ok(QueuePage { shell: Shell::signed_in("Queue", Section::Dashboard, &caller.name), queue })
}

/// `POST /queue/runs/{id}/next`
async fn post_run_next(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<Redirect> {
    run_next(&state, &id, &caller).await?;
    Ok(Redirect::to("/queue"))
}

/// `POST /queue/experiments/{id}/next`
async fn post_experiment_next(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Redirect> {
    experiment_next(&state, &id, &caller).await?;
    Ok(Redirect::to("/queue"))
}

/// The page as it changes.
async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<impl IntoResponse> {
    let agents = state.events.agents();
    let notices = state.notices.listen();
    let view = LiveQueue { state: state.clone(), presence, scope: caller.scope, agents, notices, queue: None };
    live::follow(&state, &caller.name, Concerns::Everything, view)
}

struct LiveQueue {
    state: AppState,
    presence: Presence,
    scope: Scope,
    /// Who comes and goes changes what the runs wait for.
    agents: watch::Receiver<u64>,
    notices: watch::Receiver<Arc<[Notice]>>,
    /// As it was sent last.
    queue: Option<Queue>,
}

impl View for LiveQueue {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let queue = match self.queue.take() {
            Some(mut queue) if beat == Beat::Time && queue.read_at.elapsed() < READ_AGAIN => {
                queue.tick();
                queue
            }
            _ => Queue::read(&self.state, &self.presence, self.scope).await?,
        };
        let pace = if queue.doing.is_empty() { Pace::Minute } else { Pace::Second };
        let patch = live::patch(&QueuePart { queue: &queue })?;
        self.queue = Some(queue);
        Ok(Frame { patches: vec![patch], pace })
    }

    async fn news(&mut self) {
        let gone = tokio::select! {
            changed = self.agents.changed() => changed.is_err(),
            changed = self.notices.changed() => changed.is_err(),
        };
        if gone {
            std::future::pending::<()>().await;
        }
    }
}
