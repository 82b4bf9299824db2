//! History and single runs as pages.

use axum::Router;

use crate::state::AppState;

/// The pages of this slice.
pub fn router() -> Router<AppState> {
    Router::new()
}
