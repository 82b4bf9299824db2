//! The pages of agents: `/agents` and `/agents/{name}`.

pub mod actions;

use std::sync::Arc;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{Path, RawForm, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use url::form_urlencoded;

use crate::{
    app::{
        alert_cache::ActiveAlert,
        error::{Error, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller, Read},
        model::Scope,
        proven::Proven,
        users::CreatedSecret,
    },
    catalog::model::size_name,
    fleet::{
        self,
        api::create_key,
        model::{About, Agent, Availability, ClusterGenerators},
        presence::Presence,
    },
    runs::{self, pages::row::ListedRun, store::latest},
    web::{
        address,
        badge::{self, Badge},
        confirm::Confirm,
        form,
        format::{self, Figure},
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

/// Number of recent runs on an agent's page.
const LAST_RUNS: i64 = 10;

/// The clock offset above which the page warns, ms.
const CLOCK_TOLERANCE_MS: i64 = 2_000;

/// The list of agents.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "fleet/agents.html")]
struct AgentsPage {
    shell: Shell,
    /// Active alerts.
    active_alerts: Arc<[ActiveAlert]>,
    agents: Vec<View>,
    /// Filter: only agents with this label.
    label: Option<String>,
    scope: Scope,
    /// URL of the server.
    server: String,
    made: Option<NewKey>,
    typed: String,
    fault: Option<String>,
}

/// A key that was just created; its `Debug` output omits the secret.
struct NewKey(CreatedSecret);

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NewKey").field(&self.0.name).finish()
    }
}

impl AgentsPage {
    fn may_manage(&self) -> bool {
        self.scope >= Scope::Admin
    }
}

/// The page of one agent.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "fleet/agent.html")]
struct AgentPage {
    shell: Shell,
    view: View,
    targets: Vec<(String, String)>,
    lines: Vec<ListedRun>,
    scope: Scope,
}

impl AgentPage {
    fn may_manage(&self) -> bool {
        self.scope >= Scope::Admin
    }

    fn may_revoke(&self) -> bool {
        self.may_manage() && self.view.agent.revoked_at_ms.is_none()
    }

    /// Returns whether it has its own key and no pending rotation.
    fn may_change_key(&self) -> bool {
        let Agent { one_time_key_expires_at_ms, rotation_requested_at_ms, .. } = &self.view.agent;
        self.may_revoke() && one_time_key_expires_at_ms.is_none() && rotation_requested_at_ms.is_none()
    }

    fn takes_runs(&self) -> bool {
        self.view.agent.availability == Availability::Enabled
    }

    fn is_disabled(&self) -> bool {
        self.view.agent.availability == Availability::Disabled
    }
}

/// An agent with its current run.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) agent: Agent,
    /// Its current run.
    pub(crate) doing: Option<ListedRun>,
}

impl View {
    fn state(&self) -> Badge {
        badge::state(self.agent.state())
    }

    /// Returns the time that goes with `since_word`.
    fn since(&self) -> RelativeTime {
        let Agent { revoked_at_ms, availability, availability_at_ms, last_seen_at_ms, created_at_ms, .. } = &self.agent;
        let disabled_at_ms = availability_at_ms.filter(|_| *availability == Availability::Disabled);
        time_ago::ago(revoked_at_ms.or(disabled_at_ms).or(*last_seen_at_ms).or(Some(*created_at_ms)))
    }

