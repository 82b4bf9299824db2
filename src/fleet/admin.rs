//! Looking after agents: what each may take, what people call it, another key, and an end. JSON and what the pages do.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::{messages::ServerMessage, now_ms};
use serde_json::json;

use super::api;
use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Admin, Caller},
    },
    fleet::{
        self,
        model::{Agent, NewLabels, NewStanding, Standing},
        presence::Presence,
    },
};

/// More labels nobody reads.
const MOST_LABELS: usize = 20;
/// As long as those of runs.
const LONGEST_LABEL: usize = 40;

/// Say what an agent may take: everything, nothing new, or nothing at all. One that is disabled is cut off at once, and
/// what it did is given up.
#[utoipa::path(put, path = "/api/v1/agents/{name}/standing", tag = "fleet", params(("name" = String, Path)),
    request_body = NewStanding,
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody)))]
pub async fn set_standing(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Input(new): Input<NewStanding>,
) -> Result<Json<Agent>> {
    stand(&state, &presence, &name, new.standing, &caller).await?;
    Ok(Json(found(&state, &presence, &name).await?))
}

/// Says what an agent may take. To say the same twice changes nothing.
pub async fn stand(state: &AppState, presence: &Presence, name: &str, standing: Standing, by: &Caller) -> Result<()> {
    let deed = match standing {
        Standing::Enabled => Deed::AgentEnabled,
        Standing::Drained => Deed::AgentDrained,
        Standing::Disabled => Deed::AgentDisabled,
    };
    if !fleet::store::set_standing(&state.db.write, name, standing, now_ms(), &by.does(deed, name)).await? {
        found(state, presence, name).await?;
    }
    match standing {
        Standing::Disabled => presence.cut(name),
        Standing::Enabled | Standing::Drained => presence.set_standing(name, standing),
    }
    state.events.agents_changed();
    state.work.notify_one();
    Ok(())
}

/// Say what people call an agent.
#[utoipa::path(put, path = "/api/v1/agents/{name}/labels", tag = "fleet", params(("name" = String, Path)),
    request_body = NewLabels,
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set_labels(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Input(new): Input<NewLabels>,
) -> Result<Json<Agent>> {
    label(&state, &presence, &name, new.labels, &caller).await?;
    Ok(Json(found(&state, &presence, &name).await?))
}

/// Labels an agent; in place of those that it had. What waits for agents with a label knows it at once.
pub async fn label(state: &AppState, presence: &Presence, name: &str, labels: Vec<String>, by: &Caller) -> Result<()> {
    let labels = checked_labels(labels)?;
    let act = by.does(Deed::AgentLabelsChanged, name).with(json!({"labels": labels.join(", ")}));
    if !fleet::store::set_labels(&state.db.write, name, &labels, &act).await? {
        return Err(missing(name));
    }
    presence.set_labels(name, &labels);
    state.events.agents_changed();
    state.work.notify_one();
    Ok(())
}

/// Labels in order, each once and fit to be shown.
fn checked_labels(labels: Vec<String>) -> Result<Vec<String>> {
    let mut checked: Vec<String> =
        labels.into_iter().map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()).collect();
    checked.sort_unstable();
    checked.dedup();
    let fits = |label: &String| {
        label.chars().count() <= LONGEST_LABEL && !label.chars().any(|letter| letter.is_control() || letter == ',')
    };
    if checked.len() > MOST_LABELS || !checked.iter().all(fits) {
        return Err(Error::Invalid(format!(
            "labels: at most {MOST_LABELS}, of at most {LONGEST_LABEL} characters each, without commas"
        )));
    }
    Ok(checked)
}

/// Have an agent make itself another key: at once, or when it connects next. The one that it has works until the new one
/// was used.
#[utoipa::path(post, path = "/api/v1/agent-keys/{name}/change", tag = "fleet", params(("name" = String, Path)),
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn ask_key_change(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Json<Agent>> {
    want_another_key(&state, &presence, &name, &caller).await?;
    Ok(Json(found(&state, &presence, &name).await?))
}

/// Asks for another key.
pub async fn want_another_key(state: &AppState, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    let act = by.does(Deed::AgentKeyChangeAsked, name);
    if !fleet::store::ask_key_change(&state.db.write, name, now_ms(), &act).await? {
        found(state, presence, name).await?;
        return Err(Error::Conflict(format!("the agent {name:?} has no key of its own that it could change")));
    }
    presence.send(name, ServerMessage::ChangeKey);
    state.events.agents_changed();
    Ok(())
}

/// Forget an agent: its key ends at once, its name may be given anew, and its runs stay.
#[utoipa::path(delete, path = "/api/v1/agents/{name}", tag = "fleet", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn forget_agent(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    forget(&state, &presence, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets an agent and cuts it off.
pub async fn forget(state: &AppState, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    if !fleet::store::forget(&state.db.write, name, &by.does(Deed::AgentForgotten, name)).await? {
        return Err(missing(name));
    }
    presence.cut(name);
    state.events.agents_changed();
    Ok(())
}

/// The agent of this name, or a 404.
pub async fn found(state: &AppState, presence: &Presence, name: &str) -> Result<Agent> {
    let all = api::all(&state.db, presence).await?;
    all.into_iter().find(|agent| agent.name == name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Error {
    Error::NotFound(format!("agent {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_kept_in_order_each_once_and_without_what_could_not_be_shown() {
        let all = |labels: &[&str]| checked_labels(labels.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(all(&["rack 2", " arm", "", "arm "]).expect("labels"), ["arm", "rack 2"]);
        let long = "l".repeat(41);
        for bad in ["a,b", "a\nb", long.as_str()] {
            assert!(all(&[bad]).expect_err(bad).to_string().starts_with("labels: "));
        }
    }
}
