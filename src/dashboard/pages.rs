//! `/`: what runs now, the latest results, problems, and trends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use brewbench_wire::now_ms;
use serde::Deserialize;
use tokio::sync::watch;

use super::{
    attention::{self, Item},
    first_steps::Steps,
    news,
    pinned::{self, Caches, Trends},
    running::Running,
};
use crate::{
    app::{
        alert_cache::ActiveAlert,
        error::{QueryParams, Result},
        state::AppState,
    },
    auth::{
        self,
        caller::{Caller, Read},
        model::Scope,
    },
    compare::gain::GainAxis,
    dashboard,
    experiments::{
        self,
        list::{self, Filter, ListedExperiment},
        race::Race,
    },
    fleet::{self, model::Agent, presence::Presence},
    settings::disk::Disk,
    web::{
        live::{self, Frame, Pace, Tick, Topic, View},
        live_shared,
        shell::{Section, Shell},
        time_ago,
    },
};

/// The cookie that holds the times of the last visits.
const VISITS_COOKIE: &str = "brewbench_looked";
/// Requests that are closer together belong to one visit.
const SAME_VISIT_MS: i64 = 30 * 60 * 1_000;
/// How far back a first visit looks.
const FIRST_VISIT_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum number of experiments.
const MAX_ROWS: i64 = 6;
/// The maximum number of runs without a result that are grouped by their cause.
const MAX_BROKEN: i64 = 200;
/// The maximum number of results that may not be reliable.
const MAX_DOUBTFUL: i64 = 20;
/// How far back results may not be reliable.
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// How often agents and disk are read during a run.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "dashboard/index.html")]
struct HomePage {
    shell: Shell,
    home: Home,
}

/// The content of the page, which live updates replace. Its root is `#home`.
#[derive(Debug, Template)]
#[template(path = "dashboard/_home.html")]
struct HomePart<'a> {
    home: &'a Home,
}

/// The bar of what is in progress. Its root is `#running`.
#[derive(Debug, Template)]
#[template(path = "dashboard/_running.html")]
struct RunningPart<'a> {
    home: &'a Home,
}

/// The targets of an experiment so far. Its root is `#race-ID`.
#[derive(Debug, Template)]
#[template(path = "experiments/_race.html")]
struct RacePart<'a> {
    race: &'a Race,
}

/// The data of the page.
#[derive(Debug)]
struct Home {
    since_ms: i64,
    since: String,
    news: String,
    running: Running,
    attention: Vec<Item>,
    /// How many more runs need attention.
    more_broken: usize,
    trends: Trends,
    /// The newest experiments.
    lines: Vec<ListedExperiment>,
    /// The axis of their differences.
    axis: Option<GainAxis>,
    /// The first steps while there are no runs at all; nothing else is shown then.
    steps: Option<Steps>,
    read_at: Instant,
}

/// What the page is read from.
#[derive(Clone, Debug)]
struct Source {
    state: AppState,
    presence: Presence,
    caches: Caches,
    caller: Caller,
    since_ms: i64,
}

impl Home {
    async fn read(source: &Source) -> Result<Self> {
        let Source { state, presence, caches, caller, since_ms } = source;
        let pool = &state.db.read;
        let agents = fleet::api::all(&state.db, presence).await?;
        let is_new = !dashboard::store::any_run(pool).await?;
        let steps = if is_new {
            let connected = agents.iter().filter(|agent| agent.state() == "connected");
            let names: Vec<&str> = connected.map(|agent| agent.name.as_str()).collect();
            Some(Steps::new(&names, dashboard::store::target_count(pool).await?))
        } else {
            None
        };
        let filter = Filter { after: None, label: None, limit: MAX_ROWS };
        let mut lines = list::lines(state, filter).await?;
        // What has no result is in the list of what needs attention, unless it was cancelled.
        lines.retain(|line| !line.progress.is_over() || line.progress.without_results < line.progress.total);
        // What was measured here comes first.
        lines.sort_by_key(ListedExperiment::is_imported);
        let ended = dashboard::store::ended(pool, *since_ms).await?;
        let (attention, more_broken) = source.attention(&agents).await?;
        Ok(Self {
            since_ms: *since_ms,
            since: news::since(*since_ms, now_ms()),
            news: news::describe(ended),
            running: Running::load(state).await?,
            attention,
            more_broken,
            trends: pinned::load(state, caches, caller).await?,
            axis: GainAxis::over(lines.iter().flat_map(ListedExperiment::headlines).filter_map(|one| one.gain)),
            lines,
            steps,
            read_at: Instant::now(),
        })
    }

    /// Returns when the previous visit was, in UTC.
    fn since_exactly(&self) -> String {
        time_ago::exact(Some(self.since_ms))
    }

    fn live_address(&self) -> String {
        format!("/dashboard/live?since={}", self.since_ms)
    }
}

