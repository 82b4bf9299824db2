//! Watches agents and the queue, raises and clears alerts, and publishes them to pages.

use std::time::Duration;

use brewbench_wire::now_ms;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Thresholds,
    rules::{Change, Evaluator, Kind, Observed, Raised, StuckRun},
};
use crate::alerts::message::Message;
use crate::{
    alerts::model::Event,
    app::{alert_cache::ActiveAlert, error::Result, state::AppState},
    dispatch::queue::list,
    fleet::{self, model::Agent, presence::Presence},
    placement::wait_reason::WaitCode,
    web::address,
};

/// The longest interval between two checks; it is shorter for small thresholds.
const MAX_INTERVAL: Duration = Duration::from_secs(15);

/// The shortest interval between two checks, even if all agents reconnect at once.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Watches until the server stops.
pub async fn work(state: AppState, presence: Presence) {
    let mut evaluator = Evaluator::new(now_ms());
    let mut agents = state.events.agents();
    loop {
        let interval = check(&state, &presence, &mut evaluator).await.unwrap_or_else(|fault| {
            tracing::error!(%fault, "failed to check alerts");
            MAX_INTERVAL
        });
        let next = Instant::now() + interval;
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = sleep(MIN_INTERVAL) => {}
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.check_alerts.notified() => {}
            changed = agents.changed() => if changed.is_err() { return },
            () = sleep_until(next) => {}
        }
    }
}

/// Checks once. Returns the time until the next check.
async fn check(state: &AppState, presence: &Presence, evaluator: &mut Evaluator) -> Result<Duration> {
    let rule = crate::alerts::store::rule(&state.db.read).await?.rule;
    let raised: Vec<Raised> =
        crate::alerts::store::raised(&state.db.read).await?.into_iter().map(|(alert, _)| alert).collect();
    let observed = observe(state, presence).await?;
    let changes = evaluator.evaluate(&observed, &raised, rule);
    for change in &changes {
        apply(state, presence, &observed, change).await?;
    }
    if !changes.is_empty() {
        state.outbox.notify_one();
    }
    let raised = crate::alerts::store::raised(&state.db.read).await?.into_iter();
    state.active_alerts.set(raised.map(|(alert, raised_at_ms)| notice(alert, raised_at_ms)).collect());
    Ok(interval(rule))
}

fn interval(rule: Thresholds) -> Duration {
    let shortest = Duration::from_secs(u64::from(rule.agent_away_s.min(rule.queue_standstill_s)));
    (shortest / 4).clamp(MIN_INTERVAL, MAX_INTERVAL)
}

async fn observe(state: &AppState, presence: &Presence) -> Result<Observed> {
    let mut agents = crate::alerts::store::watched_agents(&state.db.read).await?;
    for agent in &mut agents {
        agent.is_connected = presence.has(&agent.name);
    }
    let (_, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let mut stuck = Vec::new();
    if queued > 0 {
        let queue = list::load_queue(state, presence).await?;
        // Paused runs wait on purpose, and runs that wait for busy agents wait normally.
        let waiting = queue.waiting.into_iter().filter(|run| !matches!(run.reason, WaitCode::Paused | WaitCode::Busy));
        stuck.extend(waiting.map(|waiting| StuckRun { run: waiting.run.id, why: waiting.message }));
    }
    Ok(Observed { now_ms: now_ms(), agents, stuck })
}

async fn apply(state: &AppState, presence: &Presence, observed: &Observed, change: &Change) -> Result<()> {
    let (alert, is_raised) = match change {
        Change::Raise(alert) => (alert, true),
        Change::Clear(alert) => (alert, false),
    };
    let url = url(state, &href(alert));
    let since = alert.since_ms;
    let (event, data) = match (alert.kind, is_raised) {
        (Kind::AgentDisconnected, true) => {
            (Event::AgentDisconnected, json!({"agent": alert.subject, "last_seen_at_ms": since, "url": url}))
        }
        (Kind::AgentDisconnected, false) => {
            let agents = fleet::api::all(&state.db, presence).await?;
            let agent = agents.iter().find(|agent| agent.name == alert.subject);
            let status = agent.map_or("forgotten", Agent::state);
            (
                Event::AgentConnected,
                json!({"agent": alert.subject, "state": status, "away_since_ms": since, "url": url}),
            )
        }
        (Kind::QueueStalled, true) => {
            let data = json!({"reason": alert.sentence, "runs": observed.stuck.len(), "since_ms": since, "url": url});
            (Event::QueueStalled, data)
        }
        (Kind::QueueStalled, false) => (Event::QueueResumed, json!({"stalled_since_ms": since, "url": url})),
    };
    let message = Message::new(event, observed.now_ms, &data);
    let change = if is_raised { "raised" } else { "cleared" };
    tracing::info!(subject = alert.subject, "alert {change}: {}", alert.sentence);
    if is_raised {
        crate::alerts::store::raise(&state.db.write, alert, &message).await?;
    } else {
        crate::alerts::store::clear(&state.db.write, alert, &message).await?;
    }
    Ok(())
}

/// Converts an alert for pages.
fn notice(alert: Raised, raised_at_ms: i64) -> ActiveAlert {
    let href = href(&alert);
    let Raised { kind, subject, sentence, since_ms } = alert;
    ActiveAlert { kind: kind.as_str(), subject, sentence, href, since_ms, raised_at_ms }
}

/// Returns the path of the page with details of an alert.
fn href(alert: &Raised) -> String {
    match alert.kind {
        Kind::AgentDisconnected => format!("/agents/{}", address::segment(&alert.subject)),
        Kind::QueueStalled => "/queue".to_owned(),
    }
}

/// Returns the absolute URL of a path.
pub fn url(state: &AppState, href: &str) -> String {
    format!("{}{}", state.public_url, href.trim_start_matches('/'))
}
