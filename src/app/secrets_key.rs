//! Encrypts the secrets in the database that must be readable again, so that a copy of the database gives none away.
//!
//! AES-256-GCM with a random nonce each. The key is a file of its own: a backup never contains it.

use std::{
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use rand::{TryRngCore, rngs::OsRng};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::app::data_folder;

/// The key's name in the data folder, if no other file is named.
pub const FILE: &str = "secrets.key";

/// Marks what is encrypted, and how.
const PREFIX: &str = "enc1:";

const KEY_BYTES: usize = 32;

/// The key can't be used; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file can't be read or created.
    #[error("the key for stored secrets {0} can't be read: {1}; `head -c 32 /dev/urandom | base64` makes one")]
    File(PathBuf, io::Error),
    /// It holds something else.
    #[error("the key for stored secrets {0} is not 32 bytes in base64; put the right file back")]
    Content(PathBuf),
}

/// Something was encrypted with another key, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its secret can't be decrypted with this server's key; put the key back that it was added with, or remove it and add it again"
)]
pub struct Undecryptable;

/// Encrypts and decrypts.
pub struct SecretsKey(LessSafeKey);

impl fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsKey")
    }
}

impl SecretsKey {
    /// Reads the key that is named, or else the data folder's, which is created if there is none yet.
    pub fn load(named: Option<&Path>, data: &Path) -> Result<Self, KeyError> {
        let file = named.map_or_else(|| data.join(FILE), Path::to_owned);
        let fault = |fault| KeyError::File(file.clone(), fault);
        if named.is_none() && !file.exists() {
            let key: [u8; KEY_BYTES] = random();
            data_folder::write(data, FILE, &BASE64_STANDARD.encode(key)).map_err(fault)?;
        }
        if fs::metadata(&file).map_err(fault)?.permissions().mode() & 0o077 != 0 {
            tracing::warn!(file = %file.display(), "others can read the key for stored secrets");
        }
        let text = fs::read_to_string(&file).map_err(fault)?;
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| KeyError::Content(file.clone()))?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| KeyError::Content(file))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Encrypts a secret; each time the result is another.
    ///
    /// # Panics
    /// If the operating system gives no random bytes: nothing safe can be done without.
    pub fn encrypt(&self, secret: &str) -> String {
        let nonce: [u8; NONCE_LEN] = random();
        let mut sealed = secret.as_bytes().to_vec();
        let done = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed);
        done.expect("a secret is far below the 64 GiB that one nonce allows");
        format!("{PREFIX}{}", BASE64_STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts what [`encrypt`](Self::encrypt) returned.
    pub fn decrypt(&self, stored: &str) -> Result<String, Undecryptable> {
        let opened = || {
            let bytes = BASE64_STANDARD.decode(stored.strip_prefix(PREFIX)?).ok()?;
            let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let secret = self.0.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
            String::from_utf8(secret.to_vec()).ok()
        };
        opened().ok_or(Undecryptable)
    }
}

/// Whether this is encrypted; earlier versions stored secrets as they are.
pub fn is_encrypted(stored: &str) -> bool {
    stored.starts_with(PREFIX)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_decrypts() {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let stored = SecretsKey::load(None, one.path()).expect("created").encrypt("whsec_1");
        let again = SecretsKey::load(None, one.path()).expect("read again");
        assert_eq!(again.decrypt(&stored).as_deref(), Ok("whsec_1"));
        assert_ne!(again.encrypt("whsec_1"), stored);
        let wrong = SecretsKey::load(None, other.path()).expect("created");
        assert_eq!(wrong.decrypt(&stored), Err(Undecryptable));
        for damaged in ["", "whsec_1", "enc1:", "enc1:AAAA", &stored[..stored.len() - 4]] {
            assert_eq!(again.decrypt(damaged), Err(Undecryptable), "{damaged}");
        }
    }

    #[test]
    fn a_key_that_is_named_is_never_created_and_a_wrong_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("other.key");
        let missing = SecretsKey::load(Some(&file), folder.path()).expect_err("missing").to_string();
        assert!(missing.contains("other.key can't be read: No such file"), "{missing}");
        for wrong in ["", "?", "c2hvcnQ="] {
            fs::write(&file, wrong).expect("written");
            let refused = SecretsKey::load(Some(&file), folder.path()).expect_err("refused").to_string();
            assert!(refused.contains("other.key is not 32 bytes in base64"), "{refused}");
        }
        assert!(!folder.path().join(FILE).exists());
    }
}
