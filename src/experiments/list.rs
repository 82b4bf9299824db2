//! `/experiments`: all of them, newest first, with what came of each in one line.

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::IntoResponse};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;

use super::progress::{Standing, progress};
use crate::{
    app::{
        error::{Asked, Result},
        ids::ExperimentId,
        state::AppState,
    },
    auth::caller::Read,
    experiments::{describe::asked, model::Experiment, outcome::answer_of, progress::Progress},
    runs::filter::address,
    web::{
        card::{Card, Tone},
        format,
        live::{self, Beat, Concerns, Frame, Pace, View},
        shell::{Section, Shell},
        time_ago::{self, Moment},
    },
};

const PAGE: usize = 20;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/index.html")]
pub struct IndexPage {
    shell: Shell,
    list: List,
}

/// All of it but what surrounds it. Its root is `#experiments`.
#[derive(Debug, Template)]
#[template(path = "experiments/_list.html")]
struct ListPart<'a> {
    list: &'a List,
}

/// What the page shows.
#[derive(Debug)]
struct List {
    lines: Vec<Line>,
    /// Where older ones are, if there are any.
    older: Option<ExperimentId>,
    /// Only those with this label.
    label: Option<String>,
    /// The page does not begin with the newest.
    before: Option<ExperimentId>,
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct Line {
    /// What was asked for.
    pub experiment: Experiment,
    /// How far it is.
    pub progress: Progress,
    asked: String,
    /// The most important of what came of it, and about whom or what it is.
    answer: Option<(String, Card)>,
}

impl Line {
    fn new(experiment: Experiment, progress: Progress, answer: Option<(String, Card)>) -> Self {
        Self { asked: asked(&experiment.plan), experiment, progress, answer }
    }

    fn is_over(&self) -> bool {
        self.progress.is_over()
    }

    /// When it was asked for.
    pub fn submitted(&self) -> Moment {
        time_ago::ago(Some(self.experiment.created_at_ms))
    }

    fn left(&self) -> String {
        match self.progress.left_s {
            _ if self.progress.standing == Standing::Paused => "paused".to_owned(),
            _ if self.progress.now.is_none() && self.progress.ended == 0 => "waits for an agent".to_owned(),
            Some(seconds) => format!("{} left", format::duration(Some(seconds.ceil())).text()),
            None => "as long as its script takes".to_owned(),
        }
    }

    fn tone(&self) -> Tone {
        self.answer.as_ref().map_or(Tone::Plain, |(_, card)| card.tone)
    }

    /// What came of it so far, in one line.
    pub fn verdict(&self) -> String {
        self.answer.as_ref().map_or_else(
            || "no figures yet".to_owned(),
            |(about, Card { value, detail, .. })| format!("{about}: {value}, {detail}").replace('\u{a0}', " "),
        )
    }
}

/// Which experiments are listed.
#[derive(Clone, Copy, Debug)]
pub struct Which<'a> {
    /// Those submitted before this one.
    pub before: Option<&'a ExperimentId>,
    /// Those with this label.
    pub label: Option<&'a str>,
    /// So many at most.
    pub limit: i64,
}

/// Experiments with what came of them, newest first. What was `known` is not compared again unless a run has ended since.
pub async fn lines(state: &AppState, Which { before, label, limit }: Which<'_>, known: &[Line]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for experiment in crate::experiments::store::list(&state.db.read, before, label, limit).await? {
        let runs = crate::runs::store::of_experiment(&state.db.rows, &experiment.id).await?;
        let progress = progress(&experiment, &runs, now_ms());
        let ended = |progress: &Progress| (progress.total, progress.ended, progress.without_figures);
        let is_same = |line: &&Line| line.experiment.id == experiment.id && ended(&line.progress) == ended(&progress);
        let answer = match known.iter().find(is_same) {
            Some(line) => line.answer.clone(),
            None => answer_of(state, &experiment, &progress, &runs).await?,
        };
        lines.push(Line::new(experiment, progress, answer));
    }
    Ok(lines)
}

