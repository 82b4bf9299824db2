//! The server: opens the data folder, binds the port, assembles the modules and serves until shutdown.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, OriginalUri},
    http::{StatusCode, header},
    middleware::{from_fn, from_fn_with_state, map_request},
    routing::get,
};
use brewbench_wire::{now_ms, scenarios};
use tokio::{net::TcpListener, sync::Notify, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::{compression::CompressionLayer, set_header::SetResponseHeaderLayer};
use url::Url;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    alerts,
    app::{
        alert_cache::ActiveAlerts,
        clock::Clock,
        config::Config,
        db::{self, OpenError},
        error::{self, Error},
        http_metrics::{self, HttpMetrics},
        listener::{Caps, Listener, caps::ConnectionLimits, descriptors},
        local_admin, open_mark, openapi,
        rate_limit::Limits,
        secrets_key::{KeyError, SecretsKey},
        state::{AppState, Events, Memory},
        tls::{Certificate, CertificateError},
    },
    auth::{
        self,
        admission::{self, Admission},
        caller::{OptionalCaller, Read},
        passkeys::Passkeys,
        places,
        refusals::Refusals,
    },
    baselines, catalog, compare, dashboard, differences,
    dispatch::{self, worker},
    distributed,
    distributed::coordinate::Barriers,
    docs,
    experiments::{self, scheduler},
    fleet::{self, presence::Presence},
    gate, live, maintenance, mcp, profiles, reports, results, runs, search, settings, shares, trends,
    web::{self, query_names::QueryNames, shared_pages::SharedPages, theme},
};

/// How long background work may take after the server starts to shut down.
const GRACE: Duration = Duration::from_secs(5);

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder or the database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The key for stored secrets cannot be used.
    #[error(transparent)]
    SecretsKey(#[from] KeyError),
    /// The port cannot be bound.
    #[error("can't listen on {0}: {1}; choose another address with --listen, or port 0 for a free port")]
    Listen(SocketAddr, std::io::Error),
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The public URL cannot be used.
    #[error(
        "--public-url {0} can't be used for passkeys: it must be http(s) with a host name such as localhost, not an IP address"
    )]
    PublicUrl(Url),
    /// The initial data could not be stored.
    #[error("the bundled sizes and scenarios could not be stored: {0}")]
    Store(#[from] error::Error),
}

impl From<sqlx::Error> for StartError {
    fn from(fault: sqlx::Error) -> Self {
        Self::Store(fault.into())
    }
}

/// A server with a bound port and an open database.
#[derive(Debug)]
pub struct Server {
    /// State shared by the handlers.
    pub state: AppState,
    /// The bound address.
    pub address: SocketAddr,
    listener: TcpListener,
    certificate: Option<Certificate>,
    presence: Presence,
    passkeys: Passkeys,
    refusals: Refusals,
    _lock: db::Lock,
}

impl Server {
    /// Opens the data folder and binds the port, but serves nothing yet.
    pub async fn start(config: Config, shutdown: CancellationToken) -> Result<Self, StartError> {
        let certificate = config.tls.clone().map(Certificate::open).transpose()?;
        let lock = db::lock(&config.data).await?;
        let folder = |fault| OpenError::Folder(config.data.clone(), fault);
        crate::maintenance::backup::sweep(&config.data).map_err(folder)?;
        let db = db::open(&config.data).await?;
        let secrets_key = SecretsKey::load(config.secrets_key.as_deref(), &config.data)?;
        crate::alerts::store::webhooks::encrypt_secrets(&db.write, &secrets_key).await?;
        // Must come before anything is stored with the current time.
        let clock = Clock::start(crate::maintenance::store::newest(&db.read).await?);
        crate::catalog::store::first_sizes(&db.write, now_ms()).await?;
        crate::catalog::store::scenarios::clean_up(&db.write).await?;
        crate::catalog::store::scenarios::first_scenarios(&db.write, &scenarios::bundled(), now_ms()).await?;
        let unbound = |fault| StartError::Listen(config.listen, fault);
        let listener = TcpListener::bind(config.listen).await.map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        let public_url = public_url(&config, address);
        let passkeys = Passkeys::new(&public_url).map_err(|_| StartError::PublicUrl(public_url.clone()))?;
        local_admin::store_public_url(&config.data, &public_url).map_err(folder)?;
        let limits = ConnectionLimits::from_total(config.connections.unwrap_or_else(descriptors::room));
        let state = AppState {
            db,
            secrets_key: Arc::new(secrets_key),
            clock,
            connections: Caps::new(limits, config.proxies.clone()),
            limits: Arc::new(Limits::new(&config)),
            config: Arc::new(config),
            public_url: Arc::new(public_url),
            http_metrics: Arc::new(HttpMetrics::default()),
            certificate: certificate.as_ref().map(Certificate::in_use),
            events: Events::default(),
            shared_pages: SharedPages::default(),
            memory: Memory::default(),
            active_alerts: ActiveAlerts::default(),
            work: Arc::new(Notify::new()),
            rejudge: Arc::new(Notify::new()),
            outbox: Arc::new(Notify::new()),
            check_alerts: Arc::new(Notify::new()),
            shutdown,
            tasks: TaskTracker::new(),
        };
        places::remember_places(&state).await?;
        let (presence, refusals) = (Presence::default(), Refusals::default());
        Ok(Self { state, address, listener, certificate, presence, passkeys, refusals, _lock: lock })
    }

