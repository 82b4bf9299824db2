//! `/runs`: what waits and runs, and all that has ended.

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::IntoResponse};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use url::form_urlencoded;

use super::line::{Doing, Line};
use crate::{
    auth::{Read, Scope},
    catalog,
    error::{Asked, Result},
    runs::{Run, queries},
    state::AppState,
    web::{
        live::{self, Beat, Concerns, Frame, Pace, View},
        mark::Marks,
        shell::{Section, Shell},
    },
};

const PAGE: usize = 50;

/// So many of what runs and comes next are shown; the rest is counted.
const MOST_UNFINISHED: usize = 8;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/index.html")]
pub struct HistoryPage {
    shell: Shell,
    history: History,
}

/// All of it but what surrounds it. Its root is `#history`.
#[derive(Debug, Template)]
#[template(path = "runs/_history.html")]
struct HistoryPart<'a> {
    history: &'a History,
}

/// What waits and runs. Its root is `#unfinished`.
#[derive(Debug, Template)]
#[template(path = "runs/_unfinished.html")]
struct UnfinishedPart<'a> {
    history: &'a History,
}

/// What the page shows.
#[derive(Debug)]
pub struct History {
    /// In the order in which it will be done.
    doing: Vec<Doing>,
    running: usize,
    queued: usize,
    /// Newest first.
    ended: Vec<Line>,
    /// Where older runs are, if there are any.
    older: Option<String>,
    /// The page does not begin with the newest.
    before: Option<String>,
    /// Ids of the runs that the address says are ticked.
    ticked: Vec<String>,
    /// Those of them that this page does not list.
    elsewhere: Vec<Line>,
    scope: Scope,
}

impl History {
    async fn read(state: &AppState, place: &Place, scope: Scope) -> Result<Self> {
        let before = place.before();
        let (unfinished, running, queued) = match &before {
            None => unfinished(state).await?,
            Some(_) => (Vec::new(), 0, 0),
        };
        let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
        let mut ended = queries::ended(&state.db.read, before.as_deref(), limit).await?;
        let more = ended.len() > PAGE;
        ended.truncate(PAGE);
        let older = ended.last().filter(|_| more).map(|run| run.id.clone());
        let ticked = queries::by_ids(&state.db.read, &place.ticked()).await?;
        let marks = marks(state, &[&unfinished, &ended, &ticked]).await?;
        let is_here = |run: &Run| ended.iter().any(|other| other.id == run.id);
        Ok(Self {
            ticked: ticked.iter().map(|run| run.id.clone()).collect(),
            elsewhere: ticked.into_iter().filter(|run| !is_here(run)).map(|run| Line::new(run, &marks)).collect(),
            doing: doing(unfinished, &ended, &marks),
            running,
            queued,
            ended: ended.into_iter().map(|run| Line::new(run, &marks)).collect(),
            older,
            before,
            scope,
        })
    }

    /// Reads again only what moves from second to second.
    async fn refresh(&mut self, state: &AppState) -> Result<()> {
        let (unfinished, running, queued) = unfinished(state).await?;
        let ended: Vec<Run> = self.ended.iter().map(|line| line.run.clone()).collect();
        let marks = marks(state, &[&unfinished]).await?;
        self.doing = doing(unfinished, &ended, &marks);
        (self.running, self.queued) = (running, queued);
        Ok(())
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    fn is_empty(&self) -> bool {
        self.doing.is_empty() && self.ended.is_empty() && self.before.is_none() && self.elsewhere.is_empty()
    }

    /// How many wait without a line of their own.
    fn unseen(&self) -> usize {
        (self.running + self.queued).saturating_sub(self.doing.len())
    }

    fn is_ticked(&self, run: &Run) -> bool {
        self.ticked.contains(&run.id)
    }

    /// Where the page follows it: encoded so that it may stand in an expression.
    fn live_address(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(self.ticked.iter().map(|id| ("runs", id)))
            .finish();
        format!("/runs/live?{query}")
    }

    fn pace(&self) -> Pace {
        if self.running > 0 { Pace::Second } else { Pace::Minute }
    }
}

async fn unfinished(state: &AppState) -> Result<(Vec<Run>, usize, usize)> {
    let limit = i64::try_from(MOST_UNFINISHED).unwrap_or(i64::MAX);
    let (running, queued) = queries::unfinished_count(&state.db.read).await?;
    Ok((queries::unfinished(&state.db.read, limit).await?, running, queued))
}

async fn marks(state: &AppState, lists: &[&[Run]]) -> Result<Marks> {
    let targets: Vec<&str> = lists.iter().copied().flatten().map(|run| run.target.as_str()).collect();
    Ok(catalog::queries::marks(&state.db.read, &targets).await?)
}

/// How long a run takes is known from those of the same experiment.
fn doing(unfinished: Vec<Run>, ended: &[Run], marks: &Marks) -> Vec<Doing> {
    let now = now_ms();
    let line = |run: Run| {
        let of_same = |other: &&Run| run.experiment.is_some() && other.experiment == run.experiment;
        let others: Vec<&Run> = ended.iter().filter(of_same).collect();
        Doing::new(run, marks, &others, now)
    };
    unfinished.into_iter().map(line).collect()
}

/// Where a page begins, and what was ticked on the way there: ticks go along in the address.
#[derive(Debug, Default, Deserialize)]
pub struct Place {
    /// With the runs submitted before this one; with the newest if absent.
    before: Option<String>,
    /// Ids, separated by commas or one `runs` each.
    #[serde(default)]
    runs: Vec<String>,
}

impl Place {
    fn before(&self) -> Option<String> {
        self.before.clone().filter(|id| !id.is_empty())
    }

