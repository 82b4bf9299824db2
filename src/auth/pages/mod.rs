//! Pages for login and registration, the account, users, tokens and the audit log.

mod account;
mod audit;
pub mod login;
pub mod parts;
mod tokens;
mod users;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{
    app::state::AppState,
    auth::{
        api,
        pages::login::{confirm, login, logout, register},
    },
    web::form::up,
};

/// Routes of the pages.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/login", get(login))
        .route("/register", get(register))
        .route("/confirm", get(confirm))
        .route("/logout", post(logout))
        .route("/account", get(account::show))
        .route("/account/notices/dismiss", post(account::dismiss))
        .route("/account/passkeys/{id}/rename", post(account::rename))
        .route("/account/passkeys/{id}/remove", up(3, post(api::account::remove_passkey)).get(account::ask_remove))
        .route("/account/sessions/{id}/end", up(3, post(api::account::end_session)))
        .route("/account/sessions/end-others", get(account::ask_end_others).post(account::end_others))
        .route("/tokens", get(tokens::show).post(tokens::create))
        .route("/tokens/{name}/revoke", up(2, post(api::tokens::revoke)).get(tokens::ask_revoke))
        .route("/users", get(users::show))
        .route("/users/invites", post(users::invite))
        .route("/users/invites/{id}/withdraw", up(3, post(api::users::withdraw_invite)).get(users::ask_withdraw))
        .route("/users/{name}/role", post(users::role))
        .route("/users/{name}/remove", up(2, post(api::users::remove)).get(users::ask_remove))
        .route("/users/{name}/reset-passkeys", get(users::confirm_recovery).post(users::recover))
        .route("/audit", get(audit::show))
}
