//! Loads the runs of a comparison and compares them.

use std::{collections::HashSet, sync::Arc};

use axum::http::Uri;
use axum_extra::extract::Query;
use brewbench_agent::wire::series::Packed;
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
        cache::Key,
        cell::Row,
        chosen::{Chosen, MOST_RUNS, Options},
        context,
        made::Made,
        notes, store,
        timeseries::Story,
        timeseries_charts,
        view::{Comparison, Told},
    },
    runs::model::Run,
    web::series_style::Marks,
};

/// The comparison that the query of an address of `/compare` names, wherever else its figures are used.
pub async fn of_query(state: &AppState, query: &str) -> Result<Arc<Made>> {
    cached(state, Key { query: query.to_owned(), with_series: false }).await?.ok_or_else(nothing_named)
}

/// The same as its page shows it, with what happened second by second.
pub async fn page_of_query(state: &AppState, query: &str) -> Result<Arc<Made>> {
    page_if_named(state, query).await?.ok_or_else(nothing_named)
}

/// The same; none where the address names no runs.
pub async fn page_if_named(state: &AppState, query: &str) -> Result<Option<Arc<Made>>> {
    cached(state, Key { query: query.to_owned(), with_series: true }).await
}

async fn cached(state: &AppState, key: Key) -> Result<Option<Arc<Made>>> {
    let version = store::version(&state.db.read).await?;
    if let Some(known) = state.comparisons.get(version, &key) {
        return Ok(Some(known));
    }
    let chosen = read(&key.query)?;
    let ids = named(state, &chosen).await?;
    if ids.is_empty() {
        return Ok(None);
    }
    let Loaded { mut comparison, have_ended } = load(state, &chosen, &ids).await?;
    if key.with_series {
        tell(state, &mut comparison, chosen.setting).await?;
    }
    comparison.keep = chosen.kept(&ids);
    let comparison = Arc::new(Made::from(comparison));
    if have_ended {
        state.comparisons.keep(version, key, Arc::clone(&comparison));
    }
    Ok(Some(comparison))
}

fn read(query: &str) -> Result<Chosen> {
    let uri: Uri = format!("/compare?{query}").parse().map_err(|fault| Error::Invalid(format!("query: {fault}")))?;
    let Query(chosen) = Query::<Chosen>::try_from_uri(&uri)?;
    Ok(chosen)
}

fn nothing_named() -> Error {
    Error::Invalid("name the runs to compare: ?runs=ID,ID, or experiments= or baselines=".to_owned())
}

/// The ids of all chosen runs. Those of a baseline include runs deleted since, so that the page can name them.
async fn named(state: &AppState, chosen: &Chosen) -> Result<Vec<RunId>> {
    let mut all = chosen.ids();
    for experiment in listed::<ExperimentId>(&chosen.experiments) {
        let runs = resolve::of_experiment(state, &experiment).await?;
        if runs.is_empty() {
            return Err(Error::NotFound(format!("experiment with runs {:?}", experiment.as_str())));
        }
        all.extend(runs.into_iter().map(|run| run.id));
    }
    for name in listed::<String>(&chosen.baselines) {
        let Baseline { runs, gone, .. } = baselines::api::found(state, &name).await?;
        all.extend(runs.into_iter().chain(gone));
    }
    // A run may be chosen twice.
    let mut known = HashSet::new();
    all.retain(|id| known.insert(id.clone()));
    Ok(all)
}

struct Loaded {
    comparison: Comparison,
    /// Whether all its runs have ended. Unfinished runs change without a change of the cache's version.
    have_ended: bool,
}

/// Reads the runs with these ids and compares them. Some that are missing are a note, all of them an error.
async fn load(state: &AppState, chosen: &Chosen, ids: &[RunId]) -> Result<Loaded> {
    if ids.len() > MOST_RUNS {
        return Err(Error::Invalid(format!("{} runs were chosen; compare at most {MOST_RUNS} at once", ids.len())));
    }
    let runs = crate::runs::store::by_ids(&state.db.rows, ids).await?;
    if runs.is_empty() {
        let ids: Vec<_> = ids.iter().map(RunId::as_str).collect();
        return Err(Error::NotFound(format!("run {}", ids.join(", "))));
    }
    let missing: Vec<_> = ids.iter().filter(|id| !runs.iter().any(|run| run.id == **id)).cloned().collect();
    let targets: Vec<&str> = runs.iter().map(|run| run.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let have_ended = runs.iter().all(|run| run.phase.is_final());
    let mut comparison = of_runs(state, runs, marks, chosen.options()?).await?;
    comparison.notes.extend(notes::missing(&missing));
    Ok(Loaded { comparison, have_ended })
}

/// Compares runs, with all that is known beside them.
pub async fn of_runs(state: &AppState, runs: Vec<Run>, marks: Marks, options: Options) -> Result<Comparison> {
    let known = context::known(state, &runs).await?;
    spawn_blocking(move || Comparison::by(runs, &marks, &options, &known)).await.map_err(Error::internal)
}

/// The most series that one chart overlays.
pub(crate) const MOST_RECORDED: usize = 60;

/// Adds the time series of one setting: the requested one, or the first that has any.
async fn tell(state: &AppState, comparison: &mut Comparison, setting: Option<usize>) -> Result<()> {
    let counting = |row: &Row| -> Vec<RunId> {
        let each = (MOST_RECORDED / row.rivals().count().max(1)).max(1);
        row.rivals().flat_map(|cell| cell.counting().take(each)).map(|run| run.id.clone()).collect()
    };
    let wished = setting.and_then(|number| number.checked_sub(1)).filter(|place| *place < comparison.rows.len());
    let places = wished.map_or_else(|| (0..comparison.rows.len()).collect(), |place| vec![place]);
    for place in places {
        let looked_at = counting(&comparison.rows[place]);
        let packed = crate::runs::store::series_of(&state.db.rows, &looked_at).await?;
        if packed.is_empty() && wished.is_none() {
            continue;
        }
        let (subjects, row) = (comparison.subjects.clone(), comparison.rows[place].clone());
        let base = subjects.iter().position(|subject| comparison.baseline.as_deref() == Some(&subject.key));
        let draw = move || {
            let unpacked = |(id, bytes)| Some((id, Packed::from_bytes(bytes).unpack().ok()?));
            let story = Story::new(&row, &looked_at, &packed.into_iter().filter_map(unpacked).collect())?;
            Some((timeseries_charts::charts(&subjects, base.unwrap_or_default(), &story), story.missing))
        };
        let drawn = spawn_blocking(draw).await.map_err(Error::internal)?;
        comparison.told = drawn.map(|(charts, missing)| Told { charts, setting: place, missing });
        return Ok(());
    }
    Ok(())
}
