//! `/settings`: configuration of this server, and the theme of its pages for this browser.

use std::time::Duration;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{RawForm, State},
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::CookieJar;

use super::{alerts::AlertsPart, disk::Disk};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{api::users::INVITE_LIFE_MS, caller::Read, model::Scope},
    experiments::submission::MAX_RUNS,
    fleet::{self, presence::Presence},
    maintenance,
    settings::retention::RetentionPart,
    web::{
        form,
        format::{self, Figure},
        shell::{Section, Shell},
        theme::{self, Theme},
    },
};

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "settings/index.html")]
struct SettingsPage {
    shell: Shell,
    themes: Vec<Choice>,
    address: String,
    limits: Vec<(&'static str, String)>,
    versions: Vec<(String, String)>,
    /// None if the folder can't be read.
    disk: Option<Disk>,
    keeping: RetentionPart,
    alerts: AlertsPart,
    /// The data folder, for administrators only.
    folder: Option<String>,
}

/// A theme in the form.
#[derive(Debug)]
struct Choice {
    word: &'static str,
    label: &'static str,
    is_chosen: bool,
}

impl Choice {
    fn new((theme, label): (Theme, &'static str)) -> Self {
        Self { word: theme.as_str(), label, is_chosen: theme == theme::chosen() }
    }
}

const THEMES: [(Theme, &str); 3] = [(Theme::System, "System"), (Theme::Light, "Light"), (Theme::Dark, "Dark")];

fn text(figure: &Figure) -> String {
    figure.text().to_owned()
}

fn seconds(duration: Duration) -> String {
    text(&format::duration(Some(duration.as_secs_f64())))
}

fn limits(state: &AppState) -> Vec<(&'static str, String)> {
    let summary = format::bytes(Some(state.config.max_summary_bytes as f64));
    let days = INVITE_LIFE_MS / (24 * 60 * 60 * 1_000);
    vec![
        ("Maximum summary size", text(&summary)),
        ("Maximum runs per experiment", text(&format::count(u64::try_from(MAX_RUNS).ok()))),
        ("Lease timeout of a run", seconds(state.config.lease)),
        ("Registration links expire after", format!("{days} days")),
    ]
}

async fn versions(state: &AppState, presence: &Presence) -> Result<Vec<(String, String)>> {
    let mut versions = vec![
        ("brewbench".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("SQLite".to_owned(), maintenance::store::sqlite_version(&state.db.read).await?),
    ];
    for agent in fleet::api::all(&state.db, presence).await? {
        if let (None, Some(about)) = (agent.revoked_at_ms, agent.about) {
            versions.push((format!("Load generator on {}", agent.name), about.engine_list()));
        }
    }
    Ok(versions)
}

/// `GET /settings`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Response> {
    let folder = &state.config.data;
    let shown = std::path::absolute(folder).unwrap_or_else(|_| folder.clone()).display().to_string();
    let page = SettingsPage {
        shell: Shell::signed_in("Settings", Section::Settings, &caller.name),
        themes: THEMES.into_iter().map(Choice::new).collect(),
        address: state.public_url.to_string(),
        limits: limits(&state),
        versions: versions(&state, &presence).await?,
        disk: Disk::measure(folder)
            .await
            .inspect_err(|fault| tracing::warn!(%fault, "failed to read the size of the data folder"))
            .ok(),
        keeping: RetentionPart::read(&state, &caller).await?,
        alerts: AlertsPart::read(&state, &caller).await?,
        folder: Some(shown).filter(|_| caller.scope >= Scope::Admin),
    };
    Ok(page.into_response())
}

/// `POST /settings/theme`: sets the theme, which is stored in a cookie of this browser.
pub async fn choose_theme(_: Read, jar: CookieJar, RawForm(body): RawForm) -> Result<(CookieJar, Redirect)> {
    let theme: Theme = form::field(&body, "theme").unwrap_or_default().parse().map_err(Error::Invalid)?;
    Ok((jar.add(theme.cookie()), Redirect::to("/settings")))
}
