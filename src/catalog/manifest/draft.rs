//! The input of the form for a new target, valid or not. Pure.

use std::{collections::BTreeMap, path::PathBuf};

use brewbench_agent::target::{
    Sandbox,
    manifest::{
        Container, KubernetesFile, ManifestFile, MetricsFile, Mount, ProfileFile, Pull, Ready, UrlFile, Verify, VmFile,
    },
};
use brewbench_agent::wire::target::TargetKind;
use url::form_urlencoded;

use super::{
    READY_TIMEOUT_S, STATUS, TargetManifest,
    fields::{Field, KIND, all_fields, required},
};

/// A manifest in which every field must still be set.
const EMPTY: ManifestFile = ManifestFile {
    name: String::new(),
    version: String::new(),
    revision: None,
    description: String::new(),
    command: Vec::new(),
    env: BTreeMap::new(),
    identity: None,
    container: None,
    vm: None,
    url: None,
    kubernetes: None,
    metrics: None,
    ready: Ready { path: String::new(), status: STATUS, timeout_s: READY_TIMEOUT_S },
    verify: None,
    profile: None,
    sandbox: Sandbox { read: Vec::new(), write: Vec::new() },
};

/// Faults by field. The field is empty for a fault that concerns no single one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<String, String>);

impl Faults {
    /// Returns the fault of a field.
    pub fn of(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    /// Adds a sentence that begins with its field and a colon, unless that field has a fault.
    fn add(&mut self, sentence: &str) {
        let (field, rest) = sentence.split_once(": ").unwrap_or(("", sentence));
        self.0.entry(field.to_owned()).or_insert_with(|| rest.to_owned());
    }
}

/// The input of the form, by field.
#[derive(Clone, Debug)]
pub struct Draft(BTreeMap<&'static str, String>);

impl Default for Draft {
    fn default() -> Self {
        Self(BTreeMap::from([("version", "1".to_owned()), ("ready.path", "/".to_owned())]))
    }
}

/// A checked draft.
#[derive(Debug)]
pub struct Checked {
    /// The manifest, if it is complete and valid.
    pub manifest: Option<TargetManifest>,
    /// The text so far.
    pub text: String,
    /// What is wrong.
    pub faults: Faults,
}

impl Draft {
    /// Reads the fields of a form or a query; the defaults for those that are not named.
    pub fn parse(form: &[u8]) -> Self {
        let mut draft = Self::default();
        for (name, value) in form_urlencoded::parse(form) {
            if let Some(field) = all_fields().find(|field| field.name == name) {
                // Space may be part of a text; around everything else it is a slip.
                let is_exact = field.name == "verify.contains";
                let value = if is_exact { value.into_owned() } else { value.trim().to_owned() };
                draft.0.insert(field.name, value);
            }
        }
        draft
    }

    /// Returns the input of a field.
    pub fn get(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    /// Returns the kind of the target, by default a program.
    pub fn kind(&self) -> TargetKind {
        self.get(KIND.name).parse().unwrap_or(TargetKind::Process)
    }

    /// Returns the labels of required fields that are empty.
    pub fn missing(&self) -> Vec<&'static str> {
        let required = self.required();
        let is_missing = |field: &&Field| required.contains(&field.name) && self.get(field.name).is_empty();
        all_fields().filter(is_missing).map(|field| field.label).collect()
    }

    /// Returns the required fields.
    fn required(&self) -> Vec<&'static str> {
        let has_qemu = ["vm.disk", "vm.kernel"].iter().any(|field| !self.get(field).is_empty());
        let (kind, for_qemu) = (self.kind(), ["vm.port"]);
        let needed = required(kind).into_iter().filter(|field| !has_qemu || *field != "vm.command");
        needed.chain(for_qemu.into_iter().filter(|_| has_qemu && kind == TargetKind::Vm)).collect()
    }

    /// Checks the fields as an agent does.
    pub fn check(&self) -> Checked {
        let mut faults = Faults::default();
        let file = self.file(&mut faults);
        for fault in file.faults() {
            faults.add(&fault);
        }
        let text = file.to_toml().unwrap_or_default();
        let manifest = if faults.0.is_empty() {
            TargetManifest::write(&file).map_err(|fault| faults.add(&fault)).ok()
        } else {
            None
        };
        Checked { manifest, text, faults }
    }

    /// Returns the manifest as far as the input can be read.
    fn file(&self, faults: &mut Faults) -> ManifestFile {
        let some = |field: &str| Some(self.get(field).to_owned()).filter(|text| !text.is_empty());
        let started = match self.kind() {
            TargetKind::Process => self.started(faults),
            TargetKind::Container => self.contained(faults),
            TargetKind::Vm => self.virtual_machine(faults),
            TargetKind::Url => self.running(),
            TargetKind::Kubernetes => self.scheduled(faults),
        };
        let ready = Ready {
            path: self.get("ready.path").to_owned(),
            status: self.number("ready.status", STATUS, "is not an HTTP status", faults),
            timeout_s: self.number("ready.timeout_s", READY_TIMEOUT_S, "is not a number of seconds", faults),
        };
        let verify = Verify {
            path: self.get("verify.path").to_owned(),
            status: self.number("verify.status", STATUS, "is not an HTTP status", faults),
            contains: some("verify.contains"),
        };
        let has_verify = ["verify.path", "verify.status", "verify.contains"].iter().any(|field| some(field).is_some());
        if has_verify && verify.path.is_empty() {
            faults.add("verify.path: missing; which path has this answer?");
        }
        ManifestFile {
            name: self.get("name").to_owned(),
            version: self.get("version").to_owned(),
            revision: some("revision"),
            description: self.get("description").to_owned(),
            ready,
            verify: has_verify.then_some(verify),
            profile: some("profile.pprof").map(|path| ProfileFile { pprof: Some(path), ..ProfileFile::default() }),
            ..started
        }
    }

    /// Returns a manifest with the fields of a program.
    fn started(&self, faults: &mut Faults) -> ManifestFile {
        let command = self.words("command", faults);
        let sandbox = Sandbox { read: self.paths("sandbox.read"), write: self.paths("sandbox.write") };
        ManifestFile { command, env: self.variables("env", faults), sandbox, ..EMPTY }
    }

    /// Returns a manifest with the fields of a container.
    fn contained(&self, faults: &mut Faults) -> ManifestFile {
        let network = self.choice("container.network", faults);
        let mut mounts = Vec::new();
        for line in self.lines("container.mounts") {
            match line.split_once(':') {
                Some((source, target)) => mounts.push(Mount { source: source.into(), target: target.to_owned() }),
                None => faults.add("container.mounts: write both paths with a colon between them"),
            }
        }
        let port = self.port("container.port", faults);
        let container = Container {
            image: self.get("container.image").to_owned(),
            command: self.words("container.command", faults),
            port,
            network,
            pull: Pull::default(),
            seccomp: None,
            user: None,
            mounts,
            env: self.variables("container.env", faults),
        };
        ManifestFile { container: Some(container), ..EMPTY }
    }

    /// Returns a manifest with the fields of a virtual machine.
    fn virtual_machine(&self, faults: &mut Faults) -> ManifestFile {
        let path = |field: &str| Some(self.get(field).into()).filter(|path: &PathBuf| !path.as_os_str().is_empty());
        let vm = VmFile {
            command: self.words("vm.command", faults),
            env: self.variables("vm.env", faults),
            kernel: path("vm.kernel"),
            initrd: path("vm.initrd"),
            append: self.get("vm.append").to_owned(),
            disk: path("vm.disk"),
            seed: path("vm.seed"),
            port: self.port("vm.port", faults),
            ..VmFile::default()
        };
        let sandbox = Sandbox { read: self.paths("sandbox.read"), write: self.paths("sandbox.write") };
        ManifestFile { vm: Some(vm), sandbox, ..EMPTY }
    }

    /// Splits a line as a shell does.
    fn words(&self, field: &str, faults: &mut Faults) -> Vec<String> {
        let words = shlex::split(self.get(field));
        if words.is_none() {
            faults.add(&format!("{field}: a quote is not closed"));
        }
        words.unwrap_or_default()
    }

    /// Returns a manifest with the fields of a server that already runs.
    fn running(&self) -> ManifestFile {
        let url = UrlFile { base: self.get("url.base").to_owned(), redirects: Vec::new() };
        let scrape = Some(self.get("metrics.scrape").to_owned()).filter(|scrape| !scrape.is_empty());
        let metrics = scrape.map(|scrape| MetricsFile { scrape, preset: None, labels: BTreeMap::new() });
        ManifestFile { url: Some(url), metrics, ..EMPTY }
    }

    /// Returns a manifest with the fields of a Pod.
    fn scheduled(&self, faults: &mut Faults) -> ManifestFile {
        let kubernetes = KubernetesFile {
            image: Some(self.get("kubernetes.image").to_owned()),
            port: self.port("kubernetes.port", faults).unwrap_or_default(),
            command: self.words("kubernetes.command", faults),
            env: self.variables("kubernetes.env", faults),
            node_selector: self.variables("kubernetes.node_selector", faults),
            ..KubernetesFile::default()
        };
        ManifestFile { kubernetes: Some(kubernetes), ..EMPTY }
    }

    fn number<T: std::str::FromStr>(&self, field: &'static str, default: T, fault: &str, faults: &mut Faults) -> T {
        match self.get(field) {
            "" => default,
            text => text.parse().unwrap_or_else(|_| {
                let shown: String = text.chars().take(40).collect();
                faults.add(&format!("{field}: {shown:?} {fault}"));
                default
            }),
        }
    }

    fn port(&self, field: &'static str, faults: &mut Faults) -> Option<u16> {
        (!self.get(field).is_empty()).then(|| self.number(field, 1, "is not a port", faults))
    }

    fn choice<T: std::str::FromStr<Err = String> + Default>(&self, field: &str, faults: &mut Faults) -> T {
        match self.get(field) {
            "" => T::default(),
            text => text.parse().unwrap_or_else(|fault| {
                faults.add(&format!("{field}: {fault}"));
                T::default()
            }),
        }
    }

    fn lines(&self, field: &str) -> impl Iterator<Item = &str> {
        self.get(field).lines().map(str::trim).filter(|line| !line.is_empty())
    }

    fn paths(&self, field: &str) -> Vec<PathBuf> {
        self.lines(field).map(Into::into).collect()
    }

    fn variables(&self, field: &str, faults: &mut Faults) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for line in self.lines(field) {
            let shown: String = line.chars().take(40).collect();
            match line.split_once('=') {
                Some((name, value)) if all.insert(name.to_owned(), value.to_owned()).is_none() => {}
                Some(_) => faults.add(&format!("{field}: {shown:?} sets a variable again")),
                None => faults.add(&format!("{field}: {shown:?} has no value, write NAME=VALUE")),
            }
        }
        all
    }
}

