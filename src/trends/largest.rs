//! The trends of throughput with the largest recent changes.

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
    compare::{cache::Version, metric::Metric},
    trends::{
        cell::{self, KnownCell},
        history,
        load::{address, runs_of},
        model::{MIN_USEFUL, Trend},
        store::{self, AnnotatedChange},
    },
};

/// The number of newest runs whose cells are searched.
const RECENT: i64 = 2_000;

/// The maximum number of cells that are searched, the newest first.
const MAX_CELLS: usize = 20;

/// Older changes are no news.
const MAX_AGE_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// The trends with the largest changes; cheap to clone. A trend is computed again only if its cell has changed.
#[derive(Clone, Debug, Default)]
pub struct LargestChanges(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The inputs have not changed while these are current; none before the first search.
    version: Option<(Version, i64)>,
    /// All trends that were searched, by target and cell.
    trends: HashMap<(String, String), CellTrend>,
}

/// A trend, and what identifies its inputs.
#[derive(Clone, Debug)]
struct CellTrend {
    runs: usize,
    newest_at_ms: i64,
    annotated: Vec<AnnotatedChange>,
    trend: Arc<Trend>,
}

impl LargestChanges {
    /// Returns the trends with the largest changes that last and were not dismissed, the largest first.
    pub(crate) async fn load(&self, state: &AppState, most: usize) -> Result<Vec<Arc<Trend>>> {
        let pool = &state.db.read;
        // Read before the inputs, so that a change in between is noticed.
        let version = (crate::compare::store::version(pool).await?, store::annotations(pool).await?);
        if self.known().version != Some(version) {
            let mut trends = HashMap::new();
            let cells = cell::group(crate::runs::store::cells::cells(pool, None, RECENT).await?);
            // Fewer runs have no change.
            for known in cells.into_iter().filter(|known| known.runs >= MIN_USEFUL).take(MAX_CELLS) {
                let key = (known.cell.target.clone(), known.cell.id.clone());
                let trend = self.trend(state, &key, known).await?;
                trends.insert(key, trend);
            }
            *self.known() = Known { version: Some(version), trends };
        }
        let now = now_ms();
        let size = |trend: &Trend| {
            let change = trend
                .lasting_change()
                .filter(|change| change.found && !change.is_new() && now - change.at_ms < MAX_AGE_MS)?;
            Some(change.ratio.ln().abs()).filter(|size| size.is_finite())
        };
        let mut largest: Vec<(f64, Arc<Trend>)> =
            self.known().trends.values().filter_map(|one| Some((size(&one.trend)?, Arc::clone(&one.trend)))).collect();
        largest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        Ok(largest.into_iter().take(most).map(|(_, trend)| trend).collect())
    }

    async fn trend(&self, state: &AppState, key: &(String, String), known: KnownCell) -> Result<CellTrend> {
        let metric = Metric::Rps;
        let annotated = store::of_cell(&state.db.read, &known.cell, metric.key()).await?;
        let (runs, newest_at_ms) = (known.runs, known.newest_at_ms);
        let is_same = |cached: &&CellTrend| {
            (cached.runs, cached.newest_at_ms) == (runs, newest_at_ms) && cached.annotated == annotated
        };
        if let Some(cached) = self.known().trends.get(key).filter(is_same) {
            return Ok(cached.clone());
        }
        let (url, all) = (address(state, &known.cell)?, runs_of(state, &known).await?);
        let work = move || {
            let points = history::points(&all, metric);
            let (spans, changes) = (history::spans(&points), history::changes(&points, metric, &annotated));
            let trend = Arc::new(Trend { cell: known.cell, metric, url, points, spans, changes });
            CellTrend { runs, newest_at_ms, annotated, trend }
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
