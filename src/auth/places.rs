//! The places that users log in from, remembered at start.

use std::time::Duration;

use brewbench_agent::wire::now_ms;

use crate::app::{rate_limit::known, state::AppState};

/// How long ago somebody may have logged in from somewhere for that to count after a restart.
pub(crate) const PLACES_KEPT: Duration = Duration::from_hours(90 * 24);

/// Has the limits know from where people log in; the audit log does.
pub async fn remember_places(state: &AppState) -> sqlx::Result<()> {
    let kept = i64::try_from(PLACES_KEPT.as_millis()).unwrap_or(i64::MAX);
    for place in crate::auth::store::audit::places(&state.db.read, now_ms() - kept, known::MOST).await? {
        state.limits.tries.signed_in(place.parse().ok());
    }
    Ok(())
}
