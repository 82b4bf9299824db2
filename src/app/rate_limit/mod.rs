//! What one caller may take so that something is left for the others: [`tries`] to get in, [`streams`] of what happens,
//! [`uploads`] in memory. All of it is kept in memory: a restart forgives.

pub mod known;
pub mod streams;
pub mod tries;
pub mod uploads;

use self::{streams::Streams, tries::Tries, uploads::Uploads};
use crate::app::config::Config;

/// The limits of one server.
#[derive(Debug)]
pub struct Limits {
    /// How often somebody may try to get in.
    pub tries: Tries,
    /// How many pages and commands may follow what happens.
    pub streams: Streams,
    /// How much of what is being uploaded may be in memory.
    pub uploads: Uploads,
}

impl Limits {
    /// As a server was told.
    pub fn new(config: &Config) -> Self {
        Self {
            tries: Tries::new(&config.rates),
            streams: Streams::default(),
            uploads: Uploads::for_bodies_up_to(config.largest_body()),
        }
    }
}