    fn ticked(&self) -> Vec<String> {
        self.runs.iter().flat_map(|part| part.split(',')).map(str::to_owned).collect()
    }
}

/// `GET /runs?before=ID&runs=…`
pub async fn history(
    Read(caller): Read,
    State(state): State<AppState>,
    Asked(place): Asked<Place>,
) -> Result<HistoryPage> {
    let history = History::read(&state, &place, caller.scope).await?;
    Ok(HistoryPage { shell: Shell::signed_in("Runs", Section::Runs, &caller.name), history })
}

/// The newest page as it changes.
pub async fn live(Read(caller): Read, State(state): State<AppState>, Asked(place): Asked<Place>) -> impl IntoResponse {
    let place = Place { before: None, ..place };
    let view = LiveHistory { state: state.clone(), place, scope: caller.scope, history: None };
    live::follow(&state, Concerns::Everything, view)
}

struct LiveHistory {
    state: AppState,
    place: Place,
    scope: Scope,
    /// As it was sent last.
    history: Option<History>,
}

impl View for LiveHistory {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let (history, patch) = match self.history.take() {
            Some(mut history) if beat == Beat::Time && history.pace() == Pace::Second => {
                history.refresh(&self.state).await?;
                let patch = live::patch(&UnfinishedPart { history: &history })?;
                (history, patch)
            }
            _ => {
                let history = History::read(&self.state, &self.place, self.scope).await?;
                let patch = live::patch(&HistoryPart { history: &history })?;
                (history, patch)
            }
        };
        let pace = history.pace();
        self.history = Some(history);
        Ok(Frame { patches: vec![patch], pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::made_up::{failed, finished, measuring};

    fn page(unfinished: Vec<Run>, ended: Vec<Run>, scope: Scope) -> String {
        ticked(unfinished, ended, &[], scope)
    }

    fn ticked(unfinished: Vec<Run>, ended: Vec<Run>, ticked: &[Run], scope: Scope) -> String {
        let marks = Marks::default();
        let history = History {
            running: unfinished.len(),
            queued: 0,
            doing: doing(unfinished, &ended, &marks),
            older: ended.last().map(|run| run.id.clone()),
            ended: ended.into_iter().map(|run| Line::new(run, &marks)).collect(),
            before: None,
            ticked: ticked.iter().map(|run| run.id.clone()).collect(),
            elsewhere: ticked
                .iter()
                .filter(|run| run.target == "old")
                .map(|run| Line::new(run.clone(), &marks))
                .collect(),
            scope,
        };
        let shell = Shell::signed_in("Runs", Section::Runs, "ada");
        HistoryPage { shell, history }.render().expect("it renders")
    }

    #[test]
    fn an_empty_history_says_how_to_fill_it() {
        let html = page(Vec::new(), Vec::new(), Scope::Submit);
        assert!(html.contains("make demo") && html.contains("brewbench run import FILE"), "{html}");
        assert!(!html.contains("<table"));
    }

    #[test]
    fn the_table_is_one_form_to_the_comparison() {
        let ended = vec![finished("servy", 2), failed("servy", "failed", "it died")];
        let html = ticked(Vec::new(), ended, &[finished("servy", 2), finished("old", 1)], Scope::Submit);
        assert!(html.contains(r#"<form id="choice" action="/compare" method="get">"#), "{html}");
        let box_of = |id: &str| {
            let at = html.find(&format!(r#"name="runs" value="{id}""#)).unwrap_or_else(|| panic!("{id} has no box"));
            html[at..].split('>').next().unwrap_or_default().to_owned()
        };
        assert!(!box_of("servy-1").contains(" checked") && box_of("servy-2").contains(" checked"));
        assert!(box_of("old-1").contains(" checked"), "what was ticked on another page is not lost");
        assert!(html.contains(r#"formaction="/runs" name="before" value="servy-1""#), "{html}");
        assert!(html.contains("/runs/live?runs=servy-2&#38;runs=old-1"), "{html}");
    }

    #[test]
    fn only_who_may_submit_sees_how_to_cancel() {
        let of = |scope| page(vec![measuring("servy")], Vec::new(), scope);
        assert!(of(Scope::Submit).contains(r#"href="/runs/servy-3/cancel""#));
        assert!(!of(Scope::Read).contains("/cancel"));
    }

    #[test]
    fn hostile_names_stay_text() {
        let name = "<script>alert(1)</script>";
        let mut run = finished(name, 1);
        run.scenario = Some(name.to_owned());
        run.agent = Some(name.to_owned());
        let html = page(vec![measuring(name)], vec![run], Scope::Submit);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
