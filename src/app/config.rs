//! Configuration of a server.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use url::Url;

use crate::app::{listener::Timeouts, networks::Networks, tls::CertificateFiles};

/// The configuration of a server, built from command-line flags.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on; port 0 picks a free port.
    pub listen: SocketAddr,
    /// The folder of the database.
    pub data: PathBuf,
    /// The key file for stored secrets; by default a file in the data folder.
    pub secrets_key: Option<PathBuf>,
    /// The URL that browsers use: relying party of passkeys, origin of forms.
    pub public_url: Option<Url>,
    /// The maximum size of a summary, bytes.
    pub max_summary_bytes: usize,
    /// Without messages for this long, an agent counts as disconnected.
    pub silence: Duration,
    /// Without messages for this long, an agent's run is lost.
    pub lease: Duration,
    /// Networks of trusted proxies. `X-Forwarded-For` is ignored from all other peers.
    pub proxies: Networks,
    /// Networks besides the public internet that webhooks may use, also without TLS.
    pub webhooks_to: Networks,
    /// Certificate files, if the server terminates TLS itself.
    pub tls: Option<CertificateFiles>,
    /// Whether assistants may use the tools at `/mcp`.
    pub mcp: bool,
    /// Rate limits of authentication attempts.
    pub rates: Rates,
    /// Timeouts of connections.
    pub timeouts: Timeouts,
    /// The maximum number of connections; by default derived from the limit of file descriptors.
    pub connections: Option<usize>,
}

/// Rate limits per address. All unknown addresses together get ten times as much.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Steps of logins and registrations; a login has two.
    pub sign_in: Rate,
    /// Invalid tokens and agent keys.
    pub wrong_secrets: Rate,
}

/// A rate limit.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Attempts allowed at once.
    pub burst: NonZeroU32,
    /// Attempts allowed per minute after that.
    pub per_minute: NonZeroU32,
}

impl Rate {
    /// Creates a rate limit.
    ///
    /// # Panics
    /// If one of them is zero.
    pub const fn new(burst: u32, per_minute: u32) -> Self {
        Self {
            burst: NonZeroU32::new(burst).expect("not zero"),
            per_minute: NonZeroU32::new(per_minute).expect("not zero"),
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self { sign_in: Rate::new(40, 20), wrong_secrets: Rate::new(40, 20) }
    }
}

impl Config {
    /// Returns the maximum size of a body: a result holds a summary as a JSON string, and logs.
    pub fn largest_body(&self) -> usize {
        2 * self.max_summary_bytes + 1024 * 1024
    }

    /// Creates a configuration with defaults for everything but the address and the data folder.
    pub fn new(listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            data: data.into(),
            secrets_key: None,
            public_url: None,
            max_summary_bytes: 16 * 1024 * 1024,
            silence: Duration::from_secs(5),
            lease: Duration::from_secs(15),
            proxies: Networks::default(),
            webhooks_to: Networks::default(),
            tls: None,
            mcp: false,
            rates: Rates::default(),
            timeouts: Timeouts::default(),
            connections: None,
        }
    }
}
