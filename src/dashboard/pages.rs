//! `/`: results since the last visit, current runs, problems.

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
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use sqlx::SqlitePool;
use tokio::sync::watch;

use crate::{
    app::{
        alert_cache::Notice,
        error::{Asked, Result},
        state::AppState,
    },
    auth::caller::Read,
    dashboard::{self, store::Ended},
    experiments::list::{self, Filter},
    fleet::{self, model::Agent, presence::Presence},
    runs::{
        model::Run,
        pages::{
            history::rate,
            row::{Doing, Line},
        },
    },
    settings::disk::Disk,
    web::{
        format,
        live::{self, Beat, Concerns, Frame, Pace, View},
        shell::{Section, Shell},
        time_ago::{self, Moment},
    },
};

/// The cookie that holds the times of the last visits.
const VISITS_COOKIE: &str = "brewbench_looked";
/// Requests that are closer together belong to one visit.
const SAME_VISIT_MS: i64 = 30 * 60 * 1_000;
/// How far back a first visit looks.
const FIRST_VISIT_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum number of rows in each list.
const MAX_ROWS: i64 = 6;

/// How often agents and disk are read, as no event reports their changes.
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

/// The data of the page.
#[derive(Debug)]
struct Home {
    since_ms: i64,
    /// Active alerts.
    notices: Arc<[Notice]>,
    doing: Vec<Doing>,
    running: usize,
    queued: usize,
    ended: Ended,
    broken: Vec<Line>,
    away: Vec<Agent>,
    connected: usize,
    experiments: Vec<list::Line>,
    /// The disk, if it is nearly full.
    low: Option<Disk>,
    /// Whether there are no runs at all.
    is_new: bool,
    /// The first steps, until a run has been measured.
    steps: Option<[Step; 3]>,
    read_at: Instant,
}

/// A step of a new installation.
#[derive(Debug)]
struct Step {
    is_done: bool,
    title: &'static str,
    text: &'static str,
    /// Address and label of the action.
    action: (&'static str, &'static str),
}

async fn first_steps(pool: &SqlitePool, is_connected: bool) -> Result<Option<[Step; 3]>> {
    if dashboard::store::any_measured(pool).await? {
        return Ok(None);
    }
    let has_target = dashboard::store::any_target(pool).await?;
    Ok(Some([
        Step {
            is_done: is_connected,
            title: "Agent connected",
            text: "An agent runs targets and load on a machine.",
            action: ("/agents", "Add agent"),
        },
        Step {
            is_done: has_target,
            title: "Target found",
            text: "A target is a server implementation that an agent can start.",
            action: ("/targets/new", "Add target"),
        },
        Step {
            is_done: false,
            title: "First comparison",
            text: "Measure two targets and see which one is faster.",
            action: ("/experiments/new", "New run"),
        },
    ]))
}

impl Home {
    async fn read(state: &AppState, presence: &Presence, since_ms: i64, known: &[list::Line]) -> Result<Self> {
        let pool = &state.db.read;
        let (running, queued) = crate::runs::store::unfinished_count(pool).await?;
        let unfinished = crate::runs::store::unfinished(&state.db.rows, MAX_ROWS).await?;
        let broken = dashboard::store::broken(pool, since_ms, MAX_ROWS).await?;
        let targets: Vec<&str> = unfinished.iter().map(|run| run.target.as_str()).collect();
        let marks = crate::catalog::store::marks(pool, &targets).await?;
        let now = now_ms();
        let all = fleet::api::all(&state.db, presence).await?;
        let connected = all.iter().filter(|agent| agent.state() == "connected").count();
        let notices = state.notices.now();
        // An agent with an alert is not listed again.
        let has_notice = |agent: &Agent| notices.iter().any(|notice| notice.subject == agent.name);
        let away = all.into_iter().filter(|agent| agent.state() == "away" && !has_notice(agent)).collect();
        let doing = |run: Run| {
            let rate = rate(state, &run);
            let mut doing = Doing::new(run, &marks, &[], now);
            doing.rate = rate;
            doing
        };
        Ok(Self {
            since_ms,
            doing: unfinished.into_iter().map(doing).collect(),
            running,
            queued,
            ended: dashboard::store::ended(pool, since_ms).await?,
            broken: crate::fleet::pages::lines(state, &broken).await?,
            away,
            notices,
            connected,
            experiments: list::lines(state, Filter { before: None, label: None, limit: MAX_ROWS }, known).await?,
            low: Disk::of(&state.config.data).await.ok().filter(Disk::is_low),
            is_new: !dashboard::store::any_run(pool).await?,
            steps: first_steps(pool, connected > 0).await?,
            read_at: Instant::now(),
        })
    }

    /// Updates the figures that change every second.
    fn tick(&mut self, state: &AppState) {
        let now = now_ms();
        for doing in &mut self.doing {
            let rate = rate(state, &doing.line.run);
            doing.refresh(&[], rate, now);
        }
    }

    fn since(&self) -> Moment {
        time_ago::ago(Some(self.since_ms))
    }

    /// Summarizes the runs that ended, as a clause.
    fn news(&self) -> String {
        let Ended { runs, without_figures, experiments } = self.ended;
        if runs == 0 {
            return "no runs ended".to_owned();
        }
        let invalid = match without_figures {
            0 => String::new(),
            count => format!("; {count} without valid results"),
        };
        let parts = match experiments {
            0 => String::new(),
            count => format!(" in {}", format::plural(count, "experiment")),
        };
        format!("{}{parts} ended{invalid}", format::plural(runs, "run"))
    }

    fn is_broken(&self) -> bool {
        !self.broken.is_empty() || !self.away.is_empty() || self.low.is_some()
    }

    fn waiting(&self) -> usize {
        (self.running + self.queued).saturating_sub(self.doing.len())
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
    jar: CookieJar,
) -> Result<Response> {
    let (since, visits) = visit_times(jar.get(VISITS_COOKIE).map(Cookie::value), now_ms());
    let home = Home::read(&state, &presence, since, &[]).await?;
    let cookie = Cookie::build((VISITS_COOKIE, visits)).path("/").http_only(true).same_site(SameSite::Lax);
    let jar = jar.add(cookie.max_age(time::Duration::days(365)));
    let page = HomePage { shell: Shell::signed_in("Dashboard", Section::Dashboard, &caller.name), home };
    Ok((jar, page).into_response())
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
    Asked(Since { since }): Asked<Since>,
) -> Result<impl IntoResponse> {
    let notices = state.notices.listen();
    let view = LiveHome { state: state.clone(), presence, since, notices, home: None };
    live::follow(&state, &caller.name, Concerns::Everything, view)
}

struct LiveHome {
    state: AppState,
    presence: Presence,
    since: i64,
    /// Changes of the alerts, which are shown at once.
    notices: watch::Receiver<Arc<[Notice]>>,
    /// The state that was last sent.
    home: Option<Home>,
}

impl View for LiveHome {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let home = match self.home.take() {
            Some(mut home) if beat == Beat::Time && home.read_at.elapsed() < REFRESH_INTERVAL => {
                home.tick(&self.state);
                home
            }
            before => {
                let known = before.map_or_else(Vec::new, |home| home.experiments);
                Home::read(&self.state, &self.presence, self.since, &known).await?
            }
        };
        let pace = if home.running > 0 { Pace::Second } else { Pace::Minute };
        let patch = live::patch(&HomePart { home: &home })?;
        self.home = Some(home);
        Ok(Frame { patches: vec![patch], pace })
    }

    async fn news(&mut self) {
        if self.notices.changed().await.is_err() {
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
