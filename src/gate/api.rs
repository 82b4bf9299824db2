//! `/api/v1/compare/gate`: the decision as JSON, Markdown for a pull request, JUnit XML or SVG.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use super::{
    cells::{GateCell, GateSide, cells},
    decide::{Question, decide},
    junit, markdown,
    obstacle::{MIN_REPETITIONS, Suspect},
    picture,
    rule::{Rule, metric},
    title::title,
};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        state::AppState,
    },
    auth::caller::Read,
    baselines::resolve::{Kind, Resolved, resolve},
    compare::{chosen::MAX_RUNS, comparability::Circumstance, context::load, statistics::power::MAX_REPETITIONS},
    gate::model::Gate,
    runs::model::Run,
    web::format::plural,
};

/// The maximum number of rules.
const MAX_RULES: usize = 50;

/// Query parameters: what to compare, and on what the gate fails.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GateQuery {
    /// The baseline: names of baselines and ids of experiments and runs, separated by commas.
    #[serde(default)]
    pub baseline: String,
    /// The candidate to judge, in the same format.
    #[serde(default)]
    pub candidate: String,
    /// Rules, separated by commas or one `fail_on` each: a metric as in `compare` (`_ms` is optional), `<` or `>`, and
    /// a percentage: `rps<-5%`, `p99>10%`. For `error_rate` it is percentage points.
    #[serde(default)]
    pub fail_on: Vec<String>,
    /// The target of the baseline, `name` or `name@version`. By default the only one; several targets are paired by
    /// name.
    pub baseline_target: Option<String>,
    /// The target of the candidate, `name` or `name@version`.
    pub candidate_target: Option<String>,
    /// Confounders to accept, one `accept` each: `agents`, `generators`, `engines`, `kinds`, `durations`, `warm-ups`,
    /// `limits`, `origins`, `setups`, `environments`, `work`.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Includes suspect runs.
    #[serde(default)]
    pub accept_suspect: bool,
    /// The metric to test first. The default is throughput; for an open model p99, else CPU time per request. It must
    /// have a rule.
    pub primary: Option<String>,
    /// The maximum number of repetitions, 4 to 100, if repetitions are added until the gate decides. Each look then
    /// spends a part of the error rate.
    #[serde(default, deserialize_with = "number_if_any")]
    pub max_repeat: Option<usize>,
    /// The format of the response. The default is `json`.
    #[serde(default)]
    format: GateFormat,
}

impl GateQuery {
    /// Whether both sides are named.
    pub fn is_complete(&self) -> bool {
        ![&self.baseline, &self.candidate].into_iter().any(|side| side.trim().is_empty())
    }

    /// Whether an option is set that is not a side or a rule.
    pub fn has_options(&self) -> bool {
        let is_chosen = self.primary.as_deref().is_some_and(|key| !key.is_empty()) || self.max_repeat.is_some();
        is_chosen || self.accept_suspect || !self.accept.is_empty()
    }

    /// Returns its rules in one line.
    pub fn rules(&self) -> String {
        self.fail_on.join(", ")
    }
}

/// Reads a number from a form field that may be empty.
fn number_if_any<'de, D: Deserializer<'de>>(field: D) -> std::result::Result<Option<usize>, D::Error> {
    let text = Option::<String>::deserialize(field)?;
    text.filter(|text| !text.trim().is_empty()).map(|text| text.trim().parse().map_err(D::Error::custom)).transpose()
}

/// The format of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateFormat {
    /// All figures and rulings.
    #[default]
    Json,
    /// A comment or a summary.
    Markdown,
    /// JUnit XML.
    Junit,
    /// A picture of the intervals.
    Svg,
}

/// Decides whether a candidate is a regression: `fine`, `regression`, or `cannot_say` if the runs allow no decision.
#[utoipa::path(get, path = "/api/v1/compare/gate", tag = "compare", params(GateQuery),
    responses((status = 200, body = Gate, description = "or text/markdown, application/xml or image/svg+xml"),
        (status = 404, body = ErrorBody, description = "a baseline, experiment or run does not exist"),
        (status = 422, body = ErrorBody, description = "invalid rule, or ambiguous targets")))]
pub async fn gate(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<GateQuery>,
) -> Result<Response> {
    let gate = evaluate(&state, &query).await?;
    Ok(match query.format {
        GateFormat::Json => Json(gate).into_response(),
        GateFormat::Markdown => typed("text/markdown; charset=utf-8", markdown::text(&gate)),
        GateFormat::Junit => typed("application/xml; charset=utf-8", junit::text(&gate)),
        GateFormat::Svg => typed("image/svg+xml", picture::svg(&gate)),
    })
}

