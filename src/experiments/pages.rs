//! `/experiments/{id}`: the plan, progress and results of an experiment.

mod current;
pub mod data;
mod run_list;
mod so_far;

use std::sync::Arc;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{Path, State},
    response::IntoResponse,
};
use brewbench_wire::now_ms;
use url::form_urlencoded;

use self::{
    current::{Current, currents},
    data::PageData,
    run_list::RunList,
    so_far::SoFar,
};
use super::{
    power::PlanPower,
    progress::{ExperimentState, progress},
    remarks,
};
use crate::{
    app::{
        error::{QueryParams, Result},
        ids::ExperimentId,
        state::AppState,
    },
    auth::caller::Read,
    compare::{
        chosen::{Chosen, Options},
        pages::Actions,
        rendered::Rendered,
    },
    experiments::{
        describe::describe_plan,
        knee::history::Search,
        model::{Experiment, ExperimentWithRuns},
        progress::Progress,
        race::Race,
    },
    profiles::links::{SettingLinks, links},
    runs::{model::Run, pages::remarks::Remarks},
    web::{
        format,
        live::{self, Frame, Pace, Tick, Topic, View},
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/show.html")]
pub struct ExperimentPage {
    shell: Shell,
    view: ExperimentView,
}

/// The progress. Its root is `#progress`.
#[derive(Debug, Template)]
#[template(path = "experiments/_progress.html")]
struct ProgressPart<'a> {
    view: &'a ExperimentView,
}

/// The targets so far. Its root is `#race-ID`.
#[derive(Debug, Template)]
#[template(path = "experiments/_race.html")]
struct RacePart<'a> {
    race: &'a Race,
}

/// The differences so far. Its root is `#so-far`.
#[derive(Debug, Template)]
#[template(path = "experiments/_so_far.html")]
struct SoFarPart<'a> {
    view: &'a ExperimentView,
}

/// The retries and the state of knee searches. Its root is `#steps`.
#[derive(Debug, Template)]
#[template(path = "experiments/_steps.html")]
struct StepsPart<'a> {
    view: &'a ExperimentView,
}

/// The results so far. Its root is `#comparison`.
#[derive(Debug, Template)]
#[template(path = "experiments/_comparison.html")]
struct ComparisonPart<'a> {
    view: &'a ExperimentView,
}

/// The list of runs. Its root is `#runs`.
#[derive(Debug, Template)]
#[template(path = "experiments/_runs.html")]
struct RunsPart<'a> {
    view: &'a ExperimentView,
}

/// What the page shows.
#[derive(Debug)]
pub struct ExperimentView {
    experiment: Experiment,
    remarks: Remarks,
    description: String,
    progress: Progress,
    /// The runs in progress.
    currents: Vec<Current>,
    so_far: Option<SoFar>,
    /// The targets so far, while it runs.
    race: Option<Race>,
    repeated: Option<String>,
    /// The statistical power of its comparison.
    power: Option<PlanPower>,
    searches: Vec<Search>,
    /// Present once there are results to compare.
    comparison: Option<Arc<Rendered>>,
    /// Links to its profiles.
    profiles: Vec<SettingLinks>,
    runs: RunList,
    /// Query of its live updates.
    query: String,
    acts: Actions,
}

impl ExperimentView {
    fn new(comparison: Option<Arc<Rendered>>, data: &PageData) -> Self {
        let PageData { full, so_far, marks, feed, options, scope } = data;
        let acts = Actions::new(data.query(), comparison.as_deref().map(|rendered| &**rendered), *scope);
        let ExperimentWithRuns { experiment, url: _, progress, repeated, narrowing: _, power, searches, runs } =
            full.clone();
        let rate = |run: &Run| feed.rate(run.id.to_wire().ok()?).map(|rate| rate.rps);
        Self {
            description: describe_plan(&experiment.plan),
            remarks: remarks::of_experiment(&experiment, *scope),
            comparison,
            currents: currents(&experiment, &runs, marks, feed, now_ms()),
            so_far: so_far.clone(),
            race: if progress.is_over() { None } else { Race::new(&experiment, &runs, marks, rate) },
            profiles: links(&runs, marks),
            runs: RunList::new(runs, marks),
            experiment,
            progress,
            repeated,
            power,
            searches: searches.unwrap_or_default(),
            query: options_query(options),
            acts,
        }
    }

    fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    fn is_paused(&self) -> bool {
        self.progress.state == ExperimentState::Paused
    }

    /// Whether the user may add repetitions: not if the experiment decides how often it measures.
    fn may_add(&self) -> bool {
        self.may_submit() && !self.experiment.is_open && self.experiment.plan.knee.is_none()
    }

    /// Whether the runs have different loads.
    fn loads_differ(&self) -> bool {
        self.experiment.plan.loads.len() > 1 || self.experiment.plan.knee.is_some()
    }

    fn may_submit(&self) -> bool {
        self.acts.may_submit()
    }

    /// Whether the user may submit it again: not if it was imported.
    fn may_repeat(&self) -> bool {
        self.may_submit() && !self.experiment.plan.scenario.is_empty()
    }

    fn submitted(&self) -> RelativeTime {
        time_ago::ago(Some(self.experiment.created_at_ms))
    }

    fn left(&self) -> String {
        match self.progress.remaining_s {
            Some(seconds) if seconds < 1.0 => "any moment".to_owned(),
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => "duration set by the script".to_owned(),
        }
    }

    fn now(&self) -> &'static str {
        let all_ended = self.progress.ended == self.progress.total;
        match self.currents.len() {
            0 if self.is_paused() => "Paused",
            0 if all_ended => "Deciding what to measure next",
            0 => "Waiting for an agent",
            _ => "Running now",
        }
    }

    /// Returns the URL for live updates, encoded so that it is safe inside a quoted expression.
    fn live_address(&self) -> String {
        format!("/experiments/{}/live?{}", self.experiment.id, self.query)
    }
}

fn options_query(options: &Options) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(options.parameters()).finish()
}

/// `GET /experiments/{id}?baseline=…`, with the options of `/compare`.
pub(crate) async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    QueryParams(chosen): QueryParams<Chosen>,
) -> Result<ExperimentPage> {
    let data = PageData::read(&state, &id, chosen, caller.scope).await?;
    let view = ExperimentView::new(data.comparison(&state).await?, &data);
    let shell = Shell::signed_in(view.experiment.name.clone(), Section::Experiments, &caller.name);
    Ok(ExperimentPage { shell, view })
}

/// `GET /experiments/{id}/live`: updates of the page until the experiment is over.
pub(crate) async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    QueryParams(chosen): QueryParams<Chosen>,
) -> Result<impl IntoResponse> {
    let data = PageData::read(&state, &id, chosen, caller.scope).await?;
    let topic = Topic::Experiment(data.full.experiment.id.clone());
    let view = LiveExperiment { state: state.clone(), compared: usize::MAX, data };
    live::follow(&state, &caller.name, topic, view)
}

struct LiveExperiment {
    state: AppState,
    /// Number of ended runs when the comparison was sent last.
    compared: usize,
    data: PageData,
}

