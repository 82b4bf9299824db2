//! `/queue`: waiting runs, their wait reasons, and moving runs to the front.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension, Router,
    extract::State,
    response::IntoResponse,
    routing::{get, post},
};
use brewbench_wire::now_ms;
use tokio::sync::watch;

use super::api;
use crate::{
    app::{
        alert_cache::ActiveAlert,
        error::Result,
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    dispatch::queue::{
        list::load_queue,
        model::{QueueEntry, QueueList},
    },
    fleet::presence::Presence,
    placement::wait_reason::WaitCode,
    runs::pages::row::{ListedRun, RunProgress},
    web::{
        form::up,
        format,
        live::{self, Frame, Pace, Tick, Topic, View},
        live_shared,
        shell::{Section, Shell},
    },
};

/// The most runs that are shown; further ones are only counted.
const MAX_SHOWN: usize = 100;

/// How often the queue is loaded again: no event reports that a run takes longer than estimated.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the routes of the queue page.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/queue", get(index))
        .route("/queue/live", get(follow))
        .route("/queue/runs/{id}/next", up(3, post(api::put_first)))
        .route("/queue/experiments/{id}/next", up(3, post(api::put_experiment_first)))
}

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "dispatch/queue.html")]
struct QueuePage {
    shell: Shell,
    queue: Queue,
}

/// The part of the page that live updates replace. Its root is `#queue`.
#[derive(Debug, Template)]
#[template(path = "dispatch/_queue.html")]
struct QueuePart<'a> {
    queue: &'a Queue,
}

/// What the page shows.
#[derive(Debug)]
struct Queue {
    /// Active alerts.
    active_alerts: Arc<[ActiveAlert]>,
    progress: Vec<RunProgress>,
    rows: Vec<Row>,
    total: usize,
    scope: Scope,
    read_at: Instant,
}

/// A waiting run.
#[derive(Debug)]
struct Row {
    line: ListedRun,
    waiting: QueueEntry,
    /// Whether it is the first listed run of its experiment.
    leads: bool,
    /// Estimated seconds from now until it starts.
    starts_in_s: Option<f64>,
}

impl Row {
    fn id(&self) -> &RunId {
        &self.line.run.id
    }

    /// Describes the agents that it waits for.
    fn agents(&self) -> String {
        match (&self.waiting.required_agent, &self.waiting.agent_label) {
            (Some(name), _) => name.clone(),
            (None, _) if !self.waiting.agents.is_empty() => self.waiting.agents.join(", "),
            (None, Some(label)) => format!("any labelled {label}"),
            (None, None) => "any agent".to_owned(),
        }
    }

    /// Describes when it starts.
    fn starts(&self) -> String {
        match self.starts_in_s {
            Some(seconds) if seconds < 1.0 => "now".to_owned(),
            Some(seconds) => format!("in about {}", format::duration(Some(seconds.ceil())).text()),
            None => "unknown".to_owned(),
        }
    }

    /// Whether a user has to act before it can start.
    fn is_stuck(&self) -> bool {
        !matches!(self.waiting.reason, WaitCode::Busy | WaitCode::Soon)
    }

    fn is_first(&self) -> bool {
        self.waiting.position == 1
    }

    /// Returns its experiment's id and name.
    fn experiment(&self) -> Option<(&ExperimentId, &str)> {
        Some((self.line.run.experiment.as_ref()?, self.waiting.experiment_name.as_deref().unwrap_or("experiment")))
    }
}

impl Queue {
    async fn read(state: &AppState, presence: &Presence, scope: Scope) -> Result<Self> {
        let QueueList { total, waiting, working } = load_queue(state, presence).await?;
        let targets: Vec<&str> =
            waiting.iter().map(|waiting| &waiting.run).chain(&working).map(|run| run.spec.target.as_str()).collect();
        let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
        let now = now_ms();
        let progress = working.into_iter().map(|run| RunProgress::new(run, &marks, &[], now)).collect();
        let mut seen_experiments = HashSet::new();
        let row = |waiting: QueueEntry| {
            let leads = seen_experiments.insert(waiting.run.experiment.clone());
            Row { line: ListedRun::new(waiting.run.clone(), &marks), starts_in_s: waiting.starts_in_s, waiting, leads }
        };
        Ok(Self {
            active_alerts: state.active_alerts.now(),
            progress,
            rows: waiting.into_iter().take(MAX_SHOWN).map(row).collect(),
            total,
            scope,
            read_at: Instant::now(),
        })
    }

    /// Updates times and progress without loading the queue again.
    fn tick(&mut self) {
        let (now, passed_s) = (now_ms(), self.read_at.elapsed().as_secs_f64());
        for progress in &mut self.progress {
            progress.refresh(&[], None, now);
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

    /// Counts the shown runs that wait for a user to act.
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
    Ok(QueuePage {
        shell: Shell::signed_in("Queue", Section::Dashboard, &caller.name).explained_in("guide/experiments#the-queue"),
        queue,
    })
}

/// `GET /queue/live`
async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<impl IntoResponse> {
    let agents = state.events.agents();
    let active_alerts = state.active_alerts.listen();
    let view = LiveQueue { state: state.clone(), presence, scope: caller.scope, agents, active_alerts, queue: None };
    let key = format!("queue {}", caller.scope.as_str());
    live_shared::follow(&state, &caller.name, key, Topic::Everything, view)
}

struct LiveQueue {
    state: AppState,
    presence: Presence,
    scope: Scope,
    /// Signals changes of agents, which change wait reasons.
    agents: watch::Receiver<u64>,
    active_alerts: watch::Receiver<Arc<[ActiveAlert]>>,
    /// The state that was sent last.
    queue: Option<Queue>,
}

impl View for LiveQueue {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        let queue = match self.queue.take() {
            Some(mut queue) if tick == Tick::Time && queue.read_at.elapsed() < RELOAD_INTERVAL => {
                queue.tick();
                queue
            }
            _ => Queue::read(&self.state, &self.presence, self.scope).await?,
        };
        let pace = if queue.progress.is_empty() { Pace::Minute } else { Pace::Second };
        let patch = live::patch(&QueuePart { queue: &queue })?;
        self.queue = Some(queue);
        Ok(Frame { patches: vec![patch], pace })
    }

    async fn news(&mut self) {
        let closed = tokio::select! {
            changed = self.agents.changed() => changed.is_err(),
            changed = self.active_alerts.changed() => changed.is_err(),
        };
        if closed {
            std::future::pending::<()>().await;
        }
    }
}
