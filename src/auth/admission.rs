//! Admission control. A bounded number of reads is processed at a time and a bounded number waits; the server rejects
//! the rest with 503 at once. Admitted requests stay fast under overload, and agents, uploads, logins and health checks
//! are never queued behind pages, and callers who are not logged in have permits of their own, so that nobody without
//! an account keeps others from reading.
//!
//! Only reads are limited: tokens, body sizes and the single writing connection limit writes. A permit is released when
//! the response head is sent, so a live stream holds none.

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{Method, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use axum_extra::extract::CookieJar;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{
    app::{error::Error, state::AppState},
    auth::caller::{OptionalCaller, bearer, session_cookie},
};

/// The longest time that a request waits for a permit.
const PATIENCE: Duration = Duration::from_millis(900);

/// `Retry-After` of a refusal, seconds.
const WAIT_S: u64 = 2;

/// Requests that may wait per permit; each takes milliseconds.
const WAITING: usize = 64;

/// Path prefixes that need no permit: agents, health checks, login and logout.
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

/// Path prefixes that answer callers without a login.
const PUBLIC: [&str; 3] = ["/docs", "/search", "/shared/"];

/// Path prefixes that read many runs or compute for long.
const COSTLY: [&str; 11] = [
    "/compare",
    "/gate",
    "/profiles",
    "/trends",
    "/experiments/",
    "/api/v1/compare",
    "/api/v1/profiles",
    "/api/v1/report",
    "/api/v1/trends",
    "/api/v1/experiments/",
    "/api/v1/runs/export",
];

/// The lanes of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Admission(Arc<Pools>);

#[derive(Debug)]
struct Pools {
    ordinary: Pool,
    costly: Pool,
    /// Callers who are not logged in.
    anonymous: Pool,
}

/// Requests that share permits.
#[derive(Debug)]
struct Pool {
    /// Processed or waiting.
    all: Semaphore,
    /// Processed.
    active: Semaphore,
}

impl Pool {
    fn new(active: usize) -> Self {
        Self { all: Semaphore::new(active * (1 + WAITING)), active: Semaphore::new(active) }
    }

    /// Acquires permits in order of arrival; `None` if too many requests wait already or the wait takes too long.
    async fn enter(&self) -> Option<[SemaphorePermit<'_>; 2]> {
        let queued = self.all.try_acquire().ok()?;
        let active = timeout(PATIENCE, self.active.acquire()).await.ok()?.ok()?;
        Some([queued, active])
    }
}

impl Default for Admission {
    /// Two ordinary requests per core, because they wait for the database in between, one costly request per core, and
    /// one request without a login per two cores.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let (ordinary, costly, anonymous) = (Pool::new(2 * cores), Pool::new(cores), Pool::new(cores.div_ceil(2)));
        Self(Arc::new(Pools { ordinary, costly, anonymous }))
    }
}

impl Admission {
    fn lane(&self, method: &Method, path: &str, caller: Login) -> Option<&Pool> {
        if !matches!(*method, Method::GET | Method::HEAD) || among(path, &OPEN) {
            None
        } else if caller == Login::Missing {
            Some(&self.0.anonymous)
        } else if among(path, &COSTLY) {
            Some(&self.0.costly)
        } else {
            Some(&self.0.ordinary)
        }
    }

    async fn process(&self, caller: Login, request: Request, next: Next) -> Response {
        let lane = self.lane(request.method(), request.uri().path(), caller);
        let Some(lane) = lane else { return next.run(request).await };
        let Some(_permits) = lane.enter().await else {
            let why = format!("the server is overloaded; try again in {WAIT_S} s");
            return Error::Busy { why, wait_s: WAIT_S }.into_response();
        };
        next.run(request).await
    }
}

fn among(path: &str, paths: &[&str]) -> bool {
    paths.iter().any(|start| path.starts_with(start))
}

/// Whether a request comes with a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    /// A session or a token. Where a login is needed, an invalid one is refused after one lookup.
    Present,
    /// None, or an invalid one for what needs none.
    Missing,
}

impl Login {
    async fn find(parts: &mut Parts, state: &AppState) -> Self {
        let is_present = if among(parts.uri.path(), &PUBLIC) {
            matches!(OptionalCaller::from_request_parts(parts, state).await, Ok(OptionalCaller(Some(_))))
        } else {
            bearer(&parts.headers).is_some()
                || CookieJar::from_headers(&parts.headers).get(session_cookie(&state.public_url)).is_some()
        };
        if is_present { Self::Present } else { Self::Missing }
    }
}

