//! A server that already runs: it is found, checked and measured, but neither started nor stopped.

pub(super) mod exposition;
mod hosts;
mod metrics;

use std::collections::BTreeSet;
use std::sync::Arc;

use hosts::Hosts;
pub use metrics::Scraper;
use reqwest::Url;

use brewbench_wire::manifest::Remote;

use super::answer::ReferenceResponse;
use super::manifest::Manifest;
use super::ready::{self, Endpoint};
use super::serving::Serving;
use crate::host::environment::Facts;
use crate::run::address_policy::LoadLimits;

/// A server that already runs.
#[derive(Debug)]
pub struct UrlTarget {
    remote: Remote,
    /// Reads its metrics once it serves.
    metrics: Option<Arc<Scraper>>,
}

impl UrlTarget {
    /// Prepares to use it.
    pub fn new(remote: Remote) -> Self {
        Self { remote, metrics: None }
    }

    /// Returns the reader of its metrics, if the manifest has one and the target serves.
    pub fn metrics(&self) -> Option<Arc<Scraper>> {
        self.metrics.clone()
    }

    /// Waits until it answers, and checks what it answers. The error is a sentence.
    pub async fn start(&mut self, manifest: &Manifest) -> Result<Serving, String> {
        let Remote { base, redirects, metrics } = &self.remote;
        let url = Url::parse(base).map_err(|error| format!("url.base: {error}"))?;
        let hosts = Hosts::resolve(&url, redirects).await.map_err(|fault| format!("url: {fault}"))?;
        let endpoint = Endpoint::remote(base, hosts.client()?);
        ready::answer(&endpoint, &manifest.ready).await?;
        let round_trip = hosts.round_trip().await?;
        if let Some(metrics) = metrics {
            self.metrics = Some(Arc::new(Scraper::open(metrics).await.map_err(|fault| format!("metrics: {fault}"))?));
        }
        let known = ReferenceResponse::learn(endpoint, manifest).await?;
        let reach = Some(LoadLimits { allowed: hosts.addresses(), redirects: redirects.clone() });
        let facts = self.facts(&hosts);
        Ok(Serving { round_trip: Some(round_trip), reach, facts, ..Serving::of(known) })
    }

    fn facts(&self, hosts: &Hosts) -> Facts {
        let addresses: BTreeSet<String> = hosts.addresses().iter().map(ToString::to_string).collect();
        let addresses = addresses.into_iter().collect::<Vec<_>>().join(" ");
        let metrics = self.metrics.as_ref().map(|metrics| ("target.metrics", metrics.describe()));
        let facts = [("target.addresses", addresses)].into_iter().chain(metrics);
        facts.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
