//! The text of a manifest: read, checked field by field, and written. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::container::{BUILT, Container};
use super::kubernetes::KubernetesFile;
use super::profile::ProfileFile;
use super::remote::{MetricsFile, UrlFile};
use super::vm::VmFile;
use super::{Build, IdentityScope, PORT, Ready, Sandbox, Source, Verify};
use crate::offer::{description_fault, name_fault, version_fault};

/// Characters of a value that an error shows.
const SHOWN: usize = 60;

/// A manifest as it is in the file: paths are not resolved yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// 1 to 64 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// In any format; empty for a program with `[source]`, whose version is its commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Source revision, such as a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// One line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The program and its arguments; `{port}` and `{host}` are replaced with the address to listen on. Empty for other
    /// kinds of targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What identifies its code besides its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityScope>,
    /// A container; null for other kinds of targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// A virtual machine; null for other kinds of targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmFile>,
    /// A server that already runs; null for other kinds of targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlFile>,
    /// A Pod of a Kubernetes cluster; null for other kinds of targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesFile>,
    /// Where the CPU time and memory of a server that already runs are read; null if nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsFile>,
    /// The repository that it is built from; null for a program that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// How it is built; null without `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// When it is ready.
    pub ready: Ready,
    /// A response that shows that the right program serves; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// How it is profiled; null for perf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFile>,
    /// Files that it may use besides its own folder.
    #[serde(default, skip_serializing_if = "Sandbox::is_empty")]
    pub sandbox: Sandbox,
}

impl ManifestFile {
    /// Parses a manifest; the error names the field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file = Self::from_toml(text)?;
        match file.faults().into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(file),
        }
    }

    /// Reads a manifest whose values may be invalid; the error names the line.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())
    }

    /// Returns the text of the file. Fails if a path is not text.
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Returns everything that is wrong, in the order of the fields. Each sentence begins with its field and a colon.
    pub fn faults(&self) -> Vec<String> {
        let Self { name, revision, description, ready, verify, profile, .. } = self;
        let faults = [
            bad_name(name).or_else(|| name_fault(name)),
            self.bad_version(),
            unless(
                revision.as_ref().is_none_or(|revision| !revision.trim().is_empty() && revision.len() <= 200),
                || "revision: must be 1 to 200 characters; omit it if there is none".to_owned(),
            ),
            description_fault(description),
            self.misplaced().or_else(|| match (&self.container, &self.vm, &self.url, &self.kubernetes) {
                (None, None, None, None) => self.bad_program(),
                _ => None,
            }),
            self.env.iter().find_map(|(name, value)| bad_variable(name, value)),
            self.bad_source(),
            self.identity.as_ref().and_then(IdentityScope::fault),
            self.container.as_ref().and_then(Container::fault),
            self.vm.as_ref().and_then(VmFile::fault),
            self.url.as_ref().and_then(UrlFile::fault),
            self.kubernetes.as_ref().and_then(KubernetesFile::fault),
            self.metrics.as_ref().and_then(MetricsFile::fault),
            bad_path("ready", &ready.path),
            bad_status("ready", ready.status),
            unless(ready.timeout_s > 0.0 && ready.timeout_s <= 600.0, || {
                format!("ready.timeout_s: {} must be above 0 and at most 600", ready.timeout_s)
            }),
            verify.as_ref().and_then(|verify| bad_path("verify", &verify.path)),
            verify.as_ref().and_then(|verify| bad_status("verify", verify.status)),
            profile.as_ref().and_then(|profile| profile.fault(self.url.is_some() || self.kubernetes.is_some())),
        ];
        faults.into_iter().flatten().collect()
    }

    fn bad_version(&self) -> Option<String> {
        let Self { version, source, container, .. } = self;
        let is_named = container.as_ref().is_some_and(Container::has_versions);
        match source {
            Some(_) if !version.is_empty() => Some("version: remove it; with [source], it is the commit".to_owned()),
            None if is_named && !version.is_empty() => Some("version: remove it; a run names it".to_owned()),
            Some(_) => None,
            None if is_named => None,
            None if version.trim().is_empty() => Some("version: must not be empty".to_owned()),
            None => version_fault(version),
        }
    }

    fn bad_source(&self) -> Option<String> {
        match (&self.source, &self.build) {
            (None, None) => None,
            (Some(_), None) => Some("build: is missing; a target with [source] is built".to_owned()),
            (None, Some(_)) => Some("source: is missing; [build] says how to build it".to_owned()),
            (Some(source), Some(build)) => source.fault().or_else(|| build.fault()),
        }
        .or_else(|| self.bad_image())
    }

    /// Finds an image that is neither named nor built, or both.
    fn bad_image(&self) -> Option<String> {
        let file = self.build.as_ref().and_then(|build| build.containerfile.as_ref());
        match (&self.container, &self.source, file) {
            (None, _, Some(_)) => Some("build.containerfile: only for a target with [container]".to_owned()),
            (Some(_), Some(_), None) => Some("build.containerfile: is missing; an image is built from it".to_owned()),
            (Some(Container { image, .. }), Some(_), Some(_)) if image != BUILT => {
                Some("container.image: remove it; with [source], it is built".to_owned())
            }
            (Some(Container { image, .. }), None, _) if image == BUILT => {
                Some("container.image: is missing".to_owned())
            }
            _ => None,
        }
    }

    fn bad_program(&self) -> Option<String> {
        let Self { command, env, .. } = self;
        if command.is_empty() {
            let others = "for other kinds write [container], [vm], [url] or [kubernetes]";
            return Some(format!("command: program is missing; {others}"));
        }
        bad_command(command).or_else(|| {
            unless(command.iter().chain(env.values()).any(|text| text.contains(PORT)), || {
                format!("command: {PORT} is missing in command and env, so the target can't know its port")
            })
        })
    }

    /// Finds a field that belongs to another kind of target.
    fn misplaced(&self) -> Option<String> {
        let Self { command, env, sandbox, identity, container, vm, url, kubernetes, metrics, source, .. } = self;
        let kinds = [
            ("container", container.is_some()),
            ("vm", vm.is_some()),
            ("url", url.is_some()),
            ("kubernetes", kubernetes.is_some()),
        ];
        let mut kinds = kinds.into_iter().filter(|(_, is_given)| *is_given).map(|(kind, _)| kind);
        let (kind, other) = (kinds.next(), kinds.next());
        if metrics.is_some() && kind != Some("url") {
            return Some("metrics: only for a target with [url]".to_owned());
        }
        let kind = kind?;
        if let Some(other) = other {
            return Some(format!("{other}: remove it; a target has one of [container], [vm], [url] and [kubernetes]"));
        }
        let given = [
            ("command", !command.is_empty()),
            ("env", !env.is_empty()),
            ("identity", identity.is_some()),
            ("source", source.is_some() && kind != "container"),
            ("sandbox", !sandbox.is_empty() && kind != "vm"),
        ];
        let (field, _) = given.into_iter().find(|(_, is_given)| *is_given)?;
        let why = match (kind, field) {
            ("url", _) => "a target with [url] already runs".to_owned(),
            (_, "source") => "only programs and images are built".to_owned(),
            (_, "identity") => "only the code of a program is identified by its files".to_owned(),
            ("kubernetes", "sandbox") => "its Pod has its own".to_owned(),
            (_, "sandbox") => "a container has its own".to_owned(),
            _ => format!("write it as {kind}.{field}"),
        };
        Some(format!("{field}: remove it; {why}"))
    }
}

