//! Notices changes in the folder of manifests while the agent runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Fingerprints, offers};
use crate::wire::RunId;
use crate::wire::messages::TargetOffer;

/// The time between two looks at the folder.
const EVERY: Duration = Duration::from_secs(2);

/// Looks for changes every few seconds. Never returns.
pub async fn watch_folder(
    folder: PathBuf,
    fingerprints: Arc<Fingerprints>,
    running: watch::Receiver<Option<RunId>>,
    targets: watch::Sender<Vec<TargetOffer>>,
) {
    let mut reported = None;
    loop {
        sleep(EVERY).await;
        look(&folder, &fingerprints, &running, &targets, &mut reported).await;
    }
}

/// Sends the targets of the folder if they have changed and nothing runs.
async fn look(
    folder: &Path,
    fingerprints: &Arc<Fingerprints>,
    running: &watch::Receiver<Option<RunId>>,
    targets: &watch::Sender<Vec<TargetOffer>>,
    reported: &mut Option<Vec<String>>,
) {
    // Reading programs would disturb a measurement.
    if running.borrow().is_some() {
        return;
    }
    let (folder, fingerprints) = (folder.to_owned(), Arc::clone(fingerprints));
    let Ok((found, faults)) = spawn_blocking(move || offers(&folder, &fingerprints)).await else { return };
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    // Those of the start are in the log already.
    let is_news = reported.as_ref().is_some_and(|reported| *reported != faults);
    for fault in faults.iter().filter(|_| is_news) {
        tracing::error!(%fault, "skipped an invalid target");
    }
    *reported = Some(faults);
    targets.send_if_modified(|current| {
        // The server does not accept an agent without targets: the last ones stay until there are others.
        let has_changed = *current != found && !found.is_empty();
        if has_changed {
            tracing::info!(targets = found.len(), "the targets have changed");
            *current = found;
        }
        has_changed
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_manifest_is_offered_unless_a_run_is_in_progress() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(format!("{name}.toml"));
        let manifest = |name: &str| {
            let text = format!(
                "name = \"{name}\"\nversion = \"1\"\ncommand = [\"/bin/sh\", \"{{port}}\"]\n[ready]\npath = \"/\"\n"
            );
            std::fs::write(file(name), text).expect("a manifest");
        };
        let (busy, running) = watch::channel(None);
        let (sender, mut targets) = watch::channel(Vec::new());
        let (fingerprints, mut reported) = (Arc::default(), None);
        let mut names = async || {
            look(folder.path(), &fingerprints, &running, &sender, &mut reported).await;
            let changed = targets.has_changed().expect("a sender");
            let names: Vec<_> = targets.borrow_and_update().iter().map(|target| target.name.clone()).collect();
            (changed, names.join(" "))
        };
        assert_eq!(names().await, (false, String::new()));
        manifest("one");
        assert_eq!(names().await, (true, "one".to_owned()));
        assert_eq!(names().await, (false, "one".to_owned()));
        busy.send_replace(Some(RunId(uuid::Uuid::nil())));
        manifest("two");
        assert_eq!(names().await, (false, "one".to_owned()));
        busy.send_replace(None);
        assert_eq!(names().await, (true, "one two".to_owned()));
        for name in ["one", "two"] {
            std::fs::remove_file(file(name)).expect("a file");
        }
        assert_eq!(names().await, (false, "one two".to_owned()), "an agent needs a target");
    }
}
