//! `/targets/new`: writes the manifest of a new target, and shows when an agent offers it. Nothing is stored.

use std::time::Duration;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{RawForm, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use brewbench_agent::wire::target::TargetKind;
use serde::Deserialize;
use tokio::{sync::watch, time::sleep};

use super::pickup::{OfferState, Pickup};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        state::AppState,
    },
    auth::caller::{Caller, Read},
    catalog::manifest::{
        TargetManifest,
        draft::{Checked, Draft},
        fields::{ADVANCED, CHECKS, CONTAINER, Field, IDENTITY, KUBERNETES, REMOTE, START, VM},
    },
    fleet::presence::Presence,
    web::{
        live::{self, Beat, Concerns, Frame, Pace, View},
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
struct NewTargetPage {
    shell: Shell,
    form: Form,
    pickup: Pickup,
    /// Whether there is a target with the name [`HIDDEN`].
    has_hidden: bool,
}

/// The input fields. Its root is `#fields`.
#[derive(Debug, Template)]
#[template(path = "catalog/_new_target_fields.html")]
struct FieldsPart<'a> {
    form: &'a Form,
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

/// The filled-in form.
#[derive(Debug)]
struct Form {
    draft: Draft,
    checked: Checked,
}

impl Form {
    fn of(&self, field: &Field) -> &str {
        self.draft.get(field.name)
    }

    fn fault(&self, field: &Field) -> Option<&str> {
        self.checked.faults.of(field.name)
    }

    /// Whether the advanced fields are shown: one of them is set or has a fault.
    fn is_advanced(&self) -> bool {
        ADVANCED.iter().any(|field| !self.of(field).is_empty() || self.fault(field).is_some())
    }

    /// Returns the groups of fields: CSS class, title, the kind that has them, and fields.
    fn groups() -> [(&'static str, &'static str, Option<TargetKind>, &'static [Field]); 7] {
        [
            ("columns", "Target", None, &IDENTITY),
            ("stack", "Start", Some(TargetKind::Process), &START),
            ("stack", "Container", Some(TargetKind::Container), &CONTAINER),
            ("stack", "Virtual machine", Some(TargetKind::Vm), &VM),
            ("stack", "Server", Some(TargetKind::Url), &REMOTE),
            ("stack", "Pod", Some(TargetKind::Kubernetes), &KUBERNETES),
            ("columns", "Checks", None, &CHECKS),
        ]
    }

    /// Returns the kinds with their descriptions, and whether each is chosen.
    fn kinds(&self) -> [(TargetKind, &'static str, bool); 5] {
        let chosen = self.draft.kind();
        let kind = |kind, text| (kind, text, kind == chosen);
        [
            kind(TargetKind::Process, "A program that the agent starts and stops"),
            kind(TargetKind::Container, "A container that the agent starts and stops"),
            kind(TargetKind::Vm, "A virtual machine that the agent starts and stops"),
            kind(TargetKind::Url, "A server that already runs, reached by its URL"),
            kind(TargetKind::Kubernetes, "A Pod of a Kubernetes cluster"),
        ]
    }

    fn advanced() -> &'static [Field] {
        &ADVANCED
    }

    /// Whether the agent starts a program, such as the launcher of a virtual machine.
    fn is_program(&self) -> bool {
        matches!(self.draft.kind(), TargetKind::Process | TargetKind::Vm)
    }

    /// Whether the agent starts and stops it.
    fn is_started(&self) -> bool {
        self.draft.kind() != TargetKind::Url
    }

    /// Returns the name of the file.
    fn file(&self) -> &str {
        self.checked.manifest.as_ref().map_or("NAME.toml", |manifest| &manifest.file)
    }

    /// Says what is needed before the manifest can be used.
    fn state(&self) -> String {
        match (self.draft.missing(), &self.checked.manifest) {
            (_, Some(_)) => "Complete: an agent can read this manifest.".to_owned(),
            (missing, None) if missing.is_empty() => "Correct the marked fields.".to_owned(),
            (missing, None) => format!("Not complete yet: {}.", missing.join(", ")),
        }
    }
}

/// Which faults are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Not those of required fields that are still empty.
    Typed,
    /// All.
    All,
}

fn evaluate(presence: &Presence, input: &[u8], shown: Shown) -> (Form, Pickup) {
    let draft = Draft::parse(input);
    let checked = draft.check();
    let is_valid = checked.manifest.is_some();
    let pickup = Pickup::new(draft.get("name"), draft.get("version"), is_valid, presence.list());
    let checked = if shown == Shown::Typed { checked.without_missing(&draft) } else { checked };
    (Form { draft, checked }, pickup)
}

async fn page(state: &AppState, caller: &Caller, (form, pickup): (Form, Pickup)) -> Result<NewTargetPage> {
    let shell = Shell::signed_in("Add target", Section::Targets, &caller.name);
    let has_hidden = crate::catalog::store::names::is_known(&state.db.read, HIDDEN).await?;
    Ok(NewTargetPage { shell: shell.explained_in("getting-started/own-target"), form, pickup, has_hidden })
}

/// `GET /targets/new?name=…`: the form, filled in from the query.
pub async fn form(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(query): RawForm,
) -> Result<Response> {
    Ok(page(&state, &caller, evaluate(&presence, &query, Shown::Typed)).await?.into_response())
}

/// `POST /targets/new`: the form with the manifest and all faults. Not a `GET`, because variables may hold secrets.
pub async fn preview(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    Ok(page(&state, &caller, evaluate(&presence, &body, Shown::All)).await?.into_response())
}

/// `POST /targets/new/check`: the parts of the page that depend on the fields.
pub async fn check(_: Read, Extension(presence): Extension<Presence>, RawForm(body): RawForm) -> Result<Html<String>> {
    let (form, pickup) = evaluate(&presence, &body, Shown::Typed);
    let fields = FieldsPart { form: &form }.render().map_err(Error::internal)?;
    let manifest = ManifestPart { form: &form }.render().map_err(Error::internal)?;
    let pickup = PickupPart { pickup: &pickup }.render().map_err(Error::internal)?;
    Ok(Html(fields + &manifest + &pickup))
}

/// `POST /targets/new/manifest`: the manifest as a file, or the form with the faults.
pub async fn download(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let (form, pickup) = evaluate(&presence, &body, Shown::All);
    let Some(TargetManifest { file, toml }) = form.checked.manifest else {
        let page = page(&state, &caller, (form, pickup)).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let kind = (header::CONTENT_TYPE, "application/toml".to_owned());
    // A checked name has no quotes.
    Ok(([kind, (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\""))], toml).into_response())
}

/// The target that a page waits for.
#[derive(Debug, Deserialize)]
pub struct Expected {
    name: String,
    version: String,
}

/// `GET /targets/new/live`: streams which agents offer a target.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    QueryParams(expected): QueryParams<Expected>,
) -> Result<impl IntoResponse> {
    let view = LivePickup { presence, expected, agents: state.events.agents() };
    live::follow(&state, &caller.name, Concerns::Everything, view)
}

