//! Saved views: links above the history, saving and removing. Template: `runs/_views.html`.

use axum::{Form, extract::State, response::Redirect};
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        state::AppState,
    },
    auth::{caller::Submit, model::Scope},
    runs::{
        api::views,
        filter::{RunQuery, address},
        view::{self, SavedView},
    },
    web::{
        confirm::Confirm,
        shell::{Section, Shell},
    },
};

/// The saved views above the history.
#[derive(Debug)]
pub struct Views {
    saved: Vec<SavedView>,
    /// The current query, in canonical form.
    pub now: String,
    scope: Scope,
}

impl Views {
    /// Loads the views for the current query.
    pub async fn read(state: &AppState, query: &RunQuery, column_keys: Option<&str>, scope: Scope) -> Result<Self> {
        Ok(Self::new(crate::runs::store::views::views(&state.db.read).await?, view::write(query, column_keys), scope))
    }

    /// Creates it from saved views and the current query.
    pub fn new(saved: Vec<SavedView>, now: String, scope: Scope) -> Self {
        Self { saved, now, scope }
    }

    /// Returns name, address and whether it is current for each view.
    pub fn links(&self) -> Vec<(&str, String, bool)> {
        let link = |view: &SavedView| format!("/runs?{}", view.query);
        self.saved.iter().map(|view| (view.name.as_str(), link(view), view.query == self.now)).collect()
    }

    /// Whether the history is unfiltered, with default order and columns.
    pub fn is_all(&self) -> bool {
        self.now.is_empty()
    }

    /// The address to remove the current view, if the user may.
    pub fn remove(&self) -> Option<String> {
        let shown = self.saved.iter().find(|view| view.query == self.now).filter(|_| self.scope >= Scope::Submit)?;
        Some(address("/runs/views/remove", &[("name", &shown.name)]))
    }

    /// Whether the current query can be saved.
    pub fn can_be_saved(&self) -> bool {
        self.scope >= Scope::Submit && !self.is_all() && !self.saved.iter().any(|view| view.query == self.now)
    }
}

/// The form to save a view.
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
    QueryParams(Named { name }): QueryParams<Named>,
) -> Result<Confirm> {
    let view = named(&state, &name).await?;
    let action = "Remove this view";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Runs, &caller.name),
        action,
        what: view.name,
        consequences: vec![
            format!("The view, saved by {}, is removed for all users.", view.created_by),
            "Its runs stay.".to_owned(),
        ],
        back: format!("/runs?{}", view.query),
    })
}

/// `POST /runs/views/remove?name=…`
pub async fn remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(Named { name }): QueryParams<Named>,
) -> Result<Redirect> {
    views::remove_named(&state, &caller, &name).await?;
    Ok(Redirect::to("/runs"))
}
