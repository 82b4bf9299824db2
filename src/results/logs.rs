//! Output of target and load generators during a run. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::RunId, results::evidence::Evidence, runs::model::Run};

/// The last output of a run's target and load generators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunLogs {
    /// Id of the run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The target's; null while unknown, and for imported runs.
    pub target: Option<String>,
    /// The load generators', in the order of their segments; empty while unknown, and for imported runs.
    pub generators: Vec<GeneratorLog>,
}

/// The last output of one load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorLog {
    /// The agent that it ran on; null if unknown.
    pub agent: Option<String>,
    /// Its last output.
    pub log: String,
}

impl RunLogs {
    /// Collects the stored output of a run.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let generators = match evidence {
            None => Vec::new(),
            Some(evidence) if run.generators.is_empty() => {
                vec![GeneratorLog { agent: run.agent.clone(), log: evidence.generator_log.clone() }]
            }
            Some(evidence) => evidence
                .generators
                .iter()
                .map(|one| GeneratorLog { agent: Some(one.agent.clone()), log: one.generator_log.clone() })
                .collect(),
        };
        Self { run: run.id.clone(), target: evidence.and_then(|evidence| target_log(run, evidence)), generators }
    }
}

/// Returns the target's last output; None if another agent's part ended the run before its agent sent any.
pub fn target_log(run: &Run, evidence: &Evidence) -> Option<String> {
    let is_known = run.generators.is_empty() || !evidence.environment.is_empty();
    is_known.then(|| evidence.target_log.clone())
}
