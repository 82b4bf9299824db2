//! `/runs/{id}`: the page of one run.

use std::collections::BTreeSet;

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::{Path, State};
use brewbench_wire::{now_ms, reports::summary::Summary, series::Series, target::TargetKind};

use crate::results::pages::run::checks::{self, CheckGroup, Threshold};
use crate::results::pages::run::headline::{self, Finding};
use crate::results::pages::run::logs::{Logs, LogsQuery};
use crate::results::pages::run::machine;
use crate::results::pages::run::metrics::{self, Metrics};
use crate::results::pages::run::rules::Rules;
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    distributed::{self, pages::Generators, shares::GeneratorList},
    live::feed::{LiveFeed, Rate},
    results::{
        blob,
        environment::facts::{self, Fact, Group},
        evidence::Evidence,
        import::ImportedFile,
        logs::RunLogs,
        pages::run::{phases::PhaseTiming, timeseries::RunCharts},
        series::model::SideCores,
        store::{
            downsampled,
            verdicts::{self, JudgedBy},
        },
    },
    runs::{
        api, lookup,
        model::{Origin, Run},
        pages::row::{ListedRun, RunProgress},
    },
    web::{
        card::Card,
        series_style::Marks,
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};
use crate::{results::pages::run::work, runs::pages::remarks::Remarks};

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/show.html")]
pub struct RunPage {
    shell: Shell,
    view: RunView,
}

/// The page's content, for patches. Its root is `#run`.
#[derive(Debug, Template)]
#[template(path = "runs/_run.html")]
pub(crate) struct RunPart<'a> {
    pub(crate) view: &'a RunView,
}

/// The content of the page.
#[derive(Debug)]
pub struct RunView {
    line: ListedRun,
    remarks: Remarks,
    /// Progress, while the run has not ended.
    pub(crate) progress: Option<RunProgress>,
    cards: Vec<Card>,
    /// What is wrong with it.
    finding: Option<Finding>,
    notes: Vec<String>,
    rules: Option<Rules>,
    /// The generators of a distributed run.
    generators: Option<Generators>,
    charts: RunCharts,
    /// How and when its old series was reduced.
    reduced: Option<(&'static str, RelativeTime)>,
    /// Number of repetitions of its cell.
    repetitions: usize,
    enforced: String,
    phases: Vec<PhaseTiming>,
    figures: Option<SummaryTables>,
    /// Properties of its requests.
    work: Vec<(&'static str, String)>,
    evidence: Option<AgentEvidence>,
    logs: Option<Logs>,
    scope: Scope,
}

/// The contents of the summary.
#[derive(Debug)]
struct SummaryTables {
    /// The detected format of an import.
    taken: Option<String>,
    metrics: Metrics,
    checks: Vec<CheckGroup>,
    thresholds: Vec<Threshold>,
}

/// The agent's evidence.
#[derive(Debug)]
struct AgentEvidence {
    machine: Vec<Fact>,
    groups: Vec<Group>,
    sandbox: Vec<Fact>,
    /// Why the target's agent failed after the run had failed.
    reported_later: Option<String>,
}

/// The stored data of a run beside the run itself.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) phases: Vec<(String, i64)>,
    summary: Option<Summary>,
    evidence: Option<Evidence>,
    shares: Option<GeneratorList>,
    pub(crate) series: Option<Series>,
    /// Current throughput.
    rate: Option<Rate>,
    /// What takes long in its preparation.
    step: Option<String>,
    /// All repetitions of its cell, including the run.
    pub(crate) cell: Vec<Run>,
    pub(crate) marks: Marks,
    judged: Option<JudgedBy>,
    /// How its series was reduced, and when, unix ms.
    reduced: Option<(String, i64)>,
}

impl Stored {
    /// Returns the evidence of its agents.
    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    pub(crate) async fn read(state: &AppState, run: &Run) -> Result<Self> {
        let pool = &state.db.read;
        let cell = crate::runs::store::repetitions(&state.db.rows, run).await?;
        let marks = crate::catalog::store::marks(pool, &[run.spec.target.as_str()]).await?;
        let summary = match crate::runs::store::summary(pool, &run.id).await? {
            // A summary that is no longer readable is skipped: the run still has its metrics.
            Some(body) => brewbench_wire::reports::read::parse_own(&blob::unpack(&body).map_err(Error::internal)?).ok(),
            None => None,
        };
        let evidence = api::environment::evidence(state, &run.id).await?;
        let shares = distributed::api::read(state, run, evidence.as_ref()).await?;
        let series = crate::results::api::series::current(state, run).await?;
        let id = run.id.to_wire().ok();
        let rate = id.and_then(|id| state.memory::<LiveFeed>().rate(id));
        let step = id.and_then(|id| state.memory::<LiveFeed>().step(id));
        let judged = verdicts::judged_by(pool, &run.id).await?;
        let phases = crate::runs::store::phases(pool, &run.id).await?;
        let reduced = downsampled::reduction(pool, &run.id).await?;
        Ok(Self { phases, summary, evidence, shares: Some(shares), series, rate, step, cell, marks, judged, reduced })
    }
}

impl RunView {
    async fn read(state: &AppState, id: &RunId, scope: Scope) -> Result<Self> {
        let run = lookup::found(state, id).await?;
        let stored = Stored::read(state, &run).await?;
        Ok(Self::new(run, stored, scope, now_ms()))
    }

