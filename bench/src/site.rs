//! A real server on a free port of loopback, and a client that may do everything.

use std::path::Path;

use brewbench::{
    auth::{NewToken, Scope},
    config::Config,
    owner,
    server::Server,
};
use brewbench_agent::client::Client;
use tokio_util::sync::CancellationToken;

/// Starts a server on a folder; it is not served yet.
pub async fn start(data: &Path) -> anyhow::Result<(Server, Client)> {
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(Config::new(listen, data), CancellationToken::new()).await?;
    let asked = NewToken { name: "bench".to_owned(), scope: Scope::Admin, expires_in_days: None };
    let token = owner::token(data, &asked).await?.secret;
    let client = Client::new(&server.local_url(), Some(token))?;
    Ok((server, client))
}
