//! `/runs`: queued and running runs, and the history.

use std::collections::HashSet;

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::IntoResponse};
use brewbench_wire::now_ms;
use serde::Deserialize;
use url::form_urlencoded;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::{self, ExperimentId, RunId, joined},
        paging,
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    live::feed::{LiveFeed, Rate},
    runs::{
        api::trash::restorable_since,
        column::Column,
        filter::{Filter, RunQuery, RunScope, address},
        model::Run,
        pages::{
            filters::Finder,
            groups::{HistoryRow, RunGroup},
            row::{ListedRun, RunProgress},
        },
        store::{
            groups::{self, GroupedPage},
            trash::{self, Deletion},
            values::LastValues,
        },
        view,
    },
    web::{
        live::{self, Frame, Pace, Tick, Topic, View},
        live_shared,
        series_style::Marks,
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

const PAGE: u32 = 50;

/// Maximum number of unfinished runs shown; the rest is counted.
const MAX_UNFINISHED: usize = 8;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/index.html")]
pub struct HistoryPage {
    shell: Shell,
    finder: Finder,
    history: History,
}

/// The part of the page that changes. Its root is `#history`.
#[derive(Debug, Template)]
#[template(path = "runs/_history.html")]
struct HistoryPart<'a> {
    history: &'a History,
}

/// Queued and running runs. Its root is `#unfinished`.
#[derive(Debug, Template)]
#[template(path = "runs/_active.html")]
struct UnfinishedPart<'a> {
    history: &'a History,
}

/// The content of the page.
#[derive(Debug)]
pub struct History {
    query: RunQuery,
    filter: Filter,
    columns: Vec<Column>,
    /// Keys of the columns, unless they are the default.
    column_keys: Option<String>,
    /// Unfinished runs in order of execution.
    progress: Vec<RunProgress>,
    running: usize,
    queued: usize,
    /// Runs in the requested order; ended ones by experiment unless the list is filtered or sorted.
    groups: Vec<RunGroup>,
    /// Experiments whose runs are listed one by one.
    open: Vec<ExperimentId>,
    /// The last run of this page, if there is a next page.
    older: Option<RunId>,
    /// Ids of the ticked runs in the address.
    ticked: Vec<RunId>,
    /// Ticked runs that are not on this page.
    elsewhere: Vec<ListedRun>,
    /// Filters that, removed alone, would leave results.
    culprits: Vec<(String, String)>,
    /// Deletions that can still be undone.
    deletions: Vec<Deletion>,
    scope: Scope,
}

impl History {
    async fn read(state: &AppState, query: &RunQuery, place: &HistoryQuery, scope: Scope) -> Result<Self> {
        let pool = &state.db.read;
        let mut filter = query.filter().map_err(Error::Invalid)?;
        let asks = !query.filters().is_empty() || query.sorted().is_some();
        filter.scope = if asks { RunScope::All } else { RunScope::Ended };
        let (unfinished, running, queued) =
            if asks || filter.after.is_some() { (Vec::new(), 0, 0) } else { unfinished(state).await? };
        let GroupedPage { runs: listed, names, next: older } = if asks {
            flat(state, &filter).await?
        } else {
            groups::page(&state.db.rows, filter.after.as_ref()).await?
        };
        let ticked = crate::runs::store::by_ids(&state.db.rows, &ids::listed(&place.runs)).await?;
        let marks = marks(state, &[&unfinished, &listed, &ticked]).await?;
        let columns = view::columns_of(&place.columns);
        let mut progress = progress(unfinished, &listed, &marks);
        for progress in &mut progress {
            progress.rate = rate(state, &progress.line.run);
        }
        let is_empty = listed.is_empty();
        let open: Vec<ExperimentId> = ids::listed(&place.open);
        let groups = if asks {
            vec![RunGroup::flat(listed, &marks)]
        } else {
            RunGroup::by_experiment(listed, &names, &open, &marks)
        };
        let selected: Vec<RunId> = ticked.iter().map(|run| run.id.clone()).collect();
        let shown = groups.iter().flat_map(|group| &group.rows).filter(|row| row.is_ticked(&selected));
        let shown: HashSet<&RunId> = shown.flat_map(HistoryRow::runs).map(|run| &run.id).collect();
        let elsewhere = ticked.into_iter().filter(|run| !shown.contains(&run.id));
        let elsewhere = elsewhere.map(|run| ListedRun::new(run, &marks)).collect();
        Ok(Self {
            culprits: if is_empty { culprits(state, query).await? } else { Vec::new() },
            deletions: if scope >= Scope::Submit {
                trash::deletions(pool, restorable_since()).await?
            } else {
                Vec::new()
            },
            query: query.clone(),
            filter,
            column_keys: view::column_keys(&columns),
            columns,
            ticked: selected,
            elsewhere,
            progress,
            running,
            queued,
            groups,
            open,
            older,
            scope,
        })
    }