    pub(crate) fn new(run: Run, stored: Stored, scope: Scope, now: i64) -> Self {
        let Stored { phases, summary, evidence, shares, series, rate, step, cell, marks, judged, reduced } = stored;
        let mark = marks.of(&run.spec.target);
        let others: Vec<&Run> = cell.iter().filter(|other| other.id != run.id).collect();
        let cores = SideCores::new(&run, evidence.as_ref());
        Self {
            generators: shares.and_then(|shares| Generators::new(&run, shares)),
            progress: (!run.has_ended()).then(|| {
                let mut progress = RunProgress::new(run.clone(), &marks, &others, now);
                progress.refresh(&others, rate, now);
                progress.step = step;
                progress
            }),
            cards: headline::cards(&run, summary.as_ref()),
            finding: headline::finding(&run),
            notes: headline::notes(&run),
            rules: judged.map(|judged| Rules::new(&run, &judged)),
            charts: RunCharts::new(&run, mark, &cell, summary.as_ref(), series.map(|series| (series, cores))),
            reduced: reduced.map(|(how, at)| {
                (
                    if how == "downsample" { "downsampled to points of ten seconds" } else { "deleted" },
                    time_ago::ago(Some(at)),
                )
            }),
            repetitions: cell.iter().map(|other| other.repetition).collect::<BTreeSet<_>>().len(),
            enforced: machine::enforced(&run),
            phases: crate::results::pages::run::phases::timings(&phases, now),
            figures: summary.as_ref().map(|summary| SummaryTables {
                taken: (run.origin == Origin::Import)
                    .then(|| ImportedFile::from_summary(None, &run.id, summary).describe()),
                metrics: metrics::metrics(summary),
                checks: checks::checks(summary),
                thresholds: checks::thresholds(summary),
            }),
            work: work::work(&run),
            logs: evidence.as_ref().map(|evidence| Logs::new(&run, RunLogs::new(&run, Some(evidence)))),
            evidence: evidence.map(|evidence| AgentEvidence {
                machine: machine::machine(&evidence),
                groups: facts::groups(&facts::facts(&evidence)),
                sandbox: machine::sandbox(&run, &evidence),
                reported_later: evidence.reported_later,
            }),
            remarks: Remarks::for_run(&run, scope),
            line: ListedRun::new(run, &marks),
            scope,
        }
    }

    fn run(&self) -> &Run {
        &self.line.run
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// The label of what identifies the target.
    fn identity_title(&self) -> &'static str {
        match self.run().target_kind {
            Some(TargetKind::Url) => "URL",
            Some(TargetKind::Container | TargetKind::Kubernetes) => "Image ID",
            Some(TargetKind::Process | TargetKind::Vm) | None => "Code",
        }
    }

