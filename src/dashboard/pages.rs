//! `/`: what happened since somebody last looked, what runs, what is broken.

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
use tokio::sync::watch;

use crate::{
    app::{
        alert_cache::Notice,
        error::{Asked, Result},
        state::AppState,
    },
    auth::caller::Read,
    dashboard::{self, store::Ended},
    experiments::list::{self, Which},
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

/// The cookie that remembers when somebody looked.
const LOOKED: &str = "brewbench_looked";
/// Looks that are closer together are one.
const ONE_LOOK_MS: i64 = 30 * 60 * 1_000;
/// So far back goes whoever looks for the first time.
const FIRST_LOOK_MS: i64 = 24 * 60 * 60 * 1_000;
/// So many of what runs, of what broke and of what was asked for are shown.
const MOST: i64 = 6;

/// Agents that come and go and a disk that fills up are no changes of runs: they are looked at this often.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "dashboard/index.html")]
struct HomePage {
    shell: Shell,
    home: Home,
}

/// All of it but what surrounds it. Its root is `#home`.
#[derive(Debug, Template)]
#[template(path = "dashboard/_home.html")]
struct HomePart<'a> {
    home: &'a Home,
}

/// What the page shows.
#[derive(Debug)]
struct Home {
    since_ms: i64,
    /// What somebody should look at.
    notices: Arc<[Notice]>,
    doing: Vec<Doing>,
    running: usize,
    queued: usize,
    ended: Ended,
    broken: Vec<Line>,
    away: Vec<Agent>,
    connected: usize,
    experiments: Vec<list::Line>,
    /// Only when it is low.
    low: Option<Disk>,
    /// Whether there has ever been a run.
    is_new: bool,
    read_at: Instant,
}

impl Home {
    async fn read(state: &AppState, presence: &Presence, since_ms: i64, known: &[list::Line]) -> Result<Self> {
        let pool = &state.db.read;
        let (running, queued) = crate::runs::store::unfinished_count(pool).await?;
        let unfinished = crate::runs::store::unfinished(&state.db.rows, MOST).await?;
        let broken = dashboard::store::broken(pool, since_ms, MOST).await?;
        let targets: Vec<&str> = unfinished.iter().map(|run| run.target.as_str()).collect();
        let marks = crate::catalog::store::marks(pool, &targets).await?;
        let now = now_ms();
        let all = fleet::api::all(&state.db, presence).await?;
        let connected = all.iter().filter(|agent| agent.state() == "connected").count();
        let notices = state.notices.now();
        // Who is told above is not told once more.
        let is_told = |agent: &Agent| notices.iter().any(|notice| notice.subject == agent.name);
        let away = all.into_iter().filter(|agent| agent.state() == "away" && !is_told(agent)).collect();
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
            experiments: list::lines(state, Which { before: None, label: None, limit: MOST }, known).await?,
            low: Disk::of(&state.config.data).await.ok().filter(Disk::is_low),
            is_new: !dashboard::store::any_run(pool).await?,
            read_at: Instant::now(),
        })
    }

    /// Looks again at what moves from second to second.
    fn tick(&mut self, state: &AppState) {
        let now = now_ms();
        for doing in &mut self.doing {
            let rate = rate(state, &doing.line.run);
            doing.look_again(&[], rate, now);
        }
    }

    fn since(&self) -> Moment {
        time_ago::ago(Some(self.since_ms))
    }

    /// What happened, in one sentence.
    fn news(&self) -> String {
        let Ended { runs, without_figures, experiments } = self.ended;
        if runs == 0 {
            return "nothing has ended".to_owned();
        }
        let doubts = match without_figures {
            0 => String::new(),
            count => format!(", {count} of them without figures that count"),
        };
        let parts = match experiments {
            0 => String::new(),
            count => format!(" of {}", format::plural(count, "experiment")),
        };
        let verb = if runs == 1 { "has" } else { "have" };
        format!("{}{parts} {verb} ended{doubts}", format::plural(runs, "run"))
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

/// Since when somebody has not looked, and what their browser is to remember: when that was and when they look now.
fn looked(cookie: Option<&str>, now: i64) -> (i64, String) {
    let remembered = cookie.and_then(|text| text.split_once('.'));
    let times = remembered.and_then(|(since, last)| Some((since.parse::<i64>().ok()?, last.parse::<i64>().ok()?)));
    let since = match times {
        Some((since, last)) if now - last < ONE_LOOK_MS => since,
        Some((_, last)) => last,
        None => now - FIRST_LOOK_MS,
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
    let (since, remember) = looked(jar.get(LOOKED).map(Cookie::value), now_ms());
    let home = Home::read(&state, &presence, since, &[]).await?;
    let cookie = Cookie::build((LOOKED, remember)).path("/").http_only(true).same_site(SameSite::Lax);
    let jar = jar.add(cookie.max_age(time::Duration::days(365)));
    let page = HomePage { shell: Shell::signed_in("Dashboard", Section::Dashboard, &caller.name), home };
    Ok((jar, page).into_response())
}

/// What an address says.
#[derive(Debug, Deserialize)]
pub struct Since {
    /// Unix ms.
    #[serde(default)]
    since: i64,
}

/// The page as it changes.
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
    /// Alerts are shown at once.
    notices: watch::Receiver<Arc<[Notice]>>,
    /// As it was sent last.
    home: Option<Home>,
}

impl View for LiveHome {
    async fn frame(&mut self, beat: Beat) -> Result<Frame> {
        let home = match self.home.take() {
            Some(mut home) if beat == Beat::Time && home.read_at.elapsed() < READ_AGAIN => {
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
    fn looks_close_together_are_one_and_a_later_one_goes_back_to_the_last() {
        let (since, first) = looked(None, NOW);
        assert_eq!(since, NOW - FIRST_LOOK_MS);
        let (since, second) = looked(Some(&first), NOW + 1_000);
        assert_eq!(since, NOW - FIRST_LOOK_MS, "a reload loses no news");
        let (since, _) = looked(Some(&second), NOW + 8 * HOUR);
        assert_eq!(since, NOW + 1_000);
    }

    #[test]
    fn a_cookie_that_somebody_made_up_does_no_harm() {
        for odd in ["", ".", "x.y", "9999999999999999.1", "-5.-5", "1"] {
            let (since, _) = looked(Some(odd), NOW);
            assert!((0..=NOW).contains(&since), "{odd}");
        }
    }
}
