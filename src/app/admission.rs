//! How many pages are worked on at a time. Under overload a bounded number waits and the rest is turned away at once, so
//! that those who are let in are answered soon, and agents, uploads, sign-ins and probes find the server free.
//!
//! Only reading is limited: who writes is limited by tokens, body sizes and the one connection that writes. A place is given
//! back with the head of the answer, so a stream that lasts for hours takes none.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use axum::{
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::app::error::Error;

/// Nobody waits longer than this for a place.
const PATIENCE: Duration = Duration::from_secs(1);

/// When to try again, seconds.
const WAIT_S: u64 = 2;

/// For each place, so many may wait. What they wait for takes milliseconds.
const WAITING: usize = 64;

/// What takes no place: agents, probes, and whoever signs in or out.
const OPEN: [&str; 9] = [
    "/api/v1/agent/",
    "/api/v1/auth/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/login",
    "/logout",
    "/register",
    "/confirm",
];

/// What reads many runs at once, or computes long.
const COSTLY: [&str; 10] = [
    "/compare",
    "/gate",
    "/shared/",
    "/trends/",
    "/experiments/",
    "/api/v1/compare/",
    "/api/v1/report",
    "/api/v1/trends/",
    "/api/v1/experiments/",
    "/api/v1/runs/export",
];

/// The places of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Admission(Arc<Lanes>);

#[derive(Debug)]
struct Lanes {
    ordinary: Lane,
    costly: Lane,
}

/// Those who share a number of places.
#[derive(Debug)]
struct Lane {
    /// Places and waiting room.
    all: Semaphore,
    places: Semaphore,
}

impl Lane {
    fn new(places: usize) -> Self {
        Self { all: Semaphore::new(places * (1 + WAITING)), places: Semaphore::new(places) }
    }

    /// A place, in the order of arrival; none if there is no room to wait, or it takes too long.
    async fn enter(&self) -> Option<[SemaphorePermit<'_>; 2]> {
        let room = self.all.try_acquire().ok()?;
        let place = timeout(PATIENCE, self.places.acquire()).await.ok()?.ok()?;
        Some([room, place])
    }
}

impl Default for Admission {
    /// Twice as many pages as cores, since they wait for the database in between; of costly ones, which compute, as many as
    /// cores.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Lanes { ordinary: Lane::new(2 * cores), costly: Lane::new(cores) }))
    }
}

impl Admission {
    fn lane(&self, method: &Method, path: &str) -> Option<&Lane> {
        let among = |paths: &[&str]| paths.iter().any(|start| path.starts_with(start));
        if !matches!(*method, Method::GET | Method::HEAD) || among(&OPEN) {
            None
        } else if among(&COSTLY) {
            Some(&self.0.costly)
        } else {
            Some(&self.0.ordinary)
        }
    }
}

/// Middleware: works on a request as soon as there is a place, or says when to come again.
pub async fn admit(State(admission): State<Admission>, request: Request, next: Next) -> Response {
    let Some(lane) = admission.lane(request.method(), request.uri().path()) else { return next.run(request).await };
    let Some(_place) = lane.enter().await else {
        let why = format!("the server has more to do than it can; try again in {WAIT_S} s");
        return Error::Busy { why, wait_s: WAIT_S }.into_response();
    };
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Router, body::Body, http::StatusCode, middleware::from_fn_with_state, routing::get};
    use tokio::{sync::Notify, task::JoinSet};
    use tower::ServiceExt;

    use super::*;

    /// A server whose pages are answered once they are let go.
    fn held(admission: &Admission) -> (Router, Arc<Notify>, Arc<AtomicUsize>) {
        let (release, inside) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (released, entered) = (Arc::clone(&release), Arc::clone(&inside));
        let page = move || {
            let (released, entered) = (Arc::clone(&released), Arc::clone(&entered));
            async move {
                entered.fetch_add(1, Ordering::SeqCst);
                released.notified().await;
            }
        };
        let app = Router::new()
            .route("/runs", get(page))
            .route("/healthz", get(async || ()))
            .route("/compare", get(async || ()).post(async || ()))
            .layer(from_fn_with_state(admission.clone(), admit));
        (app, release, inside)
    }

    async fn ask(app: &Router, method: Method, path: &str) -> Response {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
        app.clone().oneshot(request).await.expect("infallible")
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_fit_are_told_to_come_again_while_others_pass() {
        let admission = Admission(Arc::new(Lanes { ordinary: Lane::new(2), costly: Lane::new(1) }));
        let (app, release, inside) = held(&admission);
        let mut pages = JoinSet::new();
        for _ in 0..2 * (1 + WAITING) {
            let app = app.clone();
            pages.spawn(async move { ask(&app, Method::GET, "/runs").await.status() });
        }
        tokio::task::yield_now().await;
        assert_eq!(inside.load(Ordering::SeqCst), 2, "so many are worked on");
        let refused = ask(&app, Method::GET, "/runs").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "2");
        for (method, path) in [(Method::GET, "/healthz"), (Method::GET, "/compare"), (Method::POST, "/compare")] {
            assert_eq!(ask(&app, method, path).await.status(), StatusCode::OK, "{path}");
        }
        // Whoever waits too long is told as well; those inside are answered.
        for _ in 0..2 * WAITING {
            assert_eq!(pages.join_next().await.expect("a page").expect("no panic"), StatusCode::SERVICE_UNAVAILABLE);
        }
        release.notify_waiters();
        while let Some(status) = pages.join_next().await {
            assert_eq!(status.expect("no panic"), StatusCode::OK);
        }
        release.notify_one();
        assert_eq!(ask(&app, Method::GET, "/runs").await.status(), StatusCode::OK, "places are given back");
    }
}
