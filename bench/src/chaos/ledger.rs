//! What was acknowledged, kept apart from the server's own books, and what has become of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use brewbench::{
    app::ids::{ExperimentId, RunId},
    experiments::model::ExperimentWithRuns,
    runs::model::{Run, RunList},
};
use serde_json::Value;

use super::world::World;

/// Phases that a run does not leave, however often something is killed.
const SETTLED: [&str; 3] = ["finished", "failed", "cancelled"];

/// Ends of runs that somebody was told: readers by an answer, agents by an acknowledgement.
#[derive(Debug, Default)]
pub struct Ledger {
    seen: BTreeMap<RunId, Run>,
    acknowledged: BTreeSet<RunId>,
    log_read: usize,
}

/// What an experiment shows at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Runs of it, the repetitions of failed and lost ones with them.
    pub runs: usize,
    /// Acknowledged results that are gone or are others.
    pub lost: usize,
    /// Cells with more than one result that counts.
    pub doubled: usize,
    /// Cells without one that counts.
    pub unmeasured: usize,
}

impl Ledger {
    /// Notes what has ended by an answer of the server's.
    pub fn note(&mut self, whole: &ExperimentWithRuns) {
        for run in whole.runs.iter().filter(|run| SETTLED.contains(&run.phase.as_str())) {
            self.seen.entry(run.id.clone()).or_insert_with(|| run.clone());
        }
    }

    /// Compares with what is stored now, once an experiment has ended.
    pub async fn audit(&mut self, world: &World, experiment: &ExperimentId) -> anyhow::Result<Audit> {
        self.read_log(world)?;
        let whole = world.look(experiment).await?;
        let mut audit = Audit { runs: whole.runs.len(), ..Audit::default() };
        let ids: BTreeSet<&RunId> = self.seen.keys().chain(&self.acknowledged).collect();
        for id in ids {
            let list: RunList = world.client.get(&format!("api/v1/runs/{id}")).await?;
            let now = list.runs.first().context("one run")?;
            let same = self
                .seen
                .get(id)
                .is_none_or(|then| (&then.phase, then.figures.requests) == (&now.phase, now.figures.requests));
            if !same || !SETTLED.contains(&now.phase.as_str()) {
                eprintln!("    lost: run {id} is {} now", now.phase);
                audit.lost += 1;
            }
        }
        // What has stood one round will not be looked at for ever.
        self.seen.clear();
        self.acknowledged.clear();
        let mut counting: BTreeMap<u32, usize> = BTreeMap::new();
        for run in &whole.runs {
            *counting.entry(run.repetition).or_default() += usize::from(run.counts());
        }
        audit.doubled = counting.values().filter(|kept| **kept > 1).count();
        audit.unmeasured = counting.values().filter(|kept| **kept == 0).count();
        if audit.unmeasured > 0 {
            let told = whole.runs.iter().map(|run| format!("{} {:?} {:?}", run.phase, run.verdict, run.error));
            eprintln!("    without a result that counts: {}", told.collect::<Vec<_>>().join("; "));
        }
        Ok(audit)
    }

    /// The server says so once a result is committed, right before it tells the agent.
    fn read_log(&mut self, world: &World) -> anyhow::Result<()> {
        let log = world.server_log()?;
        let whole = log.rfind('\n').map_or(0, |end| end + 1);
        for line in log[self.log_read..whole].lines() {
            let Ok(told) = serde_json::from_str::<Value>(line) else { continue };
            if told["message"] == "a result is stored" {
                self.acknowledged.extend(told["run"].as_str().map(|id| RunId::from(id.to_owned())));
            }
        }
        self.log_read = whole;
        Ok(())
    }
}
