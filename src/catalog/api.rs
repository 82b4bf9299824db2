//! JSON of targets, machine sizes and scenarios.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::{
    job::MAX_REPLICAS,
    manifest::ManifestFile,
    now_ms,
    scenario::{Content, Scenario, addresses},
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, QueryParams, Result},
        input::Input,
        paging,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Admin, Caller, Read},
        checks::checked_name,
    },
    catalog::{
        self,
        manifest::TargetManifest,
        model::{
            MachineSize, RevisionList, ScenarioInfo, ScenarioList, ScenarioText, ScriptCheck, SizeList, TargetList,
            find_size, parse_size, size_name,
        },
    },
};

/// Default page size of the list of targets, in names.
const NAMES: u32 = 200;

/// Page of the list of targets.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TargetQuery {
    /// Lists names after this one: `next` of the previous page.
    #[serde(default)]
    after: String,
    /// Maximum number of names, each with all its versions: 200 by default, at most 1000.
    limit: Option<u32>,
}

/// List targets that agents have offered.
#[utoipa::path(get, path = "/api/v1/targets", tag = "catalog", params(TargetQuery),
    responses((status = 200, body = TargetList), (status = 422, body = ErrorBody)))]
pub async fn targets(
    _: Read,
    State(state): State<AppState>,
    QueryParams(TargetQuery { after, limit }): QueryParams<TargetQuery>,
) -> Result<Json<TargetList>> {
    let limit = paging::limit(limit, NAMES, 1_000)?;
    let (targets, next) = catalog::store::page(&state.db.read, &after, limit).await?;
    Ok(Json(TargetList { targets, next }))
}

/// Write the manifest of a new target, which belongs in an agent's manifests folder. Nothing is stored.
#[utoipa::path(post, path = "/api/v1/target-manifest", tag = "catalog",
    request_body = ManifestFile,
    responses((status = 200, body = TargetManifest), (status = 422, body = ErrorBody)))]
pub async fn target_manifest(_: Read, Input(file): Input<ManifestFile>) -> Result<Json<TargetManifest>> {
    TargetManifest::write(&file).map(Json).map_err(Error::Invalid)
}

/// List machine sizes.
#[utoipa::path(get, path = "/api/v1/sizes", tag = "catalog", responses((status = 200, body = SizeList)))]
pub async fn sizes(_: Read, State(state): State<AppState>) -> Result<Json<SizeList>> {
    Ok(Json(SizeList { sizes: catalog::store::sizes(&state.db.read).await? }))
}

/// Add a machine size.
#[utoipa::path(post, path = "/api/v1/sizes", tag = "catalog",
    request_body = MachineSize,
    responses((status = 201, body = MachineSize), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add_size(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(size): Input<MachineSize>,
) -> Result<(StatusCode, Json<MachineSize>)> {
    Ok((StatusCode::CREATED, Json(store_size(&state.db, size, &caller).await?)))
}

/// Validates and stores a size. An error starts with the field and a colon.
pub async fn store_size(db: &Db, mut size: MachineSize, by: &Caller) -> Result<MachineSize> {
    size.name = checked_name(&size.name)?.into_string();
    check_size(&size).map_err(Error::Invalid)?;
    let act = by.does(Action::SizeAdded, &size.name);
    let mut transaction = db.write.begin().await?;
    catalog::store::insert_size(&mut transaction, &size, now_ms(), &act).await?;
    transaction.commit().await?;
    Ok(size)
}

/// Finds a size by its name or short form. The short form of an unknown size, such as `2/4GiB`, describes a new one.
pub fn find_or_describe_size(known: &[MachineSize], text: &str) -> Result<MachineSize> {
    if let Some(size) = find_size(known, text) {
        return Ok(size.clone());
    }
    let (vcpus, memory_bytes, replicas) = parse_size(text).ok_or_else(|| {
        Error::Invalid(format!(
            "sizes: {text:?} does not exist; `brewbench size list` lists the sizes, 2/4GiB adds one"
        ))
    })?;
    let size = MachineSize { name: size_name(vcpus, memory_bytes, replicas), vcpus, memory_bytes, replicas };
    if known.iter().any(|other| other.name == size.name) {
        return Err(Error::Invalid(format!("sizes: {:?} names another size than {text:?}", size.name)));
    }
    check_size(&size).map_err(|fault| Error::Invalid(format!("sizes: {text:?}: {fault}")))?;
    Ok(size)
}

fn check_size(size: &MachineSize) -> std::result::Result<(), String> {
    if !(0.01..=4096.0).contains(&size.vcpus) {
        return Err(format!("vcpus: {} is not between 0.01 and 4096", size.vcpus));
    }
    // Less starts no target; more does not fit SQLite's integers.
    if !(1024 * 1024..=1 << 60).contains(&size.memory_bytes) {
        return Err(format!("memory_bytes: {} is not between 1 MiB and 1 EiB", size.memory_bytes));
    }
    if !(1..=MAX_REPLICAS).contains(&size.replicas) {
        return Err(format!("replicas: {} is not between 1 and {MAX_REPLICAS}", size.replicas));
    }
    Ok(())
}

/// Remove a machine size that no run has used.
#[utoipa::path(delete, path = "/api/v1/sizes/{name}", tag = "catalog", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn delete_size(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    remove_size(&state.db, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a size that no run has used.
pub async fn remove_size(db: &Db, name: &str, by: &Caller) -> Result<()> {
    if catalog::store::delete_size(&db.write, name, &by.does(Action::SizeRemoved, name)).await? {
        return Ok(());
    }
    if catalog::store::sizes(&db.read).await?.iter().any(|size| size.name == name) {
        return Err(in_use(name));
    }
    Err(Error::NotFound(format!("size {name:?}")))
}

/// The error for removing a size that runs have used.
pub(super) fn in_use(name: &str) -> Error {
    Error::Conflict(format!("runs use the size {name:?}: it can be removed once they are deleted"))
}

/// List scenarios, each with its newest revision.
#[utoipa::path(get, path = "/api/v1/scenarios", tag = "catalog", responses((status = 200, body = ScenarioList)))]
pub async fn scenarios(_: Read, State(state): State<AppState>) -> Result<Json<ScenarioList>> {
    Ok(Json(ScenarioList { scenarios: catalog::store::scenarios::scenarios(&state.db.read).await? }))
}

/// A revision of a scenario.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RevisionQuery {
    /// Hash of the revision; the newest by default.
    revision: Option<String>,
}