impl List {
    async fn read(state: &AppState, place: Place, known: &[Line]) -> Result<Self> {
        let before = place.before.filter(|id| !id.as_str().is_empty());
        let label = place.label.filter(|label| !label.is_empty());
        let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
        let which = Which { before: before.as_ref(), label: label.as_deref(), limit };
        let mut lines = lines(state, which, known).await?;
        let more = lines.len() > PAGE;
        lines.truncate(PAGE);
        let older = lines.last().filter(|_| more).map(|line| line.experiment.id.clone());
        Ok(Self { lines, older, label, before })
    }

    /// The list from its beginning, or from one of them on.
    fn from(&self, before: Option<&ExperimentId>) -> String {
        let parts = [("label", self.label.as_deref()), ("before", before.map(ExperimentId::as_str))];
        let pairs: Vec<_> = parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        address("/experiments", &pairs)
    }

    /// Where the page follows the list; nothing in it can end the string of an expression.
    fn live(&self) -> String {
        let pairs: Vec<_> = self.label.iter().map(|label| ("label", label.as_str())).collect();
        address("/experiments/live", &pairs)
    }
}

/// What a page shows.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Place {
    /// Only those with this label.
    label: Option<String>,
    /// With those submitted before this one.
    before: Option<ExperimentId>,
}

/// `GET /experiments?label=…&before=ID`
pub async fn index(Read(caller): Read, State(state): State<AppState>, Asked(place): Asked<Place>) -> Result<IndexPage> {
    let list = List::read(&state, place, &[]).await?;
    Ok(IndexPage { shell: Shell::signed_in("Experiments", Section::Experiments, &caller.name), list })
}

/// The newest page as it changes.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Asked(place): Asked<Place>,
) -> Result<impl IntoResponse> {
    let place = Place { before: None, ..place };
    let view = LiveList { state: state.clone(), place, lines: Vec::new() };
    live::follow(&state, &caller.name, Concerns::Everything, view)
}

struct LiveList {
    state: AppState,
    place: Place,
    /// As they were sent last.
    lines: Vec<Line>,
}

impl View for LiveList {
    async fn frame(&mut self, _: Beat) -> Result<Frame> {
        let list = List::read(&self.state, self.place.clone(), &self.lines).await?;
        self.lines.clone_from(&list.lines);
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
        experiments::{
            describe::tests::{experiment, plan, queued},
            outcome::answer,
        },
        runs::{model::Run, testing::finished},
        web::series_style::Marks,
    };

    fn line(name: &str, runs: Vec<Run>) -> Line {
        let experiment = experiment(name, plan());
        let progress = progress(&experiment, &runs, 1_772_626_400_000);
        let comparison = runs.iter().any(Run::counts).then(|| Comparison::new(runs, &Marks::default(), None));
        Line::new(experiment, progress, comparison.and_then(answer))
    }

    fn page(lines: Vec<Line>) -> String {
        let list = List { lines, older: Some("0199".to_owned().into()), label: None, before: None };
        let shell = Shell::signed_in("Experiments", Section::Experiments, "ada");
        IndexPage { shell, list }.render().expect("it renders")
    }

    #[test]
    fn an_experiment_is_told_in_one_line_while_it_runs_and_once_it_is_over() {
        let waiting = line("night", vec![queued("servy"), queued("gosherve")]);
        assert_eq!((waiting.verdict().as_str(), waiting.left().as_str()), ("no figures yet", "waits for an agent"));
        let over = line("night", vec![finished("gosherve", 1), finished("servy", 1)]);
        assert!(over.is_over() && over.verdict().contains("instead of 10,000 requests/s"), "{}", over.verdict());
        let html = page(vec![waiting, over]);
        assert!(html.contains("/experiments?before=0199") && html.contains("0 of 2"), "{html}");
    }

    #[test]
    fn without_any_the_page_says_how_to_make_one_and_hostile_names_stay_text() {
        let html = page(Vec::new());
        assert!(html.contains(r#"href="/experiments/new""#), "{html}");
        let html = page(vec![line("<script>alert(1)</script>", vec![queued("servy")])]);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
