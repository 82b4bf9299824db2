//! How figures get into the store: results of agents, and summaries that somebody brought.
//!
//! **The rule for results.** A run takes the first whole result that arrives for it from the agent that it was given to.
//! A result that comes twice, or after the run was cancelled, is acknowledged (so that the agent can forget it) and
//! changes nothing. A result for a run that was given up as lost still counts as long as nobody has begun to measure the
//! cell again: the run then takes it and its place-holder leaves the queue. Otherwise the new measurement counts.

use std::{collections::BTreeMap, str::FromStr};

use brewbench_agent::wire::{
    Phase, RunId,
    load::Load,
    now_ms,
    outcome::{Conditions, Cores, Ended, Observed, Outcome},
    series::Packed,
    summary::{self, Figures},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Reason, Run, RunSize, Verdict, blob,
    queries::{
        self,
        endings::{self, Ending},
        imports::{self, NewImport},
        leases,
    },
    verdict::{Making, SharedCores, judge},
};
use crate::{
    db::Db,
    error::{Error, Result},
};

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
    let load = queries::load_of(&db.read, &id).await?;
    let judged = Judged::of(outcome, load.as_ref());
    let evidence = pack_evidence(outcome)?;
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
    let ending = Ending {
        phase: judged.phase,
        error: judged.error.as_deref(),
        verdict: judged.verdict,
        reasons: &judged.reasons,
        figures: judged.figures.as_ref(),
        enforced_cpu: Some(outcome.enforced.cpu.as_str()),
        enforced_memory: Some(outcome.enforced.memory.as_str()),
        k6_version: Some(&outcome.k6_version).filter(|version| !version.is_empty()).map(String::as_str),
        target_sha256: outcome.target_sha256.as_deref(),
        version: Some(&outcome.target_version).filter(|version| !version.is_empty()).map(String::as_str),
        summary: summary.as_deref(),
        evidence: Some(&evidence),
        series: outcome.series.as_ref().map(Packed::as_bytes),
        now,
    };
    endings::end(&mut transaction, &id, &ending).await?;
    transaction.commit().await?;
    Ok(Settled { kept: true, why: None })
}

fn pack_evidence(outcome: &Outcome) -> Result<Vec<u8>> {
    let evidence = Evidence {
        target_log: outcome.target_log.clone(),
        k6_log: outcome.k6_log.clone(),
        observed: outcome.observed,
        cores: outcome.cores.clone(),
        environment: outcome.environment.clone(),
        conditions: outcome.conditions.clone(),
    };
    Ok(blob::pack(&serde_json::to_vec(&evidence).map_err(Error::internal)?))
}

/// An outcome with our judgement.
struct Judged {
    phase: Phase,
    error: Option<String>,
    verdict: Option<Verdict>,
    reasons: Vec<Reason>,
    figures: Option<Figures>,
}

impl Judged {
    fn of(outcome: &Outcome, load: Option<&Load>) -> Self {
        match &outcome.ended {
            Ended::Finished => Self::finished(outcome, load),
            Ended::Failed { reason, .. } => Self::without_figures(Phase::Failed, reason.clone()),
            Ended::Cancelled => Self::without_figures(Phase::Cancelled, "cancelled on the agent".to_owned()),
        }
    }

    fn without_figures(phase: Phase, error: String) -> Self {
        Self { phase, error: Some(error), verdict: None, reasons: Vec::new(), figures: None }
    }

    fn finished(outcome: &Outcome, load: Option<&Load>) -> Self {
        let parsed = match outcome.summary.as_deref().map(|text| summary::parse(text.as_bytes())) {
            Some(Ok(parsed)) => parsed,
            Some(Err(fault)) => {
                return Self::without_figures(Phase::Failed, format!("k6's summary can't be used: {fault}"));
            }
            None => return Self::without_figures(Phase::Failed, "k6 left no summary".to_owned()),
        };
        let figures = parsed.figures();
        let (verdict, reasons) = judge(&figures, Some(making(outcome, load)));
        Self { phase: Phase::Finished, error: None, verdict: Some(verdict), reasons, figures: Some(figures) }
    }
}

fn making(outcome: &Outcome, load: Option<&Load>) -> Making {
    let shared = outcome.cores.generator.is_empty()
        || outcome.cores.generator.iter().any(|core| outcome.cores.target.contains(core));
    Making {
        enforced: outcome.enforced,
        shared_cores: if shared { SharedCores::Shared } else { SharedCores::Separate },
        oom_kills: outcome.observed.and_then(|observed| observed.oom_kills).unwrap_or(0),
        iterations_asked: load.and_then(Load::iterations),
    }
}

/// What is known of an imported summary besides itself.
#[derive(Clone, Debug, Default)]
pub struct ImportAbout {
    /// Name of the target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// The machine size that it had.
    pub size: Option<RunSize>,
    /// What was run.
    pub scenario: Option<String>,
    /// Which repetition, from 1.
    pub repetition: u32,
}

/// Stores a summary as a run of its own. Committed when this returns; nothing is stored on error.
pub async fn import(db: &Db, about: ImportAbout, bytes: &[u8], by: &str) -> Result<Run> {
    let parsed = summary::parse(bytes).map_err(|fault| Error::Invalid(fault.to_string()))?;
    let figures = parsed.figures();
    let (verdict, reasons) = judge(&figures, None);
    let import = NewImport {
        id: RunId::now().to_string(),
        about,
        created_by: by.to_owned(),
        figures,
        verdict,
        reasons,
        k6_version: parsed.k6_version,
        summary: blob::pack(bytes),
        now: now_ms(),
    };
    Ok(imports::insert(&db.write, import).await?)
}
