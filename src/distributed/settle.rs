//! What becomes of the parts of a run as they arrive, by the rule in [`crate::results::ingest`].

use brewbench_agent::wire::{
    Phase, now_ms,
    outcome::{Ended, Outcome},
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
        merge::{self, Whole},
        model::{Part, clock},
    },
    results::{
        blob,
        evidence::Evidence,
        finalize::{self, Conclusion},
        settlement::{Open, Settled, enter, still_open},
        store::{
            endings::{self, Ending},
            parts::{self, Came, PartRow},
            verdicts::{self, Asked},
        },
        verdict::{self, judge::judge_failure, model::Judgement},
    },
    runs::store::retries,
};

/// Settles what one of the agents of a run brings; committed when this returns.
pub async fn settle(db: &Db, agent: &str, outcome: &Outcome, asked: &Asked) -> Result<Settled> {
    // Another part may arrive while this one is looked at; each does so once.
    for _ in 0..=asked.generators.len() + 1 {
        if let Some(settled) = try_once(db, agent, outcome, asked).await? {
            return Ok(settled);
        }
    }
    Err(Error::internal("the parts of a run keep arriving"))
}

/// Nothing if it has to be tried again, because more is there than was thought.
async fn try_once(db: &Db, agent: &str, outcome: &Outcome, asked: &Asked) -> Result<Option<Settled>> {
    let (id, now) = (RunId::from(outcome.run), now_ms());
    let rows = parts::of(&db.read, &id).await?;
    let Some(mine) = rows.iter().find(|row| row.agent == agent) else {
        return Ok(Some(Settled::not_theirs(&id, agent)));
    };
    let place = mine.place;
    // The work is done here, and not while others wait to write.
    let end = failure(place, agent, outcome);
    let own = Own::of(outcome)?;
    let is_last = rows.iter().all(|row| row.place == place || row.outcome.is_some());
    let whole = if end.is_none() && is_last { Some(put_together(rows, place, outcome)?) } else { None };
    let conclusion = match (end, &whole) {
        (Some(end), _) => Some(without_figures(place, outcome, asked, end)?),
        (None, Some(Ok(Whole { outcome, evidence }))) => {
            Some(Conclusion::of(outcome, asked.clone(), evidence.clone())?)
        }
        (None, Some(Err(why))) => {
            Some(without_figures(place, outcome, asked, (why.clone(), Some(verdict::generators::failed(why))))?)
        }
        (None, None) => None,
    };
    let failed = !matches!(whole, Some(Ok(_)));

    let mut transaction = db.write.begin().await?;
    let Some((phase, _)) = retries::standing(&mut transaction, &id).await? else {
        return Err(Error::NotFound(format!("run {id}")));
    };
    let there = parts::delivered(&mut transaction, &id).await?;
    let open = match still_open(&mut transaction, &id, &phase).await? {
        Open::No(_) if place == 0 && phase == Phase::Failed.as_str() && !there.contains(&place) => {
            own.keep(&mut transaction, &id, place).await?;
            keep_last_words(&mut transaction, &id, outcome).await?;
            transaction.commit().await?;
            return Ok(Some(Settled::dropped("the run had failed; what was seen of its target is kept")));
        }
        Open::No(settled) => return Ok(Some(settled)),
        open => open,
    };
    if there.contains(&place) {
        return Ok(Some(Settled::dropped(format!("the part of {agent} is there already"))));
    }
    let waits = asked.generators.len() + 1 > there.len() + 1;
    match &conclusion {
        Some(conclusion) => {
            let given_up = matches!(open, Open::Lost | Open::Instead(_));
            if given_up && failed {
                return Ok(Some(Settled::dropped("the run was given up, and this is no result")));
            }
            if let Open::Instead(retry) = &open {
                retries::withdraw(&mut transaction, retry).await?;
            }
            own.bring(&mut transaction, &id, place, outcome, now).await?;
            conclusion.store(&mut transaction, &id, now).await?;
        }
        None if waits => own.bring(&mut transaction, &id, place, outcome, now).await?,
        None => return Ok(None),
    }
    transaction.commit().await?;
    Ok(Some(Settled::KEPT))
}

/// Error and verdict of a part that ends its run.
type Failure = (String, Option<Judgement>);

/// How a part ends its run at once; nothing if it doesn't.
fn failure(place: i64, agent: &str, outcome: &Outcome) -> Option<Failure> {
    let of_generator = |sentence: String| {
        let judgement = verdict::generators::failed(&sentence);
        (sentence, Some(judgement))
    };
    match (&outcome.ended, place) {
        (Ended::Finished, 0) => None,
        (Ended::Finished, _) => merge::summary(outcome).err().map(|why| of_generator(format!("{agent}: {why}"))),
        (Ended::Failed { reason, cause }, 0) => Some((reason.clone(), judge_failure(*cause, reason))),
        (Ended::Failed { reason, .. }, _) => Some(of_generator(format!("{agent}: {reason}"))),
        (Ended::Cancelled, 0) => Some((format!("{agent} stopped"), None)),
        (Ended::Cancelled, _) => Some(of_generator(format!("{agent} stopped"))),
    }
}

