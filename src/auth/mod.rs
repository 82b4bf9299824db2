//! Who may do what: people by passkey and session, programs by token; everybody else gets next to nothing.
//!
//! A handler says who may call it by taking [`Public`], [`SignIn`], [`Finish`], [`SignedIn`], [`Keeper`], [`Read`], [`Submit`] or
//! [`Admin`] (or the fleet's key of an agent), so none can forget to ask. A person's role is her scope: a viewer reads, a
//! member submits, an administrator manages. Secrets are random, shown once and stored as SHA-256.

pub mod api;
pub mod audit;
pub mod authority;
pub mod caller;
pub mod device;
pub mod housekeeping;
pub mod pages;
pub mod passkeys;
pub mod people;
pub mod queries;
pub mod refusals;
pub mod secret;

use std::time::Duration;

use axum::{Extension, Router};
use brewbench_agent::wire::now_ms;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use authority::{Ending, EndingList};
pub use caller::{Admin, Caller, Finish, Keeper, Public, Read, SignIn, SignedIn, Submit};
pub use passkeys::Passkeys;
pub use people::{
    Account, Invite, InviteList, MadeSecret, NewInvite, NewRole, NewToken, OpenInvite, OwnPasskey, OwnSession, Person,
    PersonList, Renamed, Token, TokenList,
};
pub use refusals::Refusals;

use crate::{limits::known, state::AppState};

/// How far a caller may go; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Submit and cancel runs, import summaries.
    Submit,
    /// Manage people, tokens, agents and sizes.
    Admin,
}

impl Scope {
    /// All, from the least on.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Admin];

    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }

    /// What it lets a program do.
    pub fn reach(self) -> &'static str {
        match self {
            Self::Read => "looks at everything",
            Self::Submit => "submits, cancels, imports and deletes runs as well",
            Self::Admin => "manages people, tokens, agents and sizes as well",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no scope: read, submit or admin"))
    }
}

/// What a person is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits.
    #[default]
    Member,
    /// Manages.
    Admin,
}

impl Role {
    /// All, from the least on.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Admin];

    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// How far a person of this role may go.
    pub fn scope(self) -> Scope {
        match self {
            Self::Viewer => Scope::Read,
            Self::Member => Scope::Submit,
            Self::Admin => Scope::Admin,
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role: viewer, member or admin"))
    }
}

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api(passkeys: Passkeys, refusals: Refusals) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::ceremonies::register_start))
        .routes(routes!(api::ceremonies::register_finish))
        .routes(routes!(api::ceremonies::login_start))
        .routes(routes!(api::ceremonies::login_finish))
        .routes(routes!(api::ceremonies::confirm_start))
        .routes(routes!(api::ceremonies::confirm_finish))
        .routes(routes!(api::account::account))
        .routes(routes!(api::account::passkey_start))
        .routes(routes!(api::account::passkey_finish))
        .routes(routes!(api::account::rename_passkey, api::account::remove_passkey))
        .routes(routes!(api::account::end_session))
        .routes(routes!(api::account::end_other_sessions))
        .routes(routes!(api::people::list))
        .routes(routes!(api::people::change_role, api::people::remove))
        .routes(routes!(api::people::ends))
        .routes(routes!(api::people::list_invites, api::people::invite))
        .routes(routes!(api::people::withdraw_invite))
        .routes(routes!(api::tokens::list, api::tokens::new))
        .routes(routes!(api::tokens::revoke))
        .routes(routes!(api::audit::list))
        .routes(routes!(api::audit::export))
        .layer(Extension(passkeys))
        .layer(Extension(refusals))
}

/// How long ago somebody may have logged in from somewhere for that to count after a restart.
const PLACES_KEPT: Duration = Duration::from_hours(90 * 24);

/// Has the limits know from where people log in; the audit log does.
pub async fn remember_places(state: &AppState) -> sqlx::Result<()> {
    let kept = i64::try_from(PLACES_KEPT.as_millis()).unwrap_or(i64::MAX);
    for place in queries::audit::places(&state.db.read, now_ms() - kept, known::MOST).await? {
        state.limits.tries.signed_in(place.parse().ok());
    }
    Ok(())
}
