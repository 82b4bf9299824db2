//! Validates a scenario: the top-level code of its script is executed with `k6 inspect`, its load is not, and its
//! request list is read.
//!
//! The [cage](crate::sandbox::cage) denies that code the network and all files except the scenario's.

use std::time::Duration;

use brewbench_wire::RunId;
use brewbench_wire::engine::EngineKind;
use brewbench_wire::messages::{Finding, ScriptReport};
use brewbench_wire::scenario::Scenario;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::{Script, native};
use crate::host::cleanup::create_run_folder;
use crate::run::context::RunContext;
use crate::sandbox::{ProgramRole, cores};

/// Timeout, so that an endless script does not block the agent.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the load generators' verdict on a scenario. Leaves nothing on the machine; cancelling takes effect at once.
///
/// Must not be called within `spawn_blocking`: see [`crate::sandbox::process::Process::start`].
pub async fn inspect(id: Uuid, scenario: &Scenario, context: &RunContext, cancel: &CancellationToken) -> Finding {
    match try_inspect(id, scenario, context, cancel).await {
        Ok(finding) => finding,
        Err(reason) => Finding::Declined { reason },
    }
}

/// Inspects a scenario. Fails with a sentence about this machine.
async fn try_inspect(
    id: Uuid,
    scenario: &Scenario,
    context: &RunContext,
    cancel: &CancellationToken,
) -> Result<Finding, String> {
    let engines = scenario.engines();
    if engines.contains(&EngineKind::Native)
        && let Err(message) = native::check(scenario)
    {
        return Ok(Finding::Invalid { message });
    }
    if !engines.contains(&EngineKind::K6) {
        return Ok(Finding::Valid(ScriptReport::default()));
    }
    let k6 = context.engines.k6()?;
    let folder = create_run_folder(&context.work_folder)?;
    let mut script = match Script::for_inspection(scenario, folder.path()) {
        Ok(script) => script,
        Err(message) => return Ok(Finding::Invalid { message }),
    };
    let group = context.sandbox.open(RunId(id), ProgramRole::Generator);
    let group = group.map_err(|error| format!("can't create a control group: {error}"))?;
    let cores = cores::allowed();
    let finding = tokio::select! {
        biased;
        () = cancel.cancelled() => Finding::Declined { reason: "the inspection was cancelled".to_owned() },
        result = k6.prepare(&mut script, &group, &cores, LIMIT) => match result {
            Ok((_, report)) => Finding::Valid(report),
            Err(message) => Finding::Invalid { message },
        },
    };
    group.kill().await.and(group.clear().await).map_err(|error| format!("failed to clean up: {error}"))?;
    Ok(finding)
}
