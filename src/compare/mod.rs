//! Runs side by side, with a verdict that can be trusted.
//!
//! In reading order: [`selection`] says which runs may be compared, [`cell`] holds the figures, [`statistics`] has the
//! formulas, [`answers`] asks who wins by them, [`view`] puts them together with [`headline`], [`notes`], [`left_out`] and [`charts`]. All of that is pure; [`pages`] and [`api`] show it.

pub mod answers;
pub mod api;
pub mod cell;
pub mod charts;
pub mod headline;
pub mod least;
pub mod left_out;
#[cfg(test)]
mod made_up;
pub mod metric;
pub mod notes;
pub mod pages;
pub mod selection;
pub mod statistics;
pub mod view;

use axum::{Router, routing::get};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    catalog,
    error::{Error, Result},
    runs::queries,
    state::AppState,
};

use least::Least;
pub use view::Comparison;

/// More runs than this are no comparison that anybody reads.
const MOST_RUNS: usize = 500;

/// The page.
pub fn router() -> Router<AppState> {
    Router::new().route("/compare", get(pages::compare))
}

/// The endpoint.
pub fn api_router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::compare))
}

/// Which runs to compare, as an address says it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Chosen {
    /// Ids of runs, separated by commas or one `runs` each.
    #[serde(default)]
    pub runs: Vec<String>,
    /// The target that differences are relative to: `name` or `name@version`. The first by name if not given.
    pub baseline: Option<String>,
    /// From where on a difference matters, percent by metric: `rps:2,p99_ms:5`. One percent if not given; of failed
    /// requests 0.1 points of their share.
    pub least: Option<String>,
}

impl Chosen {
    /// The ids, each once, in the order given.
    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for id in self.runs.iter().flat_map(|part| part.split(',')).map(str::trim).filter(|id| !id.is_empty()) {
            if !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        }
        ids
    }

    fn baseline(&self) -> Option<&str> {
        self.baseline.as_deref().filter(|key| !key.is_empty())
    }

    fn least(&self) -> Result<Least> {
        let parsed = self.least.as_deref().unwrap_or_default().parse();
        parsed.map_err(|fault: String| Error::Invalid(format!("least: {fault}")))
    }
}

/// Reads the runs with these ids and compares them. Some that are missing are a note, all of them an error.
async fn load(state: &AppState, chosen: &Chosen, ids: &[String]) -> Result<Comparison> {
    if ids.len() > MOST_RUNS {
        return Err(Error::Invalid(format!("{} runs were chosen; compare at most {MOST_RUNS} at once", ids.len())));
    }
    let runs = queries::by_ids(&state.db.read, ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound(format!("run {}", ids.join(", "))));
    }
    let missing: Vec<String> = ids.iter().filter(|id| !runs.iter().any(|run| run.id == **id)).cloned().collect();
    let targets: Vec<&str> = runs.iter().map(|run| run.target.as_str()).collect();
    let marks = catalog::queries::marks(&state.db.read, &targets).await?;
    let mut comparison = Comparison::by(runs, &marks, chosen.baseline(), &chosen.least()?);
    comparison.notes.extend(notes::missing(&missing));
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_by_commas_or_one_by_one_and_count_once() {
        let chosen = Chosen {
            runs: vec!["a, b".to_owned(), "c".to_owned(), "a,".to_owned()],
            baseline: Some(String::new()),
            least: None,
        };
        assert_eq!(chosen.ids(), ["a", "b", "c"]);
        assert_eq!(chosen.baseline(), None);
    }
}
