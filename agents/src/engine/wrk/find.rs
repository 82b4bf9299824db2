//! Finds wrk, and checks that it can run where load generators do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::RunId;

use crate::sandbox::cage::{Cage, user};
use crate::sandbox::process::{Plan, Process, find_program};
use crate::sandbox::{ProgramRole, Sandbox};

/// Returns its path and version.
pub(super) async fn find() -> Option<(PathBuf, String)> {
    let path = find_program(Path::new("wrk"))?;
    match usage(&path).await.and_then(|text| version(&text).ok_or(format!("`wrk -v` prints {text:?}"))) {
        Ok(version) => Some((path, version)),
        Err(fault) => {
            tracing::warn!(path = %path.display(), %fault, "wrk can't be used");
            None
        }
    }
}

/// Returns what `wrk -v` prints in the cage of a run: its version and its options.
async fn usage(path: &Path) -> Result<String, String> {
    let home = tempfile::tempdir().and_then(|home| user::give(home.path(), ProgramRole::Generator).map(|()| home));
    let home = home.map_err(|error| format!("can't create a temporary folder: {error}"))?;
    let plan = Plan {
        program: path.to_owned(),
        arguments: vec!["-v".to_owned()],
        environment: BTreeMap::new(),
        folder: home.path().to_owned(),
        cores: Vec::new(),
        cage: Cage::generator(path, home.path(), home.path(), home.path()),
    };
    let group = Sandbox::none("wrk-version").open(RunId::now(), ProgramRole::Generator);
    let mut process = group.and_then(|group| Process::start(&plan, &group)).map_err(|error| error.to_string())?;
    let ended = tokio::time::timeout(Duration::from_secs(10), process.wait()).await;
    ended.map_err(|_| "`wrk -v` timed out".to_owned())?.map_err(|error| error.to_string())?;
    Ok(process.log().await)
}

/// Returns the version in wrk's usage. wrk2 has the same name and needs a rate, so it is not taken for wrk.
fn version(usage: &str) -> Option<String> {
    let version = usage.lines().find_map(|line| line.strip_prefix("wrk "))?.split_whitespace().next()?;
    (!usage.contains("--rate") && version.contains('4')).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn wrk_is_told_from_wrk2() {
        let wrk = "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk <options> <url>";
        assert_eq!(version(wrk).as_deref(), Some("debian/4.1.0-3+b2"));
        assert_eq!(version("wrk 4.0.0 [epoll]\nUsage: wrk\n    -R, --rate <T> work rate"), None);
        assert_eq!(version("sh: not found"), None);
    }
}
