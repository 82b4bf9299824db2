//! `/sizes`: machine sizes, the agents that can provide them, and the form to add one.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{Path, RawForm, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use url::form_urlencoded;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller, Read},
        model::Scope,
    },
    catalog::{
        api::{in_use, store_size},
        model::{MachineSize, parse_memory, size_name},
    },
    fleet::presence::{Connected, Presence},
    placement::offer::size_fault,
    runs::{model::RunSize, store::latest},
    web::{
        address,
        confirm::Confirm,
        format::{self, Figure},
        shell::{Section, Shell},
    },
};

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/sizes.html")]
struct SizesPage {
    shell: Shell,
    lines: Vec<SizeRow>,
    scope: Scope,
    typed: Typed,
    fault: Option<String>,
}

impl SizesPage {
    fn may_manage(&self) -> bool {
        self.scope >= Scope::Admin
    }
}

/// One size.
#[derive(Debug)]
struct SizeRow {
    size: MachineSize,
    /// Connected agents that can provide it.
    givers: Vec<String>,
    /// Why the other connected agents can't.
    lacking: Vec<String>,
    is_used: bool,
}

impl SizeRow {
    fn vcpus(&self) -> f64 {
        self.size.vcpus
    }

    fn memory(&self) -> Figure {
        format::bytes(Some(self.size.memory_bytes as f64))
    }

    fn address(&self) -> String {
        address::segment(&self.size.name)
    }
}

/// Input of the form that adds a size.
#[derive(Debug, Default)]
struct Typed {
    vcpus: String,
    memory: String,
    replicas: String,
    name: String,
}

impl Typed {
    fn read(body: &[u8]) -> Self {
        let mut typed = Self::default();
        for (field, value) in form_urlencoded::parse(body) {
            let value = value.trim().to_owned();
            match field.as_ref() {
                "vcpus" => typed.vcpus = value,
                "memory" => typed.memory = value,
                "replicas" => typed.replicas = value,
                "name" => typed.name = value,
                _ => {}
            }
        }
        typed
    }

    fn size(&self) -> Result<MachineSize> {
        let bad = || Error::Invalid(format!("vCPUs: {:?} is not a number of cores; write 2 or 0.5", self.vcpus));
        let vcpus = self.vcpus.parse::<f64>().ok().filter(|vcpus| vcpus.is_finite()).ok_or_else(bad)?;
        let memory_bytes = parse_memory(&self.memory).map_err(Error::Invalid)?;
        let replicas = if self.replicas.is_empty() { Ok(1) } else { self.replicas.parse() };
        let replicas = replicas
            .map_err(|_| Error::Invalid(format!("Replicas: {:?} is not a whole number; write 3", self.replicas)))?;
        let name = if self.name.is_empty() { size_name(vcpus, memory_bytes, replicas) } else { self.name.clone() };
        Ok(MachineSize { name, vcpus, memory_bytes, replicas })
    }
}

fn line(size: MachineSize, connected: &[(String, Connected)], used: &[String]) -> SizeRow {
    let (mut givers, mut lacking) = (Vec::new(), Vec::new());
    for (name, agent) in connected {
        match size_fault(&RunSize::from(&size), &agent.hello) {
            None => givers.push(name.clone()),
            Some(lack) => lacking.push(format!("{name} {lack}")),
        }
    }
    SizeRow { is_used: used.contains(&size.name), size, givers, lacking }
}

async fn page(
    state: &AppState,
    presence: &Presence,
    caller: &Caller,
    typed: Typed,
    fault: Option<String>,
) -> Result<SizesPage> {
    let (sizes, used) =
        (crate::catalog::store::sizes(&state.db.read).await?, latest::used_sizes(&state.db.read).await?);
    let connected = presence.list();
    Ok(SizesPage {
        shell: Shell::signed_in("Machine sizes", Section::Sizes, &caller.name),
        lines: sizes.into_iter().map(|size| line(size, &connected, &used)).collect(),
        scope: caller.scope,
        typed,
        fault,
    })
}

/// `GET /sizes`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Response> {
    Ok(page(&state, &presence, &caller, Typed::default(), None).await?.into_response())
}

/// `POST /sizes`: adds a size, or shows the form again with the error.
pub async fn add(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let typed = Typed::read(&body);
    let stored = match typed.size() {
        Ok(size) => store_size(&state.db, size, &caller).await,
        Err(fault) => Err(fault),
    };
    match stored {
        Ok(_) => Ok(Redirect::to("/sizes").into_response()),
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_))) => {
            let page = page(&state, &presence, &caller, typed, Some(fault.to_string())).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(other) => Err(other),
    }
}

/// `GET /sizes/{name}/remove`
pub async fn ask_remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let size = crate::catalog::store::sizes(&state.db.read).await?.into_iter().find(|size| size.name == name);
    let size = size.ok_or_else(|| Error::NotFound(format!("size {name:?}")))?;
    if latest::used_sizes(&state.db.read).await?.contains(&size.name) {
        return Err(in_use(&name));
    }
    let action = "Remove this size";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Sizes, &caller.name),
        action,
        what: size.name,
        consequences: vec![
            "It can no longer be selected.".to_owned(),
            "No run has used it, so nothing else changes.".to_owned(),
        ],
        back: "/sizes".to_owned(),
    })
}
