//! What the owner of a data folder may do without logging in: whoever can write the folder could do it anyway.

use std::{io, path::Path};

use brewbench_agent::wire::now_ms;
use url::Url;

use crate::{
    app::{
        data_folder,
        db::{self, Db, OpenError},
        error::Error,
        state::AppState,
    },
    auth::{
        api::{people::make_invite, tokens::make_token},
        caller::Caller,
        model::{Role, Scope},
        people::{Invite, MadeSecret, NewInvite, NewToken},
        secret::{self, Kind},
    },
    fleet,
};

const ADDRESS_FILE: &str = "public-url";

/// The folder can't be used, or what was asked for can't be done.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The database can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was not done.
    #[error(transparent)]
    Refused(#[from] Error),
    /// No server has ever run on this folder.
    #[error("no server has run on this data folder yet, so its address is not known; start one first")]
    NoAddress,
}

/// Leaves a server's public address in its data folder, for links that the owner makes.
pub fn leave_address(data: &Path, public_url: &Url) -> io::Result<()> {
    data_folder::write(data, ADDRESS_FILE, public_url.as_str())
}

/// Makes a registration link.
pub async fn invite(data: &Path, asked: &NewInvite) -> Result<Invite, OwnerError> {
    let address = std::fs::read_to_string(data.join(ADDRESS_FILE)).ok().and_then(|text| text.parse().ok());
    let db = db::open(data).await?;
    Ok(make_invite(&db, &address.ok_or(OwnerError::NoAddress)?, asked, &Caller::owner()).await?)
}

/// Makes a token.
pub async fn token(data: &Path, asked: &NewToken) -> Result<MadeSecret, OwnerError> {
    Ok(make_token(&db::open(data).await?, asked, &Caller::owner()).await?)
}

/// Makes the key of a new agent.
pub async fn agent_key(data: &Path, name: &str) -> Result<MadeSecret, OwnerError> {
    Ok(fleet::api::make_key(&db::open(data).await?, name, &Caller::owner()).await?)
}

/// A registration link for an administrator of a running server.
pub async fn link(state: &AppState) -> Result<String, Error> {
    let asked = NewInvite { role: Role::Admin, ..NewInvite::default() };
    Ok(make_invite(&state.db, &state.public_url, &asked, &Caller::owner()).await?.url)
}

/// A token for the demo to work with, which ends within a day.
pub async fn demo_token(db: &Db) -> Result<String, Error> {
    // Names are unique, also among those of earlier demos.
    let name = format!("demo {}", jiff::Zoned::now().strftime("%F %T"));
    let asked = NewToken { name, scope: Scope::Submit, expires_in_days: Some(1) };
    Ok(make_token(db, &asked, &Caller::owner()).await?.secret)
}

/// A new key for the agent that lives in the server's own process; its old one ends.
pub async fn local_agent_key(db: &Db, name: &str) -> Result<String, Error> {
    let key = secret::make(Kind::AgentKey);
    crate::fleet::store::replace_key(&db.write, name, &secret::hash(&key), now_ms()).await?;
    Ok(key)
}
