//! A target's manifest: a TOML file that the agent's owner wrote.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// Stands for the port wherever the command or the environment needs it.
pub const PORT: &str = "{port}";

/// Stands for the address to listen on: 127.0.0.1, but where the load comes from other machines. An IPv6 address stands in
/// brackets.
pub const HOST: &str = "{host}";

/// How to start one target, and how to know that it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What jobs call it: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// As its owner counts.
    pub version: String,
    /// The state of its sources that it was built from, e.g. a git commit, if its owner says.
    pub revision: Option<String>,
    /// One line for people.
    pub description: String,
    /// The program and its arguments, with [`PORT`] where the port goes, and [`HOST`] for the address.
    pub command: Vec<String>,
    /// Added to the program's environment, with [`PORT`] as in the command.
    pub env: BTreeMap<String, String>,
    /// When it is ready.
    pub ready: Ready,
    /// What one answer must look like before it is loaded.
    pub verify: Option<Verify>,
    /// What its cage allows beyond the usual.
    pub sandbox: Sandbox,
    /// The manifest's folder: where the program starts, and what its path is relative to.
    pub folder: PathBuf,
}

/// A target is ready when it answers this.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Path of a `GET`.
    pub path: String,
    /// The status that it must have.
    #[serde(default = "ok")]
    pub status: u16,
    /// How long it may take from the start, seconds.
    #[serde(default = "ten_seconds")]
    timeout_s: f64,
}

impl Ready {
    /// How long it may take from the start.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }
}

/// Files that a target needs besides the system's and those in the manifest's folder. Paths are absolute, or relative to the
/// manifest's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What it may read and run, with all below.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// What it may also write.
    #[serde(default)]
    pub write: Vec<PathBuf>,
}

impl Sandbox {
    /// With absolute paths. Fails with a sentence when one does not exist.
    fn below(mut self, folder: &Path) -> Result<Self, String> {
        for (key, paths) in [("read", &mut self.read), ("write", &mut self.write)] {
            for path in paths {
                let whole = folder.join(&*path).canonicalize();
                *path = whole.map_err(|error| format!("sandbox.{key}: {}: {error}", path.display()))?;
            }
        }
        Ok(self)
    }
}

/// One answer that shows that the right program serves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Path of a `GET`.
    pub path: String,
    /// The status that it must have.
    #[serde(default = "ok")]
    pub status: u16,
    /// Text that its body must contain.
    pub contains: Option<String>,
}

fn ok() -> u16 {
    200
}

fn ten_seconds() -> f64 {
    10.0
}

/// A manifest that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// The manifest, or the folder when that can't be read.
    pub file: PathBuf,
    /// What is wrong, with the field's name.
    pub message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

/// Reads all `*.toml` of a folder, sorted by file name. A broken one does not hide the others.
pub fn load(folder: &Path) -> (Vec<Manifest>, Vec<ManifestError>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("can't read the folder of targets: {error}");
            return (Vec::new(), vec![ManifestError { file: folder.to_owned(), message }]);
        }
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut known: HashMap<String, PathBuf> = HashMap::new();
    let (mut manifests, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        let read = read(&file).and_then(|manifest| match known.insert(manifest.name.clone(), file.clone()) {
            None => Ok(manifest),
            Some(other) => Err(format!("name: {:?} is taken by {}", manifest.name, other.display())),
        });
        match read {
            Ok(manifest) => manifests.push(manifest),
            Err(message) => errors.push(ManifestError { file, message }),
        }
    }
    (manifests, errors)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    version: String,
    revision: Option<String>,
    #[serde(default)]
    description: String,
    command: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    ready: Ready,
    verify: Option<Verify>,
    #[serde(default)]
    sandbox: Sandbox,
}

fn read(file: &Path) -> Result<Manifest, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("can't read it: {error}"))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|error| format!("can't find its folder: {error}"))?;
    parse(&text, folder)
}