/// Get a scenario with its files and defaults.
#[utoipa::path(get, path = "/api/v1/scenarios/{name}", tag = "catalog", params(("name" = String, Path), RevisionQuery),
    responses((status = 200, body = ScenarioText), (status = 404, body = ErrorBody)))]
pub async fn scenario(
    _: Read,
    State(state): State<AppState>,
    Path(name): Path<String>,
    QueryParams(RevisionQuery { revision }): QueryParams<RevisionQuery>,
) -> Result<Json<ScenarioText>> {
    let found = match &revision {
        Some(sha256) => catalog::store::scenarios::revision(&state.db.read, &name, sha256).await?,
        None => catalog::store::scenarios::scenario(&state.db.read, &name).await?,
    };
    let missing = || match revision {
        Some(sha256) => Error::NotFound(format!("revision {sha256:?} of scenario {name:?}")),
        None => Error::NotFound(format!("scenario {name:?}")),
    };
    Ok(Json(ScenarioText::of(found.ok_or_else(missing)?)))
}

/// List all revisions of a scenario.
#[utoipa::path(get, path = "/api/v1/scenarios/{name}/revisions", tag = "catalog", params(("name" = String, Path)),
    responses((status = 200, body = RevisionList), (status = 404, body = ErrorBody)))]
pub async fn revisions(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<RevisionList>> {
    let revisions = catalog::store::scenarios::revisions(&state.db.read, &name).await?;
    if revisions.is_empty() {
        return Err(Error::NotFound(format!("scenario {name:?}")));
    }
    Ok(Json(RevisionList { revisions }))
}

/// Validates a scenario without running k6. An error starts with the field and a colon.
pub fn checked_scenario(text: ScenarioText) -> Result<Scenario> {
    let ScenarioText { name, entry, script, mut files, defaults } = text;
    let name = checked_name(&name)?.into_string();
    if let Some(script) = script
        && files.insert(entry.clone(), script.into()).is_some()
    {
        return Err(Error::Invalid(format!("script: {entry:?} is in the files, too")));
    }
    if files.get(&entry).and_then(Content::text).is_some_and(|script| script.trim().is_empty()) {
        return Err(Error::Invalid("script: must not be empty".to_owned()));
    }
    if let Some(fault) = defaults.iter().find_map(|(key, value)| default_fault(key, value)) {
        return Err(Error::Invalid(format!("defaults: {fault}")));
    }
    let scenario = Scenario { name, entry, files, elsewhere: BTreeMap::new(), defaults }.with_usual_name();
    match scenario.fault() {
        Some(fault) => Err(Error::Invalid(fault)),
        None => Ok(scenario),
    }
}

/// Stores a scenario, or another revision of one, with the result of k6's check.
pub async fn store_scenario(
    db: &Db,
    scenario: &Scenario,
    check: Option<&ScriptCheck>,
    by: &Caller,
) -> Result<ScenarioInfo> {
    let name = &scenario.name;
    catalog::store::scenarios::add_scenario(
        &db.write,
        scenario,
        check,
        now_ms(),
        &by.does(Action::ScenarioAdded, name),
    )
    .await?;
    let stored = catalog::store::scenarios::scenarios(&db.read).await?.into_iter().find(|stored| stored.name == *name);
    stored.ok_or_else(|| Error::NotFound(format!("scenario {name:?}")))
}

/// Returns why a default is not accepted; none if it is. That of an origin makes it the target's address.
fn default_fault(key: &str, value: &str) -> Option<String> {
    match addresses::is_origin(key) {
        true if value == addresses::BASE_URL => None,
        true => Some(format!("{key:?} can stand for the target's address only: {key}={}", addresses::BASE_URL)),
        false => parameter_fault(key),
    }
}

/// Returns why a text is no parameter name; none if it is one.
pub fn parameter_fault(name: &str) -> Option<String> {
    let is_word = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let why = match name {
        _ if !is_word => "use letters, digits and _",
        "BASE_URL" => "it is the target's address, which each run sets",
        _ if name.starts_with("K6_") => "k6 reads variables that begin with K6_ as its own options",
        _ => return None,
    };
    Some(format!("{name:?} is not a parameter name: {why}"))
}