fn unless(valid: bool, fault: impl FnOnce() -> String) -> Option<String> {
    (!valid).then(fault)
}

/// Quotes a value for an error, shortened.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?} …", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn bad_name(name: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    unless(!name.is_empty() && name.len() <= 64 && name.chars().all(is_plain), || {
        format!("name: {} must be 1 to 64 letters, digits, '-', '_' or '.'", shown(name))
    })
}

pub(super) fn bad_command(command: &[String]) -> Option<String> {
    unless(command.first().is_some_and(|program| !program.is_empty()), || "command: program is missing".to_owned())
        .or_else(|| {
            let bad = command.iter().find(|word| word.contains('\0'))?;
            Some(format!("command: {} contains the character NUL", shown(bad)))
        })
}

pub(super) fn bad_variable(name: &str, value: &str) -> Option<String> {
    unless(!name.is_empty() && !name.contains(['=', '\0']), || {
        format!("env: {} is not the name of a variable", shown(name))
    })
    .or_else(|| unless(!value.contains('\0'), || format!("env: {} contains the character NUL", shown(name))))
}

fn bad_path(table: &str, path: &str) -> Option<String> {
    unless(path.starts_with('/'), || format!("{table}.path: {} must start with '/'", shown(path)))
}

fn bad_status(table: &str, status: u16) -> Option<String> {
    unless((100..600).contains(&status), || format!("{table}.status: {status} is not an HTTP status"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::super::profile::CallGraph;
    use super::*;
    use crate::profile::ProfileKind;

    fn file() -> ManifestFile {
        ManifestFile {
            name: "hello".to_owned(),
            version: "1".to_owned(),
            revision: None,
            description: String::new(),
            command: vec!["python3".to_owned(), "hello.py".to_owned(), "{port}".to_owned()],
            env: BTreeMap::new(),
            identity: None,
            container: None,
            vm: None,
            url: None,
            kubernetes: None,
            metrics: None,
            source: None,
            build: None,
            ready: Ready { path: "/".to_owned(), status: 200, timeout_s: 10.0 },
            verify: None,
            profile: None,
            sandbox: Sandbox::default(),
        }
    }

    #[test]
    fn defaults_are_not_written() {
        let text = file().to_toml().expect("a text");
        let expected = "name = \"hello\"\nversion = \"1\"\ncommand = [\"python3\", \"hello.py\", \"{port}\"]\n\n\
            [ready]\npath = \"/\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn all_faults_are_found_in_the_order_of_the_fields() {
        let bad = ManifestFile {
            name: "x".repeat(10_000),
            version: "1\n2".to_owned(),
            revision: Some(" ".to_owned()),
            description: "d".repeat(1_001),
            command: vec!["server".to_owned()],
            env: BTreeMap::from([("A=B".to_owned(), "1".to_owned())]),
            identity: None,
            container: None,
            vm: None,
            url: None,
            kubernetes: None,
            metrics: None,
            source: None,
            build: None,
            ready: Ready { path: "health".to_owned(), status: 42, timeout_s: f64::NAN },
            verify: Some(Verify { path: String::new(), status: 600, contains: None }),
            profile: Some(ProfileFile { rate_hz: Some(0), ..ProfileFile::default() }),
            sandbox: Sandbox::default(),
        };
        let faults = bad.faults();
        let fields: Vec<&str> = faults.iter().filter_map(|fault| Some(fault.split_once(": ")?.0)).collect();
        let expected = [
            "name",
            "version",
            "revision",
            "description",
            "command",
            "env",
            "ready.path",
            "ready.status",
            "ready.timeout_s",
            "verify.path",
            "verify.status",
            "profile.rate_hz",
        ];
        assert_eq!(fields, expected);
        assert!(faults.iter().all(|fault| fault.len() < 200), "{faults:?}");
        assert_eq!(file().faults(), Vec::<String>::new());
    }

    #[test]
    fn names_that_no_server_accepts_and_words_that_no_program_gets_are_faults() {
        let faults = |change: fn(&mut ManifestFile)| {
            let mut file = file();
            change(&mut file);
            file.faults()
        };
        assert_eq!(faults(|file| file.name = "..".to_owned()), ["name: must not consist of dots and tildes only"]);
        let nul = faults(|file| file.command.push("a\0b".to_owned()));
        assert_eq!(nul, ["command: \"a\\0b\" contains the character NUL"]);
        let nul = faults(|file| drop(file.env.insert("A".to_owned(), "\0".to_owned())));
        assert_eq!(nul, ["env: \"A\" contains the character NUL"]);
    }

    fn any_profile() -> impl Strategy<Value = ProfileFile> {
        let kinds = prop::sample::subsequence(ProfileKind::ALL.to_vec(), 1..=3);
        let call_graph = prop::option::of(prop_oneof![Just(CallGraph::Fp), Just(CallGraph::Dwarf)]);
        let rate_hz = prop::option::of(1_u32..10_000);
        prop_oneof![
            ("/[^\0\r\n\t]{0,9}", kinds).prop_map(|(path, kinds)| {
                ProfileFile { pprof: Some(format!("{path}{{s}}")), kinds, ..ProfileFile::default() }
            }),
            ("[^\0]{1,9}", "[^\0]{0,9}", rate_hz.clone()).prop_map(|(program, word, rate_hz)| {
                let command = vec![program, format!("{word}{{pid}}")];
                ProfileFile { command, rate_hz, ..ProfileFile::default() }
            }),
            (any::<bool>(), call_graph, rate_hz).prop_map(|(perf, call_graph, rate_hz)| {
                ProfileFile { perf, call_graph, rate_hz, ..ProfileFile::default() }
            }),
        ]
    }

    proptest! {
        /// Whatever the values are: what is written is read again as it was.
        #[test]
        fn every_valid_manifest_is_read_as_it_was_written(
            name in "[a-z]{1,8}",
            texts in prop::collection::vec(any::<String>(), 8),
            env in prop::collection::btree_map("[^=\0]{1,6}", "[^\0]{0,6}", 0..3),
            (status, timeout_s) in (100_u16..600, 0.001_f64..600.0),
            profile in any_profile(),
        ) {
            let plain = |text: &str| text.replace('\0', "");
            let file = ManifestFile {
                name,
                version: format!("v{}", texts[0].replace(|letter: char| letter.is_control(), "")),
                revision: Some(format!("r{}", texts[1].chars().take(40).collect::<String>())),
                description: texts[2].chars().take(1_000).collect(),
                command: vec![format!("p{}", plain(&texts[3])), plain(&texts[4]), "{port}".to_owned()],
                env,
                identity: Some(IdentityScope::Files(vec![texts[7].replace(['/', '\0'], "x") + "x"])),
                container: None,
                vm: None,
                url: None,
                kubernetes: None,
                metrics: None,
                source: None,
                build: None,
                ready: Ready { path: format!("/{}", texts[5]), status, timeout_s },
                verify: Some(Verify { path: format!("/{}", texts[6]), status, contains: Some(texts[7].clone()) }),
                profile: Some(profile),
                sandbox: Sandbox { read: vec![PathBuf::from(&texts[4])], write: vec![PathBuf::from(&texts[5])] },
            };
            prop_assume!(file.version.chars().count() <= 100 && file.faults().is_empty());
            let text = file.to_toml().expect("a text");
            prop_assert_eq!(ManifestFile::parse(&text).expect("a manifest"), file, "{}", text);
        }
    }
}
