//! Actions on an agent's page: drain, enable, disable, label, rotate the key, remove.

use axum::{
    Extension,
    extract::{Path, RawForm, State},
    response::Redirect,
};

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::{Admin, Caller},
    fleet::{
        admin,
        model::Availability,
        pages::{View, found},
        presence::Presence,
    },
    runs::progress,
    web::{
        address,
        confirm::Confirm,
        form,
        shell::{Section, Shell},
    },
};

/// `POST /agents/{name}/drain`
pub async fn drain(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::set_availability(&state, &presence, &name, Availability::Drained, &caller).await?;
    Ok(back(&name))
}

/// `POST /agents/{name}/enable`
pub async fn enable(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::set_availability(&state, &presence, &name, Availability::Enabled, &caller).await?;
    Ok(back(&name))
}

/// `GET /agents/{name}/disable`
pub async fn ask_disable(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let view = found(&state, &presence, &name).await?;
    if view.agent.availability == Availability::Disabled {
        return Err(Error::Conflict(format!("{name:?} is already disabled")));
    }
    let consequences = vec![
        "Its connection ends at once, and it may not connect until it is enabled.".to_owned(),
        "Its key stays valid: once enabled, it reconnects by itself.".to_owned(),
        "To let it finish its current run, drain it instead.".to_owned(),
    ];
    Ok(confirmation(&caller, "Disable this agent", &view, consequences))
}

/// `POST /agents/{name}/disable`
pub async fn disable(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::set_availability(&state, &presence, &name, Availability::Disabled, &caller).await?;
    Ok(back(&name))
}

/// `GET /agents/{name}/remove`
pub async fn ask_remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let view = found(&state, &presence, &name).await?;
    let consequences = vec![
        "Its connection and its key end at once.".to_owned(),
        "Its runs stay, under its name.".to_owned(),
        "Queued runs that are pinned to it wait until an agent with this name exists again.".to_owned(),
    ];
    Ok(confirmation(&caller, "Remove this agent", &view, consequences))
}

/// `POST /agents/{name}/labels`: all labels, separated by commas.
pub async fn label(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let typed = form::field(&body, "labels").unwrap_or_default();
    admin::label(&state, &presence, &name, typed.split(',').map(str::to_owned).collect(), &caller).await?;
    Ok(back(&name))
}

fn back(name: &str) -> Redirect {
    Redirect::to(&format!("/agents/{}", address::segment(name)))
}

fn confirmation(caller: &Caller, action: &'static str, view: &View, consequences: Vec<String>) -> Confirm {
    let aborted = view.doing.as_ref().map(|line| progress::describe(&line.run));
    let aborted = aborted.map(|run| format!("Its current run is aborted: {run}."));
    Confirm {
        shell: Shell::signed_in(action, Section::Agents, &caller.name),
        action,
        what: format!("Agent {}", view.agent.name),
        consequences: consequences.into_iter().chain(aborted).collect(),
        back: format!("/agents/{}", view.address()),
    }
}
