//! `/scenarios`: the list and the form to add one; `/scenarios/{name}`: one scenario, its revisions and differences.

use std::collections::BTreeMap;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension, Form,
    extract::{Multipart, Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::{
    messages::ScriptReport,
    scenario::{
        Content, Scenario,
        addresses::{self, Address},
    },
    scenarios, variables,
};
use serde::Deserialize;

use super::upload::Upload;
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    auth::{
        caller::{Caller, Read, Submit},
        model::Scope,
    },
    catalog::{
        model::{Revision, ScenarioInfo, ScenarioText, ScriptCheck},
        pages::revision_diff::{DiffPart, describe, differences},
    },
    fleet::{inspection, presence::Presence},
    results::{
        pages::limits::{self, LimitsPart},
        store::verdicts,
    },
    runs::{filter::Field, pages::row::ListedRun, store::latest},
    web::{
        address, format,
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

/// Bytes of a file that its scenario's page shows.
const PREVIEW: usize = 16 << 10;

/// The list of scenarios.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/scenarios.html")]
struct ScenariosPage {
    shell: Shell,
    lines: Vec<Summary>,
    scope: Scope,
    upload: Upload,
    fault: Option<String>,
}

impl ScenariosPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

/// One line of the list.
#[derive(Debug)]
struct Summary {
    info: ScenarioInfo,
    is_bundled: bool,
}

impl Summary {
    fn address(&self) -> String {
        address::segment(&self.info.name)
    }

    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.info.created_at_ms))
    }

    fn short(&self) -> String {
        short(&self.info.sha256)
    }
}

/// Shortens a hash for display.
fn short(sha256: &str) -> String {
    sha256.chars().take(12).collect()
}

/// A revision in the list of revisions.
#[derive(Debug)]
struct RevisionRow {
    revision: Revision,
    /// Hash of the previous revision, for the link to the differences.
    before: Option<String>,
}

impl RevisionRow {
    fn all(revisions: Vec<Revision>) -> Vec<Self> {
        let mut before: Vec<Option<String>> =
            revisions.iter().skip(1).map(|revision| Some(revision.sha256.clone())).collect();
        before.push(None);
        revisions.into_iter().zip(before).map(|(revision, before)| Self { revision, before }).collect()
    }

    fn short(&self) -> String {
        short(&self.revision.sha256)
    }

    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.revision.created_at_ms))
    }
}

/// A file in the list of files.
struct ListedFile<'a> {
    path: &'a str,
    content: &'a Content,
}

impl ListedFile<'_> {
    fn size(&self) -> String {
        format::bytes(Some(self.content.bytes().len() as f64)).text().to_owned()
    }

    /// The beginning of a text; none if it is not a text.
    fn preview(&self) -> Option<String> {
        let text = self.content.text()?;
        let shown = &text[..text.floor_char_boundary(PREVIEW)];
        Some(if shown.len() < text.len() { format!("{shown}\n…") } else { shown.to_owned() })
    }

    fn description(&self) -> String {
        describe(self.content)
    }
}

/// Result of k6's check, for the page.
struct ShownCheck(ScriptCheck);

impl ShownCheck {
    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.0.at_ms))
    }
}

/// One scenario in one revision.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/scenario.html")]
pub struct ScenarioPage {
    shell: Shell,
    scenario: Scenario,
    sha256: String,
    is_bundled: bool,
    revisions: Vec<RevisionRow>,
    lines: Vec<ListedRun>,
    users: Vec<String>,
    scope: Scope,
    upload: Upload,
    /// Limits of the verdict on its runs.
    pub limits: LimitsPart,
}

