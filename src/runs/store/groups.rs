//! SQL of the history by experiment: a page walks the runs newest first, and lists each experiment where its newest run
//! is. It reads a bounded number of rows, however many runs there are before it.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::{Fault, Rows},
    },
    runs::{model::Run, store::row::select},
};

/// Experiments and single runs of a page.
const MAX_GROUPS: usize = 40;

/// A page ends with the experiment that reaches this number of runs.
const MAX_RUNS: i64 = 100;

/// Runs that a page walks at most; those of experiments that are listed already are skipped.
const MAX_WALKED: i64 = 2_000;

/// Of an experiment only the newest runs are read.
pub const MAX_OF_ONE: usize = 500;

/// Ended runs, those of an experiment together.
#[derive(Debug, Default)]
pub struct GroupedPage {
    /// The group with the newest run first; within a group the newest run first.
    pub runs: Vec<Run>,
    /// Names of experiments.
    pub names: HashMap<ExperimentId, String>,
    /// The next page continues after this run.
    pub next: Option<RunId>,
}

/// The first run of a group.
struct Head {
    seq: i64,
    experiment: Option<ExperimentId>,
}

/// Returns the page after a run; the first one without. It is empty if that run does not exist.
pub async fn page(rows: &Rows, before: Option<&RunId>) -> sqlx::Result<GroupedPage> {
    let before = before.cloned();
    rows.read(move |connection| {
        let before = match before {
            None => i64::MAX,
            Some(id) => match seq(connection, &id)? {
                Some(seq) => seq,
                None => return Ok(GroupedPage::default()),
            },
        };
        let (heads, next) = heads(connection, before)?;
        let mut page = GroupedPage { next, ..GroupedPage::default() };
        for Head { seq, experiment } in heads {
            let Some(experiment) = experiment else {
                page.runs.extend(select(connection, "where seq = ?", [seq])?);
                continue;
            };
            let newest = "indexed by run_experiment where experiment_id = ?1 and deleted_at is null \
                 and phase in ('finished', 'failed', 'cancelled', 'lost') order by seq desc limit ?2";
            let most = i64::try_from(MAX_OF_ONE).unwrap_or(i64::MAX);
            page.runs.extend(select(connection, newest, (experiment.as_str(), most))?);
            page.names.extend(name(connection, &experiment)?.map(|name| (experiment, name)));
        }
        Ok(page)
    })
    .await
}

/// Returns SQLite's query plan of the walk, one line per step.
pub async fn plan(rows: &Rows) -> sqlx::Result<Vec<String>> {
    rows.read(|connection| {
        let mut explained = connection.prepare(&format!("explain query plan {WALK}"))?;
        let steps = explained.query_map([i64::MAX, MAX_WALKED], |row| row.get("detail"))?;
        Ok(steps.collect::<rusqlite::Result<_>>()?)
    })
    .await
}

const WALK: &str = "select seq, id, experiment_id from run
     where seq < ?1 and deleted_at is null and phase in ('finished', 'failed', 'cancelled', 'lost')
     order by seq desc limit ?2";

fn heads(connection: &Connection, before: i64) -> Result<(Vec<Head>, Option<RunId>), Fault> {
    let mut heads: Vec<Head> = Vec::new();
    let mut seen = HashSet::new();
    let (mut runs, mut walked, mut last) = (0, 0, None);
    let mut statement = connection.prepare_cached(WALK)?;
    let mut rows = statement.query([before, MAX_WALKED])?;
    while let Some(row) = rows.next()? {
        walked += 1;
        let (seq, id, experiment): (i64, RunId, Option<ExperimentId>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let is_listed = match &experiment {
            Some(experiment) => seen.contains(experiment) || is_earlier(connection, experiment, before)?,
            None => false,
        };
        if !is_listed {
            if heads.len() >= MAX_GROUPS || runs >= MAX_RUNS {
                return Ok((heads, last));
            }
            runs += match &experiment {
                Some(experiment) => count(connection, experiment)?,
                None => 1,
            };
            seen.extend(experiment.clone());
            heads.push(Head { seq, experiment });
        }
        last = Some(id);
    }
    Ok((heads, last.filter(|_| walked == MAX_WALKED)))
}

fn seq(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("select seq from run where id = ?")?.query_row([id.as_str()], |row| row.get(0)).optional()
}

/// Whether an experiment is on an earlier page, because its newest run is.
fn is_earlier(connection: &Connection, experiment: &ExperimentId, before: i64) -> rusqlite::Result<bool> {
    if before == i64::MAX {
        return Ok(false);
    }
    let newer = "select exists (select 1 from run indexed by run_experiment
         where experiment_id = ?1 and seq >= ?2 and deleted_at is null
             and phase in ('finished', 'failed', 'cancelled', 'lost'))";
    connection.prepare_cached(newer)?.query_row((experiment.as_str(), before), |row| row.get(0))
}

fn count(connection: &Connection, experiment: &ExperimentId) -> rusqlite::Result<i64> {
    let count = "select count(*) from run indexed by run_experiment where experiment_id = ?";
    connection.prepare_cached(count)?.query_row([experiment.as_str()], |row| row.get(0))
}

fn name(connection: &Connection, experiment: &ExperimentId) -> rusqlite::Result<Option<String>> {
    let name = "select name from experiment where id = ?";
    connection.prepare_cached(name)?.query_row([experiment.as_str()], |row| row.get(0)).optional()
}
