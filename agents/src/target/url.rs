//! A server that already runs: it is found, checked and measured, but neither started nor stopped.

mod metrics;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

pub use metrics::Scraper;

use super::answer::Known;
use super::manifest::{Manifest, Remote};
use super::ready::{self, Endpoint};
use super::running::Serving;
use crate::connection::client::{prepare_tls, system_trust};
use crate::host::environment::Facts;
use crate::run::address_policy::{LoadLimits, check_address};

/// How many connections are opened to measure the round-trip time: its median ignores a few late ones.
const CONNECTIONS: usize = 11;
/// Time to open one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Redirects that are followed, if they are allowed: as many as k6 follows.
const MAX_REDIRECTS: usize = 10;

/// A server that already runs.
#[derive(Debug)]
pub struct Reached {
    remote: Remote,
    /// Reads its metrics once it serves.
    metrics: Option<Arc<Scraper>>,
}

impl Reached {
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
        let addresses = addresses(&url).await.map_err(|fault| format!("url.base: {fault}"))?;
        let follow = if *redirects { Policy::limited(MAX_REDIRECTS) } else { Policy::none() };
        let endpoint = Endpoint::remote(base, client(&url, &addresses, follow)?);
        ready::answer(&endpoint, &manifest.ready).await?;
        let round_trip = round_trip(&addresses).await?;
        if let Some(metrics) = metrics {
            self.metrics = Some(Arc::new(Scraper::open(metrics).await.map_err(|fault| format!("metrics: {fault}"))?));
        }
        let known = Known::learn(endpoint, manifest).await?;
        let allowed: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
        let facts = self.facts(&allowed);
        let reach = Some(LoadLimits { allowed, redirects: *redirects });
        Ok(Serving { round_trip: Some(round_trip), reach, facts, ..Serving::of(known) })
    }

    fn facts(&self, addresses: &[IpAddr]) -> Facts {
        let addresses = BTreeSet::from_iter(addresses).into_iter().map(ToString::to_string).collect::<Vec<_>>();
        let metrics = self.metrics.as_ref().map(|metrics| ("target.metrics", metrics.describe()));
        let facts = [("target.addresses", addresses.join(" "))].into_iter().chain(metrics);
        facts.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Resolves a host, which must not be a metadata service of a cloud. The error is a sentence.
async fn addresses(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or_default();
    let found: Vec<SocketAddr> = match lookup_host((host, port)).await {
        Ok(found) => found.collect(),
        Err(error) => return Err(format!("can't resolve {host}: {error}")),
    };
    if found.is_empty() {
        return Err(format!("{host} has no address"));
    }
    found.iter().try_for_each(|at| check_address(at.ip()))?;
    Ok(found)
}

/// Creates a client that connects to these addresses only, unless it follows a redirect to another host.
fn client(url: &Url, addresses: &[SocketAddr], follow: Policy) -> Result<Client, String> {
    prepare_tls();
    let builder = Client::builder().no_proxy().redirect(follow).pool_max_idle_per_host(0);
    let builder = match url.domain() {
        Some(domain) => builder.resolve_to_addrs(domain, addresses),
        None => builder,
    };
    let builder = match url.scheme() {
        "https" => builder.tls_backend_preconfigured(system_trust(url).map_err(|fault| fault.to_string())?),
        // Otherwise a machine without CA certificates could not use plain HTTP either.
        _ => builder.tls_certs_only([]),
    };
    builder.build().map_err(|error| format!("no HTTP client: {error}"))
}

/// Returns the median time to open a connection. The error is a sentence.
async fn round_trip(addresses: &[SocketAddr]) -> Result<Duration, String> {
    let mut times = Vec::with_capacity(CONNECTIONS);
    for at in addresses.iter().cycle().take(CONNECTIONS) {
        let begun = Instant::now();
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(at)).await {
            Ok(Ok(_)) => times.push(begun.elapsed()),
            // A host may have addresses of a protocol that this machine does not have.
            Ok(Err(_)) | Err(_) if addresses.len() > 1 => {}
            Ok(Err(error)) => return Err(format!("can't connect to {at}: {error}")),
            Err(_) => return Err(format!("can't connect to {at} within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().ok_or_else(|| format!("can't connect to any of {addresses:?}"))
}