struct LivePickup {
    presence: Presence,
    expected: Expected,
    /// Changes when an agent connects, as it does when its targets change.
    agents: watch::Receiver<u64>,
}

impl View for LivePickup {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        if beat == Beat::News {
            sleep(RECONNECT).await;
        }
        self.agents.mark_unchanged();
        let Expected { name, version } = &self.expected;
        let pickup = Pickup::new(name, version, true, self.presence.list());
        Ok(Frame { patches: vec![live::patch(&PickedUpPart { pickup: &pickup })?], pace: Pace::Minute })
    }

    async fn news(&mut self) {
        if self.agents.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_says_what_is_missing_until_it_is_complete() {
        let state = |query: &str| evaluate(&Presence::default(), query.as_bytes(), Shown::Typed).0.state();
        assert_eq!(state(""), "Not complete yet: Name, Command.");
        assert_eq!(state("kind=container"), "Not complete yet: Name, Image.");
        assert_eq!(state("kind=vm"), "Not complete yet: Name, Launcher.");
        assert_eq!(state("kind=vm&vm.disk=shop.qcow2"), "Not complete yet: Name, Port.");
        assert_eq!(state("kind=vm&name=x&vm.kernel=vmlinuz&vm.port=80"), "Complete: an agent can read this manifest.");
        assert_eq!(state("kind=vm&name=x&vm.kernel=vmlinuz&vm.port=many"), "Correct the marked fields.");
        assert_eq!(state("kind=url"), "Not complete yet: Name, Base URL.");
        assert_eq!(state("name=x&command=serve"), "Correct the marked fields.");
        assert_eq!(state("name=x&command=serve+{port}"), "Complete: an agent can read this manifest.");
    }
}
