//! `/runs`: what waits and runs, and all that has ended.

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::IntoResponse};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use url::form_urlencoded;

use super::views::Views;
use crate::{
    app::{
        error::{Asked, Error, Result},
        ids::{self, RunId, joined},
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    live::feed::Rate,
    runs::{
        api::trash::regret_since,
        column::Column,
        filter::{Among, Filter, Wanted, address},
        model::Run,
        pages::{
            filters::Finder,
            row::{Doing, Line},
        },
        store::trash::{self, Deletion},
        view,
    },
    web::{
        live::{self, Beat, Concerns, Frame, Pace, View},
        series_style::Marks,
        shell::{Section, Shell},
        time_ago::{self, Moment},
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
    views: Views,
    finder: Finder,
    history: History,
}

/// All of it that changes. Its root is `#history`.
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
    wanted: Wanted,
    filter: Filter,
    columns: Vec<Column>,
    /// The columns were chosen.
    chosen: Option<String>,
    /// In the order in which it will be done.
    doing: Vec<Doing>,
    running: usize,
    queued: usize,
    /// In the order that is wanted; only what has ended, unless something is asked for.
    lines: Vec<Line>,
    /// Where the next page begins, if there is one.
    older: Option<RunId>,
    /// Ids of the runs that the address says are ticked.
    ticked: Vec<RunId>,
    /// Those of them that this page does not list.
    elsewhere: Vec<Line>,
    /// Filters without which something would be found.
    culprits: Vec<(String, String)>,
    /// What can still be brought back.
    deletions: Vec<Deletion>,
    scope: Scope,
}

impl History {
    async fn read(state: &AppState, wanted: &Wanted, place: &Place, scope: Scope) -> Result<Self> {
        let pool = &state.db.read;
        let mut filter = wanted.filter().map_err(Error::Invalid)?;
        let asks = !wanted.narrows().is_empty() || wanted.sorted().is_some();
        filter.among = if asks { Among::All } else { Among::Ended };
        let (unfinished, running, queued) =
            if asks || filter.before.is_some() { (Vec::new(), 0, 0) } else { unfinished(state).await? };
        let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
        let mut listed = crate::runs::store::list(&state.db.rows, &filter, limit).await?;
        let more = listed.len() > PAGE;
        listed.truncate(PAGE);
        let older = listed.last().filter(|_| more).map(|run| run.id.clone());
        let ticked = crate::runs::store::by_ids(&state.db.rows, &ids::listed(&place.runs)).await?;
        let marks = marks(state, &[&unfinished, &listed, &ticked]).await?;
        let columns = view::shown(&place.columns);
        let mut doing = doing(unfinished, &listed, &marks);
        for doing in &mut doing {
            doing.rate = rate(state, &doing.line.run);
        }
        let is_here = |run: &Run| listed.iter().any(|other| other.id == run.id);
        Ok(Self {
            culprits: if listed.is_empty() { culprits(state, wanted).await? } else { Vec::new() },
            deletions: if scope >= Scope::Submit { trash::deletions(pool, regret_since()).await? } else { Vec::new() },
            wanted: wanted.clone(),
            filter,
            chosen: view::chosen(&columns),
            columns,
            ticked: ticked.iter().map(|run| run.id.clone()).collect(),
            elsewhere: ticked.into_iter().filter(|run| !is_here(run)).map(|run| Line::new(run, &marks)).collect(),
            doing,
            running,
            queued,
            lines: listed.into_iter().map(|run| Line::new(run, &marks)).collect(),
            older,
            scope,
        })
    }

    /// Looks again at what moves from second to second; nothing of that is in the database.
    fn tick(&mut self, state: &AppState) {
        let (now, ended) = (now_ms(), &self.lines);
        for doing in &mut self.doing {
            let others = of_same(&doing.line.run, ended.iter().map(|line| &line.run));
            let rate = rate(state, &doing.line.run);
            doing.look_again(&others, rate, now);
        }
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Whether something is asked for besides everything.
    fn asks(&self) -> bool {
        self.filter.among == Among::All
    }

    /// Whether it does not begin at the beginning.
    fn is_later(&self) -> bool {
        self.filter.before.is_some()
    }

    fn is_empty(&self) -> bool {
        let nothing = self.doing.is_empty() && self.lines.is_empty() && self.elsewhere.is_empty();
        nothing && !self.asks() && !self.is_later() && self.deletions.is_empty()
    }

    fn is_ticked(&self, run: &Run) -> bool {
        self.ticked.contains(&run.id)
    }

    /// Runs that wait and have no line of their own.
    fn unseen(&self) -> usize {
        (self.running + self.queued).saturating_sub(self.doing.len())
    }

    /// A time, unix ms, as seen from now.
    pub fn when(&self, at_ms: &i64) -> Moment {
        time_ago::ago(Some(*at_ms))
    }

    /// What the address says of filters, order and columns, for whatever leads on from here.
    fn kept(&self) -> Vec<(&str, &str)> {
        view::kept(&self.wanted, self.chosen.as_deref())
    }

    /// Where the head of a column leads, if its order can be wanted.
    pub fn sorted_by(&self, column: &Column) -> Option<String> {
        let order = self.filter.order;
        let next = if order.column == *column { order.reversed() } else { column.order()? };
        let (key, ticked) = (next.key(), joined(&self.ticked));
        let mut pairs = self.wanted.narrows();
        pairs.push(("sort", &key));
        pairs.extend(self.chosen.as_deref().map(|columns| ("columns", columns)));
        if !ticked.is_empty() {
            pairs.push(("runs", &ticked));
        }
        Some(address("/runs", &pairs))
    }

    /// What a screen reader says of the head of a column.
    pub fn direction(&self, column: &Column) -> Option<&'static str> {
        (self.filter.order.column == *column).then(|| self.filter.order.first.aria())
    }

    /// Where the page follows the history. The query is encoded, so nothing in it can end the string of an expression.
    fn live_address(&self) -> String {
        let mut pairs = self.kept();
        pairs.extend(self.ticked.iter().map(|id| ("runs", id.as_str())));
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("/runs/live?{query}")
    }

    fn pace(&self) -> Pace {
        if self.running > 0 && !self.asks() { Pace::Second } else { Pace::Minute }
    }
}

async fn unfinished(state: &AppState) -> Result<(Vec<Run>, usize, usize)> {
    let limit = i64::try_from(MOST_UNFINISHED).unwrap_or(i64::MAX);
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    Ok((crate::runs::store::unfinished(&state.db.rows, limit).await?, running, queued))
}

/// The filters that alone keep everything out, each with the address without it.
async fn culprits(state: &AppState, wanted: &Wanted) -> Result<Vec<(String, String)>> {
    let mut culprits = Vec::new();
    for chip in crate::runs::pages::filters::chips(wanted, None) {
        let filter = wanted.without(chip.name).filter().map_err(Error::Invalid)?;
        if !crate::runs::store::list(&state.db.rows, &filter, 1).await?.is_empty() {
            culprits.push((chip.text, chip.without));
        }
    }
    Ok(culprits)
}

async fn marks(state: &AppState, lists: &[&[Run]]) -> Result<Marks> {
    let targets: Vec<&str> = lists.iter().copied().flatten().map(|run| run.target.as_str()).collect();
    Ok(crate::catalog::store::marks(&state.db.read, &targets).await?)
}

/// How long a run takes is known from those of the same experiment.
fn doing(unfinished: Vec<Run>, ended: &[Run], marks: &Marks) -> Vec<Doing> {
    let now = now_ms();
    let line = |run: Run| {
        let others = of_same(&run, ended.iter());
        Doing::new(run, marks, &others, now)
    };
    unfinished.into_iter().map(line).collect()
}

/// Those of the same experiment.
fn of_same<'a>(run: &Run, ended: impl Iterator<Item = &'a Run>) -> Vec<&'a Run> {
    ended.filter(|other| run.experiment.is_some() && other.experiment == run.experiment).collect()
}

