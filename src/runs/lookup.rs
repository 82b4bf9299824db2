//! Finds runs by id and announces changes.

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::{AppState, RunChanged},
    },
    runs::model::Run,
};

/// Returns the run with this id, or a 404.
pub async fn found(state: &AppState, id: &RunId) -> Result<Run> {
    crate::runs::store::find(&state.db.rows, id).await?.ok_or_else(|| Error::NotFound(format!("run {:?}", id.as_str())))
}

/// Announces a changed run to live pages and other subscribers.
pub fn announce(state: &AppState, run: &Run) {
    state.events.publish(RunChanged { run: run.id.clone(), experiment: run.experiment.clone() });
}
