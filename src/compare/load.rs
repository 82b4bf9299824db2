//! Loads the runs of a comparison and compares them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use axum::http::Uri;
use axum_extra::extract::Query;
use brewbench_wire::{reports::read::parse_own, series::Packed};
use tokio::task::spawn_blocking;

use crate::{
    app::{
        error::{Error, Result},
        ids::{ExperimentId, RunId, listed},
        state::AppState,
    },
    baselines,
    baselines::{model::Baseline, resolve},
    compare::{
        anonymous,
        cache::{Cache, Key},
        cell::Row,
        chosen::{Chosen, MAX_RUNS, Options},
        comparison_context::ComparisonContext,
        context, notes,
        rendered::Rendered,
        script_metrics::{self, ScriptMetrics},
        store,
        timeseries::RowTimeseries,
        timeseries_charts,
        view::{Comparison, Surface, TimeseriesCharts},
    },
    results::blob,
    runs::model::Run,
    web::series_style::Marks,
};

/// Returns the comparison for a query of `/compare`, without time series.
pub async fn from_query(state: &AppState, query: &str) -> Result<Arc<Rendered>> {
    let key = Key { query: query.to_owned(), with_series: false, place: Surface::Inside };
    cached(state, key).await?.ok_or_else(nothing_named)
}

/// Returns the comparison for a query of `/compare`, with time series.
pub async fn page_from_query(state: &AppState, query: &str) -> Result<Arc<Rendered>> {
    page_if_any(state, query).await?.ok_or_else(nothing_named)
}

/// Like [`page_from_query`]; none if the query names no runs.
pub async fn page_if_any(state: &AppState, query: &str) -> Result<Option<Arc<Rendered>>> {
    cached(state, Key { query: query.to_owned(), with_series: true, place: Surface::Inside }).await
}

/// Returns the comparison for readers without access to the site, with time series and without the names of agents.
pub async fn page_for_outside(state: &AppState, query: &str) -> Result<Arc<Rendered>> {
    let key = Key { query: query.to_owned(), with_series: true, place: Surface::Outside };
    cached(state, key).await?.ok_or_else(nothing_named)
}

async fn cached(state: &AppState, key: Key) -> Result<Option<Arc<Rendered>>> {
    let version = store::version(&state.db.read).await?;
    if let Some(known) = state.memory::<Cache>().get(version, &key) {
        return Ok(Some(known));
    }
    let chosen = read(&key.query)?;
    let ids = chosen_ids(state, &chosen).await?;
    if ids.is_empty() {
        return Ok(None);
    }
    let Loaded { mut comparison, have_ended } = load(state, &chosen, &ids, &key).await?;
    if key.with_series {
        add_timeseries(state, &mut comparison).await?;
    }
    let comparison = Arc::new(Rendered::from(comparison));
    if have_ended {
        state.memory::<Cache>().keep(version, key, Arc::clone(&comparison));
    }
    Ok(Some(comparison))
}

/// Returns the script's own metrics of the runs that count.
pub async fn script_metrics(state: &AppState, comparison: &Comparison) -> Result<ScriptMetrics> {
    let runs = comparison.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
    let mut summaries = BTreeMap::new();
    for run in runs.filter(|run| run.counts()) {
        let Some(body) = crate::runs::store::summary(&state.db.read, &run.id).await? else { continue };
        let body = blob::unpack(&body).map_err(Error::internal)?;
        // One that can't be read any more has no figures either.
        summaries.extend(parse_own(&body).ok().map(|summary| (run.id.clone(), summary)));
    }
    Ok(script_metrics::script_metrics(comparison, &summaries))
}

/// Reads a query of `/compare`.
pub(crate) fn read(query: &str) -> Result<Chosen> {
    let uri: Uri = format!("/compare?{query}").parse().map_err(|fault| Error::Invalid(format!("query: {fault}")))?;
    let Query(chosen) = Query::<Chosen>::try_from_uri(&uri)?;
    Ok(chosen)
}

fn nothing_named() -> Error {
    Error::Invalid("name the runs to compare: ?runs=ID,ID, or experiments= or baselines=".to_owned())
}