/// How fast a run is now.
pub fn rate(state: &AppState, run: &Run) -> Option<Rate> {
    run.id.to_wire().ok().and_then(|id| state.underway.rate(id))
}

/// What an address says beside the filters: ticks go along from page to page, and so do columns.
#[derive(Debug, Default, Deserialize)]
pub struct Place {
    /// Ids, separated by commas or one `runs` each.
    #[serde(default)]
    runs: Vec<String>,
    /// Keys, separated by commas or one `columns` each; the usual ones if absent.
    #[serde(default)]
    columns: Vec<String>,
}

/// `GET /runs?target=…&sort=…&columns=…&before=ID&runs=…`
pub async fn history(
    Read(caller): Read,
    State(state): State<AppState>,
    Asked(wanted): Asked<Wanted>,
    Asked(place): Asked<Place>,
) -> Result<HistoryPage> {
    let history = History::read(&state, &wanted, &place, caller.scope).await?;
    let values = state.values.read(&state.db.rows).await?;
    let chosen = history.chosen.as_deref();
    let finder = Finder::new(&wanted, values, history.columns.clone(), chosen);
    let views = Views::read(&state, &wanted, chosen, caller.scope).await?;
    Ok(HistoryPage { shell: Shell::signed_in("Runs", Section::Runs, &caller.name), views, finder, history })
}