    fn is_import(&self) -> bool {
        self.run().origin == Origin::Import
    }

    /// Time of submission.
    fn submitted(&self) -> RelativeTime {
        time_ago::ago(Some(self.run().queued_at_ms))
    }

    /// When it ended; while it is in progress, the page would not keep it current.
    fn ended(&self) -> RelativeTime {
        time_ago::ago(self.run().finished_at_ms)
    }
}

/// `GET /runs/{id}?log=…`
pub async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(query): QueryParams<LogsQuery>,
) -> Result<RunPage> {
    let mut view = RunView::read(&state, &id, caller.scope).await?;
    view.logs = view.logs.map(|logs| logs.search(query.text()));
    let title = format!("{}, repetition {}", view.run().spec.target, view.run().repetition);
    Ok(RunPage { shell: Shell::signed_in(title, Section::Runs, &caller.name).explained_in("guide/verdict"), view })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{
        testing::{failed, finished, judged, measuring},
        verdict::Verdict,
    };

    fn real() -> Summary {
        let path = format!("{}/tests/fixtures/k6/handle-summary-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        brewbench_wire::reports::read::parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
    }

    fn page(run: Run, stored: Stored, scope: Scope) -> String {
        let now = run.queued_at_ms + 5_000;
        let view = RunView::new(run, stored, scope, now);
        RunPage { shell: Shell::signed_in("run", Section::Runs, "ada"), view }.render().expect("it renders")
    }

    #[test]
    fn a_finished_run_shows_figures_first_and_logs_last() {
        let evidence = Evidence { target_log: "listening".to_owned(), ..Evidence::default() };
        let stored = Stored { summary: Some(real()), evidence: Some(evidence), ..Stored::default() };
        let html = page(finished("servy", 1), stored, Scope::Submit);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
        assert!(at("10,000</p>") < at("data-chart") && at("data-chart") < at("http_req_duration"));
        assert!(at("http_req_duration") < at("listening"));
        assert!(html.contains("/runs/servy-1/delete") && !html.contains("/runs/servy-1/cancel"));
        assert!(!html.contains("data-init"), "a finished run is not live");
    }

    #[test]
    fn an_unfinished_run_is_live_and_can_be_cancelled_by_a_user_who_may_submit() {
        let html = page(measuring("servy"), Stored::default(), Scope::Submit);
        assert!(
            html.contains("@get(&#39;/runs/servy-3/live&#39;") || html.contains("@get('/runs/servy-3/live'"),
            "{html}"
        );
        assert!(html.contains("/runs/servy-3/cancel") && !html.contains("/delete"));
        assert!(!page(measuring("servy"), Stored::default(), Scope::Read).contains("/cancel"));
    }

    #[test]
    fn the_reason_of_an_invalid_run_comes_before_its_figures() {
        let run = judged(finished("servy", 1), Verdict::Invalid, "all requests failed");
        let html = page(run, Stored::default(), Scope::Read);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
        assert!(at("all requests failed") < at("10,000</p>"));
    }

    #[test]
    fn a_failed_run_shows_its_error_and_no_figures() {
        let html = page(failed("servy", "failed", "the target died: exit code 1"), Stored::default(), Scope::Read);
        assert!(html.contains("The target died: exit code 1") && !html.contains("headline"), "{html}");
    }

    #[test]
    fn html_in_names_and_logs_is_escaped() {
        let name = "<script>alert(1)</script>";
        let mut run = finished(name, 1);
        run.spec.parameters.insert(name.to_owned(), name.to_owned());
        let evidence = Evidence { target_log: name.to_owned(), generator_log: name.to_owned(), ..Evidence::default() };
        let mut summary = real();
        let odd = summary.metrics.get("http_reqs").expect("there").clone();
        summary.metrics.insert(name.to_owned(), odd);
        let stored = Stored { summary: Some(summary), evidence: Some(evidence), ..Stored::default() };
        let html = page(run, stored, Scope::Submit);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
