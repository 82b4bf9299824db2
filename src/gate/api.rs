//! `/api/v1/compare/gate`: the decision as JSON, as Markdown for a pull request, or as JUnit's XML.

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
    cells::{Side, cells},
    decide::{Question, decide},
    junit, markdown,
    obstacle::{FEWEST, Suspect},
    rule::{Rule, metric},
};
use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Result},
        state::AppState,
    },
    auth::caller::Read,
    baselines::resolve::{Kind, Meant, meant},
    compare::{chosen::MOST_RUNS, comparability::Circumstance, context::known, statistics::power::MOST_REPETITIONS},
    gate::model::Gate,
    runs::model::Run,
    web::format::plural,
};

/// More rules than this are no gate.
const MOST_RULES: usize = 50;

/// What is compared with what, and what fails the gate.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wish {
    /// Names of baselines, ids of experiments, ids of runs, separated by commas.
    #[serde(default)]
    pub baseline: String,
    /// The same of what is to be judged.
    #[serde(default)]
    pub candidate: String,
    /// Rules, separated by commas or one `fail_on` each: a metric as `compare` names it (`_ms` may be left out), `<` or
    /// `>`, and a percentage: `rps<-5%`, `p99>10%`. That of `error_rate` is of points.
    #[serde(default)]
    pub fail_on: Vec<String>,
    /// The target of the baseline that is meant, `name` or `name@version`. The only one, or each with its namesake, if not
    /// given.
    pub baseline_target: Option<String>,
    /// The target of the candidate that is meant.
    pub candidate_target: Option<String>,
    /// Confounders to accept, one `accept` each: `agents`, `generators`, `engines`, `durations`, `warm-ups`, `limits`,
    /// `origins`, `environments`, `work`.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Uses suspect runs, too.
    #[serde(default)]
    pub accept_suspect: bool,
    /// The metric that is tested first. The default is throughput; p99, else CPU time a request, where the load is a
    /// rate; of those that rules are about.
    pub primary: Option<String>,
    /// Where repetitions are added until the gate is decided: the most that there will be, 4 to 100. Each look then spends
    /// its part of the error rate.
    #[serde(default, deserialize_with = "number_if_any")]
    pub max_repeat: Option<usize>,
    /// `json` unless said.
    #[serde(default)]
    format: Format,
}

impl Wish {
    /// Whether it says enough to be answered.
    pub fn is_whole(&self) -> bool {
        ![&self.baseline, &self.candidate].into_iter().any(|side| side.trim().is_empty())
    }

    /// Its rules in one line.
    pub fn rules(&self) -> String {
        self.fail_on.join(", ")
    }
}

/// A field of a form that may be empty.
fn number_if_any<'de, D: Deserializer<'de>>(field: D) -> std::result::Result<Option<usize>, D::Error> {
    let text = Option::<String>::deserialize(field)?;
    text.filter(|text| !text.trim().is_empty()).map(|text| text.trim().parse().map_err(D::Error::custom)).transpose()
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Markdown,
    Junit,
}

/// Whether a candidate is a regression: `fine`, `regression`, or `cannot_say` where the runs allow no answer.
#[utoipa::path(get, path = "/api/v1/compare/gate", tag = "compare", params(Wish),
    responses((status = 200, body = Gate, description = "or text/markdown, or application/xml"),
        (status = 404, body = ErrorBody, description = "a baseline, experiment or run is not there"),
        (status = 422, body = ErrorBody, description = "invalid rule, or ambiguous targets")))]
pub async fn gate(_: Read, State(state): State<AppState>, Asked(wish): Asked<Wish>) -> Result<Response> {
    let gate = answer(&state, &wish).await?;
    Ok(match wish.format {
        Format::Json => Json(gate).into_response(),
        Format::Markdown => typed("text/markdown; charset=utf-8", markdown::text(&gate)),
        Format::Junit => typed("application/xml; charset=utf-8", junit::text(&gate)),
    })
}

