//! How a result ends its run: what of it is judged, and what is stored.

use brewbench_agent::{
    reports::{read, summary::Figures},
    wire::{
        Phase,
        outcome::{Ended, Enforced, Outcome},
        series::Packed,
    },
};
use sqlx::SqliteConnection;

use super::blob;
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
    },
    results::{
        evidence::Evidence,
        store::{
            costs,
            endings::{self, Ending},
            verdicts::{self, Asked},
            work,
        },
        verdict::{
            input::{Made, Material, Seen},
            judge::judge_failure,
            limits::Limits,
            making::clock_set,
            model::Judgement,
        },
    },
    runs::store::retries,
};

/// A packed series larger than this is none that an agent of ours makes: theirs are some 100 kB at most.
const MOST_SERIES_BYTES: usize = 4 << 20;

/// A result that is ready to be stored as the end of its run.
#[derive(Debug)]
pub struct Conclusion<'a> {
    outcome: &'a Outcome,
    scenario: Option<String>,
    end: End,
    /// What held the target to its size; nothing where this says nothing of the target.
    enforced: Option<Enforced>,
    summary: Option<Vec<u8>>,
    evidence: Vec<u8>,
    series: Option<&'a Packed>,
}

impl<'a> Conclusion<'a> {
    /// Of a result and what was seen besides it. The work is done here, and not while others wait to write.
    pub fn of(outcome: &'a Outcome, asked: Asked, evidence: Evidence) -> Result<Self> {
        let scenario = asked.scenario.clone();
        let (series, seen) = series(outcome);
        let packed = packed(&evidence)?;
        let end = End::of(outcome, asked, evidence, seen);
        let summary = outcome.summary.as_deref().map(|text| blob::pack(text.as_bytes()));
        Ok(Self { outcome, scenario, end, enforced: Some(outcome.enforced), summary, evidence: packed, series })
    }

    /// Of a part that ends its run without figures, with the run's error and verdict.
    pub fn failed(
        outcome: &'a Outcome,
        asked: Asked,
        evidence: &Evidence,
        enforced: Option<Enforced>,
        (error, failure): (String, Option<Judgement>),
    ) -> Result<Self> {
        let end = End { failure, ..End::without_figures(Phase::Failed, error) };
        let evidence = packed(evidence)?;
        Ok(Self { outcome, scenario: asked.scenario, end, enforced, summary: None, evidence, series: None })
    }

    /// Ends the run, in whatever phase it is: the caller has settled that this counts. Its repetition is queued anew
    /// where that is due.
    pub async fn store(&self, connection: &mut SqliteConnection, id: &RunId, now: i64) -> Result<()> {
        let Self { outcome, scenario, end, enforced, summary, evidence, series } = self;
        // Read within the transaction: whoever changes them later finds this run among the old ones.
        let limits = verdicts::limits(&mut *connection, scenario.as_deref()).await?.limits;
        let judgement = end.judge(&limits);
        let ending = Ending {
            phase: end.phase,
            error: end.error.as_deref(),
            verdict: judgement.as_ref().map(|judgement| judgement.verdict),
            reasons: judgement.as_ref().map_or(&[], |judgement| &judgement.reasons),
            limits: &limits,
            figures: end.figures(),
            enforced_cpu: enforced.map(|enforced| enforced.cpu.as_str()),
            enforced_memory: enforced.map(|enforced| enforced.memory.as_str()),
            engine: outcome.engine.as_ref(),
            target_sha256: outcome.target_sha256.as_deref(),
            version: Some(&outcome.target_version).filter(|version| !version.is_empty()).map(String::as_str),
            summary: summary.as_deref(),
            evidence: Some(evidence),
            series: series.map(Packed::as_bytes),
            now,
        };
        endings::end(connection, id, &ending).await?;
        retries::repeat(connection, id, &RunId::now(), now).await?;
        if let Some(warm_up) = outcome.warm_up {
            work::note_warm_up(connection, id, warm_up).await?;
        }
        if end.material.is_some() {
            work::note(connection, id, &outcome.work.clone().checked()).await?;
        }
        if let Some(cost) = end.material.as_ref().and_then(Material::cost) {
            costs::note(connection, id, cost).await?;
        }
        Ok(())
    }
}

fn packed(evidence: &Evidence) -> Result<Vec<u8>> {
    Ok(blob::pack(&serde_json::to_vec(evidence).map_err(Error::internal)?))
}

/// The series as it is to be stored, and read. One that can't be read is not stored.
pub fn series(outcome: &Outcome) -> (Option<&Packed>, Seen) {
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
#[derive(Debug)]
struct End {
    phase: Phase,
    error: Option<String>,
    /// What it is judged from, where it has figures.
    material: Option<Material>,
    /// What it is worth where it has none, if that is a verdict.
    failure: Option<Judgement>,
}

impl End {
    fn of(outcome: &Outcome, asked: Asked, evidence: Evidence, series: Seen) -> Self {
        match &outcome.ended {
            Ended::Finished => Self::finished(outcome, asked, evidence, series),
            Ended::Failed { reason, cause } => {
                let failure = judge_failure(*cause, reason);
                Self { failure, ..Self::without_figures(Phase::Failed, reason.clone()) }
            }
            // Nobody cancelled it here, or the run would have ended: it was given up meanwhile, and then taken up again.
            Ended::Cancelled => Self::without_figures(Phase::Lost, "its agent stopped it".to_owned()),
        }
    }

    fn without_figures(phase: Phase, error: String) -> Self {
        Self { phase, error: Some(error), material: None, failure: None }
    }

    fn finished(outcome: &Outcome, asked: Asked, evidence: Evidence, series: Seen) -> Self {
        let parsed = match outcome.summary.as_deref().map(|text| read::parse(text.as_bytes())) {
            Some(Ok(parsed)) => parsed,
            Some(Err(fault)) => {
                let mut why = format!("k6's summary can't be used: {fault}");
                if let Some(jumped) = outcome.conditions.clock_jump_ms.filter(|jumped| jumped.abs() >= 1_000) {
                    why = format!("{why}; {}", clock_set(jumped));
                }
                return Self::without_figures(Phase::Failed, why);
            }
            None => return Self::without_figures(Phase::Failed, "k6 left no summary".to_owned()),
        };
        let mut figures = parsed.figures();
        if !evidence.generators.is_empty() {
            // Each k6 has judged its own part; how many the whole has crossed is known where all of them could be judged.
            let crossed = evidence.thresholds.iter().map(|one| Some(!one.passed?)).collect::<Option<Vec<bool>>>();
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            figures.thresholds = Some(count(evidence.thresholds.len()));
            figures.thresholds_failed = crossed.map(|all| count(all.into_iter().filter(|crossed| *crossed).count()));
        }
        let Asked { load, vcpus, .. } = asked;
        let made = Made { enforced: outcome.enforced, vcpus, load, evidence, series };
        let material = Material { figures, made: Some(made) };
        Self { phase: Phase::Finished, error: None, material: Some(material), failure: None }
    }

    fn figures(&self) -> Option<&Figures> {
        self.material.as_ref().map(|material| &material.figures)
    }

    fn judge(&self, limits: &Limits) -> Option<Judgement> {
        self.material.as_ref().map(|material| material.judge(limits)).or_else(|| self.failure.clone())
    }
}
