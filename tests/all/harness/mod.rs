//! A real server in this process, and clients that use it by HTTP, WebSocket and commands.

pub mod actor;
pub mod agent;
pub mod participants;
pub mod program;
pub mod repository;
pub mod series;
pub mod submit;
pub mod summaries;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

pub use actor::{Actor, Answer};
pub use agent::Agent;
use brewbench::{
    app::{
        config::{Config, Rate, Rates},
        server::Server,
        state::AppState,
    },
    auth::{
        api::{tokens, users},
        audit::{AuditEvent, action::Action},
        model::{Role, Scope},
        proven::Proven,
        secret::{self, Kind},
        store::{
            User,
            sessions::{self, NewPasskey, NewSession},
        },
        users::{NewInvite, NewToken},
    },
    fleet,
};
use brewbench_io::client::prepare_tls;
use brewbench_wire::now_ms;
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// The timeout of everything that tests wait for; long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The folder of the repository.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the folder of this package")
    });
    &ROOT
}

/// A server that runs until the test ends.
pub struct App {
    /// The state shared by its handlers.
    pub state: AppState,
    /// The URL it listens on.
    pub url: Url,
    end: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    folder: TempDir,
}

impl App {
    /// Starts a server with an empty data folder.
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// Starts a server with an empty data folder and a modified configuration.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::on(tempfile::tempdir().expect("a temporary folder"), change).await
    }

    /// Starts a server with an existing data folder.
    pub async fn on(folder: TempDir, change: impl FnOnce(&mut Config)) -> Self {
        prepare_tls();
        let mut config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)), folder.path());
        // All tests send requests from the same address.
        let rate = Rate::new(100_000, 100_000);
        config.rates = Rates { sign_in: rate, wrong_secrets: rate };
        // A busy machine may stop this process for seconds.
        config.silence = Duration::from_secs(15);
        config.mcp = true;
        change(&mut config);
        let end = CancellationToken::new();
        let server = Server::start(config, end.clone()).await.expect("a server");
        let (state, url) = (server.state.clone(), server.local_url());
        let serving = tokio::spawn(server.serve());
        Self { state, url, end, serving, folder }
    }

    /// Shuts the server down. Returns its data folder, which can be used again.
    pub async fn stop(self) -> TempDir {
        self.end.cancel();
        timeout(PATIENCE, self.serving).await.expect("an end in time").expect("no panic").expect("success");
        self.folder
    }

    /// Returns the data folder.
    pub fn data(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Returns a client without credentials.
    pub fn anonymous(&self) -> Actor {
        Actor::anonymous(&self.url)
    }

    /// Returns a client with a read token.
    pub async fn reader(&self) -> Actor {
        self.token(Scope::Read).await
    }

    /// Returns a client with a submit token.
    pub async fn user(&self) -> Actor {
        self.token(Scope::Submit).await
    }

    /// Returns a client with an admin token.
    pub async fn admin(&self) -> Actor {
        self.token(Scope::Admin).await
    }

    /// Returns a client with a token of this scope.
    pub async fn token(&self, scope: Scope) -> Actor {
        self.anonymous().with_secret(&self.token_secret(scope, None).await)
    }

    /// Creates a token. Returns its secret.
    pub async fn token_secret(&self, scope: Scope, expires_in_days: Option<u32>) -> String {
        let name = format!("{} {}", scope.as_str(), Uuid::now_v7());
        let new = NewToken { name, scope, expires_in_days, never_expires: false };
        tokens::create_token(&self.state.db, &new, &Proven::owner()).await.expect("a token").secret
    }

    /// Creates a user. Returns a client with a session.
    pub async fn signed_in(&self, role: Role) -> Actor {
        self.signed_in_until(role, now_ms() + DAY_MS).await
    }

    /// Creates a user whose session expires at a time, unix ms.
    pub async fn signed_in_until(&self, role: Role, expires_at_ms: i64) -> Actor {
        let id = Uuid::now_v7().to_string();
        let name = format!("{} {id}", role.as_str());
        self.signed_in_as(&name, role, expires_at_ms).await
    }

    /// Creates a user with this name.
    pub async fn signed_in_as(&self, name: &str, role: Role, expires_at_ms: i64) -> Actor {
        let user = User { id: Uuid::now_v7().to_string(), name: name.to_owned(), role };
        let passkey = NewPasskey { credential_id: user.id.as_bytes(), name: "none", credential: "{}" };
        let now = now_ms();
        let mut transaction = self.state.db.write.begin().await.expect("a transaction");
        brewbench::auth::store::insert_user(&mut transaction, &user, now).await.expect("a user");
        sessions::insert_passkey(&mut transaction, &user.id, &passkey, now).await.expect("a passkey");
        transaction.commit().await.expect("a user");
        self.session_of(&user.id, expires_at_ms).await
    }

    /// Creates another session of a user.
    pub async fn session_of(&self, user_id: &str, expires_at_ms: i64) -> Actor {
        let session = secret::generate(Kind::Session);
        let hash = secret::hash(&session);
        let row = NewSession { hash: &hash, user_id, device: "a test", expires_at_ms };
        let mut connection = self.state.db.write.acquire().await.expect("a connection");
        sessions::insert_session(&mut connection, &row, now_ms()).await.expect("a session");
        drop(connection);
        self.anonymous().with_session(&session, &self.state.public_url)
    }

    /// Creates a registration link.
    pub async fn invite(&self, role: Role) -> String {
        let new = NewInvite { role, ..NewInvite::default() };
        let (db, site) = (&self.state.db, &self.state.public_url);
        users::create_invite(db, site, &new, &Proven::owner()).await.expect("an invitation").url
    }

    /// Enrolls an agent. Returns the key that replaces its one-time key.
    pub async fn key(&self, name: &str) -> String {
        self.own_key(&self.one_time_key(name).await).await
    }

    /// Exchanges a one-time key for the agent's own key.
    pub async fn own_key(&self, one_time: &str) -> String {
        let (hash, own) = (secret::hash(one_time), secret::generate(Kind::AgentKey));
        let act = AuditEvent::by_owner(Action::AgentEnrolled, "a test's");
        let enrolled = fleet::enrolment::exchange(&self.state.db, &hash, &secret::hash(&own), &act).await;
        enrolled.expect("an exchanged key");
        own
    }

    /// Creates a one-time key for a new agent.
    pub async fn one_time_key(&self, name: &str) -> String {
        fleet::api::create_key(&self.state.db, name, &Proven::owner()).await.expect("a key").secret
    }

    /// Waits until `check` returns a value. Checks again on every event.
    pub async fn until<T>(&self, what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
        let (mut runs, mut agents) = (self.state.events.listen(), self.state.events.agents());
        let found = timeout(PATIENCE, async {
            loop {
                if let Some(found) = check().await {
                    return found;
                }
                tokio::select! {
                    _ = runs.recv() => {}
                    _ = agents.changed() => {}
                    // Some changes cause no event.
                    () = sleep(Duration::from_millis(50)) => {}
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
    }
}