    /// Returns whether no user has registered yet.
    pub async fn has_no_users(&self) -> error::Result<bool> {
        Ok(!crate::auth::store::any_user(&self.state.db.read).await?)
    }

    /// Returns the URL for agents and commands on this machine.
    ///
    /// # Panics
    /// Never: an IP address and a port form a valid URL.
    pub fn local_url(&self) -> Url {
        let ip = self.address.ip();
        let host = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { url_host(ip) };
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{host}:{}/", self.address.port())
            .parse()
            .expect("an IP address and a port form a valid URL")
    }

    /// Serves until shutdown, then waits a limited time for open requests and background work.
    pub async fn serve(self) -> std::io::Result<()> {
        let Self { state, listener, certificate, presence, passkeys, refusals, .. } = self;
        let barriers = Barriers::default();
        let database = state.config.data.join(db::FILE);
        open_mark::set(&database)?;
        state.tasks.spawn(crate::maintenance::quick_check::work(state.clone()));
        state.tasks.spawn(auth::housekeeping::work(state.clone()));
        state.tasks.spawn(refusals.clone().run(state.db.clone(), state.shutdown.clone()));
        state.tasks.spawn(crate::maintenance::retention::work(state.clone()));
        state.tasks.spawn(worker::work(state.clone(), presence.clone(), barriers.clone()));
        state.tasks.spawn(scheduler::work(state.clone()));
        state.tasks.spawn(runs::api::trash::sweep(state.clone()));
        state.tasks.spawn(crate::results::rejudge::work(state.clone()));
        state.tasks.spawn(alerts::watch::work(state.clone(), presence.clone()));
        state.tasks.spawn(alerts::finished::work(state.clone()));
        state.tasks.spawn(alerts::deliver::work(state.clone()));
        if let Some(certificate) = certificate {
            state.tasks.spawn(certificate.watch(state.shutdown.clone()));
        }
        let http = Listener {
            app: router(&state, presence, barriers, &passkeys, &refusals),
            caps: state.connections.clone(),
            timeouts: state.config.timeouts,
            tls: state.certificate.clone(),
        };
        http.serve(listener, &state.shutdown).await;
        state.tasks.close();
        if timeout(GRACE, state.tasks.wait()).await.is_err() {
            tracing::warn!("some background work did not finish before the shutdown");
        }
        refusals.flush(&state.db).await;
        state.db.close().await;
        open_mark::clear(&database);
        Ok(())
    }
}

