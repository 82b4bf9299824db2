//! Re-judges runs, and shows the rules and limits that a run was judged by.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Read, Submit},
    },
    results::{
        rejudge::{Mode, Rejudged, delta},
        store::verdicts::{self, RejudgeScope},
        verdict::{limits::Limits, model::RULES},
    },
    runs::lookup::found,
    web::format::plural,
};

/// Maximum number of ids in a request.
const MAX_IDS: usize = 1_000;

/// Which runs to re-judge: by ids, of a scenario, or all finished runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RejudgeBody {
    /// Ids of runs, at most 1000.
    #[schema(value_type = Option<Vec<String>>)]
    pub ids: Option<Vec<RunId>>,
    /// Name of a scenario.
    pub scenario: Option<String>,
    /// Only report what would change.
    pub dry_run: bool,
    /// The `next` of the previous delta; 0 for the first.
    pub after: i64,
}

/// Re-judge stored runs by the current rules and limits, one delta per request.
#[utoipa::path(post, path = "/api/v1/runs/rejudge", tag = "runs", request_body = RejudgeBody,
    responses((status = 200, body = Rejudged), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn rejudge(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Input(body): Input<RejudgeBody>,
) -> Result<Json<Rejudged>> {
    let RejudgeBody { ids, scenario, dry_run, after } = &body;
    let which = match (ids, scenario) {
        (Some(_), Some(_)) => return Err(Error::Invalid("ids, scenario: set only one of them".to_owned())),
        (Some(ids), _) if ids.len() > MAX_IDS => {
            return Err(Error::Invalid(format!("ids: at most {MAX_IDS} are allowed")));
        }
        (Some(ids), None) => RejudgeScope::Ids(ids),
        (None, Some(scenario)) => RejudgeScope::Scenario(scenario),
        (None, None) => RejudgeScope::All,
    };
    if let (RejudgeScope::Ids(ids), 0) = (which, *after) {
        for id in ids {
            found(&state, id).await?;
        }
    }
    // One audit entry per command, however many batches it takes.
    let object = match which {
        RejudgeScope::All => "all runs".to_owned(),
        RejudgeScope::Scenario(name) => name.to_owned(),
        RejudgeScope::Ids([id]) => id.to_string(),
        RejudgeScope::Ids(ids) => plural(ids.len(), "run"),
    };
    let act = caller.does(Action::RunsRejudged, &object).with(json!({"rules": RULES, "runs": ids}));
    let mode = if *dry_run { Mode::DryRun } else { Mode::Store(Some(&act).filter(|_| *after == 0)) };
    Ok(Json(delta(&state, which, *after, mode).await?))
}

/// The rules and limits that a run was judged by.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JudgedByBody {
    /// Version of the rules that it was judged by.
    pub rules: i64,
    /// Version of the current rules.
    pub rules_now: u32,
    /// All limits at that time, by name.
    pub limits: Limits,
    /// When it was judged, unix ms.
    pub judged_at_ms: i64,
}

/// Show the rules and limits that a run was judged by.
#[utoipa::path(get, path = "/api/v1/runs/{id}/judgement", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = JudgedByBody), (status = 404, body = ErrorBody)))]
pub async fn judged_by(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<JudgedByBody>> {
    found(&state, &id).await?;
    let by = verdicts::judged_by(&state.db.read, &id).await?;
    let by = by.ok_or_else(|| Error::NotFound(format!("stored judgement of run {:?}", id.as_str())))?;
    Ok(Json(JudgedByBody { rules: by.rules, rules_now: RULES, limits: by.limits, judged_at_ms: by.judged_at_ms }))
}
