//! Letting k6 look at a script before anybody runs it: its outermost code is executed, its load is not.
//!
//! The [cage](crate::sandbox::cage) keeps that code from the network and from all files but the scenario's.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::k6::Script;
use crate::host::cleanup::RUN_FOLDER_PREFIX;
use crate::run::execute::Workbench;
use crate::sandbox::{Side, cores};
use crate::wire::RunId;
use crate::wire::job::Scenario;
use crate::wire::messages::Finding;

/// How long a script may take to be read. One that is endless must not keep the agent from its work.
const LIMIT: Duration = Duration::from_secs(10);

/// What k6 says to a script. When it returns, nothing of this is left on the machine; cancelling takes effect at once.
///
/// It must not be called within `spawn_blocking`: see [`crate::sandbox::process::Process::start`].
pub async fn inspect(id: Uuid, scenario: &Scenario, bench: &Workbench, cancel: &CancellationToken) -> Finding {
    match look(id, scenario, bench, cancel).await {
        Ok(finding) => finding,
        Err(reason) => Finding::Declined { reason },
    }
}

/// Fails with a sentence about this machine.
async fn look(id: Uuid, scenario: &Scenario, bench: &Workbench, cancel: &CancellationToken) -> Result<Finding, String> {
    let folder = tempfile::Builder::new().prefix(RUN_FOLDER_PREFIX).tempdir_in(&bench.work_folder);
    let folder = folder.map_err(|error| format!("can't make a folder in {}: {error}", bench.work_folder.display()))?;
    let script = match Script::alone(scenario, folder.path()) {
        Ok(script) => script,
        Err(message) => return Ok(Finding::Invalid { message }),
    };
    let group = bench.sandbox.open(RunId(id), Side::Generator);
    let group = group.map_err(|error| format!("can't make a control group: {error}"))?;
    let cores = cores::allowed();
    let finding = tokio::select! {
        biased;
        () = cancel.cancelled() => Finding::Declined { reason: "it was stopped".to_owned() },
        looked = bench.engine.inspect(&script, &group, &cores, LIMIT) => match looked {
            Ok(_) => Finding::Valid,
            Err(message) => Finding::Invalid { message },
        },
    };
    group.kill().await.and(group.clear().await).map_err(|error| format!("something of it stays: {error}"))?;
    Ok(finding)
}
