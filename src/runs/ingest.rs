//! How the results of agents get into the store.
//!
//! **The rule for results.** A run takes the first whole result that arrives for it from the agent that it was given to.
//! A result that comes twice, or after the run was cancelled, is acknowledged (so that the agent can forget it) and
//! changes nothing. A result for a run that was given up as lost still counts as long as nobody has begun to measure the
//! cell again: the run then takes it and its place-holder leaves the queue. Otherwise the new measurement counts. What an
//! agent stopped is no result: where nobody cancelled the run, it is lost.

use std::{collections::BTreeMap, str::FromStr};

use brewbench_agent::wire::{
    Phase, RunId, now_ms,
    outcome::{Conditions, Cores, Ended, Observed, Outcome},
    series::Packed,
    summary::{self, Figures},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    blob,
    material::{self, Made, Material, Seen},
    queries::{
        self, costs,
        endings::{self, Ending},
        judgements::{self, Asked},
        leases,
    },
    verdict::{Judgement, Limits, judge_failure},
};
use crate::{
    db::Db,
    error::{Error, Result},
};

/// A packed series larger than this is none that an agent of ours makes: theirs are some 100 kB at most.
const MOST_SERIES_BYTES: usize = 4 << 20;

/// What an agent saw of a run besides its summary; stored as one blob, shown on the run's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The target's last output.
    pub target_log: String,
    /// k6's last output.
    pub k6_log: String,
    /// What the sandbox counted.
    pub observed: Option<Observed>,
    /// Where both sides ran.
    pub cores: Cores,
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// What speaks for or against the circumstances.
    #[serde(default)]
    pub conditions: Conditions,
}

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    /// Whether it counts.
    pub kept: bool,
    /// Why it doesn't.
    pub why: Option<String>,
}

impl Settled {
    fn dropped(why: impl Into<String>) -> Self {
        Self { kept: false, why: Some(why.into()) }
    }
}

/// Settles an agent's result by the rule above; committed when this returns.
pub async fn settle(db: &Db, agent: &str, outcome: &Outcome) -> Result<Settled> {
    let id = outcome.run.to_string();
    let now = now_ms();
    let asked = judgements::asked(&db.read, &id).await?;
    let scenario = asked.scenario.clone();
    let (series, seen) = series(outcome);
    let evidence = Evidence::of(outcome);
    let packed = blob::pack(&serde_json::to_vec(&evidence).map_err(Error::internal)?);
    let end = End::of(outcome, asked, evidence, seen);
    let summary = outcome.summary.as_deref().map(|text| blob::pack(text.as_bytes()));

    let mut transaction = db.write.begin().await?;
    let (phase, holder) =
        leases::standing(&mut transaction, &id).await?.ok_or_else(|| Error::NotFound(format!("run {id}")))?;
    if holder.as_deref() != Some(agent) {
        return Ok(Settled::dropped(format!("run {id} is not in the hands of {agent}")));
    }
    match Phase::from_str(&phase).map_err(Error::internal)? {
        Phase::Finished | Phase::Failed => return Ok(Settled::dropped("there is a result already")),
        Phase::Cancelled => return Ok(Settled::dropped("the run was cancelled")),
        Phase::Queued => return Ok(Settled::dropped("the run was given back to the queue")),
        Phase::Lost if outcome.ended == Ended::Cancelled => {
            return Ok(Settled::dropped("the run was given up, and its agent stopped it"));
        }
        Phase::Lost => match leases::retry_of(&mut transaction, &id).await? {
            None => {}
            Some((retry, phase)) if phase == Phase::Queued.as_str() => {
                leases::withdraw(&mut transaction, &retry).await?;
            }
            Some((retry, _)) => return Ok(Settled::dropped(format!("run {retry} measures it again already"))),
        },
        Phase::Leased | Phase::Preparing | Phase::WarmingUp | Phase::Measuring | Phase::Collecting => {}
    }
    for time in &outcome.times {
        // The agent's clock may be wrong; what it says is moved by how far it is off now.
        let at = time.at_ms + now - outcome.sent_at_ms;
        queries::enter(&mut transaction, &id, time.phase.as_str(), at).await?;
    }
    // Read within the transaction: whoever changes them later finds this run among the old ones.
    let limits = judgements::limits(&mut *transaction, scenario.as_deref()).await?.limits;
    let judgement = end.judge(outcome, &limits);
    let ending = Ending {
        phase: end.phase,
        error: end.error.as_deref(),
        verdict: judgement.as_ref().map(|judgement| judgement.verdict),
        reasons: judgement.as_ref().map_or(&[], |judgement| &judgement.reasons),
        limits: &limits,
        figures: end.figures(),
        enforced_cpu: Some(outcome.enforced.cpu.as_str()),
        enforced_memory: Some(outcome.enforced.memory.as_str()),
        k6_version: Some(&outcome.k6_version).filter(|version| !version.is_empty()).map(String::as_str),
        target_sha256: outcome.target_sha256.as_deref(),
        version: Some(&outcome.target_version).filter(|version| !version.is_empty()).map(String::as_str),
        summary: summary.as_deref(),
        evidence: Some(&packed),
        series: series.map(Packed::as_bytes),
        now,
    };
    endings::end(&mut transaction, &id, &ending).await?;
    leases::repeat(&mut transaction, &id, &RunId::now().to_string(), now).await?;
    if let Some(cost) = end.material.as_ref().and_then(Material::cost) {
        costs::note(&mut transaction, &id, cost).await?;
    }
    transaction.commit().await?;
    Ok(Settled { kept: true, why: None })
}

