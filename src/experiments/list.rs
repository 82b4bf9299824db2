//! `/experiments`: all experiments, newest first, each with a one-line result.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::IntoResponse};
use brewbench_wire::now_ms;
use serde::Deserialize;

use super::progress::{ExperimentState, progress};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::ExperimentId,
        paging,
        state::AppState,
    },
    auth::caller::Read,
    compare::{
        answer::{Answer, Headline},
        cache::Version,
        chosen::Options,
        store::version,
        trust::{Trust, TrustLevel},
    },
    experiments::{
        describe::{describe_load, describe_plan},
        model::Experiment,
        pages::data::load_comparison,
        progress::Progress,
    },
    runs::{filter::address, model::Run},
    web::{
        format,
        live::{self, Frame, Pace, Tick, Topic, View},
        live_shared,
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

const PAGE: u32 = 20;

/// The maximum number of experiments in the cache; beyond that it starts again.
const MAX_CACHED: usize = 200;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/index.html")]
pub struct IndexPage {
    shell: Shell,
    list: List,
}

/// The part of the page that live updates replace. Its root is `#experiments`.
#[derive(Debug, Template)]
#[template(path = "experiments/_list.html")]
struct ListPart<'a> {
    list: &'a List,
}

/// What the page shows.
#[derive(Debug)]
struct List {
    lines: Vec<ListedExperiment>,
    /// The last listed experiment, if there are older ones.
    older: Option<ExperimentId>,
    /// Only experiments with this label.
    label: Option<String>,
    /// The last experiment of the previous page, if this is not the first one.
    after: Option<ExperimentId>,
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct ListedExperiment {
    /// The experiment.
    pub experiment: Experiment,
    /// Its progress.
    pub progress: Progress,
    description: String,
    /// Its result so far.
    pub answer: Option<Answer>,
}

impl ListedExperiment {
    fn new(experiment: Experiment, progress: Progress, answer: Option<Answer>) -> Self {
        Self { description: describe_plan(&experiment.plan), experiment, progress, answer }
    }

    fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// Whether its runs were imported, not measured by an agent.
    pub fn is_imported(&self) -> bool {
        self.experiment.plan.scenario.is_empty()
    }

    /// Returns when it was submitted.
    pub fn submitted(&self) -> RelativeTime {
        time_ago::ago(Some(self.experiment.created_at_ms))
    }

    fn left(&self) -> String {
        match self.progress.remaining_s {
            _ if self.progress.state == ExperimentState::Paused => "paused".to_owned(),
            _ if self.progress.now.is_none() && self.progress.ended == 0 => "waiting for an agent".to_owned(),
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => "duration set by the script".to_owned(),
        }
    }

    /// Returns its results so far.
    pub fn headlines(&self) -> &[Headline] {
        self.answer.as_ref().map_or(&[], |answer| &answer.headlines)
    }

    /// Returns its result so far, in one line.
    pub fn verdict(&self) -> String {
        self.answer.as_ref().map_or_else(|| "No result yet".to_owned(), Answer::line)
    }

    /// Returns how far to rely on its result; none if it has none that could be relied on.
    pub fn trust(&self) -> Option<&Trust> {
        let has_difference = self.headlines().iter().any(|headline| headline.is_decided || headline.gain.is_some());
        let trust = self.answer.as_ref().map(|answer| &answer.trust);
        trust.filter(|trust| has_difference || trust.level > TrustLevel::Reliable)
    }

    /// Returns its scenario and load.
    pub fn summary(&self) -> String {
        let plan = &self.experiment.plan;
        if self.is_imported() {
            return self.description.clone();
        }
        format!("{} · {}", plan.scenario, describe_load(plan))
    }

    /// Returns its plan, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }
}

/// Filter and limit of a list.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
    /// Only experiments after this one in the list: the last one of the previous page.
    pub after: Option<&'a ExperimentId>,
    /// Only experiments with this label.
    pub label: Option<&'a str>,
    /// Maximum number of experiments.
    pub limit: i64,
}

