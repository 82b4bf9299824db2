//! What every handler shares.

use std::sync::Arc;

use tokio::sync::{Notify, broadcast, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    app::{
        alert_cache::Notices,
        clock::Clock,
        config::Config,
        db::Db,
        http_metrics::Meters,
        ids::{ExperimentId, RunId},
        listener::Caps,
        rate_limit::Limits,
        secrets_key::SecretsKey,
        tls::InUse,
    },
    compare::cache::Cache,
    live::feed::Underway,
    results::store::imports::Waiting,
    runs::store::values::LastValues,
};

/// Cheap to clone: the pools and handles of one server.
#[derive(Clone, Debug)]
pub struct AppState {
    /// The database.
    pub db: Db,
    /// What stored secrets are encrypted with.
    pub secrets_key: Arc<SecretsKey>,
    /// Whether what is old may be deleted.
    pub clock: Clock,
    /// What the server was told at its start.
    pub config: Arc<Config>,
    /// How browsers reach it, known once the port is bound.
    pub public_url: Arc<Url>,
    /// The connections that are open.
    pub connections: Caps,
    /// How often somebody may try to get in.
    pub limits: Arc<Limits>,
    /// How long requests take.
    pub meters: Arc<Meters>,
    /// The certificate of a server that speaks TLS itself.
    pub certificate: Option<InUse>,
    /// What happens to runs, as it happens.
    pub events: Events,
    /// The runs that agents work on, as they go.
    pub underway: Underway,
    /// Comparisons that were made.
    pub comparisons: Cache,
    /// What the filters of the history offer.
    pub values: LastValues,
    /// Imports that wait to be stored.
    pub uploads: Waiting,
    /// What somebody should look at.
    pub notices: Notices,
    /// Rung when there may be something to hand out: a new run, a free agent.
    pub work: Arc<Notify>,
    /// Rung when limits were changed: old runs are to be judged anew.
    pub rejudge: Arc<Notify>,
    /// Rung when something was written down for webhooks.
    pub outbox: Arc<Notify>,
    /// Rung when it was changed from when on something is an alert.
    pub look_again: Arc<Notify>,
    /// Cancelled when the server ends.
    pub shutdown: CancellationToken,
    /// Everything that goes on behind the requests; awaited at the end.
    pub tasks: TaskTracker,
}

/// A run changed; whoever shows it reads it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChanged {
    /// The run.
    pub run: RunId,
    /// Its experiment, if it has one.
    pub experiment: Option<ExperimentId>,
}

/// Tells listeners about changes. One that can't keep up misses some and learns of that.
#[derive(Clone, Debug)]
pub struct Events {
    runs: broadcast::Sender<RunChanged>,
    agents: watch::Sender<u64>,
    people: watch::Sender<u64>,
}

impl Default for Events {
    fn default() -> Self {
        Self { runs: broadcast::channel(256).0, agents: watch::Sender::new(0), people: watch::Sender::new(0) }
    }
}

impl Events {
    /// Tells everybody; nobody listening is fine.
    pub fn tell(&self, changed: RunChanged) {
        let _ = self.runs.send(changed);
    }

    /// Hears everything from now on.
    pub fn listen(&self) -> broadcast::Receiver<RunChanged> {
        self.runs.subscribe()
    }

    /// Tells everybody that an agent came or went.
    pub fn agents_changed(&self) {
        self.agents.send_modify(|count| *count += 1);
    }

    /// Tells every stream that somebody may do less than before.
    pub fn people_changed(&self) {
        self.people.send_modify(|count| *count += 1);
    }

    /// Changes whenever somebody may do less than before: whoever follows something must prove anew that she may.
    pub fn people(&self) -> watch::Receiver<u64> {
        self.people.subscribe()
    }

    /// Ends when somebody may do less than before.
    pub fn people_change(&self) -> impl Future<Output = ()> + use<> {
        let mut people = self.people();
        async move {
            if people.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Changes whenever an agent comes or goes.
    pub fn agents(&self) -> watch::Receiver<u64> {
        self.agents.subscribe()
    }
}