impl ScenarioPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    fn address(&self) -> String {
        address::segment(&self.scenario.name)
    }

    /// The files other than the script.
    fn files(&self) -> Vec<ListedFile<'_>> {
        self.scenario.others().map(|(path, content)| ListedFile { path, content }).collect()
    }

    /// Returns the request list of a bundled scenario, which is not among its files.
    fn bundled_list(&self) -> Option<&str> {
        if self.is_bundled { self.scenario.request_list() } else { None }
    }

    /// Result of checking the shown revision.
    fn check(&self) -> Option<ShownCheck> {
        let shown = self.revisions.iter().find(|row| self.is_shown(row))?;
        shown.revision.check.clone().map(ShownCheck)
    }

    /// What k6 has read of the shown revision.
    fn report(&self) -> ScriptReport {
        self.check().map(|check| check.0.report).unwrap_or_default()
    }

    /// What may be the target's address, if runs of the shown revision do not get it.
    fn addresses(&self) -> Option<&[Address]> {
        self.revisions.iter().find(|row| self.is_shown(row))?.revision.addresses.as_deref()
    }

    /// The variables that the script reads, without a default.
    fn unset(&self) -> Vec<String> {
        let read = variables::parameters(&self.scenario).into_iter();
        read.filter(|name| !self.scenario.defaults.contains_key(name)).collect()
    }

    fn is_newest(&self) -> bool {
        self.revisions.first().is_some_and(|newest| self.is_shown(newest))
    }

    fn is_shown(&self, row: &RevisionRow) -> bool {
        row.revision.sha256 == self.sha256
    }
}

/// The differences between two revisions.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/differences.html")]
struct DifferencesPage {
    shell: Shell,
    name: String,
    from: String,
    to: String,
    parts: Vec<DiffPart>,
}

impl DifferencesPage {
    fn address(&self) -> String {
        address::segment(&self.name)
    }

    fn ends(&self) -> [String; 2] {
        [short(&self.from), short(&self.to)]
    }
}

async fn page(state: &AppState, caller: &Caller, upload: Upload, fault: Option<String>) -> Result<ScenariosPage> {
    let bundled: Vec<String> = scenarios::bundled().iter().map(Scenario::sha256).collect();
    let all = crate::catalog::store::scenarios::scenarios(&state.db.read).await?;
    let summary = |info: ScenarioInfo| Summary { is_bundled: bundled.contains(&info.sha256), info };
    Ok(ScenariosPage {
        shell: Shell::signed_in("Scenarios", Section::Scenarios, &caller.name),
        lines: all.into_iter().map(summary).collect(),
        scope: caller.scope,
        upload,
        fault,
    })
}

/// `GET /scenarios`
pub async fn index(Read(caller): Read, State(state): State<AppState>) -> Result<Response> {
    Ok(page(&state, &caller, Upload::default(), None).await?.into_response())
}

/// `POST /scenarios`: adds a scenario or a revision, or shows the form again with the error.
pub async fn add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    _room: UploadPermit,
    form: Multipart,
) -> Result<Response> {
    let upload = Upload::read(form).await?;
    let old = crate::catalog::store::scenarios::scenario(&state.db.read, &upload.name).await?;
    let stored = match upload.text(old) {
        Ok(text) => inspection::add(&state, &presence, text, &caller).await,
        Err(fault) => Err(fault),
    };
    match stored {
        Ok(info) => Ok(Redirect::to(&format!("/scenarios/{}", address::segment(&info.name))).into_response()),
        Err(Error::Invalid(fault)) => {
            let page = page(&state, &caller, upload, Some(fault)).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(other) => Err(other),
    }
}

/// `POST /scenarios/{name}/check`: has an agent's k6 check a revision.
pub async fn check(
    _: Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Form(query): Form<RevisionQuery>,
) -> Result<Redirect> {
    let checked = inspection::check(&state, &presence, &name, query.revision.as_deref()).await?;
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("revision", &checked.sha256).finish();
    Ok(Redirect::to(&format!("/scenarios/{}?{query}", address::segment(&name))))
}

/// `POST /scenarios/{name}/addresses`: stores a revision in which these variables and constants are the target's address.
pub async fn set_addresses(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Form(chosen): Form<Vec<(String, String)>>,
) -> Result<Redirect> {
    let newest = crate::catalog::store::scenarios::scenario(&state.db.read, &name).await?;
    let mut scenario = newest.ok_or_else(|| Error::NotFound(format!("scenario {name:?}")))?;
    let is_chosen = |address: &Address| chosen.iter().any(|(_, name)| *name == address.name);
    let found = addresses::find(&scenario).into_iter().flatten().filter(is_chosen);
    scenario.defaults.extend(found.map(|Address { name, default }| (name, default)));
    let info = inspection::add(&state, &presence, ScenarioText::of(scenario), &caller).await?;
    Ok(Redirect::to(&format!("/scenarios/{}", address::segment(&info.name))))
}

/// A revision of a scenario.
#[derive(Debug, Deserialize)]
pub struct RevisionQuery {
    /// Hash of the revision; the newest by default.
    revision: Option<String>,
}

/// `GET /scenarios/{name}?revision=SHA`
pub async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(name): Path<String>,
    QueryParams(query): QueryParams<RevisionQuery>,
) -> Result<Response> {
    Ok(page_of(&state, &caller, &name, query.revision.as_deref()).await?.into_response())
}

