//! `/experiments/{id}`: what was asked for, how far it is, and what came of it.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{Path, State},
    response::IntoResponse,
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use url::form_urlencoded;

use super::{
    power::PlanPower,
    progress::{Standing, counted, progress},
    remarks,
};
use crate::{
    app::{
        error::{Asked, Result},
        ids::ExperimentId,
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    compare::{chosen::Options, load, selection::with_versions, view::Comparison},
    experiments::{
        describe::asked,
        knee::history::Search,
        lookup,
        model::{Experiment, ExperimentWithRuns},
        progress::Progress,
        stopping_rule::Narrowing,
    },
    runs::{
        model::Run,
        pages::{remarks::Remarks, row::Line},
    },
    web::{
        format,
        live::{self, Beat, Concerns, Frame, Pace, View},
        series_style::Marks,
        shell::{Section, Shell},
        time_ago::{self, Moment},
    },
};

/// More runs than this are not listed one by one.
const MOST_LISTED: usize = 500;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/show.html")]
pub struct ExperimentPage {
    shell: Shell,
    view: ExperimentView,
}

/// How far it is. Its root is `#progress`.
#[derive(Debug, Template)]
#[template(path = "experiments/_progress.html")]
struct ProgressPart<'a> {
    view: &'a ExperimentView,
}

/// What it decides by itself, and how far that is. Its root is `#steps`.
#[derive(Debug, Template)]
#[template(path = "experiments/_steps.html")]
struct StepsPart<'a> {
    view: &'a ExperimentView,
}

/// What came of it so far. Its root is `#comparison`.
#[derive(Debug, Template)]
#[template(path = "experiments/_comparison.html")]
struct ComparisonPart<'a> {
    view: &'a ExperimentView,
}

/// Its runs. Its root is `#runs`.
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
    asked: String,
    progress: Progress,
    repeated: Option<String>,
    narrowing: Option<Narrowing>,
    /// What its comparison will be able to tell.
    power: Option<PlanPower>,
    searches: Vec<Search>,
    /// Once there is something to compare.
    comparison: Option<Comparison>,
    lines: Vec<Line>,
    /// Runs that there is no line for.
    unlisted: usize,
    baseline: Option<String>,
    scope: Scope,
}

/// What an experiment's page is made of.
struct Shown {
    whole: ExperimentWithRuns,
    marks: Marks,
    baseline: Option<String>,
    scope: Scope,
}

impl Shown {
    async fn comparison(&self, state: &AppState) -> Result<Option<Comparison>> {
        let Self { whole: ExperimentWithRuns { progress, runs, .. }, marks, baseline, scope: _ } = self;
        let options = Options { baseline: baseline.clone(), ..Options::default() };
        what_came_of_it(state, progress, runs, marks, options).await
    }

    fn view(&self, comparison: Option<Comparison>) -> ExperimentView {
        ExperimentView::new(self.whole.clone(), comparison, self)
    }
}

/// The comparison of an experiment's runs, as far as they have come; none before there is anything to compare.
pub async fn what_came_of_it(
    state: &AppState,
    progress: &Progress,
    runs: &[Run],
    marks: &Marks,
    options: Options,
) -> Result<Option<Comparison>> {
    let compared: Vec<Run> = counted(runs).cloned().collect();
    if !progress.is_over() && !compared.iter().any(Run::counts) {
        return Ok(None);
    }
    load::of_runs(state, compared, marks.clone(), options).await.map(Some)
}

impl ExperimentView {
    fn new(whole: ExperimentWithRuns, comparison: Option<Comparison>, shown: &Shown) -> Self {
        let ExperimentWithRuns { experiment, url: _, progress, repeated, narrowing, power, searches, runs } = whole;
        let Shown { whole: _, marks, baseline, scope } = shown;
        let runs = with_versions(runs);
        Self {
            asked: asked(&experiment.plan),
            remarks: remarks::shown(&experiment, *scope),
            comparison,
            unlisted: runs.len().saturating_sub(MOST_LISTED),
            lines: runs.into_iter().take(MOST_LISTED).map(|run| Line::new(run, marks)).collect(),
            experiment,
            progress,
            repeated,
            narrowing,
            power,
            searches: searches.unwrap_or_default(),
            baseline: baseline.clone(),
            scope: *scope,
        }
    }

    fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    fn is_paused(&self) -> bool {
        self.progress.standing == Standing::Paused
    }

    /// Whether somebody may add repetitions: not where it decides by itself.
    fn may_add(&self) -> bool {
        self.may_submit() && !self.experiment.is_open && self.experiment.plan.knee.is_none()
    }

    /// By what the order of the runs is given.
    fn seed(&self) -> Option<u32> {
        self.experiment.plan.seed
    }

    /// Which target the others are held against where it repeats until that is known.
    fn first_target(&self) -> &str {
        self.experiment.plan.targets.first().map_or("", String::as_str)
    }

    /// Whether runs differ in their loads.
    fn loads_differ(&self) -> bool {
        self.experiment.plan.loads.len() > 1 || self.experiment.plan.knee.is_some()
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Whether somebody may submit it again: not what was measured somewhere else.
    fn may_repeat(&self) -> bool {
        self.may_submit() && !self.experiment.plan.scenario.is_empty()
    }

    fn submitted(&self) -> Moment {
        time_ago::ago(Some(self.experiment.created_at_ms))
    }

    fn left(&self) -> String {
        match self.progress.left_s {
            Some(seconds) if seconds < 1.0 => "any moment".to_owned(),
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => "as long as its script takes".to_owned(),
        }
    }

    fn now(&self) -> &str {
        let all_ended = self.progress.ended == self.progress.total;
        let idle = if all_ended { "deciding what to measure next" } else { "waiting for an agent" };
        let idle = if self.is_paused() { "paused" } else { idle };
        self.progress.now.as_deref().unwrap_or(idle)
    }

    /// Where the page follows it: encoded so that it may stand in an expression.
    fn live_address(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.baseline.iter().map(|key| ("baseline", key)))
            .finish();
        format!("/experiments/{}/live?{query}", self.experiment.id)
    }
}

/// Its targets are those of its plan, so their colours stay what they are.
async fn marks(state: &AppState, whole: &ExperimentWithRuns) -> Result<Marks> {
    let targets: Vec<&str> = whole.experiment.plan.targets.iter().map(String::as_str).collect();
    Ok(crate::catalog::store::marks(&state.db.read, &targets).await?)
}

/// What an address says beside the id.
#[derive(Debug, Deserialize)]
pub struct Wish {
    /// The target that differences are relative to.
    baseline: Option<String>,
}

impl Wish {
    fn baseline(self) -> Option<String> {
        self.baseline.filter(|key| !key.is_empty())
    }
}

/// `GET /experiments/{id}?baseline=…`
pub(crate) async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    Asked(wish): Asked<Wish>,
) -> Result<ExperimentPage> {
    let whole = lookup::whole(&state, &id).await?;
    let shown = Shown { marks: marks(&state, &whole).await?, whole, baseline: wish.baseline(), scope: caller.scope };
    let view = shown.view(shown.comparison(&state).await?);
    let shell = Shell::signed_in(view.experiment.name.clone(), Section::Experiments, &caller.name);
    Ok(ExperimentPage { shell, view })
}

/// The page as it changes, until all runs have ended.
pub(crate) async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    Asked(wish): Asked<Wish>,
) -> Result<impl IntoResponse> {
    let whole = lookup::whole(&state, &id).await?;
    let concerns = Concerns::Experiment(whole.experiment.id.clone());
    let shown = Shown { marks: marks(&state, &whole).await?, whole, baseline: wish.baseline(), scope: caller.scope };
    let view = LiveExperiment { state: state.clone(), compared: usize::MAX, shown };
    live::follow(&state, &caller.name, concerns, view)
}

struct LiveExperiment {
    state: AppState,
    /// How many runs had ended when the comparison was sent last.
    compared: usize,
    shown: Shown,
}