/// Returns the ids of all chosen runs. Deleted runs are included, so that the page can name them.
async fn chosen_ids(state: &AppState, chosen: &Chosen) -> Result<Vec<RunId>> {
    // A run may be chosen twice.
    let (mut known, mut all) = (HashSet::new(), Vec::new());
    let mut add = |ids: &mut dyn Iterator<Item = RunId>| {
        all.extend(ids.filter(|id| known.insert(id.clone())));
        within_limit(all.len())
    };
    add(&mut chosen.ids().into_iter())?;
    for experiment in listed::<ExperimentId>(&chosen.experiments) {
        let runs = resolve::of_experiment(state, &experiment).await?;
        if runs.is_empty() {
            return Err(Error::NotFound(format!("experiment with runs {:?}", experiment.as_str())));
        }
        add(&mut runs.into_iter().map(|run| run.id))?;
    }
    for name in listed::<String>(&chosen.baselines) {
        let Baseline { runs, gone, .. } = baselines::api::find(state, &name).await?;
        add(&mut runs.into_iter().chain(gone))?;
    }
    Ok(all)
}

fn within_limit(runs: usize) -> Result<()> {
    if runs > MAX_RUNS {
        return Err(Error::Invalid(format!("{runs} runs were chosen; compare at most {MAX_RUNS} at once")));
    }
    Ok(())
}

struct Loaded {
    comparison: Comparison,
    /// Whether all its runs have ended. Changes of unfinished runs do not change the version of the cache.
    have_ended: bool,
}

/// Reads and compares the runs with these ids. Missing runs are a note, unless all are missing.
async fn load(state: &AppState, chosen: &Chosen, ids: &[RunId], key: &Key) -> Result<Loaded> {
    within_limit(ids.len())?;
    let mut runs = crate::runs::store::by_ids(&state.db.rows, ids).await?;
    if runs.is_empty() {
        let ids: Vec<_> = ids.iter().map(RunId::as_str).collect();
        return Err(Error::NotFound(format!("run {}", ids.join(", "))));
    }
    let missing: Vec<_> = ids.iter().filter(|id| !runs.iter().any(|run| run.id == **id)).cloned().collect();
    let targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let have_ended = runs.iter().all(|run| run.phase.is_final());
    let (mut options, mut known) = (chosen.options()?, context::load(state, &runs).await?);
    options.address = Some(chosen.address(ids));
    if key.with_series && chosen.experiment().is_none() {
        options.by = options.by.of_picked(&runs);
    }
    if key.place == Surface::Outside {
        anonymous::hide_agents(&mut runs, &mut known.history, &mut options);
        anonymous::hide_users(&mut runs, &mut known.accepted);
    }
    let mut comparison = compared(runs, marks, options, known).await?;
    comparison.notes.extend(notes::missing(&missing));
    Ok(Loaded { comparison, have_ended })
}

/// Compares runs in the context of their environments, history and accepted differences.
pub async fn from_runs(state: &AppState, runs: Vec<Run>, marks: Marks, options: Options) -> Result<Comparison> {
    let known = context::load(state, &runs).await?;
    compared(runs, marks, options, known).await
}

async fn compared(runs: Vec<Run>, marks: Marks, options: Options, known: ComparisonContext) -> Result<Comparison> {
    spawn_blocking(move || Comparison::by(runs, &marks, &options, &known)).await.map_err(Error::internal)
}

/// Maximum number of time series that one chart overlays.
pub(crate) const MAX_RECORDED: usize = 60;

/// Adds the time series of one setting: the requested one, or the first that has any.
async fn add_timeseries(state: &AppState, comparison: &mut Comparison) -> Result<()> {
    let setting = comparison.options.setting;
    let counting = |row: &Row| -> Vec<RunId> {
        let each = (MAX_RECORDED / row.compared_cells().count().max(1)).max(1);
        row.compared_cells().flat_map(|cell| cell.counting().take(each)).map(|run| run.id.clone()).collect()
    };
    let requested = setting.and_then(|number| number.checked_sub(1)).filter(|place| *place < comparison.rows.len());
    let places = requested.map_or_else(|| (0..comparison.rows.len()).collect(), |place| vec![place]);
    for place in places {
        let included = counting(&comparison.rows[place]);
        let packed = crate::runs::store::series_of(&state.db.rows, &included).await?;
        if packed.is_empty() && requested.is_none() {
            continue;
        }
        let (subjects, row) = (comparison.subjects.clone(), comparison.rows[place].clone());
        let base = subjects.iter().position(|subject| comparison.baseline.as_deref() == Some(&subject.key));
        let draw = move || {
            let unpacked = |(id, bytes)| Some((id, Packed::from_bytes(bytes).unpack().ok()?));
            let series = RowTimeseries::new(&row, &included, &packed.into_iter().filter_map(unpacked).collect())?;
            Some((timeseries_charts::charts(&subjects, base.unwrap_or_default(), &series), series.missing))
        };
        let drawn = spawn_blocking(draw).await.map_err(Error::internal)?;
        comparison.timeseries = drawn.map(|(charts, missing)| TimeseriesCharts { charts, setting: place, missing });
        return Ok(());
    }
    Ok(())
}