fn url_host(ip: std::net::IpAddr) -> String {
    match ip {
        std::net::IpAddr::V4(ip) => ip.to_string(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn public_url(config: &Config, address: SocketAddr) -> Url {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let local = || format!("{scheme}://localhost:{}/", address.port()).parse().expect("a port forms a valid URL");
    config.public_url.clone().unwrap_or_else(local)
}

/// What all operations have in common, and the types that only parameters have.
#[derive(OpenApi)]
#[openapi(info(title = "brewbench", description = "Benchmarks HTTP server implementations. Latencies are milliseconds, \
    times unix milliseconds, memory bytes; unknown values are null."),
    components(schemas(
        auth::api::audit::AuditFormat,
        gate::api::GateFormat,
        reports::format::ReportFormat,
        results::api::series::SeriesFormat,
        runs::api::export::ExportFormat,
    )),
    security(("token" = [])))]
struct Document;

/// Returns the routes of the JSON API and the OpenAPI document that describes them.
fn api(
    state: &AppState,
    presence: &Presence,
    barriers: Barriers,
    passkeys: &Passkeys,
    refusals: &Refusals,
) -> (Router<AppState>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(auth::api(passkeys.clone(), refusals.clone()))
        .merge(catalog::api())
        .merge(fleet::api().layer(Extension(presence.clone())))
        .merge(runs::api())
        .merge(results::api(state.config.max_summary_bytes))
        .merge(live::api())
        .merge(distributed::api())
        .merge(experiments::api(presence.clone()))
        .merge(baselines::api())
        .merge(differences::api())
        .merge(profiles::api())
        .merge(compare::api_router())
        .merge(gate::api())
        .merge(reports::api())
        .merge(shares::api())
        .merge(trends::api())
        .merge(search::api())
        .merge(maintenance::api())
        .merge(alerts::api())
        .merge(dispatch::api(presence.clone(), barriers, state.config.largest_body()))
        .split_for_parts()
}

/// The whole site.
pub fn router(
    state: &AppState,
    presence: Presence,
    barriers: Barriers,
    passkeys: &Passkeys,
    refusals: &Refusals,
) -> Router {
    let (api, mut document) = api(state, &presence, barriers.clone(), passkeys, refusals);
    openapi::complete(&mut document);
    let query_names = from_fn_with_state(Arc::new(QueryNames::of(&document)), web::query_names::check);
    let document = Arc::new(document);
    let openapi = move |_: Read| async move { Json(Arc::unwrap_or_clone(document)) };
    let api = api.route_layer(from_fn(web::etag::tag)).route_layer(query_names);
    let admission = from_fn_with_state((Admission::default(), state.clone()), admission::admit);
    let site = Router::new()
        .route("/api/v1/openapi.json", get(openapi))
        .merge(mcp::http::router(state, api.clone().layer(admission.clone())))
        .merge(api)
        .merge(maintenance::probes(presence.clone()))
        .merge(auth::pages())
        .merge(docs::router())
        .merge(runs::pages())
        .merge(results::pages(state.config.max_summary_bytes))
        .merge(live::pages())
        .merge(catalog::pages().layer(Extension(presence.clone())))
        .merge(fleet::pages(presence.clone()))
        .merge(settings::pages(presence.clone()))
        .merge(experiments::pages(presence.clone()))
        .merge(baselines::pages())
        .merge(differences::pages())
        .merge(profiles::pages())
        .merge(compare::router())
        .merge(gate::pages())
        .merge(shares::pages())
        .merge(trends::pages())
        .merge(search::pages())
        .merge(alerts::pages())
        .merge(dashboard::pages(presence.clone()))
        .merge(dispatch::pages(presence.clone()))
        .merge(dispatch::channel(presence, barriers))
        .method_not_allowed_fallback(wrong_method)
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(2 * 1024 * 1024))
        .layer(admission)
        .layer(from_fn_with_state(Arc::clone(&state.public_url), web::host::check))
        .layer(from_fn(web::errors::error_pages))
        .layer(from_fn(theme::remember))
        .layer(CompressionLayer::new())
        // Static files are compressed and hashed at build time, so they stay outside the layer above.
        .merge(web::assets::router())
        .layer(from_fn(web::headers::secure))
        .layer(SetResponseHeaderLayer::overriding(
            header::STRICT_TRANSPORT_SECURITY,
            web::headers::strict_transport(&state.public_url),
        ))
        .layer(from_fn(web::request::name))
        .layer(from_fn_with_state(Arc::clone(&state.http_metrics), http_metrics::count))
        .with_state(state.clone());
    // Wraps the router, because it changes the path that selects the route.
    Router::new().fallback_service(site).layer(map_request(web::request::names_of_dots))
}

/// A method without a handler. Knows the signed-in user, so that the error page has the navigation.
async fn wrong_method(_: OptionalCaller) -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

/// An address without a route. Knows the signed-in user, too.
async fn not_found(_: OptionalCaller, OriginalUri(uri): OriginalUri) -> Error {
    web::errors::not_found(&uri)
}
