//! The manifest of a target: a TOML file written by the agent's owner.

mod container;
mod kubernetes;
mod vm;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use brewbench_wire::manifest::{
    Build, Container, IdentityScope, ManifestFile, Profile, Ready, Remote, Sandbox, Source, Verify,
};
use brewbench_wire::target::TargetKind;

pub use kubernetes::Workload;
pub use vm::{Machine, Qemu};

/// How to start a target, and how to check that it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its name in jobs: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Version, in any format.
    pub version: String,
    /// Source revision it was built from, e.g. a git commit.
    pub revision: Option<String>,
    /// One-line description.
    pub description: String,
    /// How it is provided.
    pub provided: Provided,
    /// Readiness check.
    pub ready: Ready,
    /// Check of a response before the load.
    pub verify: Option<Verify>,
    /// How it is profiled; `None` if it can't be.
    pub profile: Option<Profile>,
    /// What identifies its code besides its command; `None` for the folder of its script.
    pub identity: Option<IdentityScope>,
    /// What it is built from; `None` if it is there.
    pub source_build: Option<SourceBuild>,
}

/// What a program is built from, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceBuild {
    /// The repository.
    pub source: Source,
    /// The command.
    pub build: Build,
    /// What the build may read and write besides its own folders.
    pub sandbox: Sandbox,
}

/// How a target is provided.
#[derive(Clone, Debug, PartialEq)]
pub enum Provided {
    /// The agent starts a program.
    Process(Program),
    /// The agent starts a container.
    Container(Container),
    /// The agent starts a virtual machine.
    Vm(Machine),
    /// It already runs.
    Url(Remote),
    /// A cluster runs it.
    Kubernetes(Workload),
}

impl Provided {
    /// Returns the kind.
    pub fn kind(&self) -> TargetKind {
        match self {
            Self::Process(_) => TargetKind::Process,
            Self::Container(_) => TargetKind::Container,
            Self::Vm(_) => TargetKind::Vm,
            Self::Url(_) => TargetKind::Url,
            Self::Kubernetes(_) => TargetKind::Kubernetes,
        }
    }
}

/// A program that the agent starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments, with the placeholders `{port}` and `{host}`.
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    pub env: BTreeMap<String, String>,
    /// Additional files that its sandbox allows.
    pub sandbox: Sandbox,
    /// The manifest's folder: the working directory, and the base of relative paths.
    pub folder: PathBuf,
}

/// An unusable manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// The manifest, or the folder if that can't be read.
    pub file: PathBuf,
    /// What is wrong, with the name of the field.
    pub message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

/// Reads all `*.toml` files of a folder, sorted by name. A broken one does not affect the others, and a missing folder
/// has none.
pub fn load(folder: &Path) -> (Vec<Manifest>, Vec<ManifestError>) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return (Vec::new(), Vec::new()),
        Err(error) => {
            let message = format!("can't read the folder of manifests: {error}");
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
            Some(other) => Err(format!("name: {:?} is already used by {}", manifest.name, other.display())),
        });
        match read {
            Ok(manifest) => manifests.push(manifest),
            Err(message) => errors.push(ManifestError { file, message }),
        }
    }
    (manifests, errors)
}

/// Reads a manifest; the error names the field.
pub fn read(file: &Path) -> Result<Manifest, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("can't read it: {error}"))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|error| format!("can't find its folder: {error}"))?;
    parse(&text, folder)
}

