//! Random secrets and their hashes.

use brewbench_agent::connection::key::ONE_TIME;
use rand::{TryRngCore, rngs::OsRng};
use sha2::{Digest, Sha256};

/// What a secret is for, written in front of it so that a leaked one can be recognised.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An API token.
    Token,
    /// An agent's key.
    AgentKey,
    /// What a new agent exchanges for a key of its own.
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
            Self::AgentKey => "bba_",
            Self::OneTimeKey => ONE_TIME,
            Self::Invite => "bbi_",
            Self::Session => "bbs_",
            Self::Share => "bbc_",
        }
    }
}

/// A new secret of 256 random bits.
///
/// # Panics
/// If the operating system has no randomness to give: nothing safe can be done without.
pub fn make(kind: Kind) -> String {
    let mut bytes = [0_u8; 32];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system gives random bytes");
    format!("{}{}", kind.prefix(), brewbench_agent::wire::job::hex(&bytes))
}

/// What is stored of a secret. One round of SHA-256 is enough for 256 random bits: there is nothing to guess.
pub fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
