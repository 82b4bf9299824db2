//! A real server in this process, and actors who speak to it as everybody does: by HTTP, WebSocket and commands.

pub mod actor;
pub mod agent;
pub mod crew;
pub mod program;
pub mod series;
pub mod submit;
pub mod summaries;

use std::{net::SocketAddr, time::Duration};

pub use actor::{Actor, Answer, BROWSER};
pub use agent::Agent;
use brewbench::{
    app::{
        config::{Config, Rate, Rates},
        server::Server,
        state::AppState,
    },
    auth::{
        api::{people, tokens},
        audit::{Act, deed::Deed},
        caller::Caller,
        model::{Role, Scope},
        people::{NewInvite, NewToken},
        secret::{self, Kind},
        store::{
            User,
            sessions::{self, NewPasskey, NewSession},
        },
    },
    fleet,
};
use brewbench_agent::{connection::client::prepare_tls, wire::now_ms};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// Whatever is waited for comes within this, also on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_mins(1);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A server that serves until the test ends.
pub struct App {
    /// What its handlers share.
    pub state: AppState,
    /// Where it listens.
    pub url: Url,
    end: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    folder: TempDir,
}

impl App {
    /// With an empty data folder.
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// With an empty data folder and a configuration of its own.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::on(tempfile::tempdir().expect("a temporary folder"), change).await
    }

    /// On a data folder that may have been used before.
    pub async fn on(folder: TempDir, change: impl FnOnce(&mut Config)) -> Self {
        prepare_tls();
        let mut config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)), folder.path());
        // Tests are many who try from one address.
        let rate = Rate::new(100_000, 100_000);
        config.rates = Rates { sign_in: rate, wrong_secrets: rate };
        change(&mut config);
        let end = CancellationToken::new();
        let server = Server::start(config, end.clone()).await.expect("a server starts");
        let (state, url) = (server.state.clone(), server.local_url());
        let serving = tokio::spawn(server.serve());
        Self { state, url, end, serving, folder }
    }

    /// Ends it in order; its data folder can be used again.
    pub async fn stop(self) -> TempDir {
        self.end.cancel();
        timeout(PATIENCE, self.serving).await.expect("an end").expect("no panic").expect("a good end");
        self.folder
    }

    /// Its data folder.
    pub fn data(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Somebody whom it does not know.
    pub fn nobody(&self) -> Actor {
        Actor::nobody(&self.url)
    }

    /// Somebody with a token that reads.
    pub async fn reader(&self) -> Actor {
        self.token(Scope::Read).await
    }

    /// Somebody with a token that submits.
    pub async fn user(&self) -> Actor {
        self.token(Scope::Submit).await
    }

    /// Somebody with a token that manages.
    pub async fn admin(&self) -> Actor {
        self.token(Scope::Admin).await
    }

    /// Somebody with a token of a scope.
    pub async fn token(&self, scope: Scope) -> Actor {
        self.nobody().with_secret(&self.token_secret(scope, None).await)
    }

    /// The secret of a new token.
    pub async fn token_secret(&self, scope: Scope, expires_in_days: Option<u32>) -> String {
        let name = format!("{} {}", scope.as_str(), Uuid::now_v7());
        let asked = NewToken { name, scope, expires_in_days };
        tokens::make_token(&self.state.db, &asked, &Caller::owner()).await.expect("a token").secret
    }

    /// A person who has logged in with a browser.
    pub async fn person(&self, role: Role) -> Actor {
        self.person_until(role, now_ms() + DAY_MS).await
    }

    /// A person whose session ends at a time, unix ms.
    pub async fn person_until(&self, role: Role, expires_at_ms: i64) -> Actor {
        let id = Uuid::now_v7().to_string();
        let name = format!("{} {id}", role.as_str());
        self.named(&name, role, expires_at_ms).await
    }

    /// A person of a name who has logged in with a browser.
    pub async fn named(&self, name: &str, role: Role, expires_at_ms: i64) -> Actor {
        let user = User { id: Uuid::now_v7().to_string(), name: name.to_owned(), role };
        let passkey = NewPasskey { credential_id: user.id.as_bytes(), name: "none", credential: "{}" };
        let now = now_ms();
        let mut transaction = self.state.db.write.begin().await.expect("a transaction");
        brewbench::auth::store::insert_user(&mut transaction, &user, now).await.expect("a person");
        sessions::insert_passkey(&mut transaction, &user.id, &passkey, now).await.expect("a passkey");
        transaction.commit().await.expect("a person");
        self.session_of(&user.id, expires_at_ms).await
    }

    /// Another session of a person.
    pub async fn session_of(&self, user_id: &str, expires_at_ms: i64) -> Actor {
        let session = secret::make(Kind::Session);
        let hash = secret::hash(&session);
        let row = NewSession { hash: &hash, user_id, device: "a test", expires_at_ms };
        let mut connection = self.state.db.write.acquire().await.expect("a connection");
        sessions::insert_session(&mut connection, &row, now_ms()).await.expect("a session");
        drop(connection);
        self.nobody().with_session(&session, &self.state.public_url)
    }

    /// A registration link for somebody new.
    pub async fn invite(&self, role: Role) -> String {
        let asked = NewInvite { role, ..NewInvite::default() };
        let (db, site) = (&self.state.db, &self.state.public_url);
        people::make_invite(db, site, &asked, &Caller::owner()).await.expect("an invitation").url
    }

    /// The key of a new agent, which it made itself.
    pub async fn key(&self, name: &str) -> String {
        self.own_key(&self.one_time_key(name).await).await
    }

    /// The key that a new agent made itself in exchange for a one-time key.
    pub async fn own_key(&self, one_time: &str) -> String {
        let (hash, own) = (secret::hash(one_time), secret::make(Kind::AgentKey));
        let act = Act::by_owner(Deed::AgentEnrolled, "a test's");
        let enrolled = fleet::enrolment::exchange(&self.state.db, &hash, &secret::hash(&own), &act).await;
        enrolled.expect("a key of its own");
        own
    }

    /// The one-time key of a new agent.
    pub async fn one_time_key(&self, name: &str) -> String {
        fleet::api::make_key(&self.state.db, name, &Caller::owner()).await.expect("a key").secret
    }

    /// Waits until something can be seen, looking whenever something happens.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let (mut runs, mut agents) = (self.state.events.listen(), self.state.events.agents());
        let seen = timeout(PATIENCE, async {
            loop {
                if let Some(seen) = look().await {
                    return seen;
                }
                tokio::select! {
                    _ = runs.recv() => {}
                    _ = agents.changed() => {}
                    // Not everything that can be seen is told.
                    () = sleep(Duration::from_millis(50)) => {}
                }
            }
        });
        seen.await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }
}
