//! Judges the runs of a cell together: whether the same drift repeats in each of them.
//!
//! Nothing is stored but the verdicts: what the series of a cell show is computed from them whenever one of its runs
//! ends or is re-judged, so it can't become outdated, and the order in which runs end does not matter.

use brewbench_wire::series::{Packed, Series};
use sqlx::SqliteConnection;

use super::{
    store::{
        cells::{Member, members, series},
        code::{self, Judged},
        verdicts,
    },
    verdict::{
        cell::{CellDrift, is_of_cell},
        model::Judgement,
    },
};
use crate::app::ids::RunId;

/// The runs of a cell that were judged together, and the drift that repeats in them.
#[derive(Clone, Debug, Default)]
pub struct CellFinding {
    /// The runs, in their order.
    pub runs: Vec<RunId>,
    /// The drift; none if they are steady.
    pub drift: Option<CellDrift>,
}

/// Finds the drift that repeats in the runs of a run's cell.
pub async fn find(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<CellFinding> {
    let members = members(&mut *connection, run).await?;
    examine(connection, &members).await
}

/// Returns whether the cell of a run still consists of these runs.
pub async fn is_current(connection: &mut SqliteConnection, run: &RunId, finding: &CellFinding) -> sqlx::Result<bool> {
    let members = members(connection, run).await?;
    Ok(members.iter().map(|member| &member.id).eq(&finding.runs))
}

/// Adds a note to a run that has ended if its target's code has changed under one version.
pub async fn note_code(connection: &mut SqliteConnection, ended: &RunId, now: i64) -> sqlx::Result<()> {
    let Some(note) = code::earlier(&mut *connection, ended).await?.and_then(|earlier| earlier.note()) else {
        return Ok(());
    };
    let Some(Judged { scenario, reasons }) = code::judged(&mut *connection, ended).await? else { return Ok(()) };
    let judgement = Judgement::from(reasons).with(Some(note));
    let limits = verdicts::limits(&mut *connection, scenario.as_deref()).await?.limits;
    verdicts::revise(&mut *connection, ended, judgement.verdict, &judgement.reasons).await?;
    verdicts::record_judgement(&mut *connection, ended, &limits, now).await
}

/// Judges the runs of a cell again after one of them has ended.
pub async fn judge(connection: &mut SqliteConnection, ended: &RunId, now: i64) -> sqlx::Result<()> {
    let members = members(&mut *connection, ended).await?;
    let CellFinding { drift, .. } = examine(&mut *connection, &members).await?;
    for Member { id, scenario, verdict, reasons, .. } in members {
        let limits = verdicts::limits(&mut *connection, scenario.as_deref()).await?.limits;
        let own: Vec<_> = reasons.iter().filter(|reason| !is_of_cell(reason)).cloned().collect();
        let judgement = Judgement::from(own).with(drift.and_then(|drift| drift.reason(&limits)));
        if judgement.verdict != verdict || judgement.reasons != reasons {
            verdicts::revise(&mut *connection, &id, judgement.verdict, &judgement.reasons).await?;
            verdicts::record_judgement(&mut *connection, &id, &limits, now).await?;
        }
    }
    Ok(())
}

async fn examine(connection: &mut SqliteConnection, members: &[Member]) -> sqlx::Result<CellFinding> {
    let runs: Vec<RunId> = members.iter().map(|member| member.id.clone()).collect();
    let Some(load) = members.first().and_then(|first| first.load.as_ref()) else { return Ok(CellFinding::default()) };
    let mut unpacked: Vec<Series> = Vec::with_capacity(members.len());
    for run in &runs {
        let packed = series(&mut *connection, run).await?.map(Packed::from_bytes);
        unpacked.extend(packed.and_then(|packed| packed.unpack().ok()));
    }
    Ok(CellFinding { runs, drift: CellDrift::find(load, &unpacked) })
}
