//! Login, registration and logout as pages; the account, people, tokens and the audit log in the files beside this one.

mod account;
mod audit;
pub mod login;
pub mod parts;
mod people;
mod tokens;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{
    app::state::AppState,
    auth::pages::login::{confirm, login, logout, register},
};

/// The pages of this module.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/login", get(login))
        .route("/register", get(register))
        .route("/confirm", get(confirm))
        .route("/logout", post(logout))
        .route("/account", get(account::show))
        .route("/account/passkeys/{id}/rename", post(account::rename))
        .route("/account/passkeys/{id}/remove", get(account::ask_remove).post(account::remove))
        .route("/account/sessions/{id}/end", post(account::end))
        .route("/account/sessions/end-others", get(account::ask_end_others).post(account::end_others))
        .route("/tokens", get(tokens::show).post(tokens::make))
        .route("/tokens/{name}/revoke", get(tokens::ask_revoke).post(tokens::revoke))
        .route("/people", get(people::show))
        .route("/people/invites", post(people::invite))
        .route("/people/invites/{id}/withdraw", get(people::ask_withdraw).post(people::withdraw))
        .route("/people/{name}/role", post(people::role))
        .route("/people/{name}/remove", get(people::ask_remove).post(people::remove))
        .route("/people/{name}/mend", get(people::ask_mend).post(people::mend))
        .route("/audit", get(audit::show))
}
