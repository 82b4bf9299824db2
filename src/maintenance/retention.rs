//! Retention of series: forever, or for a number of days, after which they are downsampled or deleted.
//!
//! Summary, metrics and verdict of the run stay. Such a run also keeps its verdict when other runs are re-judged,
//! because the data behind the verdict no longer exists.

use std::{str::FromStr, time::Duration};

use brewbench_wire::{now_ms, series::Packed};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, SERIES_RULE, action::Action},
        caller::Caller,
        proven::Proven,
    },
    maintenance,
    results::{
        series::downsample::downsample,
        store::downsampled::{self, Due},
    },
    web::format::plural,
};

/// How often the rule is applied.
const EVERY: Duration = Duration::from_hours(1);

/// Delay before a new rule is first applied, so that a mistake can be undone.
const GRACE_MS: i64 = 60 * 60 * 1_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The maximum of `after_days`.
const MAX_DAYS: u32 = 36_500;

/// What happens to an old series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Downsample: ten seconds become one point; sums and histograms stay exact.
    Downsample,
    /// Delete.
    Delete,
}

impl Reduction {
    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Downsample => "downsample",
            Self::Delete => "delete",
        }
    }

    /// The past participle for sentences.
    pub fn participle(self) -> &'static str {
        match self {
            Self::Downsample => "downsampled",
            Self::Delete => "deleted",
        }
    }
}

impl FromStr for Reduction {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let all = [Self::Downsample, Self::Delete];
        all.into_iter()
            .find(|one| one.as_str() == text)
            .ok_or_else(|| format!("unknown reduction {text:?}: use downsample or delete"))
    }
}

/// When and how series are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionRule {
    /// Days after the end of the run.
    pub after_days: u32,
    /// How the series is reduced then.
    pub reduction: Reduction,
}

impl RetentionRule {
    /// The rule in words: `downsampled after 90 days`.
    pub fn describe(&self) -> String {
        format!("{} after {}", self.reduction.participle(), plural(self.after_days as usize, "day"))
    }
}

/// The current retention rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retention {
    /// Null if series are kept forever.
    pub rule: Option<RetentionRule>,
    /// When the rule was set, unix ms.
    pub set_at_ms: Option<i64>,
    /// Who set it.
    pub set_by: Option<String>,
}

/// Returns the current rule.
pub async fn current(state: &AppState) -> Result<Retention> {
    let stored = maintenance::store::rule(&state.db.read).await?;
    Ok(stored.map_or_else(Retention::default, |(rule, at, who)| Retention {
        rule: Some(rule),
        set_at_ms: Some(at),
        set_by: Some(who),
    }))
}

/// Sets the rule. It takes effect after one hour and can be undone until then.
pub async fn set(state: &AppState, caller: &Proven<Caller>, rule: RetentionRule) -> Result<()> {
    if !(1..=MAX_DAYS).contains(&rule.after_days) {
        return Err(Error::Invalid(format!("after_days: must be between 1 and {MAX_DAYS}")));
    }
    if maintenance::store::rule(&state.db.read).await?.is_none_or(|(current, ..)| current != rule) {
        let act = caller.does(Action::SeriesRuleSet, &rule.describe()).with(json!(rule));
        maintenance::store::set_rule(&state.db.write, rule, now_ms(), &act).await?;
    }
    Ok(())
}

/// Removes the rule: series are kept forever.
pub async fn remove(state: &AppState, caller: &Proven<Caller>) -> Result<()> {
    maintenance::store::remove_rule(&state.db.write, &caller.does(Action::SeriesRuleSet, "kept forever")).await?;
    Ok(())
}

/// Applies the rule every hour until the server shuts down.
pub async fn work(state: AppState) {
    let mut clock = interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            _ = clock.tick() => {}
        }
        if !state.clock.may_delete() {
            continue;
        }
        if let Err(fault) = apply(&state, now_ms()).await {
            tracing::error!(%fault, "failed to reduce old series; retrying in an hour");
        }
    }
}

/// Applies the rule as of a time, unix ms, in batches. Returns the number of reduced series.
pub async fn apply(state: &AppState, now: i64) -> Result<usize> {
    let Some((rule, set_at, _)) = maintenance::store::rule(&state.db.read).await? else { return Ok(0) };
    if now < set_at + GRACE_MS {
        return Ok(0);
    }
    let (before, mut after, mut done) = (now - i64::from(rule.after_days) * DAY_MS, 0, 0);
    while !state.shutdown.is_cancelled() {
        let due = match rule.reduction {
            Reduction::Downsample => downsampled::full(&state.db.read, before, after).await?,
            Reduction::Delete => downsampled::with_series(&state.db.read, before, after).await?,
        };
        let Some(last) = due.last() else { break };
        after = last.seq;
        done += match rule.reduction {
            Reduction::Downsample => {
                let reduced = spawn_blocking(move || downsample_all(due)).await.map_err(Error::internal)?;
                downsampled::replace(&state.db.write, &reduced, now).await?
            }
            Reduction::Delete => downsampled::delete(&state.db.write, &due, now).await?,
        };
    }
    if done > 0 {
        tracing::info!(series = done, reduction = rule.reduction.as_str(), "reduced old series");
        let act = AuditEvent::new(SERIES_RULE, None, Action::SeriesReduced, &plural(done, "run"));
        maintenance::store::record(&state.db.write, &act.with(json!(rule))).await?;
    }
    Ok(done)
}

/// Downsamples each series; an unreadable one stays unchanged for diagnosis.
fn downsample_all(due: Vec<Due>) -> Vec<Due> {
    due.into_iter()
        .filter_map(|Due { seq, run, body }| match Packed::from_bytes(body).unpack() {
            Ok(series) => Some(Due { seq, run, body: Packed::pack(&downsample(series)).as_bytes().to_vec() }),
            Err(fault) => {
                tracing::warn!(run = run.as_str(), %fault, "failed to downsample a series");
                None
            }
        })
        .collect()
}
