//! Proof that a caller is who the session says: a confirmation with the passkey within the last 15 minutes.
//!
//! It guards what opens a way in or out, and what cannot be undone: users, roles, passkeys, tokens, invitations, agent
//! keys, webhooks, share links, backups and retention. None of this can be done at an unattended browser. What ends
//! access (logging out, revoking, withdrawing) needs no proof, because it must work at once.
//!
//! A handler names `Proven<Admin>` or another caller in its signature, and an action that needs proof takes a
//! [`Proven<Caller>`], which nothing else can create.

use std::ops::Deref;

use axum::{extract::FromRequestParts, http::request::Parts};
use brewbench_wire::now_ms;

use super::caller::{Admin, Caller, SignedIn, Submit, TokenManager};
use crate::app::{
    error::{Error, Result},
    state::AppState,
};

/// How long a confirmed identity is valid, ms.
pub const PROOF_MS: i64 = 15 * 60 * 1_000;

/// A caller who proved their identity recently. Programs prove theirs with each request, by their token.
#[derive(Clone, Debug)]
pub struct Proven<T>(T);

/// An extractor that holds an authenticated caller.
pub trait Authenticated {
    /// Returns the caller.
    fn caller(&self) -> &Caller;
}

impl<T: Authenticated> Proven<T> {
    /// Returns the caller, for an action that needs proof.
    pub fn by(&self) -> Proven<Caller> {
        Proven(self.0.caller().clone())
    }
}

impl Proven<Caller> {
    /// Returns the caller of commands on the data folder. Write access to the folder allows everything anyway.
    pub fn owner() -> Self {
        Self(Caller::owner())
    }
}

impl<T> Deref for Proven<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Returns whether a caller needs no further confirmation.
pub fn is_proven(caller: &Caller) -> bool {
    caller.session.is_none_or(|session| session.proved_at_ms > now_ms() - PROOF_MS)
}

impl<T: Authenticated + FromRequestParts<AppState, Rejection = Error>> FromRequestParts<AppState> for Proven<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let caller = T::from_request_parts(parts, state).await?;
        if is_proven(caller.caller()) { Ok(Self(caller)) } else { Err(Error::Unproven) }
    }
}

impl Authenticated for SignedIn {
    fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl Authenticated for TokenManager {
    fn caller(&self) -> &Caller {
        &self.0
    }
}

impl Authenticated for Submit {
    fn caller(&self) -> &Caller {
        &self.0
    }
}

impl Authenticated for Admin {
    fn caller(&self) -> &Caller {
        &self.0
    }
}
