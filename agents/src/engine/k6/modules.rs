//! Keeps k6 from loading modules over the network.
//!
//! k6 retrieves `require('https://…')`, `import` of a URL and source maps with an HTTP client of its own, which ignores
//! `--blacklist-ip`: what it retrieves is not in the stored revision of the scenario, and where it asks is up to the
//! script. No option disables that. But this client uses the proxy of the environment, which nothing listens at, for
//! all hosts except the target's. k6 adds this machine to the exceptions.

use crate::run::address_policy::LoadLimits;

/// Port 0, where nothing can listen.
const NO_PROXY_THERE: &str = "http://127.0.0.1:0";

/// Variables that set a proxy, which a script's parameters must not do.
pub(super) const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// Returns the environment of a k6 that loads no remote modules, but may use HTTPS to load the target and the hosts to
/// which its manifest redirects.
pub(super) fn environment(base_url: &str, own: Option<&LoadLimits>) -> [(String, String); 2] {
    let url = reqwest::Url::parse(base_url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).map(str::to_owned);
    let redirects = own.iter().flat_map(|own| own.redirects.clone());
    let direct: Vec<String> = host.into_iter().chain(redirects).collect();
    [("HTTPS_PROXY".to_owned(), NO_PROXY_THERE.to_owned()), ("NO_PROXY".to_owned(), direct.join(","))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_targets_hosts_are_reached_by_https() {
        let direct = |base_url: &str, redirects: &[&str]| {
            let redirects = redirects.iter().map(|&host| host.to_owned()).collect();
            let limits = LoadLimits { allowed: Vec::new(), redirects };
            let [(_, proxy), (name, hosts)] = environment(base_url, Some(&limits));
            assert_eq!((proxy.as_str(), name.as_str()), ("http://127.0.0.1:0", "NO_PROXY"));
            hosts
        };
        assert_eq!(direct("https://staging.example:8443/api", &["login.example"]), "staging.example,login.example");
        assert_eq!(direct("http://[fd00::1]:80", &[]), "[fd00::1]");
        assert_eq!(direct("", &[]), "");
    }
}
