//! `brewbench run list`

use anyhow::Context;
use brewbench_agent::connection::client::Client;
use clap::Args;
use reqwest::Method;
use url::form_urlencoded;

use crate::{
    cli::{common::Common, table},
    live::status::{Now, RunNow},
    runs::{
        filter::Wanted,
        model::{Run as RunData, RunList},
        view::ViewList,
    },
};

/// `run list`
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    common: Common,
    /// As this saved view has it
    #[arg(long, conflicts_with_all = ["search", "experiment", "target", "target_version", "size", "scenario", "agent",
        "label", "person", "phase", "verdict", "from", "to", "sort"])]
    view: Option<String>,
    /// Text in names of targets and experiments, and in notes
    #[arg(long)]
    search: Option<String>,
    /// Only of this experiment
    #[arg(long)]
    experiment: Option<String>,
    /// Only of this target
    #[arg(long)]
    target: Option<String>,
    /// Only of this version of a target
    #[arg(long)]
    target_version: Option<String>,
    /// Only of this machine size, by its name
    #[arg(long)]
    size: Option<String>,
    /// Only of this scenario
    #[arg(long)]
    scenario: Option<String>,
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only with this load generator: `k6 1.8.1`
    #[arg(long)]
    engine: Option<String>,
    /// Only with this label
    #[arg(long)]
    label: Option<String>,
    /// Only submitted by this person, or by a token: `token NAME`
    #[arg(long)]
    person: Option<String>,
    /// Only in this phase
    #[arg(long)]
    phase: Option<String>,
    /// Only valid, suspect or invalid
    #[arg(long)]
    verdict: Option<String>,
    /// Only submitted since: 2026-03-04 or 2026-03-04T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Only submitted until then; a day counts to its end
    #[arg(long)]
    to: Option<String>,
    /// By a figure: `p99` for the least first, `-rps` for the greatest first
    #[arg(long, allow_hyphen_values = true)]
    sort: Option<String>,
    /// Only what comes after this run, by its full id: the last of the page before
    #[arg(long)]
    before: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

impl List {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, view, search: q, experiment, target, target_version: version, size, scenario, .. } = self;
        let Self { agent, engine, label, person, phase, verdict, from, to, sort, before, limit, .. } = self;
        let wanted = Wanted {
            q,
            target,
            version,
            size,
            scenario,
            agent,
            engine,
            label,
            person,
            phase,
            verdict,
            experiment,
            from,
            to,
            sort,
            before,
        };
        let connection = common.connect()?;
        let kept = match &view {
            Some(name) => view_query(&connection.client, name).await?,
            None => String::new(),
        };
        let kept: Vec<_> = form_urlencoded::parse(kept.as_bytes()).collect();
        let request = connection.client.request(Method::GET, "api/v1/runs");
        let request = request.query(&kept).query(&wanted).query(&[("limit", limit)]);
        let list: RunList = connection.client.json(request).await?;
        let now = if list.runs.iter().all(RunData::has_ended) {
            None
        } else {
            connection.client.get("api/v1/runs/now").await.ok()
        };
        let now: Vec<RunNow> = now.map_or_else(Vec::new, |now: Now| now.running);
        let asks = view.is_some() || !wanted.narrows().is_empty() || wanted.before.is_some();
        common.print(&list, |list| match list.runs.as_slice() {
            [] if asks => "no run matches\n".to_owned(),
            runs => table::runs_now(runs, &now),
        })
    }
}

async fn view_query(client: &Client, name: &str) -> anyhow::Result<String> {
    let list: ViewList = client.get("api/v1/views").await?;
    let view = list.views.into_iter().find(|view| view.name == name);
    Ok(view.with_context(|| format!("there is no view {name:?}; `brewbench view list` shows all"))?.query)
}