/// Experiments with their results, until an input of comparisons changes; cheap to clone.
#[derive(Clone, Debug, Default)]
struct ResultCache(Arc<Mutex<(Version, HashMap<ExperimentId, ListedExperiment>)>>);

impl ResultCache {
    fn get(&self, version: Version, id: &ExperimentId) -> Option<ListedExperiment> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.1.get(id).filter(|_| entries.0 == version).cloned()
    }

    /// Keeps a line whose inputs were read after this version.
    fn keep(&self, version: Version, line: &ListedExperiment) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if version.0 < entries.0.0 {
            return;
        }
        if entries.0 != version || entries.1.len() >= MAX_CACHED {
            *entries = (version, HashMap::new());
        }
        entries.1.insert(line.experiment.id.clone(), line.clone());
    }
}

/// Loads experiments with their results, newest first.
pub async fn lines(state: &AppState, filter: Filter<'_>) -> Result<Vec<ListedExperiment>> {
    let Filter { after, label, limit } = filter;
    let experiments = crate::experiments::store::list(&state.db.read, after, label, limit).await?;
    let mut lines = Vec::with_capacity(experiments.len());
    for experiment in experiments {
        lines.push(line(state, experiment).await?);
    }
    Ok(lines)
}

/// Loads the result of an experiment. It is computed again only if an input of comparisons has changed.
pub async fn line(state: &AppState, experiment: Experiment) -> Result<ListedExperiment> {
    let cache = state.memory::<ResultCache>();
    // Read before the runs, so that a change in between is noticed.
    let version = version(&state.db.read).await?;
    let known = cache.get(version, &experiment.id);
    // Runs that are added later change the version.
    if let Some(known) = known.as_ref().filter(|known| known.is_over() && !experiment.is_open) {
        return Ok(ListedExperiment { experiment, ..known.clone() });
    }
    let runs = crate::runs::store::of_experiment(&state.db.rows, &experiment.id).await?;
    let progress = progress(&experiment, &runs, now_ms());
    let answer = if let Some(known) = known {
        known.answer
    } else {
        let targets: Vec<&str> = experiment.plan.targets.iter().map(String::as_str).collect();
        let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
        match load_comparison(state, &progress, &runs, &marks, Options::default()).await {
            Ok(comparison) => comparison.map(|comparison| comparison.answer),
            Err(fault) => {
                let answer = answer_without_comparison(&experiment.id, &runs, fault)?;
                return Ok(ListedExperiment::new(experiment, progress, Some(answer)));
            }
        }
    };
    let line = ListedExperiment::new(experiment, progress, answer);
    cache.keep(version, &line);
    Ok(line)
}

/// Answers for an experiment whose comparison failed because of an error in the server, so that the others are listed.
fn answer_without_comparison(experiment: &ExperimentId, runs: &[Run], fault: Error) -> Result<Answer> {
    let Error::Internal(cause) = fault else { return Err(fault) };
    let runs: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    tracing::error!(%cause, %experiment, runs = runs.join(","), "an experiment could not be compared");
    Ok(Answer::failed())
}

impl List {
    async fn read(state: &AppState, place: IndexQuery) -> Result<Self> {
        let after = place.after.filter(|id| !id.as_str().is_empty());
        let label = place.label.filter(|label| !label.is_empty());
        let limit = i64::from(PAGE) + 1;
        let filter = Filter { after: after.as_ref(), label: label.as_deref(), limit };
        let mut lines = lines(state, filter).await?;
        let older = paging::cut(&mut lines, PAGE).map(|line| line.experiment.id.clone());
        Ok(Self { lines, older, label, after })
    }

    /// Returns the URL of the first page, or of the page that starts after an experiment.
    fn from(&self, after: Option<&ExperimentId>) -> String {
        let parts = [("label", self.label.as_deref()), ("after", after.map(ExperimentId::as_str))];
        let pairs: Vec<_> = parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        address("/experiments", &pairs)
    }

