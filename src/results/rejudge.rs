//! Re-judges stored runs in batches: after a change of a scenario's limits, and on request.
//!
//! The runs of a cell are judged together, too: what their series show is computed again, and a run that ends between
//! reading and writing is detected. A run without metrics keeps its verdict, because no limit applies to it; so does
//! one whose series was downsampled or deleted by retention. The limits that a run was judged by are stored in the same
//! transaction as its verdict, and a change of limits between reading and writing is detected.

use std::{
    collections::{HashMap, HashSet},
    str,
};

use brewbench_wire::{engine::EngineKind, now_ms, outcome::Enforced, reports::summary::Shape, series::Packed};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::{
    blob,
    cells::{self, CellFinding},
};
use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
        state::{AppState, RunChanged},
    },
    auth::audit::{self, AuditEvent},
    metrics::Figures,
    results::{
        evidence::Evidence,
        store::{
            downsampled, endings,
            verdicts::{Candidate, RejudgeScope, ScenarioLimits},
        },
        verdict::{
            code,
            input::{Execution, StoredSeries, VerdictInput, mechanism},
            limits::Limits,
            model::{Judgement, RULES},
        },
    },
    runs::{self, verdict::Verdict},
};

/// Runs per delta: writing them blocks other writers for a few milliseconds.
const PORTION: u16 = 50;

/// How often a delta is retried when limits change at the same time.
const TRIES: u32 = 5;

/// Result of a delta.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Rejudged {
    /// How many runs were judged.
    pub judged: usize,
    /// Runs whose verdict changed.
    pub changed: Vec<VerdictChange>,
    /// Runs that keep their verdict because their stored data is unreadable or no longer complete.
    pub damaged: Vec<DamagedRun>,
    /// The value of `after` for the next delta; null after the last.
    pub next: Option<i64>,
}

/// A changed verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerdictChange {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The old verdict.
    pub from: Verdict,
    /// The new verdict.
    pub to: Verdict,
}

/// A run that can no longer be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamagedRun {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Why it can't be judged.
    pub reason: String,
}

/// Whether new verdicts are stored.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// They are only reported.
    DryRun,
    /// They are stored, with an optional audit entry.
    Store(Option<&'a AuditEvent>),
}

/// A stored run.
struct Stored {
    candidate: Candidate,
    summary: Option<Vec<u8>>,
    evidence: Option<Vec<u8>>,
    series: Option<Vec<u8>>,
    /// Its series was downsampled or deleted.
    is_reduced: bool,
}

/// Runs with their judgements, or why they can't be judged.
type Verdicts = Vec<(Candidate, std::result::Result<Judged, String>)>;

/// What is computed from a stored run.
struct Judged {
    judgement: Judgement,
    /// Older servers did not compute them at ingest.
    added: Figures,
}

/// Judges the next delta of runs after sequence number `after`.
pub async fn delta(state: &AppState, which: RejudgeScope<'_>, after: i64, mode: Mode<'_>) -> Result<Rejudged> {
    for _ in 0..TRIES {
        let (stored, context) = read(&state.db, which, after).await?;
        let next = stored.last().map(|last| last.candidate.seq).filter(|_| stored.len() == usize::from(PORTION));
        let by = context.clone();
        let verdicts = spawn_blocking(move || judge_all(stored, &by)).await.map_err(Error::internal)?;
        let report = describe(&verdicts, next);
        let Mode::Store(act) = mode else { return Ok(report) };
        if store(&state.db, &verdicts, &context, act).await? {
            let changed: HashSet<&RunId> = report.changed.iter().map(|change| &change.run).collect();
            for (run, _) in verdicts.iter().filter(|(run, _)| changed.contains(&run.id)) {
                announce(state, run);
            }
            return Ok(report);
        }
    }
    Err(Error::Conflict("limits or runs keep changing; try again".to_owned()))
}

