//! Versions of k6: which ones this agent supports, and how they differ. Pure.

use std::fmt;

/// The versions of k6 that agents of this version support.
pub const SUPPORTED: Supported = Supported { first: 1, last: 2 };

/// A version of k6, e.g. `1.8.1` or `2.0.0-rc1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    major: u32,
    minor: u32,
}

impl Version {
    /// Parses a version number; `None` if it does not start with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, rest) = text.split_once('.')?;
        let minor = rest.split_once(|c: char| !c.is_ascii_digit()).map_or(rest, |(minor, _)| minor);
        Some(Self { text: text.to_owned(), major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Parses the output of `k6 version`: `k6 v1.8.1 (go1.26.8, linux/amd64)`. The first word is the name of the
    /// program's file, as in `k6-2.2.0 v2.2.0`.
    pub fn from_output(text: &str) -> Option<Self> {
        let (name, version) = text.split_once(" v")?;
        if !name.contains("k6") {
            return None;
        }
        Self::parse(version.split_whitespace().next()?)
    }

    /// Returns the version as k6 writes it, without the `v`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether native histograms are enabled by a feature flag. Later versions still accept the older setting of the
    /// output, but warn about it in every log.
    pub(super) fn has_feature_flags(&self) -> bool {
        (self.major, self.minor) >= (2, 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A range of major versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported {
    first: u32,
    last: u32,
}

impl Supported {
    /// Whether a version is in the range.
    pub fn covers(self, version: &Version) -> bool {
        (self.first..=self.last).contains(&version.major)
    }
}

impl fmt::Display for Supported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}.x") } else { write!(f, "{first}.x … {last}.x") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_k6s_output() {
        let table = [
            ("k6 v1.8.1 (go1.26.8, linux/amd64)\n", Some("1.8.1")),
            ("k6 v0.49.0 (commit/x)\nExtensions:\n", Some("0.49.0")),
            ("k6 v2.0.0-rc1 (go1.25)", Some("2.0.0-rc1")),
            ("k6-2.2.0 v2.2.0 (commit/devel, go1.26.8, linux/amd64)", Some("2.2.0")),
            ("k6 v2.1", Some("2.1")),
            ("nginx v1.2.3", None),
            ("k6 v2", None),
            ("k6 vnext.1", None),
            ("sh: k6: not found", None),
        ];
        for (output, expected) in table {
            assert_eq!(Version::from_output(output).as_ref().map(Version::as_str), expected, "{output}");
        }
    }

    #[test]
    fn the_supported_range_is_of_major_versions() {
        let covers = |range: Supported, text| range.covers(&Version::parse(text).expect("a version"));
        for text in ["1.0.0", "1.8.1", "2.0.0-rc1", "2.2.0", "2.99.1"] {
            assert!(covers(SUPPORTED, text), "{text}");
        }
        for text in ["0.57.0", "3.0.0", "10.0.0"] {
            assert!(!covers(SUPPORTED, text), "{text}");
        }
        assert_eq!(SUPPORTED.to_string(), "1.x … 2.x");
    }

    #[test]
    fn feature_flags_exist_since_2_1() {
        let has = |text| Version::parse(text).expect("a version").has_feature_flags();
        assert!(!has("1.8.1") && !has("2.0.0") && has("2.1.0") && has("2.10.3") && has("3.0.0"));
    }
}
