//! What a server is told at its start.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use url::Url;

use crate::app::{listener::Patience, networks::Networks, tls::CertificateFiles};

/// How a server listens, stores and decides; made by the commands, read by everybody.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder of the database.
    pub data: PathBuf,
    /// The key that stored secrets are encrypted with; a file in the data folder unless said.
    pub secrets_key: Option<PathBuf>,
    /// How browsers reach it: relying party of passkeys, origin of forms.
    pub public_url: Option<Url>,
    /// The largest summary that is taken, in bytes.
    pub max_summary_bytes: usize,
    /// An agent's silence after which it counts as gone.
    pub silence: Duration,
    /// An agent's silence after which its run is given up.
    pub lease: Duration,
    /// Where proxies stand that add each caller's address to `X-Forwarded-For`; what others say there is not believed.
    pub proxies: Networks,
    /// Where webhooks may go besides the public internet, also without TLS.
    pub webhooks_to: Networks,
    /// The certificate of a server that speaks TLS itself.
    pub tls: Option<CertificateFiles>,
    /// How often an address may try.
    pub rates: Rates,
    /// How long a connection may keep others from its place.
    pub patience: Patience,
    /// How many connections there may be; as many as there are file descriptors for unless said.
    pub connections: Option<usize>,
}

/// How often an address may try; all addresses together from which nobody is known to log in ten times as often.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Steps of logins and registrations: a login takes two.
    pub sign_in: Rate,
    /// Tokens and agents' keys that open nothing.
    pub wrong_secrets: Rate,
}

/// So many at once, and then so many a minute.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// At once.
    pub burst: NonZeroU32,
    /// A minute, for ever.
    pub per_minute: NonZeroU32,
}

impl Rate {
    /// So many at once, and then so many a minute.
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
    /// The largest body that is taken: a result carries a summary as a JSON string, and logs beside it.
    pub fn largest_body(&self) -> usize {
        2 * self.max_summary_bytes + 1024 * 1024
    }

    /// Listens on loopback and stores in a folder; everything else by default.
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
            rates: Rates::default(),
            patience: Patience::default(),
            connections: None,
        }
    }
}
