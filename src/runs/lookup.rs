//! Finds runs by id, and announces that one has changed.

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::{AppState, RunChanged},
    },
    runs::model::Run,
};

/// The run with this id, or a 404.
pub async fn found(state: &AppState, id: &RunId) -> Result<Run> {
    crate::runs::store::one(&state.db.rows, id).await?.ok_or_else(|| Error::NotFound(format!("run {:?}", id.as_str())))
}

/// Tells everybody who watches that a run changed.
pub fn tell(state: &AppState, run: &Run) {
    state.events.tell(RunChanged { run: run.id.clone(), experiment: run.experiment.clone() });
}