    /// Updates progress, which is in memory only.
    fn tick(&mut self, state: &AppState) {
        let now = now_ms();
        for progress in &mut self.progress {
            let ended = self.groups.iter().flat_map(|group| &group.rows).flat_map(HistoryRow::runs);
            let others = of_same_experiment(&progress.line.run, ended);
            let rate = rate(state, &progress.line.run);
            progress.refresh(&others, rate, now);
        }
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Whether the list is filtered or sorted.
    fn asks(&self) -> bool {
        self.filter.scope == RunScope::All
    }

    /// Whether this is not the first page.
    fn is_later(&self) -> bool {
        self.filter.after.is_some()
    }

    fn is_empty(&self) -> bool {
        let nothing = self.progress.is_empty() && self.has_no_rows() && self.elsewhere.is_empty();
        nothing && !self.asks() && !self.is_later() && self.deletions.is_empty()
    }

    fn has_no_rows(&self) -> bool {
        self.groups.iter().all(|group| group.rows.is_empty())
    }

    fn is_ticked(&self, row: &HistoryRow) -> bool {
        row.is_ticked(&self.ticked)
    }

    /// The value of the button that lists the runs of an experiment, or no longer does.
    fn toggled(&self, id: &ExperimentId) -> String {
        let is_open = self.open.contains(id);
        let others = self.open.iter().filter(|other| *other != id);
        others.chain([id].into_iter().filter(|_| !is_open)).map(ExperimentId::as_str).collect::<Vec<_>>().join(",")
    }

    /// Number of unfinished runs without a line.
    fn unseen(&self) -> usize {
        (self.running + self.queued).saturating_sub(self.progress.len())
    }

    /// A time, unix ms, relative to now.
    pub fn when(&self, at_ms: &i64) -> RelativeTime {
        time_ago::ago(Some(*at_ms))
    }

    /// Query parameters of filters, order and columns, for links from this page.
    fn pairs(&self) -> Vec<(&str, &str)> {
        view::pairs(&self.query, self.column_keys.as_deref())
    }

    /// The address of a column heading, if the column is sortable.
    pub fn sorted_by(&self, column: &Column) -> Option<String> {
        let order = self.filter.order;
        let next = if order.column == *column { order.reversed() } else { column.order()? };
        let (key, ticked) = (next.key(), joined(&self.ticked));
        let mut pairs = self.query.filters();
        pairs.push(("sort", &key));
        pairs.extend(self.column_keys.as_deref().map(|columns| ("columns", columns)));
        if !ticked.is_empty() {
            pairs.push(("runs", &ticked));
        }
        Some(address("/runs", &pairs))
    }

    /// The `aria-sort` value of a column heading.
    pub fn direction(&self, column: &Column) -> Option<&'static str> {
        (self.filter.order.column == *column).then(|| self.filter.order.first.aria())
    }

    /// The address of the live stream. The query is encoded, so nothing in it can end the string of an expression.
    fn live_address(&self) -> String {
        let mut pairs = self.pairs();
        pairs.extend(self.ticked.iter().map(|id| ("runs", id.as_str())));
        pairs.extend(self.open.iter().map(|id| ("open", id.as_str())));
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("/runs/live?{query}")
    }

    fn pace(&self) -> Pace {
        if self.running > 0 && !self.asks() { Pace::Second } else { Pace::Minute }
    }
}

/// Returns a page of a list that is filtered or sorted.
async fn flat(state: &AppState, filter: &Filter) -> Result<GroupedPage> {
    let mut runs = crate::runs::store::list(&state.db.rows, filter, i64::from(PAGE) + 1).await?;
    let next = paging::cut(&mut runs, PAGE).map(|run| run.id.clone());
    Ok(GroupedPage { runs, next, ..GroupedPage::default() })
}

async fn unfinished(state: &AppState) -> Result<(Vec<Run>, usize, usize)> {
    let limit = i64::try_from(MAX_UNFINISHED).unwrap_or(i64::MAX);
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    Ok((crate::runs::store::unfinished(&state.db.rows, limit).await?, running, queued))
}