    /// Returns the URL for live updates, encoded so that it is safe inside a quoted expression.
    fn live(&self) -> String {
        let pairs: Vec<_> = self.label.iter().map(|label| ("label", label.as_str())).collect();
        address("/experiments/live", &pairs)
    }
}

/// Query parameters of the page.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct IndexQuery {
    /// Only experiments with this label.
    label: Option<String>,
    /// Only experiments after this one in the list.
    after: Option<ExperimentId>,
}

/// `GET /experiments?label=…&after=ID`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(place): QueryParams<IndexQuery>,
) -> Result<IndexPage> {
    let list = List::read(&state, place).await?;
    Ok(IndexPage { shell: Shell::signed_in("Experiments", Section::Experiments, &caller.name), list })
}

/// `GET /experiments/live`: updates of the first page.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(place): QueryParams<IndexQuery>,
) -> Result<impl IntoResponse> {
    let place = IndexQuery { after: None, ..place };
    let key = format!("experiments {:?}", place.label);
    let view = LiveList { state: state.clone(), place };
    live_shared::follow(&state, &caller.name, key, Topic::Everything, view)
}

struct LiveList {
    state: AppState,
    place: IndexQuery,
}

impl View for LiveList {
    async fn frame(&mut self, _: Tick) -> Result<Frame> {
        let list = List::read(&self.state, self.place.clone()).await?;
        let runs_now = list.lines.iter().any(|line| line.progress.now.is_some());
        let pace = if runs_now { Pace::Second } else { Pace::Minute };
        Ok(Frame { patches: vec![live::patch(&ListPart { list: &list })?], pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::view::Comparison,
        experiments::describe::tests::{experiment, plan, queued},
        runs::testing::finished,
        web::series_style::Marks,
    };

    fn line(name: &str, runs: Vec<Run>) -> ListedExperiment {
        let experiment = experiment(name, plan());
        let progress = progress(&experiment, &runs, 1_772_626_400_000);
        let comparison = runs.iter().any(Run::counts).then(|| Comparison::new(runs, &Marks::default(), None));
        ListedExperiment::new(experiment, progress, comparison.map(|comparison| comparison.answer))
    }

    fn page(lines: Vec<ListedExperiment>) -> String {
        let list = List { lines, older: Some("0199".to_owned().into()), label: None, after: None };
        let shell = Shell::signed_in("Experiments", Section::Experiments, "ada");
        IndexPage { shell, list }.render().expect("it renders")
    }

    #[tokio::test]
    async fn a_comparison_that_panics_does_not_take_the_others_with_it() {
        let ended = tokio::task::spawn_blocking(|| panic!("strata of unequal shape")).await;
        let fault = ended.map_err(Error::internal).expect_err("it panicked");
        let answer = answer_without_comparison(&"night".to_owned().into(), &[finished("servy", 1)], fault);
        let line = ListedExperiment { answer: Some(answer.expect("an answer")), ..line("night", Vec::new()) };
        assert_eq!((line.verdict().as_str(), line.trust()), ("Could not be compared", None));
        let fault = Error::Invalid("no such option".to_owned());
        assert!(answer_without_comparison(&"night".to_owned().into(), &[], fault).is_err());
    }

    #[test]
    fn an_experiment_has_one_line_while_it_runs_and_when_it_is_over() {
        let waiting = line("night", vec![queued("servy"), queued("gosherve")]);
        assert_eq!(waiting.left(), "waiting for an agent");
        let over = line("night", vec![finished("gosherve", 1), finished("servy", 1)]);
        assert!(over.is_over());
        let html = page(vec![waiting, over]);
        for text in ["/experiments?after=0199", "0 of 2", "No result yet", "Too little data"] {
            assert!(html.contains(text), "{text}: {html}");
        }
    }

    #[test]
    fn an_empty_page_links_to_the_form_and_hostile_names_stay_text() {
        let html = page(Vec::new());
        assert!(html.contains(r#"href="/experiments/new""#), "{html}");
        let html = page(vec![line("<script>alert(1)</script>", vec![queued("servy")])]);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
