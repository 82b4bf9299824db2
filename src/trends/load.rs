//! Loads the list of trends, and single trends.

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    compare::metric::Metric,
    runs::model::Run,
    trends::{
        bisect, cell,
        cell::{KnownCell, TrendCell},
        history,
        model::{MAX_LISTED, MAX_RUNS, RECENT, Trend, TrendInfo},
    },
    web::address::segment,
};

/// Returns the metrics that have trends.
pub fn metrics() -> impl Iterator<Item = Metric> {
    // Shares are zero in most runs, and a change from zero has no ratio.
    crate::metrics::compared().filter(|metric| !metric.is_share())
}

/// Returns the metric with this name; throughput by default.
pub fn metric_named(name: Option<&str>) -> Result<Metric> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(Metric::Rps) };
    let all = || metrics().map(Metric::key).collect::<Vec<_>>().join(", ");
    metrics()
        .find(|metric| metric.key() == name)
        .ok_or_else(|| Error::Invalid(format!("metric: {name:?} has no trend; use one of {}", all())))
}

/// Lists the cells of a target or of the newest runs, and counts those beyond the limit.
pub(crate) async fn list(state: &AppState, target: Option<&str>) -> Result<(Vec<TrendInfo>, usize)> {
    let mut cells = cell::group(crate::runs::store::cells::cells(&state.db.read, target, RECENT).await?);
    let excluded = cells.len().saturating_sub(MAX_LISTED);
    cells.truncate(MAX_LISTED);
    let mut trends = Vec::with_capacity(cells.len());
    for known in cells {
        let runs = runs_of(state, &known).await?;
        let (mut open, mut new) = (0, 0);
        for metric in [Metric::Rps, Metric::P99Ms] {
            let annotated = crate::trends::store::of_cell(&state.db.read, &known.cell, metric.key()).await?;
            let runs = runs.clone();
            let work = move || history::changes(&history::points(&runs, metric), metric, &annotated);
            let changes = tokio::task::spawn_blocking(work).await.map_err(Error::internal)?;
            open += changes.iter().filter(|change| change.is_open()).count();
            new += changes.iter().filter(|change| change.is_new()).count();
        }
        let spans = history::spans(&history::points(&runs, Metric::Rps));
        trends.push(TrendInfo {
            url: address(state, &known.cell)?,
            runs: known.runs,
            newest_at_ms: known.newest_at_ms,
            rps: spans.last().map(|span| span.median),
            open,
            new,
            cell: known.cell,
        });
    }
    Ok((trends, excluded))
}

/// Returns the trend of a metric of a cell, or a 404.
pub(crate) async fn trend(state: &AppState, target: &str, cell: &str, metric: Metric) -> Result<Trend> {
    let known = find(state, target, cell).await?;
    let runs = runs_of(state, &known).await?;
    let annotated = crate::trends::store::of_cell(&state.db.read, &known.cell, metric.key()).await?;
    let url = format!("{}?metric={}", address(state, &known.cell)?, metric.key());
    let work = move || {
        let points = history::points(&runs, metric);
        let (spans, mut changes) = (history::spans(&points), history::changes(&points, metric, &annotated));
        for change in &mut changes {
            change.bisect = runs.last().and_then(|run| bisect::command(change, metric, run));
        }
        Trend { cell: known.cell, metric, url, points, spans, changes }
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// Returns the cell with this id, or a 404.
pub(crate) async fn find(state: &AppState, target: &str, id: &str) -> Result<KnownCell> {
    let cells = cell::group(crate::runs::store::cells::cells(&state.db.read, Some(target), RECENT).await?);
    let known = cells.into_iter().find(|known| known.cell.id == id);
    known.ok_or_else(|| Error::NotFound(format!("cell {id:?} of {target:?}")))
}

pub(crate) async fn runs_of(state: &AppState, known: &KnownCell) -> Result<Vec<Run>> {
    let limit = i64::try_from(MAX_RUNS).map_err(Error::internal)?;
    let runs = crate::runs::store::cells::in_cells(&state.db.rows, &known.keys, known.agent, limit).await?;
    Ok(if runs.len() < MAX_RUNS { runs } else { history::without_cut_experiment(runs) })
}

pub(crate) fn address(state: &AppState, cell: &TrendCell) -> Result<String> {
    url(state, &cell.target, &cell.id)
}

/// Returns the URL of the trend of a cell.
pub(crate) fn url(state: &AppState, target: &str, cell: &str) -> Result<String> {
    let path = format!("trends/{}/{}", segment(target), segment(cell));
    Ok(state.public_url.join(&path).map_err(Error::internal)?.into())
}