impl View for LiveExperiment {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let whole = &mut self.shown.whole;
        if beat == Beat::Time {
            whole.progress = progress(&whole.experiment, &whole.runs, now_ms());
        } else {
            *whole = lookup::whole(&self.state, &whole.experiment.id).await?;
        }
        let ended = whole.progress.ended;
        // It takes its time where there are many runs, and nothing new is to be had before another one ends.
        let comparison = if self.compared == ended { None } else { self.shown.comparison(&self.state).await? };
        let view = self.shown.view(comparison);
        let mut patches = Vec::new();
        if beat != Beat::Time {
            patches.push(live::patch(&RunsPart { view: &view })?);
            patches.push(live::patch(&StepsPart { view: &view })?);
        }
        if self.compared != ended {
            patches.push(live::patch(&ComparisonPart { view: &view })?);
            self.compared = ended;
        }
        // At the end it takes along what follows: whatever came behind it would not be heard any more.
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
        experiments::describe::{
            repeated,
            tests::{experiment, plan, queued},
        },
        runs::testing::{failed, finished},
    };

    fn view(name: &str, runs: Vec<Run>, scope: Scope) -> ExperimentView {
        let experiment = experiment(name, plan());
        let progress = progress(&experiment, &runs, 1_772_626_400_000);
        let repeated = repeated(&runs);
        let url = String::new();
        let comparison = runs.iter().any(Run::counts) || progress.is_over();
        let comparison = comparison.then(|| Comparison::new(runs.clone(), &Marks::default(), Some("servy")));
        let whole = ExperimentWithRuns {
            experiment,
            url,
            progress,
            repeated,
            narrowing: None,
            power: None,
            searches: None,
            runs,
        };
        Shown { whole, marks: Marks::default(), baseline: Some("servy".to_owned()), scope }.view(comparison)
    }

    fn page(view: ExperimentView) -> String {
        ExperimentPage { shell: Shell::signed_in("x", Section::Experiments, "ada"), view }.render().expect("it renders")
    }

    #[test]
    fn while_it_runs_the_page_follows_and_compares_what_there_is() {
        let html = page(view("night", vec![finished("servy", 1), queued("gosherve"), queued("servy")], Scope::Submit));
        assert!(html.contains("/experiments/0199/live?baseline=servy") && html.contains("1 of 3"), "{html}");
        assert!(html.contains("/experiments/0199/cancel") && html.contains("data-chart"));
    }

    #[test]
    fn once_it_is_over_nothing_follows_and_nothing_can_be_cancelled() {
        let html = page(view("night", vec![finished("servy", 1), finished("gosherve", 1)], Scope::Submit));
        assert!(!html.contains("data-init") && !html.contains("/cancel"), "{html}");
    }

    #[test]
    fn before_the_first_figures_there_is_nothing_to_compare() {
        let html = page(view("night", vec![queued("servy"), queued("gosherve")], Scope::Read));
        assert!(html.contains(r#"id="comparison""#) && !html.contains("<h2>Figures"), "{html}");
        assert!(!html.contains("/cancel"), "a viewer cancels nothing");
    }

    #[test]
    fn where_all_runs_failed_the_page_says_that_there_is_no_result_and_why() {
        let runs = vec![failed("servy", "failed", "the port was taken"), failed("gosherve", "cancelled", "by ada")];
        let html = page(view("night", runs, Scope::Read));
        assert!(html.contains("no result") && !html.contains("none yet"), "{html}");
        assert!(html.contains("1 failed, 1 cancelled; the first, servy repetition 1: the port was taken"), "{html}");
    }

    #[test]
    fn a_hostile_name_stays_text_and_a_hostile_baseline_stays_in_its_string() {
        let mut view = view("<script>alert(1)</script>", vec![queued("servy")], Scope::Read);
        view.baseline = Some("');alert(1);//\"><script>alert(2)</script>".to_owned());
        let html = page(view);
        assert!(!html.contains("<script>alert") && !html.contains("');alert"), "{html}");
    }
}