fn parse(text: &str, folder: PathBuf) -> Result<Manifest, String> {
    let file = ManifestFile::parse(text)?;
    let ManifestFile {
        name,
        version,
        revision,
        description,
        command,
        env,
        container,
        vm,
        url,
        kubernetes,
        metrics,
        ready,
        verify,
        profile,
        sandbox,
        identity,
        source,
        build,
    } = file;
    let profile = profile.map(|profile| profile.with(&folder));
    let mut source_build = None;
    let provided = match (container, vm, url, kubernetes) {
        (Some(container), ..) => {
            source_build =
                source.zip(build).map(|(source, build)| SourceBuild { source, build, sandbox: Sandbox::default() });
            Provided::Container(container::resolve(container, &folder)?)
        }
        (None, Some(vm), ..) => Provided::Vm(vm::resolve(vm, folder, sandbox)?),
        (None, None, Some(url), _) => Provided::Url(url.with(metrics)?),
        (None, None, None, Some(kubernetes)) => Provided::Kubernetes(kubernetes::resolve(&kubernetes, &folder)?),
        (None, None, None, None) => {
            let sandbox = resolve_sandbox(sandbox, &folder)?;
            source_build =
                source.zip(build).map(|(source, build)| SourceBuild { source, build, sandbox: sandbox.clone() });
            Provided::Process(Program { command, env, sandbox, folder })
        }
    };
    let is_here = !matches!(provided, Provided::Url(_) | Provided::Kubernetes(_));
    let profile = profile.or_else(|| is_here.then(Profile::by_perf));
    Ok(Manifest { name, version, revision, description, provided, ready, verify, profile, identity, source_build })
}

/// Resolves the paths. Fails with a sentence if one does not exist.
fn resolve_sandbox(mut sandbox: Sandbox, folder: &Path) -> Result<Sandbox, String> {
    for (key, paths) in [("read", &mut sandbox.read), ("write", &mut sandbox.write)] {
        for path in paths {
            let absolute = folder.join(&*path).canonicalize();
            *path = absolute.map_err(|error| format!("sandbox.{key}: {}: {error}", path.display()))?;
        }
    }
    Ok(sandbox)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const COMPLETE: &str = r#"
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
    fn a_complete_manifest_is_read_with_its_defaults() {
        let manifest = parse(COMPLETE, "/targets".into()).expect("a manifest");
        assert_eq!(manifest.ready.status, 200);
        assert_eq!(manifest.ready.timeout(), Duration::from_secs(10));
        assert_eq!(manifest.verify.expect("a verify").contains.as_deref(), Some("\"hash\""));
    }

    #[test]
    fn every_error_names_its_field() {
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
            ("[verify]", "[url]\nbase = \"http://x\"\n[verify]", "command: remove it"),
            ("[verify]", "[container]\nimage = \"x\"\nport = 1\n[verify]", "command: remove it"),
            (
                "[verify]",
                "[url]\nbase = \"http://x\"\n[container]\nimage = \"x\"\nport = 1\n[verify]",
                "url: remove it",
            ),
            ("[verify]", "[profile]\nperf = true\npprof = \"/x\"\n[verify]", "profile.perf: remove it"),
            ("[verify]", "[profile]\nsource = \"perf\"\n[verify]", "source"),
            ("description", "identity = [\"../x\"]\ndescription", "identity: write paths below"),
            ("description", "identity = { command = [] }\ndescription", "identity.command: program is missing"),
            ("[verify]", "[metrics]\nscrape = \"http://x\"\n[verify]", "metrics: only for a target with [url]"),
        ];
        for (from, to, field) in replaced {
            let message = fault(&COMPLETE.replace(from, to));
            assert!(message.contains(field), "{to}: {message}");
        }
        assert!(fault(&COMPLETE.replace("\"bin/rust-hyper\", ", "\"\", ")).contains("command"));
    }

    #[test]
    fn the_port_may_be_in_the_environment() {
        let text = COMPLETE.replace("127.0.0.1:{port}", "x").replace("info", "{port}");
        assert!(parse(&text, "/".into()).is_ok());
    }

    #[test]
    fn one_broken_manifest_does_not_hide_the_others() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in
            [("a.toml", COMPLETE), ("b.toml", "name = "), ("c.toml", COMPLETE), ("d.txt", "no manifest")]
        {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let (manifests, errors) = load(folder.path());
        assert_eq!(manifests.len(), 1);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains("b.toml"), "{errors:?}");
        assert!(errors[1].contains("c.toml: name: \"rust-hyper\" is already used by"), "{errors:?}");
    }

    #[test]
    fn only_a_folder_that_exists_can_be_unreadable() {
        assert_eq!(load(Path::new("/nowhere/at/all")), (Vec::new(), Vec::new()));
        let errors = load(Path::new("/dev/null")).1;
        assert!(errors[0].to_string().starts_with("/dev/null: can't read"), "{errors:?}");
    }
}
