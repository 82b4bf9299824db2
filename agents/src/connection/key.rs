//! The agent's own key. The agent creates it, stores it privately in the state folder, and sends only its hash to the
//! server.
//!
//! A one-time key is exchanged once: the agent creates and stores its own key, and sends the server its hash until
//! it answers. A key change works the same way, authenticated by the key to be replaced; that one is valid until the
//! server has seen the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use brewbench_io::client::{Client, Fault};
use brewbench_wire::hex;
use brewbench_wire::key::{AGENT, Enrolled, NewKey, ONE_TIME};
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::sleep;
use uuid::Uuid;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The content of the key file.
#[derive(Clone, Serialize, Deserialize)]
struct KeyFile {
    /// The key that the server accepts now.
    key: String,
    /// SHA-256 in hex of the key the user passed for this one: passing it again changes nothing.
    given_sha256: String,
    /// Created, but not yet confirmed by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The key file of an agent and its content.
pub struct Keys {
    file: PathBuf,
    stored: Mutex<KeyFile>,
    /// Content of the file before the user passed another key: restored if the server rejects that one.
    before: Option<KeyFile>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The keys are left out because this may be logged.
        f.debug_struct("Keys").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Keys {
    /// Loads the keys of an agent with this state folder; the user may pass one. Does not contact the server.
    ///
    /// # Errors
    /// Fails if there is no key, or the file can't be read.
    pub fn open(state: &Path, passed: Option<&str>) -> anyhow::Result<Self> {
        let file = state.join("key");
        let stored = load(&file)?;
        let mut before = None;
        let stored = match (passed, stored) {
            (None, Some(stored)) => stored,
            (None, None) => bail!(
                "no key in {} yet: create one on the server with `brewbench agent-key new NAME` and pass it with --key",
                state.display()
            ),
            (Some(passed), Some(stored)) if stored.given_sha256 == hashed(passed) => stored,
            (Some(passed), stored) => {
                before = stored;
                KeyFile { key: passed.to_owned(), given_sha256: hashed(passed), next: None }
            }
        };
        Ok(Self { file, stored: Mutex::new(stored), before })
    }

    /// Returns the current key; a one-time key until [`Keys::settle`] has exchanged it.
    pub async fn current(&self) -> String {
        self.stored.lock().await.key.clone()
    }

    /// Exchanges a one-time key, or completes an interrupted key change. Retries until the server answers; afterwards
    /// the client uses the agent's own key.
    ///
    /// # Errors
    /// Fails if the server refuses, or the file can't be written.
    pub async fn settle(&self, client: &Client) -> anyhow::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.step(client).await {
                Ok(()) => return Ok(()),
                Err(Failure::Final(fault)) => return Err(fault),
                Err(Failure::Temporary(cause)) => {
                    if pause == FIRST_PAUSE {
                        tracing::warn!(server = %client.base(), cause, "no response from the server; retrying");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    async fn step(&self, client: &Client) -> Result<(), Failure> {
        let mut stored = self.stored.lock().await;
        let is_one_time = stored.key.starts_with(ONE_TIME);
        if is_one_time && stored.next.is_none() {
            // Stored first: if the process is interrupted now, it retries with the same key.
            stored.next = Some(create());
            save(&self.file, &stored).map_err(|fault| self.not_written(&fault))?;
        }
        if stored.next.is_none() {
            return Ok(());
        }
        self.introduce(client, &mut stored).await
    }

    /// Creates another key and uses it from now on.
    ///
    /// # Errors
    /// Fails if the server refuses or does not answer, or the file can't be written; the key stays as it is.
    pub async fn change(&self, client: &Client) -> anyhow::Result<()> {
        let mut stored = self.stored.lock().await;
        if stored.next.is_none() {
            stored.next = Some(create());
            save(&self.file, &stored).map_err(|fault| self.not_written(&fault).into_error())?;
        }
        self.introduce(client, &mut stored).await.map_err(Failure::into_error)
    }

    /// Registers the hash of the next key with the server, and uses the key.
    async fn introduce(&self, client: &Client, stored: &mut KeyFile) -> Result<(), Failure> {
        let Some(next) = stored.next.clone() else { return Ok(()) };
        let (method, path) = if stored.key.starts_with(ONE_TIME) {
            (Method::POST, "api/v1/agent/enrolment")
        } else {
            (Method::PUT, "api/v1/agent/key")
        };
        client.change_secret(&stored.key);
        let request = client.request(method, path).json(&NewKey { key_sha256: hashed(&next) });
        // Unauthorized may mean that the key was replaced before, but the process stopped before it wrote the file.
        let result = client.send(request).await.map(drop);
        let is_unknown = matches!(&result, Err(Fault::Refused { status, .. }) if *status == StatusCode::UNAUTHORIZED);
        if let Err(fault) = result
            && !(is_unknown && is_known(client, &next).await)
        {
            return Err(self.failure(client, fault, stored));
        }
        let settled = KeyFile { key: next.clone(), given_sha256: stored.given_sha256.clone(), next: None };
        save(&self.file, &settled).map_err(|fault| self.not_written(&fault))?;
        *stored = settled;
        client.change_secret(&next);
        // The first use of the new key invalidates the old one.
        let used = client.send(client.request(Method::GET, "api/v1/agent/self")).await;
        if let Err(fault) = used {
            tracing::warn!(%fault, "failed to use the new key; the old one stays valid until then");
        }
        tracing::info!(file = %self.file.display(), "the agent uses its own key now");
        Ok(())
    }

    fn failure(&self, client: &Client, fault: Fault, stored: &KeyFile) -> Failure {
        match fault {
            Fault::Refused { status, sentence } if is_final(status) => {
                if stored.key.starts_with(ONE_TIME) {
                    self.restore();
                }
                Failure::Final(refusal(client, status, &sentence, stored))
            }
            fault => Failure::Temporary(fault.to_string()),
        }
    }

    /// Restores the file from before the server rejected the passed key.
    fn restore(&self) {
        let result =
            self.before.as_ref().map_or_else(|| fs::remove_file(&self.file), |stored| save(&self.file, stored));
        if let Err(fault) = result {
            tracing::warn!(file = %self.file.display(), %fault, "failed to restore the agent's previous key");
        }
    }

    fn not_written(&self, fault: &io::Error) -> Failure {
        Failure::Final(anyhow::anyhow!("the agent's key can't be stored in {}: {fault}", self.file.display()))
    }
}

/// Why a key could not be registered.
enum Failure {
    /// Retrying is pointless.
    Final(anyhow::Error),
    /// Retrying may help.
    Temporary(String),
}

impl Failure {
    fn into_error(self) -> anyhow::Error {
        match self {
            Self::Final(fault) => fault,
            Self::Temporary(cause) => anyhow::anyhow!(cause),
        }
    }
}

/// Whether retrying can't help. A disabled agent may be enabled again.
fn is_final(status: StatusCode) -> bool {
    let passing = [StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.is_client_error() && !passing.contains(&status)
}

fn refusal(client: &Client, status: StatusCode, sentence: &str, stored: &KeyFile) -> anyhow::Error {
    if status == StatusCode::UNAUTHORIZED && stored.key.starts_with(ONE_TIME) {
        return anyhow::anyhow!(
            "{} does not know this one-time key, or it has expired; create one with `brewbench agent-key new NAME`",
            client.base()
        );
    }
    anyhow::anyhow!("{} rejected the agent's new key: {sentence}", client.base())
}

/// Whether the server accepts this key. If so, the client uses it from now on.
async fn is_known(client: &Client, key: &str) -> bool {
    let before = client.secret().unwrap_or_default();
    client.change_secret(key);
    let known = client.get::<Enrolled>("api/v1/agent/self").await.is_ok();
    if !known {
        client.change_secret(&before);
    }
    known
}

/// Creates a key: 366 random bits from the operating system, hashed to 256.
fn create() -> String {
    let mut random = Sha256::new();
    for _ in 0..3 {
        random.update(Uuid::new_v4().as_bytes());
    }
    format!("{AGENT}{}", hex(&random.finalize()))
}

fn hashed(key: &str) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

fn load(file: &Path) -> anyhow::Result<Option<KeyFile>> {
    match fs::read(file) {
        Ok(bytes) => {
            let stored = serde_json::from_slice(&bytes);
            stored.map(Some).with_context(|| format!("{} is damaged; remove it and re-enrol the agent", file.display()))
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault).with_context(|| format!("{} can't be read", file.display())),
    }
}

/// Replaces the file atomically; no other user can read it at any moment.
fn save(file: &Path, stored: &KeyFile) -> io::Result<()> {
    let draft = file.with_extension("draft");
    let _ = fs::remove_file(&draft);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    out.write_all(&serde_json::to_vec_pretty(stored)?)?;
    out.sync_all()?;
    fs::rename(&draft, file)?;
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_passed_key_is_used_until_the_agent_has_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Keys::open(folder.path(), None).expect_err("no key").to_string();
        assert!(error.contains("agent-key new NAME"), "{error}");
        let passed = Keys::open(folder.path(), Some("bba_given")).expect("a key");
        assert_eq!(passed.current().await, "bba_given");
        assert!(!folder.path().join("key").exists(), "a passed key is not stored");

        let own = KeyFile { key: create(), given_sha256: hashed("bbo_once"), next: None };
        save(&folder.path().join("key"), &own).expect("saved");
        for again in [None, Some("bbo_once")] {
            assert_eq!(Keys::open(folder.path(), again).expect("a key").current().await, own.key);
        }
        assert_eq!(Keys::open(folder.path(), Some("bbo_other")).expect("a key").current().await, "bbo_other");
    }

    #[test]
    fn the_key_file_is_private_and_a_damaged_one_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let stored = KeyFile { key: create(), given_sha256: hashed("x"), next: Some(create()) };
        save(&file, &stored).expect("saved");
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(load(&file).expect("read").expect("a key file").next, stored.next);
        fs::write(&file, "{").expect("damaged");
        let error = Keys::open(folder.path(), None).expect_err("damaged").to_string();
        assert!(error.contains("is damaged; remove it"), "{error}");
    }

    #[test]
    fn keys_are_unique() {
        let (one, other) = (create(), create());
        assert!(one != other && one.starts_with(AGENT) && one.len() == AGENT.len() + 64, "{one}");
    }
}