    fn since_word(&self) -> &'static str {
        match self.agent.state() {
            "connected" | "drained" => "connected",
            "disabled" => "disabled",
            "away" => "last seen",
            "revoked" => "revoked",
            _ => "key created",
        }
    }

    /// Describes why it gets no runs, if it is drained or disabled, or takes none.
    fn held_back(&self) -> Option<String> {
        let by = self.agent.availability_by.as_deref().map_or(String::new(), |by| format!(" by {by}"));
        match self.agent.availability {
            Availability::Enabled => self.agent.fault.as_ref().map(|fault| format!("It takes no runs: {fault}.")),
            Availability::Drained if self.doing.is_some() => {
                Some(format!("Drained{by}: it finishes its current run and gets no more."))
            }
            Availability::Drained => Some(format!("Drained{by}: it gets no runs.")),
            Availability::Disabled => Some(format!("Disabled{by}: it may not connect.")),
        }
    }

    /// Returns its labels, each with the URL of the list of agents that have it.
    fn labelled(&self) -> Vec<(&str, String)> {
        let address = |label: &str| {
            let query = form_urlencoded::Serializer::new(String::new()).append_pair("label", label).finish();
            format!("/agents?{query}")
        };
        self.agent.labels.iter().map(|label| (label.as_str(), address(label))).collect()
    }

    /// Returns its labels as the form shows them.
    fn labels(&self) -> String {
        self.agent.labels.join(", ")
    }

    /// Describes the state of its key.
    fn key(&self) -> String {
        let Agent { revoked_at_ms, one_time_key_expires_at_ms, key_at_ms, rotation_requested_at_ms, .. } = &self.agent;
        match (revoked_at_ms, one_time_key_expires_at_ms, rotation_requested_at_ms) {
            (Some(_), ..) => "revoked".to_owned(),
            (_, Some(until), _) => format!("one-time key, expires {}", time_ago::exact(Some(*until))),
            (.., Some(_)) if self.agent.connected => "rotation in progress".to_owned(),
            (.., Some(_)) => "will be rotated when it next connects".to_owned(),
            _ => key_at_ms.map_or("active".to_owned(), |at| format!("active since {}", time_ago::exact(Some(at)))),
        }
    }

    pub(crate) fn address(&self) -> String {
        address::segment(&self.agent.name)
    }

    fn about(&self) -> Option<&About> {
        self.agent.about.as_ref()
    }

    /// Describes the load generators that it may start in its cluster, if any.
    fn cluster_generators(&self) -> Option<String> {
        let ClusterGenerators { most, vcpus, memory_bytes } = self.about()?.cluster_generators?;
        let generators = format::plural(most as usize, "Pod");
        Some(format!("up to {generators} of its cluster, {} each", size_name(vcpus, memory_bytes, 1)))
    }

    fn memory(&self) -> Figure {
        format::bytes(self.about().map(|about| about.memory_bytes as f64))
    }

    /// Describes how it enforces machine sizes.
    fn enforces(&self) -> String {
        match self.about() {
            None => "–".to_owned(),
            Some(About { cpu, memory, .. }) if cpu == memory && cpu == "none" => "nothing".to_owned(),
            Some(About { cpu, memory, .. }) if cpu == memory => format!("CPU and memory by {cpu}"),
            Some(About { cpu, memory, .. }) if cpu == "none" => format!("memory by {memory}, not CPU"),
            Some(About { cpu, memory, .. }) if memory == "none" => format!("CPU by {cpu}, not memory"),
            Some(About { cpu, memory, .. }) => format!("CPU by {cpu}, memory by {memory}"),
        }
    }

    /// Returns warnings about the agent and its measurements.
    fn doubts(&self) -> Vec<String> {
        let Some(about) = self.about() else { return Vec::new() };
        let mut doubts: Vec<String> = about
            .engines
            .iter()
            .filter_map(|engine| engine.fault.as_ref())
            .map(|fault| format!("It may not connect: {fault}."))
            .collect();
        if about.cpu == "none" || about.memory == "none" {
            doubts.push("It can't enforce machine sizes. Run it as root or in a delegated control group.".to_owned());
        }
        if about.clock_offset_ms.abs() > CLOCK_TOLERANCE_MS {
            let seconds = format::duration(Some(about.clock_offset_ms.abs() as f64 / 1_000.0));
            let way = if about.clock_offset_ms > 0 { "ahead of" } else { "behind" };
            doubts.push(format!("Its clock was {} {way} the server’s when it connected.", seconds.text()));
        }
        doubts
    }
}

