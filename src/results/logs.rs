//! What target and load generators printed during a run. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::RunId, results::evidence::Evidence, runs::model::Run};

/// The last output of a run's programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunLogs {
    /// Id of the run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The target's; null while it is not known, and for imported runs.
    pub target: Option<String>,
    /// The load generators', in the order of their segments; empty while they are not known, and for imported runs.
    pub generators: Vec<GeneratorLog>,
}

/// The last output of one load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorLog {
    /// The agent that it ran on; null where that is not known.
    pub agent: Option<String>,
    /// What it printed.
    pub log: String,
}

impl RunLogs {
    /// From what is stored of a run.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let generators = match evidence {
            None => Vec::new(),
            Some(evidence) if run.generators.is_empty() => {
                vec![GeneratorLog { agent: run.agent.clone(), log: evidence.generator_log.clone() }]
            }
            Some(evidence) => evidence
                .generators
                .iter()
                .map(|seen| GeneratorLog { agent: Some(seen.agent.clone()), log: seen.generator_log.clone() })
                .collect(),
        };
        Self { run: run.id.clone(), target: evidence.and_then(|evidence| target_log(run, evidence)), generators }
    }
}

/// The target's last output; none where its agent sent nothing, because another agent's part ended the run.
pub fn target_log(run: &Run, evidence: &Evidence) -> Option<String> {
    let is_known = run.generators.is_empty() || !evidence.environment.is_empty();
    is_known.then(|| evidence.target_log.clone())
}
