//! JSON of profiles, and profiles as files.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use tokio::task::spawn_blocking;

use super::{
    analysis::{self, Compared},
    confounders::confounders,
    graph::Graph,
    load::{self, ProfiledRuns},
    model::{CompareQuery, FUNCTIONS, Overhead, ProfileComparison, ProfileQuery, ProfileTable},
    overhead::overhead,
    program::unify,
    store,
};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
};

/// Start of the error if more than the target differs.
pub const NOT_COMPARED: &str = "not compared: ";

/// Media type of a compressed pprof file.
const GZIP: HeaderValue = HeaderValue::from_static("application/gzip");

/// Returns the profile of a cell: the mean over profiled runs.
#[utoipa::path(get, path = "/api/v1/profiles", tag = "profiles", params(ProfileQuery),
    responses((status = 200, body = ProfileTable), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn show(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ProfileQuery>,
) -> Result<Json<ProfileTable>> {
    Ok(Json(table(&state, &query).await?))
}

/// Returns the functions whose CPU time per request differs between two cells.
#[utoipa::path(get, path = "/api/v1/profiles/compare", tag = "profiles", params(CompareQuery),
    responses((status = 200, body = ProfileComparison), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "more than the target differs"),
        (status = 422, body = ErrorBody)))]
pub async fn compare(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<CompareQuery>,
) -> Result<Json<ProfileComparison>> {
    Ok(Json(comparison(&state, &query).await?))
}

/// Returns the flame graph of a cell as compact arrays in preorder.
#[utoipa::path(get, path = "/api/v1/profiles/graph", tag = "profiles", params(ProfileQuery),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn graph(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ProfileQuery>,
) -> Result<Json<Graph>> {
    let kind = load::kind(query.kind.as_deref())?;
    let side = load::side(&state, "runs", &query.runs, kind).await?;
    let graph = spawn_blocking(move || analysis::graph(&side, kind)).await.map_err(Error::internal)?;
    Ok(Json(graph))
}

/// Returns the flame graph of two cells as compact arrays in preorder.
#[utoipa::path(get, path = "/api/v1/profiles/compare/graph", tag = "profiles", params(CompareQuery),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn compare_graph(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<CompareQuery>,
) -> Result<Json<Graph>> {
    let kind = load::kind(query.kind.as_deref())?;
    let [baseline, candidate] = sides(&state, &query).await?;
    let graph = move || Compared::new(&baseline, &candidate, kind).graph();
    Ok(Json(spawn_blocking(graph).await.map_err(Error::internal)?))
}

/// Returns the profile of a run as a file that `go tool pprof`, speedscope, Parca and Pyroscope open.
#[utoipa::path(get, path = "/api/v1/runs/{id}/profile", tag = "profiles",
    params(("id" = String, Path), ("kind" = Option<String>, Query, description = "`cpu`, `heap` or `allocs`")),
    responses((status = 200, content_type = "application/gzip", body = Vec<u8>), (status = 404, body = ErrorBody)))]
pub async fn download(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(query): QueryParams<KindQuery>,
) -> Result<Response> {
    let kind = load::kind(query.kind.as_deref())?;
    let stored = store::of_runs(&state.db.read, std::slice::from_ref(&id)).await?;
    let body = stored.into_iter().find(|one| one.kind == kind).and_then(|one| one.body);
    let body = body.ok_or_else(|| Error::NotFound(format!("{kind} profile of run {id}")))?;
    let name = format!("attachment; filename=\"brewbench-{id}-{kind}.pb.gz\"");
    let name = HeaderValue::from_str(&name).map_err(|_| Error::NotFound(format!("run {id}")))?;
    Ok(([(header::CONTENT_TYPE, GZIP), (header::CONTENT_DISPOSITION, name)], body).into_response())
}

/// The kind of a downloaded profile.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindQuery {
    kind: Option<String>,
}

/// Returns the table for a query.
pub async fn table(state: &AppState, query: &ProfileQuery) -> Result<ProfileTable> {
    let kind = load::kind(query.kind.as_deref())?;
    let side = load::side(state, "runs", &query.runs, kind).await?;
    let (overhead, limit) = (overhead_of(state, &side).await?, query.limit.unwrap_or(FUNCTIONS));
    spawn_blocking(move || analysis::table(&side, kind, overhead, limit)).await.map_err(Error::internal)
}

/// Returns the comparison for a query.
pub async fn comparison(state: &AppState, query: &CompareQuery) -> Result<ProfileComparison> {
    let kind = load::kind(query.kind.as_deref())?;
    let [baseline, candidate] = sides(state, query).await?;
    let overhead = [overhead_of(state, &baseline).await?, overhead_of(state, &candidate).await?];
    let limit = query.limit.unwrap_or(FUNCTIONS);
    let compare = move || Compared::new(&baseline, &candidate, kind).comparison(overhead, limit);
    spawn_blocking(compare).await.map_err(Error::internal)
}

/// Loads both sides. Fails if more than the target differs, unless the query allows it.
async fn sides(state: &AppState, query: &CompareQuery) -> Result<[ProfiledRuns; 2]> {
    let kind = load::kind(query.kind.as_deref())?;
    let baseline = load::side(state, "baseline", &query.baseline, kind).await?;
    let mut candidate = load::side(state, "candidate", &query.candidate, kind).await?;
    if let Some(both) = baseline.runs.iter().find(|run| candidate.runs.iter().any(|other| other.id == run.id)) {
        return Err(Error::Invalid(format!("candidate: run {} is also in the baseline", both.id)));
    }
    let differing = confounders(baseline.measured_by(), candidate.measured_by());
    if !differing.is_empty() && !query.allow_confounders {
        let sentence = differing.join(". ");
        return Err(Error::Conflict(format!("{NOT_COMPARED}{sentence}; allow_confounders compares anyway")));
    }
    unify(&baseline.stacks, &mut candidate.stacks);
    Ok([baseline, candidate])
}

async fn overhead_of(state: &AppState, side: &ProfiledRuns) -> Result<Vec<Overhead>> {
    let repetitions = crate::runs::store::repetitions(&state.db.rows, side.first()).await?;
    Ok(overhead(&side.runs, &repetitions))
}
