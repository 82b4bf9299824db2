//! The tools.

use std::{fmt::Display, time::Duration};

use axum::http::Method;
use rmcp::{
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    tool, tool_handler, tool_router,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::{Url, form_urlencoded::Serializer};

use super::answer;
use crate::{
    catalog::model::{ScenarioList, SizeList, TargetList},
    compare::view::Comparison,
    experiments::{
        model::{ExperimentInfo, ExperimentList, ExperimentWithRuns},
        progress::ExperimentState,
    },
    fleet::model::AgentList,
    runs::model::{Run, RunList, RunPage},
    search::model::{Hit, SearchResults},
    web::address::segment,
};

/// The API of a server, with the rights of one caller.
pub trait Api: Send + Sync + 'static {
    /// Sends a request to a path such as `api/v1/runs?limit=2` and returns the JSON of the response. The error is the
    /// server's message.
    fn send(
        &self,
        method: Method,
        path: String,
        body: Option<Value>,
    ) -> impl Future<Output = Result<Value, String>> + Send;

    /// The site's URL, for links to its pages.
    fn site(&self) -> &Url;
}

/// The tools, for one caller.
#[derive(Debug)]
pub struct Tools<A> {
    api: A,
}

/// JSON, or why there is none.
type Answer = Result<String, String>;

/// Writes an answer, without the no-break spaces of pages.
fn written(value: &Value) -> String {
    value.to_string().replace('\u{a0}', " ")
}

/// Time between two looks at a running experiment.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Words {
    /// Words of a name, or the beginning of an id.
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListOfExperiments {
    /// Only experiments with this label.
    label: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// 1 to 200; 20 by default.
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListOfRuns {
    /// Only runs of this experiment, by id.
    experiment: Option<String>,
    /// Only runs of this target, by name.
    target: Option<String>,
    /// Only runs with this verdict: `valid`, `suspect` or `invalid`.
    verdict: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// 1 to 1000; 100 by default.
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneRun {
    /// The id of the run.
    id: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Selection {
    /// Ids of experiments.
    #[serde(default)]
    experiments: Vec<String>,
    /// Ids of runs.
    #[serde(default)]
    runs: Vec<String>,
    /// Names of stored baselines.
    #[serde(default)]
    baselines: Vec<String>,
    /// The target that differences are relative to: `name` or `name@version`. Default: the first by name.
    baseline: Option<String>,
    /// `target` (the default), `size`, `load`, `agent` or `label`.
    by: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewExperiment {
    /// Names of targets; `name@commit` builds that commit.
    targets: Vec<String>,
    /// Names of machine sizes, or the short form `2/4GiB`.
    sizes: Vec<String>,
    /// Name of a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
    /// The load. Default: the scenario's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    /// Runs of each target at each size. An interval needs at least four, a small difference more. Default: 5.
    #[serde(default = "crate::experiments::plan::default_repetitions")]
    repetitions: u32,
    /// A stored baseline by name, or an experiment or a run by id, to measure again beside the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<String>,
    /// Name of the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Load {
    /// Virtual users that send one request after the other.
    Vus { vus: u32, duration_s: f64 },
    /// Requests that start on schedule, whether or not earlier ones have ended.
    Rate { rate: u32, duration_s: f64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// The id of the experiment.
    experiment: String,
    /// How long to wait at most, 0 to 600 seconds; 50 by default. Call again if it has not ended by then.
    seconds: Option<u16>,
}

#[tool_router]
impl<A: Api> Tools<A> {
    /// Creates the tools of a caller.
    pub fn new(api: A) -> Self {
        Self { api }
    }

    #[tool(
        description = "Search targets, experiments, runs, pages and the documentation by name or id.",
        annotations(read_only_hint = true)
    )]
    async fn search(&self, Parameters(Words { query }): Parameters<Words>) -> Answer {
        let found: SearchResults = self.get("api/v1/search", [("q", Some(query))]).await?;
        let hit = |hit: &Hit| json!({"kind": hit.kind, "title": hit.title, "detail": hit.detail, "page": self.page(&hit.url)});
        Ok(written(&found.hits.iter().map(hit).collect()))
    }

    #[tool(
        description = "List what an experiment can be made of: targets with their versions, machine sizes, scenarios, \
            and the agents that would run it.",
        annotations(read_only_hint = true)
    )]
    async fn list_targets(&self) -> Answer {
        let targets: TargetList = self.get("api/v1/targets", [("limit", Some(1000))]).await?;
        let sizes: SizeList = self.get("api/v1/sizes", NO_QUERY).await?;
        let scenarios: ScenarioList = self.get("api/v1/scenarios", NO_QUERY).await?;
        let agents: AgentList = self.get("api/v1/agents", NO_QUERY).await?;
        Ok(written(&answer::catalog(&targets, &sizes, &scenarios, &agents)))
    }

    #[tool(
        description = "List experiments, newest first, each with its state. Results are in `compare`, with their intervals.",
        annotations(read_only_hint = true)
    )]
    async fn list_experiments(&self, Parameters(list): Parameters<ListOfExperiments>) -> Answer {
        let ListOfExperiments { label, after, limit } = list;
        let limit = limit.map(|limit| limit.to_string());
        let query = [("label", label), ("after", after), ("limit", limit)];
        let list: ExperimentList = self.get("api/v1/experiments", query).await?;
        let entry = |info: &ExperimentInfo| {
            json!({"id": info.experiment.id, "name": info.experiment.name, "state": info.progress.state,
                "page": self.page(&info.url)})
        };
        Ok(written(&json!({"experiments": list.experiments.iter().map(entry).collect::<Value>(), "next": list.next})))
    }

    #[tool(
        description = "List runs, newest first, each with its verdict and the reasons for it. Figures are in `compare`, \
            with their intervals.",
        annotations(read_only_hint = true)
    )]
    async fn list_runs(&self, Parameters(list): Parameters<ListOfRuns>) -> Answer {
        let ListOfRuns { experiment, target, verdict, after, limit } = list;
        let limit = limit.map(|limit| limit.to_string());
        let query =
            [("experiment", experiment), ("target", target), ("verdict", verdict), ("after", after), ("limit", limit)];
        let list: RunPage = self.get("api/v1/runs", query).await?;
        let runs = list.runs.iter().map(|run| answer::run(run, &self.page_of(run)));
        Ok(written(&json!({"runs": runs.collect::<Value>(), "next": list.next})))
    }

    #[tool(
        description = "Explain one run: what was measured, its verdict with all reasons, observed values and limits, why \
            it failed, and its figures. One run has no interval: use `compare` before you state a difference.",
        annotations(read_only_hint = true)
    )]
    async fn explain_run(&self, Parameters(OneRun { id }): Parameters<OneRun>) -> Answer {
        let RunList { runs } = self.get(&format!("api/v1/runs/{}", segment(&id)), NO_QUERY).await?;
        let run = runs.first().ok_or("the run was deleted")?;
        Ok(written(&answer::explained(run, &self.page_of(run))))
    }

    #[tool(
        description = "Compare the runs of experiments, single runs or baselines: the result in a sentence, how far to \
            rely on it and why, and each figure with the 95 % interval of its difference. Quote no figure without its \
            interval, and no winner that the result does not name.",
        annotations(read_only_hint = true)
    )]
    async fn compare(&self, Parameters(selection): Parameters<Selection>) -> Answer {
        Ok(written(&self.comparison(selection).await?))
    }

    #[tool(
        description = "Submit an experiment: its runs are queued, and agents measure its targets in turn. Needs a token \
            with the scope `submit`.",
        annotations(read_only_hint = false, destructive_hint = false)
    )]
    async fn submit_experiment(&self, Parameters(plan): Parameters<NewExperiment>) -> Answer {
        let plan = serde_json::to_value(plan).map_err(|fault| fault.to_string())?;
        let stored: ExperimentWithRuns = self.send(Method::POST, "api/v1/experiments".to_owned(), Some(plan)).await?;
        Ok(written(&answer::progress(&stored, &self.page(&stored.url))))
    }

    #[tool(
        description = "Wait until an experiment ends, and return its comparison; if it has not ended in time, its \
            progress.",
        annotations(read_only_hint = true)
    )]
    async fn wait_for_experiment(&self, Parameters(Wait { experiment, seconds }): Parameters<Wait>) -> Answer {
        let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(50).min(600).into());
        let path = format!("api/v1/experiments/{}", segment(&experiment));
        loop {
            let now: ExperimentWithRuns = self.get(&path, NO_QUERY).await?;
            let mut answer = answer::progress(&now, &self.page(&now.url));
            match now.progress.state {
                ExperimentState::InProgress if Instant::now() + LOOK <= end => sleep(LOOK).await,
                ExperimentState::Finished => {
                    let selection = Selection { experiments: vec![experiment], ..Selection::default() };
                    answer["comparison"] = self.comparison(selection).await?;
                    return Ok(written(&answer));
                }
                _ => return Ok(written(&answer)),
            }
        }
    }
}

