//! Profiles from an endpoint of the target, as Go's `net/http/pprof` has.

use std::time::Duration;

use brewbench_io::client::innermost;
use brewbench_wire::manifest::SECONDS;
use brewbench_wire::now_ms;
use brewbench_wire::profile::pprof::{Facts, decode_with_facts};
use brewbench_wire::profile::{ProfileKind, ProfileSource};
use reqwest::{Client, Url};
use tokio::time::{Instant, timeout_at};

use super::quality::RawProfile;

/// Maximum bytes of a response.
const MAX_BYTES: usize = 64 << 20;

/// Time for a response beyond the seconds it observes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of the body of an error is shown.
const SHOWN: usize = 100;

/// An endpoint, once the target serves.
#[derive(Clone, Debug)]
pub struct Endpoint {
    client: Client,
    /// With a placeholder for the seconds.
    cpu: String,
    /// Whole seconds to observe.
    seconds: u64,
}

impl Endpoint {
    /// Resolves the manifest's path or URL; that must be on the target's machine. The error is a sentence.
    pub fn new(client: Client, base_url: &str, place: &str, seconds: u64) -> Result<Self, String> {
        let base = Url::parse(base_url).map_err(|error| format!("{base_url}: {error}"))?;
        let cpu = if place.starts_with('/') {
            format!("{base_url}{place}")
        } else {
            place.replace("{host}", base.host_str().unwrap_or_default())
        };
        let url = Url::parse(&cpu).map_err(|error| format!("profile.pprof: {cpu:?}: {error}"))?;
        if !is_same_host(&url, &base) {
            let (asked, host) = (url.host_str().unwrap_or_default(), base.host_str().unwrap_or_default());
            return Err(format!("profile.pprof: {asked} is not the target's host: write {{host}}, or {host}"));
        }
        Ok(Self { client, cpu, seconds })
    }

    /// Fetches a profile of a kind; for the CPU this takes the seconds of the observation. The error is a sentence.
    pub async fn take(&self, kind: ProfileKind) -> Result<RawProfile, String> {
        let url = self.url(kind);
        let seconds = if kind == ProfileKind::Cpu { self.seconds } else { 0 };
        let began_ms = now_ms();
        let fetched = fetch(&self.client, &url, Duration::from_secs(seconds) + PATIENCE).await;
        let (bytes, server) = fetched.map_err(|fault| format!("GET {url} {fault}"))?;
        let decoded = tokio::task::spawn_blocking(move || decode_with_facts(&bytes, kind)).await;
        let decoded = decoded.map_err(|error| format!("failed to read the profile: {error}"))?;
        let (stacks, facts) = decoded.map_err(|error| format!("GET {url} returned no {kind} profile: {error}"))?;
        let began_ms = facts.began_ms.or(Some(began_ms));
        let profiler = if server.is_empty() { "pprof".to_owned() } else { format!("pprof of {server}") };
        let (source, facts) = (ProfileSource::Pprof, Facts { began_ms, ..facts });
        Ok(RawProfile { kind, source, profiler, stacks, facts, lost: None, call_graph: None, notes: Vec::new() })
    }

    /// Returns the URL of a kind: that of the CPU, or one beside it.
    fn url(&self, kind: ProfileKind) -> String {
        let cpu = self.cpu.replace(SECONDS, &self.seconds.to_string());
        if kind == ProfileKind::Cpu {
            return cpu;
        }
        let path = cpu.split(['?', '#']).next().unwrap_or_default();
        let folder = path.rfind('/').map_or(path, |slash| &path[..=slash]);
        format!("{folder}{kind}")
    }
}

/// Whether two URLs are on one machine: their hosts are equal, or both are loopback.
fn is_same_host(one: &Url, other: &Url) -> bool {
    let is_loopback = |url: &Url| {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let is_given = one.host_str().is_some_and(|host| !host.is_empty());
    is_given && (one.host_str() == other.host_str() || is_loopback(one) && is_loopback(other))
}

/// Returns the body and the `server` header; the error is the end of a sentence.
async fn fetch(client: &Client, url: &str, limit: Duration) -> Result<(Vec<u8>, String), String> {
    let deadline = Instant::now() + limit;
    let fetching = async {
        let response = client.get(url).send().await;
        let mut response = response.map_err(|error| format!("failed: {}", innermost(&error)))?;
        let server = response.headers().get("server").and_then(|server| server.to_str().ok()).unwrap_or_default();
        let server: String = brewbench_wire::sanitize::plain(server).chars().take(60).collect();
        let status = response.status();
        let most = if status.is_success() { MAX_BYTES } else { SHOWN };
        let mut body = Vec::new();
        while body.len() <= most {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(format!("was cut off: {}", innermost(&error))),
            }
        }
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
            return Err(format!("has status {}: {:?}", status.as_u16(), brewbench_wire::sanitize::plain(&text)));
        }
        if body.len() > MAX_BYTES {
            return Err(format!("returned more than {} MiB", MAX_BYTES >> 20));
        }
        Ok((body, server))
    };
    let late = |_| Err(format!("did not respond within {} s", limit.as_secs()));
    timeout_at(deadline, fetching).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::direct_client;

    fn endpoint(base: &str, place: &str) -> Result<Endpoint, String> {
        Endpoint::new(direct_client().expect("a client"), base, place, 5)
    }

    #[test]
    fn other_kinds_are_beside_the_profile_of_the_cpu() {
        let urls = |base: &str, place: &str| {
            let endpoint = endpoint(base, place).expect("an endpoint");
            ProfileKind::ALL.map(|kind| endpoint.url(kind))
        };
        let expected =
            ["profile?seconds=5", "heap", "allocs"].map(|path| format!("http://127.0.0.1:80/debug/pprof/{path}"));
        assert_eq!(urls("http://127.0.0.1:80", "/debug/pprof/profile?seconds={s}"), expected);
        let [cpu, heap, _] = urls("http://[::1]:80/api", "http://{host}:6060/p?s={s}&x=/y");
        assert_eq!((cpu.as_str(), heap.as_str()), ("http://[::1]:6060/p?s=5&x=/y", "http://[::1]:6060/heap"));
        let [cpu, ..] = urls("https://staging.example/api", "/p?s={s}");
        assert_eq!(cpu, "https://staging.example/api/p?s=5");
    }

    #[test]
    fn another_machine_is_refused() {
        for place in
            ["http://10.0.0.1/{s}", "http://127.0.0.1.evil/{s}", "http://127.0.0.1@evil/{s}", "http://metadata/{s}"]
        {
            let fault = endpoint("http://127.0.0.1:80", place).expect_err(place);
            assert!(fault.contains("is not the target's host"), "{fault}");
        }
        for place in ["http://127.0.0.1:6060/{s}", "http://localhost:6060/{s}", "http://[::1]:6060/{s}"] {
            assert!(endpoint("http://127.0.0.1:80", place).is_ok(), "{place}");
        }
        assert!(endpoint("http://10.0.0.1:80", "http://127.0.0.1:6060/{s}").is_err());
        assert!(endpoint("http://127.0.0.1:80", "/@evil/{s}").is_ok(), "a path");
    }
}
