//! Loads the addresses that users log in from at start.

use std::time::Duration;

use brewbench_wire::now_ms;

use crate::app::{rate_limit::known, state::AppState};

/// How old a login may be for its address to count as known after a restart.
pub(crate) const MAX_AGE: Duration = Duration::from_hours(90 * 24);

/// Passes the addresses of recent logins, read from the audit log, to the rate limits.
pub async fn remember_places(state: &AppState) -> sqlx::Result<()> {
    let max_age = i64::try_from(MAX_AGE.as_millis()).unwrap_or(i64::MAX);
    for address in
        crate::auth::store::audit::login_addresses(&state.db.read, now_ms() - max_age, known::MAX_KNOWN).await?
    {
        state.limits.tries.signed_in(address.parse().ok());
    }
    Ok(())
}
