//! Judging runs anew from what is stored, in portions: when the limits of a scenario were changed, and when somebody
//! asks for it.
//!
//! A run that has no figures keeps its verdict, for no limit bears on it; so does one whose series was thinned or deleted
//! because it is old. What limits a run was judged by stands in the
//! store beside it, in the same transaction as the verdict, and a change of limits between reading and writing is seen.

use std::{
    collections::{HashMap, HashSet},
    str,
};

use brewbench_agent::wire::{now_ms, outcome::Enforced, series::Packed};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::{blob, cost::Cost};
use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
        state::{AppState, RunChanged},
    },
    auth::audit::{self, Act},
    results::{
        evidence::Evidence,
        store::{
            costs, downsampled,
            verdicts::{Candidate, ScenarioLimits, Which},
        },
        verdict::{
            input::{Made, Material, Seen, mechanism},
            limits::Limits,
            model::{Judgement, RULES},
        },
    },
    runs::{self, verdict::Verdict},
};

/// So many runs at a time: what is written for them keeps others waiting for a few milliseconds.
const PORTION: u16 = 50;

/// How often a portion is begun anew because limits were changed meanwhile.
const TRIES: u32 = 5;

/// What came of a portion.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Rejudged {
    /// How many runs were judged.
    pub judged: usize,
    /// Those whose verdict is another one now.
    pub changed: Vec<VerdictChange>,
    /// Those that keep their verdict because what is stored of them can't be read, or is not all there any more.
    pub damaged: Vec<DamagedRun>,
    /// What `after` must be for the next portion; null after the last.
    pub next: Option<i64>,
}

/// Another verdict than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerdictChange {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Before.
    pub from: Verdict,
    /// Now.
    pub to: Verdict,
}

/// A run that can't be judged any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamagedRun {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// What can't be read.
    pub why: String,
}

/// What is done with new verdicts.
#[derive(Clone, Copy, Debug)]
pub enum Deal<'a> {
    /// They are only told.
    Tell,
    /// They are kept, and what was done is noted in the log.
    Keep(Option<&'a Act>),
}

/// A run as it was stored.
struct Stored {
    candidate: Candidate,
    summary: Option<Vec<u8>>,
    evidence: Option<Vec<u8>>,
    series: Option<Vec<u8>>,
    /// Its series is not what it was judged by.
    is_reduced: bool,
}

/// A run and what it is worth now, or why that can't be told.
type Verdicts = Vec<(Candidate, std::result::Result<Judged, String>)>;

/// What is worked out from a stored run.
struct Judged {
    judgement: Judgement,
    /// Older servers did not work it out when the run came.
    cost: Option<Cost>,
}

/// Judges the next portion of runs after the one with this number.
pub async fn portion(state: &AppState, which: Which<'_>, after: i64, deal: Deal<'_>) -> Result<Rejudged> {
    for _ in 0..TRIES {
        let (stored, limits) = read(&state.db, which, after).await?;
        let next = stored.last().map(|last| last.candidate.seq).filter(|_| stored.len() == usize::from(PORTION));
        let by = limits.clone();
        let verdicts = spawn_blocking(move || judge_all(stored, &by)).await.map_err(Error::internal)?;
        let told = tell(&verdicts, next);
        let Deal::Keep(act) = deal else { return Ok(told) };
        if keep(&state.db, &verdicts, &limits, act).await? {
            let changed: HashSet<&RunId> = told.changed.iter().map(|change| &change.run).collect();
            for (run, _) in verdicts.iter().filter(|(run, _)| changed.contains(&run.id)) {
                announce(state, run);
            }
            return Ok(told);
        }
    }
    Err(Error::Conflict("the limits are being changed all the time".to_owned()))
}

/// The limits of the scenarios of a portion.
type LimitsBy = HashMap<Option<String>, ScenarioLimits>;

async fn read(db: &Db, which: Which<'_>, after: i64) -> Result<(Vec<Stored>, LimitsBy)> {
    let (mut stored, mut limits) = (Vec::new(), LimitsBy::new());
    for candidate in crate::results::store::verdicts::candidates(&db.read, which, after, PORTION.into()).await? {
        if !limits.contains_key(&candidate.scenario) {
            let of = crate::results::store::verdicts::limits(&db.read, candidate.scenario.as_deref()).await?;
            limits.insert(candidate.scenario.clone(), of);
        }
        let summary = runs::store::summary(&db.read, &candidate.id).await?;
        let evidence = runs::store::evidence(&db.read, &candidate.id).await?;
        let series = runs::store::series(&db.read, &candidate.id).await?;
        let is_reduced = downsampled::of(&db.read, &candidate.id).await?.is_some();
        stored.push(Stored { candidate, summary, evidence, series, is_reduced });
    }
    Ok((stored, limits))
}

fn judge_all(stored: Vec<Stored>, limits: &LimitsBy) -> Verdicts {
    let usual = Limits::default();
    stored
        .into_iter()
        .map(|stored| {
            let limits = limits.get(&stored.candidate.scenario).map_or(&usual, |of| &of.limits);
            let judged =
                stored.material().map(|material| Judged { judgement: material.judge(limits), cost: material.cost() });
            (stored.candidate, judged)
        })
        .collect()
}

