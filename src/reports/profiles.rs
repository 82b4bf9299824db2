//! The profiles that belong to a comparison: its experiments' profiled runs, target against target.

use std::collections::BTreeSet;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    compare::view::Comparison,
    profiles::{
        api, links,
        model::{CompareQuery, ProfileComparison},
    },
    web::series_style::Marks,
};

/// The most pairs of targets in a report.
const MAX_PAIRS: usize = 6;
/// Functions per pair; the site has all.
const FUNCTIONS: usize = 10;

/// The profiles of two targets.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// Both targets and, if there are several, the setting.
    pub title: String,
    /// The comparison, or why there is none.
    pub found: Result<ProfileComparison, String>,
}

/// Compares the profiles of all experiments of a comparison.
pub async fn of(state: &AppState, comparison: &Comparison) -> Result<Vec<Profiled>> {
    let compared = || comparison.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
    let experiments: BTreeSet<_> = compared().filter_map(|run| run.experiment.as_ref()).collect();
    let targets: BTreeSet<&str> = compared().map(|run| run.spec.target.as_str()).collect();
    let mut all = Vec::new();
    for experiment in experiments {
        let mut runs = crate::runs::store::of_experiment(&state.db.rows, experiment).await?;
        runs.retain(|run| targets.contains(run.spec.target.as_str()));
        for setting in links::links(&runs, &Marks::default()) {
            for (baseline, candidate, query) in setting.pairs() {
                if all.len() == MAX_PAIRS {
                    return Ok(all);
                }
                let names = format!("{} and {}", baseline.name(), candidate.name());
                let title = if setting.title.is_empty() { names } else { format!("{names} · {}", setting.title) };
                let query = CompareQuery { limit: Some(FUNCTIONS), ..query };
                let found = match api::comparison(state, &query).await {
                    Ok(comparison) => Ok(comparison),
                    Err(Error::Conflict(why) | Error::NotFound(why) | Error::Invalid(why)) => Err(why),
                    Err(error) => return Err(error),
                };
                all.push(Profiled { title, found });
            }
        }
    }
    Ok(all)
}
