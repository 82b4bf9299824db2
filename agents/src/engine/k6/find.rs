//! Checks that a program is a k6 that can run where load generators do.

use std::path::{Path, PathBuf};

use super::version::Version;
use crate::engine::probe::ask;
use crate::sandbox::process::{describe, is_script, last_lines};

/// A shim starts a program in another folder, which the sandbox does not know.
const NO_SHIM: &str = "if it is a shim or a wrapper, name the program that it starts with --k6 PATH (mise and asdf show \
                       it: `mise which k6`, `asdf which k6`)";

/// Returns the folder of a shell script in place of k6, which may start a k6 next to it.
pub(super) fn folder_of_script(path: &Path) -> Option<PathBuf> {
    is_script(path).then(|| path.canonicalize().ok()?.parent().map(Path::to_owned)).flatten()
}

/// Runs `k6 version` in the cage of a run, so that a k6 that can't start there is found before any run.
pub(super) async fn read_version(path: &Path, beside: &[PathBuf]) -> Result<Version, String> {
    let (status, text) = ask(path, "version", beside).await?;
    if !status.success() {
        let (status, lines) = (describe(status), last_lines(&text));
        return Err(format!("`k6 version` fails in the sandbox of load generators: {status}: {lines}; {NO_SHIM}"));
    }
    Version::from_output(&text)
        .ok_or_else(|| format!("`k6 version` prints {:?}", text.chars().take(100).collect::<String>()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::K6;
    use super::*;

    pub(in crate::engine::k6) fn program(text: &str) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = brewbench_testing::public_folder();
        let path = folder.path().join("k6");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        (folder, path)
    }

    #[tokio::test]
    async fn a_shim_that_its_sandbox_stops_is_refused_with_the_remedy() {
        use std::os::unix::fs::PermissionsExt;
        let (elsewhere, k6) = program("echo 'k6 v1.8.1 (go1.27, linux/amd64)'");
        let (_shims, shim) = program(&format!("exec {}", k6.display()));
        // Root may start it, and so may an agent that is not caged.
        std::fs::set_permissions(elsewhere.path(), std::fs::Permissions::from_mode(0o700)).expect("closed");
        assert!(std::process::Command::new(&shim).status().expect("started").success());
        let message = K6::find(Some(&shim)).await.expect_err("refused").to_string();
        assert!(message.contains("fails in the sandbox of load generators: exit status 126: "), "{message}");
        assert!(message.contains("Permission denied; if it is a shim or a wrapper, name the program"), "{message}");
    }
}