impl Checked {
    /// Drops the faults of required fields that are still empty.
    #[must_use]
    pub fn without_missing(mut self, draft: &Draft) -> Self {
        let required = draft.required();
        self.faults.0.retain(|field, _| !required.contains(&field.as_str()) || !draft.get(field).is_empty());
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(fields: &[(&str, &str)]) -> Draft {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        Draft::parse(body.finish().as_bytes())
    }

    fn valid() -> Vec<(&'static str, &'static str)> {
        vec![("name", "hello"), ("command", "python3 'my server.py' {host} {port}")]
    }

    #[test]
    fn a_server_that_already_runs_needs_a_url_and_no_command() {
        let fields = [("kind", "url"), ("name", "staging"), ("command", "kept for later {port}")];
        let missing = form(&fields);
        assert_eq!(missing.missing(), ["Base URL"]);
        assert_eq!(missing.check().without_missing(&missing).faults, Faults::default());
        let more = [("url.base", "https://staging.example"), ("metrics.scrape", "http://staging.example:9100/metrics")];
        let Checked { text, faults, .. } = form(&[&fields[..], &more].concat()).check();
        assert_eq!(faults, Faults::default());
        let expected = "name = \"staging\"\nversion = \"1\"\n\n[url]\nbase = \"https://staging.example\"\n\n\
            [metrics]\nscrape = \"http://staging.example:9100/metrics\"\n\n[ready]\npath = \"/\"\n";
        assert_eq!(text, expected);
        let bad = form(&[&fields[..], &[("url.base", "staging")]].concat()).check();
        assert!(bad.faults.of("url.base").is_some_and(|fault| fault.contains("is not a URL")), "{:?}", bad.faults);
    }

    #[test]
    fn a_form_becomes_a_manifest() {
        let mut fields = valid();
        fields.extend([
            ("env", "A=1\r\n\r\nB=x=y\r\n"),
            ("verify.path", "/hash"),
            ("verify.contains", " \"hash\""),
            ("ready.timeout_s", "2.5"),
            ("sandbox.read", "/srv/www\r\ndata"),
        ]);
        let Checked { manifest, text, faults } = form(&fields).check();
        assert_eq!(faults, Faults::default());
        let expected = "name = \"hello\"\nversion = \"1\"\n\
            command = [\"python3\", \"my server.py\", \"{host}\", \"{port}\"]\n\n[env]\nA = \"1\"\nB = \"x=y\"\n\n\
            [ready]\npath = \"/\"\ntimeout_s = 2.5\n\n[verify]\npath = \"/hash\"\ncontains = ' \"hash\"'\n\n\
            [sandbox]\nread = [\"/srv/www\", \"data\"]\n";
        assert_eq!(manifest, Some(TargetManifest { file: "hello.toml".to_owned(), toml: expected.to_owned() }));
        assert_eq!(text, expected);
    }

    #[test]
    fn each_fault_is_at_its_field() {
        for (field, input, fault) in [
            ("name", "my server", "\"my server\" must be 1 to 64 letters, digits, '-', '_' or '.'"),
            ("version", "a\u{7}", "1 to 100 characters on one line"),
            ("command", "serve 'x", "a quote is not closed"),
            ("command", "serve", "{port} is missing in command and env, so the target can't know its port"),
            ("env", "A", "\"A\" has no value, write NAME=VALUE"),
            ("env", "A=1\nA=2", "\"A=2\" sets a variable again"),
            ("env", "=1", "\"\" is not the name of a variable"),
            ("ready.path", "health", "\"health\" must start with '/'"),
            ("ready.status", "OK", "\"OK\" is not an HTTP status"),
            ("ready.status", "99", "99 is not an HTTP status"),
            ("ready.timeout_s", "601", "601 must be above 0 and at most 600"),
            ("verify.status", "-1", "\"-1\" is not an HTTP status"),
        ] {
            let checked = form(&[valid(), vec![(field, input)]].concat()).check();
            assert_eq!(checked.faults.of(field), Some(fault), "{field} {input}");
            assert_eq!(checked.manifest, None, "{field} {input}");
        }
        let checked = form(&[valid(), vec![("verify.contains", "x")]].concat()).check();
        assert_eq!(checked.faults.of("verify.path"), Some("missing; which path has this answer?"));
    }

    #[test]
    fn an_empty_form_lacks_fields_but_shows_no_faults_yet() {
        let draft = form(&[]);
        assert_eq!(draft.missing(), ["Name", "Command"]);
        let checked = draft.check();
        assert!(checked.faults.of("name").is_some() && checked.faults.of("command").is_some());
        assert_eq!(checked.without_missing(&draft).faults, Faults::default());
    }

    #[test]
    fn all_required_fields_have_a_label() {
        for kind in TargetKind::ALL {
            let empty: Vec<_> = required(kind).into_iter().map(|name| (name, "")).collect();
            let draft = form(&[&[("kind", kind.as_str())][..], &empty].concat());
            assert_eq!(draft.missing().len(), empty.len(), "{kind}");
        }
    }

    proptest! {
        /// Whatever is entered: it is refused, or the agent reads the file.
        #[test]
        fn no_input_makes_a_file_that_an_agent_refuses(
            texts in prop::collection::vec(prop_oneof![any::<String>(), "[a-z\"'\\\\\n\r\t=🦀{}# ]{0,30}"], 22),
        ) {
            let named: Vec<(&str, &str)> = all_fields().map(|field| field.name).zip(texts.iter().map(String::as_str)).collect();
            for fields in [named.clone(), [valid(), named[2..].to_vec(), valid()].concat()] {
                let Checked { manifest, faults, .. } = form(&fields).check();
                prop_assert_eq!(manifest.is_some(), faults.0.is_empty());
                if let Some(manifest) = manifest {
                    let read = ManifestFile::parse(&manifest.toml).expect("a manifest");
                    prop_assert_eq!(read.name + ".toml", manifest.file);
                }
            }
        }
    }
}
