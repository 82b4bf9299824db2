//! How long series are kept: for ever, or so many days, after which they are thinned or deleted.
//!
//! What a run's figures are made of (its summary, its headline, its verdict) is not touched: such a run keeps its verdict
//! also where others are judged anew, because what it was judged by is not there any more.

use std::{str::FromStr, time::Duration};

use brewbench_agent::wire::{now_ms, series::Packed};
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
        audit::{Act, SERIES_RULE, deed::Deed},
        caller::Caller,
    },
    maintenance,
    results::{
        series::downsample::thin,
        store::downsampled::{self, Due},
    },
    web::format::plural,
};

/// How often old series are looked for.
const EVERY: Duration = Duration::from_hours(1);

/// How long a rule that was just set is not applied: somebody may have meant another one.
const REGRET_MS: i64 = 60 * 60 * 1_000;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The longest time that can be asked for, days.
const MOST_DAYS: u32 = 36_500;

/// What becomes of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Ten seconds become one point; sums and histograms stay exact.
    Thin,
    /// It goes.
    Delete,
}

impl Reduction {
    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Thin => "thin",
            Self::Delete => "delete",
        }
    }

    /// For sentences: what is done to series.
    pub fn done(self) -> &'static str {
        match self {
            Self::Thin => "thinned",
            Self::Delete => "deleted",
        }
    }
}

impl FromStr for Reduction {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let all = [Self::Thin, Self::Delete];
        all.into_iter().find(|one| one.as_str() == text).ok_or_else(|| format!("{text:?} is neither thin nor delete"))
    }
}

/// From when on what is done to series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Days after the end of a run.
    pub after_days: u32,
    /// What is done then.
    pub reduction: Reduction,
}

impl Rule {
    /// In words: `thinned after 90 days`.
    pub fn words(&self) -> String {
        format!("{} after {}", self.reduction.done(), plural(self.after_days as usize, "day"))
    }
}

/// The rule that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeriesRule {
    /// Null while series are kept for ever.
    pub rule: Option<Rule>,
    /// When it was set, unix ms.
    pub set_at_ms: Option<i64>,
    /// By whom.
    pub set_by: Option<String>,
}

/// The rule that holds.
pub async fn current(state: &AppState) -> Result<SeriesRule> {
    let stored = maintenance::store::rule(&state.db.read).await?;
    Ok(stored.map_or_else(SeriesRule::default, |(rule, at, who)| SeriesRule {
        rule: Some(rule),
        set_at_ms: Some(at),
        set_by: Some(who),
    }))
}

/// Sets the rule. It is not applied within its first hour: until then it can be taken back.
pub async fn set(state: &AppState, caller: &Caller, rule: Rule) -> Result<()> {
    if !(1..=MOST_DAYS).contains(&rule.after_days) {
        return Err(Error::Invalid(format!("after_days: from 1 to {MOST_DAYS}")));
    }
    if maintenance::store::rule(&state.db.read).await?.is_none_or(|(held, ..)| held != rule) {
        let act = caller.does(Deed::SeriesRuleSet, &rule.words()).with(json!(rule));
        maintenance::store::set_rule(&state.db.write, rule, now_ms(), &act).await?;
    }
    Ok(())
}

/// Series are kept for ever from now on.
pub async fn remove(state: &AppState, caller: &Caller) -> Result<()> {
    maintenance::store::remove_rule(&state.db.write, &caller.does(Deed::SeriesRuleSet, "kept for ever")).await?;
    Ok(())
}

/// Applies the rule now and then until the server ends.
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
            tracing::error!(%fault, "old series could not be reduced; trying again later");
        }
    }
}

/// Applies the rule as of a time, unix ms, portion by portion; gives how many series were reduced.
pub async fn apply(state: &AppState, now: i64) -> Result<usize> {
    let Some((rule, set_at, _)) = maintenance::store::rule(&state.db.read).await? else { return Ok(0) };
    if now < set_at + REGRET_MS {
        return Ok(0);
    }
    let (before, mut after, mut done) = (now - i64::from(rule.after_days) * DAY_MS, 0, 0);
    while !state.shutdown.is_cancelled() {
        let due = match rule.reduction {
            Reduction::Thin => downsampled::whole(&state.db.read, before, after).await?,
            Reduction::Delete => downsampled::there(&state.db.read, before, after).await?,
        };
        let Some(last) = due.last() else { break };
        after = last.seq;
        done += match rule.reduction {
            Reduction::Thin => {
                let thinned = spawn_blocking(move || thin_all(due)).await.map_err(Error::internal)?;
                downsampled::replace(&state.db.write, &thinned, now).await?
            }
            Reduction::Delete => downsampled::delete(&state.db.write, &due, now).await?,
        };
    }
    if done > 0 {
        tracing::info!(series = done, reduction = rule.reduction.as_str(), "old series were reduced");
        let act = Act::new(SERIES_RULE, None, Deed::SeriesReduced, &plural(done, "run"));
        maintenance::store::note(&state.db.write, &act.with(json!(rule))).await?;
    }
    Ok(done)
}

/// What can't be read stays as it is, for somebody to look at.
fn thin_all(due: Vec<Due>) -> Vec<Due> {
    due.into_iter()
        .filter_map(|Due { seq, run, body }| match Packed::from_bytes(body).unpack() {
            Ok(series) => Some(Due { seq, run, body: Packed::pack(&thin(series)).as_bytes().to_vec() }),
            Err(fault) => {
                tracing::warn!(run = run.as_str(), %fault, "a series can't be thinned");
                None
            }
        })
        .collect()
}
