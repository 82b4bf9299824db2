//! The targets that an agent offers: its folder of manifests, read again while the agent is idle.

use std::path::PathBuf;
use std::sync::Arc;

use brewbench_wire::messages::TargetOffer;
use brewbench_wire::profile::ProfileSource;

use super::{Containers, Fingerprints, ManifestError};

/// A folder of manifests and what was last found in it.
#[derive(Debug)]
pub struct Offered {
    folder: PathBuf,
    fingerprints: Arc<Fingerprints>,
    containers: Containers,
    /// Whether the agent uses a cluster.
    has_cluster: bool,
    /// Which profilers may attach.
    profilers: Vec<ProfileSource>,
    /// What the agent offers.
    current: Found,
    /// What the last reading found.
    last: Found,
}

/// Targets, and what is wrong with the others.
type Found = (Vec<TargetOffer>, Vec<ManifestError>);

impl Offered {
    /// Reads a folder and logs invalid manifests. A missing folder is empty: an agent that only generates load needs none.
    pub fn read(
        folder: PathBuf,
        fingerprints: Arc<Fingerprints>,
        containers: Containers,
        has_cluster: bool,
        profilers: Vec<ProfileSource>,
    ) -> Self {
        let current = super::offers(&folder, &fingerprints, &containers, has_cluster, &profilers);
        if current.0.is_empty() {
            tracing::warn!(folder = %folder.display(), "no targets yet: put manifests (*.toml) into this folder");
        }
        log_faults(&current.1, &[]);
        Self { folder, fingerprints, containers, has_cluster, profilers, last: current.clone(), current }
    }

    /// Returns the targets.
    pub fn targets(&self) -> Vec<TargetOffer> {
        self.current.0.clone()
    }

    /// Reads the folder again. Returns the targets if they have changed.
    ///
    /// A change counts once two readings agree, because a file may be half written.
    pub fn reread(&mut self) -> Option<Vec<TargetOffer>> {
        let found =
            super::offers(&self.folder, &self.fingerprints, &self.containers, self.has_cluster, &self.profilers);
        if found != self.last {
            self.last = found;
            return None;
        }
        if found == self.current {
            return None;
        }
        log_faults(&found.1, &self.current.1);
        let has_changed = found.0 != self.current.0;
        self.current = found;
        has_changed.then(|| self.targets())
    }
}

fn log_faults(faults: &[ManifestError], known: &[ManifestError]) {
    for fault in faults.iter().filter(|fault| !known.contains(fault)) {
        tracing::error!(%fault, "skipped an invalid target");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn manifest(name: &str) -> String {
        format!("name = \"{name}\"\nversion = \"1\"\ncommand = [\"sh\", \"{{port}}\"]\n[ready]\npath = \"/\"\n")
    }

    fn names(targets: Option<Vec<TargetOffer>>) -> Option<Vec<String>> {
        Some(targets?.into_iter().map(|target| target.name).collect())
    }

    #[test]
    fn a_change_is_reported_once_after_two_equal_readings() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.toml");
        let mut offered =
            Offered::read(folder.path().to_owned(), Arc::default(), Containers::none(), false, Vec::new());
        assert_eq!((offered.targets(), offered.reread()), (Vec::new(), None));

        fs::write(&file, &manifest("a")[..20]).expect("half a file");
        assert_eq!(offered.reread(), None);
        fs::write(&file, manifest("a")).expect("a file");
        assert_eq!(offered.reread(), None, "it may still be half written");
        assert_eq!(names(offered.reread()), Some(vec!["a".to_owned()]));
        assert_eq!(offered.reread(), None, "reported once");

        fs::write(folder.path().join("b.toml"), "name =").expect("a file");
        assert_eq!((offered.reread(), offered.reread()), (None, None), "an invalid manifest changes no target");
        fs::remove_file(&file).expect("removed");
        assert_eq!((offered.reread(), names(offered.reread())), (None, Some(Vec::new())));
    }

    #[test]
    fn a_folder_may_be_created_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let later = folder.path().join("targets");
        let mut offered = Offered::read(later.clone(), Arc::default(), Containers::none(), false, Vec::new());
        assert_eq!((offered.targets(), offered.reread()), (Vec::new(), None));
        fs::create_dir(&later).expect("a folder");
        fs::write(later.join("a.toml"), manifest("a")).expect("a file");
        assert_eq!((offered.reread(), names(offered.reread())), (None, Some(vec!["a".to_owned()])));
    }
}