fn typed(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Loads the runs of both sides and decides.
pub async fn evaluate(state: &AppState, query: &GateQuery) -> Result<Gate> {
    let (rules, accept) = read(query).map_err(Error::Invalid)?;
    let primary = query.primary.as_deref().filter(|key| !key.is_empty()).map(metric).transpose();
    let primary = primary.map_err(|fault| Error::Invalid(format!("primary: {fault}")))?;
    let max_repeat = checked_max_repeat(query.max_repeat).map_err(Error::Invalid)?;
    let base = load_side(state, "baseline", &query.baseline).await?;
    let new = load_side(state, "candidate", &query.candidate).await?;
    check(&base, &new).map_err(Error::Invalid)?;
    let url = address(state, &[&base, &new]);
    let gone: Vec<String> = [("baseline", &base), ("candidate", &new)]
        .into_iter()
        .filter(|(_, side)| side.gone > 0)
        .map(|(role, side)| format!("{} of the {role} deleted since the baseline was set", plural(side.gone, "run")))
        .collect();
    let cells = if base.runs.is_empty() || new.runs.is_empty() {
        Vec::new()
    } else {
        let side = |role, resolved: &Resolved, target: &Option<String>| GateSide {
            role,
            runs: resolved.runs.clone(),
            target: target.clone().filter(|target| !target.is_empty()),
        };
        let baseline = side("baseline", &base, &query.baseline_target);
        let candidate = side("candidate", &new, &query.candidate_target);
        cells(&baseline, &candidate).map_err(Error::Invalid)?
    };
    let runs: Vec<Run> = base.runs.iter().chain(&new.runs).cloned().collect();
    let known = load(state, &runs).await?;
    let suspect = if query.accept_suspect { Suspect::Accepted } else { Suspect::Excluded };
    let question =
        Question { rules: &rules, accept: &accept, suspect, primary, max_repeat, cells: &cells, known: &known };
    let decided = decide(&question);
    let notes = gone.into_iter().chain(decided.notes).collect();
    let chosen = |side: fn(&GateCell) -> &Vec<Run>| cells.iter().flat_map(side).collect::<Vec<&Run>>();
    let title = title((&base, &chosen(|cell| &cell.baseline)), (&new, &chosen(|cell| &cell.candidate)));
    Ok(Gate { title, baseline: base.text, candidate: new.text, url, notes, ..decided })
}

/// Returns the URL of the comparison of the same runs, by the names in this query.
fn address(state: &AppState, sides: &[&Resolved]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let all: BTreeSet<&(Kind, String)> = sides.iter().flat_map(|side| &side.parts).collect();
    query.extend_pairs(all.into_iter().map(|(kind, name)| (kind.key(), name)));
    format!("{}compare?{}", state.public_url, query.finish())
}

fn read(query: &GateQuery) -> Result<(Vec<Rule>, Vec<Circumstance>), String> {
    let within = |field: &'static str| move |fault: String| format!("{field}: {fault}");
    let texts: Vec<&str> =
        query.fail_on.iter().flat_map(|texts| texts.split(',')).filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() || texts.len() > MAX_RULES {
        return Err(format!("fail_on: write 1 to {MAX_RULES} rules, such as rps<-5%"));
    }
    let mut rules: Vec<Rule> = Vec::new();
    for text in texts {
        let rule = text.parse().map_err(within("fail_on"))?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let accept = query.accept.iter().map(|text| text.parse().map_err(within("accept"))).collect::<Result<_, _>>()?;
    Ok((rules, accept))
}

fn checked_max_repeat(max: Option<usize>) -> Result<Option<usize>, String> {
    match max {
        Some(max) if !(MIN_REPETITIONS..=MAX_REPETITIONS).contains(&max) => {
            Err(format!("max_repeat: {max} is not between {MIN_REPETITIONS} and {MAX_REPETITIONS}"))
        }
        max => Ok(max),
    }
}

async fn load_side(state: &AppState, role: &str, text: &str) -> Result<Resolved> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{role}: name a baseline, an experiment or runs")));
    }
    resolve(state, text).await
}

fn check(base: &Resolved, new: &Resolved) -> Result<(), String> {
    let all = base.runs.len() + new.runs.len();
    if all > MAX_RUNS {
        return Err(format!("{all} runs named; a comparison has at most {MAX_RUNS}"));
    }
    // If both sides name the same runs, their targets tell them apart.
    let both = base.runs.iter().find(|run| new.runs.iter().any(|other| other.id == run.id));
    match both {
        Some(run) if base.runs != new.runs => Err(format!("run {} is in the baseline and in the candidate", run.id)),
        _ => Ok(()),
    }
}