fn without_figures<'a>(place: i64, outcome: &'a Outcome, asked: &Asked, end: Failure) -> Result<Conclusion<'a>> {
    // Only the target's agent knows what held it to its size, and under what it was measured.
    let (enforced, evidence) = match place {
        0 => (Some(outcome.enforced), Evidence::of(outcome)),
        _ => (None, Evidence { generator_log: outcome.generator_log.clone(), ..Evidence::default() }),
    };
    Conclusion::failed(outcome, asked.clone(), &evidence, enforced, end)
}

/// Keeps what the target's agent saw of a run that another has ended: whether the target was the reason may be in it.
async fn keep_last_words(connection: &mut SqliteConnection, id: &RunId, outcome: &Outcome) -> Result<()> {
    let known: Evidence = match endings::evidence(connection, id).await? {
        Some(body) => {
            serde_json::from_slice(&blob::unpack(&body).map_err(Error::internal)?).map_err(Error::internal)?
        }
        None => Evidence::default(),
    };
    let said_later = match &outcome.ended {
        Ended::Failed { reason, .. } => Some(reason.clone()),
        Ended::Finished | Ended::Cancelled => None,
    };
    let evidence = Evidence { generator_log: known.generator_log, said_later, ..merge::of_target(outcome) };
    let body = blob::pack(&serde_json::to_vec(&evidence).map_err(Error::internal)?);
    endings::keep_evidence(connection, id, &body).await?;
    Ok(())
}

/// What is kept of a part, as it is kept.
struct Own<'a> {
    outcome: Vec<u8>,
    summary: Option<Vec<u8>>,
    series: Option<&'a Packed>,
}

impl<'a> Own<'a> {
    fn of(outcome: &'a Outcome) -> Result<Self> {
        let rest = Outcome { summary: None, series: None, ..outcome.clone() };
        Ok(Self {
            outcome: blob::pack(&serde_json::to_vec(&rest).map_err(Error::internal)?),
            summary: outcome.summary.as_deref().map(|text| blob::pack(text.as_bytes())),
            series: finalize::series(outcome).0,
        })
    }

    async fn keep(&self, connection: &mut SqliteConnection, id: &RunId, place: i64) -> Result<()> {
        let Self { outcome: rest, summary, series } = self;
        let came = Came { outcome: rest, summary: summary.as_deref(), series: series.map(Packed::as_bytes) };
        parts::keep(connection, id, place, came).await?;
        Ok(())
    }

    /// Keeps it as a part of a run that goes on, or ends by it. When the phases of the run began is told by the target's
    /// agent.
    async fn bring(
        &self,
        connection: &mut SqliteConnection,
        id: &RunId,
        place: i64,
        outcome: &Outcome,
        now: i64,
    ) -> Result<()> {
        self.keep(connection, id, place).await?;
        if place == 0 {
            enter(connection, outcome, now).await?;
        }
        Ok(())
    }
}

/// All parts, one of which has just come, as one result; the inner error is a sentence.
fn put_together(rows: Vec<PartRow>, place: i64, outcome: &Outcome) -> Result<std::result::Result<Whole, String>> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let part = if row.place == place {
            Some(Part { clock: clock(&row), agent: row.agent, outcome: outcome.clone() })
        } else {
            Part::stored(row).map_err(Error::internal)?
        };
        all.push(part.ok_or_else(|| Error::internal("a part that was there is gone"))?);
    }
    match all.split_first() {
        Some((host, generators)) if !generators.is_empty() => Ok(merge::whole(host, generators)),
        _ => Err(Error::internal("a run of several agents has no generators")),
    }
}

/// Ends a run that one of its agents has left: it is `failed` and invalid (`generator_lost`), nobody works on it any more,
/// and its repetition is queued anew where that is due. `sentence` says who left and how it was noticed. False if it had
/// ended, or waits in the queue.
pub async fn fail(db: &Db, id: &RunId, sentence: &str) -> Result<bool> {
    let now = now_ms();
    let scenario = verdicts::asked(&db.read, id).await?.scenario;
    let mut transaction = db.write.begin().await?;
    let Some((phase, _)) = retries::standing(&mut transaction, id).await? else { return Ok(false) };
    if !matches!(still_open(&mut transaction, id, &phase).await?, Open::Yes) {
        return Ok(false);
    }
    let limits = verdicts::limits(&mut *transaction, scenario.as_deref()).await?.limits;
    let judgement = verdict::generators::lost(sentence);
    let ending = Ending::without_result(Phase::Failed, sentence, &judgement, &limits, now);
    endings::end(&mut transaction, id, &ending).await?;
    retries::repeat(&mut transaction, id, &RunId::now(), now).await?;
    transaction.commit().await?;
    Ok(true)
}
