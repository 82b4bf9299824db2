//! A server that already runs: its base URL, and where its resource usage is read. Pure.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// A server that already runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Its URL without a trailing slash; paths are appended.
    pub base: String,
    /// Hosts to which redirects are followed, by the checks and by the load.
    pub redirects: Vec<String>,
    /// Where its resource usage is read.
    pub metrics: Option<Metrics>,
}

/// Metrics in the text format of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Their URL.
    pub scrape: Url,
    /// The names of the metrics; the first preset that is found if there is none.
    pub preset: Option<Preset>,
    /// Only series with these labels count.
    pub labels: BTreeMap<String, String>,
}

/// Names of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// `process_…` of a client library of Prometheus: the server itself.
    Process,
    /// cAdvisor: a container.
    Cadvisor,
    /// `node_exporter`: the whole machine.
    NodeExporter,
}

impl Preset {
    /// All presets, the most exact first.
    pub const ALL: [Self; 3] = [Self::Process, Self::Cadvisor, Self::NodeExporter];

    /// Returns the name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Cadvisor => "cadvisor",
            Self::NodeExporter => "node_exporter",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `[url]` in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlFile {
    /// The base URL.
    pub base: String,
    /// Hosts to which redirects are followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<String>,
}

/// `[metrics]` in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsFile {
    /// URL of the metrics.
    pub scrape: String,
    /// Their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Labels of the series that count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl UrlFile {
    /// Explains what is wrong; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        let url = match parse("url.base", &self.base) {
            Ok(url) => url,
            Err(fault) => return Some(fault),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Some(format!("url.base: {:?} must end with its path, because other paths are appended", self.base));
        }
        let is_host = |host: &str| Url::parse(&format!("http://{host}")).is_ok_and(|url| url.host_str() == Some(host));
        let odd = self.redirects.iter().find(|host| !is_host(host))?;
        Some(format!("url.redirects: {odd:?} must be a host in lower case, without scheme, port and path"))
    }

    /// Combines both tables.
    pub(super) fn with(self, metrics: Option<MetricsFile>) -> Result<Remote, String> {
        let Self { base, redirects } = self;
        let base = parse("url.base", &base)?.as_str().trim_end_matches('/').to_owned();
        let metrics = metrics.map(|MetricsFile { scrape, preset, labels }| {
            parse("metrics.scrape", &scrape).map(|scrape| Metrics { scrape, preset, labels })
        });
        Ok(Remote { base, redirects, metrics: metrics.transpose()? })
    }
}

impl MetricsFile {
    /// Explains what is wrong; the sentence starts with the field.
    pub(super) fn fault(&self) -> Option<String> {
        parse("metrics.scrape", &self.scrape).err()
    }
}

fn parse(field: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{field}: {text:?} is not a URL: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(format!("{field}: {text:?} is not an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{field}: must have no user name or password, which would be shown to every user"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base: &str) -> UrlFile {
        UrlFile { base: base.to_owned(), redirects: Vec::new() }
    }

    #[test]
    fn a_base_url_has_no_trailing_slash() {
        for (text, base) in [
            ("https://staging.example", "https://staging.example"),
            ("https://staging.example/", "https://staging.example"),
            ("http://staging.example:8080/api/", "http://staging.example:8080/api"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(url(text).with(None).map(|remote| remote.base), Ok(base.to_owned()));
            assert_eq!(url(text).fault(), None);
        }
    }

    #[test]
    fn an_unusable_url_is_a_fault_of_its_field() {
        for text in
            ["", "staging.example", "ftp://x", "http://", "http://u:p@x", "http://x?a=1", "http://x/#a", "file:///x"]
        {
            let fault = url(text).fault().expect(text);
            assert!(fault.starts_with("url.base: "), "{fault}");
        }
        for host in ["http://x", "x:80", "x/y", "X.example", ""] {
            let fault = UrlFile { redirects: vec![host.to_owned()], ..url("http://x") }.fault().expect(host);
            assert!(fault.starts_with("url.redirects: "), "{fault}");
        }
        let good = ["www.staging.example", "10.0.0.5"].map(str::to_owned).to_vec();
        assert_eq!(UrlFile { redirects: good, ..url("http://x") }.fault(), None);
        let metrics = MetricsFile { scrape: "x:9100".to_owned(), preset: None, labels: BTreeMap::new() };
        assert!(metrics.fault().is_some_and(|fault| fault.starts_with("metrics.scrape: ")));
    }
}