/// No query parameters.
const NO_QUERY: [(&str, Option<&str>); 0] = [];

impl<A: Api> Tools<A> {
    async fn comparison(&self, selection: Selection) -> Result<Value, String> {
        let Selection { experiments, runs, baselines, baseline, by } = selection;
        let list = |ids: Vec<String>| (!ids.is_empty()).then(|| ids.join(","));
        let query = [
            ("experiments", list(experiments)),
            ("runs", list(runs)),
            ("baselines", list(baselines)),
            ("baseline", baseline),
            ("by", by),
        ];
        let page = self.page(&with_query("/compare", &query));
        let comparison: Comparison = self.get("api/v1/compare", query).await?;
        Ok(answer::comparison(&comparison, &page))
    }

    async fn get<T: DeserializeOwned, V: Display>(
        &self,
        path: &str,
        query: impl IntoIterator<Item = (&'static str, Option<V>)>,
    ) -> Result<T, String> {
        let query: Vec<_> = query.into_iter().collect();
        self.send(Method::GET, with_query(path, &query), None).await
    }

    async fn send<T: DeserializeOwned>(&self, method: Method, path: String, body: Option<Value>) -> Result<T, String> {
        let value = self.api.send(method, path, body).await?;
        serde_json::from_value(value).map_err(|fault| format!("the server sent something else than expected: {fault}"))
    }

    fn page(&self, url: &str) -> String {
        self.api.site().join(url).map_or_else(|_| url.to_owned(), String::from)
    }

    fn page_of(&self, run: &Run) -> String {
        self.page(&format!("/runs/{}", run.id))
    }
}

fn with_query<V: Display>(path: &str, query: &[(&str, Option<V>)]) -> String {
    let mut text = Serializer::new(String::new());
    for (name, value) in query {
        if let Some(value) = value {
            text.append_pair(name, &value.to_string());
        }
    }
    format!("{path}?{}", text.finish()).trim_end_matches('?').to_owned()
}

#[tool_handler(
    name = "brewbench",
    instructions = "Benchmarks of HTTP servers. `compare` decides which target is faster, and says so only if the \
        measurements allow it: quote its sentences and intervals, and do not compute means or winners from runs."
)]
impl<A: Api> rmcp::ServerHandler for Tools<A> {}