impl View for LiveExperiment {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        if tick == Tick::Time {
            let full = &mut self.data.full;
            full.progress = progress(&full.experiment, &full.runs, now_ms());
        } else {
            self.data.refresh(&self.state).await?;
        }
        let ended = self.data.full.progress.ended;
        // Comparing many runs is slow, and the result changes only when another run ends.
        let comparison = if self.compared == ended { None } else { self.data.comparison(&self.state).await? };
        let view = ExperimentView::new(comparison, &self.data);
        let mut patches = Vec::new();
        if tick != Tick::Time {
            patches.push(live::patch(&RunsPart { view: &view })?);
            patches.push(live::patch(&StepsPart { view: &view })?);
            patches.push(live::patch(&SoFarPart { view: &view })?);
        }
        if let Some(race) = view.race.as_ref().filter(|_| tick == Tick::Time) {
            patches.push(live::patch(&RacePart { race })?);
        }
        if self.compared != ended {
            patches.push(live::patch(&ComparisonPart { view: &view })?);
            self.compared = ended;
        }
        // Last, because at the end this part removes the live connection: later patches would be ignored.
        patches.push(live::patch(&ProgressPart { view: &view })?);
        let pace = match &view.progress.now {
            _ if view.is_over() => Pace::Over,
            Some(_) => Pace::Second,
            None => Pace::Minute,
        };
        Ok(Frame { patches, pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::model::Scope,
        compare::view::Comparison,
        experiments::describe::{
            describe_retries,
            tests::{experiment, plan, queued},
        },
        live::feed::LiveFeed,
        runs::testing::{failed, finished},
        web::series_style::Marks,
    };

    fn view(name: &str, runs: Vec<Run>, scope: Scope) -> ExperimentView {
        let experiment = experiment(name, plan());
        let progress = progress(&experiment, &runs, 1_772_626_400_000);
        let repeated = describe_retries(&runs);
        let url = String::new();
        let comparison = runs.iter().any(Run::counts) || progress.is_over();
        let comparison = comparison.then(|| Comparison::new(runs.clone(), &Marks::default(), Some("servy")));
        let full = ExperimentWithRuns {
            experiment,
            url,
            progress,
            repeated,
            narrowing: None,
            power: None,
            searches: None,
            runs,
        };
        let baseline = Some("servy".to_owned());
        let options = Options { baseline, ..Options::default() };
        let data = PageData::new(full, Marks::default(), LiveFeed::default(), options, scope);
        ExperimentView::new(comparison.map(|comparison| Arc::new(comparison.into())), &data)
    }

    fn page(view: ExperimentView) -> String {
        ExperimentPage { shell: Shell::signed_in("x", Section::Experiments, "ada"), view }.render().expect("it renders")
    }

    #[test]
    fn while_an_experiment_runs_the_page_updates_and_compares() {
        let html = page(view("night", vec![finished("servy", 1), queued("gosherve"), queued("servy")], Scope::Submit));
        assert!(html.contains("/experiments/0199/live?baseline=servy") && html.contains("1 of 3"), "{html}");
        assert!(html.contains("/experiments/0199/cancel") && html.contains("data-chart"));
    }

    #[test]
    fn when_an_experiment_is_over_the_page_neither_updates_nor_offers_to_cancel() {
        let html = page(view("night", vec![finished("servy", 1), finished("gosherve", 1)], Scope::Submit));
        assert!(!html.contains("data-init") && !html.contains("/cancel"), "{html}");
    }

    #[test]
    fn before_the_first_results_there_is_no_comparison() {
        let html = page(view("night", vec![queued("servy"), queued("gosherve")], Scope::Read));
        assert!(html.contains(r#"id="comparison""#) && !html.contains("<h2>Metrics"), "{html}");
        assert!(html.contains("0 of at least") && html.contains("an interval needs 4"), "{html}");
        assert!(!html.contains("/cancel"), "a viewer can't cancel");
    }

    #[test]
    fn if_all_runs_failed_the_page_shows_why_there_is_no_result() {
        let runs = vec![failed("servy", "failed", "the port was taken"), failed("gosherve", "cancelled", "by ada")];
        let html = page(view("night", runs, Scope::Read));
        assert!(html.contains("No result</b>") && !html.contains("No result yet"), "{html}");
        assert!(html.contains("1 failed, 1 cancelled. servy repetition 1: the port was taken"), "{html}");
    }

    #[test]
    fn a_hostile_name_stays_text_and_a_hostile_baseline_stays_in_its_string() {
        let mut view = view("<script>alert(1)</script>", vec![queued("servy")], Scope::Read);
        let baseline = Some("');alert(1);//\"><script>alert(2)</script>".to_owned());
        view.query = options_query(&Options { baseline, ..Options::default() });
        let html = page(view);
        assert!(!html.contains("<script>alert") && !html.contains("');alert"), "{html}");
    }
}