fn typed(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Reads what is named and decides.
pub async fn answer(state: &AppState, wish: &Wish) -> Result<Gate> {
    let (rules, accept) = read(wish).map_err(Error::Invalid)?;
    let primary = wish.primary.as_deref().filter(|key| !key.is_empty()).map(metric).transpose();
    let primary = primary.map_err(|fault| Error::Invalid(format!("primary: {fault}")))?;
    let max_repeat = checked_most(wish.max_repeat).map_err(Error::Invalid)?;
    let base = named(state, "baseline", &wish.baseline).await?;
    let new = named(state, "candidate", &wish.candidate).await?;
    check(&base, &new).map_err(Error::Invalid)?;
    let url = address(state, &[&base, &new]);
    let gone: Vec<String> = [("baseline", &base), ("candidate", &new)]
        .into_iter()
        .filter(|(_, side)| side.gone > 0)
        .map(|(role, side)| format!("{} of the {role} deleted since it was set", plural(side.gone, "run")))
        .collect();
    let cells = if base.runs.is_empty() || new.runs.is_empty() {
        Vec::new()
    } else {
        let side = |role, meant: &Meant, target: &Option<String>| Side {
            role,
            runs: meant.runs.clone(),
            target: target.clone().filter(|target| !target.is_empty()),
        };
        let baseline = side("baseline", &base, &wish.baseline_target);
        let candidate = side("candidate", &new, &wish.candidate_target);
        cells(&baseline, &candidate).map_err(Error::Invalid)?
    };
    let runs: Vec<Run> = base.runs.iter().chain(&new.runs).cloned().collect();
    let known = known(state, &runs).await?;
    let suspect = if wish.accept_suspect { Suspect::Accepted } else { Suspect::Excluded };
    let question =
        Question { rules: &rules, accept: &accept, suspect, primary, max_repeat, cells: &cells, known: &known };
    let decided = decide(&question);
    let notes = gone.into_iter().chain(decided.notes).collect();
    Ok(Gate { baseline: base.text, candidate: new.text, url, notes, ..decided })
}

/// Where the same is compared, by the names that it was given here.
fn address(state: &AppState, sides: &[&Meant]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let all: BTreeSet<&(Kind, String)> = sides.iter().flat_map(|side| &side.parts).collect();
    query.extend_pairs(all.into_iter().map(|(kind, name)| (kind.key(), name)));
    format!("{}compare?{}", state.public_url, query.finish())
}

fn read(wish: &Wish) -> Result<(Vec<Rule>, Vec<Circumstance>), String> {
    let within = |field: &'static str| move |fault: String| format!("{field}: {fault}");
    let texts: Vec<&str> =
        wish.fail_on.iter().flat_map(|texts| texts.split(',')).filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() || texts.len() > MOST_RULES {
        return Err(format!("fail_on: say on what to fail, as in rps<-5%; {MOST_RULES} rules at most"));
    }
    let mut rules: Vec<Rule> = Vec::new();
    for text in texts {
        let rule = text.parse().map_err(within("fail_on"))?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let accept = wish.accept.iter().map(|text| text.parse().map_err(within("accept"))).collect::<Result<_, _>>()?;
    Ok((rules, accept))
}

fn checked_most(most: Option<usize>) -> Result<Option<usize>, String> {
    match most {
        Some(most) if !(FEWEST..=MOST_REPETITIONS).contains(&most) => {
            Err(format!("max_repeat: {most} is not between {FEWEST} and {MOST_REPETITIONS}"))
        }
        most => Ok(most),
    }
}

async fn named(state: &AppState, role: &str, text: &str) -> Result<Meant> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{role}: name a baseline, an experiment or runs")));
    }
    meant(state, text).await
}

fn check(base: &Meant, new: &Meant) -> Result<(), String> {
    let all = base.runs.len() + new.runs.len();
    if all > MOST_RUNS {
        return Err(format!("{all} runs were named; at most {MOST_RUNS} can be held against each other"));
    }
    // Where one experiment holds both, targets tell the sides apart, not runs.
    let both = base.runs.iter().find(|run| new.runs.iter().any(|other| other.id == run.id));
    match both {
        Some(run) if base.runs != new.runs => Err(format!("run {} is of the baseline and of the candidate", run.id)),
        _ => Ok(()),
    }
}
