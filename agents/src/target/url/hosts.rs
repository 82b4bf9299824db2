//! The hosts that a server which already runs may be reached at: resolved once, and no others.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use brewbench_io::client::{prepare_tls, system_trust};

use crate::run::address_policy::check_address;

/// How many connections are opened to measure the round-trip time: its median ignores a few late ones.
const CONNECTIONS: usize = 11;
/// Time to open one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Redirects that are followed, if they are allowed: as many as k6 follows.
const MAX_REDIRECTS: usize = 10;

/// A host and those to which it may redirect, with their addresses.
#[derive(Debug)]
pub struct Hosts {
    url: Url,
    /// By name or address.
    known: BTreeMap<String, Vec<SocketAddr>>,
}

impl Hosts {
    /// Resolves the host of a URL and those to which it may redirect. None may be a metadata service of a cloud. The
    /// error is a sentence.
    pub async fn resolve(url: &Url, redirects: &[String]) -> Result<Self, String> {
        let port = url.port_or_known_default().unwrap_or_default();
        let mut known = BTreeMap::new();
        let hosts = redirects.iter().map(|host| without_brackets(host));
        for host in [plain(url)].into_iter().chain(hosts) {
            known.insert(host.to_owned(), resolve(host, port).await?);
        }
        Ok(Self { url: url.clone(), known })
    }

    /// Returns all addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.known.values().flatten().map(SocketAddr::ip).collect()
    }

    /// Creates a client that reaches these hosts only, at these addresses only.
    pub fn client(&self) -> Result<Client, String> {
        prepare_tls();
        let mut builder = Client::builder().no_proxy().pool_max_idle_per_host(0).redirect(self.redirects());
        for (host, addresses) in self.known.iter().filter(|(host, _)| host.parse::<IpAddr>().is_err()) {
            // The port of a redirect is its own.
            let addresses: Vec<_> = addresses.iter().map(|at| SocketAddr::new(at.ip(), 0)).collect();
            builder = builder.resolve_to_addrs(host, &addresses);
        }
        let may_be_https = self.url.scheme() == "https" || self.known.len() > 1;
        let builder = if may_be_https {
            builder.tls_backend_preconfigured(system_trust(&self.url).map_err(|fault| fault.to_string())?)
        } else {
            // Otherwise a machine without CA certificates could not use plain HTTP either.
            builder.tls_certs_only([])
        };
        builder.build().map_err(|error| format!("no HTTP client: {error}"))
    }

    /// Redirects to any other host are not followed, so that their status is seen.
    fn redirects(&self) -> Policy {
        if self.known.len() < 2 {
            return Policy::none();
        }
        let hosts: Vec<String> = self.known.keys().cloned().collect();
        Policy::custom(move |attempt: Attempt<'_>| {
            let is_known = hosts.iter().any(|host| host == plain(attempt.url()));
            if is_known && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
        })
    }

    /// Returns the median time to open a connection to the first address that accepts one. The error is a sentence.
    pub async fn round_trip(&self) -> Result<Duration, String> {
        let mut fault = None;
        for at in &self.known[plain(&self.url)] {
            match round_trip(at).await {
                Ok(time) => return Ok(time),
                // A host may have addresses of a protocol that this machine does not have.
                Err(refused) => fault = Some(refused),
            }
        }
        Err(fault.unwrap_or_else(|| format!("{} has no address", plain(&self.url))))
    }
}

/// Returns the host of a URL without the brackets of an IPv6 address.
fn plain(url: &Url) -> &str {
    without_brackets(url.host_str().unwrap_or_default())
}

fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = lookup_host((host, port)).await.map_err(|error| format!("can't resolve {host}: {error}"))?;
    let found: Vec<SocketAddr> = found.collect();
    found.iter().try_for_each(|at| check_address(at.ip()))?;
    if found.is_empty() { Err(format!("{host} has no address")) } else { Ok(found) }
}

async fn round_trip(at: &SocketAddr) -> Result<Duration, String> {
    let mut times = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let begun = Instant::now();
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(at)).await {
            Ok(Ok(_)) => times.push(begun.elapsed()),
            Ok(Err(error)) => return Err(format!("can't connect to {at}: {error}")),
            Err(_) => return Err(format!("can't connect to {at} within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }
    times.sort_unstable();
    Ok(times[CONNECTIONS / 2])
}
