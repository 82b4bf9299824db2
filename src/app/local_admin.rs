//! Administration without a login, for users who can write the data folder and could do everything anyway.

use std::{io, path::Path};

use brewbench_wire::now_ms;
use url::Url;

use crate::{
    app::{
        data_folder::{self, ADDRESS_FILE},
        db::{self, Db, OpenError},
        error::Error,
        state::AppState,
    },
    auth::{
        self,
        api::{tokens::create_token, users::create_invite},
        model::{Role, Scope},
        proven::Proven,
        secret::{self, Kind},
        users::{CreatedSecret, Invite, NewInvite, NewToken},
    },
    fleet,
};

/// Why a command on the data folder failed.
#[derive(Debug, thiserror::Error)]
pub enum LocalAdminError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The action was refused.
    #[error(transparent)]
    Refused(#[from] Error),
    /// No server has ever run on this folder.
    #[error("no server has run on this data folder yet, so its URL is unknown; start the server first")]
    NoAddress,
}

/// Stores the server's public URL in its data folder, for registration links created by commands.
pub fn store_public_url(data: &Path, public_url: &Url) -> io::Result<()> {
    data_folder::write(data, ADDRESS_FILE, public_url.as_str())
}

/// Creates a registration link. The first user of a server becomes an administrator, or nobody could invite others.
pub async fn invite(data: &Path, request: &NewInvite) -> Result<Invite, LocalAdminError> {
    let address = std::fs::read_to_string(data.join(ADDRESS_FILE)).ok().and_then(|text| text.parse().ok());
    let db = db::open(data).await?;
    let is_first = request.user.is_none() && !auth::store::any_user(&db.read).await.map_err(Error::from)?;
    let role = if is_first { Role::Admin } else { request.role };
    let request = NewInvite { role, ..request.clone() };
    Ok(create_invite(&db, &address.ok_or(LocalAdminError::NoAddress)?, &request, &Proven::owner()).await?)
}

/// Creates a token.
pub async fn token(data: &Path, request: &NewToken) -> Result<CreatedSecret, LocalAdminError> {
    Ok(create_token(&db::open(data).await?, request, &Proven::owner()).await?)
}

/// Creates a key for a new agent.
pub async fn agent_key(data: &Path, name: &str) -> Result<CreatedSecret, LocalAdminError> {
    Ok(fleet::api::create_key(&db::open(data).await?, name, &Proven::owner()).await?)
}

/// Creates a registration link for an administrator of a running server.
pub async fn link(state: &AppState) -> Result<String, Error> {
    let request = NewInvite { role: Role::Admin, ..NewInvite::default() };
    Ok(create_invite(&state.db, &state.public_url, &request, &Proven::owner()).await?.url)
}

/// Creates a token for the demo that expires after a day.
pub async fn demo_token(db: &Db) -> Result<String, Error> {
    // The time makes the name unique among earlier demos.
    let name = format!("demo {}", jiff::Zoned::now().strftime("%F %T"));
    let request = NewToken { name, scope: Scope::Submit, expires_in_days: Some(1), never_expires: false };
    Ok(create_token(db, &request, &Proven::owner()).await?.secret)
}

/// Creates a key for the agent in the server's own process and revokes its old one.
pub async fn local_agent_key(db: &Db, name: &str) -> Result<String, Error> {
    let key = secret::generate(Kind::AgentKey);
    crate::fleet::store::replace_key(&db.write, name, &secret::hash(&key), now_ms()).await?;
    Ok(key)
}
