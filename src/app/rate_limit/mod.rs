//! Rate limits: authentication attempts ([`tries`]), open event [`streams`] and memory of [`uploads`]. A restart resets
//! them, because their state is in memory.

pub mod known;
pub mod streams;
pub mod tries;
pub mod uploads;

use self::{streams::Streams, tries::LoginAttempts, uploads::Uploads};
use crate::app::config::Config;

/// The limits of one server.
#[derive(Debug)]
pub struct Limits {
    /// Authentication attempts.
    pub tries: LoginAttempts,
    /// Open event streams per caller.
    pub streams: Streams,
    /// Uploads in memory.
    pub uploads: Uploads,
}

impl Limits {
    /// Creates the limits from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            tries: LoginAttempts::new(&config.rates),
            streams: Streams::default(),
            uploads: Uploads::for_bodies_up_to(config.largest_body()),
        }
    }
}