async fn views(state: &AppState, presence: &Presence) -> Result<Vec<View>> {
    let agents = fleet::api::all(&state.db, presence).await?;
    let busy: Vec<(String, RunId)> = presence.working().into_iter().map(|(name, run)| (name, run.into())).collect();
    let ids: Vec<_> = busy.iter().map(|(_, run)| run.clone()).collect();
    let lines = lines(state, &ids).await?;
    let doing = |agent: &Agent| {
        let (_, run) = busy.iter().find(|(name, _)| *name == agent.name)?;
        lines.iter().find(|line| line.run.id == *run).cloned()
    };
    Ok(agents.into_iter().map(|agent| View { doing: doing(&agent), agent }).collect())
}

/// Returns table rows of these runs, newest first.
pub(crate) async fn lines(state: &AppState, ids: &[RunId]) -> Result<Vec<ListedRun>> {
    let runs = crate::runs::store::by_ids(&state.db.rows, ids).await?;
    let targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    Ok(runs.into_iter().rev().map(|run| ListedRun::new(run, &marks)).collect())
}

async fn page(state: &AppState, presence: &Presence, caller: &Caller, label: Option<String>) -> Result<AgentsPage> {
    let mut agents = views(state, presence).await?;
    agents.retain(|view| label.as_ref().is_none_or(|label| view.agent.labels.contains(label)));
    Ok(AgentsPage {
        shell: Shell::signed_in("Agents", Section::Agents, &caller.name),
        active_alerts: state.active_alerts.now(),
        agents,
        label,
        scope: caller.scope,
        server: state.public_url.to_string(),
        made: None,
        typed: String::new(),
        fault: None,
    })
}

/// Query parameters of `/agents`.
#[derive(Debug, Deserialize)]
pub struct AgentsQuery {
    /// Only agents with this label.
    label: Option<String>,
}

/// `GET /agents`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    QueryParams(AgentsQuery { label }): QueryParams<AgentsQuery>,
) -> Result<Response> {
    let label = label.filter(|label| !label.is_empty());
    Ok(page(&state, &presence, &caller, label).await?.into_response())
}

/// `POST /agents`: creates the key of a new agent. Only this response shows it.
pub async fn add(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let typed = form::field(&body, "name").unwrap_or_default();
    match create_key(&state.db, &typed, &admin.by()).await {
        Ok(key) => {
            let page = page(&state, &presence, &admin.0, None).await?;
            Ok((StatusCode::CREATED, AgentsPage { made: Some(NewKey(key)), ..page }).into_response())
        }
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_))) => {
            let page = page(&state, &presence, &admin.0, None).await?;
            let page = AgentsPage { typed, fault: Some(fault.to_string()), ..page };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(other) => Err(other),
    }
}

/// `GET /agents/{name}`
pub async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Response> {
    let view = found(&state, &presence, &name).await?;
    let ids = latest::runs_of_agent(&state.db.read, &name, LAST_RUNS).await?;
    let targets = view.about().map(|about| about.targets.clone()).unwrap_or_default();
    let page = AgentPage {
        shell: Shell::signed_in(name, Section::Agents, &caller.name),
        targets: targets.into_iter().map(|target| (address::segment(&target), target)).collect(),
        lines: lines(&state, &ids).await?,
        view,
        scope: caller.scope,
    };
    Ok(page.into_response())
}

/// Returns the agent with this name and its current run.
pub(crate) async fn found(state: &AppState, presence: &Presence, name: &str) -> Result<View> {
    let mut all = views(state, presence).await?.into_iter();
    all.find(|view| view.agent.name == name).ok_or_else(|| Error::NotFound(format!("agent {name:?}")))
}

/// `GET /agents/{name}/revoke`
pub async fn ask_revoke(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let view = found(&state, &presence, &name).await?;
    if view.agent.revoked_at_ms.is_some() {
        return Err(Error::Conflict(format!("the key of {name:?} is already revoked")));
    }
    let mut consequences =
        vec!["Its connection ends at once, and its key stops working.".to_owned(), "Its runs stay.".to_owned()];
    if let Some(line) = &view.doing {
        consequences.push(format!("Its current run is aborted: {}.", runs::progress::describe(&line.run)));
    }
    let action = "Revoke this key";
    let shell = Shell::signed_in(action, Section::Agents, &caller.name);
    let back = format!("/agents/{}", view.address());
    Ok(Confirm { shell, action, what: format!("Key of the agent {name}"), consequences, back })
}