/// What the runs of a delta are judged by, besides their own data.
#[derive(Clone, Debug, Default)]
struct JudgingContext {
    /// The limits of their scenarios.
    limits: HashMap<Option<String>, ScenarioLimits>,
    /// What the series of their cells show.
    findings: Vec<CellFinding>,
}

impl JudgingContext {
    fn limits(&self, run: &Candidate) -> Limits {
        self.limits.get(&run.scenario).map(|stored| stored.limits.clone()).unwrap_or_default()
    }

    fn finding(&self, run: &RunId) -> Option<&CellFinding> {
        self.findings.iter().find(|finding| finding.runs.contains(run))
    }

    async fn read_for(&mut self, db: &Db, run: &Candidate) -> Result<()> {
        if !self.limits.contains_key(&run.scenario) {
            let current = crate::results::store::verdicts::limits(&db.read, run.scenario.as_deref()).await?;
            self.limits.insert(run.scenario.clone(), current);
        }
        if run.is_ours && run.experiment.is_some() && self.finding(&run.id).is_none() {
            self.findings.push(cells::find(&mut *db.read.acquire().await?, &run.id).await?);
        }
        Ok(())
    }

    /// Whether limits and cells are the same as when they were read.
    async fn is_current(&self, connection: &mut SqliteConnection) -> Result<bool> {
        for (scenario, used) in &self.limits {
            let current = crate::results::store::verdicts::limits(&mut *connection, scenario.as_deref()).await?;
            if current.revision != used.revision {
                return Ok(false);
            }
        }
        for finding in &self.findings {
            if let Some(run) = finding.runs.first()
                && !cells::is_current(&mut *connection, run, finding).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

async fn read(db: &Db, which: RejudgeScope<'_>, after: i64) -> Result<(Vec<Stored>, JudgingContext)> {
    let (mut stored, mut context) = (Vec::new(), JudgingContext::default());
    for candidate in crate::results::store::verdicts::candidates(&db.read, which, after, PORTION.into()).await? {
        context.read_for(db, &candidate).await?;
        let summary = runs::store::summary(&db.read, &candidate.id).await?;
        let evidence = runs::store::evidence(&db.read, &candidate.id).await?;
        let series = runs::store::series(&db.read, &candidate.id).await?;
        let is_reduced = downsampled::reduction(&db.read, &candidate.id).await?.is_some();
        stored.push(Stored { candidate, summary, evidence, series, is_reduced });
    }
    Ok((stored, context))
}

fn judge_all(stored: Vec<Stored>, context: &JudgingContext) -> Verdicts {
    stored
        .into_iter()
        .map(|stored| {
            let limits = context.limits(&stored.candidate);
            let drift = context.finding(&stored.candidate.id).and_then(|finding| finding.drift);
            let judged = stored.input().map(|input| {
                let change = stored.candidate.reasons.iter().find(|reason| code::is_change(reason)).cloned();
                let drift = drift.and_then(|drift| drift.reason(&limits));
                let judgement = input.judge(&limits).with(change).with(drift);
                Judged { judgement, added: input.added_later() }
            });
            (stored.candidate, judged)
        })
        .collect()
}

impl Stored {
    fn input(&self) -> std::result::Result<VerdictInput, String> {
        if self.is_reduced {
            return Err("its series was downsampled or deleted by retention".to_owned());
        }
        let summary = self.summary.as_deref().ok_or("its summary is missing")?;
        let summary = blob::unpack(summary).map_err(|fault| format!("its summary can't be unpacked: {fault}"))?;
        let summary = brewbench_wire::reports::read::parse_own(&summary)
            .map_err(|fault| format!("its summary can't be read: {fault}"))?;
        let execution = self.candidate.is_ours.then(|| self.execution(summary.shape)).transpose()?;
        let load_time = execution.as_ref().and_then(|execution| execution.evidence.conditions.load_time);
        Ok(VerdictInput { figures: summary.figures_over(load_time), execution })
    }

    fn execution(&self, shape: Shape) -> std::result::Result<Execution, String> {
        let Candidate { load, vcpus, enforced: [cpu, memory], kind, .. } = &self.candidate;
        let evidence = self.evidence.as_deref().ok_or("its evidence is missing")?;
        let evidence = blob::unpack(evidence).map_err(|fault| format!("its evidence can't be unpacked: {fault}"));
        let (evidence, records_series) = read_evidence(&evidence?)?;
        let series = match &self.series {
            Some(bytes) => {
                let series = Packed::from_bytes(bytes.clone()).unpack();
                StoredSeries::Series(Box::new(series.map_err(|fault| fault.to_string())?))
            }
            None if records_series => StoredSeries::Missing,
            None => StoredSeries::NotRecorded,
        };
        let enforced = Enforced { cpu: mechanism(cpu.as_deref()), memory: mechanism(memory.as_deref()) };
        let engine = EngineKind::of_tool(shape.engine());
        Ok(Execution { engine, kind: *kind, enforced, vcpus: *vcpus, load: load.clone(), evidence, series })
    }
}

/// Reads the evidence, and whether its agent was recent enough to record series: those report conditions, too.
fn read_evidence(bytes: &[u8]) -> std::result::Result<(Evidence, bool), String> {
    let unreadable = |fault: serde_json::Error| format!("its evidence can't be read: {fault}");
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    let records_series = value.get("conditions").is_some();
    Ok((serde_json::from_value(value).map_err(unreadable)?, records_series))
}

fn describe(verdicts: &Verdicts, next: Option<i64>) -> Rejudged {
    let mut report = Rejudged { next, ..Rejudged::default() };
    for (run, judged) in verdicts {
        match judged {
            Ok(Judged { judgement, .. }) => {
                report.judged += 1;
                if judgement.verdict != run.verdict {
                    report.changed.push(VerdictChange {
                        run: run.id.clone(),
                        from: run.verdict,
                        to: judgement.verdict,
                    });
                }
            }
            Err(why) => report.damaged.push(DamagedRun { run: run.id.clone(), reason: why.clone() }),
        }
    }
    report
}

/// Stores verdicts; false, and nothing is stored, if limits or cells have changed since they were read.
async fn store(db: &Db, verdicts: &Verdicts, context: &JudgingContext, act: Option<&AuditEvent>) -> Result<bool> {
    let mut transaction = db.write.begin().await?;
    if !context.is_current(&mut transaction).await? {
        return Ok(false);
    }
    for (run, judged) in verdicts {
        let Ok(Judged { judgement, added }) = judged else { continue };
        if judgement.verdict != run.verdict || judgement.reasons != run.reasons {
            crate::results::store::verdicts::revise(&mut transaction, &run.id, judgement.verdict, &judgement.reasons)
                .await?;
        }
        endings::add_figures(&mut transaction, &run.id, added).await?;
        crate::results::store::verdicts::record_judgement(&mut transaction, &run.id, &context.limits(run), now_ms())
            .await?;
    }
    if let Some(act) = act {
        audit::record(&mut transaction, act).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

fn announce(state: &AppState, run: &Candidate) {
    state.events.publish(RunChanged { run: run.id.clone(), experiment: run.experiment.clone() });
}

/// Re-judges runs of scenarios with changed limits until the server stops.
pub async fn work(state: AppState) {
    loop {
        if let Err(fault) = catch_up(&state).await {
            tracing::error!(%fault, "failed to re-judge runs after a change of limits; retrying with the next change");
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
            let report = delta(state, RejudgeScope::Scenario(&scenario), after, Mode::Store(None)).await?;
            judged += report.judged;
            changed += report.changed.len();
            for run in &report.damaged {
                tracing::warn!(
                    run = run.run.as_str(),
                    reason = run.reason,
                    "the run can't be re-judged and keeps its verdict"
                );
            }
            let Some(next) = report.next else { break };
            after = next;
        }
        crate::results::store::verdicts::all_judged(&state.db.write, &scenario, revision).await?;
        tracing::info!(scenario, rules = RULES, judged, changed, "re-judged runs");
    }
    Ok(())
}
