//! Records acknowledged results independently of the server, and checks that they are still stored.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use brewbench::{
    app::ids::{ExperimentId, RunId},
    experiments::model::ExperimentWithRuns,
    runs::model::{Run, RunList},
};
use serde_json::Value;

use super::world::World;

/// Phases that a run never leaves.
const SETTLED: [&str; 3] = ["finished", "failed", "cancelled"];

/// Results that were reported: to readers in a response, to agents by an acknowledgement.
#[derive(Debug, Default)]
pub struct Ledger {
    observed: BTreeMap<RunId, Run>,
    acknowledged: BTreeSet<RunId>,
    log_read: usize,
}

/// The audit of an experiment at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Its runs, including retries.
    pub runs: usize,
    /// Acknowledged results that are missing or different.
    pub lost: usize,
    /// Cells with more than one counted result.
    pub doubled: usize,
    /// Cells without a counted result.
    pub unmeasured: usize,
}

impl Ledger {
    /// Records ended runs of a response.
    pub fn note(&mut self, experiment: &ExperimentWithRuns) {
        for run in experiment.runs.iter().filter(|run| SETTLED.contains(&run.phase.as_str())) {
            self.observed.entry(run.id.clone()).or_insert_with(|| run.clone());
        }
    }

    /// Compares the records with the stored runs after the end of an experiment.
    pub async fn audit(&mut self, world: &World, experiment: &ExperimentId) -> anyhow::Result<Audit> {
        self.read_log(world)?;
        let current = world.experiment_with_runs(experiment).await?;
        let mut audit = Audit { runs: current.runs.len(), ..Audit::default() };
        let ids: BTreeSet<&RunId> = self.observed.keys().chain(&self.acknowledged).collect();
        for id in ids {
            let list: RunList = world.client.get(&format!("api/v1/runs/{id}")).await?;
            let now = list.runs.first().context("one run")?;
            let same = self
                .observed
                .get(id)
                .is_none_or(|then| (&then.phase, then.figures.requests) == (&now.phase, now.figures.requests));
            if !same || !SETTLED.contains(&now.phase.as_str()) {
                eprintln!("    lost: run {id} is {} now", now.phase);
                audit.lost += 1;
            }
        }
        // Each result is checked in one round only.
        self.observed.clear();
        self.acknowledged.clear();
        let mut counting: BTreeMap<u32, usize> = BTreeMap::new();
        for run in &current.runs {
            *counting.entry(run.repetition).or_default() += usize::from(run.counts());
        }
        audit.doubled = counting.values().filter(|count| **count > 1).count();
        audit.unmeasured = counting.values().filter(|count| **count == 0).count();
        if audit.unmeasured > 0 {
            let runs = current.runs.iter().map(|run| format!("{} {:?} {:?}", run.phase, run.verdict, run.error));
            eprintln!("    without a counted result: {}", runs.collect::<Vec<_>>().join("; "));
        }
        Ok(audit)
    }

    /// Reads acknowledgements from the log: the server logs each committed result before it responds to the agent.
    fn read_log(&mut self, world: &World) -> anyhow::Result<()> {
        let log = world.server_log()?;
        let end = log.rfind('\n').map_or(0, |end| end + 1);
        for line in log[self.log_read..end].lines() {
            let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
            if entry["message"] == "result stored" {
                self.acknowledged.extend(entry["run"].as_str().map(|id| RunId::from(id.to_owned())));
            }
        }
        self.log_read = end;
        Ok(())
    }
}
