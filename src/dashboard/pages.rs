//! `/`: results since the last visit, current runs, pinned trends, problems.

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
    pinned::{self, Pinned},
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
    },
    dashboard,
    experiments::list::{self, Filter},
    fleet::{self, presence::Presence},
    settings::disk::Disk,
    trends::pins::TrendCache,
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
/// The maximum number of runs that need attention.
const MAX_BROKEN: i64 = 5;

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

/// The runs in progress. Its root is `#running`.
#[derive(Debug, Template)]
#[template(path = "dashboard/_running.html")]
struct RunningPart<'a> {
    running: &'a Running,
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
    pinned: Vec<Pinned>,
    experiments: Vec<list::ListedExperiment>,
    /// Whether there are no runs at all.
    is_new: bool,
    /// The first steps, until the visit after the first measured run.
    steps: Option<Steps>,
    read_at: Instant,
}

/// What the page is read from.
#[derive(Clone, Debug)]
struct Source {
    state: AppState,
    presence: Presence,
    trends: TrendCache,
    caller: Caller,
    since_ms: i64,
}

impl Home {
    async fn read(source: &Source, known: &[list::ListedExperiment]) -> Result<Self> {
        let Source { state, presence, trends, caller, since_ms } = source;
        let pool = &state.db.read;
        let agents = fleet::api::all(&state.db, presence).await?;
        let in_state = |word: &'static str| agents.iter().filter(move |agent| agent.state() == word);
        let connected: Vec<&str> = in_state("connected").map(|agent| agent.name.as_str()).collect();
        let away: Vec<_> = in_state("away").cloned().collect();
        let ended = dashboard::store::ended(pool, *since_ms).await?;
        let broken = dashboard::store::broken(pool, *since_ms, MAX_BROKEN).await?;
        let broken = fleet::pages::lines(state, &broken).await?;
        let notices = auth::api::account::notices(state, caller).await?;
        let expiring = auth::api::tokens::expiring(state, caller).await?;
        let account = attention::of_account(&notices, &expiring);
        let low = Disk::measure(&state.config.data).await.ok().filter(Disk::is_low);
        let filter = Filter { before: None, label: None, limit: MAX_ROWS };
        let experiments = list::lines(state, filter, known).await?;
        let has_comparison =
            experiments.iter().any(|line| line.outcome.as_ref().is_some_and(|outcome| outcome.differences.is_some()));
        let first = dashboard::store::first_measured_at(pool).await?;
        let steps = match first {
            Some(first) if first < *since_ms => None,
            _ => Some(Steps::new(&connected, dashboard::store::target_count(pool).await?, has_comparison)),
        };
        Ok(Self {
            since_ms: *since_ms,
            since: news::since(*since_ms, now_ms()),
            news: news::describe(ended),
            running: Running::load(state, connected.len()).await?,
            more_broken: (ended.invalid + ended.failed + ended.lost).saturating_sub(broken.len()),
            attention: attention::list(account, &state.active_alerts.now(), low.as_ref(), &away, &broken),
            pinned: pinned::load(state, trends, caller).await?,
            experiments,
            is_new: !dashboard::store::any_run(pool).await?,
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
    Extension(trends): Extension<TrendCache>,
    jar: CookieJar,
) -> Result<Response> {
    let (since_ms, visits) = visit_times(jar.get(VISITS_COOKIE).map(Cookie::value), now_ms());
    let shell = Shell::signed_in("Dashboard", Section::Dashboard, &caller.name);
    let home = Home::read(&Source { state, presence, trends, caller, since_ms }, &[]).await?;
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
    Extension(trends): Extension<TrendCache>,
    QueryParams(Since { since }): QueryParams<Since>,
) -> Result<impl IntoResponse> {
    let (active_alerts, agents) = (state.active_alerts.listen(), state.events.agents());
    let (shared, name) = (state.clone(), caller.name.clone());
    let source = Source { state, presence, trends, caller, since_ms: since };
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
        let (patch, home) = match self.home.take() {
            Some(mut home) if tick == Tick::Time && home.read_at.elapsed() < REFRESH_INTERVAL => {
                home.running.tick(&self.source.state);
                self.is_whole = false;
                (live::patch(&RunningPart { running: &home.running })?, home)
            }
            before => {
                let known = before.map_or_else(Vec::new, |home| home.experiments);
                let home = Home::read(&self.source, &known).await?;
                self.is_whole = true;
                (live::patch(&HomePart { home: &home })?, home)
            }
        };
        let pace = if home.running.in_progress > 0 { Pace::Second } else { Pace::Minute };
        self.home = Some(home);
        Ok(Frame { patches: vec![patch], pace })
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