impl Source {
    /// Lists what needs attention, the most urgent first, and counts the runs that are not listed.
    async fn attention(&self, agents: &[Agent]) -> Result<(Vec<Item>, usize)> {
        let Self { state, caller, since_ms, .. } = self;
        let pool = &state.db.read;
        let notices = auth::api::account::notices(state, caller).await?;
        let expiring = auth::api::tokens::expiring(state, caller).await?;
        let low = Disk::measure(&state.config.data).await.ok().filter(Disk::is_low);
        let away: Vec<_> = agents.iter().filter(|agent| agent.state() == "away").cloned().collect();
        let broken = dashboard::store::broken(pool, *since_ms, MAX_BROKEN).await?;
        let targets: Vec<&str> = broken.iter().map(|run| run.target.as_str()).collect();
        let marks = crate::catalog::store::marks(pool, &targets).await?;
        let (of_runs, more) = attention::of_runs(&broken, &marks);
        let mut doubtful = Vec::new();
        for id in dashboard::store::suspect(pool, now_ms() - WEEK_MS, MAX_DOUBTFUL).await? {
            if let Some(experiment) = experiments::store::find(pool, &id).await? {
                doubtful.push(list::line(state, experiment).await?);
            }
        }
        let may_submit = caller.scope >= Scope::Submit;
        let items = attention::of_account(&notices, &expiring)
            .into_iter()
            .chain(attention::of_site(&state.active_alerts.now(), low.as_ref(), &away))
            .chain(of_runs)
            .chain(attention::of_results(&doubtful, may_submit));
        Ok((items.collect(), more))
    }
}

/// Returns the time of the previous visit and the new value of the cookie: that time and the current one.
fn visit_times(cookie: Option<&str>, now: i64) -> (i64, String) {
    let remembered = cookie.and_then(|text| text.split_once('.'));
    let times = remembered.and_then(|(since, last)| Some((since.parse::<i64>().ok()?, last.parse::<i64>().ok()?)));
    let since = match times {
        Some((since, last)) if now - last < SAME_VISIT_MS => since,
        Some((_, last)) => last,
        None => now - FIRST_VISIT_MS,
    };
    let since = since.clamp(0, now);
    (since, format!("{since}.{now}"))
}

/// `GET /`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(caches): Extension<Caches>,
    jar: CookieJar,
) -> Result<Response> {
    let (since_ms, visits) = visit_times(jar.get(VISITS_COOKIE).map(Cookie::value), now_ms());
    let shell = Shell::signed_in("Dashboard", Section::Dashboard, &caller.name);
    let home = Home::read(&Source { state, presence, caches, caller, since_ms }).await?;
    let cookie = Cookie::build((VISITS_COOKIE, visits)).path("/").http_only(true).same_site(SameSite::Lax);
    let jar = jar.add(cookie.max_age(time::Duration::days(365)));
    Ok((jar, HomePage { shell, home }).into_response())
}

/// Query parameters of the live page.
#[derive(Debug, Deserialize)]
pub struct Since {
    /// When the previous visit was, unix ms.
    #[serde(default)]
    since: i64,
}

/// `GET /dashboard/live`: streams the changes of the page.
pub async fn live(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(caches): Extension<Caches>,
    QueryParams(Since { since }): QueryParams<Since>,
) -> Result<impl IntoResponse> {
    let (active_alerts, agents) = (state.active_alerts.listen(), state.events.agents());
    let (shared, name) = (state.clone(), caller.name.clone());
    let source = Source { state, presence, caches, caller, since_ms: since };
    // Pins are the user's, and results are counted since the last visit.
    let key = format!("dashboard {:?} {name:?} {since}", source.caller.user_id);
    let view = LiveHome { source, active_alerts, agents, home: None, is_whole: true };
    live_shared::follow(&shared, &name, key, Topic::Everything, view)
}

struct LiveHome {
    source: Source,
    /// Changes of the alerts, which are shown at once.
    active_alerts: watch::Receiver<Arc<[ActiveAlert]>>,
    /// Connects and disconnects of agents, as well.
    agents: watch::Receiver<u64>,
    /// The state that was last sent.
    home: Option<Home>,
    /// Whether that was everything.
    is_whole: bool,
}

impl View for LiveHome {
    async fn frame(&mut self, tick: Tick) -> Result<Frame> {
        let (patches, home) = match self.home.take() {
            Some(mut home) if tick == Tick::Time && home.read_at.elapsed() < REFRESH_INTERVAL => {
                home.running.tick(&self.source.state);
                self.is_whole = false;
                let races = home.running.races().map(|race| live::patch(&RacePart { race }));
                let bar = live::patch(&RunningPart { home: &home });
                (std::iter::once(bar).chain(races).collect::<Result<Vec<_>>>()?, home)
            }
            _ => {
                let home = Home::read(&self.source).await?;
                self.is_whole = true;
                (vec![live::patch(&HomePart { home: &home })?], home)
            }
        };
        let pace = if home.running.in_progress > 0 { Pace::Second } else { Pace::Minute };
        self.home = Some(home);
        Ok(Frame { patches, pace })
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }

    async fn news(&mut self) {
        let changed = tokio::select! {
            changed = self.active_alerts.changed() => changed,
            changed = self.agents.changed() => changed,
        };
        if changed.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;
    const NOW: i64 = 1_772_626_394_000;

    #[test]
    fn a_reload_continues_the_visit_and_a_later_visit_starts_at_the_last() {
        let (since, first) = visit_times(None, NOW);
        assert_eq!(since, NOW - FIRST_VISIT_MS);
        let (since, second) = visit_times(Some(&first), NOW + 1_000);
        assert_eq!(since, NOW - FIRST_VISIT_MS, "a reload loses no news");
        let (since, _) = visit_times(Some(&second), NOW + 8 * HOUR);
        assert_eq!(since, NOW + 1_000);
    }

    #[test]
    fn a_forged_cookie_is_harmless() {
        for odd in ["", ".", "x.y", "9999999999999999.1", "-5.-5", "1"] {
            let (since, _) = visit_times(Some(odd), NOW);
            assert!((0..=NOW).contains(&since), "{odd}");
        }
    }
}
