//! The agent's own key. It is made here, lies in the state folder where nobody else can read it, and is told to the server
//! as a hash alone.
//!
//! A one-time key is exchanged once: the agent makes a key of its own, keeps it, and asks the server to know it by its
//! hash, with the same one again and again until there is an answer. A change goes the same way, proven by the key that
//! is to be replaced; that one works until the server has seen the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::sleep;
use uuid::Uuid;

use crate::connection::client::{Client, Fault};
use crate::wire::job::hex;

/// One-time keys begin with this.
pub const ONE_TIME: &str = "bbo_";
/// Keys of agents begin with this.
const OWN: &str = "bba_";

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A key that an agent made itself, as the server gets to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewKey {
    /// SHA-256 of the key, in hex.
    pub key_sha256: String,
}

/// Who an agent is to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// The name that the server's owner gave it.
    pub name: String,
}

/// What the file holds.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    /// The key that opens the server now.
    key: String,
    /// SHA-256 in hex of the key that the owner gave when it came to this one: given once more, it is no other.
    given_sha256: String,
    /// Made, and not known whether the server has taken it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The file of an agent's key, and what is in it.
pub struct Keys {
    file: PathBuf,
    kept: Mutex<Kept>,
    /// What the file held before its owner gave another key: it stays if the server does not take that one.
    before: Option<Kept>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the keys: this may end up in a log.
        f.debug_struct("Keys").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys of an agent with this state folder, to which its owner may have given one. Nobody is asked yet.
    ///
    /// # Errors
    /// If there is none, or the file can't be read.
    pub fn open(state: &Path, given: Option<&str>) -> anyhow::Result<Self> {
        let file = state.join("key");
        let kept = load(&file)?;
        let mut before = None;
        let kept = match (given, kept) {
            (None, Some(kept)) => kept,
            (None, None) => bail!(
                "there is no key in {} yet: give the one that `brewbench agent-key new NAME` prints with --key",
                state.display()
            ),
            (Some(given), Some(kept)) if kept.given_sha256 == hashed(given) => kept,
            (Some(given), kept) => {
                before = kept;
                Kept { key: given.to_owned(), given_sha256: hashed(given), next: None }
            }
        };
        Ok(Self { file, kept: Mutex::new(kept), before })
    }

    /// The key as it is now; a one-time key until [`Keys::settle`] has exchanged it.
    pub async fn current(&self) -> String {
        self.kept.lock().await.key.clone()
    }

