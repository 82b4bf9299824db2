//! Encrypts secrets that the server must read again, so that a copy of the database does not reveal them.
//!
//! AES-256-GCM with a random nonce per secret. The key is in a separate file, which backups never contain.

use std::{
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use rand::{TryRngCore, rngs::OsRng};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::app::data_folder;

/// Default name of the key file in the data folder.
pub const FILE: &str = "secrets.key";

/// Prefix of encrypted values; it names the algorithm version.
const PREFIX: &str = "enc1:";

const KEY_BYTES: usize = 32;

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or created.
    #[error("the key for stored secrets {0} can't be read: {1}; create one with `head -c 32 /dev/urandom | base64`")]
    File(PathBuf, io::Error),
    /// The file does not contain a key.
    #[error("the key for stored secrets {0} is not 32 bytes in base64; restore the original file")]
    Content(PathBuf),
}

/// A value was encrypted with another key or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret can't be decrypted with this server's key; restore the key it was added with, or remove and add it again"
)]
pub struct Undecryptable;

/// The key for stored secrets.
pub struct SecretsKey(LessSafeKey);

impl fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsKey")
    }
}

impl SecretsKey {
    /// Reads the key from `named`, or from the data folder, where it is created if it is missing.
    pub fn load(named: Option<&Path>, data: &Path) -> Result<Self, KeyError> {
        let file = named.map_or_else(|| data.join(FILE), Path::to_owned);
        let fault = |fault| KeyError::File(file.clone(), fault);
        if named.is_none() && !file.exists() {
            let key: [u8; KEY_BYTES] = random();
            data_folder::write(data, FILE, &BASE64_STANDARD.encode(key)).map_err(fault)?;
        }
        if fs::metadata(&file).map_err(fault)?.permissions().mode() & 0o077 != 0 {
            tracing::warn!(file = %file.display(), "other users of this machine can read the key for stored secrets; set its mode to 600");
        }
        let text = fs::read_to_string(&file).map_err(fault)?;
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| KeyError::Content(file.clone()))?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| KeyError::Content(file))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Encrypts a secret. The result differs each time.
    ///
    /// # Panics
    /// If the operating system returns no random bytes.
    pub fn encrypt(&self, secret: &str) -> String {
        let nonce: [u8; NONCE_LEN] = random();
        let mut sealed = secret.as_bytes().to_vec();
        let result = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed);
        result.expect("a secret is far below the 64 GiB that one nonce allows");
        format!("{PREFIX}{}", BASE64_STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts a result of [`encrypt`](Self::encrypt).
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

/// Returns whether a value is encrypted; earlier versions stored plain text.
pub fn is_encrypted(stored: &str) -> bool {
    stored.starts_with(PREFIX)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system returns random bytes");
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
    fn a_named_key_is_never_created_and_an_invalid_one_is_refused() {
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