/// Returns the filters that, removed alone, would leave results, each with the address without it.
async fn culprits(state: &AppState, query: &RunQuery) -> Result<Vec<(String, String)>> {
    let mut culprits = Vec::new();
    for chip in crate::runs::pages::filters::chips(query, None) {
        let filter = query.without(chip.name).filter().map_err(Error::Invalid)?;
        if !crate::runs::store::list(&state.db.rows, &filter, 1).await?.is_empty() {
            culprits.push((chip.text, chip.without));
        }
    }
    Ok(culprits)
}

async fn marks(state: &AppState, lists: &[&[Run]]) -> Result<Marks> {
    let targets: Vec<&str> = lists.iter().copied().flatten().map(|run| run.spec.target.as_str()).collect();
    Ok(crate::catalog::store::marks(&state.db.read, &targets).await?)
}

/// Estimates progress from ended runs of the same experiment.
fn progress(unfinished: Vec<Run>, ended: &[Run], marks: &Marks) -> Vec<RunProgress> {
    let now = now_ms();
    let line = |run: Run| {
        let others = of_same_experiment(&run, ended.iter());
        RunProgress::new(run, marks, &others, now)
    };
    unfinished.into_iter().map(line).collect()
}

/// Returns the runs of the same experiment.
fn of_same_experiment<'a>(run: &Run, ended: impl Iterator<Item = &'a Run>) -> Vec<&'a Run> {
    ended.filter(|other| run.experiment.is_some() && other.experiment == run.experiment).collect()
}

/// Returns the current throughput of a run.
pub fn rate(state: &AppState, run: &Run) -> Option<Rate> {
    run.id.to_wire().ok().and_then(|id| state.memory::<LiveFeed>().rate(id))
}

/// Query parameters beside the filters: ticked runs and columns, kept from page to page, and open experiments.
#[derive(Debug, Default, Deserialize)]
pub struct HistoryQuery {
    /// Ids of ticked runs, comma-separated or in repeated `runs` parameters.
    #[serde(default)]
    runs: Vec<String>,
    /// Keys of columns, comma-separated or in repeated `columns` parameters; the defaults if absent.
    #[serde(default)]
    columns: Vec<String>,
    /// Ids of experiments whose runs are listed one by one.
    #[serde(default)]
    open: Vec<String>,
}

/// `GET /runs?target=…&sort=…&columns=…&after=ID&runs=…`
pub async fn history(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<RunQuery>,
    QueryParams(place): QueryParams<HistoryQuery>,
) -> Result<HistoryPage> {
    let history = History::read(&state, &query, &place, caller.scope).await?;
    let values = state.memory::<LastValues>().read(&state.db.rows).await?;
    let column_keys = history.column_keys.as_deref();
    let finder = Finder::new(&query, values, history.columns.clone(), column_keys);
    Ok(HistoryPage { shell: Shell::signed_in("Runs", Section::Runs, &caller.name), finder, history })
}

/// The live stream of the first page.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<RunQuery>,
    QueryParams(place): QueryParams<HistoryQuery>,
) -> Result<impl IntoResponse> {
    let query = RunQuery { after: None, ..query };
    let key = format!("runs {query:?} {place:?} {}", caller.scope.as_str());
    let view = LiveHistory { state: state.clone(), query, place, scope: caller.scope, history: None, is_whole: true };
    live_shared::follow(&state, &caller.name, key, Topic::Everything, view)
}

struct LiveHistory {
    state: AppState,
    query: RunQuery,
    place: HistoryQuery,
    scope: Scope,
    /// The content that was sent last.
    history: Option<History>,
    /// Whether that was everything.
    is_whole: bool,
}

impl View for LiveHistory {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        let (history, patch) = match self.history.take() {
            Some(mut history) if tick == Tick::Time && history.pace() == Pace::Second => {
                history.tick(&self.state);
                self.is_whole = false;
                let patch = live::patch(&UnfinishedPart { history: &history })?;
                (history, patch)
            }
            _ => {
                let history = History::read(&self.state, &self.query, &self.place, self.scope).await?;
                self.is_whole = true;
                let patch = live::patch(&HistoryPart { history: &history })?;
                (history, patch)
            }
        };
        let pace = history.pace();
        self.history = Some(history);
        Ok(Frame { patches: vec![patch], pace })
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }
}

#[cfg(test)]
mod tests;
