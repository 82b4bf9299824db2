//! Pins: the trends that a user wants on the dashboard.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_wire::now_ms;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::Caller,
    compare::{cache::Version, metric::Metric},
    trends::{
        history,
        load::{find, runs_of, url},
        model::{MAX_PINS, Pin, Point, Trend},
        store::{
            AnnotatedChange, of_cell,
            pins::{self, StoredPin},
        },
    },
};

/// The maximum number of trends in the cache; beyond that it starts again.
const MAX_CACHED: usize = 200;

/// Returns the user whose pins a caller sees and changes.
fn user(caller: &Caller) -> Result<&str> {
    let problem = || Error::Conflict("pins belong to users, and this token belongs to none".to_owned());
    caller.user_id.as_deref().ok_or_else(problem)
}

/// Returns the pins of a caller, the oldest first.
pub(crate) async fn list(state: &AppState, caller: &Caller) -> Result<Vec<Pin>> {
    let stored = pins::of_user(&state.db.read, user(caller)?).await?;
    let pin = |StoredPin { target, cell, setting, pinned_at_ms }: StoredPin| {
        Ok(Pin { url: url(state, &target, &cell)?, target, cell, setting, pinned_at_ms })
    };
    stored.into_iter().map(pin).collect()
}

/// Whether a caller has pinned a cell.
pub(crate) async fn is_pinned(state: &AppState, caller: &Caller, target: &str, cell: &str) -> Result<bool> {
    let Some(user) = caller.user_id.as_deref() else { return Ok(false) };
    Ok(pins::has(&state.db.read, user, target, cell).await?)
}

/// Pins a cell. Pinning it again changes nothing.
pub(crate) async fn pin(state: &AppState, caller: &Caller, target: &str, cell: &str) -> Result<()> {
    let known = find(state, target, cell).await?.cell;
    let pin = StoredPin { setting: known.setting(), target: known.target, cell: known.id, pinned_at_ms: now_ms() };
    let limit = i64::try_from(MAX_PINS).map_err(Error::internal)?;
    if pins::add(&state.db.write, user(caller)?, &pin, limit).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!("you have pinned {MAX_PINS} trends; unpin one first")))
}

/// Removes a pin, or fails with 404. The cell may no longer exist.
pub(crate) async fn unpin(state: &AppState, caller: &Caller, target: &str, cell: &str) -> Result<()> {
    if pins::remove(&state.db.write, user(caller)?, target, cell).await? {
        return Ok(());
    }
    Err(Error::NotFound(format!("pin of cell {cell:?} of {target:?}")))
}

/// Throughput trends that dashboards have shown; cheap to clone. Change points are searched again only when a trend has
/// changed.
#[derive(Clone, Debug, Default)]
pub struct TrendCache(Arc<Mutex<HashMap<(String, String), Cached>>>);

#[derive(Clone, Debug)]
struct Cached {
    /// The inputs have not changed while this is the current version.
    version: Version,
    annotated: Vec<AnnotatedChange>,
    trend: Arc<Trend>,
}

impl TrendCache {
    /// Returns the throughput trend of a cell; none if it has no runs that count.
    pub(crate) async fn trend(&self, state: &AppState, target: &str, cell: &str) -> Result<Option<Arc<Trend>>> {
        let (pool, metric) = (&state.db.read, Metric::Rps);
        // Read before the inputs, so that a change in between is noticed.
        let version = crate::compare::store::version(pool).await?;
        let key = (target.to_owned(), cell.to_owned());
        let before = self.entries().get(&key).cloned();
        if let Some(cached) = before.as_ref().filter(|cached| cached.version == version) {
            let annotated = of_cell(pool, &cached.trend.cell, metric.key()).await?;
            if annotated == cached.annotated {
                return Ok(Some(Arc::clone(&cached.trend)));
            }
        }
        let known = match find(state, target, cell).await {
            Ok(known) => known,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let annotated = of_cell(pool, &known.cell, metric.key()).await?;
        let points = history::points(&runs_of(state, &known).await?, metric);
        let is_same = |cached: &Cached| cached.trend.points == points && cached.annotated == annotated;
        let trend = if let Some(cached) = before.filter(is_same) {
            cached.trend
        } else {
            let url = url(state, target, cell)?;
            let (points, annotated): (Vec<Point>, _) = (points, annotated.clone());
            let work = move || {
                let (spans, changes) = (history::spans(&points), history::changes(&points, metric, &annotated));
                Trend { cell: known.cell, metric, url, points, spans, changes }
            };
            Arc::new(tokio::task::spawn_blocking(work).await.map_err(Error::internal)?)
        };
        self.keep(key, Cached { version, annotated, trend: Arc::clone(&trend) });
        Ok(Some(trend))
    }

    fn keep(&self, key: (String, String), cached: Cached) {
        let mut entries = self.entries();
        if entries.len() >= MAX_CACHED && !entries.contains_key(&key) {
            entries.clear();
        }
        entries.insert(key, cached);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<(String, String), Cached>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