impl Evidence {
    fn of(outcome: &Outcome) -> Self {
        Self {
            target_log: outcome.target_log.clone(),
            k6_log: outcome.k6_log.clone(),
            observed: outcome.observed,
            cores: outcome.cores.clone(),
            environment: outcome.environment.clone(),
            conditions: material::short(outcome.conditions.clone()),
        }
    }
}

/// The series as it is to be stored, and read. One that can't be read is not stored.
fn series(outcome: &Outcome) -> (Option<&Packed>, Seen) {
    let small = outcome.series.as_ref().filter(|packed| packed.as_bytes().len() <= MOST_SERIES_BYTES);
    match small.map(|packed| (packed, packed.unpack())) {
        Some((packed, Ok(series))) => (Some(packed), Seen::Series(Box::new(series))),
        Some((_, Err(fault))) => {
            tracing::warn!(run = %outcome.run, %fault, "a run is stored without its series");
            (None, Seen::Nothing)
        }
        None => (None, Seen::Nothing),
    }
}

/// How an outcome ends its run.
struct End {
    phase: Phase,
    error: Option<String>,
    /// What it is judged from, where it has figures.
    material: Option<Material>,
}

impl End {
    fn of(outcome: &Outcome, asked: Asked, evidence: Evidence, series: Seen) -> Self {
        match &outcome.ended {
            Ended::Finished => Self::finished(outcome, asked, evidence, series),
            Ended::Failed { reason, .. } => Self::without_figures(Phase::Failed, reason.clone()),
            // Nobody cancelled it here, or the run would have ended: it was given up meanwhile, and then taken up again.
            Ended::Cancelled => Self::without_figures(Phase::Lost, "its agent stopped it".to_owned()),
        }
    }

    fn without_figures(phase: Phase, error: String) -> Self {
        Self { phase, error: Some(error), material: None }
    }

    fn finished(outcome: &Outcome, asked: Asked, evidence: Evidence, series: Seen) -> Self {
        let parsed = match outcome.summary.as_deref().map(|text| summary::parse(text.as_bytes())) {
            Some(Ok(parsed)) => parsed,
            Some(Err(fault)) => {
                return Self::without_figures(Phase::Failed, format!("k6's summary can't be used: {fault}"));
            }
            None => return Self::without_figures(Phase::Failed, "k6 left no summary".to_owned()),
        };
        let Asked { load, vcpus, .. } = asked;
        let made = Made { enforced: outcome.enforced, vcpus, load, evidence, series };
        let material = Material { figures: parsed.figures(), made: Some(made) };
        Self { phase: Phase::Finished, error: None, material: Some(material) }
    }

    fn figures(&self) -> Option<&Figures> {
        self.material.as_ref().map(|material| &material.figures)
    }

    fn judge(&self, outcome: &Outcome, limits: &Limits) -> Option<Judgement> {
        match (&self.material, &outcome.ended) {
            (Some(material), _) => Some(material.judge(limits)),
            (None, Ended::Failed { reason, cause }) => judge_failure(*cause, reason),
            (None, _) => None,
        }
    }
}
