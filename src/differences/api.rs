//! JSON of accepted differences.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde_json::json;

use super::model::{AcceptedDifference, DifferenceList, NewDifference};
use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
        checks::checked_line,
    },
    runs::remarks::checked_note,
};

/// Lists the differences in work that users have accepted.
#[utoipa::path(get, path = "/api/v1/differences", tag = "compare", responses((status = 200, body = DifferenceList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<DifferenceList>> {
    Ok(Json(DifferenceList { differences: crate::differences::store::all(&state.db.read).await? }))
}

/// Accepts a difference in the work of two targets, so that comparisons between them name a winner anyway.
#[utoipa::path(post, path = "/api/v1/differences", tag = "compare",
    request_body = NewDifference,
    responses((status = 201, body = AcceptedDifference), (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn accept(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Input(new): Input<NewDifference>,
) -> Result<(StatusCode, Json<AcceptedDifference>)> {
    Ok((StatusCode::CREATED, Json(accept_as(&state, &caller, new).await?)))
}

/// Revokes an accepted difference: comparisons between its targets no longer name a winner.
#[utoipa::path(delete, path = "/api/v1/differences/{id}", tag = "compare", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    revoke_as(&state, &caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the accepted difference with this id, or a 404.
pub async fn find(state: &AppState, id: &str) -> Result<AcceptedDifference> {
    let missing = || Error::NotFound(format!("accepted difference {id:?}"));
    let number: i64 = id.parse().map_err(|_| missing())?;
    crate::differences::store::find(&state.db.read, number).await?.ok_or_else(missing)
}

/// Checks and stores an accepted difference.
pub async fn accept_as(state: &AppState, caller: &Caller, new: NewDifference) -> Result<AcceptedDifference> {
    let new = checked(new)?;
    let act = caller.does(Action::DifferenceAccepted, &new.targets.join(" and "));
    let id = crate::differences::store::accept(&state.db.write, &new, now_ms(), act).await?;
    find(state, &id.to_string()).await
}

/// Revokes an accepted difference.
pub async fn revoke_as(state: &AppState, caller: &Caller, id: &str) -> Result<()> {
    let known = find(state, id).await?;
    let act = caller.does(Action::DifferenceRevoked, &known.targets.join(" and ")).with(json!({"id": known.id}));
    if crate::differences::store::revoke(&state.db.write, known.id, &act).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("accepted difference {id:?}")))
    }
}

/// Checks the name of something that may have been stored before names had to follow rules.
fn checked_stored_name(name: &str) -> Result<String> {
    checked_line(name).map(str::to_owned)
}

fn checked(new: NewDifference) -> Result<NewDifference> {
    let NewDifference { targets: [one, other], scenario, facts, note } = new;
    let [one, other] = [checked_stored_name(&one)?, checked_stored_name(&other)?];
    if facts.is_empty() {
        return Err(Error::Invalid("facts: name at least one fact that may differ".to_owned()));
    }
    let note = checked_note(&note)?
        .ok_or_else(|| Error::Invalid("note: explain why the difference is acceptable".to_owned()))?;
    let scenario = scenario.filter(|name| !name.is_empty());
    let scenario = scenario.as_deref().map(checked_stored_name).transpose()?;
    let targets = if one <= other { [one, other] } else { [other, one] };
    Ok(NewDifference { targets, scenario, facts, note })
}