/// Middleware: processes a request once it has a permit, or answers 503 with `Retry-After`.
pub async fn admit(State((admission, state)): State<(Admission, AppState)>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = Login::find(&mut parts, &state).await;
    admission.process(caller, Request::from_parts(parts, body), next).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{
        Router,
        body::Body,
        http::{StatusCode, header::AUTHORIZATION},
        middleware::from_fn_with_state,
        routing::get,
    };
    use tokio::{sync::Notify, task::JoinSet};
    use tower::ServiceExt;

    use super::*;

    /// Returns a server whose pages respond once they are released.
    fn held_server(admission: &Admission) -> (Router, Arc<Notify>, Arc<AtomicUsize>) {
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
            .route("/docs", get(async || ()))
            .layer(from_fn_with_state(admission.clone(), admit_by_header));
        (app, release, inside)
    }

    /// Stands in for the lookup of the login in the database.
    async fn admit_by_header(State(admission): State<Admission>, request: Request, next: Next) -> Response {
        let caller = if bearer(request.headers()).is_some() { Login::Present } else { Login::Missing };
        admission.process(caller, request, next).await
    }

    async fn request_path(app: &Router, method: Method, path: &str) -> Response {
        let request = Request::builder().method(method).uri(path).header(AUTHORIZATION, "Bearer secret");
        app.clone().oneshot(request.body(Body::empty()).expect("a request")).await.expect("infallible")
    }

    async fn visit(app: &Router, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        app.clone().oneshot(request).await.expect("infallible")
    }

    #[test]
    fn comparisons_and_trends_share_the_costly_lane() {
        let (admission, get) = (Admission::default(), Method::GET);
        let costly = |path: &str| {
            admission
                .lane(&get, path, Login::Present)
                .is_some_and(|lane| std::ptr::eq(lane, &raw const admission.0.costly))
        };
        for path in ["/compare", "/gate", "/trends", "/trends/1", "/experiments/1"] {
            assert!(costly(path), "{path}");
        }
        for path in ["compare", "report", "trends", "trends/1", "experiments/1", "runs/export"] {
            assert!(costly(&format!("/api/v1/{path}")), "/api/v1/{path}");
        }
        for path in ["/runs", "/experiments", "/api/v1/runs", "/api/v1/experiments"] {
            assert!(!costly(path), "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_without_a_login_wait_for_each_other_only() {
        let lanes = Pools { ordinary: Pool::new(2), costly: Pool::new(1), anonymous: Pool::new(1) };
        let (app, release, inside) = held_server(&Admission(Arc::new(lanes)));
        let mut pages = JoinSet::new();
        for _ in 0..=WAITING {
            let app = app.clone();
            pages.spawn(async move { visit(&app, "/runs").await.status() });
        }
        tokio::task::yield_now().await;
        assert_eq!(inside.load(Ordering::SeqCst), 1, "active requests");
        assert_eq!(visit(&app, "/docs").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        for path in ["/docs", "/compare", "/healthz"] {
            assert_eq!(request_path(&app, Method::GET, path).await.status(), StatusCode::OK, "{path}");
        }
        pages.abort_all();
        release.notify_waiters();
    }

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_queue_get_503_while_other_lanes_pass() {
        let admission =
            Admission(Arc::new(Pools { ordinary: Pool::new(2), costly: Pool::new(1), anonymous: Pool::new(1) }));
        let (app, release, inside) = held_server(&admission);
        let mut pages = JoinSet::new();
        for _ in 0..2 * (1 + WAITING) {
            let app = app.clone();
            pages.spawn(async move { request_path(&app, Method::GET, "/runs").await.status() });
        }
        tokio::task::yield_now().await;
        assert_eq!(inside.load(Ordering::SeqCst), 2, "active requests");
        let refused = request_path(&app, Method::GET, "/runs").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "2");
        for (method, path) in [(Method::GET, "/healthz"), (Method::GET, "/compare"), (Method::POST, "/compare")] {
            assert_eq!(request_path(&app, method, path).await.status(), StatusCode::OK, "{path}");
        }
        // A wait that takes too long ends in 503 too; active requests succeed.
        for _ in 0..2 * WAITING {
            assert_eq!(pages.join_next().await.expect("a page").expect("no panic"), StatusCode::SERVICE_UNAVAILABLE);
        }
        release.notify_waiters();
        while let Some(status) = pages.join_next().await {
            assert_eq!(status.expect("no panic"), StatusCode::OK);
        }
        release.notify_one();
        assert_eq!(request_path(&app, Method::GET, "/runs").await.status(), StatusCode::OK, "permits are released");
    }
}
