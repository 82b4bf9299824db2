//! What is done to an agent from its page: what it may take, labels, another key, an end.

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
        model::Standing,
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
    admin::stand(&state, &presence, &name, Standing::Drained, &caller).await?;
    Ok(back(&name))
}

/// `POST /agents/{name}/enable`
pub async fn enable(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::stand(&state, &presence, &name, Standing::Enabled, &caller).await?;
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
    if view.agent.standing == Standing::Disabled {
        return Err(Error::Conflict(format!("{name:?} is disabled already")));
    }
    let consequences = vec![
        "Its connection ends at once, and it is not let in until somebody enables it.".to_owned(),
        "Its key stays good: enabled again, it comes back by itself.".to_owned(),
        "To let it finish what it does, drain it instead.".to_owned(),
    ];
    Ok(question(&caller, "Disable this agent", &view, consequences))
}

/// `POST /agents/{name}/disable`
pub async fn disable(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::stand(&state, &presence, &name, Standing::Disabled, &caller).await?;
    Ok(back(&name))
}

/// `GET /agents/{name}/forget`
pub async fn ask_forget(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let view = found(&state, &presence, &name).await?;
    let consequences = vec![
        "Its connection and its key end at once.".to_owned(),
        "The runs that it has done stay, under its name.".to_owned(),
        "Runs that only it may do wait until there is an agent of this name again.".to_owned(),
    ];
    Ok(question(&caller, "Forget this agent", &view, consequences))
}

/// `POST /agents/{name}/forget`
pub async fn forget(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::forget(&state, &presence, &name, &caller).await?;
    Ok(Redirect::to("/agents"))
}

/// `POST /agents/{name}/labels`: all of them, with commas in between.
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

/// `POST /agents/{name}/change-key`
pub async fn change_key(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    admin::want_another_key(&state, &presence, &name, &caller).await?;
    Ok(back(&name))
}

fn back(name: &str) -> Redirect {
    Redirect::to(&format!("/agents/{}", address::segment(name)))
}

fn question(caller: &Caller, deed: &'static str, view: &View, consequences: Vec<String>) -> Confirm {
    let given_up = view.doing.as_ref().map(|line| progress::describe(&line.run));
    let given_up = given_up.map(|run| format!("What it does now is given up: {run}."));
    Confirm {
        shell: Shell::signed_in(deed, Section::Agents, &caller.name),
        deed,
        what: format!("The agent {}", view.agent.name),
        consequences: consequences.into_iter().chain(given_up).collect(),
        back: format!("/agents/{}", view.address()),
    }
}
