//! Files of scenarios that are too large for messages: fetched from the server, and kept in the state folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use brewbench_io::client::{Client, Fault};
use brewbench_wire::hex;
use brewbench_wire::scenario::{FileRef, MAX_BYTES, Scenario};
use reqwest::Method;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

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

    /// Completes a scenario, unless it is cancelled. What can't be fetched stays [`Scenario::elsewhere`], so that its run
    /// fails with its name.
    pub async fn complete(&self, scenario: &mut Scenario, cancel: &CancellationToken) {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.fetch(scenario) => {}
        }
    }

    async fn fetch(&self, scenario: &mut Scenario) {
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers each request with the same bytes, and counts them.
    fn serve(body: &'static [u8]) -> (Client, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address")).parse().expect("a URL");
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = client.read(&mut [0; 4096]);
                let _ =
                    write!(client, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = client.write_all(body);
            }
        });
        brewbench_io::client::prepare_tls();
        (Client::new(&url, None).expect("a client"), requests)
    }

    fn missing(path: &str, content: &str) -> Scenario {
        let mut scenario = Scenario::of_script("x", "1");
        scenario.elsewhere.insert(path.to_owned(), FileRef::new(&content.into()));
        scenario
    }

    #[tokio::test]
    async fn a_file_is_fetched_once_and_only_with_the_right_bytes() {
        let (client, requests) = serve(b"large");
        let state = tempfile::tempdir().expect("a folder");
        let files = Files::new(client, state.path());
        let never = CancellationToken::new();
        for _ in 0..2 {
            let mut scenario = missing("data/a.csv", "large");
            files.complete(&mut scenario, &never).await;
            assert_eq!((scenario.files["data/a.csv"].bytes(), scenario.fault()), (&b"large"[..], None));
        }
        assert_eq!(requests.load(Ordering::Relaxed), 1, "it is kept");
        let kept = state.path().join("files").join(FileRef::new(&"large".into()).sha256);
        fs::write(kept, "damaged").expect("written");
        let mut scenario = missing("data/a.csv", "large");
        files.complete(&mut scenario, &never).await;
        assert_eq!((scenario.fault(), requests.load(Ordering::Relaxed)), (None, 2));

        let mut other = missing("b.csv", "other bytes");
        files.complete(&mut other, &never).await;
        assert_eq!(other.fault().as_deref(), Some("files: \"b.csv\" could not be fetched"));
        let mut foreign = missing("c.csv", "");
        foreign.elsewhere.insert("c.csv".to_owned(), FileRef { sha256: "../key".to_owned(), bytes: 1 });
        files.complete(&mut foreign, &never).await;
        assert!(foreign.fault().is_some() && requests.load(Ordering::Relaxed) == 3, "only hashes are asked for");
    }

    #[tokio::test]
    async fn a_cancelled_fetch_ends_at_once() {
        let (client, _requests) = serve(b"large");
        let state = tempfile::tempdir().expect("a folder");
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let mut scenario = missing("a.csv", "large");
        Files::new(client, state.path()).complete(&mut scenario, &cancelled).await;
        assert!(scenario.elsewhere.contains_key("a.csv"));
    }
}
