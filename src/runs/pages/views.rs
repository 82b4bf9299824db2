//! Saved views: links above the history, saving what is shown, removing with a question. Template: `runs/_views.html`.

use axum::{Form, extract::State, response::Redirect};
use serde::Deserialize;

use crate::{
    app::{
        error::{Asked, Error, Result},
        state::AppState,
    },
    auth::{caller::Submit, model::Scope},
    runs::{
        api::views,
        filter::{Wanted, address},
        view::{self, SavedView},
    },
    web::{
        confirm::Confirm,
        shell::{Section, Shell},
    },
};

/// What stands above the history of views.
#[derive(Debug)]
pub struct Views {
    saved: Vec<SavedView>,
    /// What is shown now, as a view's query.
    pub now: String,
    scope: Scope,
}

impl Views {
    /// For what is wanted now.
    pub async fn read(state: &AppState, wanted: &Wanted, chosen: Option<&str>, scope: Scope) -> Result<Self> {
        Ok(Self::of(crate::runs::store::views::views(&state.db.read).await?, view::query(wanted, chosen), scope))
    }

    /// These, while the history shows this query.
    pub fn of(saved: Vec<SavedView>, now: String, scope: Scope) -> Self {
        Self { saved, now, scope }
    }

    /// Name, address and whether it is shown now, of each.
    pub fn links(&self) -> Vec<(&str, String, bool)> {
        let link = |view: &SavedView| format!("/runs?{}", view.query);
        self.saved.iter().map(|view| (view.name.as_str(), link(view), view.query == self.now)).collect()
    }

    /// Whether all runs are shown as usual.
    pub fn is_all(&self) -> bool {
        self.now.is_empty()
    }

    /// Where the one that is shown can be removed, by who may.
    pub fn remove(&self) -> Option<String> {
        let shown = self.saved.iter().find(|view| view.query == self.now).filter(|_| self.scope >= Scope::Submit)?;
        Some(address("/runs/views/remove", &[("name", &shown.name)]))
    }

    /// Whether what is shown can be saved: it is something, and not saved yet.
    pub fn can_be_saved(&self) -> bool {
        self.scope >= Scope::Submit && !self.is_all() && !self.saved.iter().any(|view| view.query == self.now)
    }
}

/// A view to be saved.
#[derive(Debug, Deserialize)]
pub struct Save {
    name: String,
    query: String,
}

/// `POST /runs/views`
pub async fn save(Submit(caller): Submit, State(state): State<AppState>, Form(save): Form<Save>) -> Result<Redirect> {
    let view = views::save_as(&state, &caller, &save.name, &save.query).await?;
    Ok(Redirect::to(&format!("/runs?{}", view.query)))
}

/// A view by its name.
#[derive(Debug, Deserialize)]
pub struct Named {
    name: String,
}

async fn named(state: &AppState, name: &str) -> Result<SavedView> {
    let found = crate::runs::store::views::views(&state.db.read).await?.into_iter().find(|view| view.name == name);
    found.ok_or_else(|| Error::NotFound(format!("view {name:?}")))
}

/// `GET /runs/views/remove?name=…`
pub async fn ask_remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Asked(Named { name }): Asked<Named>,
) -> Result<Confirm> {
    let view = named(&state, &name).await?;
    let deed = "Remove this view";
    Ok(Confirm {
        shell: Shell::signed_in(deed, Section::Runs, &caller.name),
        deed,
        what: view.name,
        consequences: vec![
            format!("{} saved it; nobody will find it above the history any more.", view.created_by),
            "The runs that it shows stay.".to_owned(),
        ],
        back: format!("/runs?{}", view.query),
    })
}

/// `POST /runs/views/remove?name=…`
pub async fn remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Asked(Named { name }): Asked<Named>,
) -> Result<Redirect> {
    views::remove_named(&state, &caller, &name).await?;
    Ok(Redirect::to("/runs"))
}
