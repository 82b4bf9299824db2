//! Ends a run with its result: judges it and stores it.

use brewbench_wire::{
    Phase,
    engine::EngineKind,
    outcome::{Cause, Ended, Enforced, Outcome, WarmUp},
    profile::RunProfile,
    reports::read,
    series::Packed,
    target::Identity,
};
use sqlx::SqliteConnection;

use super::{blob, cells};
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
    },
    metrics::Figures,
    results::{
        evidence::{Basis, Evidence},
        store::{
            endings::{self, Ending},
            profiles, verdicts,
        },
        verdict::{
            generators,
            input::{Execution, StoredSeries, VerdictInput},
            judge::{is_alike, judge_failure, would_repeat},
            limits::Limits,
            model::Judgement,
            setup::clock_set,
        },
    },
    runs::{model::RunSpec, store::retries, verdict::Verdict},
};

/// Larger packed series are dropped: agents send some 100 kB at most.
const MAX_SERIES_BYTES: usize = 4 << 20;

/// A result that is ready to be stored as the end of its run.
#[derive(Debug)]
pub struct Conclusion<'a> {
    outcome: &'a Outcome,
    scenario: Option<String>,
    end: End,
    figures: Figures,
    /// What enforced the target's machine size; None if the result is not from the target's agent.
    enforced: Option<Enforced>,
    summary: Option<Vec<u8>>,
    evidence: Vec<u8>,
    series: Option<&'a Packed>,
    profiles: Vec<&'a RunProfile>,
}

impl<'a> Conclusion<'a> {
    /// Prepares a result. The work is done here, outside of the write transaction.
    pub fn new(outcome: &'a Outcome, requested: RunSpec, evidence: Evidence) -> Result<Self> {
        let scenario = requested.scenario.clone();
        let (series, stored) = series(outcome);
        let packed = packed(&evidence)?;
        let end = End::from_outcome(outcome, requested, evidence, stored);
        let summary = outcome.summary.as_deref().map(|text| blob::pack(text.as_bytes()));
        let (enforced, profiles) = (Some(outcome.enforced), profiles(outcome));
        let figures = end.figures(outcome);
        Ok(Self { outcome, scenario, end, figures, enforced, summary, evidence: packed, series, profiles })
    }

    /// Prepares a part that ends its run without metrics, with the run's error and verdict.
    pub fn failed(
        outcome: &'a Outcome,
        requested: RunSpec,
        evidence: &Evidence,
        enforced: Option<Enforced>,
        (error, failure): (String, Option<Judgement>),
    ) -> Result<Self> {
        let end = End { failure, ..End::without_results(Phase::Failed, error) };
        let evidence = packed(evidence)?;
        Ok(Self {
            outcome,
            scenario: requested.scenario,
            figures: end.figures(outcome),
            end,
            enforced,
            summary: None,
            evidence,
            series: None,
            profiles: Vec::new(),
        })
    }

    /// Ends the run in any phase: the caller has decided that this result counts. Queues a due retry.
    pub async fn store(&self, connection: &mut SqliteConnection, id: &RunId, now: i64) -> Result<()> {
        let Self { outcome, scenario, end, figures, enforced, summary, evidence, series, profiles } = self;
        // Read within the transaction, so that a later change of the limits re-judges this run.
        let limits = verdicts::limits(&mut *connection, scenario.as_deref()).await?.limits;
        let judgement = end.judge(&limits);
        let ending = Ending {
            phase: end.phase,
            error: end.error.as_deref(),
            verdict: judgement.as_ref().map(|judgement| judgement.verdict),
            reasons: judgement.as_ref().map_or(&[], |judgement| &judgement.reasons),
            limits: &limits,
            figures: Some(figures),
            enforced_cpu: enforced.map(|enforced| enforced.cpu.as_str()),
            enforced_memory: enforced.map(|enforced| enforced.memory.as_str()),
            engine: outcome.engine.as_ref(),
            target: outcome.target.as_ref().filter(|target| target.fault().is_none()),
            version: Some(&outcome.target_version).filter(|version| !version.is_empty()).map(String::as_str),
            summary: summary.as_deref(),
            evidence: Some(evidence),
            series: series.map(Packed::as_bytes),
            now,
        };
        endings::end(connection, id, &ending).await?;
        let is_refused =
            matches!(outcome.ended, Ended::Failed { cause: Cause::Script | Cause::Build | Cause::NoSuccess, .. });
        if !is_refused && !repeats(connection, id, judgement.as_ref()).await? {
            retries::queue_retry(connection, id, &RunId::now(), now).await?;
        }
        profiles::store(connection, id, profiles).await?;
        if end.input.is_some() {
            cells::note_code(connection, id, now).await?;
            cells::judge(connection, id, now).await?;
        }
        Ok(())
    }
}

/// Whether a retry would end in the same way.
async fn repeats(connection: &mut SqliteConnection, id: &RunId, judgement: Option<&Judgement>) -> Result<bool> {
    let Some(judgement) = judgement.filter(|judgement| judgement.verdict == Verdict::Invalid) else {
        return Ok(false);
    };
    let others = retries::invalid_reasons_of_cell(connection, id).await?;
    Ok(would_repeat(judgement) || others.iter().any(|other| is_alike(&judgement.reasons, other)))
}

