//! Random secrets and their hashes.

use brewbench_wire::key;
use rand::{TryRngCore, rngs::OsRng};
use sha2::{Digest, Sha256};

/// The purpose of a secret. Each has a prefix, so that leaked secrets can be recognised.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An API token.
    Token,
    /// An agent's key.
    AgentKey,
    /// The one-time key that a new agent exchanges for its own key.
    OneTimeKey,
    /// An invitation.
    Invite,
    /// A session's cookie.
    Session,
    /// A link to a comparison.
    Share,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Token => "bbt_",
            Self::AgentKey => key::AGENT,
            Self::OneTimeKey => key::ONE_TIME,
            Self::Invite => "bbi_",
            Self::Session => "bbs_",
            Self::Share => "bbc_",
        }
    }
}

/// Generates a secret of 256 random bits.
///
/// # Panics
/// If the operating system returns no random bytes.
pub fn generate(kind: Kind) -> String {
    let mut bytes = [0_u8; 32];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system returns random bytes");
    format!("{}{}", kind.prefix(), brewbench_wire::hex(&bytes))
}

/// Returns the stored hash of a secret. One round of SHA-256 suffices, because 256 random bits cannot be guessed.
pub fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
