//! `/experiments/{id}`: what was asked for, how far it is, and what came of it.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Redirect},
    routing::{get, post},
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use url::form_urlencoded;

use super::{
    Experiment, ExperimentWithRuns, Progress, api, list, new,
    progress::{progress, repeated},
    remarks,
    told::{asked, with_versions},
};
use crate::{
    auth::{Read, Scope, Submit},
    catalog,
    compare::Comparison,
    error::{Asked, Error, Result},
    runs::{
        Run,
        pages::{line::Line, remarks::Remarks},
    },
    state::AppState,
    web::{
        confirm::Confirm,
        format,
        live::{self, Beat, Concerns, Frame, Pace, View},
        mark::Marks,
        moment::{self, Moment},
        shell::{Section, Shell},
    },
};

/// More runs than this are not listed one by one.
const MOST_LISTED: usize = 500;

/// The pages of this slice.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/runs/new", get(new::form).post(new::submit))
        .route("/runs/new/check", get(new::recheck))
        .route("/experiments", get(list::index))
        .route("/experiments/live", get(list::live))
        .route("/experiments/{id}", get(show))
        .route("/experiments/{id}/live", get(follow))
        .route("/experiments/{id}/note", post(remarks::post_note))
        .route("/experiments/{id}/labels", post(remarks::post_label))
        .route("/experiments/{id}/labels/remove", post(remarks::post_removal))
        .route("/experiments/{id}/cancel", get(ask_cancel).post(cancel))
}

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
    /// Once there is something to compare.
    comparison: Option<Comparison>,
    lines: Vec<Line>,
    /// Runs that there is no line for.
    unlisted: usize,
    baseline: Option<String>,
    scope: Scope,
}

impl ExperimentView {
    fn new(whole: ExperimentWithRuns, marks: &Marks, baseline: Option<String>, scope: Scope) -> Self {
        let ExperimentWithRuns { experiment, url: _, progress, runs } = whole;
        let runs = with_versions(runs);
        let compared: Vec<Run> = runs.iter().filter(|run| !repeated(run, &runs)).cloned().collect();
        let is_over = progress.ended == progress.total;
        let something = is_over || compared.iter().any(Run::counts);
        Self {
            asked: asked(&experiment.plan),
            remarks: remarks::shown(&experiment, scope),
            comparison: something.then(|| Comparison::new(compared, marks, baseline.as_deref())),
            unlisted: runs.len().saturating_sub(MOST_LISTED),
            lines: runs.into_iter().take(MOST_LISTED).map(|run| Line::new(run, marks)).collect(),
            experiment,
            progress,
            baseline,
            scope,
        }
    }

    fn is_over(&self) -> bool {
        self.progress.ended == self.progress.total
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    fn may_cancel(&self) -> bool {
        self.scope >= Scope::Submit && !self.is_over()
    }

    fn submitted(&self) -> Moment {
        moment::ago(Some(self.experiment.created_at_ms))
    }

    fn left(&self) -> String {
        match self.progress.left_s {
            Some(seconds) if seconds < 1.0 => "any moment".to_owned(),
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => "as long as its script takes".to_owned(),
        }
    }

    fn now(&self) -> &str {
        self.progress.now.as_deref().unwrap_or("waiting for an agent")
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
    Ok(catalog::queries::marks(&state.db.read, &targets).await?)
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
async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Asked(wish): Asked<Wish>,
) -> Result<ExperimentPage> {
    let whole = api::whole(&state, &id).await?;
    let marks = marks(&state, &whole).await?;
    let view = ExperimentView::new(whole, &marks, wish.baseline(), caller.scope);
    let shell = Shell::signed_in(view.experiment.name.clone(), Section::Experiments, &caller.name);
    Ok(ExperimentPage { shell, view })
}

/// The page as it changes, until all runs have ended.
async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Asked(wish): Asked<Wish>,
) -> Result<impl IntoResponse> {
    let whole = api::whole(&state, &id).await?;
    let concerns = Concerns::Experiment(whole.experiment.id.parse().map_err(Error::internal)?);
    let view = LiveExperiment {
        state: state.clone(),
        baseline: wish.baseline(),
        scope: caller.scope,
        compared: usize::MAX,
        marks: marks(&state, &whole).await?,
        whole,
    };
    Ok(live::follow(&state, concerns, view))
}

struct LiveExperiment {
    state: AppState,
    baseline: Option<String>,
    scope: Scope,
    /// How many runs had ended when the comparison was sent last.
    compared: usize,
    marks: Marks,
    whole: ExperimentWithRuns,
}

impl View for LiveExperiment {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        if beat == Beat::Time {
            self.whole.progress = progress(&self.whole.runs, now_ms());
        } else {
            self.whole = api::whole(&self.state, &self.whole.experiment.id).await?;
        }
        let ended = self.whole.progress.ended;
        let view = ExperimentView::new(self.whole.clone(), &self.marks, self.baseline.clone(), self.scope);
        let mut patches = Vec::new();
        if beat != Beat::Time {
            patches.push(live::patch(&RunsPart { view: &view })?);
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

/// `GET /experiments/{id}/cancel`
async fn ask_cancel(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Confirm> {
    let whole = api::whole(&state, &id).await?;
    let rest = whole.progress.total - whole.progress.ended;
    if rest == 0 {
        return Err(Error::Conflict("all runs of the experiment have ended already".to_owned()));
    }
    let deed = "Cancel the rest";
    Ok(Confirm {
        shell: Shell::signed_in(deed, Section::Experiments, &caller.name),
        deed,
        what: whole.experiment.name,
        consequences: vec![
            format!("{} will not be done, or not to the end.", format::plural(rest, "run")),
            format!("The {} that ended and their figures stay.", format::plural(whole.progress.ended, "run")),
        ],
        back: format!("/experiments/{id}"),
    })
}

/// `POST /experiments/{id}/cancel`
async fn cancel(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Redirect> {
    api::cancel_all(&state, &id, &caller.name).await?;
    Ok(Redirect::to(&format!("/experiments/{id}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::told::tests::{plan, queued},
        runs::made_up::{failed, finished},
    };

    fn view(name: &str, runs: Vec<Run>, scope: Scope) -> ExperimentView {
        let experiment = Experiment {
            id: "0199".to_owned(),
            name: name.to_owned(),
            plan: plan(),
            created_by: "ada".to_owned(),
            created_at_ms: 1_772_626_394_000,
            labels: Vec::new(),
            note: None,
        };
        let progress = progress(&runs, 1_772_626_400_000);
        let whole = ExperimentWithRuns { experiment, url: String::new(), progress, runs };
        ExperimentView::new(whole, &Marks::default(), Some("servy".to_owned()), scope)
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
