//! Judging runs anew, and what a run was judged by.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Read, Submit},
    },
    results::{
        rejudge::{Deal, Rejudged, portion},
        store::verdicts::{self, Which},
        verdict::{limits::Limits, model::RULES},
    },
    runs::lookup::found,
    web::format::plural,
};

/// More ids than this are refused.
const MOST_IDS: usize = 1_000;

/// Which runs are judged anew: some by their ids, those of a scenario, or all that are finished.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RejudgeBody {
    /// Ids of runs, 1000 at most.
    #[schema(value_type = Option<Vec<String>>)]
    pub ids: Option<Vec<RunId>>,
    /// Name of a scenario.
    pub scenario: Option<String>,
    /// Whether nothing is to be kept: it is only told what would change.
    pub dry_run: bool,
    /// What the portion before told as `next`; 0 for the first.
    pub after: i64,
}

/// Judge runs anew by today's rules and limits, from what is stored of them: one portion at a time.
#[utoipa::path(post, path = "/api/v1/runs/rejudge", tag = "runs", request_body = RejudgeBody,
    responses((status = 200, body = Rejudged), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn rejudge(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Input(body): Input<RejudgeBody>,
) -> Result<Json<Rejudged>> {
    let RejudgeBody { ids, scenario, dry_run, after } = &body;
    let which = match (ids, scenario) {
        (Some(_), Some(_)) => return Err(Error::Invalid("ids, scenario: only one of them".to_owned())),
        (Some(ids), _) if ids.len() > MOST_IDS => return Err(Error::Invalid(format!("ids: at most {MOST_IDS}"))),
        (Some(ids), None) => Which::Ids(ids),
        (None, Some(scenario)) => Which::Scenario(scenario),
        (None, None) => Which::All,
    };
    if let (Which::Ids(ids), 0) = (which, *after) {
        for id in ids {
            found(&state, id).await?;
        }
    }
    // One command is one entry, however many portions it takes.
    let object = match which {
        Which::All => "all runs".to_owned(),
        Which::Scenario(name) => name.to_owned(),
        Which::Ids([id]) => id.to_string(),
        Which::Ids(ids) => plural(ids.len(), "run"),
    };
    let act = caller.does(Deed::RunsRejudged, &object).with(json!({"rules": RULES, "runs": ids}));
    let deal = if *dry_run { Deal::Tell } else { Deal::Keep(Some(&act).filter(|_| *after == 0)) };
    Ok(Json(portion(&state, which, *after, deal).await?))
}

/// What a run was judged by.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JudgedByBody {
    /// Which rules; today's may be others.
    pub rules: i64,
    /// Today's rules.
    pub rules_now: u32,
    /// All limits as they were, by name.
    pub limits: Limits,
    /// When, unix ms.
    pub judged_at_ms: i64,
}

/// The rules and limits that a run was judged by.
#[utoipa::path(get, path = "/api/v1/runs/{id}/judgement", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = JudgedByBody), (status = 404, body = ErrorBody)))]
pub async fn judged_by(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<JudgedByBody>> {
    found(&state, &id).await?;
    let by = verdicts::judged_by(&state.db.read, &id).await?;
    let by =
        by.ok_or_else(|| Error::NotFound(format!("judgement of run {:?} by rules that were kept", id.as_str())))?;
    Ok(Json(JudgedByBody { rules: by.rules, rules_now: RULES, limits: by.limits, judged_at_ms: by.judged_at_ms }))
}
