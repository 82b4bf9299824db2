//! Looks at agents and queue, raises and clears alerts, and says on pages what is raised.

use std::time::Duration;

use brewbench_agent::wire::now_ms;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Rule,
    rules::{Change, Kind, Memory, Raised, Seen, Stuck},
    webhooks::Told,
};
use crate::{
    alerts::model::Event,
    app::{alert_cache::Notice, error::Result, state::AppState},
    dispatch::queue::list,
    fleet::{self, model::Agent, presence::Presence},
    placement::wait_reason::Reason,
    web::address,
};

/// Looks are so far apart at most, and a fraction of what the rule says.
const SELDOM: Duration = Duration::from_secs(15);

/// Looks are so far apart at least, also when all agents come back at once.
const OFTEN: Duration = Duration::from_secs(1);

/// Watches until the server ends.
pub async fn work(state: AppState, presence: Presence) {
    let mut memory = Memory::from(now_ms());
    let mut agents = state.events.agents();
    loop {
        let every = look(&state, &presence, &mut memory).await.unwrap_or_else(|fault| {
            tracing::error!(%fault, "alerts");
            SELDOM
        });
        let next = Instant::now() + every;
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = sleep(OFTEN) => {}
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.look_again.notified() => {}
            changed = agents.changed() => if changed.is_err() { return },
            () = sleep_until(next) => {}
        }
    }
}

/// One look; gives how long until the next.
async fn look(state: &AppState, presence: &Presence, memory: &mut Memory) -> Result<Duration> {
    let rule = crate::alerts::store::rule(&state.db.read).await?.rule;
    let raised: Vec<Raised> =
        crate::alerts::store::raised(&state.db.read).await?.into_iter().map(|(alert, _)| alert).collect();
    let seen = see(state, presence).await?;
    let changes = memory.look(&seen, &raised, rule);
    for change in &changes {
        apply(state, presence, &seen, change).await?;
    }
    if !changes.is_empty() {
        state.outbox.notify_one();
    }
    let raised = crate::alerts::store::raised(&state.db.read).await?.into_iter();
    state.notices.set(raised.map(|(alert, raised_at_ms)| notice(alert, raised_at_ms)).collect());
    Ok(every(rule))
}

fn every(rule: Rule) -> Duration {
    let shortest = Duration::from_secs(u64::from(rule.agent_away_s.min(rule.queue_standstill_s)));
    (shortest / 4).clamp(OFTEN, SELDOM)
}

async fn see(state: &AppState, presence: &Presence) -> Result<Seen> {
    let mut agents = crate::alerts::store::missed(&state.db.read).await?;
    for agent in &mut agents {
        agent.is_connected = presence.has(&agent.name);
    }
    let (_, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let mut stuck = Vec::new();
    if queued > 0 {
        let queue = list::look(state, presence).await?;
        // Who is paused is meant to wait; who waits for somebody who works waits rightly.
        let waiting = queue.waiting.into_iter().filter(|run| !matches!(run.reason, Reason::Paused | Reason::Busy));
        stuck.extend(waiting.map(|waiting| Stuck { run: waiting.run.id, why: waiting.why }));
    }
    Ok(Seen { now_ms: now_ms(), agents, stuck })
}

async fn apply(state: &AppState, presence: &Presence, seen: &Seen, change: &Change) -> Result<()> {
    let (alert, is_raised) = match change {
        Change::Raise(alert) => (alert, true),
        Change::Clear(alert) => (alert, false),
    };
    let url = url(state, &href(alert));
    let since = alert.since_ms;
    let (event, data) = match (alert.kind, is_raised) {
        (Kind::AgentAway, true) => {
            (Event::AgentAway, json!({"agent": alert.subject, "last_seen_at_ms": since, "url": url}))
        }
        (Kind::AgentAway, false) => {
            let agents = fleet::api::all(&state.db, presence).await?;
            let agent = agents.iter().find(|agent| agent.name == alert.subject);
            let standing = agent.map_or("forgotten", Agent::state);
            (Event::AgentBack, json!({"agent": alert.subject, "state": standing, "away_since_ms": since, "url": url}))
        }
        (Kind::QueueStandstill, true) => {
            let data = json!({"why": alert.sentence, "runs": seen.stuck.len(), "since_ms": since, "url": url});
            (Event::QueueStandstill, data)
        }
        (Kind::QueueStandstill, false) => (Event::QueueMoving, json!({"stood_since_ms": since, "url": url})),
    };
    let told = Told::new(event, seen.now_ms, &data);
    tracing::info!(event = event.as_str(), subject = alert.subject, "{}", alert.sentence);
    if is_raised {
        crate::alerts::store::raise(&state.db.write, alert, &told).await?;
    } else {
        crate::alerts::store::clear(&state.db.write, alert, &told).await?;
    }
    Ok(())
}

/// What pages show of it.
fn notice(alert: Raised, raised_at_ms: i64) -> Notice {
    let href = href(&alert);
    let Raised { kind, subject, sentence, since_ms } = alert;
    Notice { kind: kind.as_str(), subject, sentence, href, since_ms, raised_at_ms }
}

/// Where an alert can be looked at.
fn href(alert: &Raised) -> String {
    match alert.kind {
        Kind::AgentAway => format!("/agents/{}", address::segment(&alert.subject)),
        Kind::QueueStandstill => "/queue".to_owned(),
    }
}

/// The same for whoever is elsewhere.
pub fn url(state: &AppState, href: &str) -> String {
    format!("{}{}", state.public_url, href.trim_start_matches('/'))
}
