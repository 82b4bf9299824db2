//! Runs side by side, with a verdict that can be trusted.
//!
//! In reading order: [`selection`] says which runs may be compared, [`cell`] holds the figures, [`statistics`] has the
//! formulas, [`pair`] applies them to two cells and [`past`] to what is known of them, [`answers`] corrects all questions
//! of a page, [`view`] puts everything together with [`headline`], [`notes`], [`left_out`] and [`charts`]. All of that is
//! pure; [`pages`] and [`api`] show it.

pub mod answers;
pub mod api;
pub mod cell;
pub mod charts;
pub mod differences;
pub mod equal_work;
pub mod headline;
pub mod known;
pub mod left_out;
pub mod likeness;
#[cfg(test)]
pub mod made_up;
pub mod matrix;
pub mod metric;
pub mod min_effect;
pub mod notes;
pub mod pages;
pub mod pair;
pub mod past;
pub mod scatter;
pub mod selection;
pub mod statistics;
pub mod story;
pub mod story_charts;
pub mod sweep;
pub mod view;

use axum::{Router, http::Uri, routing::get};
use axum_extra::extract::Query;
use brewbench_agent::wire::series::Packed;
use serde::Deserialize;
use tokio::task::spawn_blocking;
use url::form_urlencoded;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use cell::Row;

use crate::{
    baselines::{self, Baseline},
    catalog,
    error::{Error, Result},
    metrics,
    runs::{Run, api::export, queries},
    state::AppState,
    web::mark::Marks,
};

use metric::Metric;
use min_effect::MinEffect;
use selection::By;
use story::Story;
pub use view::{Comparison, Told};

/// More runs than this are no comparison that anybody reads.
pub const MOST_RUNS: usize = 500;

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
    /// Ids of experiments, whose runs are meant as well; separated by commas or one `experiments` each.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// Names of baselines, whose runs are meant as well; separated by commas or one `baselines` each.
    #[serde(default)]
    pub baselines: Vec<String>,
    /// The target that differences are relative to: `name` or `name@version`. The first by name if not given.
    pub baseline: Option<String>,
    /// What is compared: `target` in its versions unless said otherwise, `size`, `load`, `agent` or `label`.
    #[serde(default)]
    pub by: By,
    /// The minimum effect: the smallest difference that matters, percent by metric: `rps:2,p99_ms:5`. One percent if not
    /// given; of failed requests 0.1 points of their share.
    #[serde(alias = "least")]
    pub min_effect: Option<String>,
    /// Compares runs that differ in more than the target, too: agents or machines, versions of k6, what enforced the size.
    #[serde(default, alias = "unlike")]
    pub allow_confounders: bool,
    /// The metric that is tested first: `rps`, `p50_ms`, `p99_ms`, `error_rate`, `cpu_ms` or `memory`. Throughput if not
    /// given; p99 where the load is a rate.
    pub primary: Option<String>,
    /// Whose matrix is shown: `rps`, `p99_ms`, `received_per_s` … Those of throughput and p99 if not given. For the page.
    pub matrix: Option<String>,
    /// Which setting's runs are shown second by second, from 1; the first with any series if not given. For the page.
    pub setting: Option<usize>,
}

fn named_metric(key: &str) -> Result<Metric> {
    let known = || metrics::compared().map(Metric::key).collect::<Vec<_>>().join(", ");
    let found = metrics::compared().find(|metric| metric.key() == key);
    found.ok_or_else(|| Error::Invalid(format!("matrix: there is no {key:?}; there are {}", known())))
}

/// How runs are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Key or target that differences are relative to; the first if there is none of that name.
    pub baseline: Option<String>,
    /// What is compared.
    pub by: By,
    /// From where on a difference matters.
    pub min_effect: MinEffect,
    /// Runs that differ in more than what is compared are compared, too.
    pub allow_confounders: bool,
    /// The metric that is tested first, where it is not the default.
    pub primary: Option<Metric>,
    /// Whose matrix is shown.
    pub matrix: Option<Metric>,
}

impl Options {
    /// The address of a comparison of these runs in spite of confounders.
    fn with_confounders(&self, ids: &[String]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("runs", &ids.join(","));
        query.extend_pairs(self.baseline.iter().map(|key| ("baseline", key)));
        let min_effect = self.min_effect.text();
        query.extend_pairs(Some(&min_effect).filter(|text| !text.is_empty()).map(|text| ("min_effect", text)));
        query.extend_pairs(self.primary.map(|metric| ("primary", metric.key())));
        query.extend_pairs((self.by != By::default()).then(|| ("by", self.by.key())));
        query.append_pair("allow_confounders", "true");
        format!("/compare?{}", query.finish())
    }
}

impl Chosen {
    /// The ids, each once, in the order given.
    fn ids(&self) -> Vec<String> {
        export::ids(&self.runs)
    }

    /// What the address says of the runs.
    fn kept(&self, ids: &[String]) -> Vec<(String, String)> {
        let mut kept = vec![("runs".to_owned(), ids.join(","))];
        kept.extend(self.allow_confounders.then(|| ("allow_confounders".to_owned(), "true".to_owned())));
        kept
    }