fn packed(evidence: &Evidence) -> Result<Vec<u8>> {
    Ok(blob::pack(&serde_json::to_vec(evidence).map_err(Error::internal)?))
}

/// Returns the profiles to store; the evidence says what is wrong with the others.
fn profiles(outcome: &Outcome) -> Vec<&RunProfile> {
    outcome.profiled.iter().flat_map(|profiled| &profiled.profiles).collect()
}

/// Returns the series to store, and its content. An unreadable one is not stored.
pub fn series(outcome: &Outcome) -> (Option<&Packed>, StoredSeries) {
    let small = outcome.series.as_ref().filter(|packed| packed.as_bytes().len() <= MAX_SERIES_BYTES);
    match small.map(|packed| (packed, packed.unpack())) {
        Some((packed, Ok(series))) => (Some(packed), StoredSeries::Series(Box::new(series))),
        Some((_, Err(fault))) => {
            tracing::warn!(run = %outcome.run, %fault, "unreadable series: storing the run without it");
            (None, StoredSeries::Missing)
        }
        None => (None, StoredSeries::Missing),
    }
}

/// How an outcome ends its run.
#[derive(Debug)]
struct End {
    phase: Phase,
    error: Option<String>,
    /// What it is judged from, if it has metrics.
    input: Option<VerdictInput>,
    /// The verdict on a failure of the target.
    failure: Option<Judgement>,
}

impl End {
    fn from_outcome(outcome: &Outcome, requested: RunSpec, evidence: Evidence, series: StoredSeries) -> Self {
        match &outcome.ended {
            Ended::Finished => Self::finished(outcome, requested, evidence, series),
            Ended::Failed { reason, cause } => {
                let is_generators = matches!(cause, Cause::Generator | Cause::Script);
                let is_of_pods = requested.cluster_generators > 0 && is_generators;
                let failure = if is_of_pods { Some(generators::failed(reason)) } else { judge_failure(*cause, reason) };
                Self { failure, ..Self::without_results(Phase::Failed, reason.clone()) }
            }
            // Not cancelled by a user, or the run would have ended: its lease had expired before the agent stopped it.
            Ended::Cancelled => Self::without_results(Phase::Lost, "the agent stopped the run".to_owned()),
        }
    }

    fn without_results(phase: Phase, error: String) -> Self {
        Self { phase, error: Some(error), input: None, failure: None }
    }

    fn finished(outcome: &Outcome, requested: RunSpec, evidence: Evidence, series: StoredSeries) -> Self {
        let parsed = match outcome.summary.as_deref().map(|text| read::parse_own(text.as_bytes())) {
            Some(Ok(parsed)) => parsed,
            Some(Err(fault)) => {
                let mut why = format!("the load generator's summary can't be used: {fault}");
                if let Some(jumped) = outcome.conditions.clock_jump_ms.filter(|jumped| jumped.abs() >= 1_000) {
                    why = format!("{why}; {}", clock_set(jumped));
                }
                return Self::without_results(Phase::Failed, why);
            }
            None => return Self::without_results(Phase::Failed, "the load generator left no summary".to_owned()),
        };
        let mut figures = parsed.figures_over(evidence.conditions.load_time);
        if !evidence.generators.is_empty() {
            // Each k6 evaluated its own part only; the total is known if every threshold could be evaluated.
            let evaluated = || evidence.thresholds.iter().filter(|one| one.basis != Basis::Nothing);
            let crossed = evaluated().map(|one| Some(!one.passed?)).collect::<Option<Vec<bool>>>();
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            figures.thresholds = Some(count(evaluated().count()));
            figures.thresholds_failed = crossed.map(|all| count(all.into_iter().filter(|crossed| *crossed).count()));
        }
        let RunSpec { load, size, .. } = requested;
        let vcpus = size.map(|size| size.total_vcpus());
        let engine = EngineKind::of_tool(parsed.shape.engine());
        let kind = outcome.target.as_ref().map(Identity::kind);
        let execution = Execution { engine, kind, enforced: outcome.enforced, vcpus, load, evidence, series };
        let input = VerdictInput { figures, execution: Some(execution) };
        Self { phase: Phase::Finished, error: None, input: Some(input), failure: None }
    }

    fn figures(&self, outcome: &Outcome) -> Figures {
        let mut figures = self.input.as_ref().map(VerdictInput::figures).unwrap_or_default();
        if self.input.is_some() {
            figures.work = figures.work.with_tags(outcome.work.clone().checked(), figures.requests);
        }
        if let Some(WarmUp { took_ms, steady }) = outcome.warm_up {
            (figures.warmed_up_s, figures.warm_up_steady) = (Some(took_ms as f64 / 1_000.0), Some(steady));
        }
        figures
    }

    fn judge(&self, limits: &Limits) -> Option<Judgement> {
        self.input.as_ref().map(|input| input.judge(limits)).or_else(|| self.failure.clone())
    }
}
