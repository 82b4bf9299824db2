//! Authentication and roles: users have passkeys and sessions, programs have tokens.
//!
//! A handler names its caller in its signature, so none can skip the check: [`caller::Public`], [`caller::SignIn`],
//! [`caller::Finish`], [`caller::SignedIn`], [`caller::TokenManager`], [`caller::Read`], [`caller::Submit`] or
//! [`caller::Admin`]; [`proven::Proven`] of one of them also requires a recent proof of identity. Agents have
//! [`crate::fleet::api::AgentCaller`]. A user's role determines the scope: a viewer reads, a member submits, an
//! administrator manages. Secrets are random, shown once and stored as SHA-256.

pub mod admission;
pub mod api;
pub mod audit;
pub mod authority;
pub mod caller;
pub mod checks;
pub mod device;
pub mod housekeeping;
pub mod model;
pub mod notices;
pub mod pages;
pub mod passkeys;
pub mod places;
pub mod proven;
pub mod refusals;
pub mod secret;
pub mod store;
pub mod users;

use axum::{Extension, Router};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::state::AppState,
    auth::{passkeys::Passkeys, refusals::Refusals},
};

/// Routes of the pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Routes of the JSON API.
pub fn api(passkeys: Passkeys, refusals: Refusals) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::ceremonies::register_start))
        .routes(routes!(api::ceremonies::register_finish))
        .routes(routes!(api::ceremonies::login_start))
        .routes(routes!(api::ceremonies::login_finish))
        .routes(routes!(api::ceremonies::confirm_start))
        .routes(routes!(api::ceremonies::confirm_finish))
        .routes(routes!(api::account::account))
        .routes(routes!(api::account::dismiss_notices))
        .routes(routes!(api::account::passkey_start))
        .routes(routes!(api::account::passkey_finish))
        .routes(routes!(api::account::rename_passkey, api::account::remove_passkey))
        .routes(routes!(api::account::end_session))
        .routes(routes!(api::account::end_other_sessions))
        .routes(routes!(api::users::list))
        .routes(routes!(api::users::change_role, api::users::remove))
        .routes(routes!(api::users::ends))
        .routes(routes!(api::users::list_invites, api::users::invite))
        .routes(routes!(api::users::withdraw_invite))
        .routes(routes!(api::tokens::list, api::tokens::new))
        .routes(routes!(api::tokens::revoke))
        .routes(routes!(api::audit::list))
        .routes(routes!(api::audit::export))
        .layer(Extension(passkeys))
        .layer(Extension(refusals))
}
