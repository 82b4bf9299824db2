//! JSON of share links.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use url::form_urlencoded;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
        proven::Proven,
        secret,
    },
    compare::load,
    shares::model::{CreatedShare, NewShare, Share, ShareList},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const MAX_LISTED: i64 = 1_000;

/// Lists share links without their secrets, newest first, including expired and revoked ones.
#[utoipa::path(get, path = "/api/v1/shares", tag = "shares", responses((status = 200, body = ShareList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<ShareList>> {
    Ok(Json(ShareList { shares: crate::shares::store::all(&state.db.read, MAX_LISTED).await? }))
}

/// Creates a link to a comparison that needs no login. The link shows only the runs that the comparison has now. Its
/// secret is only in this response.
#[utoipa::path(post, path = "/api/v1/shares", tag = "shares", request_body = NewShare,
    responses((status = 201, body = CreatedShare),
    (status = 404, body = ErrorBody, description = "none of the runs exists"), (status = 422, body = ErrorBody)))]
pub async fn create(
    member: Proven<Submit>,
    State(state): State<AppState>,
    Input(new): Input<NewShare>,
) -> Result<(StatusCode, Json<CreatedShare>)> {
    Ok((StatusCode::CREATED, Json(create_as(&state, &member.by(), &new).await?)))
}

/// Revokes a link permanently. Every member may revoke any link, because that only reduces what is shared.
#[utoipa::path(delete, path = "/api/v1/shares/{id}", tag = "shares", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let share = find(&state, &id).await?;
    revoke_one(&state, &caller, &share).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates and stores a link.
pub async fn create_as(state: &AppState, caller: &Proven<Caller>, new: &NewShare) -> Result<CreatedShare> {
    let query = new.query.trim().trim_start_matches('?');
    let comparison = load::from_query(state, query).await?;
    let (secret, now) = (secret::generate(secret::Kind::Share), now_ms());
    let share = Share {
        id: 0,
        title: comparison.title.clone(),
        runs: comparison.run_ids(),
        query: without_runs(query),
        created_by: caller.name.clone(),
        created_at_ms: now,
        expires_at_ms: new.expires_in_days.map(|days| now + i64::from(days) * DAY_MS),
        revoked_at_ms: None,
    };
    let act = caller.does(Action::ShareMade, &share.title);
    let id =
        crate::shares::store::insert(&state.db.write, &share, &secret::hash(&secret), caller.user_id.as_deref(), act)
            .await?;
    Ok(CreatedShare { id, url: format!("{}shared/{secret}", state.public_url) })
}

/// Removes the parameters that select runs, because experiments and baselines could select others later.
fn without_runs(query: &str) -> String {
    let rest = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| !matches!(name.as_ref(), "runs" | "experiments" | "baselines") && !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish()
}

/// Returns the link with this id, or a 404.
pub async fn find(state: &AppState, id: &str) -> Result<Share> {
    let missing = || Error::NotFound(format!("share link {id:?}"));
    let number: i64 = id.parse().map_err(|_| missing())?;
    crate::shares::store::find(&state.db.read, number).await?.ok_or_else(missing)
}

/// Revokes a link. Fails with a 404 if it was already revoked.
pub async fn revoke_one(state: &AppState, caller: &Caller, share: &Share) -> Result<()> {
    let act = caller.does(Action::ShareRevoked, &share.title).with(serde_json::json!({"id": share.id}));
    if crate::shares::store::revoke(&state.db.write, share.id, now_ms(), &act).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("share link {} that is not revoked", share.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_select_runs_are_removed() {
        let query = "runs=a,b&baseline=x+y&experiments=e&least=rps%3A2&baselines=main&empty=";
        assert_eq!(without_runs(query), "baseline=x+y&least=rps%3A2");
        assert_eq!(without_runs("runs=a"), "");
    }
}
