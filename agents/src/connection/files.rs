//! Files of scenarios that are too large for messages: fetched from the server, and kept in the state folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use brewbench_io::client::{Client, Fault};
use brewbench_wire::job::hex;
use brewbench_wire::scenario::{FileRef, MAX_BYTES, Scenario};
use reqwest::Method;
use sha2::{Digest, Sha256};

/// Bytes that are kept; those last used remain.
const MAX_KEPT: u64 = 16 * MAX_BYTES as u64;

/// Fetches files once; cheap to clone.
#[derive(Clone, Debug)]
pub struct Files {
    client: Client,
    folder: PathBuf,
}

/// Why a file is missing.
#[derive(Debug, thiserror::Error)]
enum Missing {
    #[error("{0}")]
    Server(#[from] Fault),
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("the server sent other bytes")]
    Other,
}

impl Files {
    /// Keeps files in the state folder.
    pub fn new(client: Client, state: &Path) -> Self {
        Self { client, folder: state.join("files") }
    }

    /// Completes a scenario. What can't be fetched stays [`Scenario::elsewhere`], so that its run fails with its name.
    pub async fn complete(&self, scenario: &mut Scenario) {
        for (path, file) in scenario.elsewhere.clone() {
            match self.get(&file).await {
                Ok(bytes) => {
                    scenario.elsewhere.remove(&path);
                    scenario.files.insert(path, bytes.into());
                }
                Err(fault) => tracing::error!(path, %fault, "failed to fetch a file of the scenario"),
            }
        }
        if let Err(fault) = self.prune() {
            tracing::warn!(folder = %self.folder.display(), %fault, "failed to remove old files of scenarios");
        }
    }

    async fn get(&self, file: &FileRef) -> Result<Vec<u8>, Missing> {
        let is_it = |bytes: &[u8]| hex(&Sha256::digest(bytes)) == file.sha256;
        // The server names it: only what is a hash is part of a path.
        if !file.is_valid() {
            return Err(Missing::Other);
        }
        let path = self.folder.join(&file.sha256);
        if let Ok(bytes) = fs::read(&path)
            && is_it(&bytes)
        {
            fs::File::options().append(true).open(&path)?.set_modified(SystemTime::now())?;
            return Ok(bytes);
        }
        let request = self.client.request(Method::GET, &format!("api/v1/agent/files/{}", file.sha256));
        let response = self.client.send(request).await?;
        let bytes = response.bytes().await.map_err(|fault| io::Error::other(fault.without_url()))?.to_vec();
        if !is_it(&bytes) {
            return Err(Missing::Other);
        }
        fs::create_dir_all(&self.folder)?;
        let mut kept = tempfile::NamedTempFile::new_in(&self.folder)?;
        io::Write::write_all(&mut kept, &bytes)?;
        kept.persist(&path).map_err(|fault| fault.error)?;
        Ok(bytes)
    }

    /// Removes the files that were not used for the longest time.
    fn prune(&self) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(()) };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry?;
            let about = entry.metadata()?;
            all.push((about.modified()?, about.len(), entry.path()));
        }
        all.sort_by_key(|(used, ..)| std::cmp::Reverse(*used));
        let mut kept = 0;
        for (_, bytes, path) in all {
            kept += bytes;
            if kept > MAX_KEPT {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}
