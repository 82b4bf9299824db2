//! Finds runs by id, and announces that one has changed.

use uuid::Uuid;

use crate::{
    app::{
        error::{Error, Result},
        state::{AppState, RunChanged},
    },
    runs::model::Run,
};

/// The run with this id, or a 404.
pub async fn found(state: &AppState, id: &str) -> Result<Run> {
    crate::runs::store::one(&state.db.read, id).await?.ok_or_else(|| Error::NotFound(format!("run {id:?}")))
}

/// Tells everybody who watches that a run changed.
pub fn tell(state: &AppState, run: &Run) {
    let experiment = run.experiment.as_deref().and_then(|id| Uuid::parse_str(id).ok());
    if let Ok(run) = Uuid::parse_str(&run.id) {
        state.events.tell(RunChanged { run, experiment });
    }
}

/// The ids that an address names, each once.
pub fn ids(parts: &[String]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for id in parts.iter().flat_map(|part| part.split(',')).map(str::trim).filter(|id| !id.is_empty()) {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}
