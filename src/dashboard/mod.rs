//! The pages that look at several rooms at once: what happens, what there is, what is broken. They own no table.

pub mod agents;
pub mod queries;
pub mod sizes;
pub mod targets;

use axum::{Extension, Router, response::Redirect, routing::get};

use crate::{auth::Read, fleet::Presence, state::AppState};

/// Pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/", get(|_: Read| async { Redirect::to("/runs") }))
        .route("/agents", get(agents::index).post(agents::add))
        .route("/agents/{name}", get(agents::show))
        .route("/agents/{name}/revoke", get(agents::ask_revoke).post(agents::revoke))
        .route("/sizes", get(sizes::index).post(sizes::add))
        .route("/sizes/{name}/remove", get(sizes::ask_remove).post(sizes::remove))
        .route("/targets", get(targets::index))
        .route("/targets/{name}", get(targets::show))
        .layer(Extension(presence))
}
