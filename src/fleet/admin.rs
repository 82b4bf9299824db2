//! Manages agents: enable, drain, disable, label, rotate the key, remove. JSON API and actions of the pages.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::{messages::ServerMessage, now_ms};
use serde_json::json;

use super::api;
use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Admin, Caller},
    },
    fleet::{
        self,
        model::{Agent, Availability, NewAvailability, NewLabels},
        presence::Presence,
    },
};

/// The maximum number of labels per agent.
const MAX_LABELS: usize = 20;
/// The maximum length of a label, the same as for runs.
const MAX_LABEL_CHARS: usize = 40;

/// Enable, drain or disable an agent. A disabled agent is disconnected at once, and its run is aborted.
#[utoipa::path(put, path = "/api/v1/agents/{name}/availability", tag = "fleet", params(("name" = String, Path)),
    request_body = NewAvailability,
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody)))]
pub async fn put_availability(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Input(new): Input<NewAvailability>,
) -> Result<Json<Agent>> {
    set_availability(&state, &presence, &name, new.availability, &caller).await?;
    Ok(Json(found(&state, &presence, &name).await?))
}

/// Enables, drains or disables an agent. Repeating it changes nothing.
pub async fn set_availability(
    state: &AppState,
    presence: &Presence,
    name: &str,
    availability: Availability,
    by: &Caller,
) -> Result<()> {
    let action = match availability {
        Availability::Enabled => Action::AgentEnabled,
        Availability::Drained => Action::AgentDrained,
        Availability::Disabled => Action::AgentDisabled,
    };
    if !fleet::store::set_availability(&state.db.write, name, availability, now_ms(), &by.does(action, name)).await? {
        found(state, presence, name).await?;
    }
    match availability {
        Availability::Disabled => presence.disconnect(name),
        Availability::Enabled | Availability::Drained => presence.set_availability(name, availability),
    }
    state.events.agents_changed();
    state.work.notify_one();
    Ok(())
}

/// Set the labels of an agent.
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

/// Replaces the labels of an agent. Runs that wait for a label are placed at once.
pub async fn label(state: &AppState, presence: &Presence, name: &str, labels: Vec<String>, by: &Caller) -> Result<()> {
    let labels = checked_labels(labels)?;
    let act = by.does(Action::AgentLabelsChanged, name).with(json!({"labels": labels.join(", ")}));
    if !fleet::store::set_labels(&state.db.write, name, &labels, &act).await? {
        return Err(missing(name));
    }
    presence.set_labels(name, &labels);
    state.events.agents_changed();
    state.work.notify_one();
    Ok(())
}

/// Trims, sorts, deduplicates and checks labels.
fn checked_labels(labels: Vec<String>) -> Result<Vec<String>> {
    let mut checked: Vec<String> =
        labels.into_iter().map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()).collect();
    checked.sort_unstable();
    checked.dedup();
    let is_valid =
        |label: &String| label.chars().count() <= MAX_LABEL_CHARS && !label.chars().any(|c| c.is_control() || c == ',');
    if checked.len() > MAX_LABELS || !checked.iter().all(is_valid) {
        return Err(Error::Invalid(format!(
            "labels: at most {MAX_LABELS} labels of at most {MAX_LABEL_CHARS} characters, without commas"
        )));
    }
    Ok(checked)
}

/// Rotate the key of an agent, at once or when it next connects. The old key works until the new one is used.
#[utoipa::path(post, path = "/api/v1/agent-keys/{name}/change", tag = "fleet", params(("name" = String, Path)),
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn ask_key_change(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Json<Agent>> {
    request_key_change(&state, &presence, &name, &caller).await?;
    Ok(Json(found(&state, &presence, &name).await?))
}

/// Asks an agent to rotate its key.
pub async fn request_key_change(state: &AppState, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    let act = by.does(Action::AgentKeyChangeAsked, name);
    if !fleet::store::ask_key_change(&state.db.write, name, now_ms(), &act).await? {
        found(state, presence, name).await?;
        return Err(Error::Conflict(format!(
            "the agent {name:?} has no key of its own to rotate; it has not enrolled, or its key is revoked"
        )));
    }
    presence.send(name, ServerMessage::ChangeKey);
    state.events.agents_changed();
    Ok(())
}

/// Remove an agent. Its key ends at once, its name becomes free, and its runs stay.
#[utoipa::path(delete, path = "/api/v1/agents/{name}", tag = "fleet", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn remove_agent(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    remove(&state, &presence, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an agent and disconnects it.
pub async fn remove(state: &AppState, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    if !fleet::store::remove(&state.db.write, name, now_ms(), &by.does(Action::AgentForgotten, name)).await? {
        return Err(missing(name));
    }
    presence.disconnect(name);
    state.events.agents_changed();
    Ok(())
}

/// Returns the agent with this name.
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
    fn labels_are_sorted_unique_and_checked() {
        let all = |labels: &[&str]| checked_labels(labels.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(all(&["rack 2", " arm", "", "arm "]).expect("labels"), ["arm", "rack 2"]);
        let long = "l".repeat(41);
        for bad in ["a,b", "a\nb", long.as_str()] {
            assert!(all(&[bad]).expect_err(bad).to_string().starts_with("labels: "));
        }
    }
}
