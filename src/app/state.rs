//! State shared by all handlers.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Extensions;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    app::{
        alert_cache::ActiveAlerts,
        clock::Clock,
        config::Config,
        db::Db,
        http_metrics::HttpMetrics,
        ids::{ExperimentId, RunId},
        listener::Caps,
        rate_limit::Limits,
        secrets_key::SecretsKey,
        tls::CurrentCertificate,
    },
    web::shared_pages::SharedPages,
};

/// The pools and handles of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState {
    /// The database.
    pub db: Db,
    /// The key for stored secrets.
    pub secrets_key: Arc<SecretsKey>,
    /// Decides whether old data may be deleted.
    pub clock: Clock,
    /// The configuration.
    pub config: Arc<Config>,
    /// The URL that browsers use.
    pub public_url: Arc<Url>,
    /// Open connections.
    pub connections: Caps,
    /// Rate limits.
    pub limits: Arc<Limits>,
    /// Durations of HTTP requests.
    pub http_metrics: Arc<HttpMetrics>,
    /// The current certificate, if the server terminates TLS itself.
    pub certificate: Option<CurrentCertificate>,
    /// Events about runs, agents and permissions.
    pub events: Events,
    /// Live pages that are rendered once for all their streams.
    pub shared_pages: SharedPages,
    /// What single modules keep in memory.
    pub memory: Memory,
    /// Active alerts.
    pub active_alerts: ActiveAlerts,
    /// Notified when a run may be dispatched: a new run, a free agent.
    pub work: Arc<Notify>,
    /// Notified when limits change, so that stored runs are judged again.
    pub rejudge: Arc<Notify>,
    /// Notified when a webhook delivery is queued.
    pub outbox: Arc<Notify>,
    /// Notified when the thresholds of alerts change.
    pub check_alerts: Arc<Notify>,
    /// Cancelled when the server shuts down.
    pub shutdown: CancellationToken,
    /// Background tasks, awaited at shutdown.
    pub tasks: TaskTracker,
}

impl AppState {
    /// Returns what a module keeps in memory for the whole server, by its type; a new one at the first call.
    pub fn memory<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.memory.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default::<T>().clone()
    }
}

/// One value of each type, which is a handle and cheap to clone. So the state names no module that is built upon it.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Extensions>>);

/// A run changed; listeners load it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChanged {
    /// The run.
    pub run: RunId,
    /// Its experiment, if it has one.
    pub experiment: Option<ExperimentId>,
}

/// Publishes changes. A listener that falls behind misses some and is notified of that.
#[derive(Clone, Debug)]
pub struct Events {
    runs: broadcast::Sender<RunChanged>,
    agents: watch::Sender<u64>,
    rights: watch::Sender<u64>,
}

impl Default for Events {
    fn default() -> Self {
        Self { runs: broadcast::channel(256).0, agents: watch::Sender::new(0), rights: watch::Sender::new(0) }
    }
}

impl Events {
    /// Publishes a change of a run. There may be no listeners.
    pub fn publish(&self, changed: RunChanged) {
        let _ = self.runs.send(changed);
    }

    /// Subscribes to changes of runs.
    pub fn listen(&self) -> broadcast::Receiver<RunChanged> {
        self.runs.subscribe()
    }

    /// Publishes that an agent connected or disconnected.
    pub fn agents_changed(&self) {
        self.agents.send_modify(|count| *count += 1);
    }

    /// Publishes that a user or token lost rights, so that streams check their caller again.
    pub fn rights_changed(&self) {
        self.rights.send_modify(|count| *count += 1);
    }

    /// Subscribes to losses of rights.
    pub fn rights(&self) -> watch::Receiver<u64> {
        self.rights.subscribe()
    }

    /// Completes when a user or token loses rights.
    pub fn rights_change(&self) -> impl Future<Output = ()> + use<> {
        let mut rights = self.rights();
        async move {
            if rights.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Subscribes to connects and disconnects of agents.
    pub fn agents(&self) -> watch::Receiver<u64> {
        self.agents.subscribe()
    }
}