fn parse(text: &str, folder: PathBuf) -> Result<Manifest, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
    let File { name, version, revision, description, command, env, ready, verify, sandbox } = file;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    check(!name.is_empty() && name.len() <= 64 && name.chars().all(plain), || {
        format!("name: {name:?} is not 1 to 64 letters, digits, '-', '_' or '.'")
    })?;
    check(!version.trim().is_empty(), || "version: it is empty".to_owned())?;
    check(revision.as_ref().is_none_or(|revision| !revision.trim().is_empty() && revision.len() <= 200), || {
        "revision: it is not 1 to 200 letters; leave it out if there is none".to_owned()
    })?;
    check(command.first().is_some_and(|program| !program.is_empty()), || "command: it names no program".to_owned())?;
    check(command.iter().chain(env.values()).any(|text| text.contains(PORT)), || {
        format!("command: neither it nor env says {PORT}, so the target can't be told its port")
    })?;
    check(ready.timeout_s > 0.0 && ready.timeout_s <= 600.0, || {
        format!("ready.timeout_s: {} is not between 0 and 600", ready.timeout_s)
    })?;
    check_request("ready", &ready.path, ready.status)?;
    if let Some(verify) = &verify {
        check_request("verify", &verify.path, verify.status)?;
    }
    let sandbox = sandbox.below(&folder)?;
    Ok(Manifest { name, version, revision, description, command, env, ready, verify, sandbox, folder })
}

fn check_request(table: &str, path: &str, status: u16) -> Result<(), String> {
    check(path.starts_with('/'), || format!("{table}.path: {path:?} does not begin with '/'"))?;
    check((100..600).contains(&status), || format!("{table}.status: {status} is no HTTP status"))
}

fn check(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        name = "rust-hyper"
        version = "0.1.0"
        description = "hyper 1 on tokio"
        command = ["bin/rust-hyper", "--listen", "127.0.0.1:{port}"]
        [env]
        LEVEL = "info"
        [ready]
        path = "/health"
        [verify]
        path = "/hash"
        contains = "\"hash\""
    "#;

    fn fault(text: &str) -> String {
        parse(text, "/".into()).expect_err("a fault")
    }

    #[test]
    fn a_whole_manifest_is_read_with_its_defaults() {
        let manifest = parse(WHOLE, "/targets".into()).expect("a manifest");
        assert_eq!(manifest.ready.status, 200);
        assert_eq!(manifest.ready.timeout(), Duration::from_secs(10));
        assert_eq!(manifest.verify.expect("a verify").contains.as_deref(), Some("\"hash\""));
    }

    #[test]
    fn every_fault_names_its_field() {
        let replaced = [
            ("\"rust-hyper\"", "\"../x\"", "name"),
            ("\"0.1.0\"", "\" \"", "version"),
            ("127.0.0.1:{port}", "127.0.0.1:80", "{port}"),
            ("\"/health\"", "\"health\"", "ready.path"),
            ("\"/health\"", "\"/\"\nstatus = 42", "ready.status"),
            ("\"/health\"", "\"/\"\ntimeout_s = 0", "ready.timeout_s"),
            ("\"/health\"", "\"/\"\ntimeout_s = nan", "ready.timeout_s"),
            ("\"/health\"", "\"/\"\ntimeout_s = \"long\"", "timeout_s"),
            ("\"/health\"", "\"/\"\nport = 1", "port"),
            ("\"/hash\"", "\"hash\"", "verify.path"),
            ("description", "descripton", "descripton"),
            ("LEVEL = \"info\"", "LEVEL = 3", "LEVEL"),
            ("version = \"0.1.0\"", "", "version"),
            ("version = \"0.1.0\"", "version = \"1\"\nrevision = \" \"", "revision"),
            ("[verify]", "[sandbox]\nread = [\"/nowhere/at/all\"]\n[verify]", "sandbox.read: /nowhere/at/all"),
            ("[verify]", "[sandbox]\nrun = []\n[verify]", "run"),
        ];
        for (from, to, field) in replaced {
            let message = fault(&WHOLE.replace(from, to));
            assert!(message.contains(field), "{to}: {message}");
        }
        assert!(fault(&WHOLE.replace("\"bin/rust-hyper\", ", "\"\", ")).contains("command"));
    }

    #[test]
    fn the_port_may_come_by_environment() {
        let text = WHOLE.replace("127.0.0.1:{port}", "x").replace("info", "{port}");
        assert!(parse(&text, "/".into()).is_ok());
    }

    #[test]
    fn one_broken_manifest_does_not_hide_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("a.toml", WHOLE), ("b.toml", "name = "), ("c.toml", WHOLE), ("d.txt", "no manifest")] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let (manifests, errors) = load(folder.path());
        assert_eq!(manifests.len(), 1);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains("b.toml"), "{errors:?}");
        assert!(errors[1].contains("c.toml: name: \"rust-hyper\" is taken by"), "{errors:?}");
    }

    #[test]
    fn a_missing_folder_is_an_error_and_no_targets() {
        let (manifests, errors) = load(Path::new("/nowhere/at/all"));
        assert!(manifests.is_empty());
        assert!(errors[0].to_string().starts_with("/nowhere/at/all: "), "{errors:?}");
    }
}
