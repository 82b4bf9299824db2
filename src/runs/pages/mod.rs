//! History and single runs as pages. What a page shows is put together by the pure files in here: [`headline`],
//! [`mod@line`], [`stages`], [`metrics`], [`checks`], [`machine`], [`mod@generators`], [`story`] and [`charts`].

pub mod acts;
pub mod charts;
pub mod checks;
pub mod chosen;
pub mod environment;
pub mod finder;
pub mod follow;
pub mod generators;
pub mod headline;
pub mod history;
pub mod import;
pub mod line;
pub mod machine;
pub mod metrics;
pub mod one;
pub mod remarks;
pub mod rules;
pub mod stages;
pub mod story;
pub mod views;
mod work;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    routing::{get, post},
};

use crate::state::AppState;

/// The pages of this slice. A form of files may be as large as said.
pub fn router(max_summary_bytes: usize) -> Router<AppState> {
    let limit = DefaultBodyLimit::max(max_summary_bytes);
    Router::new()
        .route("/runs/import", get(import::form).post(import::import).layer(limit))
        .route("/runs/imported", get(import::imported))
        .route("/runs", get(history::history))
        .route("/runs/live", get(history::live))
        .route("/runs/label", get(chosen::ask_label).post(chosen::label))
        .route("/runs/delete", get(chosen::ask_delete).post(chosen::delete))
        .route("/runs/views", post(views::save))
        .route("/runs/views/remove", get(views::ask_remove).post(views::remove))
        .route("/runs/undelete", post(chosen::undelete))
        .route("/runs/{id}", get(one::one))
        .route("/runs/{id}/environment", get(environment::environment))
        .route("/runs/{id}/note", post(remarks::note))
        .route("/runs/{id}/labels", post(remarks::add_label))
        .route("/runs/{id}/labels/remove", post(remarks::remove_label))
        .route("/runs/{id}/live", get(follow::live))
        .route("/runs/{id}/cancel", get(acts::ask_cancel).post(acts::cancel))
        .route("/runs/{id}/delete", get(acts::ask_delete).post(acts::delete))
        .layer(Extension(follow::Followed::default()))
}
