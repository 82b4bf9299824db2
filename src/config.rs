//! What a server is told at its start.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use url::Url;

/// How a server listens, stores and decides; made by the commands, read by everybody.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder of the database.
    pub data: PathBuf,
    /// How browsers reach it: relying party of passkeys, origin of forms.
    pub public_url: Option<Url>,
    /// The largest summary that is taken, in bytes.
    pub max_summary_bytes: usize,
    /// An agent's silence after which its run is given up.
    pub lease: Duration,
}

impl Config {
    /// Listens on loopback and stores in a folder; everything else by default.
    pub fn new(listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            data: data.into(),
            public_url: None,
            max_summary_bytes: 16 * 1024 * 1024,
            lease: Duration::from_secs(15),
        }
    }
}