    /// Brings to an end what was begun: exchanges a one-time key, or ends a change that was cut off. Tries until the
    /// server answers; afterwards the client uses the agent's own key.
    ///
    /// # Errors
    /// If the server refuses, or the file can't be written.
    pub async fn settle(&self, client: &Client) -> anyhow::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.step(client).await {
                Ok(()) => return Ok(()),
                Err(Obstacle::Final(fault)) => return Err(fault),
                Err(Obstacle::Passing(cause)) => {
                    if pause == FIRST_PAUSE {
                        tracing::warn!(server = %client.base(), cause, "no answer; trying until there is one");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn step(&self, client: &Client) -> Result<(), Obstacle> {
        let mut kept = self.kept.lock().await;
        let is_one_time = kept.key.starts_with(ONE_TIME);
        if is_one_time && kept.next.is_none() {
            // Before anybody hears of it: if we end now, the same is asked for again.
            kept.next = Some(make());
            save(&self.file, &kept).map_err(|fault| self.not_written(&fault))?;
        }
        if kept.next.is_none() {
            return Ok(());
        }
        self.introduce(client, &mut kept).await
    }

    /// Makes another key and uses it from now on.
    ///
    /// # Errors
    /// If the server refuses or is silent, or the file can't be written; the key stays as it is.
    pub async fn change(&self, client: &Client) -> anyhow::Result<()> {
        let mut kept = self.kept.lock().await;
        if kept.next.is_none() {
            kept.next = Some(make());
            save(&self.file, &kept).map_err(|fault| self.not_written(&fault).into_error())?;
        }
        self.introduce(client, &mut kept).await.map_err(Obstacle::into_error)
    }

    /// Tells the server the hash of the next key, and uses it.
    async fn introduce(&self, client: &Client, kept: &mut Kept) -> Result<(), Obstacle> {
        let Some(next) = kept.next.clone() else { return Ok(()) };
        let (method, path) = if kept.key.starts_with(ONE_TIME) {
            (Method::POST, "api/v1/agent/enrolment")
        } else {
            (Method::PUT, "api/v1/agent/key")
        };
        client.change_secret(&kept.key);
        let request = client.request(method, path).json(&NewKey { key_sha256: hashed(&next) });
        // One that is unknown may have been replaced before: only the file was not written any more.
        let told = client.send(request).await.map(drop);
        let is_unknown = matches!(&told, Err(Fault::Refused { status, .. }) if *status == StatusCode::UNAUTHORIZED);
        if let Err(fault) = told
            && !(is_unknown && is_known(client, &next).await)
        {
            return Err(self.obstacle(client, fault, kept));
        }
        let settled = Kept { key: next.clone(), given_sha256: kept.given_sha256.clone(), next: None };
        save(&self.file, &settled).map_err(|fault| self.not_written(&fault))?;
        *kept = settled;
        client.change_secret(&next);
        // From its first use on the one before opens nothing any more.
        let used = client.send(client.request(Method::GET, "api/v1/agent/self")).await;
        if let Err(fault) = used {
            tracing::warn!(%fault, "the new key was not used yet; the one before works until then");
        }
        tracing::info!(file = %self.file.display(), "the agent has a key of its own");
        Ok(())
    }

    fn obstacle(&self, client: &Client, fault: Fault, kept: &Kept) -> Obstacle {
        match fault {
            Fault::Refused { status, sentence } if is_final(status) => {
                if kept.key.starts_with(ONE_TIME) {
                    self.put_back();
                }
                Obstacle::Final(refusal(client, status, &sentence, kept))
            }
            fault => Obstacle::Passing(fault.to_string()),
        }
    }

    /// The file as it was before a key that turned out to be none.
    fn put_back(&self) {
        let done = self.before.as_ref().map_or_else(|| fs::remove_file(&self.file), |kept| save(&self.file, kept));
        if let Err(fault) = done {
            tracing::warn!(file = %self.file.display(), %fault, "the agent's key is not as it was");
        }
    }

    fn not_written(&self, fault: &io::Error) -> Obstacle {
        Obstacle::Final(anyhow::anyhow!("the agent's key can't be kept in {}: {fault}", self.file.display()))
    }
}

/// Why it could not be done.
enum Obstacle {
    /// Trying again is no use.
    Final(anyhow::Error),
    /// It may go away.
    Passing(String),
}

impl Obstacle {
    fn into_error(self) -> anyhow::Error {
        match self {
            Self::Final(fault) => fault,
            Self::Passing(cause) => anyhow::anyhow!(cause),
        }
    }
}

/// Whether asking the same once more can't help. One that is disabled may be let in again.
fn is_final(status: StatusCode) -> bool {
    let passing = [StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    status.is_client_error() && !passing.contains(&status)
}

fn refusal(client: &Client, status: StatusCode, sentence: &str, kept: &Kept) -> anyhow::Error {
    if status == StatusCode::UNAUTHORIZED && kept.key.starts_with(ONE_TIME) {
        return anyhow::anyhow!(
            "{} does not know this one-time key, or it is too old; `brewbench agent-key new NAME` makes one",
            client.base()
        );
    }
    anyhow::anyhow!("{} does not take the agent's new key: {sentence}", client.base())
}

/// Whether the server knows this key. If so, the client uses it from now on.
async fn is_known(client: &Client, key: &str) -> bool {
    let before = client.secret().unwrap_or_default();
    client.change_secret(key);
    let known = client.get::<Enrolled>("api/v1/agent/self").await.is_ok();
    if !known {
        client.change_secret(&before);
    }
    known
}

/// A new key: what the operating system gives of randomness, 366 bits of it, in 256.
fn make() -> String {
    let mut random = Sha256::new();
    for _ in 0..3 {
        random.update(Uuid::new_v4().as_bytes());
    }
    format!("{OWN}{}", hex(&random.finalize()))
}

fn hashed(key: &str) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

fn load(file: &Path) -> anyhow::Result<Option<Kept>> {
    match fs::read(file) {
        Ok(bytes) => {
            let kept = serde_json::from_slice(&bytes);
            kept.map(Some).with_context(|| format!("{} is damaged; remove it and enrol the agent anew", file.display()))
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault).with_context(|| format!("{} can't be read", file.display())),
    }
}

/// Whole or not at all, and readable by nobody else at any moment.
fn save(file: &Path, kept: &Kept) -> io::Result<()> {
    let draft = file.with_extension("draft");
    let _ = fs::remove_file(&draft);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    out.write_all(&serde_json::to_vec_pretty(kept)?)?;
    out.sync_all()?;
    fs::rename(&draft, file)?;
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_key_that_was_given_is_used_until_there_is_one_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = Keys::open(folder.path(), None).expect_err("no key").to_string();
        assert!(said.contains("agent-key new NAME"), "{said}");
        let given = Keys::open(folder.path(), Some("bba_given")).expect("a key");
        assert_eq!(given.current().await, "bba_given");
        assert!(!folder.path().join("key").exists(), "what the owner keeps is not kept twice");

        let own = Kept { key: make(), given_sha256: hashed("bbo_once"), next: None };
        save(&folder.path().join("key"), &own).expect("kept");
        for again in [None, Some("bbo_once")] {
            assert_eq!(Keys::open(folder.path(), again).expect("a key").current().await, own.key);
        }
        assert_eq!(Keys::open(folder.path(), Some("bbo_other")).expect("a key").current().await, "bbo_other");
    }

    #[test]
    fn the_file_is_for_its_owner_alone_and_one_that_is_damaged_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let kept = Kept { key: make(), given_sha256: hashed("x"), next: Some(make()) };
        save(&file, &kept).expect("kept");
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(load(&file).expect("read").expect("kept").next, kept.next);
        fs::write(&file, "{").expect("damaged");
        let said = Keys::open(folder.path(), None).expect_err("damaged").to_string();
        assert!(said.contains("is damaged; remove it"), "{said}");
    }

    #[test]
    fn no_two_keys_are_alike() {
        let (one, other) = (make(), make());
        assert!(one != other && one.starts_with(OWN) && one.len() == OWN.len() + 64, "{one}");
    }
}