    fn options(&self) -> Result<Options> {
        let min_effect = self.min_effect.as_deref().unwrap_or_default().parse();
        let primary = self.primary.as_deref().filter(|key| !key.is_empty()).map(Metric::judged).transpose();
        Ok(Options {
            baseline: self.baseline.clone().filter(|key| !key.is_empty()),
            by: self.by,
            min_effect: min_effect.map_err(|fault: String| Error::Invalid(format!("min_effect: {fault}")))?,
            allow_confounders: self.allow_confounders,
            primary: primary.map_err(|fault| Error::Invalid(format!("primary: {fault}")))?,
            matrix: self.matrix.as_deref().filter(|key| !key.is_empty()).map(named_metric).transpose()?,
        })
    }
}

/// The comparison that the query of an address of `/compare` names, wherever else its figures are used.
pub async fn of_query(state: &AppState, query: &str) -> Result<Comparison> {
    let chosen = read(query)?;
    let ids = named(state, &chosen).await?;
    if ids.is_empty() {
        return Err(nothing_named());
    }
    load(state, &chosen, &ids).await
}

/// The same as its page shows it, with what happened second by second.
pub async fn page_of_query(state: &AppState, query: &str) -> Result<Comparison> {
    let chosen = read(query)?;
    let mut comparison = of_query(state, query).await?;
    tell(state, &mut comparison, chosen.setting).await?;
    Ok(comparison)
}

fn read(query: &str) -> Result<Chosen> {
    let uri: Uri = format!("/compare?{query}").parse().map_err(|fault| Error::Invalid(format!("query: {fault}")))?;
    let Query(chosen) = Query::<Chosen>::try_from_uri(&uri)?;
    Ok(chosen)
}

fn nothing_named() -> Error {
    Error::Invalid("name the runs to compare: ?runs=ID,ID, or experiments= or baselines=".to_owned())
}

/// The ids of all runs that are meant. Of a baseline also those that were deleted since, so that they are told.
async fn named(state: &AppState, chosen: &Chosen) -> Result<Vec<String>> {
    let mut all = chosen.ids();
    for experiment in export::ids(&chosen.experiments) {
        let runs = baselines::meant::of_experiment(state, &experiment).await?;
        if runs.is_empty() {
            return Err(Error::NotFound(format!("experiment with runs {experiment:?}")));
        }
        all.extend(runs.into_iter().map(|run| run.id));
    }
    for name in export::ids(&chosen.baselines) {
        let Baseline { runs, gone, .. } = baselines::api::found(state, &name).await?;
        all.extend(runs.into_iter().chain(gone));
    }
    // One run may be meant twice.
    Ok(export::ids(&all))
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
    let mut comparison = of_runs(state, runs, marks, chosen.options()?).await?;
    comparison.notes.extend(notes::missing(&missing));
    Ok(comparison)
}

/// Compares runs, with all that is known beside them.
pub async fn of_runs(state: &AppState, runs: Vec<Run>, marks: Marks, options: Options) -> Result<Comparison> {
    let known = known::known(state, &runs).await?;
    spawn_blocking(move || Comparison::by(runs, &marks, &options, &known)).await.map_err(Error::internal)
}

/// More series than this are not laid upon each other.
const MOST_RECORDED: usize = 60;

/// Tells the story of one setting of a comparison: the one that was asked for, or the first that was recorded.
async fn tell(state: &AppState, comparison: &mut Comparison, setting: Option<usize>) -> Result<()> {
    let counting = |row: &Row| -> Vec<String> {
        let each = (MOST_RECORDED / row.rivals().count().max(1)).max(1);
        row.rivals().flat_map(|cell| cell.counting().take(each)).map(|run| run.id.clone()).collect()
    };
    let wished = setting.and_then(|number| number.checked_sub(1)).filter(|place| *place < comparison.rows.len());
    let places = wished.map_or_else(|| (0..comparison.rows.len()).collect(), |place| vec![place]);
    for place in places {
        let looked_at = counting(&comparison.rows[place]);
        let packed = queries::series_of(&state.db.read, &looked_at).await?;
        if packed.is_empty() && wished.is_none() {
            continue;
        }
        let (subjects, row) = (comparison.subjects.clone(), comparison.rows[place].clone());
        let base = subjects.iter().position(|subject| comparison.baseline.as_deref() == Some(&subject.key));
        let draw = move || {
            let unpacked = |(id, bytes)| Some((id, Packed::from_bytes(bytes).unpack().ok()?));
            let story = Story::new(&row, &looked_at, &packed.into_iter().filter_map(unpacked).collect())?;
            Some((story_charts::charts(&subjects, base.unwrap_or_default(), &story), story.missing))
        };
        let drawn = spawn_blocking(draw).await.map_err(Error::internal)?;
        comparison.told = drawn.map(|(charts, missing)| Told { charts, setting: place, missing });
        return Ok(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_by_commas_or_one_by_one_and_count_once() {
        let chosen = Chosen {
            runs: vec!["a, b".to_owned(), "c".to_owned(), "a,".to_owned()],
            baseline: Some(String::new()),
            ..Chosen::default()
        };
        assert_eq!(chosen.ids(), ["a", "b", "c"]);
        assert_eq!(chosen.options().expect("options").baseline, None);
    }
}
