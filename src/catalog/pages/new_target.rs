//! `/targets/new`: checks the manifest of a new target, and shows when an agent offers it. Nothing is stored.

use std::time::Duration;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension, Form as Body,
    extract::State,
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use brewbench_wire::target::TargetKind;
use serde::Deserialize;
use tokio::{sync::watch, time::sleep};

use super::pickup::{Expected, OfferState, Pickup};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        state::AppState,
    },
    auth::caller::{Caller, Read},
    catalog::manifest::{Draft, template},
    fleet::presence::Presence,
    web::{
        live::{self, Frame, Pace, Tick, Topic, View},
        shell::{Section, Shell},
    },
};

/// The name of a target whose page has the address of this one.
const HIDDEN: &str = "new";

/// An agent whose targets have changed disconnects and connects within this time, which is shown as one change.
const RECONNECT: Duration = Duration::from_millis(300);

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/new_target.html")]
pub struct NewTargetPage {
    shell: Shell,
    form: Form,
    pickup: Pickup,
    /// Whether there is a target with the name [`HIDDEN`].
    has_hidden: bool,
}

/// The manifest. Its root is `#manifest`.
#[derive(Debug, Template)]
#[template(path = "catalog/_manifest.html")]
struct ManifestPart<'a> {
    form: &'a Form,
}

/// Which agents offer the target. Its root is `#pickup`.
#[derive(Debug, Template)]
#[template(path = "catalog/_pickup.html")]
struct PickupPart<'a> {
    pickup: &'a Pickup,
}

/// The part that live updates replace. Its root is `#picked-up`.
#[derive(Debug, Template)]
#[template(path = "catalog/_picked_up.html")]
struct PickedUpPart<'a> {
    pickup: &'a Pickup,
}

/// The text of the manifest, and the kind of target that it started from.
#[derive(Debug)]
struct Form {
    kind: TargetKind,
    draft: Draft,
}

/// What the page is asked for, and what its form sends.
#[derive(Debug, Deserialize)]
pub struct Sent {
    #[serde(default = "process")]
    kind: TargetKind,
    /// The manifest; the template of the kind if there is none.
    toml: Option<String>,
}

fn process() -> TargetKind {
    TargetKind::Process
}

impl Form {
    /// Returns the kinds with their labels.
    fn kinds() -> [(TargetKind, &'static str); 5] {
        [
            (TargetKind::Process, "Program"),
            (TargetKind::Container, "Container"),
            (TargetKind::Vm, "Virtual machine"),
            (TargetKind::Url, "Running server"),
            (TargetKind::Kubernetes, "Kubernetes Pod"),
        ]
    }

    /// Whether the agent starts a program, such as the launcher of a virtual machine.
    fn is_program(&self) -> bool {
        self.draft.file.as_ref().is_some_and(|file| !file.command.is_empty() || file.vm.is_some())
    }

    /// Whether the agent starts and stops it.
    fn is_started(&self) -> bool {
        self.draft.file.as_ref().is_some_and(|file| file.url.is_none())
    }
}

fn evaluate(presence: &Presence, Sent { kind, toml }: Sent) -> (Form, Pickup) {
    let draft = Draft::new(toml.unwrap_or_else(|| template(kind).to_owned()).replace("\r\n", "\n"));
    let expected = draft.file.as_ref().map(Expected::of).unwrap_or_default();
    let pickup = Pickup::new(expected, draft.valid().is_some(), presence.list());
    (Form { kind, draft }, pickup)
}

async fn page(state: &AppState, caller: &Caller, (form, pickup): (Form, Pickup)) -> Result<NewTargetPage> {
    let shell = Shell::signed_in("Add target", Section::Targets, &caller.name);
    let has_hidden = crate::catalog::store::names::is_known(&state.db.read, HIDDEN).await?;
    Ok(NewTargetPage { shell: shell.explained_in("getting-started/own-target"), form, pickup, has_hidden })
}

/// `GET /targets/new?kind=…`: the template of a kind.
pub async fn form(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    QueryParams(sent): QueryParams<Sent>,
) -> Result<NewTargetPage> {
    page(&state, &caller, evaluate(&presence, sent)).await
}

/// `POST /targets/new`: the manifest with its faults. Not a `GET`, because variables may hold secrets.
pub async fn preview(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Body(sent): Body<Sent>,
) -> Result<NewTargetPage> {
    page(&state, &caller, evaluate(&presence, sent)).await
}

/// `POST /targets/new/check`: the parts of the page that depend on the manifest.
pub async fn check(_: Read, Extension(presence): Extension<Presence>, Body(sent): Body<Sent>) -> Result<Html<String>> {
    let (form, pickup) = evaluate(&presence, sent);
    let manifest = ManifestPart { form: &form }.render().map_err(Error::internal)?;
    let pickup = PickupPart { pickup: &pickup }.render().map_err(Error::internal)?;
    Ok(Html(manifest + &pickup))
}

/// `POST /targets/new/manifest`: the manifest as a file, or the form with the faults.
pub async fn download(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Body(sent): Body<Sent>,
) -> Result<Response> {
    let (form, pickup) = evaluate(&presence, sent);
    if form.draft.valid().is_none() {
        let page = page(&state, &caller, (form, pickup)).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    }
    let kind = (header::CONTENT_TYPE, "application/toml".to_owned());
    // A checked name has no quotes.
    let name = (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", form.draft.file_name()));
    Ok(([kind, name], form.draft.text).into_response())
}

/// `GET /targets/new/live`: streams which agents offer a target.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    QueryParams(expected): QueryParams<Expected>,
) -> Result<impl IntoResponse> {
    let view = LivePickup { presence, expected, agents: state.events.agents() };
    live::follow(&state, &caller.name, Topic::Everything, view)
}

struct LivePickup {
    presence: Presence,
    expected: Expected,
    /// Changes when an agent connects, as it does when its targets change.
    agents: watch::Receiver<u64>,
}

impl View for LivePickup {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        if tick == Tick::News {
            sleep(RECONNECT).await;
        }
        self.agents.mark_unchanged();
        let pickup = Pickup::new(self.expected.clone(), true, self.presence.list());
        Ok(Frame { patches: vec![live::patch(&PickedUpPart { pickup: &pickup })?], pace: Pace::Minute })
    }

    async fn news(&mut self) {
        if self.agents.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
