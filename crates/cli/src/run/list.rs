//! `brewbench run list`

use brewbench::{
    live::status::{Now, RunNow},
    runs::{
        filter::RunQuery,
        model::{Run as RunData, RunPage},
    },
};
use clap::Args;
use reqwest::Method;

use crate::{common::Common, run::which::experiment_id, table};

/// List runs.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    common: Common,
    /// Search target names, experiment names and notes
    #[arg(long)]
    search: Option<String>,
    /// Only runs of this experiment, `last` for the newest
    #[arg(long)]
    experiment: Option<String>,
    /// Only runs of this target
    #[arg(long)]
    target: Option<String>,
    /// Only runs of this target version
    #[arg(long)]
    target_version: Option<String>,
    /// Only runs of targets of this kind: process, container, vm, url or kubernetes
    #[arg(long)]
    kind: Option<String>,
    /// Only runs at this machine size
    #[arg(long)]
    size: Option<String>,
    /// Only runs of this scenario
    #[arg(long)]
    scenario: Option<String>,
    /// Only runs on this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only runs with this load generator, e.g. "k6 1.8.1"
    #[arg(long)]
    engine: Option<String>,
    /// Only runs with this label
    #[arg(long)]
    label: Option<String>,
    /// Only runs submitted by this user; a token is "token NAME"
    #[arg(long)]
    created_by: Option<String>,
    /// Only runs in this phase
    #[arg(long)]
    phase: Option<String>,
    /// Only runs with this verdict: valid, suspect or invalid
    #[arg(long)]
    verdict: Option<String>,
    /// Only runs submitted since this time, e.g. 2026-03-04 or 2026-03-04T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Only runs submitted until this time; a day is included
    #[arg(long)]
    to: Option<String>,
    /// Sort by a metric: `p99` sorts ascending, `-rps` descending
    #[arg(long, allow_hyphen_values = true)]
    sort: Option<String>,
    /// Only runs after this one in the list, given by its full id, for the next page
    #[arg(long)]
    after: Option<String>,
    /// Maximum number of runs
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

impl List {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, search: q, experiment, target, target_version: version, kind, size, scenario, .. } = self;
        let Self { agent, engine, label, created_by, phase, verdict, from, to, sort, after, limit, .. } = self;
        let connection = common.connect()?;
        let experiment = match experiment {
            Some(id) => Some(experiment_id(&connection, &id).await?.to_string()),
            None => None,
        };
        let wanted = RunQuery {
            q,
            target,
            version,
            kind,
            size,
            scenario,
            agent,
            engine,
            label,
            created_by,
            phase,
            verdict,
            experiment,
            from,
            to,
            sort,
            after,
        };
        let request = connection.client.request(Method::GET, "api/v1/runs");
        let request = request.query(&wanted).query(&[("limit", limit)]);
        let list: RunPage = connection.client.json(request).await?;
        let now = if list.runs.iter().all(RunData::has_ended) {
            None
        } else {
            connection.client.get("api/v1/runs/now").await.ok()
        };
        let now: Vec<RunNow> = now.map_or_else(Vec::new, |now: Now| now.running);
        let is_filtered = !wanted.filters().is_empty() || wanted.after.is_some();
        common.print(&list, |list| match list.runs.as_slice() {
            [] if is_filtered => "no matching runs\n".to_owned(),
            runs => table::runs_now(runs, &now),
        })
    }
}
