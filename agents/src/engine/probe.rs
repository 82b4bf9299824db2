//! Asks a load generator what it is, where it would generate load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use brewbench_wire::RunId;

use crate::sandbox::cage::{Cage, user};
use crate::sandbox::process::{Plan, Process};
use crate::sandbox::{ProgramRole, Sandbox};

/// Runs a program in the cage of a run, in which it may also read other folders. Returns its status and its output. The
/// error is a sentence.
pub(super) async fn ask(path: &Path, argument: &str, beside: &[PathBuf]) -> Result<(ExitStatus, String), String> {
    let home = tempfile::tempdir().and_then(|home| user::give(home.path(), ProgramRole::Generator).map(|()| home));
    let home = home.map_err(|error| format!("can't create a temporary folder: {error}"))?;
    let plan = Plan {
        program: path.to_owned(),
        arguments: vec![argument.to_owned()],
        environment: BTreeMap::new(),
        folder: home.path().to_owned(),
        cores: Vec::new(),
        cage: Cage::generator(path, home.path(), home.path(), home.path()).widened(beside, &[]),
    };
    let group = Sandbox::none("version").open(RunId::now(), ProgramRole::Generator);
    let started = group.and_then(|group| Process::start(&plan, &group));
    let mut process = started.map_err(|error| error.to_string())?;
    let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await;
    let name = path.file_name().unwrap_or_default().display();
    let status = ended.map_err(|_| format!("`{name} {argument}` timed out"))?.map_err(|error| error.to_string())?;
    Ok((status, process.log().await))
}
