//! Finds wrk, and checks that it can run where load generators do.

use std::path::{Path, PathBuf};

use crate::engine::probe::ask;
use crate::sandbox::process::find_program;

/// Returns its path and version.
pub(super) async fn find() -> Option<(PathBuf, String)> {
    let path = find_program(Path::new("wrk"))?;
    // It fails after its version and its usage.
    let usage = ask(&path, "-v", &[]).await.map(|(_, text)| text);
    match usage.and_then(|text| version(&text).ok_or_else(|| format!("`wrk -v` prints {text:?}"))) {
        Ok(version) => Some((path, version)),
        Err(fault) => {
            tracing::warn!(path = %path.display(), %fault, "wrk can't be used");
            None
        }
    }
}

/// Returns the version in wrk's usage. wrk2 has the same name and needs a rate, so it is not taken for wrk.
fn version(usage: &str) -> Option<String> {
    let version = usage.lines().find_map(|line| line.strip_prefix("wrk "))?.split_whitespace().next()?;
    // Debian's is `debian/4.1.0-3+b2`.
    let is_known = version.rsplit('/').next()?.starts_with("4.");
    (is_known && !usage.contains("--rate")).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn wrk_is_told_from_wrk2() {
        let wrk = "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk <options> <url>";
        assert_eq!(version(wrk).as_deref(), Some("debian/4.1.0-3+b2"));
        assert_eq!(version("wrk 4.0.0 [epoll]\nUsage: wrk\n    -R, --rate <T> work rate"), None);
        assert_eq!(version("wrk 4.2.0 [kqueue]\nUsage: wrk").as_deref(), Some("4.2.0"));
        assert_eq!(version("wrk 3.1.4 [epoll]\nUsage: wrk"), None);
        assert_eq!(version("sh: not found"), None);
    }
}