/// The first page as it changes.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Asked(wanted): Asked<Wanted>,
    Asked(place): Asked<Place>,
) -> Result<impl IntoResponse> {
    let wanted = Wanted { before: None, ..wanted };
    let view = LiveHistory { state: state.clone(), wanted, place, scope: caller.scope, history: None };
    live::follow(&state, &caller.name, Concerns::Everything, view)
}

struct LiveHistory {
    state: AppState,
    wanted: Wanted,
    place: Place,
    scope: Scope,
    /// As it was sent last.
    history: Option<History>,
}

impl View for LiveHistory {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let (history, patch) = match self.history.take() {
            Some(mut history) if beat == Beat::Time && history.pace() == Pace::Second => {
                history.tick(&self.state);
                let patch = live::patch(&UnfinishedPart { history: &history })?;
                (history, patch)
            }
            _ => {
                let history = History::read(&self.state, &self.wanted, &self.place, self.scope).await?;
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
    use crate::runs::{
        column,
        store::values::Values,
        testing::{failed, finished, measuring},
    };

    fn page(unfinished: Vec<Run>, ended: Vec<Run>, scope: Scope) -> String {
        ticked(unfinished, ended, &[], scope)
    }

    fn ticked(unfinished: Vec<Run>, ended: Vec<Run>, ticked: &[Run], scope: Scope) -> String {
        let marks = Marks::default();
        let history = History {
            wanted: Wanted::default(),
            filter: Filter { among: Among::Ended, ..Filter::default() },
            columns: column::USUAL.to_vec(),
            chosen: None,
            culprits: Vec::new(),
            deletions: Vec::new(),
            running: unfinished.len(),
            queued: 0,
            doing: doing(unfinished, &ended, &marks),
            older: ended.last().map(|run| run.id.clone()),
            lines: ended.into_iter().map(|run| Line::new(run, &marks)).collect(),
            ticked: ticked.iter().map(|run| run.id.clone()).collect(),
            elsewhere: ticked
                .iter()
                .filter(|run| run.target == "old")
                .map(|run| Line::new(run.clone(), &marks))
                .collect(),
            scope,
        };
        let shell = Shell::signed_in("Runs", Section::Runs, "ada");
        let finder = Finder::new(&Wanted::default(), Values::default(), column::USUAL.to_vec(), None);
        let views = Views::of(Vec::new(), String::new(), scope);
        HistoryPage { shell, views, finder, history }.render().expect("it renders")
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
