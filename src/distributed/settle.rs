//! Settles the parts of a distributed run as they arrive, by the rule in [`crate::results::ingest`].

use brewbench_wire::{
    Phase, now_ms,
    outcome::{Cause, Ended, Outcome},
    series::Packed,
};
use sqlx::SqliteConnection;

use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
    },
    distributed::{
        merge::{self, Merged},
        model::{AgentPart, clock},
    },
    fleet::model::NamedAgent,
    results::{
        blob,
        evidence::Evidence,
        finalize::{self, Conclusion},
        settlement::{Open, Settled, enter, still_open},
        store::{
            endings::{self, Ending},
            parts::{self, PartResult, PartRow},
            verdicts,
        },
        verdict::{self, judge::judge_failure, model::Judgement},
    },
    runs::{model::RunSpec, store::retries},
};

/// Settles the part of an agent. It is committed when this returns.
pub async fn settle(db: &Db, agent: &NamedAgent, outcome: &Outcome, requested: &RunSpec) -> Result<Settled> {
    // Another part may arrive while this one is processed, but each only once.
    for _ in 0..=requested.generators.len() + 1 {
        if let Some(settled) = try_once(db, agent, outcome, requested).await? {
            return Ok(settled);
        }
    }
    Err(Error::internal("parts of a run kept arriving while one was settled"))
}

/// Settles a part; none if another part arrived in the meantime and the caller must try again.
async fn try_once(db: &Db, agent: &NamedAgent, outcome: &Outcome, requested: &RunSpec) -> Result<Option<Settled>> {
    let (id, now) = (RunId::from(outcome.run), now_ms());
    let rows = parts::list(&db.read, &id).await?;
    let Some(mine) = rows.iter().find(|row| row.agent_id == agent.id) else {
        return Ok(Some(Settled::not_assigned(&id, &agent.name)));
    };
    let place = mine.place;
    // Merging happens before the transaction, which blocks other writers.
    let end = failure(place, &agent.name, outcome);
    let own = PackedPart::pack(outcome)?;
    let is_last = rows.iter().all(|row| row.place == place || row.outcome.is_some());
    let merged = if end.is_none() && is_last { Some(merge_parts(rows, place, outcome)?) } else { None };
    let conclusion = match (end, &merged) {
        (Some(end), _) => Some(failed_conclusion(place, outcome, requested, end)?),
        (None, Some(Ok(Merged { outcome, evidence }))) => {
            Some(Conclusion::new(outcome, requested.clone(), evidence.clone())?)
        }
        (None, Some(Err(why))) => {
            Some(failed_conclusion(place, outcome, requested, (why.clone(), Some(verdict::generators::failed(why))))?)
        }
        (None, None) => None,
    };
    let failed = !matches!(merged, Some(Ok(_)));

    let mut transaction = db.write.begin().await?;
    let Some((phase, _)) = retries::phase_and_agent(&mut transaction, &id).await? else {
        return Err(Error::NotFound(format!("run {id}")));
    };
    let delivered = parts::delivered(&mut transaction, &id).await?;
    let open = match still_open(&mut transaction, &id, phase).await? {
        Open::No(_) if place == 0 && phase == Phase::Failed && !delivered.contains(&place) => {
            own.store(&mut transaction, &id, place).await?;
            store_late_evidence(&mut transaction, &id, outcome).await?;
            transaction.commit().await?;
            return Ok(Some(Settled::dropped("the run had already failed; the evidence about its target was stored")));
        }
        Open::No(settled) => return Ok(Some(settled)),
        open => open,
    };
    if delivered.contains(&place) {
        return Ok(Some(Settled::dropped(format!("the part of {} was already delivered", agent.name))));
    }
    // The host and this part are not counted on either side.
    let waits = requested.generators.len() > delivered.len();
    match &conclusion {
        Some(conclusion) => {
            let given_up = matches!(open, Open::Lost | Open::Supersedes(_));
            if given_up && failed {
                return Ok(Some(Settled::dropped("the run was lost, and this is not a complete result")));
            }
            if let Open::Supersedes(retry) = &open {
                retries::withdraw(&mut transaction, retry).await?;
            }
            own.store_with_phases(&mut transaction, &id, place, outcome, now).await?;
            conclusion.store(&mut transaction, &id, now).await?;
        }
        None if waits => own.store_with_phases(&mut transaction, &id, place, outcome, now).await?,
        None => return Ok(None),
    }
    transaction.commit().await?;
    Ok(Some(Settled::COUNTS))
}

/// Error and verdict of a part that fails its run.
type Failure = (String, Option<Judgement>);

/// Returns how a part fails its run immediately; none if it doesn't.
fn failure(place: i64, agent: &str, outcome: &Outcome) -> Option<Failure> {
    let generator_failed = |sentence: String| {
        let judgement = verdict::generators::failed(&sentence);
        (sentence, Some(judgement))
    };
    match (&outcome.ended, place) {
        (Ended::Finished, 0) => None,
        (Ended::Finished, _) => merge::summary(outcome).err().map(|why| generator_failed(format!("{agent}: {why}"))),
        (Ended::Failed { reason, cause }, 0) => Some((reason.clone(), judge_failure(*cause, reason))),
        (Ended::Failed { reason, cause: cause @ Cause::NoSuccess }, _) => {
            let sentence = format!("{agent}: {reason}");
            let judgement = judge_failure(*cause, &sentence);
            Some((sentence, judgement))
        }
        (Ended::Failed { reason, .. }, _) => Some(generator_failed(format!("{agent}: {reason}"))),
        (Ended::Cancelled, 0) => Some((format!("{agent} stopped"), None)),
        (Ended::Cancelled, _) => Some(generator_failed(format!("{agent} stopped"))),
    }
}

