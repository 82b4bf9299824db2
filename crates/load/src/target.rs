//! The target: its address, its name and its TLS.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::plan::{Fault, fault};

/// A target, from its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it uses TLS.
    pub is_tls: bool,
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of the header field `Host`.
    pub authority: String,
    /// The path before those of the requests, without a slash at its end.
    pub base_path: String,
}

impl Target {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let invalid = |what: &str| fault("url", format!("{text:?} {what}"));
        let url = url::Url::parse(text).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(invalid("does not begin with http:// or https://")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("contains a user: add the header field `authorization` to the requests instead"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("contains a query or a fragment: add it to the paths of the requests instead"));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(invalid("has no host"));
        };
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self {
            is_tls,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            authority,
            base_path: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns the address to connect to. The name is looked up once, before the load; if it has several addresses, it
    /// is the first one that accepts a connection.
    pub fn address(&self) -> Result<SocketAddr, Fault> {
        let named = || format!("{}:{}", self.host, self.port);
        let addresses: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| fault("url", format!("the address of {} can't be looked up: {error}", named())))?
            .collect();
        let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok();
        let accepting = if addresses.len() > 1 { addresses.iter().find(accepts) } else { None };
        let first = accepting.or(addresses.first()).copied();
        first.ok_or_else(|| fault("url", format!("{} has no address", named())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let target = Target::parse("https://example.org").expect("a target");
        assert_eq!((target.is_tls, target.port, target.authority.as_str()), (true, 443, "example.org"));
        assert_eq!(target.base_path, "");
        let target = Target::parse("http://[::1]:8080/a/b/").expect("a target");
        assert_eq!((target.host.as_str(), target.authority.as_str()), ("::1", "[::1]:8080"));
        assert_eq!(target.base_path, "/a/b");
        assert_eq!(target.address(), Ok("[::1]:8080".parse().expect("an address")));
    }

    #[test]
    fn other_urls_are_refused() {
        let refused = |text: &str| Target::parse(text).expect_err("a fault").to_string();
        assert!(refused("ftp://x").contains("does not begin with http://"));
        assert!(refused("x").starts_with("url: \"x\" is not a URL"));
        assert!(refused("http://u:p@x").contains("contains a user"));
        assert!(refused("http://x/?a").contains("query"));
    }
}