impl Stored {
    fn material(&self) -> std::result::Result<Material, String> {
        if self.is_reduced {
            return Err("its series was thinned or deleted because it is old".to_owned());
        }
        let summary = self.summary.as_deref().ok_or("its summary is not there")?;
        let summary = blob::unpack(summary).map_err(|fault| format!("its summary can't be unpacked: {fault}"))?;
        let summary = brewbench_agent::reports::read::parse(&summary)
            .map_err(|fault| format!("its summary can't be read: {fault}"))?;
        let made = self.candidate.is_ours.then(|| self.made()).transpose()?;
        Ok(Material { figures: summary.figures(), made })
    }

    fn made(&self) -> std::result::Result<Made, String> {
        let Candidate { load, vcpus, enforced: [cpu, memory], .. } = &self.candidate;
        let evidence = self.evidence.as_deref().ok_or("what its agent saw is not there")?;
        let evidence = blob::unpack(evidence).map_err(|fault| format!("what its agent saw can't be unpacked: {fault}"));
        let (evidence, looked) = read_evidence(&evidence?)?;
        let series = match &self.series {
            Some(bytes) => {
                let series = Packed::from_bytes(bytes.clone()).unpack();
                Seen::Series(Box::new(series.map_err(|fault| fault.to_string())?))
            }
            None if looked => Seen::Nothing,
            None => Seen::NotYet,
        };
        let enforced = Enforced { cpu: mechanism(cpu.as_deref()), memory: mechanism(memory.as_deref()) };
        Ok(Made { enforced, vcpus: *vcpus, load: load.clone(), evidence, series })
    }
}

/// The evidence, and whether its agent was one that recorded what happened: those tell of conditions, too.
fn read_evidence(bytes: &[u8]) -> std::result::Result<(Evidence, bool), String> {
    let unreadable = |fault: serde_json::Error| format!("what its agent saw can't be read: {fault}");
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    let looked = value.get("conditions").is_some();
    Ok((serde_json::from_value(value).map_err(unreadable)?, looked))
}

fn tell(verdicts: &Verdicts, next: Option<i64>) -> Rejudged {
    let mut told = Rejudged { next, ..Rejudged::default() };
    for (run, judged) in verdicts {
        match judged {
            Ok(Judged { judgement, .. }) => {
                told.judged += 1;
                if judgement.verdict != run.verdict {
                    told.changed.push(VerdictChange { run: run.id.clone(), from: run.verdict, to: judgement.verdict });
                }
            }
            Err(why) => told.damaged.push(DamagedRun { run: run.id.clone(), why: why.clone() }),
        }
    }
    told
}

/// Writes it; false, and nothing is written, if limits were changed meanwhile.
async fn keep(db: &Db, verdicts: &Verdicts, limits: &LimitsBy, act: Option<&Act>) -> Result<bool> {
    let mut transaction = db.write.begin().await?;
    for (scenario, used) in limits {
        if crate::results::store::verdicts::limits(&mut *transaction, scenario.as_deref()).await?.revision
            != used.revision
        {
            return Ok(false);
        }
    }
    for (run, judged) in verdicts {
        let Ok(Judged { judgement, cost }) = judged else { continue };
        if judgement.verdict != run.verdict || judgement.reasons != run.reasons {
            crate::results::store::verdicts::revise(&mut transaction, &run.id, judgement.verdict, &judgement.reasons)
                .await?;
        }
        if let Some(cost) = cost {
            costs::note(&mut transaction, &run.id, *cost).await?;
        }
        let usual = Limits::default();
        let limits = limits.get(&run.scenario).map_or(&usual, |of| &of.limits);
        crate::results::store::verdicts::note(&mut transaction, &run.id, limits, now_ms()).await?;
    }
    if let Some(act) = act {
        audit::note(&mut transaction, act).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

fn announce(state: &AppState, run: &Candidate) {
    state.events.tell(RunChanged { run: run.id.clone(), experiment: run.experiment.clone() });
}

/// Judges the runs of scenarios whose limits were changed, also before the server was started, until it ends.
pub async fn work(state: AppState) {
    loop {
        if let Err(fault) = catch_up(&state).await {
            tracing::error!(%fault, "old runs could not be judged anew; trying again with the next change");
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.rejudge.notified() => {}
        }
    }
}

async fn catch_up(state: &AppState) -> Result<()> {
    for (scenario, revision) in crate::results::store::verdicts::pending(&state.db.read).await? {
        let (mut after, mut judged, mut changed) = (0, 0, 0);
        loop {
            if state.shutdown.is_cancelled() {
                return Ok(());
            }
            let told = portion(state, Which::Scenario(&scenario), after, Deal::Keep(None)).await?;
            judged += told.judged;
            changed += told.changed.len();
            for run in &told.damaged {
                tracing::warn!(run = run.run.as_str(), why = run.why, "a run keeps its verdict");
            }
            let Some(next) = told.next else { break };
            after = next;
        }
        crate::results::store::verdicts::all_judged(&state.db.write, &scenario, revision).await?;
        tracing::info!(scenario, rules = RULES, judged, changed, "runs were judged anew");
    }
    Ok(())
}