fn failed_conclusion<'a>(
    place: i64,
    outcome: &'a Outcome,
    requested: &RunSpec,
    end: Failure,
) -> Result<Conclusion<'a>> {
    // Only the host knows how the size was enforced and the conditions of the measurement.
    let (enforced, evidence) = match place {
        0 => (Some(outcome.enforced), Evidence::from_outcome(outcome)),
        _ => (None, Evidence { generator_log: outcome.generator_log.clone(), ..Evidence::default() }),
    };
    Conclusion::failed(outcome, requested.clone(), &evidence, enforced, end)
}

/// Stores the host's evidence of a run that a generator has ended, because the target may be the cause.
async fn store_late_evidence(connection: &mut SqliteConnection, id: &RunId, outcome: &Outcome) -> Result<()> {
    let known: Evidence = match endings::evidence(connection, id).await? {
        Some(body) => {
            serde_json::from_slice(&blob::unpack(&body).map_err(Error::internal)?).map_err(Error::internal)?
        }
        None => Evidence::default(),
    };
    let reported_later = match &outcome.ended {
        Ended::Failed { reason, .. } => Some(reason.clone()),
        Ended::Finished | Ended::Cancelled => None,
    };
    let evidence = Evidence { generator_log: known.generator_log, reported_later, ..merge::host_evidence(outcome) };
    let body = blob::pack(&serde_json::to_vec(&evidence).map_err(Error::internal)?);
    endings::store_evidence(connection, id, &body).await?;
    Ok(())
}

/// A part in its stored form.
struct PackedPart<'a> {
    outcome: Vec<u8>,
    summary: Option<Vec<u8>>,
    series: Option<&'a Packed>,
}

impl<'a> PackedPart<'a> {
    fn pack(outcome: &'a Outcome) -> Result<Self> {
        let rest = Outcome { summary: None, series: None, ..outcome.clone() };
        Ok(Self {
            outcome: blob::pack(&serde_json::to_vec(&rest).map_err(Error::internal)?),
            summary: outcome.summary.as_deref().map(|text| blob::pack(text.as_bytes())),
            series: finalize::series(outcome).0,
        })
    }

    async fn store(&self, connection: &mut SqliteConnection, id: &RunId, place: i64) -> Result<()> {
        let Self { outcome: rest, summary, series } = self;
        let came = PartResult { outcome: rest, summary: summary.as_deref(), series: series.map(Packed::as_bytes) };
        parts::store(connection, id, place, came).await?;
        Ok(())
    }

    /// Stores it as a part of an open run, with the times of the phases if it is the host's.
    async fn store_with_phases(
        &self,
        connection: &mut SqliteConnection,
        id: &RunId,
        place: i64,
        outcome: &Outcome,
        now: i64,
    ) -> Result<()> {
        self.store(connection, id, place).await?;
        if place == 0 {
            enter(connection, outcome, now).await?;
        }
        Ok(())
    }
}

/// Merges the stored parts and the one that has just arrived. The inner error is a sentence.
fn merge_parts(rows: Vec<PartRow>, place: i64, outcome: &Outcome) -> Result<std::result::Result<Merged, String>> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let part = if row.place == place {
            Some(AgentPart { clock: clock(&row), agent: row.agent, outcome: outcome.clone() })
        } else {
            AgentPart::stored(row).map_err(Error::internal)?
        };
        all.push(part.ok_or_else(|| Error::internal("a delivered part is missing"))?);
    }
    match all.split_first() {
        Some((host, generators)) if !generators.is_empty() => Ok(merge::merge(host, generators)),
        _ => Err(Error::internal("a distributed run has no generators")),
    }
}

/// Fails a run that one of its agents has left: it becomes `failed` and invalid (`generator_lost`), its leases are
/// removed, and a due retry is queued. `sentence` describes who left and how it was noticed. Returns false if the run
/// has ended or waits in the queue.
pub async fn fail(db: &Db, id: &RunId, sentence: &str) -> Result<bool> {
    let now = now_ms();
    let scenario = verdicts::requested(&db.read, id).await?.scenario;
    let mut transaction = db.write.begin().await?;
    let Some((phase, _)) = retries::phase_and_agent(&mut transaction, id).await? else { return Ok(false) };
    if !matches!(still_open(&mut transaction, id, phase).await?, Open::Yes) {
        return Ok(false);
    }
    let limits = verdicts::limits(&mut *transaction, scenario.as_deref()).await?.limits;
    let judgement = verdict::generators::lost(sentence);
    let ending = Ending::without_result(Phase::Failed, sentence, &judgement, &limits, now);
    endings::end(&mut transaction, id, &ending).await?;
    retries::queue_retry(&mut transaction, id, &RunId::now(), now).await?;
    transaction.commit().await?;
    Ok(true)
}