/// Builds the page of a scenario in a revision, by default the newest.
pub async fn page_of(state: &AppState, caller: &Caller, name: &str, revision: Option<&str>) -> Result<ScenarioPage> {
    let pool = &state.db.read;
    let revisions = crate::catalog::store::scenarios::revisions(pool, name).await?;
    let newest = revisions.first().ok_or_else(|| Error::NotFound(format!("scenario {name:?}")))?;
    let sha256 = revision.filter(|sha256| !sha256.is_empty()).unwrap_or(&newest.sha256).to_owned();
    let scenario = load_revision(state, name, &sha256).await?;
    Ok(ScenarioPage {
        shell: Shell::signed_in(name.to_owned(), Section::Scenarios, &caller.name),
        is_bundled: scenarios::is_bundled(&scenario),
        upload: Upload::from_scenario(&scenario),
        lines: crate::fleet::pages::newest_lines(state, Field::Scenario, name).await?,
        users: latest::users_of_scenario(pool, name).await?,
        limits: LimitsPart::new(verdicts::limits(pool, Some(name)).await?),
        revisions: RevisionRow::all(revisions),
        sha256,
        scenario,
        scope: caller.scope,
    })
}

async fn load_revision(state: &AppState, name: &str, sha256: &str) -> Result<Scenario> {
    let found = crate::catalog::store::scenarios::revision(&state.db.read, name, sha256).await?;
    found.ok_or_else(|| Error::NotFound(format!("revision {sha256:?} of scenario {name:?}")))
}

/// The revisions to compare, by hash.
#[derive(Debug, Deserialize)]
pub struct DifferencesQuery {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
}

/// `GET /scenarios/{name}/differences?from=SHA&to=SHA`
pub async fn compare(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(name): Path<String>,
    QueryParams(DifferencesQuery { from, to }): QueryParams<DifferencesQuery>,
) -> Result<Response> {
    let parts = differences(&load_revision(&state, &name, &from).await?, &load_revision(&state, &name, &to).await?);
    let shell = Shell::signed_in(format!("Differences between revisions of {name}"), Section::Scenarios, &caller.name);
    Ok(DifferencesPage { shell, name, from, to, parts }.into_response())
}

/// `POST /scenarios/{name}/limits`: stores the limits, or shows the page again with the error.
pub async fn set_limits(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Form(form): Form<BTreeMap<String, String>>,
) -> Result<Response> {
    match limits::parse(&form) {
        Ok(limits) => {
            crate::results::api::limits::change(&state, &caller, &name, &limits).await?;
            Ok(Redirect::to(&format!("/scenarios/{}#limits", address::segment(&name))).into_response())
        }
        Err(fault) => match page_of(&state, &caller, &name, None).await {
            Ok(mut page) => {
                page.limits = page.limits.with_input(&form, fault);
                Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
            }
            Err(Error::NotFound(_)) => Err(Error::Invalid(fault)),
            Err(other) => Err(other),
        },
    }
}
